use super::*;

#[test]
fn values_get_the_keys_above_them_in_their_own_lines() {
    let rows = [
        (
            "{\n  \"kind\": \"Pod\",\n  \"spec\": {\n    \"containers\": [\n      {\n        \"image\": \"nginx\",\n        \"ports\": [80, 443]\n      }\n    ]\n  }\n}\n",
            "\nkind: Pod\n\n\n\nspec.containers[0].image: nginx\nspec.containers[0].ports: 80, 443\n\n\n\n\n",
        ),
        // Arrays a value a line, and wrapped ones.
        ("{\"a\": [\n\"x\",\n\"y\"\n]}", "\na[0]: x\na[1]: y\n"),
        ("{\"a\": [1, 2,\n3, 4]}", "a: 1, 2\na[2…3]: 3, 4"),
        ("[[1, 2],\n[3, 4]]", "[0]: 1, 2\n[1]: 3, 4"),
        // What shares a line shares the path.
        (
            "{\"items\": [\n{\"id\": 1, \"user\": {\"name\": \"Ann\"}, \"tags\": [\"a\", \"b\"]},\n{\"id\": 2}\n]}",
            "\nitems[0].id: 1; .user.name: Ann; .tags: a, b\nitems[1].id: 2\n",
        ),
        ("{\"a\": {\"b\": 1}, \"ab\": 2}", "a.b: 1; ab: 2"),
        // Empty values, and keys of all sorts.
        (
            "{\"a\": {}, \"b\": [], \"c\": \"\", \"\": null, \"d e\": true}",
            "a: {}; b: []; c: \"\"; \"\": null; d e: true",
        ),
        ("[{}, [], 1]", "[0]: {}; [1]: []; [2]: 1"),
        ("{}", "{}"),
        ("\"word\"", "word"),
        // Escapes.
        (
            r#"{"t": "\u9000\u6b3e\n\"x\" \\ \/ \ud83d\ude00 \ud83d"}"#,
            "t: 退款 \"x\" \\ / 😀 \\ud83d",
        ),
        // Comments, trailing commas, bare keys, single quotes.
        ("{\n  // why\n  a: 'x', /* so */\n  \"b\": [1,], # no\n}", ""),
        (
            "{\n  // why\n  a: 'it', /* so */\n  \"b\": [1,],\n}\n",
            "\n// why\na: it  /* so */\nb[0]: 1\n\n",
        ),
        // Of other scripts.
        (
            "{\"ผลิตภัณฑ์\": {\"ราคา\": 40}, \"政策\": {\"退款\": \"三十天\"}, \"سياسة\": [\"استرداد\"]}",
            "ผลิตภัณฑ์.ราคา: 40; 政策.退款: 三十天; سياسة[0]: استرداد",
        ),
        ("{\"a\": /* x */ {\"b\": {\"c\": 1}}}", "/* x */; a.b.c: 1"),
        ("{\"a\": NaN, \"a\": -Infinity, \"b\": 1e-5}", "a: NaN; a: -Infinity; b: 1e-5"),
        ("{\"a\": \"C:\\Users \\d+\"}", "a: C:\\Users \\d+"),
        // Several values, and some that were cut.
        ("{\"a\": 1}\n{\"b\": 2}\n", "a: 1\nb: 2\n"),
        ("{\"a\": {\"b\": 1,\n\"c\": ", "a.b: 1\na.c:"),
        ("{\"a\": {\"b", "a.b:"),
        ("{\"a\": {\"b\": {\n", "\na.b:"),
        ("{\"a\": [\"one\", \"two thr", "a: one, two thr"),
        ("{\"a\": [\"one\", tr", "a: one, tr"),
        ("{\"a\": \"退款\\", "a: 退款"),
        ("{not json}", ""),
        ("{\"a\": 1]", ""),
        ("{\"a\" 1}", ""),
        ("[{{ template }}]", ""),
        ("", ""),
    ];
    for (json, expected) in rows {
        let found = flatten(json).map(|flat| flat.text).unwrap_or_default();
        assert_eq!(found, expected, "{json}");
    }
}

#[test]
fn a_long_line_of_values_is_taken_apart() {
    let items: Vec<_> = (0..200)
        .map(|n| format!("{{\"id\":{n},\"name\":\"商品 {n}\",\"size\":[{n},2]}}"))
        .collect();
    let json = format!("{{\"items\":[{}],\"next\":null}}", items.join(","));
    let found = flatten(&json).unwrap();
    assert!(!found.keeps_lines);
    assert!(found.text.starts_with(
        "items[0].id: 0\nitems[0].name: 商品 0\nitems[0].size: 0, 2\n\nitems[1].id: 1\n"
    ));
    assert!(found.text.ends_with("items[199].size: 199, 2\n\nnext: null\n"), "{}", found.text);
    // In JSON lines, a record is a line.
    let lines = flatten_lines(&format!("{json}\n{{broken\n"));
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.ends_with("; next: null\n{broken\n"), "{lines}");
    // What is broken stays as it is.
    for line in
        ["{\"a\": \"退款 broken", "{\"a\": {\"b\": 1}", "{\"a", "[1, 2", "{\"a\": tr", "words"]
    {
        assert_eq!(flatten_lines(line), line);
    }
    assert_eq!(flatten_lines("{\"a\": \"\\u9000\n{\"b\": [1]}\r\n"), "{\"a\": \"退\nb[0]: 1\n");
    // One long text is no reason.
    let prose = format!("{{\"text\": \"{}\"}}\n", "Some words. ".repeat(1000));
    assert!(flatten(&prose).unwrap().keeps_lines);
}

#[test]
fn size_and_time_stay_linear() {
    let deep = "[".repeat(1 << 20);
    assert_eq!(flatten(&deep), None);
    let nested = "{\"key of some length\":".repeat(500) + "1" + &"}".repeat(500);
    assert!(flatten(&nested).unwrap().text.len() < nested.len());
    for json in [
        "{\"a long key for a list\": [\n".to_owned() + &"1,\n".repeat(300_000) + "2]}",
        "[".repeat(500) + &"1,\n".repeat(300_000),
        format!("[{}1]", "1,".repeat(300_000)),
        format!("[{}1]", "{\"a\":1},\n".repeat(200_000)),
        format!("[{}1]", "{\"a\":1},".repeat(200_000)),
        format!("[{}1]", "[],".repeat(200_000)),
        format!("{{\"{}\": [{}1]}}", "long key ".repeat(30), "[[1]],".repeat(100_000)),
        format!("{}[{}1", "{\"key of some length\":".repeat(400), "[1],\n".repeat(9)),
    ] {
        for found in [flatten(&json).unwrap().text, flatten_lines(&json)] {
            let (len, of) = (found.len(), json.len());
            assert!(len < of * 3 + (1 << 18), "{len} of {of}: {}", &json[..40]);
        }
    }
    let lines = "{\"a\":{\"a long key for a list of many lists\":[[1],[[2],[3]],[[[4]]]]}}\n"
        .repeat(30_000);
    assert!(flatten_lines(&lines).len() < lines.len() * 3 + (1 << 18));
}
