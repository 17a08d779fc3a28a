//! Workers of the real program, and documents that do their worst to them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::write::GzEncoder;
use flate2::{Compress, Compression, FlushCompress};
use resdex::config::Limits;
use resdex::extract::Extraction;
use resdex::model::{Body, Content, Resource, Snapshot};
use resdex::worker::Workers;

/// A picture of one pixel: opened by a worker, whatever its URI asks of that.
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn workers(count: usize) -> Workers {
    Workers::of(env!("CARGO_BIN_EXE_resdex"), count)
}

async fn extract(workers: &Workers, uri: &str, bytes: &[u8], limits: &Limits) -> Extraction {
    let body = Body::Blob(BASE64_STANDARD.encode(bytes));
    let content = Content { left_out: None, uri: uri.into(), mime_type: None, body };
    let snapshot = Snapshot::new(vec![content]);
    workers.extract(&Resource::new(uri), &snapshot, limits).await.unwrap()
}

fn reason(found: Extraction) -> String {
    match found {
        Extraction::Skipped(reason) => reason,
        Extraction::Document(document) => panic!("it has text: {document:?}"),
    }
}

async fn assert_well(workers: &Workers) {
    match extract(workers, "x://a.gif", GIF, &Limits::default()).await {
        Extraction::Document(document) => {
            assert_eq!(document.parts[0].text, "GIF image, 1 × 1 pixels\n");
        }
        Extraction::Skipped(reason) => panic!("{reason}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_document_does_costs_itself_only() {
    let workers = workers(1);
    let limits = Limits { extract_timeout: Duration::from_secs(60), ..Limits::default() };
    for (fault, expected) in [
        ("fault://panic", "its reader failed: the file is broken in an unexpected way"),
        ("fault://overflow", "it is nested too deeply to be read"),
        (
            "fault://memory",
            "reading it takes more than 512 MiB of memory (limits.extract_memory_bytes)",
        ),
        ("fault://output", "its reader returned too much"),
    ] {
        let found = extract(&workers, fault, GIF, &limits).await;
        assert_eq!(reason(found), expected, "{fault}");
        assert_well(&workers).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_never_ends_is_given_up_and_holds_nobody_up() {
    let workers = workers(2);
    let limits = Limits { extract_timeout: Duration::from_secs(5), ..Limits::default() };
    let hanging = {
        let (workers, limits) = (workers.clone(), limits.clone());
        tokio::spawn(async move { extract(&workers, "fault://hang", GIF, &limits).await })
    };
    // The other worker goes on meanwhile.
    assert_well(&workers).await;
    assert!(!hanging.is_finished());
    let found = hanging.await.unwrap();
    assert_eq!(reason(found), "reading it took longer than 5 s (limits.extract_timeout)");
    assert_well(&workers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_opens_no_file_no_socket_and_starts_nothing() {
    // The fault panics if it gets any of them.
    match extract(&workers(1), "fault://file", GIF, &Limits::default()).await {
        Extraction::Document(_) => {}
        Extraction::Skipped(reason) => panic!("{reason}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_explodes_is_refused_at_the_limit() {
    let workers = workers(1);
    let limits = Limits { extract_timeout: Duration::from_secs(300), ..Limits::default() };
    // A gigabyte of spaces, a megabyte at a time.
    let mut packed = GzEncoder::new(vec![], Compression::fast());
    packed.write_all(&vec![b' '; 1 << 20]).unwrap();
    let packed = packed.finish().unwrap().repeat(1024);
    let found = reason(extract(&workers, "x://a.txt.gz", &packed, &limits).await);
    assert!(found.starts_with("it unpacks to more than 64 MiB"), "{found}");

    let mut block = Vec::with_capacity(1 << 16);
    let mut compress = Compress::new(Compression::fast(), false);
    compress.compress_vec(&vec![b' '; 1 << 20], &mut block, FlushCompress::Full).unwrap();
    let mut gigabyte = block.repeat(1024);
    // An empty last block (RFC 1951, 3.2.3).
    gigabyte.extend([3, 0]);
    // Whether it says so or not (xerj-org/xerj#78), and soon.
    let soon = Limits { extract_timeout: Duration::from_secs(10), ..Limits::default() };
    // What is more than was said is left out.
    for (said, expected) in
        [(1 << 30, "it unpacks to more than 64 MiB"), (1000, "the Word document has no text")]
    {
        let docx = archive(&[("word/document.xml", gigabyte.clone(), said, 0)]);
        let found = reason(extract(&workers, "x://a.docx", &docx, &soon).await);
        assert!(found.starts_with(expected), "{said}: {found}");
    }

    let many: Vec<_> = (0..2_001).map(|n| (format!("{n}.txt"), &b"x"[..])).collect();
    let many: Vec<_> = many.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let found = reason(extract(&workers, "x://a.zip", &zip(&many), &limits).await);
    assert_eq!(found, "2001 files are over the limit of 2000 (limits.max_archive_members)");

    // An archive in an archive in an archive: one level is opened.
    let inner = zip(&[("deep.txt", b"deep")]);
    let middle = zip(&[("inner.zip", &inner), ("near.txt", b"near")]);
    match extract(&workers, "x://a.zip", &middle, &limits).await {
        Extraction::Document(document) => {
            assert!(document.parts[0].text.contains("near"), "{document:?}");
            assert!(!document.parts[0].text.contains("deep"), "{document:?}");
            assert!(document.notes[0].contains("an archive within an archive"), "{document:?}");
        }
        Extraction::Skipped(reason) => panic!("{reason}"),
    }
    assert_well(&workers).await;
}

/// Nesting overflows no stack, repetition no memory, and neither takes long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_nested_or_repeated_without_end_costs_itself_only() {
    const DEEP: usize = 200_000;
    let workers = workers(1);
    let limits = Limits { extract_timeout: Duration::from_secs(60), ..Limits::default() };
    let deep = |open: &str, inner: &str, close: &str| {
        [open.repeat(DEEP), inner.into(), close.repeat(DEEP)].concat()
    };
    let packed = |member: &str, text: &str| zip(&[(member, text.as_bytes())]);
    let odf = |kind: &str, body: &str| {
        let kind = format!("application/vnd.oasis.opendocument.{kind}");
        let content = format!("<office:body xmlns:office='o'>{body}</office:body>");
        zip(&[("mimetype", kind.as_bytes()), ("content.xml", content.as_bytes())])
    };
    let laughs: String = (1..10)
        .map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)))
        .collect();
    let laughs =
        format!("<!DOCTYPE r [<!ENTITY l0 \"ha\">{laughs}]><r><p><t>words &l9;</t></p></r>");
    let sheet = |rows: &str| {
        odf("spreadsheet", &format!("<table:table table:name='t'>{rows}</table:table>"))
    };
    let mail = (0..2000).fold(String::from("Subject: a\n\nwords"), |inner, n| {
        format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n{inner}\n--b{n}--\n")
    });
    let nested = "<text:list><text:list-item>";
    let close = "</text:list-item></text:list>";
    let pdf = |object: String| {
        format!(
            "%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Count 1/Kids {object}>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
        )
    };
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("a.rtf", format!("{{\\rtf1 {}", deep("{\\b ", "words", "}")).into()),
        (
            "a.docx",
            packed(
                "word/document.xml",
                &deep(
                    "<w:tbl><w:tr><w:tc>",
                    "<w:p><w:r><w:t>words</w:t></w:r></w:p>",
                    "</w:tc></w:tr></w:tbl>",
                ),
            ),
        ),
        ("b.docx", packed("word/document.xml", &laughs)),
        ("a.odt", odf("text", &deep(nested, "<text:p>words</text:p>", close))),
        (
            "b.odt",
            odf(
                "text",
                &deep(
                    "<table:table><table:table-row><table:table-cell>",
                    "<text:p>words</text:p>",
                    "</table:table-cell></table:table-row></table:table>",
                ),
            ),
        ),
        (
            "a.ods",
            sheet(
                "<table:table-row table:number-rows-repeated='1048576'><table:table-cell table:number-columns-repeated='16384'><text:p>words</text:p></table:table-cell></table:table-row>",
            ),
        ),
        (
            "a.epub",
            zip(&[
                ("mimetype", b"application/epub+zip"),
                ("META-INF/container.xml", laughs.as_bytes()),
            ]),
        ),
        ("a.svg", laughs.clone().into()),
        ("a.xml", deep("<a>", "words", "</a>").into()),
        ("a.html", deep("<div><ul><li>", "words", "</li></ul></div>").into()),
        ("a.json", deep("[{\"a\":", "1", "}]").into()),
        ("a.yaml", deep("- ", "words", "").into()),
        ("a.toml", deep("a.", "b = 1", "").into()),
        ("a.ipynb", deep("{\"cells\":[", "", "]}").into()),
        ("a.md", deep("> - ", "words", "").into()),
        ("a.eml", mail.into()),
        ("a.pdf", pdf(deep("[", "", "]")).into()),
        // A page that is its own parent.
        ("b.pdf", pdf("[2 0 R 2 0 R]".into()).into()),
    ];
    for (name, bytes) in files {
        let found = extract(&workers, &format!("x://{name}"), &bytes, &limits).await;
        if let Extraction::Skipped(reason) = &found {
            let is_well = ["limits.", "nested too deeply", "unexpected way"]
                .iter()
                .all(|fault| !reason.contains(fault));
            assert!(is_well, "{name}: {reason}");
        }
        assert_well(&workers).await;
    }
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let packed: Vec<_> = members
        .iter()
        .map(|(name, bytes)| {
            let mut packed = flate2::write::DeflateEncoder::new(vec![], Compression::fast());
            packed.write_all(bytes).unwrap();
            let mut crc = flate2::Crc::new();
            crc.update(bytes);
            (*name, packed.finish().unwrap(), bytes.len(), crc.sum())
        })
        .collect();
    archive(&packed)
}

/// A ZIP archive, written by hand: local headers and directory (APPNOTE 4.3). Of each member the
/// name, the deflated bytes, and the size and checksum of what they are said to unpack to.
fn archive(members: &[(&str, Vec<u8>, usize, u32)]) -> Vec<u8> {
    let (mut archive, mut directory) = (vec![], vec![]);
    for (name, packed, size, crc) in members {
        let mut header = vec![];
        header.extend(20_u16.to_le_bytes());
        header.extend(0x0800_u16.to_le_bytes());
        header.extend(8_u16.to_le_bytes());
        header.extend([0; 4]);
        header.extend(crc.to_le_bytes());
        header.extend((packed.len() as u32).to_le_bytes());
        header.extend((*size as u32).to_le_bytes());
        header.extend((name.len() as u16).to_le_bytes());
        header.extend(0_u16.to_le_bytes());
        let at = archive.len() as u32;
        archive.extend(b"PK\x03\x04");
        archive.extend(&header);
        archive.extend(name.as_bytes());
        archive.extend(packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&header);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (at, len) = (archive.len() as u32, directory.len() as u32);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend((members.len() as u16).to_le_bytes());
    archive.extend((members.len() as u16).to_le_bytes());
    archive.extend(len.to_le_bytes());
    archive.extend(at.to_le_bytes());
    archive.extend(0_u16.to_le_bytes());
    archive
}
