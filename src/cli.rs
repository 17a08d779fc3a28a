//! The commands: arguments in, people's output or JSON out, an exit code at the end.
//!
//! Results go to stdout, everything else to stderr. What strangers wrote is escaped on its way.

pub mod args;
mod ask;
mod bridge;
mod config;
mod console;
mod eval;
mod local;
mod logs;
mod paths;
pub mod progress;
mod render;
pub mod text;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::client::ClientError;
use crate::config::ConfigErrors;
use crate::daemon::{self, ServeOptions};
use args::{Cli, Command, ConfigCommand, TokenCommand};
use text::Look;

/// Why a command failed, what to do about it, and what the process ends with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// 1 failed, 2 wrong usage or config, 3 no daemon answers, 75 another daemon holds the state.
    pub code: u8,
    pub message: String,
    pub hint: Option<String>,
}

impl CliError {
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into(), hint: None }
    }

    /// Wrong usage or config.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::failed(message) }
    }

    /// Another daemon holds the state folder.
    pub fn held(message: impl Into<String>) -> Self {
        Self { code: 75, ..Self::failed(message) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<ConfigErrors> for CliError {
    fn from(errors: ConfigErrors) -> Self {
        Self::usage(errors.to_string())
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::NoDaemon { reason, .. } => {
                let hint = if reason.kind() == io::ErrorKind::PermissionDenied {
                    "the socket belongs to another user: ask its owner for `socket.allow_uids`"
                } else {
                    "start one with `resdex serve --config FILE`, or name its socket with --socket"
                };
                Self { code: 3, message, hint: Some(hint.into()) }
            }
            ClientError::Refused(refused) => Self { code: 1, message, hint: refused.error.hint },
            ClientError::BrokeOff { .. } => {
                Self::failed(message).hint("its log says why; `resdex status` whether it runs")
            }
            ClientError::NotUnderstood { .. } => {
                Self::failed(message).hint("restart the daemon after an update")
            }
        }
    }
}

/// Runs what the arguments say.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no failure.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(error.code)
        }
    }
}

fn run(command: Command) -> Result<(), CliError> {
    let out = &mut Out { look: Look::of_stdout() };
    match command {
        Command::Serve(args) => {
            logs::start().map_err(CliError::usage)?;
            let state = paths::state(args.state)?;
            daemon::serve(ServeOptions {
                config_files: paths::config(args.config.files)?,
                socket: paths::socket(args.socket.socket, || Ok(state.clone()))?,
                state,
                http: args.http,
            })
        }
        Command::Search(args) => ask::search(args, out),
        Command::Context(args) => ask::context(args, out),
        Command::Read(args) => ask::read(args, out),
        Command::List(args) => ask::list(args, out),
        Command::Status(args) => ask::status(args, out),
        Command::Sync(args) => ask::sync(args, out),
        Command::Events(args) => ask::events(args, out),
        Command::Trace(args) => ask::trace(args, out),
        Command::Token(args) => match args.command {
            TokenCommand::New(args) => local::token(&args, out),
        },
        Command::Console(args) => console::open(args, out),
        Command::Mcp(args) => bridge::mcp(args),
        Command::Files(args) => local::files(&args),
        Command::Extract(args) => local::extract(&args, out),
        Command::Eval(args) => eval::eval(args, out),
        Command::Config(args) => match args.command {
            ConfigCommand::Check(args) => config::check(args, out),
            ConfigCommand::Show(args) => config::show(args, out),
            ConfigCommand::Import(args) => config::import(&args, out),
        },
        Command::Completions(args) => local::completions(&args, out),
        Command::Man(args) => local::man(&args),
        Command::ExtractWorker => Ok(crate::worker::run()?),
    }
}

/// Where a command's results go.
struct Out {
    look: Look,
}

impl Out {
    /// Prints what is safe for a terminal already.
    fn print(&self, text: &str) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        let printed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match printed {
            // Whoever reads has read enough: `| head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
            printed => Ok(printed?),
        }
    }

    fn json(&self, value: &impl serde::Serialize) -> Result<(), CliError> {
        self.print(&(text::json(value, true) + "\n"))
    }
}

/// Says something that is no result.
fn note(message: &str) {
    let _ = writeln!(io::stderr(), "{}", text::line(message));
}

fn report(error: &CliError) {
    let look = Look::of_stderr();
    let mut message = format!("{} {}\n", look.red("error:"), text::block(&error.message));
    if let Some(hint) = &error.hint {
        message += &format!("{} {}\n", look.cyan("hint:"), text::block(hint));
    }
    let _ = io::stderr().write_all(message.as_bytes());
}
