//! What a read returned, made fit to be looked at. Whatever is rendered has been sanitised, stands in
//! a sandbox in which nothing runs, and under a policy by which nothing is loaded.

use std::collections::{HashMap, HashSet};

use ammonia::{Builder, UrlRelative};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{assets, show};
use crate::serve::api::ReadContent;

/// Text that is rendered; of more, the beginning is.
const MAX_RENDERED: usize = 200_000;
/// Elements within each other; what goes deeper is shown as it was written.
const MAX_DEPTH: usize = 500;
/// Largest picture that is shown, in base64.
const MAX_PICTURE: usize = 12 << 20;

/// One content of a read, for people.
pub fn preview(content: &ReadContent, title: &str) -> Option<Markup> {
    let mime_type = content.mime_type.as_deref().unwrap_or_default();
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match (&content.text, &content.blob) {
        (Some(text), _) => Some(text_preview(text, &essence, title)),
        (None, Some(blob)) if is_picture(&essence) && blob.len() <= MAX_PICTURE => {
            // Decoded and encoded again, so that it is base64 whatever was sent.
            let bytes = BASE64_STANDARD.decode(blob.trim()).ok()?;
            Some(picture(&essence, &bytes, title))
        }
        _ => None,
    }
}

fn text_preview(text: &str, essence: &str, title: &str) -> Markup {
    match essence {
        "text/markdown" | "text/x-markdown" => rendered(&markdown(head(text)), text, title),
        "text/html" | "application/xhtml+xml" => rendered(head(text), text, title),
        "image/svg+xml" => picture(essence, text.as_bytes(), title),
        _ if essence == "application/json" || essence.ends_with("+json") => code(&json(text)),
        _ => code(head(text)),
    }
}

fn rendered(html: &str, text: &str, title: &str) -> Markup {
    if is_too_deep(html) { code(head(text)) } else { sandbox(&sanitised(html), title) }
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_RENDERED)]
}

fn json(text: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(head(text)).ok();
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| head(text).to_owned())
}

fn code(text: &str) -> Markup {
    html! { pre.text tabindex="0" { (show::block(text)) } }
}

/// Kinds of pictures that browsers show without running anything.
fn is_picture(essence: &str) -> bool {
    [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/avif",
        "image/bmp",
        "image/svg+xml",
    ]
    .contains(&essence)
}

/// In an image, a browser runs no script of an SVG and loads nothing for it.
fn picture(essence: &str, bytes: &[u8], title: &str) -> Markup {
    let source = format!("data:{essence};base64,{}", BASE64_STANDARD.encode(bytes));
    sandbox(&html! { img src=(source) alt=(show::line(title)); }.into_string(), title)
}

/// A document of its own that may do nothing: no scripts, no forms, no origin. It keeps the page's
/// policy as well.
fn sandbox(body: &str, title: &str) -> Markup {
    let document = html! {
        (DOCTYPE)
        html {
            head {
                meta charset="utf-8";
                meta name="color-scheme" content="light dark";
                title { (show::line(title)) }
                style { (PreEscaped(assets::PREVIEW_STYLE)) }
            }
            body { (PreEscaped(body)) }
        }
    };
    html! { iframe.preview sandbox="" referrerpolicy="no-referrer" title=(show::line(title)) srcdoc=(document.into_string()) {} }
}

/// Markdown as HTML, not sanitised yet. Pictures of elsewhere become their descriptions, links their text with
/// the address beside it: nothing here leads away.
fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let (mut events, mut in_front_matter, mut links) = (vec![], false, vec![]);
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::MetadataBlock(_)) => in_front_matter = true,
            Event::End(TagEnd::MetadataBlock(_)) => in_front_matter = false,
            _ if in_front_matter => {}
            Event::Start(Tag::Image { .. }) => events.push(Event::InlineHtml("<em>🖼 ".into())),
            Event::End(TagEnd::Image) => events.push(Event::InlineHtml("</em>".into())),
            Event::Start(Tag::Link { dest_url, .. }) => links.push(dest_url),
            Event::End(TagEnd::Link) => {
                if let Some(address) = links.pop().filter(|address| !address.starts_with('#')) {
                    let shown = html! { " " small { "<" (address) ">" } };
                    events.push(Event::InlineHtml(shown.into_string().into()));
                }
            }
            event => events.push(event),
        }
    }
    let mut rendered = String::new();
    pulldown_cmark::html::push_html(&mut rendered, events.into_iter());
    rendered
}

/// HTML without what could run, load or lead anywhere.
fn sanitised(html: &str) -> String {
    let attributes = HashMap::from([
        ("ol", HashSet::from(["start"])),
        ("td", HashSet::from(["colspan", "rowspan"])),
        ("th", HashSet::from(["colspan", "rowspan", "scope"])),
    ]);
    let mut builder = Builder::default();
    builder
        .rm_tags(["a", "area", "img", "map"])
        .tag_attributes(attributes)
        .url_schemes(HashSet::new())
        .url_relative(UrlRelative::Deny);
    builder.clean(&show::block(html)).to_string()
}

