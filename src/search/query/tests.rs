use proptest::prelude::*;

use super::*;

fn read(typed: &str) -> String {
    let query = parse(typed, Bounds::default());
    let Query { text, phrases, excluded, servers, mime_types, uris } = query;
    let mut shown = text;
    let lists = [
        ("phrase", phrases),
        ("not", excluded),
        ("server", servers),
        ("mime", mime_types),
        ("uri", uris),
    ];
    for (name, values) in lists {
        for value in values {
            shown.push_str(&format!(" {name}[{value}]"));
        }
    }
    shown.trim().to_owned()
}

#[test]
fn what_was_typed_becomes_a_query() {
    let cases = [
        ("", ""),
        ("  \t ", ""),
        ("refund deadline", "refund deadline"),
        ("\"refund deadline\" days", "days phrase[refund deadline]"),
        ("“refund deadline”", "phrase[refund deadline]"),
        ("「退款 期限」是多久", "是多久 phrase[退款 期限]"),
        ("什么是『退款期限』", "什么是 phrase[退款期限]"),
        ("关于\"退款\"的规定", "关于 的规定 phrase[退款]"),
        ("\"open end", "\"open end"),
        ("「ひらく", "「ひらく"),
        ("\"\" x", "x"),
        ("refund -shipping", "refund not[shipping]"),
        ("refund -\"free shipping\"", "refund not[free shipping]"),
        ("退款 -运费", "退款 not[运费]"),
        ("-", "-"),
        ("--flag", "--flag"),
        ("-5", "-5"),
        ("a - b", "a - b"),
        ("a-b", "a-b"),
        ("C++", "C++"),
        ("5\"x7\"", "5\"x7\""),
        ("http://x", "http://x"),
        ("foo:bar", "foo:bar"),
        ("server:docs refund", "refund server[docs]"),
        ("SERVER:docs", "server[docs]"),
        ("server:\"My Server\" x", "x server[My Server]"),
        ("mime:text/* uri:wiki://a/ uri:\"b c\"", "mime[text/*] uri[wiki://a/] uri[b c]"),
        ("server: docs", "server: docs"),
        ("uri:\"open", "uri[\"open]"),
        ("-server:docs", "not[server:docs]"),
        ("возврат \"срок оплаты\"", "возврат phrase[срок оплаты]"),
        ("नियम \"वापसी नीति\"", "नियम phrase[वापसी नीति]"),
    ];
    for (typed, expected) in cases {
        assert_eq!(read(typed), expected, "for {typed:?}");
    }
}

#[test]
fn what_is_beyond_the_bounds_is_left_out() {
    let many = "word ".repeat(100);
    let query = parse(&many, Bounds::default());
    assert_eq!(query.text.split(' ').count(), 64);

    let long = "退".repeat(4000);
    assert_eq!(parse(&long, Bounds::default()).text.len(), 4095);
}

proptest! {
    #[test]
    fn nothing_that_can_be_typed_fails(typed in "\\PC*") {
        let query = parse(&typed, Bounds::default());
        prop_assert!(query.text.len() <= 4 << 10);
    }

    #[test]
    fn no_mixture_of_signs_fails(typed in "[a退 \"“”「」『』:-]{0,40}|(server:|uri:|-|\"|x ){0,90}") {
        let query = parse(&typed, Bounds { bytes: 64, terms: 8 });
        let terms = query.phrases.len() + query.excluded.len() + query.servers.len();
        prop_assert!(terms <= 8);
    }
}
