//! SRT and WebVTT → what is said, a line for each cue, with the minute where a new one begins.

/// Converts subtitles. What has no cue stays as it is.
pub fn convert(text: &str) -> String {
    let mut said = String::with_capacity(text.len() / 2);
    let mut minute = None;
    let mut cue: Option<Vec<String>> = None;
    let mut found = false;
    for line in text.lines().chain([""]) {
        if let Some(begin) = begin_of(line) {
            write(&mut said, cue.take());
            found = true;
            if minute != Some(begin / 60) {
                minute = Some(begin / 60);
                let mark =
                    format!("[{:02}:{:02}:{:02}]\n", begin / 3600, begin / 60 % 60, begin % 60);
                if !said.is_empty() {
                    said.push('\n');
                }
                said.push_str(&mark);
            }
            cue = Some(vec![]);
        } else if line.trim().is_empty() {
            write(&mut said, cue.take());
        } else if let Some(lines) = &mut cue {
            lines.push(without_tags(line));
        }
    }
    if found { said } else { text.to_owned() }
}

fn write(said: &mut String, cue: Option<Vec<String>>) {
    let words = cue.unwrap_or_default().join(" ");
    let words = words.trim();
    // Rolling captions say a line again in the next cue.
    if !words.is_empty() && said.lines().next_back() != Some(words) {
        said.push_str(words);
        said.push('\n');
    }
}

/// Where a cue begins, in seconds: `00:01:02,500 --> …`, hours may be missing.
fn begin_of(line: &str) -> Option<u32> {
    let (begin, _) = line.split_once("-->")?;
    let begin = begin.trim().split(['.', ',']).next()?;
    let mut seconds = 0_u32;
    for field in begin.split(':') {
        let field: u32 = field.parse().ok()?;
        seconds = seconds.checked_mul(60)?.checked_add(field)?;
    }
    Some(seconds)
}

/// What WebVTT's character references stand for.
const REFERENCES: [(&str, &str); 9] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&nbsp;", " "),
    ("&lrm;", ""),
    ("&rlm;", ""),
    // The last, since it may stand before the others' names.
    ("&amp;", "&"),
];

fn resolved(text: String) -> String {
    if !text.contains('&') {
        return text;
    }
    REFERENCES
        .iter()
        .fold(text, |text, (reference, stands_for)| text.replace(reference, stands_for))
}

/// Takes out `<i>`, `<v Name>`, and ASS's `{\an8}`.
fn without_tags(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['<', '{']) {
        plain.push_str(&rest[..at]);
        let tag = &rest[at..];
        let end = match tag.as_bytes() {
            [b'<', b'/' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9', ..] => tag.find('>'),
            [b'{', b'\\', ..] => tag.find('}'),
            _ => None,
        };
        match end {
            Some(end) => {
                // A voice is who speaks.
                if let Some(name) = tag[..end].strip_prefix("<v ") {
                    plain.push_str(name);
                    plain.push_str(": ");
                }
                rest = &tag[end + 1..];
            }
            None => {
                plain.push_str(&tag[..1]);
                rest = &tag[1..];
            }
        }
    }
    plain.push_str(rest);
    resolved(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cues_become_lines() {
        let rows = [
            (
                "1\n00:00:01,000 --> 00:00:02,000\n<i>退款</i>\n须知\n\n2\n00:01:05,000 --> 00:01:06,000\nnext\n",
                "[00:00:01]\n退款 须知\n\n[00:01:05]\nnext\n",
            ),
            (
                "WEBVTT - Titel\n\nNOTE nothing\n\n00:01.000 --> 00:02.000 align:start\n<v Anna>Hallo &\n\nid\n01:00:03.000 --> 01:00:04.000\na < b {\\an8}c",
                "[00:00:01]\nAnna: Hallo &\n\n[01:00:03]\na < b c\n",
            ),
            (
                "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Tom &amp; Ann>a &lt;b&gt; c&nbsp;d &amp;lt; &rlm;استرداد &unknown; &\n",
                "[00:00:01]\nTom & Ann: a <b> c d &lt; استرداد &unknown; &\n",
            ),
            ("no cues", "no cues"),
        ];
        for (text, expected) in rows {
            assert_eq!(convert(text), expected);
        }
    }
}
