//! What no input may break: one target for each place where strangers' bytes come in. Each states what
//! holds of any input, so a panic here is a fault there.
//!
//! Not in the program: compiled for the tests, which run every target blindly for a moment (`blind`), and
//! for `fuzz/`, which runs one for as long as one likes, guided by the coverage.

#[cfg(test)]
mod blind;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use base64::Engine as _;
use serde::{Serialize, de::DeserializeOwned};
use utoipa::PartialSchema;

use crate::analyze::{Analyzer, Field};
use crate::chunk;
use crate::config::{Config, Limits, mask, report};
use crate::extract::{self, Extraction, mime};
use crate::index::tantivy::{TantivyStore, fingerprint};
use crate::index::{Change, Entry, IndexStore};
use crate::model::{
    Body, Chunk, Content, Document, Format, Outcome, Part, Resource, ServerName, Snapshot,
};
use crate::search::query::{self, Bounds};
use crate::search::{self, Request, snippet, versions};
use crate::serve::{api, body, cut, dify};
use crate::source::files::uri;
use crate::source::mcp::fuzz as mcp;

/// A place where input comes in.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    /// Inputs to begin with.
    pub seeds: &'static [&'static str],
    /// Panics when something doesn't hold.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "frames", seeds: FRAMES, run: mcp::frames },
    Target { name: "listings", seeds: LISTINGS, run: mcp::listings },
    Target { name: "templates", seeds: TEMPLATES, run: mcp::templates },
    Target { name: "uris", seeds: URIS, run: uris },
    Target { name: "mime_types", seeds: MIME_TYPES, run: mime_types },
    Target { name: "contents", seeds: CONTENTS, run: contents },
    Target { name: "chunks", seeds: TEXTS, run: chunks },
    Target { name: "terms", seeds: TEXTS, run: terms },
    Target { name: "configs", seeds: CONFIGS, run: configs },
    Target { name: "queries", seeds: QUERIES, run: queries },
    Target { name: "bodies", seeds: BODIES, run: bodies },
];

const FRAMES: &[&str] = &[
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"contents\":[{\"uri\":\"a://1\",\"text\":\"x \\ud83d y\"}]}}\n",
    "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"a://1\"}}\r\n",
    "[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":\"-32002\",\"message\":null}},{\"id\":1}]\n\nready\n",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"resources\":{}}}}",
    "{\"jsonrpc\":\"2.0\",\"result\":[[[[[[[[[[1]]]]]]]]]],\"id\":7}",
    "{\"jsonrpc\":\"2.0\",\"result\":{\"price\":12e99},\"id\":12e99}",
];

const LISTINGS: &[&str] = &[
    "{\"resources\":[{\"uri\":\"a://1\",\"name\":\"one\",\"size\":3.7,\"annotations\":{\"audience\":[\"user\"],\"priority\":0.5}}],\"nextCursor\":\"\"}",
    "{\"resources\":[{\"uri\":\"a://1\",\"title\":\"退款\"},{\"uri\":\"a://1\"},{\"uri\":5},7,{\"name\":\"x\"}],\"nextCursor\":7}",
    "{\"resourceTemplates\":[{\"uriTemplate\":\"a://{x}\",\"name\":\"t\"},{},null],\"resources\":{}}",
];

const TEMPLATES: &[&str] = &[
    "wiki://pages/{space}/{+path}\nspace=eng\npath=a/b c",
    "a://{x,y}{?q*}{&r:3}{#f}{/p}{;s}\nx=退款\nq=%zz\nr=é",
    "docs://plain",
];

const URIS: &[&str] = &[
    "handbook:///a%20b/%E9%80%80.md",
    "https://user:secret@host/p?token=abc&x=1#api_key=y",
    "docs:///v1.2.3/latest/2025-06-18/../%2e%2e/x",
    "x:///a//b?q",
    "file:///C:\\Users\\me/\u{202e}txt",
];

const MIME_TYPES: &[&str] = &[
    "Text/Markdown; charset=\"UTF-8\"; profile=mcp-app",
    "application/vnd.x+json",
    "image/png",
    "a/b.tar.gz",
    "README",
    ";=;charset=;",
];

