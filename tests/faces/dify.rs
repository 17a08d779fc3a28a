//! Requests as Dify and LangBot's Dify connector send them, field for field what their code makes.

use std::fs;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Stopped};
use crate::http::{free_port, post};

const HASH: &str = "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0"; // of s3cret

/// A daemon with two Chinese documents, of which the scope `support-bot` has one.
fn served() -> (Daemon, u16) {
    let port = free_port();
    let daemon = Stopped::new(&format!(
        "[http]\nlisten = \"127.0.0.1:{port}\"\n[servers.notes]\nfiles = \"notes\"\n\
         [scopes.support-bot]\nexclude = [\"notes:///secret.md\"]\ntoken_sha256 = \"{HASH}\"\n"
    ));
    let notes = daemon.folder().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("退款.md"), "# 退款说明\n\n退款需要十四天。\n").unwrap();
    fs::write(notes.join("secret.md"), "# 秘密\n\n退款的秘密。\n").unwrap();
    let daemon = daemon.start();
    daemon.found("秘密", "notes:///secret.md");
    daemon.found("十四天", "notes:///%E9%80%80%E6%AC%BE.md");
    (daemon, port)
}

const HEADERS: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Authorization", "Bearer s3cret")];

fn ask(port: u16, route: &str, body: &Value) -> Value {
    let (status, answer) = post(port, route, &HEADERS, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn dify_adds_asks_and_filters() {
    let (_daemon, port) = served();
    // When a person adds the API, Dify posts nothing at all; these three statuses mean it is wrong.
    let (status, _) = post(port, "/retrieval", &[("Authorization", "Bearer s3cret")], "");
    assert!(![403, 404, 502].contains(&status), "{status}");

    let asked = |query: &str, condition: Value| {
        json!({
            "retrieval_setting": {"top_k": 4, "score_threshold": 0.0},
            "query": query,
            "knowledge_id": "support-bot",
            "metadata_condition": condition,
        })
    };
    let found = ask(port, "/retrieval", &asked("退款要几天", Value::Null));
    let records = found["records"].as_array().unwrap();
    let [record] = &records[..] else { panic!("the other one is outside the scope: {found}") };
    let content = record["content"].as_str().unwrap();
    let first = content.lines().next().unwrap();
    assert!(first.contains("退款说明") && first.contains("notes:///"), "{content}");
    assert!(content.contains("十四天"), "{content}");
    assert!((0.0..=1.0).contains(&record["score"].as_f64().unwrap()));
    assert_eq!(record["title"], "退款说明");
    assert_eq!(record["metadata"]["server"], "notes");

    // Its documentation has a list of names, its code one name.
    for (name, value, count) in [
        (json!(["server"]), json!("notes"), 1),
        (json!("server"), json!("notes"), 1),
        (json!(["server"]), json!("wiki"), 0),
        (json!(["uri"]), json!("notes:///"), 1),
    ] {
        let operator = if name == json!(["uri"]) { "start with" } else { "is" };
        let one = json!({"name": name, "comparison_operator": operator, "value": value});
        let condition = json!({"logical_operator": "and", "conditions": [one]});
        let found = ask(port, "/retrieval", &asked("退款", condition));
        assert_eq!(found["records"].as_array().unwrap().len(), count, "{name} {value}: {found}");
    }
    assert_eq!(ask(port, "/retrieval", &asked("zebra", Value::Null)), json!({"records": []}));
}

#[test]
fn langbots_connector_retrieves() {
    let (_daemon, port) = served();
    let found = ask(
        port,
        "/datasets/support-bot/retrieve",
        &json!({
            "query": "退款要几天",
            "retrieval_model": {
                "search_method": "semantic_search",
                "reranking_enable": false,
                "reranking_mode": null,
                "reranking_model": {"reranking_provider_name": "", "reranking_model_name": ""},
                "weights": null,
                "top_k": 5,
                "score_threshold_enabled": false,
                "score_threshold": null,
            },
        }),
    );
    assert_eq!(found["query"]["content"], "退款要几天");
    let records = found["records"].as_array().unwrap();
    let [record] = &records[..] else { panic!("the other one is outside the scope: {found}") };
    let segment = &record["segment"];
    for field in ["id", "content", "document_id"] {
        assert!(segment[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {record}");
    }
    assert!(segment["content"].as_str().unwrap().contains("十四天"));
    assert_eq!(segment["document"]["name"], "退款说明");
    assert_eq!(segment["document"]["id"], segment["document_id"]);

    let wrong = [("Authorization", "Bearer wrong")];
    let (status, error) = post(port, "/datasets/support-bot/retrieve", &wrong, "{}");
    assert_eq!((status, &error["error_code"]), (401, &json!(1002)));
}
