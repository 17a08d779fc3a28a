//! From a configured server to a session: opens the transport, shakes hands, chooses the era.
//!
//! Automatic choice: the era in which the server advertises more push of resources, the modern one
//! on a tie. Each attempt has a transport of its own and a time limit, and what an attempt started
//! has ended before the next one begins, so that a server never runs twice.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, RunningService, serve_client_with_lifecycle};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use rmcp::{ClientCacheConfig, ClientLifecycleMode, RoleClient};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::hints::Hints;
use super::session::{Inner, Session, clean, transport_error};
use super::subscribe::Followed;
use super::transport::child::{self, ChildCommand, Grace};
use super::transport::http::{HttpClient, Reopening};
use super::transport::pipe::{MessageLimits, Pipe};
use crate::config::{self, Limits, ProtocolChoice, ServerConfig};
use crate::model::Era;
use crate::source::SourceError;
use crate::source::files::{FilesOptions, FilesServer};

/// What a connection needs to know beside the server's own config.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    pub limits: Limits,
    pub grace: Grace,
    /// The era that worked the last time.
    pub remembered: Option<Era>,
    /// Where the tasks of children are counted, so that a shutdown can wait for them.
    pub children: TaskTracker,
}

/// A connection that was made.
pub struct Connection {
    pub session: Session,
    /// Whether its era is the server's best, and worth remembering. It isn't when the other era was
    /// ruled out by a time-out, which a slow start may have been.
    pub certain: bool,
}

/// Connects to a server.
///
/// # Errors
/// What the last attempt failed with; a child's exit status and last words are in it.
pub async fn connect(
    server: &ServerConfig,
    options: &ConnectOptions,
) -> Result<Connection, SourceError> {
    let known = match (server.follow.protocol, options.remembered) {
        (ProtocolChoice::Legacy, _) => {
            return certain(attempt(server, options, Era::Legacy).await?);
        }
        (ProtocolChoice::Modern, _) => {
            return certain(attempt(server, options, Era::Modern).await?);
        }
        (ProtocolChoice::Auto, None) => return choose(server, options).await,
        (ProtocolChoice::Auto, Some(era)) => attempt(server, options, era).await,
    };
    match known {
        Ok(session) => certain(session),
        // The server answers and no longer speaks that era.
        Err(SourceError::Refused { .. } | SourceError::BadAnswer { .. }) => {
            choose(server, options).await
        }
        Err(error) => Err(error),
    }
}

fn certain(session: Session) -> Result<Connection, SourceError> {
    Ok(Connection { session, certain: true })
}

/// The automatic choice of the era.
async fn choose(
    server: &ServerConfig,
    options: &ConnectOptions,
) -> Result<Connection, SourceError> {
    let modern = match attempt(server, options, Era::Modern).await {
        Ok(modern) => modern,
        // Credentials and a program that can't be started are the same in either era.
        Err(error @ (SourceError::NeedsAuth { .. } | SourceError::CannotStart { .. })) => {
            return Err(error);
        }
        // Whatever the first message broke, a server of the legacy era never sees it.
        Err(error) => {
            let session = attempt(server, options, Era::Legacy).await?;
            let certain = !matches!(error, SourceError::TimedOut { .. })
                || advertised_push(&session) == BOTH_PUSHES;
            return Ok(Connection { session, certain });
        }
    };
    let push = advertised_push(&modern);
    if push == BOTH_PUSHES {
        return certain(modern);
    }
    // A child isn't run twice at a time, so for one the comparison costs a restart.
    let modern = match server.transport {
        config::Transport::Stdio { .. } => {
            modern.close().await;
            None
        }
        _ => Some(modern),
    };
    match attempt(server, options, Era::Legacy).await {
        Ok(legacy) if advertised_push(&legacy) > push => {
            if let Some(modern) = modern {
                modern.close().await;
            }
            return certain(legacy);
        }
        Ok(legacy) => legacy.close().await,
        Err(_) => {}
    }
    match modern {
        Some(modern) => certain(modern),
        None => certain(attempt(server, options, Era::Modern).await?),
    }
}

/// How much push of resources a server advertises: `updated` is worth more than `list_changed`,
/// since a listing tells of new resources anyway and not of changed ones.
fn advertised_push(session: &Session) -> u8 {
    let push = session.push();
    2 * u8::from(push.contains("updated")) + u8::from(push.contains("list_changed"))
}

