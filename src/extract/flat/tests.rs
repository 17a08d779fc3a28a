//! Nothing is lost, in no format, whatever stands in it.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{json, toml, yaml};

const WORDS: [&str; 14] = [
    "refund",
    "退款",
    "返金",
    "환불",
    "คืนเงิน",
    "возврат",
    "استرداد",
    "hoàn tiền",
    "it's",
    "a: b",
    "# no comment",
    "{ x ]",
    "- y",
    "C:/new, or: [z",
];

fn any_string() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..5);
    prop_oneof![
        8 => words.prop_map(|words| words.join(" ")),
        1 => "[a-z]{90,200}",
    ]
}

/// A key, a word of its own, so that its loss is seen.
fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z]{1,8}[0-9]{4}",
        2 => ("[a-z ]{1,8}", any_string()).prop_map(|(a, b)| format!("k{a}{b}")),
        1 => "[a-z]{150,300}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Bool(true)),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        any_string().prop_map(Value::from),
    ];
    scalar.prop_recursive(6, 80, 8, |inner| {
        let members = prop::collection::vec((any_key(), inner.clone()), 0..8);
        prop_oneof![
            prop::collection::vec(inner, 0..8).prop_map(Value::Array),
            members.prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((any_key(), any_value()), 1..8)
        .prop_map(|members| Value::Object(Map::from_iter(members)))
}

/// Each key and scalar of a value.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push("null".into()),
        Value::Bool(_) | Value::Number(_) => found.push(value.to_string()),
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => {
            for (key, member) in members {
                found.push(key.clone());
                texts(member, found);
            }
        }
    }
}

/// Writes block YAML with strings in single or double quotes, the latter escaped and folded.
fn write_yaml(value: &Value, indent: usize, escapes: bool, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("\n{pad}-"));
                write_yaml(item, indent + 2, escapes, out);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                out.push_str(&format!("\n{pad}{}:", yaml_string(key, false)));
                write_yaml(member, indent + 2, escapes, out);
            }
        }
        Value::String(text) if escapes => {
            out.push_str(&format!(
                " {}",
                yaml_string(text, true).replace("||", &format!("\\\n{pad}"))
            ));
        }
        Value::String(text) => out.push_str(&format!(" {}", yaml_string(text, false))),
        other => out.push_str(&format!(" {other}")),
    }
}

fn yaml_string(text: &str, escapes: bool) -> String {
    if !escapes {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut quoted = String::from("\"");
    for (n, c) in text.chars().enumerate() {
        if n % 30 == 29 && c != ' ' {
            quoted.push_str("||");
        }
        match c {
            c if c.is_ascii() => quoted.push(c),
            c => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    quoted + "\""
}

/// A text without white space and quotes, which formats put where they want.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\'' | '"')).collect()
}

fn assert_nothing_is_lost(value: &Value, source: &str, flat: &str) {
    let mut all = vec![];
    texts(value, &mut all);
    let flat_bare = bare(flat);
    for text in all {
        assert!(flat_bare.contains(&bare(&text)), "{text:?} is lost\n{source}\n→\n{flat}");
    }
}

/// The runs of letters and digits in a text.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty())
}

fn any_lines() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ": ",
        ",",
        "\"",
        "'",
        "\n",
        "\n",
        "\n  ",
        "\n    ",
        " ",
        "- ",
        "---",
        "# c",
        "//c\n",
        "/*",
        "*/",
        "|",
        ">-",
        "&a ",
        "!t ",
        " = ",
        "\"\"\"",
        "[[",
        "]]",
        "key",
        "退款",
        "ключ",
        "true",
        "12",
        "\u{3000}",
        "\t",
        "{\"k\": \"v\"}",
        "a:\n",
        "\u{feff}",
        "\r\n",
        "? ",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_scalar_of_json_appears(value in any_value()) {
        let compact = serde_json::to_string(&value).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for source in [&compact, &pretty] {
            let flat = json::flatten(source).unwrap();
            assert_nothing_is_lost(&value, source, &flat.text);
            if flat.keeps_lines {
                let breaks = |text: &str| text.matches('\n').count();
                prop_assert_eq!(breaks(&flat.text), breaks(source));
            }
        }
        assert_nothing_is_lost(&value, &compact, &json::flatten_lines(&compact));
    }

    #[test]
    fn every_scalar_of_yaml_appears(value in any_object(), escapes: bool) {
        let mut source = String::new();
        write_yaml(&value, 0, escapes, &mut source);
        let flat = yaml::flatten(&source);
        assert_nothing_is_lost(&value, &source, &flat);
        prop_assert_eq!(flat.matches('\n').count(), source.matches('\n').count());
    }

    #[test]
    fn every_scalar_of_toml_appears(value in any_object()) {
        let source = ::toml::to_string_pretty(&value).unwrap();
        let flat = toml::flatten(&source);
        assert_nothing_is_lost(&value, &source, &flat);
        prop_assert_eq!(flat.matches('\n').count(), source.matches('\n').count());
    }

    /// Also where a limit cut the text.
    #[test]
    fn every_word_of_cut_json_appears(value in any_object(), part in 0.0..1.0_f64) {
        for source in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let cut = &source[..source.floor_char_boundary((source.len() as f64 * part) as usize)];
            let flat = json::flatten(cut).map(|flat| flat.text).unwrap_or_else(|| cut.to_owned());
            for run in runs(cut) {
                prop_assert!(flat.contains(run), "{run} is lost\n{cut}\n→\n{flat}");
            }
        }
    }

    /// Whatever is taken for one of them.
    #[test]
    fn every_word_of_anything_appears(source in any_lines()) {
        let parsed = json::flatten(&source).map(|flat| flat.text);
        let texts = [parsed.unwrap_or_else(|| source.clone()), json::flatten_lines(&source), yaml::flatten(&source), toml::flatten(&source)];
        for (n, flat) in texts.iter().enumerate() {
            for run in runs(&source) {
                prop_assert!(flat.contains(run), "{n}: {run} is lost\n{source}\n→\n{flat}");
            }
            if n > 0 {
                prop_assert_eq!(flat.matches('\n').count(), source.matches('\n').count(), "{} {}", n, flat);
            }
        }
    }

    #[test]
    fn no_text_breaks_it(source in "[\\\\\"'ux0-9a:\\-\n {}\\[\\]#|\u{3000}é=]{0,80}") {
        json::flatten(&source);
        for flat in [json::flatten_lines(&source), yaml::flatten(&source), toml::flatten(&source)] {
            prop_assert_eq!(flat.matches('\n').count(), source.matches('\n').count(), "{}", flat);
        }
    }
}
