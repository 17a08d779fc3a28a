//! What a value must be like. Pure; each says what is wrong, the caller says where.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use chrono::{TimeZone, Utc};

use super::expand::Missing;
use super::template::Template;

/// A schedule: cron with six fields, seconds first, as the scheduler reads it.
pub(super) fn schedule(text: &str) -> Result<(), String> {
    let cron = croner::parser::CronParser::builder()
        .seconds(croner::parser::Seconds::Required)
        .build()
        .parse(text)
        .map_err(|why| {
            let fields = text.split_whitespace().count();
            if fields == 5 {
                format!(
                    "{text:?} has five fields; put the seconds first, as in {:?}",
                    format!("0 {text}")
                )
            } else {
                format!("{text:?} isn't a cron expression with seconds first: {why}")
            }
        })?;
    // Any fixed day will do: the question is whether the expression ever comes true.
    let start = Utc.timestamp_opt(1_700_000_000, 0).single().unwrap_or_default();
    cron.find_next_occurrence(&start, false)
        .map(|_| ())
        .map_err(|_| format!("{text:?} never comes"))
}

/// An IANA time zone.
pub(super) fn timezone(name: &str) -> Result<(), String> {
    if name.parse::<chrono_tz::Tz>().is_ok() {
        return Ok(());
    }
    let near = super::read::nearest(name, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()));
    Err(match near {
        Some(near) => format!("there is no time zone {name:?}; did you mean {near:?}?"),
        None => {
            format!("there is no time zone {name:?}; take an IANA name such as \"Asia/Shanghai\"")
        }
    })
}

/// A glob over a whole URI.
pub(super) fn glob(pattern: &str) -> Result<(), String> {
    super::glob::glob(pattern).map(|_| ())
}

/// A URI template (RFC 6570), and the variables that values are given for.
pub(super) fn template<'v>(
    uri: &str,
    mut values: impl Iterator<Item = &'v String>,
) -> Result<(), String> {
    let template = Template::parse(uri)
        .map_err(|why| format!("{uri:?} isn't a URI template (RFC 6570): {why}"))?;
    let known: Vec<&str> = template.variables().collect();
    if known.is_empty() {
        return Err(format!("{uri:?} has no variable, so it's no template"));
    }
    match values.find(|name| !known.contains(&name.as_str())) {
        Some(other) => {
            Err(format!("{uri:?} has no variable {other:?}, but values are given for it"))
        }
        None => Ok(()),
    }
}

/// `type/subtype`, with `*` for either, or a part of the subtype such as `application/*+json`.
pub(super) fn mime_pattern(pattern: &str) -> Result<(), String> {
    let token = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-*".contains(c))
    };
    match pattern.split_once('/') {
        Some((kind, subtype)) if token(kind) && token(subtype) => Ok(()),
        _ => Err(format!("{pattern:?} isn't a MIME type such as \"text/markdown\" or \"text/*\"")),
    }
}

/// A SHA-256 in hexadecimal digits.
pub(super) fn token_hash(text: &str) -> Result<(), String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(())
    } else {
        Err("must be the 64 hexadecimal digits that `resdex token new SCOPE` prints".into())
    }
}

/// The name of a scope: it stands in URL paths and flags.
pub(super) fn scope_name(name: &str) -> Result<(), String> {
    let chars = name.chars().count();
    if (1..=64).contains(&chars) && !name.chars().any(|c| c.is_control() || c == '/') {
        Ok(())
    } else {
        Err("a scope's name has 1 to 64 characters, no control characters and no slash".into())
    }
}

/// Schemes that mean something else to whoever gets a URI: another file, the network, a script, or
/// with `resdex` a resource whose URI two servers share.
const TAKEN_SCHEMES: [&str; 11] =
    ["about", "blob", "data", "file", "ftp", "http", "https", "javascript", "resdex", "ws", "wss"];

/// The URI scheme of a folder's server: its name in lower case, `_` as `-` (RFC 3986, 3.1).
///
/// # Errors
/// Says why the name can't be a scheme.
pub fn scheme_of(name: &str) -> Result<String, String> {
    let scheme = name.to_ascii_lowercase().replace('_', "-");
    let letter_first = scheme.starts_with(|c: char| c.is_ascii_lowercase());
    let valid = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !letter_first || !valid {
        return Err(format!(
            "the name of a `files` server is the scheme of its URIs, and {name:?} can't be one: a \
             letter first, then letters, digits, `-`, `_`, `.`"
        ));
    }
    if TAKEN_SCHEMES.contains(&scheme.as_str()) {
        return Err(format!(
            "the name of a `files` server is the scheme of its URIs, and {scheme}: means something \
             else"
        ));
    }
    Ok(scheme)
}

