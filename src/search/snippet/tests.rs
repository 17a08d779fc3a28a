use proptest::prelude::*;

use super::*;

/// A match of each of the words, wherever they stand.
fn matches(text: &str, words: &[&str]) -> Vec<Match> {
    let mut matches: Vec<Match> = vec![];
    for (number, word) in (0..).zip(words) {
        let places = text.match_indices(word);
        matches.extend(places.map(|(at, found)| Match {
            bytes: at..at + found.len(),
            word: number,
            weight: 1.0,
        }));
    }
    matches.sort_by_key(|found| (found.bytes.start, found.bytes.end));
    matches
}

/// The snippet with its highlights in brackets.
fn marked(snippet: &Snippet) -> String {
    let mut shown = String::new();
    for (at, c) in (0..).zip(snippet.text.chars()) {
        if snippet.highlights.iter().any(|(from, _)| *from == at) {
            shown.push('[');
        }
        shown.push(c);
        if snippet.highlights.iter().any(|(_, to)| *to == at + 1) {
            shown.push(']');
        }
    }
    shown
}

#[test]
fn a_snippet_is_shortened_around_what_matched_in_it() {
    for (text, words, room, expected) in [
        ("All of it. It fits.", &["fits"][..], 40, "All of it. It fits."),
        (
            "# 退款说明\n本页供客服查阅。\n退款期限为三十天。",
            &["退款", "期限"],
            12,
            "退款期限为三十天。",
        ),
        (
            "Opening words first. The deadline is near. More follows.",
            &["deadline"],
            26,
            "The deadline is near.",
        ),
        ("สวัสดีครับ\nการคืนเงินใช้เวลา 14 วัน", &["คืนเงิน"], 26, "การคืนเงินใช้เวลา 14 วัน"),
        ("Nothing matched here. At all.", &[], 24, "Nothing matched here."),
    ] {
        let Snippet { text, highlights, .. } = cut(text, &matches(text, words), MAX_CHARS);
        let highlights: Vec<(usize, usize)> =
            highlights.iter().map(|(from, to)| (*from as usize, *to as usize)).collect();
        assert_eq!(shorten(&text, &highlights, room), expected);
    }
    // Places that aren't of the text do no harm.
    assert_eq!(shorten("a b", &[(1, 9), (2, 1)], 9), "a b");
}

#[test]
fn the_window_is_cut_around_what_matched() {
    // (text, words, characters, expected)
    let cases = [
        ("", &["x"][..], 20, ""),
        ("No match at all.", &[], 40, "No match at all."),
        ("One. Two. Three.", &["Two"], 40, "One. [Two]. Three."),
        // Whole sentences, the one that matched first.
        (
            "First one here. The second matched. A third follows.",
            &["second"],
            24,
            "The [second] matched.",
        ),
        ("甲が来た。乙が待つ。丙は帰る。", &["乙"], 8, "[乙]が待つ。"),
        (
            "运费由买家承担。退款期限为三十天。请保留发票。",
            &["退款", "款期"],
            12,
            "[退款期]限为三十天。",
        ),
        ("真的吗？当然！退款很快。", &["退款"], 8, "[退款]很快。"),
        // Both words, rather than one.
        (
            "Refund here. Nothing there. Refund of a deadline.",
            &["Refund", "deadline"],
            30,
            "[Refund] of a [deadline].",
        ),
        // Too long for the window: cut at a space, and marked.
        ("คืนเงินภายใน สามสิบวัน", &["สามสิบ"], 40, "คืนเงินภายใน [สามสิบ]วัน"),
        // Code stays as lines, with its indentation.
        ("fn a() {\n    let x = 1;\n    call(x);\n}\n", &["call"], 24, "    [call](x);\n}"),
        ("\n\n  text", &["text"], 20, "  [text]"),
        // What a terminal or a model could be fooled with.
        (
            "a\u{1b}[31mred\u{200b}\u{202e} t\u{e0041}ext\r\n",
            &["red", "t\u{e0041}ext"],
            40,
            "a[31m[red] [text]",
        ),
        ("\u{feff}日\u{200d}本\u{7}語", &["本\u{7}語"], 40, "日[本語]"),
        // Touching and overlapping matches are one.
        ("xabcx", &["ab", "bc"], 20, "x[abc]x"),
        ("xabcx", &["a", "bc"], 20, "x[abc]x"),
    ];
    for (text, words, chars, expected) in cases {
        let snippet = cut(text, &matches(text, words), chars);
        assert_eq!(marked(&snippet), expected, "for {text:?}");
    }
}

