//! Answers as people read them. Pure: text in, text out, safe for a terminal.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};

use super::text::{self, Look};
use crate::model::{ServerState, ServerStatus};
use crate::serve::api::{
    Hit, Passage, ReadContent, ReadResponse, ResourceItem, ResourcesResponse, SearchResponse,
    StatusResponse, SyncResponse, TemplatesResponse, TraceResponse, TraceVerb,
};

/// Rank and title, where it is, and the passage with what matched.
pub fn hits(answer: &SearchResponse, look: Look) -> String {
    answer.hits.iter().map(|found| hit(found, look)).collect::<Vec<_>>().join("\n")
}

fn hit(hit: &Hit, look: Look) -> String {
    let indent = " ".repeat(hit.rank.to_string().len() + 2);
    let mut out = format!("{}. {}", hit.rank, look.bold(&text::line(&hit.title)));
    if hit.stale {
        out += &format!(" {}", look.yellow("(stale)"));
    }
    out += &format!(
        "\n{indent}{} {}\n",
        look.dim(&text::line(&hit.server)),
        look.cyan(&text::line(&hit.uri))
    );
    out += &passage(&hit.passage, &indent, look);
    for further in hit.passages.iter().flatten() {
        out += &passage(further, &indent, look);
    }
    if let Some(explanation) = &hit.explanation {
        for line in text::json(explanation, true).lines() {
            out += &format!("{indent}{}\n", look.dim(line));
        }
    }
    out
}

fn passage(passage: &Passage, indent: &str, look: Look) -> String {
    let mut place: Vec<String> = vec![];
    if !passage.heading_path.is_empty() {
        place.push(passage.heading_path.join(" › "));
    }
    if let Some(page) = passage.page {
        place.push(format!("page {page}"));
    }
    if let Some(part) = passage.part {
        place.push(format!("part {part}"));
    }
    match (passage.start_line, passage.end_line) {
        (Some(start), Some(end)) if start != end => place.push(format!("lines {start}–{end}")),
        (Some(start), _) => place.push(format!("line {start}")),
        _ => {}
    }
    let mut out = String::new();
    if !place.is_empty() {
        out += &format!("{indent}{}\n", look.dim(&text::line(&place.join(" · "))));
    }
    out + &text::snippet(&passage.snippet, &passage.highlights, indent, look)
}

