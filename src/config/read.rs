//! Reads typed values from the tree of resdex's own TOML; what is wrong is collected with its place,
//! so that one run names everything.

use std::time::Duration;

use super::error::{ConfigError, MAX_ERRORS};
use super::tree::{Entry, Node, Source, Value};

/// Longest duration that means anything here: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

pub(super) struct Reader<'a> {
    pub(super) source: &'a Source,
    pub(super) errors: Vec<ConfigError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        Self { source, errors: Vec::new() }
    }

    pub(super) fn error(&mut self, at: usize, message: impl Into<String>, hint: Option<String>) {
        if self.errors.len() < MAX_ERRORS {
            let error = self.source.error(at, message, hint);
            self.errors.push(error);
        }
    }

    fn expected(&mut self, entry: &Entry, what: &str) {
        let kind = entry.value.kind();
        self.error(
            entry.value.at.start,
            format!("`{}` must be {what}, not {kind}", entry.key),
            None,
        );
    }

    /// Reports a value that `check` refuses.
    fn checked<T>(&mut self, entry: &Entry, result: Result<T, String>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(why) => {
                self.error(entry.value.at.start, format!("`{}`: {why}", entry.key), None);
                None
            }
        }
    }

    pub(super) fn table<'n>(&mut self, entry: &'n Entry) -> &'n [Entry] {
        match entry.value.as_table() {
            Some(entries) => entries,
            None => {
                self.expected(entry, "a table");
                &[]
            }
        }
    }

    /// Reports a key that isn't known, with the nearest that is, or the section it belongs in.
    pub(super) fn unknown(&mut self, entry: &Entry, section: &str, known: &[&str]) {
        let hint = nearest(&entry.key, known.iter().copied())
            .map(|key| format!("did you mean `{key}`?"))
            .or_else(|| {
                super::own::section_of(&entry.key).map(|section| format!("it belongs in {section}"))
            })
            .or_else(|| Some(format!("known here: {}", known.join(", "))));
        self.error(entry.key_at.start, format!("unknown key `{}` {section}", entry.key), hint);
    }

    pub(super) fn string(&mut self, entry: &Entry) -> Option<String> {
        let text = entry.value.as_str().map(str::to_owned);
        if text.is_none() {
            self.expected(entry, "a string");
        }
        text
    }

    /// A string that a check accepts.
    pub(super) fn string_that(
        &mut self,
        entry: &Entry,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Option<String> {
        let text = self.string(entry)?;
        let result = check(&text).map(|()| text);
        self.checked(entry, result)
    }

    pub(super) fn strings(&mut self, entry: &Entry) -> Option<Vec<String>> {
        self.strings_that(entry, |_| Ok(()))
    }

    /// A list of strings, each of which a check accepts.
    pub(super) fn strings_that(
        &mut self,
        entry: &Entry,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Option<Vec<String>> {
        let Some(items) = entry.value.as_list() else {
            self.expected(entry, "a list of strings");
            return None;
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item.as_str() {
                Some(text) => match check(text) {
                    Ok(()) => texts.push(text.to_owned()),
                    Err(why) => self.error(item.at.start, format!("`{}`: {why}", entry.key), None),
                },
                None => {
                    let kind = item.kind();
                    let message = format!("`{}` must hold strings only, not {kind}", entry.key);
                    self.error(item.at.start, message, None);
                }
            }
        }
        (texts.len() == items.len()).then_some(texts)
    }

    pub(super) fn boolean(&mut self, entry: &Entry) -> Option<bool> {
        let value = entry.value.as_bool();
        if value.is_none() {
            self.expected(entry, "true or false");
        }
        value
    }

    pub(super) fn duration(&mut self, entry: &Entry) -> Option<Duration> {
        let result = duration(&entry.value);
        self.checked(entry, result)
    }

    pub(super) fn bytes(&mut self, entry: &Entry) -> Option<u64> {
        let result = bytes(&entry.value);
        self.checked(entry, result)
    }

    /// A whole number of at least `least` and at most `most`.
    pub(super) fn count(&mut self, entry: &Entry, least: u64, most: u64) -> Option<u64> {
        let result = match entry.value.value {
            Value::Integer(number) => match u64::try_from(number) {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(format!("must be from {least} to {most}")),
            },
            _ => Err(format!("must be a whole number, not {}", entry.value.kind())),
        };
        self.checked(entry, result)
    }
}

/// The known name that was most likely meant, if one is near.
pub(super) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let allowed = (name.chars().count() / 3).max(2);
    let fold = |text: &str| text.to_lowercase().replace('-', "_");
    known
        .map(|key| (strsim::damerau_levenshtein(&fold(name), &fold(key)), key))
        .filter(|(distance, key)| *distance <= allowed && *distance < key.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, key)| key)
}

