//! What to do about a server's error, in words for whoever runs the daemon.

use crate::config::{ServerConfig, Transport};
use crate::source::SourceError;

/// The advice for an error, if there is any.
pub fn of(error: &SourceError, server: &ServerConfig) -> Option<String> {
    let name = &server.name;
    let is_http = matches!(server.transport, Transport::Http { .. });
    let is_folder = matches!(server.transport, Transport::Files { .. });
    Some(match error {
        SourceError::NeedsAuth { .. } => format!(
            "give it credentials, as in `headers = {{ Authorization = \"Bearer ${{TOKEN}}\" }}` under [servers.{name}], \
             or other ones if it has some; `resdex sync {name}` tries again at once"
        ),
        SourceError::CannotStart { .. } => {
            format!(
                "see `command` and `cwd` under {}; `resdex sync {name}` tries again at once",
                server.origin
            )
        }
        SourceError::TimedOut { what, .. } => {
            let limit = match what.as_str() {
                "connecting" => "connect_timeout",
                "resources/read" => "read_timeout",
                "resources/subscribe" | "subscriptions/listen" => "subscribe_timeout",
                _ => "list_timeout",
            };
            format!(
                "look whether the server is well; a slow one can be given more time with `limits.{limit}`"
            )
        }
        SourceError::Disconnected { .. } if is_http => {
            "look whether the server runs and its URL is right; it is tried again by itself".into()
        }
        SourceError::Disconnected { .. } => {
            format!(
                "run its command by hand to see more ({}); it is started again by itself",
                server.origin
            )
        }
        SourceError::Overloaded { .. } => "nothing: it is asked less, and later".into(),
        SourceError::Refused { .. } | SourceError::BadAnswer { .. } if is_folder => {
            format!(
                "look at the file; `exclude` under [servers.{name}] leaves out what isn't worth indexing"
            )
        }
        SourceError::Refused { .. } | SourceError::BadAnswer { .. } => {
            format!(
                "this is for whoever makes the server to mend; `protocol` under [servers.{name}] chooses the other era"
            )
        }
        SourceError::NotFound { .. } => return None,
    })
}
