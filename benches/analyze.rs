//! How fast text becomes terms: MB/s of each field, and of both as indexing needs them.
//!
//! The text is what any machine with Rust has: Markdown and source of the crates that were built.

use std::fs;
use std::path::{Path, PathBuf};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use resdex::analyze::{Analyzer, Field};

/// As much of each kind of text is taken.
const BYTES: usize = 8 << 20;
/// About the size of a chunk, which is what the index analyzes at once.
const CHUNK: usize = 2000;

fn analyze(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("analyze");
    group.sample_size(10);
    for extension in ["md", "rs"] {
        let chunks = chunks(&corpus(extension));
        let bytes: usize = chunks.iter().map(String::len).sum();
        group.throughput(Throughput::BytesDecimal(bytes as u64));
        for (name, fields) in [
            ("body", &[Field::Body][..]),
            ("word", &[Field::Word][..]),
            ("body+word", &[Field::Body, Field::Word][..]),
        ] {
            let mut analyzer = Analyzer::new();
            group.bench_function(BenchmarkId::new(name, extension), |bencher| {
                bencher.iter(|| {
                    let mut sum = 0_usize;
                    for (chunk, &field) in
                        chunks.iter().flat_map(|chunk| fields.iter().map(move |f| (chunk, f)))
                    {
                        analyzer.analyze(field, chunk, &mut |token| sum += token.term.len());
                    }
                    sum
                });
            });
        }
    }
}

/// Pieces of about the size of a chunk, cut at line ends.
fn chunks(text: &str) -> Vec<String> {
    let mut chunks = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if let Some(chunk) = chunks.last_mut() {
            chunk.push_str(line);
            if chunk.len() >= CHUNK {
                chunks.push(String::new());
            }
        }
    }
    chunks
}

/// Text of files with this extension under Cargo's registry.
fn corpus(extension: &str) -> String {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let mut text = String::new();
    gather(&home.unwrap_or_default().join("registry/src"), extension, &mut text);
    assert!(!text.is_empty(), "no *.{extension} under Cargo's registry/src: build something first");
    text
}

fn gather(folder: &Path, extension: &str, text: &mut String) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if text.len() >= BYTES {
            return;
        }
        if path.is_dir() {
            gather(&path, extension, text);
        } else if path.extension().is_some_and(|e| e == extension) {
            // A table of data isn't what anyone reads.
            let read = fs::read_to_string(&path).ok().filter(|read| read.len() < 200_000);
            text.push_str(&read.unwrap_or_default());
        }
    }
}

criterion_group!(benches, analyze);
criterion_main!(benches);
