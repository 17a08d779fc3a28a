//! From what a user typed to what they are shown, on an index in memory.

use chrono::{TimeZone as _, Utc};

use super::*;
use crate::index::tantivy::{TantivyStore, fingerprint};
use crate::index::{Change, Entry};
use crate::model::Resource;

fn chunk(text: &str, line: u32) -> Chunk {
    Chunk {
        part: 0,
        heading_path: vec![],
        lines: (line, line + text.trim_end().matches('\n').count() as u32),
        bytes: 0..text.len() as u32,
        page: None,
        text: text.into(),
        lead: None,
        noise: vec![],
    }
}

fn entry(uri: &str, chunks: Vec<Chunk>) -> Entry {
    Entry {
        server: ServerName::new("s").unwrap(),
        resource: Resource { mime_type: Some("text/plain".into()), ..Resource::new(uri) },
        document_title: None,
        mime_type: None,
        content_hash: ContentHash([0; 16]),
        fingerprint: fingerprint(),
        outcome: Outcome::Indexed,
        chunks,
        indexed_at: Utc.timestamp_opt(0, 0).unwrap(),
    }
}

fn store(entries: Vec<Entry>) -> TantivyStore {
    let store = TantivyStore::in_memory().unwrap();
    let changes = entries.into_iter().map(|entry| Change::Replace(Box::new(entry)));
    store.apply(changes.collect()).unwrap();
    store.commit().unwrap();
    store
}

/// The first hit's best passage, with its highlights in brackets.
fn first(store: &TantivyStore, query: &str) -> (String, (u32, u32)) {
    let answer = search(store, &Request::new(query)).unwrap();
    let hit = answer.hits.first().unwrap_or_else(|| panic!("nothing found for {query:?}"));
    let passage = &hit.passages[0];
    let mut shown = String::new();
    for (at, c) in (0..).zip(passage.snippet.chars()) {
        if passage.highlights.iter().any(|(from, _)| *from == at) {
            shown.push('[');
        }
        shown.push(c);
        if passage.highlights.iter().any(|(_, to)| *to == at + 1) {
            shown.push(']');
        }
    }
    (shown, passage.lines)
}

#[test]
fn a_snippet_says_where_it_is() {
    let long = "filler line\n".repeat(60);
    let text = format!("{long}The refund deadline\nis thirty days.\n{long}");
    let store = store(vec![entry("a", vec![chunk("other", 1), chunk(&text, 11)])]);
    let (shown, lines) = first(&store, "refund deadline");
    assert!(shown.starts_with("The [refund] [deadline]\nis thirty days.\nfiller"), "{shown}");
    assert_eq!(lines.0, 11 + 60);
    assert_eq!(lines.1 - lines.0, shown.matches('\n').count() as u32);
}

#[test]
fn what_matched_is_always_shown() {
    let mut headed = chunk("Nothing of it here.", 1);
    headed.heading_path = vec!["Guide".into(), "Refunds abroad".into()];
    let mut table = chunk("| 5 | 7 |", 3);
    table.lead = Some("| Postage | Weight |".into());
    let mut titled = entry("t", vec![chunk("Some text.", 1)]);
    titled.resource.title = Some("Opening hours".into());
    let mut picture = entry("img/floorplan.png", vec![]);
    picture.outcome = Outcome::Skipped("image/png has no text".into());
    picture.resource.description = Some("Where the rooms are".into());
    let store = store(vec![entry("h", vec![headed]), entry("l", vec![table]), titled, picture]);
    let cases = [
        ("refunds", "[Refunds] abroad\nNothing of it here."),
        ("postage", "| [Postage] | Weight |\n| 5 | 7 |"),
        ("7", "| Postage | Weight |\n| 5 | [7] |"),
        ("hours", "Opening [hours]\nSome text."),
        ("rooms", "Where the [rooms] are"),
        ("floorplan", "img/[floorplan].png\nWhere the rooms are"),
        ("server:s mime:text/plain -nothing -postage -rooms", "Some text."),
    ];
    for (query, expected) in cases {
        assert_eq!(first(&store, query).0, expected, "{query}");
    }
}

#[test]
fn every_script_is_found_and_highlighted() {
    let texts = [
        "The refund deadline is thirty days.",
        "Срок возврата товара тридцать дней.",
        "Thời hạn hoàn tiền là ba mươi ngày.",
        "مهلة الاسترداد ثلاثون يوما.",
        "Rückgabefrist beträgt dreißig Tage.",
        "退款期限为三十天。请保留发票。",
        "運費由買家承擔，商品須未拆封。",
        "返品は購入から十四日以内に限ります。",
        "환불은 구매 후 칠 일 이내에 가능합니다.",
        "คืนสินค้าได้ภายในสามสิบวัน",
        "उत्पाद तीस दिनों में वापस करें।",
        "Call getUserName() before retrying ERR_40002.",
    ];
    let entries =
        (0..).zip(texts).map(|(n, text): (u32, _)| entry(&n.to_string(), vec![chunk(text, 1)]));
    let store = store(entries.collect());
    for (query, expected) in [
        ("deadline", "The refund [deadline] is thirty days."),
        ("возврата", "Срок [возврата] товара тридцать дней."),
        ("tiền", "Thời hạn hoàn [tiền] là ba mươi ngày."),
        ("الاسترداد", "مهلة [الاسترداد] ثلاثون يوما."),
        ("dreißig", "Rückgabefrist beträgt [dreißig] Tage."),
        ("退款 期限", "[退款期限]为三十天。请保留发票。"),
        ("「退款期限」", "[退款期限]为三十天。请保留发票。"),
        ("\"三十天\"", "退款期限为[三十天]。请保留发票。"),
        ("运费", "[運費]由買家承擔，商品須未拆封。"),
        ("返品", "[返品]は購入から十四日以内に限ります。"),
        ("환불", "[환불]은 구매 후 칠 일 이내에 가능합니다."),
        ("คืนสินค้า", "[คืนสินค้า]ได้ภายในสามสิบวัน"),
        ("वापस", "उत्पाद तीस दिनों में [वापस] करें।"),
        ("hoan tien", "Thời hạn [hoàn] [tiền] là ba mươi ngày."),
        ("getUserName", "Call [getUserName]() before retrying ERR_40002."),
        ("err_40002", "Call getUserName() before retrying [ERR_40002]."),
    ] {
        assert_eq!(first(&store, query).0, expected, "{query}");
    }
}

#[test]
fn an_answer_is_bounded() {
    let text = "word ".repeat(70);
    let text = |n: u32| format!("{text}{n:02}");
    let entries = (0..30).map(|n| entry(&n.to_string(), vec![chunk(&text(n), 1)]));
    let store = store(entries.collect());
    let request = Request { limit: 30, max_answer_bytes: 2000, ..Request::new("word") };
    let answer = search(&store, &request).unwrap();
    assert_eq!(answer.hits.len(), 5);
    assert!(answer.more);
    let request = Request { max_answer_bytes: 1, ..request };
    assert_eq!(search(&store, &request).unwrap().hits.len(), 1, "one is always shown");
    assert_eq!(
        search(&store, &Request { limit: 0, ..Request::new("word") }).unwrap(),
        Answer::default()
    );
}

#[test]
fn titles_are_safe_to_print() {
    let mut evil = entry("e", vec![chunk("text", 1)]);
    evil.resource.title = Some("a\u{1b}[2Jb\u{202e}c".into());
    let answer = search(&store(vec![evil]), &Request::new("text")).unwrap();
    assert_eq!(answer.hits[0].title, "a[2Jbc");
}
