//! A document's title, from the first bytes of its file.

use std::borrow::Cow;

use encoding_rs::Encoding;

/// Longest title in bytes; what names and titles are cut to elsewhere, too.
const MAX_BYTES: usize = 256;

/// The first heading of a Markdown or HTML document, or what its front matter or `<title>` says.
pub fn title(mime: &str, head: &[u8]) -> Option<String> {
    let find: fn(&str) -> Option<String> = match mime {
        "text/markdown" => markdown,
        "text/html" => html,
        _ => return None,
    };
    let text = decode(head);
    find(text.strip_prefix('\u{feff}').unwrap_or(&text)).and_then(|title| tidy(&title))
}

/// UTF-8 where it is, else the charset of its byte-order mark, else the likeliest one.
fn decode(head: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(head) {
        Ok(text) => return Cow::Borrowed(text),
        // The end of the head cuts a character.
        Err(e) if e.error_len().is_none() => {
            return String::from_utf8_lossy(head.get(..e.valid_up_to()).unwrap_or_default());
        }
        Err(_) => {}
    }
    let charset = Encoding::for_bom(head).map(|(charset, _)| charset).unwrap_or_else(|| {
        let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
        detector.feed(head, true);
        detector.guess(None, chardetng::Utf8Detection::Deny)
    });
    charset.decode(head).0
}

fn markdown(text: &str) -> Option<String> {
    let (front, body) = front_matter(text);
    if let Some(title) = front.lines().find_map(front_title) {
        return Some(title);
    }
    let mut fence: Option<&str> = None;
    let mut paragraph: Option<&str> = None;
    for line in body.lines() {
        let (indent, line) = (line.len() - line.trim_start().len(), line.trim());
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark)) {
            match fence {
                None => fence = Some(mark),
                Some(open) if open == mark => fence = None,
                Some(_) => {}
            }
            paragraph = None;
            continue;
        }
        if fence.is_some() || (indent > 3 && paragraph.is_none()) {
            continue;
        }
        let level = line.bytes().take_while(|b| *b == b'#').count();
        let rest = line.get(level..).unwrap_or_default();
        if (1..=6).contains(&level) && rest.starts_with([' ', '\t']) {
            if let Some(title) = tidy(&inline(closed(rest))) {
                return Some(title);
            }
        } else if let Some(above) = paragraph.filter(|_| is_underline(line)) {
            return Some(inline(above));
        }
        paragraph = (!line.is_empty() && level == 0).then_some(line);
    }
    None
}

/// YAML between `---`, TOML between `+++`, at the very beginning; and the rest.
fn front_matter(text: &str) -> (&str, &str) {
    for mark in ["---", "+++"] {
        let Some(rest) = text.strip_prefix(mark).filter(|rest| rest.starts_with(['\n', '\r']))
        else {
            continue;
        };
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            if at > 0 && line.trim_end() == mark {
                return (
                    rest.get(..at).unwrap_or_default(),
                    rest.get(at + line.len()..).unwrap_or_default(),
                );
            }
            at += line.len();
        }
    }
    ("", text)
}

fn front_title(line: &str) -> Option<String> {
    let rest = line.strip_prefix("title")?.trim_start();
    let value = rest.strip_prefix([':', '='])?.trim();
    let unquoted = ['"', '\''].into_iter().find_map(|q| value.strip_prefix(q)?.strip_suffix(q));
    Some(unquoted.unwrap_or(value).to_owned()).filter(|title| !title.is_empty())
}

/// A setext heading's second line.
fn is_underline(line: &str) -> bool {
    ["=", "-"].into_iter().any(|mark| line.len() >= 2 && line.trim_start_matches(mark).is_empty())
}

/// An ATX heading without its closing marks and its `{#anchor}`.
fn closed(heading: &str) -> &str {
    let mut heading = heading.trim();
    if let Some((text, _)) = heading.rsplit_once("{#").filter(|_| heading.ends_with('}')) {
        heading = text.trim_end();
    }
    let open = heading.trim_end_matches('#');
    if open.is_empty() || open.ends_with([' ', '\t']) { open.trim() } else { heading }
}

