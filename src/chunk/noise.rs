//! Runs of base64 and the like: not language, so not worth an index entry.

use std::ops::Range;

/// A run in one line that may be part of wrapped base64 (PEM has 64, MIME 76 characters a line).
const MIN_LINE: usize = 40;
/// The shortest noise. Hashes, UUIDs and keys that people look for are shorter: SHA-512 in hex has 128
/// characters, but not of both cases.
const MIN_NOISE: usize = 120;
/// The shortest payload of a `data:` URI that is noise: that one says what it is.
const MIN_DATA: usize = 32;

/// Finds noise, in order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = vec![];
    let mut at = 0;
    while let Some(shortest) = bytes.get(at..at + MIN_DATA) {
        // Whatever ends in these bytes is too short, so most bytes are never looked at.
        if let Some(gap) = shortest.iter().rposition(|byte| !is_base64(*byte)) {
            at += gap + 1;
            continue;
        }
        let start = at;
        at = run_end(bytes, start);
        let is_data = text[..start].ends_with(";base64,");
        if at - start < if is_data { MIN_DATA } else { MIN_LINE } {
            continue;
        }
        // Further lines of the same run.
        let mut end = at;
        while let Some(next) = continuation(bytes, end) {
            end = next;
        }
        let run = &text[start..end];
        if is_data || run.len() >= MIN_NOISE && looks_random(run) {
            found.push(start..end);
        }
        at = end;
    }
    found
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

fn run_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|b| !is_base64(*b)).map_or(bytes.len(), |len| start + len)
}

/// The end of the run on the next line, if that line has nothing else on it.
fn continuation(bytes: &[u8], end: usize) -> Option<usize> {
    let rest = bytes.get(end..)?;
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest).strip_prefix(b"\n")?;
    let start = bytes.len() - rest.len();
    let start = start + rest.iter().take(32).take_while(|b| matches!(b, b' ' | b'\t')).count();
    let next = run_end(bytes, start);
    let alone = matches!(bytes.get(next), None | Some(b'\r' | b'\n'));
    // The last line of wrapped base64 is short; a short line alone may be a word.
    (alone && next - start >= MIN_LINE || alone && next > start && bytes[next - 1] == b'=')
        .then_some(next)
}

/// Whether letters of both cases and digits alternate as they do in base64, and not as in paths or
/// joined words; or whether a run is so long that no word or path is.
fn looks_random(run: &str) -> bool {
    let class = |b: u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let bytes = run.as_bytes();
    let mut seen = [0; 4];
    for byte in bytes {
        seen[class(*byte)] += 1;
    }
    let changes = bytes.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    let mixed = seen[..3].iter().all(|count| count * 50 >= bytes.len());
    // Hex has digits and one case; words have neither.
    let separators = bytes.iter().filter(|b| matches!(b, b'-' | b'_' | b'/')).count();
    let unbroken = bytes.len() >= 512 && separators * 24 < bytes.len();
    mixed && changes * 5 >= bytes.len() * 2 || unbroken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base64 of pseudo-random bytes.
    fn random(len: usize) -> String {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            alphabet[(state >> 26) as usize] as char
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn noise_is_told_from_words() {
        let long = random(4000);
        let wrapped = [&long[..64], &long[64..128], &long[128..192], "abcd=="].join("\n");
        let path = "/usr/share/doc/".repeat(20) + "Config2/UserName";
        let rows: Vec<(String, Vec<&str>)> = vec![
            (format!("key {long} end"), vec![&long]),
            (format!("-----BEGIN KEY-----\n{wrapped}\n-----END KEY-----\nword"), vec![&wrapped]),
            (format!("![x](data:image/png;base64,{}) text", &long[..40]), vec![&long[..40]]),
            (format!("data:image/png;base64,{}", &long[..16]), vec![]),
            (format!("hash {}", "0123456789abcdef".repeat(8)), vec![]),
            (format!("id {}", &long[..64]), vec![]),
            (path, vec![]),
            ("word-".repeat(400), vec![]),
            ("=".repeat(100), vec![]),
            ("退款政策".repeat(300), vec![]),
            (String::new(), vec![]),
        ];
        for (text, expected) in rows {
            let found: Vec<_> =
                find(&text).into_iter().map(|range| text[range].to_owned()).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