/// `mode` of the socket.
pub(super) fn socket_mode(text: &str) -> Result<u32, String> {
    match text.trim_start_matches("0o").trim_start_matches('0') {
        "600" => Ok(0o600),
        "660" => Ok(0o660),
        _ => Err(format!("{text:?} must be \"0600\" (the owner only) or \"0660\" (a group too)")),
    }
}

/// An address to listen on, `HOST:PORT`. Says whether only this machine reaches it.
pub(super) fn listen(text: &str) -> Result<bool, String> {
    let form = || format!("{text:?} isn't an address to listen on, such as \"127.0.0.1:7878\"");
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address.ip().is_loopback());
    }
    match text.rsplit_once(':') {
        Some(("localhost", port)) if port.parse::<u16>().is_ok() => Ok(true),
        _ => Err(form()),
    }
}

/// A host as a `Host` header has it, with or without a port.
pub(super) fn host(text: &str) -> Result<(), String> {
    match text.parse::<http::uri::Authority>() {
        Ok(authority) if !authority.as_str().contains('@') => Ok(()),
        _ => Err(format!(
            "{text:?} isn't a host such as \"search.example\" or \"search.example:7878\""
        )),
    }
}

/// An origin as browsers send it: scheme and host, without a path.
pub(super) fn origin(text: &str) -> Result<(), String> {
    match url::Url::parse(text) {
        Ok(url) if url.origin().ascii_serialization() == text => Ok(()),
        _ => Err(format!("{text:?} isn't an origin such as \"https://chat.example\" (no path)")),
    }
}

/// The URL of a server: what to request, and the Unix socket to request it through.
///
/// `unix:///sock#/path` is how VS Code writes a URL behind a socket.
pub(super) fn server_url(text: &str) -> Result<(String, Option<PathBuf>), Missing> {
    let missing = |message: &str| Missing {
        message: message.to_owned(),
        hint: "take http://…, https://… or unix:///path/to/socket#/path".into(),
    };
    if let Some(rest) = text.strip_prefix("unix://") {
        let (socket, path) = rest.split_once('#').unwrap_or((rest, "/"));
        if !socket.starts_with('/') {
            return Err(missing("the socket of a unix:// URL needs an absolute path"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        return Ok((format!("http://localhost{slash}{path}"), Some(socket.into())));
    }
    match url::Url::parse(text) {
        Ok(url) if is_metadata_address(&url) => Err(Missing {
            message: "its URL is link-local or a cloud's metadata service, which is never asked"
                .into(),
            hint: "give the server an ordinary address".into(),
        }),
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            Ok((text.trim().to_owned(), None))
        }
        Ok(url) => {
            Err(missing(&format!("its URL has the scheme {:?}, which isn't HTTP", url.scheme())))
        }
        Err(why) => Err(missing(&format!("its URL isn't one: {why}"))),
    }
}

/// Whether a URL names an address that only the machine's own network or its cloud answers.
fn is_metadata_address(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "metadata.google.internal",
        Some(url::Host::Ipv4(address)) => {
            address.is_link_local() || address.octets() == [100, 100, 100, 200]
        }
        Some(url::Host::Ipv6(address)) => {
            let mapped = address.to_ipv4_mapped().is_some_and(|address| address.is_link_local());
            mapped
                || address.is_unicast_link_local()
                || address.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        }
        None => false,
    }
}

/// Whether a URL leads to this machine.
pub(super) fn is_loopback(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(url::Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}

/// A header, by the rules of HTTP.
pub(super) fn header(name: &str, value: &str) -> Result<(), String> {
    http::HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("{name:?} isn't the name of a header"))?;
    http::HeaderValue::from_str(value)
        .map_err(|_| format!("the value of the header {name} has characters that can't be sent"))?;
    Ok(())
}

/// The name of an environment variable, as the system allows it.
pub(super) fn variable(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        Err(format!("{name:?} isn't the name of an environment variable"))
    } else {
        Ok(())
    }
}