/// A resource's text, or its outline.
pub fn reading(answer: &ReadResponse, look: Look) -> String {
    if let (Some(outline), true) = (&answer.outline, answer.contents.is_empty()) {
        let rows: Vec<_> = outline
            .iter()
            .map(|item| {
                let indent = "  ".repeat(usize::from(item.level.saturating_sub(1)).min(8));
                vec![
                    format!("{indent}{}", text::line(&item.heading)),
                    look.dim(&format!("lines {}-{}", item.start_line, item.end_line)),
                    look.dim(&format!("{} tokens", thousands(item.tokens as u64))),
                ]
            })
            .collect();
        return text::table(&rows);
    }
    let several = answer.contents.len() > 1;
    let mut out = String::new();
    for content in &answer.contents {
        if several {
            out += &look.dim(&format!("── {} ──\n", text::line(&content.uri)));
        }
        out += &body(content, look);
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

fn body(content: &ReadContent, look: Look) -> String {
    match (&content.text, &content.blob) {
        (Some(text), _) => text::block(text),
        (None, Some(blob)) => {
            let bytes = BASE64_STANDARD.decode(blob).map_or(blob.len() * 3 / 4, |b| b.len());
            let mime_type = content.mime_type.as_deref().unwrap_or("binary");
            look.dim(&format!(
                "[{}, {}: --extracted shows its text, --json has it as base64]",
                text::line(mime_type),
                size(bytes as u64)
            ))
        }
        (None, None) => String::new(),
    }
}

pub fn resources(page: &ResourcesResponse, look: Look) -> String {
    let row = |item: &ResourceItem| {
        let mut about = text::line(&item.title).into_owned();
        if let Some(reason) = &item.reason {
            about += &format!("  {}", look.yellow(&format!("skipped: {}", text::line(reason))));
        }
        if item.stale {
            about += &format!("  {}", look.yellow("stale"));
        }
        vec![
            look.dim(&text::line(&item.server)),
            look.cyan(&text::line(&item.uri)),
            look.dim(&text::line(item.mime_type.as_deref().unwrap_or("-"))),
            item.size.map_or_else(|| "-".into(), size),
            about,
        ]
    };
    text::table(&page.resources.iter().map(row).collect::<Vec<_>>())
}

/// One line a search, context or read, and below it what came up.
pub fn trace(answer: &TraceResponse, look: Look) -> String {
    let mut out = String::new();
    for entry in &answer.entries {
        let verb = match entry.verb {
            TraceVerb::Search => "search",
            TraceVerb::Context => "context",
            TraceVerb::Read => "read",
        };
        let mut about = vec![
            entry.time.format("%Y-%m-%d %H:%M:%S").to_string(),
            look.bold(verb),
            text::line(&entry.client).into_owned(),
        ];
        about.extend(entry.scope.as_deref().map(|scope| format!("scope {}", text::line(scope))));
        about.extend(entry.query.as_deref().map(|query| format!("{:?}", text::line(query))));
        about.extend(entry.query_hash.as_deref().map(|hash| look.dim(&text::line(hash))));
        about.push(format!("{} tokens", thousands(entry.tokens as u64)));
        about.push(format!("{} ms", entry.took_ms));
        if entry.outcome != "ok" {
            about.push(look.yellow(&text::line(&entry.outcome)));
        }
        out += &format!("{}\n", about.join("  "));
        for resource in &entry.resources {
            out += &format!(
                "  {} {}\n",
                look.dim(&text::line(&resource.server)),
                look.cyan(&text::line(&resource.uri))
            );
        }
    }
    out
}

pub fn templates(answer: &TemplatesResponse, look: Look) -> String {
    let rows = answer.templates.iter().map(|template| {
        vec![
            look.dim(&text::line(&template.server)),
            look.cyan(&text::line(&template.uri_template)),
            format!("{} expanded", thousands(template.expanded)),
            text::line(&template.title).into_owned(),
        ]
    });
    text::table(&rows.collect::<Vec<_>>())
}

pub fn started(answer: &SyncResponse) -> String {
    match &answer.started[..] {
        [] => "no server can be synchronised; `resdex status` says why\n".into(),
        started => format!("started: {}\n", text::line(&started.join(", "))),
    }
}

pub fn status(answer: &StatusResponse, now: DateTime<Utc>, look: Look) -> String {
    let index = &answer.index;
    let commit = index.last_commit.map_or_else(
        || "nothing committed yet".into(),
        |at| format!("last commit {}", relative(at, now)),
    );
    let mut out = format!(
        "resdex {}, up {}, pid {}\n{} in {}, {}; {commit}\n",
        text::line(&answer.version),
        duration(answer.uptime_s),
        answer.pid,
        count(index.resources, "resource"),
        count(index.chunks, "passage"),
        size(index.bytes),
    );
    if let Some(reason) = &index.paused {
        out += &format!("{} {}\n", look.red("writing pauses:"), text::line(reason));
    }
    if let Some(progress) = &index.rebuilding {
        out += &format!("{} {}\n", look.yellow("the index is rebuilt:"), text::line(progress));
    }
    if let Some(error) = &answer.config.error {
        out += &format!(
            "{} the config before it is in force:\n{}\n",
            look.red("the changed config can't be used;"),
            indented(error)
        );
    }
    for warning in &answer.config.warnings {
        out += &format!("{} {}\n", look.yellow("config:"), text::line(warning));
    }
    out.push('\n');
    out + &servers(&answer.servers, now, look)
}

/// One row for each server, and below what is wrong and what to do about it.
pub fn servers(servers: &[ServerStatus], now: DateTime<Utc>, look: Look) -> String {
    if servers.is_empty() {
        return "no servers are configured\n".into();
    }
    let heads =
        ["SERVER", "STATE", "LISTED", "INDEXED", "SKIPPED", "STALE", "PUSH", "LAST SYNC", "NEXT"];
    let mut rows = vec![heads.map(|head| look.dim(head)).to_vec()];
    rows.extend(servers.iter().map(|server| {
        let time =
            |at: Option<DateTime<Utc>>| at.map_or_else(|| "-".into(), |at| relative(at, now));
        let push = server.push.join(", ");
        vec![
            text::line(&server.name).into_owned(),
            state(server.state, look),
            thousands(server.listed),
            thousands(server.indexed),
            thousands(server.skipped),
            thousands(server.stale),
            if push.is_empty() { "-".into() } else { text::line(&push).into_owned() },
            time(server.last_sync),
            time(server.next_sync),
        ]
    }));
    let mut out = text::table(&rows);
    for server in servers {
        let trouble = trouble(server, now);
        if trouble.is_empty() {
            continue;
        }
        out += &format!("\n{}\n", look.bold(&text::line(&server.name)));
        for (what, todo) in trouble {
            out += &indented(&what);
            out.push('\n');
            if let Some(todo) = todo {
                out += &format!("  {} {}\n", look.cyan("→"), text::line(&todo));
            }
        }
    }
    out
}

/// What is wrong with a server, each with what to do.
fn trouble(server: &ServerStatus, now: DateTime<Utc>) -> Vec<(String, Option<String>)> {
    let mut trouble = vec![];
    match &server.last_error {
        Some(error) => trouble.push((
            format!("{} ({})", error.message, relative(error.at, now)),
            error.hint.clone().or_else(|| advice(server.state).map(str::to_owned)),
        )),
        None => {
            if let Some(advice) = advice(server.state) {
                trouble.push((state_name(server.state).into(), Some(advice.into())));
            }
        }
    }
    if server.withheld_removals > 0 {
        trouble.push((
            format!(
                "{} gone from its listing at once; kept until a second listing agrees",
                count(server.withheld_removals, "resource")
            ),
            Some(format!("if that is right: resdex sync {} --confirm", server.name)),
        ));
    }
    trouble.extend(server.warnings.iter().map(|warning| (warning.clone(), None)));
    trouble
}

/// What helps with a state where no error says better.
fn advice(state: ServerState) -> Option<&'static str> {
    match state {
        ServerState::NeedsConfig => Some("`resdex config check` says what is missing"),
        ServerState::NeedsAuth => {
            Some("set the credentials that it wants in its `headers` or `env`")
        }
        ServerState::Failed => Some("`resdex sync` tries it again"),
        ServerState::NoListing => Some(
            "it lists no resources: configure `templates` for it, or leave it out if it has tools only",
        ),
        ServerState::Connecting
        | ServerState::Listing
        | ServerState::Syncing
        | ServerState::Live
        | ServerState::Backoff
        | ServerState::Disabled => None,
    }
}

pub fn state_name(state: ServerState) -> &'static str {
    match state {
        ServerState::Connecting => "connecting",
        ServerState::Listing => "listing",
        ServerState::Syncing => "syncing",
        ServerState::Live => "live",
        ServerState::NoListing => "no_listing",
        ServerState::Backoff => "backoff",
        ServerState::Failed => "failed",
        ServerState::NeedsConfig => "needs_config",
        ServerState::NeedsAuth => "needs_auth",
        ServerState::Disabled => "disabled",
    }
}

