//! Writes resdex's own TOML, in the form in which the design shows it: one table a server, short
//! values in one line.

use std::path::Path;
use std::time::Duration;

use toml::Value;

use super::{Follow, ProtocolChoice, TemplateConfig};

/// A TOML document that grows.
#[derive(Default)]
pub(super) struct Toml(String);

impl Toml {
    pub(super) fn finish(self) -> String {
        self.0
    }

    /// A comment; each of its lines is one.
    pub(super) fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.0.push_str("# ");
            self.0.extend(line.chars().filter(|c| !c.is_control()));
            self.0.push('\n');
        }
    }

    pub(super) fn blank(&mut self) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
    }

    pub(super) fn section(&mut self, path: &[&str]) {
        self.header("[", path, "]");
    }

    fn header(&mut self, open: &str, path: &[&str], close: &str) {
        let path: Vec<String> = path.iter().map(|name| key(name)).collect();
        self.0.push_str(&format!("{open}{}{close}\n", path.join(".")));
    }

    pub(super) fn value(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push_str(&format!("{} = {}\n", key(name), value.into()));
    }

    /// A list, left out when it is empty.
    pub(super) fn list<T: Clone + Into<Value>>(&mut self, name: &str, items: &[T]) {
        if !items.is_empty() {
            self.value(name, items.iter().cloned().map(Into::into).collect::<Vec<Value>>());
        }
    }

    /// A table in one line, left out when it is empty.
    pub(super) fn pairs(&mut self, name: &str, pairs: impl Iterator<Item = (String, String)>) {
        let table: toml::Table = pairs.map(|(key, value)| (key, value.into())).collect();
        if !table.is_empty() {
            self.value(name, table);
        }
    }

    pub(super) fn path(&mut self, name: &str, path: &Path) {
        self.value(name, path.display().to_string());
    }

    pub(super) fn duration(&mut self, name: &str, duration: Duration) {
        self.value(name, written_duration(duration));
    }

    pub(super) fn bytes(&mut self, name: &str, bytes: u64) {
        self.value(name, written_bytes(bytes));
    }

    /// What is followed of a server, where it differs from the default; `path` is the server's table.
    pub(super) fn follow(&mut self, path: &[&str], follow: &Follow) {
        let Follow {
            schedule,
            include,
            exclude,
            mime_types,
            protocol,
            templates,
            subscribe,
            max_subscriptions,
            trust,
        } = follow;
        if let Some(schedule) = schedule {
            self.value("schedule", schedule.as_str());
        }
        self.list("include", include);
        self.list("exclude", exclude);
        self.list("mime_types", &mime_types.allow);
        self.list("exclude_mime_types", &mime_types.deny);
        match protocol {
            ProtocolChoice::Auto => {}
            ProtocolChoice::Legacy => self.value("protocol", "legacy"),
            ProtocolChoice::Modern => self.value("protocol", "modern"),
        }
        self.list("subscribe", subscribe);
        if *max_subscriptions != Follow::default().max_subscriptions {
            self.value("max_subscriptions", *max_subscriptions as i64);
        }
        let trusted = [(trust.last_modified, "last_modified"), (trust.ttl, "ttl")];
        let trusted = trusted.into_iter().filter(|(trusted, _)| *trusted);
        self.list("trust", &trusted.map(|(_, word)| word.to_owned()).collect::<Vec<_>>());
        for TemplateConfig { uri, values } in templates {
            let mut path = path.to_vec();
            path.push("templates");
            self.header("[[", &path, "]]");
            self.value("uri", uri.as_str());
            let table: toml::Table =
                values.iter().map(|(name, values)| (name.clone(), values.clone().into())).collect();
            if !table.is_empty() {
                self.value("values", table);
            }
        }
    }
}

/// A key, in quotes where TOML wants them.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        return name.to_owned();
    }
    // JSON's escapes are TOML's as well; only DEL needs none in JSON.
    serde_json::Value::from(name).to_string().replace('\u{7f}', "\\u007f")
}

/// A duration as the reader of the config takes it.
fn written_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let unit = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")]
        .into_iter()
        .find(|(unit, _)| millis != 0 && millis.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None => format!("{millis}ms"),
    }
}

/// A size as the reader of the config takes it.
fn written_bytes(bytes: u64) -> String {
    let unit = [(30, "GiB"), (20, "MiB"), (10, "KiB")]
        .into_iter()
        .find(|(shift, _)| bytes != 0 && bytes.is_multiple_of(1 << shift));
    match unit {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_values() {
        for (millis, wanted) in [
            (0, "0ms"),
            (250, "250ms"),
            (1_000, "1s"),
            (90_000, "90s"),
            (60_000, "1m"),
            (7_200_000, "2h"),
        ] {
            assert_eq!(written_duration(Duration::from_millis(millis)), wanted);
        }
        for (bytes, wanted) in
            [(0, "0B"), (1_023, "1023B"), (1_024, "1KiB"), (16 << 20, "16MiB"), (3 << 30, "3GiB")]
        {
            assert_eq!(written_bytes(bytes), wanted);
        }
    }

    #[test]
    fn keys_and_values_are_read_again() {
        for name in
            ["a", "a-b_9", "a b", "a.b", "团队", "\"", "\\", "it's", "", "a\tb", "\u{7f}", "]"]
        {
            let mut toml = Toml::default();
            toml.section(&["servers", name]);
            toml.value(name, name);
            toml.pairs("env", [(name.to_owned(), "x\ny\"'${A}".to_owned())].into_iter());
            toml.list("args", &[name, "\u{1b}[0m"]);
            let text = toml.finish();
            let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            let table = &read["servers"][name];
            assert_eq!(table["env"][name].as_str(), Some("x\ny\"'${A}"), "{text}");
            assert_eq!(table["args"][1].as_str(), Some("\u{1b}[0m"), "{text}");
        }
    }
}
