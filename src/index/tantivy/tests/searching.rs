//! What is found, what isn't, and in which order.

use super::*;
use crate::search::query::{Bounds, parse};
use crate::search::ranking::Ranking;

#[test]
fn what_a_scope_shows_is_the_same_by_one_and_by_many_and_over_commits() {
    let hidden = |at: &usize| at.is_multiple_of(3);
    let uri = |at: usize| format!("x://{}/{at}", if hidden(&at) { "secret" } else { "open" });
    let one = |at: usize| entry("one", &uri(at), &[&format!("word n{at}")]);
    let exclude = crate::config::globs(&["**/secret/**".into()]).unwrap();
    let scope = Arc::new(Clause { exclude, ..Clause::default() });
    let shows = |store: &TantivyStore, clause: &Arc<Clause>, expected: &BTreeSet<usize>| {
        let hits = found_within(store, "word", Filter::default().and(clause.clone()));
        let numbers = hits.iter().map(|hit| hit.rsplit('/').next().unwrap().parse().unwrap());
        assert_eq!(&numbers.collect::<BTreeSet<usize>>(), expected);
        assert_eq!(hits.len(), expected.len());
    };
    // More than are decided one by one; the second time they are known.
    let store = store((0..800).map(one).collect());
    let mut expected: BTreeSet<usize> = (0..800).filter(|at| !hidden(at)).collect();
    for _ in 0..2 {
        shows(&store, &scope, &expected);
    }
    // Some in a new segment, some gone from the old one.
    let mut changes: Vec<Change> = (800..900).map(|at| replace(one(at))).collect();
    changes.extend((0..50).map(|at| Change::Remove(key("one", &uri(at)))));
    apply(&store, changes);
    expected.extend((800..900).filter(|at| !hidden(at)));
    expected.retain(|at| *at >= 50);
    shows(&store, &scope, &expected);
    // Another scope isn't taken for the first, whatever place it has in memory.
    for at in [100, 301, 500] {
        let only = Arc::new(Clause { uri_prefix: Some(uri(at)), ..Clause::default() });
        shows(&store, &only, &BTreeSet::from([at]));
    }
}

#[test]
fn names_titles_descriptions_and_uris_are_found() {
    let mut skipped = entry("shop", "shop:///img/return%20label.png", &[]);
    skipped.outcome = Outcome::Skipped("image/png has no text".into());
    skipped.resource.name = "label-scan".into();
    skipped.resource.title = Some("Retourenschein".into());
    skipped.resource.description = Some("A form for customers".into());
    let mut titled = entry("shop", "shop:///x", &["text"]);
    titled.document_title = Some("Gebühren".into());
    titled.chunks[0].heading_path = vec!["Ausland".into()];
    let store = store(vec![skipped, titled]);
    for word in ["scan", "Retourenschein", "customers", "return", "img"] {
        assert_eq!(found(&store, word), ["shop shop:///img/return%20label.png"], "{word}");
    }
    for word in ["Gebühren", "Ausland", "text"] {
        assert_eq!(found(&store, word), ["shop shop:///x"], "{word}");
    }
}

#[test]
fn noise_is_kept_but_not_found_and_a_lead_is_found() {
    let mut noisy = entry("docs", "a", &["see QUJDREVGRw below"]);
    noisy.chunks[0].noise.push(4..14);
    noisy.chunks[0].lead = Some("Column".into());
    let store = store(vec![noisy.clone()]);
    assert!(found(&store, "QUJDREVGRw").is_empty());
    assert_eq!(found(&store, "below"), ["docs a"]);
    assert_eq!(found(&store, "column"), ["docs a"]);
    assert_eq!(store.entry(&key("docs", "a")).unwrap(), Some(noisy));
}