/// The declared type in the first line; text, or a blob where that line begins with `b`.
const CONTENTS: &[&str] = &[
    "text/markdown\n---\ntitle: Refunds\n---\n# Refunds 退款\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn x() {}\n```\n",
    "text/html\n<!doctype html><title>T</title><h1>A</h1><p>b<table><tr><td>c</table><script>x</script><!--",
    "application/json\n{\"a\": [1, \"\\u9000\\ud83d\"], \"b\": {\"c\": null}}",
    "text/csv\nname,price\n\"a, b\",1\n",
    "application/xml\n<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x \"y\">]><a b='c'>&x;&#0;<![CDATA[d]]></a>",
    "b text/plain; charset=gbk\n\u{fffd}\u{1b}[31m\u{0}",
    "b\n\u{feff}text",
    "\nCopyright\n=========\n\nold style\n---------\n",
];

const TEXTS: &[&str] = &[
    "# Refunds\n\nA sentence. Another one, with getUserName and ERR_40002.\n\n- item\n- item\n\n```\ncode\n```\n",
    "退款政策：三十天內可退。返金ポリシー。환불 정책 안내.\nนโยบายการคืนเงิน\nChính sách hoàn tiền\nВозврат денег\nسياسة الاسترداد\nवापसी नीति\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
    "2026-01-01 INFO x\n2026-01-01 WARN y\n\tat z\n",
    "AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIIIIJJJJKKKKLLLLMMMMNNNNOOOOPPPPQQQQRRRRSSSSTTTTUUUUVVVVWWWW==",
    "a\u{301}\u{200d}🏳\u{fe0f}\u{200d}🌈 ﬁ ①½ \u{202e}abc https://x.example/a_b?c=d\r\n\u{2028}\u{85}",
];

/// The name of the file in the first line.
const CONFIGS: &[&str] = &[
    "resdex.toml\n[sync]\nschedule = \"0 */15 * * * *\"\n[servers.a]\ncommand = \"x\"\nargs = [\"${A:-b}\"]\nenv = { T = \"${A}\" }\n[scopes.s]\nservers = [\"a\"]\n",
    "resdex.toml\n[limits]\nread_timeout = \"1s\"\n[servers.w]\nurl = \"https://h/mcp\"\nheaders = { Authorization = \"Bearer ${A}\" }\n[[servers.w.templates]]\nuri = \"w://{s}\"\nvalues = { s = [\"1\"] }\n",
    ".mcp.json\n{\"mcpServers\":{\"a\":{\"type\":\"http\",\"url\":\"https://h/mcp\",\"headers\":{\"K\":\"${A}\"},\"timeout\":5}}}",
    ".vscode/mcp.json\n{ // c\n \"servers\":{\"a\":{\"command\":\"x\",\"args\":[\"${workspaceFolder}\",],\"env\":{\"B\":\"${input:t}\"}},}, \"inputs\":[] }",
    ".cursor/mcp.json\n{\"mcpServers\":{\"a b\":{\"url\":\"http://127.0.0.1/mcp\",\"envFile\":\".env\"}}}",
    "cline_mcp_settings.json\n{\"mcpServers\":{\"a\":{\"transportType\":\"sse\",\"url\":\"http://h\",\"disabled\":true,\"timeout\":60}}}",
    ".gemini/settings.json\n{\"mcpServers\":{\"a\":{\"httpUrl\":\"$A\",\"timeout\":600000,\"trust\":true}}}",
    "mcp_config.json\n{\"mcpServers\":{\"a\":{\"serverUrl\":\"https://h/mcp\"}}}",
    "config.toml\n[mcp_servers.x]\nurl = \"https://h/mcp\"\nbearer_token_env_var = \"A\"\nenabled = true\n",
];

const QUERIES: &[&str] = &[
    "refund deadline",
    "\"refund deadline\" -draft server:docs mime:text/* uri:docs://**",
    "退款「三十天」-\"草稿\" 返金",
    "getUserName ERR_40002 v1.2.3 \"\" -- -5 5\" server:",
    "uri:\"[{a,b\" mime:*/* a* ~ ( AND ) ^2 \\",
    "นโยบายคืนเงิน Возврат سياسة वापसी 환불",
];