const BOTH_PUSHES: u8 = 3;

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    }
}

/// What a transport shares with its session.
struct Wire {
    hints: Arc<Hints>,
    noise: Arc<AtomicU64>,
    /// Closes the pipe, when there is one.
    closed: CancellationToken,
    child: Option<JoinHandle<()>>,
    http: Option<HttpClient>,
}

impl Wire {
    fn new() -> Self {
        Self {
            hints: Arc::default(),
            noise: Arc::default(),
            closed: CancellationToken::new(),
            child: None,
            http: None,
        }
    }
}

/// One attempt, over a fresh transport, within the time limit for connecting.
async fn attempt(
    server: &ServerConfig,
    options: &ConnectOptions,
    era: Era,
) -> Result<Session, SourceError> {
    let limits = &options.limits;
    let message = MessageLimits { bytes: limits.max_message_bytes, depth: limits.max_json_depth };
    let mut wire = Wire::new();
    match &server.transport {
        config::Transport::Files { root } => {
            let served =
                FilesServer::new(root.clone(), server.name.as_str(), FilesOptions::from(limits));
            let served = served.map_err(|error| SourceError::CannotStart {
                command: format!("serving {}", root.display()),
                reason: error.to_string(),
            })?;
            let (ours, theirs) = tokio::io::duplex(DUPLEX_BYTES);
            let (hints, closed) = (wire.hints.clone(), wire.closed.clone());
            wire.child = Some(tokio::spawn(async move {
                let reason = match served.serve(theirs).await {
                    Ok(()) => "the folder is no longer served".to_owned(),
                    Err(error) => error.to_string(),
                };
                hints.closed(reason);
                closed.cancel();
            }));
            let (reader, writer) = tokio::io::split(ours);
            let pipe = pipe(reader, writer, message, &wire);
            shake_hands(pipe, era, wire, limits).await
        }
        config::Transport::Stdio { command, args, env, inherit_env, cwd } => {
            let set = env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
            let started = ChildCommand {
                command,
                args: args.iter().map(config::Secret::expose).collect(),
                env: child::environment(std::env::vars_os(), inherit_env, set),
                cwd,
            };
            let running = child::start(
                &started,
                options.grace,
                wire.hints.clone(),
                wire.closed.clone(),
                &options.children,
            );
            let running = running.map_err(|error| SourceError::CannotStart {
                command: command.clone(),
                reason: start_error(&error, cwd),
            })?;
            wire.child = Some(running.ended);
            let pipe = pipe(running.stdout, running.stdin, message, &wire);
            shake_hands(pipe, era, wire, limits).await
        }
        config::Transport::Http { url, headers, unix_socket } => {
            let headers = header_map(headers)?;
            let client = HttpClient::new(
                url,
                unix_socket.as_deref(),
                limits.connect_timeout,
                message,
                wire.hints.clone(),
                wire.noise.clone(),
            );
            let client =
                client.map_err(|fault| SourceError::Disconnected { reason: fault.to_string() })?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .max_concurrent_requests(limits.reads_in_flight + 8)
                .custom_headers(headers.clone())
                .reinit_on_expired_session(false);
            config.retry_config = Arc::new(Reopening);
            wire.http = Some(client.clone());
            let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
            let session = shake_hands(transport, era, wire, limits).await;
            match session {
                Err(
                    SourceError::Refused { code: 400..=499, .. } | SourceError::BadAnswer { .. },
                ) if tokio::time::timeout(
                    limits.connect_timeout,
                    client.is_legacy_sse(url, &headers),
                )
                .await
                    == Ok(true) =>
                {
                    Err(SourceError::BadAnswer {
                        what: "connecting".into(),
                        reason: LEGACY_SSE.into(),
                    })
                }
                session => session,
            }
        }
    }
}

/// What a server of the transport before Streamable HTTP is told about.
const LEGACY_SSE: &str = "this is a server of the old HTTP+SSE transport, which isn't supported; \
    put `mcp-remote` or `supergateway` in front of it";

/// The pipe between the daemon and a folder of its own.
const DUPLEX_BYTES: usize = 1 << 20;

