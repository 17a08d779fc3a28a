//! The command line: what can be typed, with its help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

/// Search in everything that MCP servers can read.
///
/// A daemon (`resdex serve`) connects to MCP servers, follows their resources as they change, and
/// keeps a full-text index; the other commands ask it.
#[derive(Debug, Parser)]
#[command(name = "resdex", version, max_term_width = 100, after_help = FIRST_STEPS)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const FIRST_STEPS: &str = "\
First steps:
  resdex serve --config config/resdex.toml     start the daemon; it also takes a .mcp.json
  resdex search refund deadline                ask it, in any language
  resdex status                                what it knows, and what is wrong
  resdex console                               all of it in a browser, when serve has --http

Exit codes: 0 done; 1 failed; 2 wrong usage or config; 3 no daemon answers at the socket;
75 another daemon holds this state folder.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(Serve),
    Search(Search),
    Context(Context),
    Read(Read),
    List(List),
    Status(Status),
    Sync(Sync),
    Events(Events),
    Trace(Trace),
    Token(TokenArgs),
    Console(Console),
    Mcp(Mcp),
    Files(Files),
    Extract(Extract),
    Eval(Eval),
    Config(ConfigArgs),
    Completions(Completions),
    Man(Man),
    /// Open documents for the daemon, confined, on stdin and stdout
    #[command(hide = true)]
    ExtractWorker,
}

// Not a doc comment: clap would take it for the help of the commands that this is flattened into.
// Where the daemon listens.
#[derive(Clone, Debug, Args)]
pub struct SocketArg {
    /// The daemon's socket [default: $XDG_RUNTIME_DIR/resdex/sock, else STATE/run/sock]
    #[arg(long, value_name = "PATH", env = "RESDEX_SOCKET", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
}

/// Run the daemon: connect to the servers, keep the index, answer
///
/// It stays in the foreground until it gets SIGINT or SIGTERM. On a terminal it shows what is being
/// synchronised; elsewhere it logs JSON lines on stderr. RESDEX_LOG sets what is logged (default: info).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex serve --config config/resdex.toml
  resdex serve --config .mcp.json --config ~/.config/resdex/config.toml")]
pub struct Serve {
    #[command(flatten)]
    pub config: ConfigFiles,
    /// Folder for the index [default: $XDG_STATE_HOME/resdex]
    #[arg(long, value_name = "DIR", env = "RESDEX_STATE", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub socket: SocketArg,
    /// Also answer on this TCP address, such as 127.0.0.1:7878
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
}