const BODIES: &[&str] = &[
    "{\"query\":\"退款\",\"limit\":5,\"servers\":[\"a\"],\"min_relevance\":0.5,\"passages\":2}",
    "{\"query\":\"x\",\"conversation\":\"c\",\"max_tokens\":400,\"pins\":[\"a://1\"]}",
    "{\"uri\":\"a://1\",\"lines\":\"1-2\",\"extracted\":true,\"outline\":null}",
    "{\"servers\":[\"a\"],\"confirm\":true}",
    "{\"knowledge_id\":\"s\",\"query\":\"q\",\"retrieval_setting\":{\"top_k\":2,\"score_threshold\":0.5},\"metadata_condition\":{\"logical_operator\":\"and\",\"conditions\":[{\"name\":[\"uri\"],\"comparison_operator\":\"start with\",\"value\":\"a\"}]}}",
    "{\"query\":\"q\",\"retrieval_model\":{\"search_method\":\"x\",\"top_k\":2,\"score_threshold_enabled\":true,\"score_threshold\":null}}",
    "server=a&cursor=%E9%80&skipped=true",
];

fn first_line(data: &[u8]) -> (String, &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let rest = data.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&data[..end]).into_owned(), rest)
}

/// URIs: of a folder's files, masked for a log, taken apart for their version.
fn uris(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(path) = uri::decode("handbook", &text) {
        let encoded = uri::encode("handbook", &path);
        assert_eq!(uri::decode("handbook", &encoded).as_ref(), Some(&path), "{encoded}");
        let mut names = path.as_bytes().split(|byte| *byte == b'/');
        assert!(names.all(|name| !matches!(name, b"" | b"." | b"..")), "{path:?} leads away");
    }
    if !data.contains(&0) {
        let encoded = uri::encode("handbook", OsStr::from_bytes(data));
        assert!(encoded.is_ascii() && !encoded.contains(char::is_whitespace), "{encoded}");
        let decoded = uri::decode("handbook", &encoded);
        assert!(decoded.is_none_or(|path| path.as_bytes() == data), "{encoded} is another file");
    }
    let masked = mask::uri(&text);
    assert_eq!(mask::uri(&masked), masked, "what is masked has no secret");
    if let Some(found) = versions::version_of(&text) {
        assert!(found.document.len() <= text.len() && !found.version.is_empty());
    }
}

fn mime_types(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parsed = mime::MimeType::parse(&text);
    assert_eq!(mime::MimeType::parse(&parsed.essence).essence, parsed.essence);
    let kind = mime::kind_of_type(&parsed.essence);
    assert_eq!(mime::kind_of_type(&parsed.essence), kind);
    let _ = (mime::by_suffix(&text), mime::type_of_name(&text), mime::is_binary_type(&text));
    assert!(!mime::why_no_text(&parsed.essence).is_empty());
    let _ = search::filter::mime_matches(&text, "text/plain");
}

/// What a read gives, to its chunks.
fn contents(data: &[u8]) {
    let (declared, content) = first_line(data);
    let blob = declared.strip_prefix('b');
    let body = match blob {
        Some(_) => Body::Blob(base64::engine::general_purpose::STANDARD.encode(content)),
        None => Body::Text(String::from_utf8_lossy(content).into_owned()),
    };
    let declared = blob.unwrap_or(&declared).trim();
    let mime_type = (!declared.is_empty()).then(|| declared.to_owned());
    let content = Content { left_out: None, uri: "a://1".into(), mime_type, body };
    let limits = Limits { max_text_bytes: 64 << 10, ..Limits::default() };
    let snapshot = Snapshot::new(vec![content]);
    match extract::extract(&Resource::new("a://1"), &snapshot, &limits) {
        Extraction::Document(document) => {
            holds_together(&document);
            are_its_chunks(&document, &chunk::chunk(&document));
        }
        Extraction::Skipped(reason) => assert!(!reason.is_empty(), "a reason is given"),
    }
}

/// Every place of a document is one of its text.
fn holds_together(document: &Document) {
    for part in &document.parts {
        let text = &part.text;
        let mut places = BTreeSet::new();
        for at in part.headings.iter().map(|heading| heading.at) {
            assert!(text.is_char_boundary(at), "a heading at {at} of {}", text.len());
            assert!(places.last().is_none_or(|last| *last <= at), "headings in order");
            places.insert(at);
        }
        assert!(part.pages.iter().all(|page| text.is_char_boundary(page.at)));
        let strange = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
        assert!(!text.contains(strange), "controls are left: {text:?}");
    }
}