fn pipe(
    reader: impl tokio::io::AsyncRead + Send + Unpin + 'static,
    writer: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
    limits: MessageLimits,
    wire: &Wire,
) -> Pipe {
    Pipe::new(reader, writer, limits, wire.hints.clone(), wire.noise.clone(), wire.closed.clone())
}

async fn shake_hands<T: Transport<RoleClient> + 'static>(
    transport: T,
    era: Era,
    wire: Wire,
    limits: &Limits,
) -> Result<Session, SourceError> {
    let me = Implementation::new("resdex", env!("CARGO_PKG_VERSION"));
    let me = ClientConfig::new(ClientCapabilities::default(), me)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let handshake = serve_client_with_lifecycle(me, transport, lifecycle(era));
    let outcome = match tokio::time::timeout(limits.connect_timeout, handshake).await {
        Ok(Ok(running)) => session(running, wire, limits).await,
        Ok(Err(error)) => Err((handshake_error(error), wire)),
        Err(_) => {
            let seconds = limits.connect_timeout.as_secs();
            Err((SourceError::TimedOut { what: "connecting".into(), seconds }, wire))
        }
    };
    let (error, wire) = match outcome {
        Ok(session) => return Ok(session),
        Err(failed) => failed,
    };
    // A child that ended by itself tells why, given the moment to; one that didn't is ended.
    if let Some(child) = wire.child {
        let gone = matches!(error, SourceError::Disconnected { .. });
        let mut child = child;
        if !gone || tokio::time::timeout(ENDING, &mut child).await.is_err() {
            wire.closed.cancel();
            let _ = child.await;
        }
    }
    match (error, wire.hints.ending()) {
        (SourceError::Disconnected { .. }, Some(reason)) => {
            Err(SourceError::Disconnected { reason })
        }
        (error, _) => Err(error),
    }
}

/// How long a child that has closed its stdout has to end.
const ENDING: std::time::Duration = std::time::Duration::from_secs(1);

async fn session(
    running: RunningService<RoleClient, ClientConfig>,
    wire: Wire,
    limits: &Limits,
) -> Result<Session, (SourceError, Wire)> {
    let peer = running.peer().clone();
    let Some(info) = peer.peer_info() else {
        let reason = "the server shook hands without saying what it is".into();
        return Err((SourceError::BadAnswer { what: "connecting".into(), reason }, wire));
    };
    peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
    let modern = !info.protocol_version.has_initialize();
    Ok(Session(Arc::new(Inner {
        peer,
        era: if modern { Era::Modern } else { Era::Legacy },
        protocol: info.protocol_version.as_str().to_owned(),
        capabilities: info.capabilities.clone(),
        limits: limits.clone(),
        hints: wire.hints,
        noise: wire.noise,
        http: wire.http,
        followed: Followed::default().into(),
        running: Some(running).into(),
        child: wire.child.into(),
    })))
}

fn handshake_error(error: ClientInitializeError) -> SourceError {
    let what = "connecting";
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_error(what, &error),
        ClientInitializeError::JsonRpcError(error) => SourceError::Refused {
            what: what.into(),
            code: error.code.0,
            message: clean(&error.message),
        },
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
            SourceError::Disconnected {
                reason: "the server closed the connection while connecting".into(),
            }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_error(*fallback),
        other => SourceError::BadAnswer { what: what.into(), reason: clean(&other.to_string()) },
    }
}

fn start_error(error: &std::io::Error, cwd: &Path) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound if !cwd.is_dir() => {
            format!("its folder {} doesn't exist", cwd.display())
        }
        std::io::ErrorKind::NotFound => {
            "no such program; is it installed, and in the daemon's PATH?".into()
        }
        _ => error.to_string(),
    }
}

fn header_map(
    headers: &std::collections::BTreeMap<String, config::Secret>,
) -> Result<HashMap<HeaderName, HeaderValue>, SourceError> {
    let bad = |name: &str| SourceError::Disconnected {
        reason: format!(
            "the header {name:?} of the config can't be sent: its name or value isn't valid in HTTP"
        ),
    };
    let pair = |(name, value): (&String, &config::Secret)| {
        let mut sent = HeaderValue::from_str(value.expose()).map_err(|_| bad(name))?;
        sent.set_sensitive(true);
        Ok((HeaderName::try_from(name).map_err(|_| bad(name))?, sent))
    };
    headers.iter().map(pair).collect()
}
