//! Whatever a file holds, loading it doesn't panic and says where it is wrong.

use proptest::prelude::*;

use super::*;
use crate::config::dialect::Dialect;
use crate::config::report::{import, show};

/// JSON that looks like a client file more or less.
fn json() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("command".to_owned()),
        Just("url".to_owned()),
        Just("args".to_owned()),
        Just("env".to_owned()),
        Just("headers".to_owned()),
        Just("type".to_owned()),
        Just("mcpServers".to_owned()),
        Just("servers".to_owned()),
        Just("disabled".to_owned()),
        Just("http".to_owned()),
        Just("${env:A}".to_owned()),
        Just("$A ${B:-c} ${".to_owned()),
        Just("unix://x#y".to_owned()),
        ".{0,8}",
    ];
    let leaf = prop_oneof![
        word.clone().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    let value = leaf.prop_recursive(4, 24, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    });
    value.prop_map(|value: serde_json::Value| {
        let servers = serde_json::json!({ "mcpServers": { "a": value, "b": {"command": "x"} } });
        servers.to_string()
    })
}

/// Lines of TOML that fit together more or less.
fn toml() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "\\[(servers|scopes|limits|sync|http|socket|index)(\\.[a-z]{1,3})?\\]",
        "(command|url|files|schedule|listen|mode|token|read_timeout|max_pages) = (\"[ -~]{0,8}\"|-?[0-9]{1,20}|true|1e9|nan|inf)",
        "(args|include|servers|mime_types|allow_uids) = \\[(\"[a-z*{\\[/]{0,6}\"|[0-9]{1,3})?\\]",
        "(env|headers|values) = \\{ [a-z]{1,3} = \"[ -~]{0,8}\" \\}",
        ".{0,12}",
    ];
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

fn loads_or_says_where(name: &str, text: &str) -> Result<(), TestCaseError> {
    let folder = Folder::with(&[(name, text)]);
    match folder.load(&[name], &[("A", "value")]) {
        Ok(config) => {
            prop_assert!(config.servers.values().all(|server| server.origin.contains(name)));
            for written in [Ok(show(&config)), import(&folder.path(name))] {
                let Ok(written) = written else { continue };
                let again = [(folder.path("again.toml"), written.clone())];
                let again =
                    Config::from_texts(&again, &|name| (name == "A").then(|| "value".into()));
                prop_assert!(again.is_ok(), "{}\n{}", again.unwrap_err(), written);
                let names = |config: &Config| config.servers.keys().cloned().collect::<Vec<_>>();
                prop_assert_eq!(names(&again.unwrap()), names(&config));
            }
        }
        Err(errors) => {
            prop_assert!(!errors.0.is_empty());
            let lines = text.split('\n').count();
            prop_assert!(errors.0.iter().all(|error| error.line.is_some_and(|line| line <= lines)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_json(text in json()) {
        for name in [".mcp.json", "cline_mcp_settings.json", "settings.json", "x.json"] {
            loads_or_says_where(name, &text)?;
        }
    }

    #[test]
    fn any_toml(text in toml()) {
        loads_or_says_where("config.toml", &text)?;
    }

    #[test]
    fn any_text(text in "(?s).{0,80}", name in "[a-z]{1,4}\\.(toml|json|txt)") {
        loads_or_says_where(&name, &text)?;
    }

    #[test]
    fn a_text_is_taken_apart_without_loss(text in "[a-z$:{}-]{0,30}") {
        let parsed = expand::Text::parse(&text, Dialect::Own, Path::new("/"));
        prop_assert_eq!(parsed.written(), text);
    }
}
