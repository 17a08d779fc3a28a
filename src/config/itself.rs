//! Finds the entries that would make resdex index itself: a `.mcp.json` that offers resdex to an
//! agent is given to resdex as well, and each start would start another.

use std::path::Path;

use super::{Readiness, ServerConfig, Transport};

const NAME: &str = "resdex";

/// Why a server must not be started, if it is resdex itself.
pub(super) fn reason(transport: &Transport) -> Option<String> {
    let Transport::Stdio { command, args, .. } = transport else { return None };
    let args: Vec<&str> = args.iter().map(|arg| arg.expose()).collect();
    starts_itself(command, &args)
        .then(|| "it would start resdex itself, which would index its own answers".to_owned())
}

/// Disables the servers whose URL is one of the daemon's own addresses.
///
/// `listen` is the address on TCP, `socket` the path of the Unix socket; either may be unknown.
pub fn disable_own_addresses<'s>(
    servers: impl Iterator<Item = &'s mut ServerConfig>,
    listen: Option<&str>,
    socket: Option<&Path>,
) {
    for server in servers {
        let Transport::Http { url, unix_socket, .. } = &server.transport else { continue };
        let own = match unix_socket {
            Some(path) => socket == Some(path),
            None => listen.is_some_and(|listen| leads_to(url, listen)),
        };
        if own && server.readiness == Readiness::Ready {
            server.readiness = Readiness::Disabled {
                reason: "its URL is the address of this daemon, which would index its own answers"
                    .into(),
            };
        }
    }
}

/// Whether a URL leads to an address that the daemon listens on.
fn leads_to(url: &str, listen: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else { return false };
    let Some((host, port)) = listen.rsplit_once(':') else { return false };
    if url.port_or_known_default().map(|port| port.to_string()).as_deref() != Some(port) {
        return false;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let any_address = host == "0.0.0.0" || host == "::";
    let local =
        host == "localhost" || host.parse().is_ok_and(|host: std::net::IpAddr| host.is_loopback());
    let same = url.host_str().map(|name| name.trim_matches(['[', ']'])) == Some(host);
    same || ((any_address || local) && super::validate::is_loopback(&url))
}

/// Whether a command line starts resdex, straight or through a usual wrapper. `resdex files` is a
/// server of a folder like any other, so it doesn't count.
fn starts_itself(command: &str, args: &[&str]) -> bool {
    if is_resdex(command) || is_this_program(command) {
        return !serves_files(args);
    }
    let name = file_name(command);
    match name {
        "sh" | "bash" | "zsh" | "dash" | "fish" | "cmd" => args
            .iter()
            .position(|arg| matches!(*arg, "-c" | "-lc" | "-ic" | "-lic" | "/c" | "/C"))
            .and_then(|at| args.get(at + 1))
            .is_some_and(|script| script_starts_itself(script)),
        "env" | "nice" | "nohup" | "sudo" | "exec" | "setsid" | "stdbuf" | "timeout" => {
            let rest = args
                .iter()
                .position(|arg| !arg.starts_with('-') && !arg.contains('=') && !is_number(arg));
            rest.is_some_and(|at| starts_itself(args[at], &args[at + 1..]))
        }
        "npx" | "uvx" | "bunx" | "pnpx" => package_is_itself(args),
        "npm" | "pnpm" | "yarn" | "bun" | "uv" | "pipx" => match args {
            ["exec" | "dlx" | "x" | "run", rest @ ..] => package_is_itself(rest),
            ["tool", "run", rest @ ..] => package_is_itself(rest),
            _ => false,
        },
        "cargo" => matches!(args, ["run", rest @ ..] if
            rest.windows(2).any(|pair| matches!(pair[0], "-p" | "--package" | "--bin") && pair[1] == NAME)),
        _ => false,
    }
}

/// The first argument that isn't a flag is the package that a runner like npx starts.
fn package_is_itself(args: &[&str]) -> bool {
    let Some(at) = args.iter().position(|arg| !arg.starts_with('-')) else { return false };
    // With `--package P` or `--from P`, P is what the position finds, and the command comes later.
    let name = args[at].rsplit('/').next().unwrap_or_default();
    let name = name.split(['@', '=']).next().unwrap_or_default();
    name == NAME && !serves_files(&args[at + 1..])
}

fn script_starts_itself(script: &str) -> bool {
    script.split([';', '|', '&', '\n', '(']).any(|command| {
        let mut words = command
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
            .skip_while(|word| *word == "exec" || word.contains('='));
        words.next().is_some_and(|command| starts_itself(command, &words.collect::<Vec<_>>()))
    })
}

fn serves_files(args: &[&str]) -> bool {
    args.iter().find(|arg| !arg.starts_with('-')) == Some(&"files")
}

fn is_resdex(command: &str) -> bool {
    let name = file_name(command);
    name == NAME || name == "resdex.exe"
}

fn is_this_program(command: &str) -> bool {
    command.contains('/')
        && match (std::env::current_exe(), Path::new(command).canonicalize()) {
            (Ok(program), Ok(command)) => program == command,
            _ => false,
        }
}

fn file_name(command: &str) -> &str {
    command.rsplit(['/', '\\']).next().unwrap_or(command)
}

fn is_number(text: &str) -> bool {
    text.trim_end_matches(['s', 'm', 'h']).parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        for (line, wanted) in [
            ("resdex mcp", true),
            ("/usr/local/bin/resdex mcp --scope a", true),
            ("C:\\bin\\resdex.exe mcp", true),
            ("resdex files /docs", false),
            ("sh -c|cd /opt && exec ./resdex mcp", true),
            ("bash -lc|TOKEN=1 resdex serve", true),
            ("sh -c|cd ~/resdex && npm start", false),
            ("npx -y resdex mcp", true),
            ("npx -y @acme/resdex@1.2 mcp", true),
            ("npx -y @acme/docs --name resdex", false),
            ("uvx --from resdex resdex mcp", true),
            ("pnpm dlx resdex mcp", true),
            ("env A=1 nice -n 5 resdex mcp", true),
            ("timeout 5s resdex mcp", true),
            ("cargo run --bin resdex -- mcp", true),
            ("node server.js resdex", false),
            ("sh -c", false),
            ("npx", false),
            ("", false),
        ] {
            let (head, script) = line.split_once('|').unwrap_or((line, ""));
            let mut words = head.split(' ');
            let command = words.next().unwrap();
            let mut args: Vec<&str> = words.collect();
            args.extend((!script.is_empty()).then_some(script));
            assert_eq!(starts_itself(command, &args), wanted, "{line}");
        }
        let program = std::env::current_exe().unwrap();
        assert!(starts_itself(program.to_str().unwrap(), &["mcp"]));
    }

    #[test]
    fn own_addresses() {
        for (url, listen, wanted) in [
            ("http://localhost:7878/mcp", "127.0.0.1:7878", true),
            ("http://[::1]:7878/mcp", "0.0.0.0:7878", true),
            ("http://127.0.0.1:7879/mcp", "127.0.0.1:7878", false),
            ("https://wiki.example/mcp", "0.0.0.0:443", false),
            ("http://10.0.0.5:7878/mcp", "10.0.0.5:7878", true),
            ("http://localhost/mcp", "127.0.0.1:80", true),
            ("nonsense", "127.0.0.1:80", false),
        ] {
            assert_eq!(leads_to(url, listen), wanted, "{url} {listen}");
        }
    }
}
