//! What people type, in many scripts, and what must come first. Each table is one small index.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod asking;
mod ordering;

use chrono::Utc;
use resdex::chunk::chunk;
use resdex::config::Limits;
use resdex::extract::{Extraction, extract};
use resdex::index::tantivy::{TantivyStore, fingerprint};
use resdex::index::{Change, Entry, IndexStore as _};
use resdex::model::{Body, Content, Outcome, Resource, ServerName, Snapshot};
use resdex::search::{Answer, Hit, Request, search};

fn resource(uri: &str) -> Resource {
    Resource::new(uri)
}

fn entry(server: &str, resource: Resource, text: &str) -> Entry {
    let content = Content {
        left_out: None,
        uri: resource.uri.to_string(),
        mime_type: None,
        body: Body::Text(text.into()),
    };
    let snapshot = Snapshot::new(vec![content]);
    let Extraction::Document(document) = extract(&resource, &snapshot, &Limits::default()) else {
        panic!("{} has no text", resource.uri)
    };
    Entry {
        server: ServerName::new(server).unwrap(),
        mime_type: Some(document.mime_type.clone()),
        content_hash: snapshot.hash,
        fingerprint: fingerprint(),
        outcome: Outcome::Indexed,
        chunks: chunk(&document),
        document_title: document.title,
        indexed_at: Utc::now(),
        resource,
    }
}

fn store(entries: Vec<Entry>) -> TantivyStore {
    let store = TantivyStore::in_memory().unwrap();
    let changes = entries.into_iter().map(|entry| Change::Replace(Box::new(entry)));
    store.apply(changes.collect()).unwrap();
    store.commit().unwrap();
    store
}

/// An index of texts, each with its place in the table as URI.
fn texts(texts: &[&str]) -> TantivyStore {
    let entries = (0..)
        .zip(texts)
        .map(|(at, text): (usize, _)| entry("s", resource(&format!("t:///{at}")), text));
    store(entries.collect())
}

fn ask(store: &TantivyStore, query: &str) -> Answer {
    search(store, &Request::new(query)).unwrap()
}

fn uris(answer: &Answer) -> Vec<&str> {
    answer.hits.iter().map(|hit| &*hit.key.uri).collect()
}

fn highlighted(hit: &Hit) -> String {
    let passage = &hit.passages[0];
    let chars: Vec<char> = passage.snippet.chars().collect();
    let of = |(from, to): &(u32, u32)| -> String {
        chars[*from as usize..*to as usize].iter().collect()
    };
    passage.highlights.iter().map(of).collect::<Vec<_>>().join("|")
}

/// Each query's first hit is the text with that number, and something of it is highlighted.
fn check(store: &TantivyStore, cases: &[(&str, usize)]) {
    for (query, expected) in cases {
        let answer = ask(store, query);
        let expected = format!("t:///{expected}");
        let found = uris(&answer);
        assert_eq!(found.first(), Some(&&*expected), "{query}: {found:?}");
        assert!(!highlighted(&answer.hits[0]).is_empty(), "{query}");
    }
}

#[test]
fn names_in_code_find_one_another() {
    for written in ["getUserName", "get_user_name", "get-user-name", "GetUserName", "get user name"]
    {
        let text = format!("Call {written} first.");
        let store = texts(&[&text, "Set the password first.", "获取密码。"]);
        check(
            &store,
            &[
                ("getUserName", 0),
                ("get_user_name", 0),
                ("user name", 0),
                ("username", 0),
                ("userName 怎么用", 0),
                ("что делает getUserName", 0),
            ],
        );
    }
}

#[test]
fn signs_are_found_whole_and_by_part() {
    let store = texts(&[
        "ERR_40002: the card was refused.",
        "ERR_40003: the card has expired.",
        "Released 10.4.2 with fixes.",
        "Released 10.4.3 with features.",
        "Write to jane.doe@example.com for help.",
        "Write to john.roe@example.org for help.",
        "See https://docs.example.net/guide/install?lang=de for more.",
        "The file lies in /usr/local/lib/site-packages now.",
        "It is written in C++ and fast.",
        "It is written in C# and fast.",
        "It runs on the .NET runtime.",
        "It is written in C and fast.",
        "用 k8s 部署 API 的步骤。",
        "デプロイは api サーバーで行う。",
        "Ship it 🚀 on Friday.",
    ]);
    check(
        &store,
        &[
            ("ERR_40002", 0),
            ("what does err_40003 mean", 1),
            ("错误码 ERR_40002 是什么意思", 0),
            ("ошибка ERR_40003", 1),
            ("10.4.2", 2),
            ("v10.4.3", 3),
            ("jane.doe@example.com", 4),
            ("john.roe@example.org の連絡先", 5),
            ("https://docs.example.net/guide/install?lang=de", 6),
            ("/usr/local/lib/site-packages", 7),
            ("site-packages", 7),
            ("C++", 8),
            ("c#", 9),
            (".NET", 10),
            ("部署API到k8s", 12),
            ("APIサーバーのデプロイ", 13),
            ("🚀", 14),
        ],
    );
}

