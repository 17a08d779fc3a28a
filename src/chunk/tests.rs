use super::*;
use crate::extract::{self, Extraction};
use crate::model::{Body, Content, Document, Heading, Page, Resource, Snapshot};
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// The document that a resource with this text and type becomes.
fn document(mime_type: &str, text: &str) -> Document {
    let resource = Resource { mime_type: Some(mime_type.into()), ..Resource::new("test:///text") };
    let content = Content {
        left_out: None,
        uri: "test:///text".into(),
        mime_type: Some(mime_type.into()),
        body: Body::Text(text.into()),
    };
    let limits = crate::config::Limits { max_text_bytes: 64 << 20, ..Default::default() };
    match extract::extract(&resource, &Snapshot::new(vec![content]), &limits) {
        Extraction::Document(document) => document,
        Extraction::Skipped(reason) => panic!("{reason}"),
    }
}

/// Everything that holds for the chunks of any document.
fn assert_invariants(document: &Document, chunks: &[Chunk]) {
    for part in &document.parts {
        let chunks: Vec<_> = chunks.iter().filter(|chunk| chunk.part == part.index).collect();
        let whole: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
        assert!(whole == part.text, "the chunks are not the text");
        let (mut at, mut line) = (0, 1);
        for chunk in chunks {
            assert!(!chunk.text.is_empty());
            assert_eq!(chunk.bytes.start, at);
            assert_eq!(chunk.bytes.len(), chunk.text.len());
            assert_eq!(part.text[chunk.bytes.start as usize..chunk.bytes.end as usize], chunk.text);
            assert_eq!(chunk.lines.0, line, "{:?}", chunk.text);
            assert_eq!(
                chunk.lines.1 as usize,
                line as usize - 1 + chunk.text.lines().count().max(1)
            );
            assert!(estimate_tokens(&chunk.text) <= 800, "{}", estimate_tokens(&chunk.text));
            for range in &chunk.noise {
                assert!(chunk.text.is_char_boundary(range.start as usize));
                assert!(chunk.text.get(range.start as usize..range.end as usize).is_some());
            }
            at = chunk.bytes.end;
            line += chunk.text.matches('\n').count() as u32;
        }
    }
    assert_eq!(super::chunk(document), chunks, "the same document gives the same chunks");
}

/// Lines, tokens, path, lead, first and last line of each chunk.
fn check(mime_type: &str, text: &str, expected: Expect) {
    let document = document(mime_type, text);
    let chunks = chunk(&document);
    assert_invariants(&document, &chunks);
    let shorten = |line: &str| match line.char_indices().nth(24) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    };
    let mut shown = String::new();
    for chunk in &chunks {
        let mut lines = chunk.text.lines().filter(|line| !line.trim().is_empty());
        let first = shorten(lines.next().unwrap_or_default());
        let last = shorten(lines.next_back().unwrap_or_default());
        let lead = chunk.lead.as_deref().map(|lead| format!(" lead {lead:?}")).unwrap_or_default();
        shown += &format!(
            "{}-{} {} tokens [{}]{lead} {first} … {last}\n",
            chunk.lines.0,
            chunk.lines.1,
            estimate_tokens(&chunk.text),
            chunk.heading_path.join(" › "),
        );
    }
    expected.assert_eq(&shown);
}

const ENGLISH: &str = "Refunds are granted within thirty days of the purchase, provided that the goods are undamaged. ";
const CHINESE: &str = "退款申请须在购买后三十天内提交，商品应保持完好，运费由买家承担。";
const JAPANESE: &str = "返金は購入から三十日以内に申請してください。商品は未使用に限ります。";
const KOREAN: &str =
    "환불은 구매일로부터 삼십 일 이내에 요청할 수 있으며 상품은 손상되지 않아야 합니다. ";
const THAI: &str = "สามารถขอคืนเงินได้ภายในสามสิบวันหลังจากวันที่ซื้อโดยสินค้าต้องไม่เสียหาย";
const HINDI: &str = "धनवापसी का अनुरोध खरीद के तीस दिनों के भीतर किया जा सकता है। ";
const RUSSIAN: &str =
    "Возврат возможен в течение тридцати дней после покупки, если товар не повреждён. ";

