//! The log: human lines on a terminal, JSON lines elsewhere, always on stderr.

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;

use super::{progress, text};

/// What is left out unless RESDEX_LOG names it: what of rmcp matters becomes an error of ours; tantivy
/// warns of merges that a commit has overtaken, which is no harm; and the scheduler takes each alarm that
/// has rung and is put away for a fault.
const LEFT_OUT: &str = "rmcp=off,tantivy=error,tokio_cron_scheduler=off";

/// What is logged unless RESDEX_LOG says otherwise.
const DEFAULT: &str = "info";

/// On a terminal the bars and their calm line tell the rest.
const ON_A_TERMINAL: &str = "warn";

/// Sets up the log for this process; a second call changes nothing.
///
/// # Errors
/// What RESDEX_LOG has that isn't a filter.
pub fn start() -> Result<(), String> {
    let wanted = std::env::var("RESDEX_LOG").unwrap_or_default();
    let is_terminal = io::stderr().is_terminal();
    let wanted = match &*wanted {
        "" if is_terminal => ON_A_TERMINAL,
        "" => DEFAULT,
        wanted => wanted,
    };
    let filter = filter(wanted).map_err(|error| format!("RESDEX_LOG: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Stderr);
    let _ = if is_terminal {
        builder.with_ansi(false).with_target(false).compact().try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
    Ok(())
}

/// What is wanted, and of what is left out only what is wanted by name.
fn filter(wanted: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(wanted)?;
    EnvFilter::try_new(format!("{LEFT_OUT},{wanted}"))
}

/// Stderr, above the progress bars if there are any.
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line
    }
}

/// Writes one record at a time, with what isn't printable in it escaped.
struct Line;

impl Write for Line {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let shown = safe(&String::from_utf8_lossy(record));
        progress::above(|| io::stderr().lock().write_all(shown.as_bytes()))?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A record is one line: what strangers wrote can neither end it nor steer a terminal.
fn safe(record: &str) -> String {
    let body = record.strip_suffix('\n').unwrap_or(record);
    let mut safe =
        if body.starts_with('{') { text::json_text(body) } else { text::line(body).into_owned() };
    safe.push('\n');
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_logged_when_they_are_named() {
        let shown = |wanted: &str| {
            let filter = filter(wanted).unwrap().to_string();
            let mut all: Vec<String> = filter.split(',').map(str::to_owned).collect();
            all.sort();
            all.join(" ")
        };
        assert_eq!(shown("debug"), "debug rmcp=off tantivy=error tokio_cron_scheduler=off");
        assert_eq!(
            shown("warn,rmcp=debug"),
            "rmcp=debug tantivy=error tokio_cron_scheduler=off warn"
        );
        assert!(filter("resdex=loud").is_err());
    }

    #[test]
    fn a_record_is_one_safe_line() {
        for (record, expected) in [
            ("plain 退款\n", "plain 退款\n"),
            ("a\u{1b}[31m\nfake record\n", "a\\u{1b}[31m\\nfake record\n"),
            ("{\"m\":\"\u{9b}x\"}\n", "{\"m\":\"\\u009bx\"}\n"),
        ] {
            assert_eq!(safe(record), expected);
        }
    }
}