#[test]
fn an_overlong_sentence_is_cut_and_marked() {
    let long = format!("{}needle {}", "before ".repeat(200), "after ".repeat(200));
    let snippet = cut(&long, &matches(&long, &["needle"]), 100);
    assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'), "{}", snippet.text);
    assert!(marked(&snippet).contains(" [needle] "), "{}", snippet.text);
    assert!(snippet.text.chars().count() <= 100);

    // No spaces at all.
    let long = format!("{}针{}", "前".repeat(500), "后".repeat(500));
    let snippet = cut(&long, &matches(&long, &["针"]), 100);
    assert!(marked(&snippet).contains("[针]"), "{}", snippet.text);
    assert!(snippet.text.chars().count() <= 100);

    // One word that is longer than the window, with the match at its end.
    let word = format!("{}needle", "x".repeat(30));
    let snippet = cut(&word, &matches(&word, &["needle"]), 20);
    assert!(marked(&snippet).ends_with("[needle]"), "{}", snippet.text);

    // The head of a text that matches nowhere.
    let snippet = cut(&long, &[], 100);
    assert!(snippet.text.starts_with('前') && snippet.text.ends_with('…'));
}

#[test]
fn common_words_are_shown_only_when_nothing_better_matched() {
    let text = "the refund of the day";
    let mut all = matches(text, &["the", "refund"]);
    for found in &mut all {
        found.weight = [0.1, 5.0][found.word as usize];
    }
    assert_eq!(marked(&cut(text, &all, 100)), "the [refund] of the day");
    all.retain(|found| found.word == 0);
    assert_eq!(marked(&cut(text, &all, 100)), "[the] refund of [the] day");
}

#[test]
fn snippets_join_with_their_highlights() {
    let text = "above";
    let above = cut(text, &matches(text, &["bo"]), 40);
    let text = "below";
    let below = cut(text, &matches(text, &["lo"]), 40);
    assert_eq!(marked(&super::below(above.clone(), below.clone())), "a[bo]ve\nbe[lo]w");
    assert_eq!(super::below(Snippet::default(), below.clone()), below);
    assert_eq!(super::below(above.clone(), Snippet::default()), above);
}

proptest! {
    /// Whatever the text, a snippet fits, is safe, and shows a match if there is one to show.
    #[test]
    fn a_snippet_fits_is_safe_and_shows_a_match(
        text in "([a-c]{1,9}|[退款。 ]{1,9}|\\PC|[ .\n\t]|\u{202e}|\u{200b}|\u{1b}){0,120}",
        word in "[a-c退款]{1,2}",
        max in 8..60usize,
    ) {
        let all = matches(&text, &[&word]);
        let snippet = cut(&text, &all, max);
        prop_assert!(snippet.text.chars().count() <= max);
        prop_assert!(snippet.text.chars().all(is_shown));
        prop_assert!(text.get(snippet.bytes.clone()).is_some());
        let length = snippet.text.chars().count() as u32;
        let mut end = 0;
        for (from, to) in &snippet.highlights {
            prop_assert!(*from >= end && from < to && *to <= length);
            end = *to;
        }
        prop_assert_eq!(snippet.highlights.is_empty(), all.is_empty());
    }
}
