//! Documents that other people's libraries wrote, in many formats and languages: their words are
//! found, in their places. And what becomes of them when they are damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use resdex::chunk::chunk;
use resdex::config::Limits;
use resdex::extract::Extraction;
use resdex::model::{Body, Chunk, Content, Resource, Snapshot};
use resdex::worker::Workers;
use serde::Deserialize;
use tempfile::TempDir;

use crate::daemon::Daemon;

#[derive(Deserialize)]
struct Expected {
    file: String,
    format: String,
    language: String,
    words: Vec<String>,
    /// A word, the page it stands on, a heading above it.
    places: Vec<(String, Option<u32>, Option<String>)>,
}

/// The folder with the documents of the libraries; nothing, with a printed reason, when they can't be made.
fn made() -> Option<TempDir> {
    made_by("make.py", &[])
}

/// The folder with the documents that LibreOffice wrote, where it is installed.
fn made_by_libreoffice() -> Option<TempDir> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let soffice = std::env::split_paths(&path).map(|folder| folder.join("soffice"));
    let Some(soffice) = soffice.into_iter().find(|file| file.is_file()) else {
        println!("skipped: LibreOffice (soffice) isn't installed");
        return None;
    };
    made_by("office.py", &[&soffice])
}

fn made_by(script: &str, arguments: &[&Path]) -> Option<TempDir> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let environment = root.join("target/interop/documents");
    if !environment.join(".stamp").exists() {
        let required = std::env::var("RESDEX_INTEROP").is_ok_and(|value| value == "required");
        let reason = format!("{environment:?} isn't there; run tests/interop/setup");
        assert!(!required, "{reason}");
        println!("skipped: {reason}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = root.join("tests/interop/peers/documents").join(script);
    let python = environment.join("bin/python");
    let made = Command::new(python).arg(script).args(arguments).arg(folder.path()).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for left_out in String::from_utf8_lossy(&made.stdout).lines() {
        println!("skipped: {left_out}");
    }
    Some(folder)
}

fn workers() -> Workers {
    Workers::of(env!("CARGO_BIN_EXE_resdex"), 2)
}

fn snapshot(path: &Path, bytes: &[u8]) -> (Resource, Snapshot) {
    let uri = format!("files:///{}", path.file_name().unwrap().to_str().unwrap());
    let body = Body::Blob(BASE64_STANDARD.encode(bytes));
    let content = Content { left_out: None, uri: uri.clone(), mime_type: None, body };
    (Resource::new(uri.as_str()), Snapshot::new(vec![content]))
}

/// Letters and digits, so that white space and Markdown's signs don't count.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || ('\u{e00}'..='\u{eff}').contains(c)).collect()
}