#[test]
fn what_a_filter_hides_is_not_found() {
    let globs = |glob: &str| {
        globset::GlobSet::builder().add(globset::Glob::new(glob).unwrap()).build().unwrap()
    };
    let mut image = entry("two", "x://c/3", &["word a"]);
    image.mime_type = Some("image/png".into());
    let store = store(vec![
        entry("one", "x://a/1", &["word b"]),
        entry("one", "x://b/2", &["word c"]),
        image,
        entry("two", "x://a/4", &["word d"]),
    ]);
    let clause = Clause::default;
    let cases = [
        (clause(), "1 2 3 4"),
        (Clause { servers: Some(vec![server("two")]), ..clause() }, "3 4"),
        (Clause { servers: Some(vec![]), ..clause() }, ""),
        (Clause { servers: Some(vec![server("three")]), ..clause() }, ""),
        (Clause { mime_types: Some(vec!["text/*".into()]), ..clause() }, "1 2 4"),
        (Clause { uri_prefix: Some("x://a/".into()), ..clause() }, "1 4"),
        (Clause { include: Some(globs("x://{a,c}/**")), ..clause() }, "1 3 4"),
        (Clause { exclude: Some(globs("x://a/**")), ..clause() }, "2 3"),
    ];
    for (clause, expected) in cases {
        let shown = format!("{clause:?}");
        let hits = found_within(&store, "word", Filter::default().and(clause));
        let mut hits: Vec<&str> = hits.iter().filter_map(|hit| hit.rsplit('/').next()).collect();
        hits.sort_unstable();
        assert_eq!(hits.join(" "), expected, "{shown}");
    }
    for (query, expected) in [
        ("word server:two mime:image/*", 1),
        ("server:two", 2),
        ("word uri:x://a/", 2),
        ("uri:x://*/1 word", 1),
        ("word server:none", 0),
    ] {
        assert_eq!(found(&store, query).len(), expected, "{query}");
    }
}

#[test]
fn phrases_exclusions_and_near_spellings() {
    let store = store(vec![
        entry("d", "en", &["The refund deadline is thirty days.", "Shipping is free."]),
        entry("d", "en2", &["A deadline for every refund request."]),
        entry("d", "zh", &["退款期限为三十天。"]),
        entry("d", "zh2", &["期限内可以退款。"]),
        entry("d", "zh3", &["请升级到 v2 版本。"]),
        entry("d", "ru", &["Срок возврата тридцать дней."]),
        entry("d", "vi", &["Thời hạn hoàn tiền là ba mươi ngày."]),
    ]);
    let sorted = |query: &str| {
        let mut found = found(&store, query);
        found.sort();
        found.join(" ")
    };
    let cases = [
        ("refund deadline", "d en d en2"),
        ("\"refund deadline\"", "d en"),
        ("\"refund deadline\" request", "d en"),
        ("refund -shipping", "d en2"),
        ("refund -\"refund deadline\"", "d en2"),
        ("-refund -возврата -hoàn", "d zh d zh2 d zh3"),
        ("\"v2 版\"", "d zh3"),
        ("版", "d zh3"),
        ("возврата", "d ru"),
        ("hoàn tiền", "d vi"),
        ("refnud", "d en d en2"),
        ("shiping", "d en"),
        ("возвртаа", "d ru"),
        ("xyzzyq", ""),
        ("", ""),
        ("\"\"", ""),
        ("?!", ""),
    ];
    for (query, expected) in cases {
        assert_eq!(sorted(query), expected, "{query}");
    }
}

#[test]
fn a_word_that_is_hidden_is_as_good_as_misspelt() {
    let store =
        store(vec![entry("mine", "a", &["refunds"]), entry("theirs", "b", &["refunds refundz"])]);
    let mine = Clause { servers: Some(vec![server("mine")]), ..Clause::default() };
    let mine = Filter::default().and(mine);
    assert_eq!(found_within(&store, "refundz", mine), ["mine a"]);
    assert_eq!(found(&store, "refundz"), ["theirs b"]);
}

#[test]
fn pages_of_hits_are_cut_from_one_order() {
    let entries = (0..25).map(|n| {
        // Resources with the same text would be one hit.
        let text = format!("same words {}", char::from(b'a' + n));
        entry("d", &format!("{n:02}"), &[&text, "same words"])
    });
    let store = TantivyStore::in_memory().unwrap();
    for entry in entries.rev() {
        put(&store, vec![entry]);
    }
    let mut uris = vec![];
    for offset in (0..25).step_by(10) {
        let request = Request { offset, ..Request::new("same") };
        let answer = search::search(&store, &request).unwrap();
        assert_eq!(answer.more, offset < 20);
        assert_eq!(answer.hits[0].rank, offset + 1);
        uris.extend(answer.hits.iter().map(|hit| hit.key.uri.to_string()));
    }
    let all: Vec<String> = (0..25_u8).map(|n| format!("{n:02}")).collect();
    assert_eq!(uris, all, "equal scores are in the order of keys");
}