/// `"30s"`, `"5m"`, `"1h30m"`, `"250ms"`, `"1d"`, or a number of seconds.
fn duration(node: &Node) -> Result<Duration, String> {
    const FORM: &str = "a duration such as \"30s\", \"5m\", \"250ms\", or a number of seconds";
    let seconds = match &node.value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        Value::String(text) => seconds(text).ok_or_else(|| format!("must be {FORM}"))?,
        _ => return Err(format!("must be {FORM}, not {}", node.kind())),
    };
    if (0.0..=MAX_SECONDS).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be from zero to a year".into())
    }
}

fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        sum += number
            * match &after[..letters] {
                "ms" => 0.001,
                "s" | "sec" | "" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = after[letters..].trim_start();
    }
    Some(sum)
}

/// `"16MiB"`, `"4 kB"`, or a number of bytes.
fn bytes(node: &Node) -> Result<u64, String> {
    const FORM: &str = "a size such as \"16MiB\", \"500kB\", or a number of bytes";
    match &node.value {
        Value::Integer(number) => {
            u64::try_from(*number).map_err(|_| "a size can't be negative".to_owned())
        }
        Value::String(text) => size(text).ok_or_else(|| format!("must be {FORM}")),
        _ => Err(format!("must be {FORM}, not {}", node.kind())),
    }
}

fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit: u64 = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "kb" => 1_000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        "t" | "tib" => 1 << 40,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    let bytes = number * unit as f64;
    (bytes < 2f64.powi(53)).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(value: Value) -> Node {
        Node { value, at: 0..0 }
    }

    #[test]
    fn durations() {
        let text = |text: &str| duration(&node(Value::String(text.into()))).ok();
        for (given, millis) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1.5 s", 1_500),
            ("10", 10_000),
            ("1d", 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(text(given), Some(Duration::from_millis(millis)), "{given}");
        }
        for given in ["", "s", "5x", "-1s", "1e9d", "..", "999999h", "五秒"] {
            assert_eq!(text(given), None, "{given}");
        }
        assert_eq!(duration(&node(Value::Integer(5))), Ok(Duration::from_secs(5)));
        assert_eq!(duration(&node(Value::Float(0.5))), Ok(Duration::from_millis(500)));
        assert!(duration(&node(Value::Integer(-5))).is_err());
        assert!(duration(&node(Value::Float(f64::NAN))).is_err());
    }

    #[test]
    fn sizes() {
        let text = |text: &str| bytes(&node(Value::String(text.into()))).ok();
        for (given, wanted) in [
            ("16MiB", 16 << 20),
            ("500 kB", 500_000),
            ("1.5KiB", 1_536),
            ("7", 7),
            ("1g", 1 << 30),
            ("3B", 3),
        ] {
            assert_eq!(text(given), Some(wanted), "{given}");
        }
        for given in ["", "MiB", "-1", "1XB", "1e3", "99999999TiB", "十MiB"] {
            assert_eq!(text(given), None, "{given}");
        }
    }

    #[test]
    fn nearest_names() {
        let known = ["command", "args", "env", "url", "inherit_env", "max_subscriptions"];
        for (given, wanted) in [
            ("comand", Some("command")),
            ("inheritEnv", Some("inherit_env")),
            ("inherit-env", Some("inherit_env")),
            ("arg", Some("args")),
            ("uri", Some("url")),
            ("zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known.into_iter()), wanted, "{given}");
        }
    }
}