#[test]
fn a_small_document_is_one_chunk() {
    check("text/plain", "", expect![""]);
    check(
        "text/plain",
        "hello",
        expect![[r#"
        1-1 2 tokens [] hello … 
    "#]],
    );
    check(
        "text/markdown",
        "# Refunds\n\nThirty days.\n",
        expect![[r#"
        1-3 7 tokens [Refunds] # Refunds … Thirty days.
    "#]],
    );
    check(
        "text/markdown",
        "intro\n\n# A\n\na\n\n## B\n\nb\n",
        expect![[r#"
        1-9 10 tokens [] intro … b
    "#]],
    );
}

#[test]
fn headings_cut_and_name_their_sections() {
    let text = format!(
        "# Handbook\n\n## Refunds\n\n{}\n\n### Fees\n\n{}\n\n## Shipping\n\n{}\n\n## Small\n\nShort.\n",
        ENGLISH.repeat(10),
        ENGLISH.repeat(12),
        ENGLISH.repeat(50)
    );
    check(
        "text/markdown",
        &text,
        expect![[r#"
            1-6 194 tokens [Handbook › Refunds] # Handbook … Refunds are granted with…
            7-10 227 tokens [Handbook › Refunds › Fees] ### Fees … Refunds are granted with…
            11-13 447 tokens [Handbook › Shipping] ## Shipping … Refunds are granted with…
            13-17 487 tokens [Handbook › Shipping] Refunds are granted with… … Short.
        "#]],
    );
}

#[test]
fn tiny_sections_are_put_together() {
    let faq: String =
        (0..12).map(|n| format!("## Question {n}\n\nA short answer to it.\n\n")).collect();
    check(
        "text/markdown",
        &format!("# FAQ\n\n{faq}"),
        expect![[r#"
        1-50 132 tokens [FAQ › Question 0] # FAQ … A short answer to it.
    "#]],
    );
    check(
        "text/markdown",
        "# A\n\n## A1\n\n### A1a\n\nx\n\n# B\n\n## B1\n\ny\n",
        expect![[r#"
        1-13 19 tokens [A] # A … y
    "#]],
    );
}

#[test]
fn paragraphs_are_cut_at_sentences_in_every_script() {
    for (text, expected) in [
        (
            ENGLISH,
            expect![[r#"
                1-1 443 tokens [] Refunds are granted with… … 
                1-1 516 tokens [] Refunds are granted with… … 
            "#]],
        ),
        (
            CHINESE,
            expect![[r#"
                1-1 509 tokens [] 退款申请须在购买后三十天内提交，商品应保持完好，… … 
                1-1 453 tokens [] 退款申请须在购买后三十天内提交，商品应保持完好，… … 
            "#]],
        ),
        (
            JAPANESE,
            expect![[r#"
                1-1 507 tokens [] 返金は購入から三十日以内に申請してください。商品… … 
                1-1 470 tokens [] 商品は未使用に限ります。返金は購入から三十日以内… … 
            "#]],
        ),
        (
            KOREAN,
            expect![[r#"
                1-1 477 tokens [] 환불은 구매일로부터 삼십 일 이내에 요청할 … … 
                1-1 503 tokens [] 환불은 구매일로부터 삼십 일 이내에 요청할 … … 
            "#]],
        ),
        (
            THAI,
            expect![[r#"
                1-1 480 tokens [] สามารถขอคืนเงินได้ภายในส… … 
                1-1 486 tokens [] วันหลังจากวันที่ซื้อโดยส… … 
            "#]],
        ),
        (
            HINDI,
            expect![[r#"
                1-1 506 tokens [] धनवापसी का अनुरोध खरीद क… … 
                1-1 474 tokens [] धनवापसी का अनुरोध खरीद क… … 
            "#]],
        ),
        (
            RUSSIAN,
            expect![[r#"
                1-1 451 tokens [] Возврат возможен в течен… … 
                1-1 515 tokens [] Возврат возможен в течен… … 
            "#]],
        ),
    ] {
        check("text/plain", &text.repeat(1000 / estimate_tokens(text)), expected);
    }
}

#[test]
fn fences_and_tables_stay_whole_where_they_fit() {
    let code = format!("```rust\n{}```\n", "let name = server.name()?;\n\n".repeat(50));
    let text = format!("# Code\n\n{}\n\n{code}\n{}\n", ENGLISH.repeat(12), ENGLISH.repeat(12));
    check(
        "text/markdown",
        &text,
        expect![[r#"
        1-4 226 tokens [Code] # Code … Refunds are granted with…
        5-107 424 tokens [Code] ```rust … ```
        108-108 222 tokens [Code] Refunds are granted with… … 
    "#]],
    );
    let rows: String = (0..60).map(|n| format!("| item {n} | {n} days | yes |\n")).collect();
    let table = format!("| item | time | back |\n| --- | --- | --- |\n{rows}");
    check(
        "text/markdown",
        &format!("# T\n\n{}\n\n{table}", ENGLISH.repeat(8)),
        expect![[r#"
        1-4 152 tokens [T] # T … Refunds are granted with…
        5-66 506 tokens [T] | item | time | back | … | item 59 | 59 days | ye…
    "#]],
    );
}

#[test]
fn large_fences_and_tables_are_cut_at_lines_and_rows() {
    let code = format!("```rust\n{}```\n", "let a = server.name()?;\nlet b = a;\n\n".repeat(70));
    check(
        "text/markdown",
        &format!("# Code\n\n{code}\ntext\n"),
        expect![[r#"
            1-111 395 tokens [Code] # Code … let b = a;
            112-216 372 tokens [Code] lead "```rust\n" let a = server.name()?; … text
        "#]],
    );
    let rows: String = (0..150).map(|n| format!("| item {n} | {n} days | yes |\n")).collect();
    let table = format!("| item | time | back |\n| --- | --- | --- |\n{rows}");
    check(
        "text/markdown",
        &format!("# T\n\n{table}\nafter\n"),
        expect![[r#"
        1-56 441 tokens [T] # T … | item 51 | 51 days | ye…
        57-108 442 tokens [T] lead "| item | time | back |\n| --- | --- | --- |\n" | item 52 | 52 days | ye… … | item 103 | 103 days | …
        109-156 449 tokens [T] lead "| item | time | back |\n| --- | --- | --- |\n" | item 104 | 104 days | … … after
    "#]],
    );
}

/// Items of a nested list say little without those above them.
#[test]
fn list_items_keep_their_parents() {
    let list: String = [("退款", "十四天"), ("Возврат", "деньги"), ("คืนเงิน", "วัน")]
        .iter()
        .map(|(name, word)| {
            let items: String =
                (0..40).map(|n| format!("    - {word} {n}: one of many words\n")).collect();
            format!("- {name}\n  1. Shops\n{items}  2. Online\n{items}")
        })
        .collect();
    let document = document("text/markdown", &format!("# T\n\n{list}"));
    let chunks = chunk(&document);
    assert_invariants(&document, &chunks);
    let leads: Vec<_> = chunks.iter().map(|chunk| chunk.lead.as_deref()).collect();
    assert!(leads.contains(&Some("- 退款\n  2. Online\n")), "{leads:?}");
    for chunk in &chunks {
        let first = chunk.text.lines().next().unwrap_or_default();
        let expected = first.len() - first.trim_start().len();
        let lead = chunk.lead.as_deref().unwrap_or_default();
        assert_eq!(lead.lines().count() * 2, expected, "{lead:?} above {first:?}");
    }
}

/// qntx-labs/qmd#27: characters of several bytes without any break, around every size at which one is cut.
#[test]
fn no_character_is_cut_in_two() {
    let sizes = |c: char| {
        let mut whole = 0;
        while super::tokens::cost(&c.to_string().repeat(whole + 1)) <= super::WHOLE {
            whole += 1;
        }
        (whole - 1)..=(whole + 4)
    };
    let texts = ['…', '🦀', '退']
        .into_iter()
        .flat_map(|c| sizes(c).chain([2000]).map(move |len| c.to_string().repeat(len)));
    for text in texts {
        for mime_type in ["text/plain", "text/markdown", "text/csv", "text/x-rust"] {
            let document = document(mime_type, &text);
            let chunks = chunk(&document);
            assert_invariants(&document, &chunks);
        }
    }
}

#[test]
fn lines_and_code_are_cut_where_they_may_be() {
    let csv: String = (0..100).map(|n| format!("{n},\"退款 {n}\",2026-01-12\n")).collect();
    check(
        "text/csv",
        &format!("id,name,date\n{csv}"),
        expect![[r#"
        1-35 449 tokens [] id,name,date … 33,"退款 33",2026-01-12
        36-68 445 tokens [] lead "id,name,date\n" 34,"退款 34",2026-01-12 … 66,"退款 66",2026-01-12
        69-101 445 tokens [] lead "id,name,date\n" 67,"退款 67",2026-01-12 … 99,"退款 99",2026-01-12
    "#]],
    );
    let log: String = (0..40)
        .map(|n| format!("2026-01-12T08:{n:02}:00Z WARN pool closed\n    at pool.rs:{n}\n"))
        .collect();
    check(
        "text/x-log",
        &log,
        expect![[r#"
        1-40 417 tokens [] 2026-01-12T08:00:00Z WAR… …     at pool.rs:19
        41-80 423 tokens [] 2026-01-12T08:20:00Z WAR… …     at pool.rs:39
    "#]],
    );
    let code: String = (0..30)
        .map(|n| {
            format!("/// Doc of {n}.\nfn name_{n}() {{\n    let a = 1;\n\n    call(a);\n}}\n\n")
        })
        .collect();
    check(
        "text/x-rust",
        &code,
        expect![[r#"
        1-105 306 tokens [] /// Doc of 0. … }
        106-210 319 tokens [] /// Doc of 15. … }
    "#]],
    );
    let yaml: String =
        (0..60).map(|n| format!("key{n}:\n  name: server {n}\n  port: {n}\n")).collect();
    check(
        "application/yaml",
        &yaml,
        expect![[r#"
            1-94 400 tokens [] key0.name: server 0 … key30.port: 30
            95-180 397 tokens [] key31.name: server 31 … key59.port: 59
        "#]],
    );
}

#[test]
fn pages_begin_chunks_and_are_named() {
    let page = ENGLISH.repeat(6);
    let part = Part {
        text: page.repeat(3),
        pages: (0..3)
            .map(|n| Page { at: n * page.len(), number: n as u32 + 1, label: None })
            .collect(),
        ..Part::default()
    };
    let document = Document { parts: vec![part], ..Document::default() };
    let chunks = chunk(&document);
    assert_invariants(&document, &chunks);
    assert_eq!(
        chunks.iter().map(|chunk| chunk.page).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3)]
    );
}

#[test]
fn parts_keep_their_index() {
    let part = |index, text: &str| Part { index, text: text.into(), ..Part::default() };
    let parts = vec![part(0, "one"), part(2, ""), part(3, "three")];
    let document = Document { parts, ..Document::default() };
    let chunks = chunk(&document);
    let found: Vec<_> = chunks.iter().map(|c| (c.part, c.text.as_str(), c.lines)).collect();
    assert_eq!(found, [(0, "one", (1, 1)), (3, "three", (1, 1))]);
}

#[test]
fn hostile_text_is_cut_without_loss() {
    let emoji = "👩‍👩‍👧‍👦👍🏽🇹🇭";
    let rows = [
        "…".repeat(2_000),
        "😀".repeat(1_203),
        emoji.repeat(300),
        "a".repeat(40_000),
        format!("{}needle", "A9z/".repeat(10_000)),
        "ก".repeat(5_000),
        "e\u{301}".repeat(5_000),
        "e".to_owned() + &"\u{301}".repeat(5_000),
        "\u{fffd}".repeat(5_000),
        "\n".repeat(10_000),
        " ".repeat(10_000),
        "\r".repeat(10_000),
        "a\n".repeat(10_000),
        "# h\n".repeat(5_000),
        "#\n".repeat(5_000),
        "```\n".repeat(3_999),
        "|-|\n".repeat(3_999),
        "| a |\n|---|\n".repeat(2_000),
        "- ".repeat(5_000),
        "> ".repeat(5_000),
        "[".repeat(5_000),
        format!("[{}]", "{\"key\":\"value, 退款\"},".repeat(2_000)),
        format!("```\n{}", "退".repeat(5_000)),
        format!("{}\n\nlast words", ENGLISH.repeat(500)),
    ];
    for text in rows {
        for mime_type in ["text/markdown", "text/plain", "text/x-rust", "text/csv"] {
            let document = document(mime_type, &text);
            assert_invariants(&document, &chunk(&document));
        }
    }
}

/// 4-byte characters at every place around a cut.
#[test]
fn wide_characters_at_the_boundaries() {
    let limit = (500 / 2) as usize;
    for len in limit - 1..=limit + 4 {
        for prefix in 0..4 {
            let text = "x".repeat(prefix) + &"😀".repeat(len);
            let document = document("text/plain", &text);
            assert_invariants(&document, &chunk(&document));
        }
    }
}

#[test]
fn graphemes_stay_whole() {
    let family = "👩‍👩‍👧‍👦";
    let chunks = chunk(&document("text/plain", &family.repeat(400)));
    assert!(chunks.len() > 1);
    for chunk in &chunks {
        assert_eq!(chunk.text.len() % family.len(), 0, "{:?}", chunk.text);
    }
}

/// The cost of each step is counted in atoms and chunks, which are a constant part of the text.
#[test]
fn breakless_text_has_linear_atoms() {
    for unit in ["a", "退", "😀", "{\"key\":1},", "|-|\n", "```\n", "\n"] {
        let text = unit.repeat(100_000 / unit.len());
        let mut atoms = vec![];
        atoms::split(&text, 0..text.len(), Format::Markdown, false, &mut atoms);
        assert!(atoms.len() <= text.len() / unit.len().min(4) + 1, "{unit:?}: {}", atoms.len());
        let whole: u64 = atoms.iter().map(|atom| atom.cost).sum();
        assert_eq!(whole, tokens::cost(&text), "{unit:?}: every character counts once");
        assert!(atoms.windows(2).all(|pair| pair[0].end < pair[1].end));
        assert_eq!(atoms.last().map(|atom| atom.end), Some(text.len()));
    }
}

/// Chunks grow with the text and no faster: a later part is never lost, nothing is cut to dust.
#[test]
fn the_number_of_chunks_is_linear() {
    for unit in [ENGLISH.repeat(20) + "\n\n", CHINESE.repeat(20), "# h\n\ntext\n\n".repeat(20)] {
        let count = |n: usize| chunk(&document("text/markdown", &unit.repeat(n))).len();
        let (few, many) = (count(10), count(100));
        assert!(many >= few * 9 && many <= few * 11, "{few} {many}");
    }
}

#[test]
fn noise_is_marked_in_every_chunk_it_reaches() {
    let noise = "QmFzZTY0IGlzIG5vdCBsYW5ndWFnZSwgMTIzNDU2Nzg5MA".repeat(60);
    let text = format!("before\n\n![x](data:image/png;base64,{noise}) after\n");
    let document = document("text/markdown", &text);
    let chunks = chunk(&document);
    assert_invariants(&document, &chunks);
    let quiet: String = chunks
        .iter()
        .map(|chunk| {
            let mut text = chunk.text.clone();
            for range in chunk.noise.iter().rev() {
                text.replace_range(range.start as usize..range.end as usize, "");
            }
            text
        })
        .collect();
    assert_eq!(quiet, "before\n\n![x](data:image/png;base64,) after\n");
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(ENGLISH.to_owned()),
        Just(CHINESE.to_owned()),
        Just(THAI.to_owned()),
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("# Heading\n".to_owned()),
        Just("### 标题\n".to_owned()),
        Just("Setext\n---\n".to_owned()),
        Just("```\n".to_owned()),
        Just("| a | b |\n|---|---|\n| 1 | 2 |\n".to_owned()),
        Just("- item\n".to_owned()),
        Just("😀\u{200d}👍🏽".to_owned()),
        Just("dGhpcyBpcyBiYXNlNjQgMTIzNDU2".repeat(8)),
        Just("\u{0}\u{1b}[31m\u{85}".to_owned()),
        "\\PC{0,40}",
        any::<String>(),
    ];
    prop::collection::vec((piece, 1..6_usize), 0..40)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, n)| piece.repeat(n)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn chunks_partition_any_text(text in any_text(), mime_type in prop::sample::select(vec![
        "text/plain", "text/markdown", "text/x-rst", "text/org", "text/csv", "text/x-log",
        "text/x-rust", "application/json", "text/html", "application/xml",
    ])) {
        let document = document(mime_type, &text);
        assert_invariants(&document, &chunk(&document));
    }

    /// Also for headings and pages that no extractor would give.
    #[test]
    fn chunks_partition_with_any_structure(
        text in any_text(),
        headings in prop::collection::vec((0..8_u8, 0..2000_usize), 0..20),
        pages in prop::collection::vec(0..2000_usize, 0..10),
    ) {
        let part = Part {
            format: Format::Markdown,
            headings: headings.into_iter().map(|(level, at)| Heading { level, text: "h".into(), at }).collect(),
            pages: pages.into_iter().map(|at| Page { at, number: 1, label: None }).collect(),
            text,
            index: 0,
        };
        let document = Document { parts: vec![part], ..Document::default() };
        assert_invariants(&document, &chunk(&document));
    }
}
