//! What is indexed: Markdown and source of the crates under Cargo's registry, or of a folder; Chinese
//! text from the sentences of the sample handbook; and the words that are asked for.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Larger files are tables of data rather than anything that is read.
const MAX_FILE: u64 = 200_000;

/// Copies text files from a folder until there are so many bytes, Markdown before source.
pub fn copy(from: &Path, to: &Path, bytes: usize) {
    let mut files = vec![];
    gather(from, &mut files);
    files.sort_by_key(|file| (file.extension().is_none_or(|e| e != "md"), file.clone()));
    fs::create_dir_all(to).unwrap();
    let mut copied = 0;
    let mut seen = BTreeSet::new();
    for (number, file) in files.iter().enumerate() {
        let Ok(text) = fs::read_to_string(file) else { continue };
        // Crates have the same licences and templates many times.
        if text.trim().is_empty() || !seen.insert(text.clone()) {
            continue;
        }
        copied += text.len();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        fs::write(to.join(format!("{number}-{name}")), text).unwrap();
        if copied >= bytes {
            return;
        }
    }
    assert!(copied > 0, "there is no text in {}: build something first", from.display());
}

/// Where Cargo keeps the sources of what was built.
pub fn registry() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.unwrap_or_default().join("registry/src")
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|e| e == "md" || e == "rs" || e == "txt")
            && path.metadata().is_ok_and(|data| data.len() < MAX_FILE)
        {
            files.push(path);
        }
    }
}

/// Chinese pages: sentences of the handbook in ever other orders.
pub fn chinese(handbook: &Path, to: &Path, bytes: usize) {
    let mut files = vec![];
    gather(handbook, &mut files);
    files.sort();
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let is_han =
        |sentence: &&str| sentence.chars().filter(|c| ('一'..='龥').contains(c)).count() > 8;
    let all: String = texts.collect();
    let sentences: Vec<&str> = all.split_inclusive(['。', '\n']).filter(is_han).collect();
    assert!(!sentences.is_empty(), "there is no Chinese in {}", handbook.display());
    fs::create_dir_all(to).unwrap();
    let (mut written, mut seed) = (0, 0);
    while written < bytes {
        let mut text = String::new();
        while text.len() < 6_000 {
            if seed % 12 == 0 {
                writeln!(text, "\n\n## 第{seed}节\n").unwrap();
            }
            seed += 1;
            text.push_str(sentences[scatter(seed) as usize % sentences.len()].trim());
        }
        written += text.len();
        fs::write(to.join(format!("{seed}.md")), text).unwrap();
    }
}

/// Numbers that look random and are the same in every run.
pub fn scatter(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

/// Pairs of words that stand in the texts.
pub fn queries<'a>(texts: &[&'a str], count: usize) -> Vec<String> {
    let word = |number: u64| -> &'a str {
        let text = texts[scatter(number) as usize % texts.len()];
        let is_letter = |c: char| c.is_alphabetic();
        let words: Vec<&str> = text
            .split(|c| !is_letter(c))
            .filter(|word| (4..20).contains(&word.chars().count()))
            .collect();
        words.get(scatter(number + 1) as usize % words.len().max(1)).copied().unwrap_or("page")
    };
    (0..count as u64).map(|n| format!("{} {}", word(2 * n), word(2 * n + 1_000_001))).collect()
}