/// Any text, as each format.
fn chunks(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for format in [Format::Plain, Format::Markdown, Format::Code, Format::Lines] {
        let part = Part { format, text: text.clone().into_owned(), ..Part::default() };
        let document = Document { parts: vec![part], ..Document::default() };
        are_its_chunks(&document, &chunk::chunk(&document));
    }
}

/// Chunks partition each part's text, and know where they stand in it.
fn are_its_chunks(document: &Document, chunks: &[Chunk]) {
    for part in &document.parts {
        let mut at = 0;
        let mut line = 1;
        for chunk in chunks.iter().filter(|chunk| chunk.part == part.index) {
            let (from, to) = (chunk.bytes.start as usize, chunk.bytes.end as usize);
            assert_eq!(from, at, "no gap and no overlap");
            assert_eq!(part.text.get(from..to), Some(chunk.text.as_str()), "it is of the text");
            assert!(!chunk.text.is_empty(), "an empty chunk");
            assert_eq!(chunk.lines.0, line, "it begins in its line");
            let newlines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count() as u32;
            let within = chunk.text.strip_suffix('\n').unwrap_or(&chunk.text);
            assert_eq!(chunk.lines.1, line + newlines(within), "it ends in its line");
            line += newlines(&chunk.text);
            for noise in &chunk.noise {
                let noise = noise.start as usize..noise.end as usize;
                assert!(chunk.text.get(noise.clone()).is_some(), "{noise:?} isn't in the chunk");
            }
            at = to;
        }
        assert_eq!(at, part.text.len(), "nothing is lost");
    }
}

thread_local! {
    static ANALYZER: std::cell::RefCell<Analyzer> = std::cell::RefCell::new(Analyzer::new());
}

fn terms(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    ANALYZER.with_borrow_mut(|analyzer| {
        for field in [Field::Body, Field::Word] {
            let mut last = 0;
            analyzer.analyze(field, &text, &mut |token| {
                assert!(text.get(token.from..token.to).is_some(), "{token:?} isn't in the text");
                assert!(token.position >= last, "{token:?} comes after {last}");
                assert!(!token.term.is_empty() && token.term.len() <= 256, "{token:?}");
                last = token.position;
            });
        }
        let asked = &text[..text.floor_char_boundary(4 << 10)];
        for term in analyzer.query(asked) {
            assert!(asked.get(term.from..term.to).is_some(), "{term:?} isn't in the query");
        }
        let phrase = analyzer.phrase(asked);
        assert!(phrase.is_sorted_by_key(|term| term.position), "{phrase:?}");
    });
    let shown = snippet::cut(&text, &[], 200);
    assert!(shown.text.chars().count() <= 200);
    assert!(text.get(shown.bytes.clone()).is_some());
    assert_eq!(snippet::clean(&snippet::clean(&text)), snippet::clean(&text));
    let cut = cut::budget(&text, 50, &chunk::estimate_tokens);
    assert!(text.starts_with(cut.text));
}

fn configs(data: &[u8]) {
    let (name, text) = first_line(data);
    let text = String::from_utf8_lossy(text).into_owned();
    // Nothing is read from this place, and few names tell a dialect.
    let path = PathBuf::from("/nonexistent").join(name.replace(['\0', '/'], "_"));
    let path = match name.as_str() {
        known @ (".vscode/mcp.json" | ".cursor/mcp.json" | ".gemini/settings.json") => {
            PathBuf::from("/nonexistent").join(known)
        }
        _ => path,
    };
    let env = |name: &str| (name == "A").then(|| "a-value".to_owned());
    match Config::from_texts(&[(path, text.clone())], &env) {
        Ok(config) => {
            let shown = report::show(&config);
            let _ = report::check(&config);
            let again =
                Config::from_texts(&[("/nonexistent/resdex.toml".into(), shown.clone())], &env);
            let again = again.map(|again| again.servers.into_keys().collect::<Vec<_>>());
            let names: Vec<_> = config.servers.into_keys().collect();
            assert_eq!(again.ok(), Some(names), "what is shown can be used:\n{shown}");
        }
        Err(errors) => {
            assert!(!errors.0.is_empty(), "it says what is wrong");
            let lines = text.split('\n').count();
            let lies = errors.0.iter().find(|error| error.line.is_some_and(|line| line > lines));
            assert!(lies.is_none(), "{lies:?} of {lines} lines");
        }
    }
}