#[derive(Debug, Args)]
pub struct ConfigFiles {
    /// A config of resdex's own or an MCP client's (.mcp.json, …); may be given several times
    /// [default: $XDG_CONFIG_HOME/resdex/config.toml]
    #[arg(long = "config", value_name = "FILE", env = "RESDEX_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

/// Find the resources that answer a query
///
/// The query is words in any language. "a phrase" must occur as it stands, -word must not occur;
/// server:NAME, mime:TYPE and uri:PREFIX narrow the search. Quote a query with such signs in it as a
/// whole.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex search refund deadline
  resdex search 退款 -n 3
  resdex search '\"exit code\" -windows server:handbook'
  resdex search timeout --mime 'text/*' --json | jq -r '.hits[].uri'")]
pub struct Search {
    /// Words in any language
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,
    /// Most hits, 1-100
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// Hits to leave out at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: usize,
    /// Only this server; may be given several times
    #[arg(long = "server", value_name = "S")]
    pub servers: Vec<String>,
    /// See only what this scope of the config lets through
    #[arg(long, value_name = "NAME")]
    pub scope: Option<String>,
    /// Only this MIME type, such as text/markdown or 'image/*'; may be given several times
    #[arg(long = "mime", value_name = "M")]
    pub mime_types: Vec<String>,
    /// Only URIs that begin with this
    #[arg(long, value_name = "P")]
    pub uri_prefix: Option<String>,
    /// Passages of each hit, 1-10
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub passages: usize,
    /// Show how each hit was ranked
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub output: Output,
}

// How a command that asks the daemon answers.
#[derive(Debug, Args)]
pub struct Output {
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub socket: SocketArg,
}

/// Pack the best passages into a block for a prompt, within a budget of tokens
///
/// Pins come first. Each passage is fenced as data and cited by number, server, URI and lines. The text
/// goes to stdout exactly as a model is to get it, unless that is a terminal.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex context refund deadline
  resdex context 退款 --scope support-bot --max-tokens 1500
  resdex context refund --pin handbook:///tone.md --json | jq '.citations'")]
pub struct Context {
    /// Words in any language; may be missing where pins are all that is wanted
    #[arg(value_name = "QUERY")]
    pub query: Vec<String>,
    /// Most tokens, as --tokenizer counts; never more than the scope allows [default: 4000]
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,
    /// What can be found, what is pinned, and how many tokens at most: a scope of the config
    #[arg(long, value_name = "NAME")]
    pub scope: Option<String>,
    /// With the pins of this conversation, a name of your own choice
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// Put this resource first, this time; may be given several times
    #[arg(long = "pin", value_name = "URI")]
    pub pins: Vec<String>,
    /// o200k_base, o200k_harmony, cl100k_base, p50k_base or r50k_base [default: o200k_base]
    #[arg(long, value_name = "NAME")]
    pub tokenizer: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Read a resource from its server, now
///
/// Where the server is away, the last good text is shown and said to be stale. Text is printed with
/// what isn't printable escaped; --json has it exactly, and binary content as base64.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex read handbook:///refunds.md
  resdex read handbook:///refunds.md --lines 10-40
  resdex read wiki://pages/eng/build --server wiki --outline")]
pub struct Read {
    /// As a search or a list shows it
    #[arg(value_name = "URI")]
    pub uri: String,
    /// The server, where several have this URI
    #[arg(long, value_name = "S")]
    pub server: Option<String>,
    /// The text that is indexed instead of what the server sent
    #[arg(long)]
    pub extracted: bool,
    /// Only these lines, counted from 1: A-B, A- or A
    #[arg(long, value_name = "A-B")]
    pub lines: Option<String>,
    /// At most about this many tokens of text
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,
    /// The headings with their lines and sizes instead of the text
    #[arg(long)]
    pub outline: bool,
    #[command(flatten)]
    pub output: Output,
}

/// List what is known of the servers' resources
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex list --server handbook
  resdex list --skipped          what is found by name only, and why
  resdex list --templates")]
pub struct List {
    /// Only this server
    #[arg(long, value_name = "S")]
    pub server: Option<String>,
    /// The URI templates instead of the resources
    #[arg(long, conflicts_with = "skipped")]
    pub templates: bool,
    /// Only what is found by its name only, with the reason
    #[arg(long)]
    pub skipped: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Show what the daemon knows, what each server is doing, and what is wrong
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex status
  resdex status --json | jq -r '.servers[] | select(.state != \"live\") | .name'")]
pub struct Status {
    #[command(flatten)]
    pub output: Output,
}

/// List and reconcile servers now instead of at their next scheduled time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex sync                     all servers
  resdex sync wiki docs --wait
  resdex sync wiki --confirm      believe that most of wiki's resources are gone")]
pub struct Sync {
    /// The servers; all when none is named
    #[arg(value_name = "SERVER")]
    pub servers: Vec<String>,
    /// Wait until they have been reconciled
    #[arg(long)]
    pub wait: bool,
    /// Believe a withheld mass removal
    #[arg(long)]
    pub confirm: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Show what happens in the sync, as it happens
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex events
  resdex events --json | jq -c 'select(.event == \"error\")'")]
pub struct Events {
    /// Print each event as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub socket: SocketArg,
}

/// Show what was searched and read lately, by whom
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex trace --scope support-bot           what did this bot read?
  resdex trace --uri handbook:///refunds.md  who reads this document?
  resdex trace -n 1000 --json | jq -r '.entries[].client' | sort | uniq -c")]
pub struct Trace {
    /// Most entries, 1-1000, the newest first
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Only what was asked in this scope
    #[arg(long, value_name = "S")]
    pub scope: Option<String>,
    /// Only what a resource of this server came up in
    #[arg(long, value_name = "S")]
    pub server: Option<String>,
    /// Only what this resource came up in
    #[arg(long, value_name = "U")]
    pub uri: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Make tokens for scopes
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Print a new token for a scope, and the config line with its hash
    ///
    /// The token is shown this once; the config keeps only its hash. A client sends it as
    /// `Authorization: Bearer TOKEN`, and sees its scope and nothing else.
    #[command(after_help = "Example:\n  resdex token new support-bot")]
    New(TokenNew),
}

#[derive(Debug, Args)]
pub struct TokenNew {
    /// The scope's name in the config
    #[arg(value_name = "SCOPE")]
    pub scope: String,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Open the daemon's web console, signed in
///
/// The daemon has to answer on TCP (`serve --http 127.0.0.1:7878`). A link that signs you in once, within
/// two minutes, is opened in your browser; where there is none it is printed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex console
  resdex console --print          the link, to open it elsewhere")]
pub struct Console {
    /// Print the link instead of opening it
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Be an MCP server on stdio in front of the daemon; start one if none runs
///
/// One entry in an MCP client's config for everything that the daemon knows: resources to list, read
/// and subscribe to, and tools for clients that can only call tools.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex mcp --config config/resdex.toml
  resdex mcp --scope support-bot --no-start
  claude mcp add resdex -- resdex mcp")]
pub struct Mcp {
    /// Show only what this scope of the config lets through
    #[arg(long, value_name = "NAME")]
    pub scope: Option<String>,
    /// Fail where no daemon runs
    #[arg(long)]
    pub no_start: bool,
    #[command(flatten)]
    pub config: ConfigFiles,
    /// Folder for the index of a daemon that is started [default: $XDG_STATE_HOME/resdex]
    #[arg(long, value_name = "DIR", env = "RESDEX_STATE", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub socket: SocketArg,
}

/// Serve a folder as an MCP resource server on stdio, with live updates
///
/// For any MCP client. Hidden and git-ignored files aren't served.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex files docs
  claude mcp add docs -- resdex files /home/me/docs --name docs")]
pub struct Files {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// The server's name, which is its URIs' scheme as well [default: the folder's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Show what would be indexed of a file: its text, its structure, and why not more
///
/// The file is read as the daemon would read it, binary formats by a confined worker process. After
/// the text stand its headings with their place, the passages it is cut into, and how long it took.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex extract report.pdf
  resdex extract report.html --text
  resdex extract data.bin --mime application/json --json")]
pub struct Extract {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The MIME type that a server would say
    #[arg(long, value_name = "M")]
    pub mime: Option<String>,
    /// Print the text and nothing else
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub json: bool,
}

/// Measure how well questions find their answers, and how fast
///
/// A folder has corpus.jsonl ({_id, title, text}), queries.jsonl ({_id, text}), qrels.tsv (question,
/// document, grade) and maybe answers.jsonl ({_id of the question, answers}); it is indexed in memory
/// by the code that indexes resources. Several folders share one index.
///
/// A file has one {"query": …, "expect": URI or [URI, …], "answers"?: […]} a line, which the running
/// daemon is asked, maybe within a scope or of some servers. Each question whose document doesn't come
/// first is told, with its rank and what comes first instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resdex eval sets/scifact
  resdex eval sets/* --json
  resdex eval sets/xquad-en --off-topic sets/scifact --plot relevance.svg
  resdex eval my-questions.jsonl --scope support-bot")]
pub struct Eval {
    /// Folders, or files of questions for the daemon
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub sets: Vec<PathBuf>,
    /// Also ask the questions of this folder, which the others can't answer, and nonsense: does
    /// relevance tell them apart? May be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub off_topic: Vec<PathBuf>,
    /// Draw the relevance of first hits into this SVG file
    #[arg(long, value_name = "FILE", requires = "off_topic", value_hint = ValueHint::FilePath)]
    pub plot: Option<PathBuf>,
    /// Rank folders otherwise, to see what a step is worth, as in `--rank title=0`; may be given several
    /// times
    #[arg(long, value_name = "NAME=FACTOR")]
    pub rank: Vec<String>,
    /// Ask the daemon only for this server; may be given several times
    #[arg(long = "server", value_name = "S")]
    pub servers: Vec<String>,
    /// Ask the daemon within this scope of its config
    #[arg(long, value_name = "NAME")]
    pub scope: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// Check, show or import configs
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say what would run, what wouldn't and why; secrets are masked
    #[command(after_help = "Example:\n  resdex config check --config .mcp.json")]
    Check(ConfigCheck),
    /// Print the config in force, all files together; secrets are masked
    #[command(after_help = "Example:\n  resdex config show --config config/resdex.toml")]
    Show(ConfigRead),
    /// Print an MCP client's config as resdex's own
    #[command(
        after_help = "Example:\n  resdex config import .mcp.json >> ~/.config/resdex/config.toml"
    )]
    Import(ConfigImport),
}

#[derive(Debug, Args)]
pub struct ConfigCheck {
    #[command(flatten)]
    pub config: ConfigFiles,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ConfigRead {
    #[command(flatten)]
    pub config: ConfigFiles,
}

#[derive(Debug, Args)]
pub struct ConfigImport {
    /// The client's config: .mcp.json, .vscode/mcp.json, …
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  resdex completions bash > ~/.local/share/bash-completion/completions/resdex"
)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Write the manual pages into a folder
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  resdex man ~/.local/share/man/man1")]
pub struct Man {
    /// The folder; made if there is none
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn search(line: &[&str]) -> Search {
        let words = ["resdex", "search"].iter().chain(line);
        match Cli::try_parse_from(words).unwrap().command {
            Command::Search(search) => search,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_query_is_words_and_options_may_stand_anywhere() {
        for (line, query, limit) in [
            (&["refund", "deadline"][..], "refund deadline", 10),
            (&["退款", "-n", "3"], "退款", 3),
            (&["-n3", "refund"], "refund", 3),
            (&["\"exit code\" -windows"], "\"exit code\" -windows", 10),
            (&["--", "-n", "--json"], "-n --json", 10),
        ] {
            let search = search(line);
            assert_eq!((&*search.query.join(" "), search.limit), (query, limit), "{line:?}");
        }
        assert!(search(&["x", "--json"]).output.json);
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in [
            &["resdex"][..],
            &["resdex", "search"],
            // An excluded word is quoted with the rest, or stands after `--`.
            &["resdex", "search", "-windows", "code"],
            &["resdex", "search", "x", "-n", "many"],
            &["resdex", "read"],
            &["resdex", "list", "--templates", "--skipped"],
            &["resdex", "config"],
            &["resdex", "nothing"],
            &["resdex", "status", "--nope"],
        ] {
            assert!(Cli::try_parse_from(line).is_err(), "{line:?}");
        }
    }
}