/// A heading's text without emphasis, code marks and link targets.
fn inline(heading: &str) -> String {
    let mut text = String::with_capacity(heading.len());
    let mut rest = heading;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let Some(end) = after.find(')') else { break };
        match before.rfind('[') {
            Some(open) => {
                text.push_str(before.get(..open).unwrap_or_default().trim_end_matches('!'));
                text.push_str(before.get(open + 1..).unwrap_or_default());
            }
            None => text.push_str(before),
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    text.push_str(rest);
    text.replace("**", "").replace("__", "").replace('`', "")
}

fn html(text: &str) -> Option<String> {
    ["title", "h1"].into_iter().find_map(|tag| tidy(&unescape(&without_tags(element(text, tag)?))))
}

/// What stands between an element's tags, the first one of its name.
fn element<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    loop {
        let at = from + lower.get(from..)?.find(&format!("<{tag}"))? + 1 + tag.len();
        from = at;
        if !lower.get(at..)?.starts_with(|c: char| c == '>' || c.is_ascii_whitespace()) {
            continue;
        }
        let start = at + lower.get(at..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find(&format!("</{tag}"))?;
        return text.get(start..end);
    }
}

fn without_tags(text: &str) -> String {
    let mut inside = false;
    text.chars()
        .filter(|c| {
            inside = (inside && *c != '>') || *c == '<';
            !inside && *c != '>'
        })
        .collect()
}

/// The character references that occur in titles.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let reference =
            after.find(';').and_then(|end| Some((after.get(1..end)?, after.get(end + 1..)?)));
        match reference.and_then(|(name, after)| Some((character(name)?, after))) {
            Some((c, after)) => {
                out.push(c);
                rest = after;
            }
            None => {
                out.push('&');
                rest = after.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "middot" => '·',
        "hellip" => '…',
        "laquo" => '«',
        "raquo" => '»',
        _ => return None,
    })
}

/// One line without control characters, cut to its limit; `None` when nothing is left.
fn tidy(title: &str) -> Option<String> {
    let mut line = title.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|c| !c.is_control());
    while line.len() > MAX_BYTES {
        line.pop();
    }
    Some(line).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markdown_titles() {
        for (text, expected) in [
            ("# Refunds\n\ntext", Some("Refunds")),
            ("\u{feff}# 退款政策\n", Some("退款政策")),
            ("intro\n\n## 返品について ##\n", Some("返品について")),
            ("# C# #\n", Some("C#")),
            ("# C#\n", Some("C#")),
            ("# Refunds {#refunds}\n", Some("Refunds")),
            (
                "# **Bold** and `code` and [a link](https://example.org/x)\n",
                Some("Bold and code and a link"),
            ),
            ("# snake_case stays\n", Some("snake_case stays")),
            ("#NoHeading\n# Heading\n", Some("Heading")),
            ("#\n## Second\n", Some("Second")),
            ("####### seven\n# one\n", Some("one")),
            ("การคืนเงิน\n=====\n", Some("การคืนเงิน")),
            ("Hoàn tiền\n---\n", Some("Hoàn tiền")),
            ("\n---\n# After a rule\n", Some("After a rule")),
            ("```sh\n# a comment\n```\n# Real\n", Some("Real")),
            ("~~~\n```\n# a comment\n~~~\n# Real\n", Some("Real")),
            ("    # code\n\n# Real\n", Some("Real")),
            ("---\ntitle: \"Возврат\"\ntags: [a]\n---\n# Other\n", Some("Возврат")),
            ("---\r\ntitle: Win\r\n---\r\n# Other\r\n", Some("Win")),
            ("+++\ntitle = '환불'\n+++\n", Some("환불")),
            ("---\ntags: [a]\n---\n# From the body\n", Some("From the body")),
            ("---\ntitle: \n---\n# From the body\n", Some("From the body")),
            ("just text\nand more\n", None),
            ("", None),
            ("# \u{7}\n", None),
        ] {
            assert_eq!(title("text/markdown", text.as_bytes()).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn html_titles() {
        for (text, expected) in [
            ("<html><head><TITLE>\n  FAQ &amp; help\n</TITLE>", Some("FAQ & help")),
            ("<title></title><h1 class=\"x\">常見<em>問題</em></h1>", Some("常見問題")),
            ("<h1>a &#x4E2D;&#25991; &lt; b &unknown; &</h1>", Some("a 中文 < b &unknown; &")),
            ("<titlebar>no</titlebar><title>yes</title>", Some("yes")),
            ("<p>none</p>", None),
            ("<title>never closed", None),
        ] {
            assert_eq!(title("text/html", text.as_bytes()).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn other_charsets() {
        let (gbk, ..) =
            encoding_rs::GBK.encode("# 退款政策说明\n\n客户可以在三十天之内申请退款。\n");
        assert_eq!(title("text/markdown", &gbk).as_deref(), Some("退款政策说明"));
        let utf16: Vec<u8> =
            "\u{feff}# Возврат\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(title("text/markdown", &utf16).as_deref(), Some("Возврат"));
        let cut = "# 退款\n\n客".as_bytes();
        assert_eq!(title("text/markdown", &cut[..cut.len() - 1]).as_deref(), Some("退款"));
    }

    #[test]
    fn code_has_no_title() {
        assert_eq!(title("text/x-python", b"# a comment\n"), None);
    }

    proptest! {
        #[test]
        fn a_title_is_one_short_line(head in prop::collection::vec(any::<u8>(), 0..200), prefix in "(# |<title>|---\ntitle: )?") {
            let bytes = [prefix.as_bytes(), &head].concat();
            for mime in ["text/markdown", "text/html"] {
                if let Some(title) = title(mime, &bytes) {
                    prop_assert!(!title.is_empty() && title.len() <= MAX_BYTES);
                    prop_assert!(!title.contains(|c: char| c.is_control()));
                }
            }
        }
    }
}
