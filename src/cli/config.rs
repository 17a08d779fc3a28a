//! `config check`, `show` and `import`.

use super::args::{ConfigCheck, ConfigImport, ConfigRead};
use super::text::{self, Look};
use super::{CliError, Out, paths};
use crate::config::Config;
use crate::config::report::{self, CheckKind, CheckLine};

fn load(files: Vec<std::path::PathBuf>) -> Result<Config, CliError> {
    Ok(Config::load(&paths::config(files)?, &paths::variable)?)
}

pub fn check(args: ConfigCheck, out: &Out) -> Result<(), CliError> {
    let lines = report::check(&load(args.config.files)?);
    if args.json {
        return out.json(&lines);
    }
    out.print(&checked(&lines, out.look))
}

pub fn show(args: ConfigRead, out: &Out) -> Result<(), CliError> {
    out.print(&text::block(&report::show(&load(args.config.files)?)))
}

/// Literal secrets stay, since the servers need them: this is a new config, not a report.
pub fn import(args: &ConfigImport, out: &Out) -> Result<(), CliError> {
    out.print(&text::block(&report::import(&args.file)?))
}

fn checked(lines: &[CheckLine], look: Look) -> String {
    let mut shown = String::new();
    for line in lines {
        let kind = match line.kind {
            CheckKind::Runs => look.green("runs"),
            CheckKind::NeedsConfig => look.red("needs_config"),
            CheckKind::Disabled => look.dim("disabled"),
            CheckKind::Warning => look.yellow("warning"),
            CheckKind::Note => look.dim("note"),
        };
        shown += &kind;
        if let Some(server) = &line.server {
            shown += &format!(" {}", look.bold(&text::line(server)));
        }
        shown += &format!(": {}", text::line(&line.text));
        if let Some(origin) = &line.origin {
            shown += &look.dim(&format!(" ({})", text::line(origin)));
        }
        shown.push('\n');
        if let Some(hint) = &line.hint {
            shown += &format!("  {} {}\n", look.cyan("→"), text::line(hint));
        }
    }
    if lines.is_empty() {
        shown.push_str("no servers are configured\n");
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_server_has_its_line_and_its_hint() {
        let line = |kind, server: Option<&str>, text: &str, hint: Option<&str>| CheckLine {
            kind,
            server: server.map(Into::into),
            text: text.into(),
            hint: hint.map(Into::into),
            origin: server.map(|_| "a.toml:3".into()),
        };
        let lines = [
            line(CheckKind::Runs, Some("handbook"), "serves the folder /data", None),
            line(CheckKind::NeedsConfig, Some("wiki"), "TOKEN is not set", Some("export TOKEN")),
            line(CheckKind::Warning, None, "a.toml is readable by others", None),
        ];
        expect![[r#"
            runs handbook: serves the folder /data (a.toml:3)
            needs_config wiki: TOKEN is not set (a.toml:3)
              → export TOKEN
            warning: a.toml is readable by others
        "#]]
        .assert_eq(&checked(&lines, Look { colour: false, width: 80 }));
    }
}