#[test]
fn spellings_of_every_script_meet() {
    let store = texts(&[
        "軟體開發流程與測試",
        "退款期限为三十天",
        "ﾃﾞｰﾀを保存する手順",
        "らーめんの作り方",
        "Đà Nẵng có bãi biển đẹp",
        "Ёлка стоит в программах праздника",
        "한국어 검색은 서울에서 만들었습니다",
        "ภาษาไทยไม่มีช่องว่างระหว่างคำ",
        "हिन्दी में किताबों की खोज",
        "كِتَابُ المُسافر إلى القاهرة",
        "Rückgabe der Ware binnen vierzehn Tagen",
        "ＡＰＩ　ｋｅｙ　ｒｏｔａｔｉｏｎ",
    ]);
    check(
        &store,
        &[
            ("软体开发", 0),
            ("退款期限為三十天", 1),
            ("退款期限有多久？", 1),
            ("データの保存", 2),
            ("ラーメンの作り方を教えて", 3),
            ("Da Nang", 4),
            ("đà nẵng", 4),
            ("елка", 5),
            ("программа", 5),
            ("한국어 검색", 6),
            ("서울은 어디", 6),
            ("ช่องว่าง", 7),
            ("किताब", 8),
            ("كتاب", 9),
            ("Ruckgabe", 10),
            ("RÜCKGABE", 10),
            ("api key", 11),
        ],
    );
}

#[test]
fn diacritics_are_optional_but_preferred() {
    let store = texts(&["Phở bò Hà Nội", "Pho mát Hà Lan", "Resume the job", "Send your résumé"]);
    check(&store, &[("phở", 0), ("pho", 1), ("résumé", 3), ("resume", 2)]);
    let found = ask(&store, "phở");
    assert_eq!(found.hits.len(), 2, "without them it is found too: {:?}", uris(&found));
}

#[test]
fn questions_of_any_length_are_answered() {
    let store = texts(&[
        "The refund deadline is thirty days after delivery.",
        "To be, or not to be: that is the question.",
        "运费由买家承担，退款期限为三十天。",
        "猫が好きです。",
        "Срок возврата товара тридцать дней.",
    ]);
    let long = format!("{} what is the refund deadline", "please could you tell me ".repeat(9));
    check(
        &store,
        &[
            ("Hello! Could you please tell me until when I can ask for a refund?", 0),
            (&long, 0),
            ("to be or not to be", 1),
            ("the", 0),
            ("是什么是运费", 2),
            ("猫", 3),
            ("какой срок возврата у товара", 4),
        ],
    );
}

#[test]
fn a_misspelt_word_finds_what_was_meant() {
    let store = texts(&["Retrieval of documents", "Конфигурация сервера", "Nothing else"]);
    check(&store, &[("retreival", 0), ("retrieva", 0), ("канфигурация", 1)]);
}