/// An index to ask.
fn index() -> &'static TantivyStore {
    static INDEX: OnceLock<TantivyStore> = OnceLock::new();
    INDEX.get_or_init(|| {
        #[expect(clippy::expect_used, reason = "a panic is how a fuzzer's target fails")]
        let store = TantivyStore::in_memory().expect("an index in memory");
        let entries = TEXTS.iter().enumerate().map(|(at, text)| {
            let part = Part { text: (*text).to_owned(), ..Part::default() };
            let document = Document { parts: vec![part], ..Document::default() };
            let uri = format!("docs://{at}");
            let content = Content {
                left_out: None,
                uri: uri.clone(),
                mime_type: None,
                body: Body::Text((*text).into()),
            };
            Change::Replace(Box::new(Entry {
                #[expect(clippy::expect_used, reason = "a panic is how a fuzzer's target fails")]
                server: ServerName::new("docs").expect("a name"),
                resource: Resource::new(uri),
                document_title: None,
                mime_type: Some("text/plain".into()),
                content_hash: Snapshot::new(vec![content]).hash,
                fingerprint: fingerprint(),
                outcome: Outcome::Indexed,
                chunks: chunk::chunk(&document),
                indexed_at: chrono::DateTime::UNIX_EPOCH,
            }))
        });
        let written = store.apply(entries.collect()).and_then(|()| store.commit());
        assert_eq!(written, Ok(()));
        store
    })
}

/// Nothing that can be typed is an error, and what is shown is within what was found.
fn queries(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let bounds = Bounds::default();
    let parsed = query::parse(&text, bounds);
    let filters =
        [&parsed.phrases, &parsed.excluded, &parsed.servers, &parsed.mime_types, &parsed.uris];
    let words = parsed.text.split(' ').filter(|word| !word.is_empty()).count();
    assert!(
        filters.iter().map(|values| values.len()).sum::<usize>() + words
            <= bounds.terms + words.saturating_sub(bounds.terms)
    );
    assert!(parsed.text.len() <= bounds.bytes + bounds.terms);
    let answer = search::search(index(), &Request { passages: 3, ..Request::new(text) });
    assert!(answer.is_ok(), "{answer:?}");
    for hit in answer.into_iter().flat_map(|answer| answer.hits) {
        assert!((0.0..=1.0).contains(&hit.relevance), "{hit:?}");
        assert!(!hit.passages.is_empty());
        for passage in &hit.passages {
            let chars = passage.snippet.chars().count() as u32;
            let mut last = 0;
            for (from, to) in &passage.highlights {
                assert!(last <= *from && from < to && *to <= chars, "{passage:?}");
                last = *to;
            }
        }
    }
}

/// Bodies and parameters of requests: used, and written and read again the same, or refused in words.
fn bodies(data: &[u8]) {
    fn both<T: DeserializeOwned + PartialSchema + Serialize + PartialEq + std::fmt::Debug>(
        data: &[u8],
    ) {
        match body::decode::<T>(data) {
            Ok(request) => {
                let written = serde_json::to_vec(&request).unwrap_or_default();
                let again = body::decode::<T>(&written);
                assert_eq!(again.ok(), Some(request));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    both::<api::SearchRequest>(data);
    both::<api::ReadRequest>(data);
    both::<api::SyncRequest>(data);
    let _ = body::decode::<api::ContextRequest>(data);
    let _ = body::decode::<dify::DatasetRequest>(data);
    if let Ok(request) = body::decode::<dify::RetrievalRequest>(data)
        && let Some(condition) = request.metadata_condition
    {
        let metadata = serde_json::json!({"uri": "a://1", "title": "退款", "lines": "1-2"});
        let _ = metadata.as_object().map(|metadata| condition.holds(metadata));
    }
    let query = String::from_utf8_lossy(data);
    if let Ok(uri) = format!("/v1/resources?{query}").parse::<http::Uri>() {
        let _ = body::parameters::<api::ResourcesQuery>(&uri);
    }
    let _ = cut::Lines::parse(&query).map(|lines| lines.of("a\nb\nc").len());
}