fn says(chunk: &Chunk, word: &str) -> bool {
    letters(&chunk.text).contains(&letters(word))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_and_places_of_every_format_and_language_are_found() {
    let Some(folder) = made() else { return };
    assert!(words_and_places_are_found(&folder).await > 150);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_and_places_of_what_libreoffice_writes_are_found() {
    let Some(folder) = made_by_libreoffice() else { return };
    assert!(words_and_places_are_found(&folder).await > 50);
}

/// Of each format and language 95 % at least. How many documents there were.
async fn words_and_places_are_found(folder: &TempDir) -> usize {
    let list = fs::read_to_string(folder.path().join("expected.json")).unwrap();
    let list: Vec<Expected> = serde_json::from_str(&list).unwrap();
    let (workers, limits) = (workers(), Limits::default());
    let mut counts: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    let mut missing = vec![];
    for expected in &list {
        let path = folder.path().join(&expected.file);
        let (resource, snapshot) = snapshot(&path, &fs::read(&path).unwrap());
        let found = workers.extract(&resource, &snapshot, &limits).await.unwrap();
        let (text, chunks) = match &found {
            Extraction::Document(document) => (letters(&document.parts[0].text), chunk(document)),
            Extraction::Skipped(reason) => panic!("{}: {reason}", expected.file),
        };
        let count = counts.entry((expected.format.clone(), expected.language.clone())).or_default();
        for word in &expected.words {
            count.1 += 1;
            if text.contains(&letters(word)) {
                count.0 += 1;
            } else {
                missing.push(format!("{}: {word}", expected.file));
            }
        }
        for (word, page, heading) in &expected.places {
            count.1 += 1;
            let is_there = chunks.iter().any(|chunk| {
                says(chunk, word)
                    && (page.is_none() || chunk.page == *page)
                    && heading.as_ref().is_none_or(|heading| {
                        chunk.heading_path.iter().any(|above| letters(above) == letters(heading))
                            || says(chunk, heading)
                    })
            });
            if is_there {
                count.0 += 1;
            } else {
                missing.push(format!("{}: {word} at {page:?}, {heading:?}", expected.file));
            }
        }
    }
    for ((format, language), (found, all)) in &counts {
        assert!(
            found * 100 >= all * 95,
            "{format} in {language}: {found} of {all}\n{}",
            missing.join("\n")
        );
    }
    list.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_says_that_it_has_no_text_layer() {
    let Some(folder) = made() else { return };
    let path = folder.path().join("scan.pdf");
    let (resource, snapshot) = snapshot(&path, &fs::read(&path).unwrap());
    let found = workers().extract(&resource, &snapshot, &Limits::default()).await;
    assert_eq!(found, Ok(Extraction::Skipped("scanned PDF, no text layer".into())));
}

/// Every one that is read by a reader of its own.
const FORMATS: [&str; 32] = [
    "pdf",
    "docx",
    "pptx",
    "xlsx",
    "odt",
    "ods",
    "odp",
    "epub",
    "rtf",
    "eml",
    "mbox",
    "ipynb",
    "html",
    "xml",
    "svg",
    "csv",
    "tsv",
    "json",
    "jsonl",
    "yaml",
    "toml",
    "srt",
    "vtt",
    "zip",
    "tar.gz",
    "png",
    "jpg",
    "mp3",
    "wav",
    "mkv",
    "avi",
    "utf16.txt",
];

/// Damaged copies of each document that was made in Chinese.
const DAMAGED: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_cost_themselves_only() {
    let Some(folder) = made() else { return };
    for format in FORMATS {
        let file = folder.path().join(format!("zh.{format}"));
        assert!(file.exists(), "nothing of {format} would be damaged");
    }
    damage(&folder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_of_libreoffice_cost_themselves_only() {
    let Some(folder) = made_by_libreoffice() else { return };
    assert!(damage(&folder).await > 7);
}

/// How many files were damaged.
async fn damage(folder: &TempDir) -> usize {
    // What a hang would cost is bounded, and told from a slow machine by being rare.
    let limits = Limits { extract_timeout: Duration::from_secs(60), ..Limits::default() };
    let workers = workers();
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("zh."));
    files.sort();
    let begin = Instant::now();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for path in &files {
        let whole = fs::read(path).unwrap();
        for n in 0..DAMAGED {
            let bytes = damaged(&whole, n, &mut random);
            let (resource, snapshot) = snapshot(path, &bytes);
            let found = workers.extract(&resource, &snapshot, &limits).await.unwrap();
            if let Extraction::Skipped(reason) = found {
                assert!(!reason.contains("extract_timeout"), "{path:?}, copy {n}: {reason}");
            }
        }
        // The workers are none the worse for it.
        let (resource, snapshot) = snapshot(path, &whole);
        let found = workers.extract(&resource, &snapshot, &limits).await.unwrap();
        assert!(matches!(found, Extraction::Document(_)), "{path:?}: {found:?}");
    }
    println!("{} damaged files in {:?}", files.len() * DAMAGED, begin.elapsed());
    files.len()
}

/// Cut, with bytes turned, with a piece doubled, or with one zeroed.
fn damaged(whole: &[u8], n: usize, random: &mut u64) -> Vec<u8> {
    let mut next = |below: usize| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random % below.max(1) as u64) as usize
    };
    let mut bytes = whole.to_vec();
    let at = next(bytes.len());
    let len = next(64).min(bytes.len() - at);
    match n % 4 {
        0 => bytes.truncate(at),
        1 => {
            for _ in 0..=next(16) {
                let at = next(bytes.len());
                bytes[at] = next(256) as u8;
            }
        }
        2 => {
            let piece = bytes[at..at + len].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => bytes[at..at + len].fill(0),
    }
    bytes
}

#[test]
fn a_hit_names_its_page_and_a_type_that_isnt_wanted_is_found_by_name() {
    let Some(folder) = made() else { return };
    let served = tempfile::tempdir().unwrap();
    for name in ["zh.pdf", "zh.pptx", "ru.xlsx", "scan.pdf", "zh.zip"] {
        fs::copy(folder.path().join(name), served.path().join(name)).unwrap();
    }
    let root = served.path().to_str().unwrap();
    let daemon = Daemon::start(&format!(
        "[sync]\nexclude_mime_types = [\"application/zip\"]\n[servers.papers]\nfiles = {root:?}\n"
    ));
    let status = daemon.live("papers");
    assert_eq!((&status["indexed"], &status["skipped"]), (&3.into(), &2.into()), "{status:#}");
    for (query, uri, page) in [
        ("定制商品不接受退货", "papers:///zh.pdf", 2),
        ("节假日顺延", "papers:///zh.pptx", 3),
        ("Владивосток", "papers:///ru.xlsx", 1),
    ] {
        let answer = daemon.ask(&["search", "-n", "20", "--", query]).unwrap();
        let hits = answer["hits"].as_array().unwrap();
        let hit = hits.iter().find(|hit| hit["uri"] == uri);
        assert_eq!(hit.unwrap()["page"], page, "{query}: {answer:#}");
    }
    let skipped = daemon.ask(&["list", "--skipped"]).unwrap();
    let reasons: Vec<_> = skipped["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["uri"].as_str().unwrap(), row["reason"].as_str().unwrap()))
        .collect();
    assert!(reasons.contains(&("papers:///scan.pdf", "scanned PDF, no text layer")), "{reasons:?}");
    let zip = reasons.iter().find(|(uri, _)| *uri == "papers:///zh.zip").unwrap();
    assert!(zip.1.contains("application/zip isn't indexed by the config"), "{reasons:?}");
}