/// Whether a browser's way of reading HTML would take a time that grows with the square of the text: so
/// deep does nobody nest. Elements that end by themselves aren't counted.
fn is_too_deep(html: &str) -> bool {
    const ENDING: &[&str] = &[
        "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "option", "br", "hr", "img",
        "input", "meta", "link", "col", "source", "wbr", "area", "base", "embed",
    ];
    let (mut depth, mut tags) = (0_usize, html.split('<'));
    tags.next();
    for tag in tags {
        let closes = tag.starts_with('/');
        let name = tag.trim_start_matches('/');
        let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())];
        let ends_itself = ENDING.iter().any(|ending| ending.eq_ignore_ascii_case(name));
        if name.is_empty() || ends_itself {
            continue;
        }
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &[&str] = &[
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)><script>alert(1)</script></svg>",
        "<iframe src=https://evil.example></iframe>",
        "<a href='javascript:alert(1)'>x</a>",
        "<a href=https://evil.example ping=https://evil.example>x</a>",
        "<form action=https://evil.example><button formaction=https://evil.example>x</button></form>",
        "<link rel=stylesheet href=https://evil.example>",
        "<meta http-equiv=refresh content='0; url=https://evil.example'>",
        "<style>@import url(https://evil.example)</style>",
        "<p style='background:url(https://evil.example)'>x</p>",
        "<base href=https://evil.example>",
        "<video src=https://evil.example poster=https://evil.example></video>",
        "<object data=https://evil.example></object><embed src=https://evil.example>",
        "<blockquote cite=https://evil.example>x</blockquote>",
        "![x](https://evil.example/p.png)",
        "[x](javascript:alert(1))",
        "</iframe><script>alert(1)</script>",
        "\"><script>alert(1)</script>",
        "<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)></style></mglyph></math>",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    ];

    fn content(mime_type: &str, text: &str) -> ReadContent {
        ReadContent {
            uri: "x://1".into(),
            mime_type: Some(mime_type.into()),
            text: Some(text.into()),
            blob: None,
        }
    }

    /// The sanitised body itself: `rendered` without its frame.
    fn bodies(text: &str) -> [String; 2] {
        [sanitised(&markdown(text)), sanitised(text)]
    }

    #[test]
    fn nothing_of_a_hostile_text_runs_or_loads() {
        for text in HOSTILE {
            for body in bodies(text) {
                let lower = body.to_lowercase();
                for bad in [
                    "<script", "<img", "<svg", "<iframe", "<a ", "<form", "<link", "<meta",
                    "<style", "<base", "<video", "<object", "<embed", "href=", "src=", "style=",
                    "cite=",
                ] {
                    // Escaped, it is text and does nothing.
                    assert!(!lower.contains(bad), "{text}: {body}");
                }
                let handler = lower
                    .split('<')
                    .skip(1)
                    .any(|tag| tag.split('>').next().is_some_and(|tag| tag.contains(" on")));
                assert!(!handler, "{text}: {body}");
            }
            for mime_type in
                ["text/markdown", "text/html", "text/plain", "application/json", "image/svg+xml"]
            {
                let shown = preview(&content(mime_type, text), text).unwrap().into_string();
                assert_eq!(shown.matches("<script").count(), 0, "{mime_type} {text}: {shown}");
                assert!(shown.matches("<iframe").count() <= 1, "{mime_type} {text}: {shown}");
                assert!(!shown.contains("<iframe") || shown.contains("sandbox=\"\""));
            }
        }
    }

    #[test]
    fn what_is_readable_stays_readable() {
        let text = "---\ntitle: x\n---\n# 退款\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[more](wiki://a) `x`\n";
        let body = markdown(text);
        for part in [
            "<h1>退款</h1>",
            "<td>1</td>",
            "more <small>&lt;wiki://a&gt;</small>",
            "<code>x</code>",
        ] {
            assert!(body.contains(part), "{part}: {body}");
        }
        assert!(!body.contains("title:"));
        let shown = preview(&content("application/json", r#"{"b":[1],"a":"<b>"}"#), "x");
        let shown = shown.unwrap().into_string();
        assert!(shown.contains("\n  &quot;b&quot;: [\n") && shown.contains("&lt;b&gt;"), "{shown}");
        assert!(
            preview(&content("text/plain", "a\u{1b}[2Jb"), "x")
                .unwrap()
                .into_string()
                .contains("\\u{1b}")
        );
    }

    #[test]
    fn pictures_are_shown_and_other_bytes_are_not() {
        let blob = |mime_type: &str, blob: &str| ReadContent {
            text: None,
            blob: Some(blob.into()),
            ..content(mime_type, "")
        };
        let shown = preview(&blob("image/png", "aGk="), "<x>").unwrap().into_string();
        assert!(shown.contains("data:image/png;base64,aGk="), "{shown}");
        for (mime_type, bytes) in
            [("application/zip", "aGk="), ("image/png", "\"><script>"), ("text/html", "aGk=")]
        {
            assert!(preview(&blob(mime_type, bytes), "x").is_none(), "{mime_type}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_shown_as_it_was_written() {
        let lists = "<ul><li>x<p>y".repeat(200) + &"<p>z<br>".repeat(5_000);
        assert!(!is_too_deep(&lists) && !is_too_deep("a < b < c"));
        for (mime_type, text) in
            [("text/html", "<div>".repeat(50_000)), ("text/markdown", "> ".repeat(50_000) + "x")]
        {
            let shown = preview(&content(mime_type, &text), "x").unwrap().into_string();
            assert!(shown.contains("<pre") && !shown.contains("<iframe"), "{mime_type}");
        }
    }
}