#[test]
fn phrases_exclusions_and_filters_narrow() {
    let mut chinese = resource("w://pages/refund");
    chinese.mime_type = Some("text/markdown".into());
    let store = store(vec![
        entry("hand book", resource("h:///1"), "The refund deadline is thirty days."),
        entry("hand book", resource("h:///2"), "A deadline for a refund isn't set."),
        entry("wiki", chinese, "# 退款\n退款期限为三十天。"),
        entry("wiki", resource("w://pages/期限"), "退货的期限另行通知，退款照旧。"),
    ]);
    for (query, expected) in [
        ("\"refund deadline\"", &["h:///1"][..]),
        ("“refund deadline”", &["h:///1"]),
        ("「退款期限」", &["w://pages/refund"]),
        ("\"退款期限\"", &["w://pages/refund"]),
        ("refund -thirty", &["h:///2", "w://pages/refund"]),
        ("退款 -三十", &["w://pages/期限"]),
        ("refund server:wiki", &["w://pages/refund"]),
        ("期限 mime:text/markdown", &["w://pages/refund"]),
        ("退款 uri:w://pages/期", &["w://pages/期限"]),
        ("deadline server:\"hand book\" uri:**/2", &["h:///2"]),
    ] {
        let answer = ask(&store, query);
        let mut found = uris(&answer);
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn broken_syntax_is_text() {
    let store = texts(&["The refund deadline is thirty days.", "退款期限为三十天"]);
    for (query, expected) in [
        ("\"refund deadline", 0),
        ("refund AND (deadline", 0),
        ("refund~2^ [a TO deadline}", 0),
        ("title:refund deadline", 0),
        ("+refund:: deadline\\", 0),
        ("server: refund", 0),
        ("「退款期限", 1),
        ("退款 OR )", 1),
        ("refund' -- \u{0}deadline", 0),
    ] {
        check(&store, &[(query, expected)]);
    }
    for query in ["", "   ", "\"\"", "-", "!!!", "()", "\u{0}"] {
        assert!(ask(&store, query).hits.is_empty(), "{query:?}");
    }
}

#[test]
fn resources_with_the_same_text_are_one_hit() {
    for text in
        ["The refund deadline is thirty days.", "退款期限为三十天。", "คืนสินค้าได้ภายในสามสิบวัน"]
    {
        let mut preferred = resource("a:///z");
        preferred.priority = Some(0.9);
        let store = store(vec![
            entry("a", resource("a:///1"), text),
            entry("a", preferred, text),
            entry("b", resource("b:///1"), text),
            entry("b", resource("b:///2"), &format!("{text} 123")),
        ]);
        let answer = ask(&store, text);
        assert_eq!(answer.hits.len(), 2, "{text}");
        let hit = answer.hits.iter().find(|hit| !hit.duplicates.is_empty()).unwrap();
        let mut all: Vec<&str> = hit.duplicates.iter().map(|key| &*key.uri).collect();
        all.push(&hit.key.uri);
        all.sort_unstable();
        assert_eq!(all, ["a:///1", "a:///z", "b:///1"], "{text}");

        // Who sees one server only learns nothing of the other.
        let answer = ask(&store, &format!("{text} server:b"));
        assert!(answer.hits.iter().all(|hit| hit.duplicates.is_empty()), "{text}");
    }
}

#[test]
fn ties_go_to_priority_then_to_the_later_change() {
    let changed = |uri: &str, last_modified: &str, priority| Resource {
        last_modified: Some(last_modified.into()),
        priority,
        ..resource(uri)
    };
    let store = store(vec![
        entry("s", changed("x://a", "2024-01-01T00:00:00Z", None), "退款期限 alpha"),
        entry("s", changed("x://b", "2025-01-01T00:00:00Z", None), "退款期限 omega"),
        entry("s", changed("x://c", "2023-01-01T00:00:00Z", Some(0.5)), "退款期限 kappa"),
        entry("s", changed("x://d", "2026-01-01T00:00:00Z", Some(1.0)), "something else"),
    ]);
    assert_eq!(uris(&ask(&store, "退款期限")), ["x://c", "x://b", "x://a"]);
}

#[test]
fn versions_of_a_document_make_room_for_others() {
    let mut entries = vec![];
    for (version, word) in [("v1", "one"), ("v2", "two"), ("v10", "ten")] {
        let text = format!("Install the agent with the installer. 安装代理程序。 {word}");
        entries.push(entry("docs", resource(&format!("docs://{version}/install")), &text));
    }
    let other = "The agent reports what the installer did. 代理程序的报告。";
    entries.push(entry("docs", resource("docs://v10/report"), other));
    let store = store(entries);
    for (query, expected) in [
        ("install agent", ["docs://v10/install", "docs://v10/report"]),
        ("install agent v2", ["docs://v2/install", "docs://v10/report"]),
        ("安装代理程序", ["docs://v10/install", "docs://v10/report"]),
        ("v1 安装代理程序", ["docs://v1/install", "docs://v10/report"]),
    ] {
        let answer = ask(&store, query);
        assert_eq!(uris(&answer)[..2], expected, "{query}");
        assert_eq!(answer.hits.len(), 4, "{query}: the others are still found");
    }
}

#[test]
fn relevance_tells_answers_from_strangers() {
    let store = texts(&[
        "The refund deadline is thirty days after delivery, and postage is paid by the buyer.",
        "退款期限为收货后三十天，运费由买家承担。",
        "返金の期限は商品到着後三十日です。",
        "Срок возврата товара тридцать дней после доставки.",
        "ระยะเวลาคืนเงินคือสามสิบวันหลังจากได้รับสินค้า",
    ]);
    let relevance = |query: &str| ask(&store, query).hits.first().map_or(0.0, |hit| hit.relevance);
    for query in [
        "refund deadline",
        "What is the refund deadline?",
        "退款期限",
        "退款期限是多少天",
        "返金の期限",
        "срок возврата товара",
        "ระยะเวลาคืนเงิน",
    ] {
        assert!(relevance(query) >= 0.35, "{query}: {}", relevance(query));
    }
    for query in [
        "Who painted the ceiling of the Sistine Chapel?",
        "谁画了西斯廷教堂的天花板",
        "火星に水はありますか",
        "Кто написал роман о войне?",
        "zorvex plimquat",
    ] {
        assert!(relevance(query) < 0.2, "{query}: {}", relevance(query));
    }
}
