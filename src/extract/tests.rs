use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

fn resource(uri: &str, mime_type: Option<&str>) -> Resource {
    Resource { mime_type: mime_type.map(Into::into), ..Resource::new(uri) }
}

fn text(text: impl Into<String>) -> Body {
    Body::Text(text.into())
}

fn blob(bytes: impl AsRef<[u8]>) -> Body {
    Body::Blob(STANDARD.encode(bytes))
}

/// Reads one content at `uri` with a type of its own.
fn read_one(uri: &str, mime_type: Option<&str>, body: Body, limits: &Limits) -> Extraction {
    let content =
        Content { left_out: None, uri: uri.into(), mime_type: mime_type.map(Into::into), body };
    extract(&resource(uri, None), &Snapshot::new(vec![content]), limits)
}

fn document(uri: &str, mime_type: Option<&str>, body: Body) -> Document {
    match read_one(uri, mime_type, body, &Limits::default()) {
        Extraction::Document(document) => document,
        Extraction::Skipped(reason) => panic!("{uri} {mime_type:?}: {reason}"),
    }
}

fn reason(uri: &str, mime_type: Option<&str>, body: Body) -> String {
    match read_one(uri, mime_type, body, &Limits::default()) {
        Extraction::Document(document) => panic!("{uri} {mime_type:?}: {document:?}"),
        Extraction::Skipped(reason) => reason,
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
const WASM: &[u8] = b"\0asm\x01\0\0\0\x01\x85\x80\x80";
const HTML: &str = "<!doctype html><title>Title</title><script>mimescript</script><p>mimehtml";

#[test]
fn the_kind_comes_from_type_suffix_or_look() {
    use Format::{Code, Lines, Markdown, Plain};
    let rows: &[(&str, Option<&str>, &str, &str, Format)] = &[
        ("x://a", Some("text/plain"), "words", "text/plain", Plain),
        ("x://a", Some("Text/Markdown; charset=UTF-8"), "# mimeword2", "text/markdown", Markdown),
        ("x://a.md", Some("text/plain"), "words", "text/markdown", Markdown),
        ("x://a.md", Some("application/octet-stream"), "words", "text/markdown", Markdown),
        ("x://a.md", None, "words", "text/markdown", Markdown),
        ("x://a.txt", Some("text/plain"), "# not\n\nmarkdown\n\n# here", "text/plain", Plain),
        ("x://a", None, "# Title\n\nwords\n\n## More", "text/markdown", Markdown),
        ("x://a", Some("text/plain"), "# Title\n\nwords\n\n## More", "text/markdown", Markdown),
        ("x://a.rs", None, "fn main() {}", "text/x-rust", Code),
        ("x://a", Some("application/json"), "{\"a\": 1}", "application/json", Lines),
        ("x://a", Some("application/vnd.api+json"), "{}", "application/vnd.api+json", Lines),
        ("x://a", Some("application/json"), "{ {{ x }} }", "application/json", Code),
        ("x://a", None, "{\"a\": 1}", "application/json", Lines),
        ("x://a.jsonl", None, "{\"a\": 1}\n{}", "application/x-ndjson", Lines),
        ("x://a.csv", None, "a,b\n1,2", "text/csv", Lines),
        ("x://a", Some("text/csv"), "a,b\n1,2", "text/csv", Lines),
        ("x://a.log", Some("text/plain"), "one\ntwo", "text/x-log", Lines),
        ("x://a.yml", None, "a: 1", "application/yaml", Code),
        ("x://a.toml", Some("text/plain"), "a = 1", "application/toml", Code),
        ("x://a", Some("text/plain"), HTML, "text/html", Markdown),
        ("x://a.md", None, HTML, "text/html", Markdown),
        ("x://a", Some("application/json"), HTML, "text/html", Markdown),
        ("x://a.php", Some("text/plain"), HTML, "text/x-php", Code),
        ("x://a", Some("text/html"), "no tags\nat all", "text/plain", Plain),
        ("x://a", Some("application/xhtml+xml"), "<html><p>x", "application/xhtml+xml", Markdown),
        ("x://a.svg", None, "<svg><text>x</text></svg>", "image/svg+xml", Plain),
        (
            "x://a",
            Some("application/pdf"),
            "Text that the server took from it.",
            "text/plain",
            Plain,
        ),
        ("x://a.png", None, "A picture's description.", "text/plain", Plain),
        ("x://a.rst", None, "Title\n=====\n", "text/x-rst", Markdown),
        ("x://a", Some("garbage"), "words", "text/plain", Plain),
        ("x://a", Some(""), "", "text/plain", Plain),
    ];
    for (uri, declared, body, mime_type, format) in rows {
        let found = document(uri, *declared, text(*body));
        assert_eq!(found.mime_type, *mime_type, "{uri} {declared:?} {body}");
        assert_eq!(found.parts[0].format, *format, "{uri} {declared:?} {body}");
        let as_blob = document(uri, *declared, blob(body));
        assert_eq!(as_blob.mime_type, *mime_type, "blob: {uri} {declared:?} {body}");
        assert_eq!(as_blob.parts[0].text, found.parts[0].text);
    }
}

#[test]
fn corrections_are_said() {
    let rows = [
        ("x://a", Some("text/plain"), text(HTML), vec!["declared text/plain, is text/html"]),
        (
            "x://a",
            Some("application/octet-stream"),
            blob("words"),
            vec!["declared application/octet-stream, is text/plain"],
        ),
        (
            "x://a",
            Some("text/plain; charset=us-ascii"),
            blob("退款政策"),
            vec!["declared charset us-ascii, is UTF-8"],
        ),
        ("x://a", Some("text/plain"), blob(b"\xff\xfea\0b\0"), vec!["decoded from UTF-16LE"]),
        ("x://a", Some("text/markdown"), text("# Fine"), vec![]),
        ("x://a.md", None, text("# Fine"), vec![]),
        (
            "x://a.xml",
            None,
            text("<a>kept</a><b <<<"),
            vec!["the XML is broken at byte 11; what stands before it was read"],
        ),
    ];
    for (uri, declared, body, notes) in rows {
        assert_eq!(document(uri, declared, body).notes, notes, "{uri} {declared:?}");
    }
}

#[test]
fn what_has_no_text_says_why() {
    let zip = b"PK\x03\x04\x14\0\0\0\x08\0\xff\xfe\xfd\xfc\x80\x81".to_vec();
    let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    let random: Vec<u8> =
        (0..999_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
    let rows: Vec<(Option<&str>, Body, &str)> = vec![
        (
            Some("text/plain"),
            blob(WASM),
            "declared text/plain, but application/wasm is binary and has no text",
        ),
        (
            Some("application/octet-stream"),
            blob(WASM),
            "application/wasm is binary and has no text",
        ),
        (Some("image/jpeg"), text(STANDARD.encode([7; 600])), "image/jpeg has no text"),
        (Some("image/png"), text("data:image/png;base64,AAAA"), "image/png has no text"),
        (
            Some("application/pdf"),
            blob(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"),
            "the PDF is broken",
        ),
        (
            None,
            text("%PDF-1.7\n%���� 1 0 obj"),
            "the content isn't application/pdf, and has no text",
        ),
        (Some(docx), blob(&zip), "the archive is broken: "),
        (
            Some(docx),
            blob([7; 99]),
            "the content isn't application/vnd.openxmlformats-officedocument.wordprocessingml.document, and has no text",
        ),
        (
            Some("application/x-xz"),
            blob(b"\xfd7zXZ\0\0\x04\xff"),
            "archives of this kind are not opened (application/x-xz)",
        ),
        (None, blob(&random), "binary data has no text"),
        (
            Some("text/markdown"),
            blob(&random),
            "declared text/markdown, but it is binary data without text",
        ),
        (
            Some("text/html;profile=mcp-app"),
            text(HTML),
            "an MCP app's user interface is no text to search",
        ),
        (
            Some("text/plain"),
            Body::Blob("This, surely, isn't base64.".into()),
            "the blob of x://a isn't base64: it has spaces inside a line",
        ),
        (
            Some("text/plain"),
            Body::Blob("退款".into()),
            "the blob of x://a isn't base64: it has '退' at position 0",
        ),
    ];
    for (declared, body, expected) in rows {
        let found = reason("x://a", declared, body);
        assert!(found.starts_with(expected), "{declared:?}: {found}, not {expected}");
    }
    assert_eq!(
        extract(&resource("x://a", None), &Snapshot::new(vec![]), &Limits::default()),
        Extraction::Skipped("the server returned no contents".into())
    );
}

/// "BM" begins a bitmap, "MZ" a program, and both begin words.
#[test]
fn short_marks_of_binaries_dont_hide_text() {
    for words in
        ["BM25 ranks documents.", "MZ is a code.", "GIF", "ID3 tags", "II*", "%! nothing", "#!AMR"]
    {
        let found = document("x://a", None, blob(words));
        assert_eq!(found.parts[0].text, words);
    }
}

#[test]
fn blobs_in_other_alphabets_and_charsets_are_text() {
    let words = "退款申请须在购买后三十天内提交，商品应保持完好，运费由买家承担。>>>???";
    let (gbk, ..) = encoding_rs::GBK.encode(words);
    for (declared, base64) in [
        ("text/plain", URL_SAFE_NO_PAD.encode(words)),
        ("text/plain; charset=GB2312", STANDARD.encode(&gbk)),
        ("text/plain", STANDARD.encode(&gbk)),
    ] {
        assert_eq!(document("x://a", Some(declared), Body::Blob(base64)).parts[0].text, words);
    }
    let html = "<html><head><meta charset=\"windows-1251\"><p>Возврат возможен";
    let (bytes, ..) = encoding_rs::WINDOWS_1251.encode(html);
    assert_eq!(
        document("x://a", Some("text/html"), blob(bytes)).parts[0].text,
        "Возврат возможен\n"
    );
}

#[test]
fn contents_of_one_read_are_parts() {
    let content = |uri: &str, mime_type: Option<&str>, body| Content {
        left_out: None,
        uri: uri.into(),
        mime_type: mime_type.map(Into::into),
        body,
    };
    let snapshot = Snapshot::new(vec![
        content("dir://x/a.wasm", Some("application/wasm"), blob(WASM)),
        content("dir://x/b.md", None, text("# Second\n")),
        content("dir://x/c.csv", None, text("a,b\n")),
        content("dir://x/d.wasm", Some("application/wasm"), blob(WASM)),
        content("dir://x/e.png", Some("image/png"), blob(PNG)),
    ]);
    let directory = resource("dir://x", Some("inode/directory"));
    let Extraction::Document(found) = extract(&directory, &snapshot, &Limits::default()) else {
        panic!("it has text");
    };
    assert_eq!(found.title.as_deref(), Some("Second"));
    assert_eq!(found.mime_type, "text/markdown");
    let parts: Vec<_> = found.parts.iter().map(|part| (part.index, part.format)).collect();
    assert_eq!(parts, [(1, Format::Markdown), (2, Format::Lines), (4, Format::Markdown)]);
    assert_eq!(found.parts[2].text, "PNG image, 1 × 1 pixels\n");
    assert_eq!(found.notes, ["application/wasm is binary and has no text"]);

    let limits = Limits { max_parts: 2, ..Limits::default() };
    let Extraction::Document(found) = extract(&directory, &snapshot, &limits) else {
        panic!("it has text");
    };
    assert_eq!(found.parts.len(), 1);
    assert!(found.truncated);
    assert!(found.notes[1].contains("3 contents are left out"), "{:?}", found.notes);
}

#[test]
fn what_a_server_kept_back_is_said() {
    let left_out = Some("9 of 20 bytes are left out".to_owned());
    let content = Content { left_out, uri: "x://a".into(), mime_type: None, body: text("one") };
    let resource = Resource::new("x://a");
    let snapshot = Snapshot::new(vec![content]);
    let Extraction::Document(found) = extract(&resource, &snapshot, &Limits::default()) else {
        panic!("it has text");
    };
    assert!(found.truncated);
    assert_eq!(found.notes, ["9 of 20 bytes are left out"]);
}

#[test]
fn the_resources_type_counts_where_the_content_has_none() {
    let content =
        Content { left_out: None, uri: "x://a".into(), mime_type: None, body: text("a: 1") };
    let snapshot = Snapshot::new(vec![content]);
    let Extraction::Document(found) =
        extract(&resource("x://a", Some("application/yaml")), &snapshot, &Limits::default())
    else {
        panic!("it has text");
    };
    assert_eq!(found.mime_type, "application/yaml");
}

#[test]
fn limits_cut_and_say_so() {
    let limits = Limits { max_text_bytes: 20, max_blob_bytes: 64, ..Limits::default() };
    let Extraction::Document(found) =
        read_one("x://a", None, text("first line\nsecond line\nthird line\n"), &limits)
    else {
        panic!("it has text");
    };
    assert_eq!(found.parts[0].text, "first line\n");
    assert!(found.truncated);
    assert_eq!(
        found.notes,
        ["only the first 11 of 34 bytes of text are indexed (limits.max_text_bytes)"]
    );
    // The end of a log says as much as its beginning.
    let limits_of_logs = Limits { max_text_bytes: 8192, ..Limits::default() };
    let log: String = (0..2000).map(|n| format!("line {n} of the log\n")).collect();
    let Extraction::Document(found) = read_one("x://a.log", None, text(log), &limits_of_logs)
    else {
        panic!("it has text");
    };
    let part = &found.parts[0].text;
    assert!(part.starts_with("line 0 of") && part.ends_with("line 1999 of the log\n"));
    assert!(part.contains("lines are left out …]\nline ") && part.len() <= 8192 && found.truncated);

    // What has to be whole to be opened isn't.
    let pdf = |len: usize| blob([b"%PDF-1.7\n".as_slice(), &vec![b'a'; len - 9]].concat());
    for (len, is_over) in [(64, false), (65, true), (10_000, true)] {
        let Extraction::Skipped(reason) = read_one("x://a", None, pdf(len), &limits) else {
            panic!("it is no PDF at all");
        };
        let said = reason.contains("over the limit of 64 (limits.max_blob_bytes)");
        assert_eq!(said, is_over, "{reason}");
    }
    // Text is text, also as a blob, and in another charset.
    let log = (0..2000).map(|n| format!("第{n}行日志\n")).collect::<String>();
    let (bytes, ..) = encoding_rs::GB18030.encode(&log);
    let limits = Limits { max_blob_bytes: 64, ..limits_of_logs };
    let Extraction::Document(found) = read_one("x://a.log", None, blob(&*bytes), &limits) else {
        panic!("it has text");
    };
    let part = &found.parts[0].text;
    assert!(part.starts_with("第0行日志\n") && part.ends_with("第1999行日志\n"), "{part}");
    assert!(part.len() <= 8192 && found.truncated);
}

#[test]
fn lines_stay_those_of_the_text() {
    let rows = [
        ("x://a.json", "{\n  \"title\": \"\\u9000\\u6b3e\\n\"\n}\n", "\ntitle: 退款 \n\n"),
        ("x://a.yaml", "a:\r\n\r\n  b: 2 # c\r\n", "\n\na.b: 2 # c\n"),
        ("x://a.toml", "[a]\nb = \"返金\"\n", "[a]\na.b = \"返金\"\n"),
        ("x://a.jsonl", "{\"a\": {\"b\": 1}}\n\n{\"a\": [2]}\n", "a.b: 1\n\na[0]: 2\n"),
        ("x://a.txt", "\u{feff}one\0nulword\ntwo\u{c}\n", "one nulword\ntwo \n"),
        ("x://a.log", "\x1b[31mERROR\x1b[0m x\n", "ERROR x\n"),
    ];
    for (uri, body, expected) in rows {
        let found = document(uri, None, text(body));
        assert_eq!(found.parts[0].text, expected, "{uri}");
        assert_eq!(found.parts[0].text.lines().count(), body.lines().count());
    }
}

/// A ZIP archive of texts.
fn zip(members: &[(&str, &str)]) -> Vec<u8> {
    use std::io::Write as _;
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, text) in members {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn notes_and_text_boxes_cut_no_paragraph() {
    let odt = |body: &str| {
        let content = format!("<doc><text>{body}</text></doc>");
        zip(&[("mimetype", "application/vnd.oasis.opendocument.text"), ("content.xml", &content)])
    };
    let rows = [
        (
            "<p>退款须在<note><note-citation>1</note-citation><note-body><p>自收货日起</p><p>算</p></note-body></note>三十天内</p>",
            "退款须在三十天内\n\n# Footnotes\n\n自收货日起 算\n",
        ),
        (
            "<h outline-level='2'>Возврат<annotation><creator>Anna</creator><date>2026</date><p>спросить</p></annotation> денег</h>",
            "## Возврат денег\n\n# Comments\n\nспросить\n",
        ),
        (
            "<p>one <frame><text-box><p>boxed</p></text-box></frame>two</p><p>three</p>",
            "one \nboxed\ntwo\n\nthree\n",
        ),
    ];
    for (body, expected) in rows {
        assert_eq!(document("x://a.odt", None, blob(odt(body))).parts[0].text, expected, "{body}");
    }
    let ods = zip(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        (
            "content.xml",
            "<table name='T'><table-row><table-cell><annotation><creator>Anna</creator><date>2026</date><p>why</p></annotation><p>价格</p></table-cell></table-row></table>",
        ),
    ]);
    let text = &document("x://a.ods", None, blob(ods)).parts[0].text;
    assert!(text.contains("价格") && text.contains("why") && !text.contains("Anna"), "{text}");
}

/// A cell over several columns moves none of those beside it.
#[test]
fn merged_cells_keep_their_columns() {
    let docx = zip(&[(
        "word/document.xml",
        "<body><tbl>
        <tr><tc><tcPr><gridSpan val='2'/></tcPr><p><t>地区</t></p></tc><tc><p><t>天数</t></p></tc></tr>
        <tr><tc><p><t>上海</t></p></tc><tc><p><t>b</t></p></tc><tc><p><t>15</t></p></tc></tr>
        <tr><trPr><gridBefore val='2'/></trPr><tc><p><t>40</t></p></tc></tr>
        <tr><tc><tbl><tr><tc><tcPr><gridSpan val='9'/></tcPr><p><t>in</t></p></tc></tr></tbl><p/></tc><tc><p><t>c</t></p></tc></tr>
        </tbl></body>",
    )]);
    let odt = zip(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        (
            "content.xml",
            "<b><table>
            <table-row><table-cell number-columns-spanned='2'><p>地区</p></table-cell><covered-table-cell/><table-cell><p>天数</p></table-cell></table-row>
            <table-row><table-cell><p>上海</p></table-cell><table-cell><p>b</p></table-cell><table-cell><p>15</p></table-cell></table-row>
            <table-row><table-cell number-columns-repeated='2'/><table-cell><p>40</p></table-cell></table-row>
            </table></b>",
        ),
    ]);
    for (name, bytes) in [("a.docx", docx), ("a.odt", odt)] {
        let found = document(&format!("x://{name}"), None, blob(bytes));
        let rows: Vec<Vec<&str>> = found.parts[0]
            .text
            .lines()
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert_eq!(rows[0], ["地区", "", "天数"], "{name}");
        assert_eq!(rows[2], ["上海", "b", "15"], "{name}");
        assert_eq!(rows[3], ["", "", "40"], "{name}");
    }
}

/// PNG's text may be packed, in Latin-1 or in UTF-8.
#[test]
fn a_pictures_packed_text_is_read() {
    use std::io::Write as _;
    let packed = |text: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let mut png = [PNG, &[0; 4]].concat();
    for (kind, head, text) in [
        (b"zTXt", b"Title\0\0".as_slice(), packed(b"R\xe9sum\xe9")),
        (b"iTXt", b"Description\0\x01\0zh\0\0", packed("退款政策".as_bytes())),
        (b"iTXt", b"Author\0\0\0\0\0", "Анна".into()),
        // A bomb is no text, and neither is what is broken.
        (b"zTXt", b"Comment\0\0", packed(&vec![b'a'; 10 << 20])),
        (b"zTXt", b"Copyright\0\0", b"broken".into()),
    ] {
        png.extend(((head.len() + text.len()) as u32).to_be_bytes());
        png.extend(kind);
        png.extend(head);
        png.extend(text);
        png.extend([0; 4]);
    }
    let found = document("x://a.png", None, blob(&png));
    assert_eq!(
        found.parts[0].text,
        "PNG image, 1 × 1 pixels\nTitle: Résumé\nDescription: 退款政策\nArtist: Анна\n"
    );
}

#[test]
fn film_of_the_kinds_that_browsers_and_cameras_make_says_its_title() {
    let mut mkv = b"\x1a\x45\xdf\xa3\x8b\x42\x82\x88matroska".to_vec();
    mkv.extend(b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\x15\x49\xa9\x66\x8f\x7b\xa9\x8c");
    mkv.extend("退款政策".as_bytes());
    // A void element, as muxers leave room.
    mkv.extend(b"\xec\x41\x2c");
    mkv.extend([0; 300]);
    let mut avi = b"RIFF\x30\0\0\0AVI LIST\x18\0\0\0INFOINAM\x0c\0\0\0".to_vec();
    avi.extend("退款政策".as_bytes());
    // With a header of another shape.
    let head = b"\x1a\x45\xdf\xa3\x10\0\0\x0a\x42\x82\x10\0\0\x04webm";
    let webm = [head.as_slice(), &mkv[16..]].concat();
    for (name, bytes, essence) in [
        ("a.mkv", mkv, "video/x-matroska"),
        ("a.webm", webm, "video/webm"),
        ("a.avi", avi, "video/x-msvideo"),
    ] {
        let found = document(&format!("x://{name}"), None, blob(bytes));
        assert_eq!(found.title.as_deref(), Some("退款政策"), "{name}");
        assert_eq!((&*found.parts[0].text, &*found.mime_type), ("Title: 退款政策\n", essence));
    }
}

/// A reference or an escape may stand for a control, whatever the format.
#[test]
fn no_control_comes_out_of_any_markup() {
    let odf = |kind: &str, body: &str| {
        zip(&[
            ("mimetype", &format!("application/vnd.oasis.opendocument.{kind}")),
            ("meta.xml", "<title>a&#1;b</title>"),
            ("content.xml", body),
        ])
    };
    let xml = "<r><title>a&#1;b</title><p>c&#x9b;d &#27;e</p></r>";
    let rows: Vec<(&str, Body)> = vec![
        ("a.html", text("<title>a&#1;b</title><h1>h&#2;</h1><p>c&#x1b;d&#x81;e")),
        (
            "a.html",
            text("<pre>a&#1;b&#13;c</pre><img alt='d&#3;e'><table><tr><td>f&#4;<td>g</table>"),
        ),
        ("a.xml", text(xml)),
        ("a.xml", text("<r a='b&#1;c'/>")),
        ("a.svg", text("<svg><title>a&#1;b</title><text>c&#2;d</text></svg>")),
        ("a.json", text(r#"{"a\u0001b": "c\u001bd\u009be\rf"}"#)),
        ("a.jsonl", text("{\"a\": \"b\\u0001c\"}\n{\"a\": \"d\\u0000e\"}\n")),
        (
            "a.ipynb",
            text(
                r##"{"cells": [{"cell_type": "markdown", "source": "# a\u0001b\r\n"},
                {"cell_type": "code", "source": "c\u0002", "outputs": [{"text": "\u001b[31md"}]}]}"##,
            ),
        ),
        ("a.rtf", text(r"{\rtf1{\info{\title a\u1?b}}c\'01d\u155?e\u27?[31mf}")),
        (
            "a.eml",
            text(
                "Subject: =?utf-8?q?a=01b?=\nContent-Type: text/html\n\n<p>c&#1;d</p><h2>e&#2;f</h2>",
            ),
        ),
        (
            "a.eml",
            text("Subject: x\nContent-Transfer-Encoding: quoted-printable\n\na=01b=1B[31mc\n"),
        ),
        (
            "a.docx",
            blob(zip(&[
                ("docProps/core.xml", "<title>a&#1;b</title>"),
                (
                    "word/document.xml",
                    "<body><p><t>c&#2;d&#27;[31me</t></p><tbl><tr><tc><p><t>f&#3;</t></p></tc><tc/></tr></tbl></body>",
                ),
            ])),
        ),
        (
            "a.pptx",
            blob(zip(&[
                ("ppt/presentation.xml", "<p/>"),
                (
                    "ppt/slides/slide1.xml",
                    "<s><sp><ph type='title'/><p><t>a&#1;b</t></p></sp><sp><p><t>c&#2;d</t></p></sp></s>",
                ),
            ])),
        ),
        ("a.odt", blob(odf("text", "<b><h>a&#1;b</h><p>c&#2;d</p></b>"))),
        ("a.odp", blob(odf("presentation", "<b><page name='a&#1;b'><p>c&#2;d</p></page></b>"))),
        (
            "a.ods",
            blob(odf(
                "spreadsheet",
                "<table name='a&#1;b'><table-row><table-cell><p>c&#2;d</p></table-cell></table-row></table>",
            )),
        ),
        (
            "a.epub",
            blob(zip(&[
                ("mimetype", "application/epub+zip"),
                ("META-INF/container.xml", "<rootfile full-path='b.opf'/>"),
                (
                    "b.opf",
                    "<p><title>a&#1;b</title><item id='c' href='c.html'/><itemref idref='c'/></p>",
                ),
                ("c.html", "<h1>a&#1;b</h1><p>c&#2;d</p>"),
            ])),
        ),
        ("a.zip", blob(zip(&[("a\u{1}b.html", "<p>c&#2;d</p>"), ("b.wasm\u{2}", "\0asm")]))),
        ("a.srt", text("1\n00:00:01,000 --> 00:00:02,000\na\u{1}b\n")),
    ];
    for (name, body) in rows {
        let found = document(&format!("x://{name}"), None, body);
        let part = &found.parts[0];
        let labels = part.pages.iter().filter_map(|page| page.label.as_deref());
        let said = [&part.text].into_iter().chain(&found.title).chain(&found.notes);
        let said = said.map(String::as_str).chain(part.headings.iter().map(|h| &*h.text));
        for text in said.chain(labels) {
            let strange = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
            assert!(!text.contains(strange), "{name}: {text:?}");
            assert!(!text.contains("[31m"), "{name}: an escape sequence is left: {text:?}");
        }
        for heading in &part.headings {
            assert!(part.text[heading.at..].starts_with('#'), "{name}: {part:?}");
        }
    }
}

#[test]
fn titles_come_from_the_document() {
    let rows = [
        ("x://a.md", "# 退款政策\n", Some("退款政策")),
        ("x://a.md", "Setext\n======\n", Some("Setext")),
        ("x://a.md", "---\ntitle: นโยบาย\n---\n# Other\n", Some("นโยบาย")),
        ("x://a.html", HTML, Some("Title")),
        ("x://a.html", "<h2>No</h2><h1>환불</h1>", Some("환불")),
        ("x://a.json", "{\"title\": \"no\"}", None),
        ("x://a.txt", "words", None),
        ("x://a.py", "# comment", None),
        ("x://a.org", "#+TITLE: Notes\n", Some("Notes")),
        ("x://a.rss", "<rss><channel><title>News</title></channel></rss>", Some("News")),
    ];
    for (uri, body, title) in rows {
        assert_eq!(document(uri, None, text(body)).title.as_deref(), title, "{uri}");
    }
}

proptest::proptest! {
    /// Whatever a server sends is text, or has a reason.
    #[test]
    fn any_bytes_are_text_or_refused(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        declared in proptest::sample::select(vec![
            None, Some("text/plain"), Some("text/html"), Some("application/json"), Some("image/png"),
            Some("text/plain; charset=shift_jis"), Some("text/csv; charset=utf-16"),
        ]),
    ) {
        match read_one("x://a", declared, blob(&bytes), &Limits::default()) {
            Extraction::Document(found) => proptest::prop_assert!(
                found.parts[0].text.chars().all(|c| !c.is_control() || "\t\r\n".contains(c))
            ),
            Extraction::Skipped(reason) => proptest::prop_assert!(!reason.is_empty()),
        }
    }

    #[test]
    fn any_string_is_read(body in ".{0,200}", base64 in "[A-Za-z0-9+/=_\n -]{0,60}") {
        for body in [text(body), Body::Blob(base64)] {
            read_one("x://a", None, body, &Limits::default());
        }
    }
}