fn state(state: ServerState, look: Look) -> String {
    let name = state_name(state);
    match state {
        ServerState::Live => look.green(name),
        ServerState::Connecting | ServerState::Listing | ServerState::Syncing => look.cyan(name),
        ServerState::NoListing | ServerState::Backoff => look.yellow(name),
        ServerState::Failed | ServerState::NeedsConfig | ServerState::NeedsAuth => look.red(name),
        ServerState::Disabled => look.dim(name),
    }
}

/// One line for an event of which only `event` is known to be there.
pub fn event(event: &serde_json::Value, at: DateTime<Utc>, look: Look) -> String {
    let field = |name: &str| event.get(name).filter(|value| !value.is_null());
    let string = |name: &str| field(name).and_then(|value| value.as_str());
    let kind = string("event").unwrap_or("event");
    let mut parts = vec![look.dim(&at.format("%H:%M:%S").to_string())];
    parts.push(match kind {
        "error" => look.red(kind),
        "withheld" | "warning" | "reconnect" | "lagged" => look.yellow(kind),
        _ => look.bold(&text::line(kind)),
    });
    parts.extend(string("server").map(|server| text::line(server).into_owned()));
    for (name, value) in event.as_object().into_iter().flatten() {
        if matches!(name.as_str(), "event" | "server") || value.is_null() {
            continue;
        }
        let value = match value {
            serde_json::Value::String(text) => text::line(text).into_owned(),
            other => text::json(other, false),
        };
        parts.push(match name.as_str() {
            "uri" => look.cyan(&value),
            "message" => value,
            _ => format!("{}={value}", text::line(name)),
        });
    }
    parts.join(" ") + "\n"
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {}", text::line(line))).collect();
    lines.join("\n")
}

/// `1 resource`, `1,234 resources`.
pub fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" })
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - at).num_seconds();
    let length = duration(seconds.unsigned_abs());
    if seconds >= 0 { format!("{length} ago") } else { format!("in {length}") }
}

#[cfg(test)]
mod tests;