#[test]
fn the_best_passage_comes_first_and_others_on_request() {
    let texts = ["deadline", "nothing", "refund deadline", "refund refund deadline deadline soon"];
    let store = store(vec![entry("d", "a", &texts), entry("d", "b", &["refund"])]);
    let request = StoreRequest {
        query: parse("refund deadline", Bounds::default()),
        filter: Filter::default(),
        limit: 5,
        offset: 0,
        passages: 3,
        explain: true,
        ranking: Ranking::default(),
    };
    let answer = store.search(&request).unwrap();
    let hit = &answer.hits[0];
    assert_eq!(&*hit.key.uri, "a");
    let ordinals: Vec<u32> = hit.passages.iter().map(|passage| passage.ordinal).collect();
    // Both are short, so the one that says it twice is the better.
    assert_eq!(ordinals, [3, 2, 0]);
    assert!(hit.passages.iter().is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!(hit.score, hit.passages[0].score);
    assert!(hit.explanation.is_some());
    assert!(!answer.more);
}

#[test]
fn relevance_tells_answers_from_the_rest() {
    let filler = (0..50).map(|n| entry("d", &format!("f{n}"), &["the common words of every page"]));
    let mut entries: Vec<Entry> = filler.collect();
    entries.push(entry("d", "a", &["the refund deadline"]));
    let store = store(entries);
    let relevance = |query: &str| {
        search::search(&store, &Request::new(query))
            .unwrap()
            .hits
            .first()
            .map_or(0.0, |h| h.relevance)
    };
    assert!(relevance("refund deadline") > 0.9);
    assert!(relevance("the refund deadline") > 0.8);
    let half = relevance("refund zzzzzzzz");
    assert!(half > 0.0 && half < 0.5, "{half}");
    assert!(relevance("the zzzzzzzz yyyyyyyy") < 0.1);
    let request = Request { min_relevance: Some(0.2), ..Request::new("the refund") };
    let answer = search::search(&store, &request).unwrap();
    assert_eq!(answer.hits.len(), 1, "pages with `the` only are out");
}

#[test]
fn a_document_scores_the_same_whatever_is_indexed_beside_it() {
    let languages = [
        (
            "en",
            "The deadline of parcel N is set, and the fee of it is low.",
            "what is the fee of the parcel",
        ),
        ("vi", "Thời hạn của gói N đã định, và phí của nó là thấp.", "phí của gói là gì"),
        ("zh", "第N号包裹的期限在单上，它的费用是低的。", "包裹的费用是多少"),
        ("ja", "荷物N番の期限は紙にあり、その料金は安い。", "荷物の料金はいくら"),
        ("ru", "Срок посылки N указан в бланке, и цена на неё низкая.", "какая цена у посылки"),
        ("ar", "موعد الطرد N مذكور في الورقة، و الرسوم من الأدنى.", "كم رسوم الطرد"),
        ("th", "กำหนดของพัสดุ N อยู่ในใบ และค่าธรรมเนียมที่ต่ำ", "ค่าธรรมเนียมของพัสดุ"),
    ];
    let entries = |language: &str, text: &str| -> Vec<Entry> {
        let texts = (0..30).map(|n| (n, text.replace('N', &n.to_string())));
        texts.map(|(n, text)| entry(language, &format!("{language}{n}"), &[&text])).collect()
    };
    let best = |store: &TantivyStore, query: &str| -> Vec<(String, f32, f32)> {
        let answer = search::search(store, &Request::new(query)).unwrap();
        let hits = answer.hits.into_iter();
        hits.take(1).map(|hit| (hit.key.uri.to_string(), hit.score, hit.relevance)).collect()
    };
    let all = store(languages.iter().flat_map(|(name, text, _)| entries(name, text)).collect());
    for (language, text, question) in languages {
        let alone = best(&store(entries(language, text)), question);
        assert_eq!(alone[0].0, format!("{language}0"), "{question}");
        assert_eq!(best(&all, question), alone, "{question}");
    }
}
