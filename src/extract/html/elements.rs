//! Which elements are what.

/// Elements whose end tag an element's start implies, and those that it isn't looked for beyond
/// (HTML 13.1.2.4).
pub(super) fn implied_ends(
    name: &str,
) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match name {
        "li" => (&["li"], &["ul", "ol", "menu"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl"]),
        "tr" => (&["tr"], &["table"]),
        "td" | "th" => (&["td", "th"], &["table", "tr"]),
        "tbody" | "thead" | "tfoot" => (&["tbody", "thead", "tfoot", "tr"], &["table"]),
        "option" => (&["option"], &["select"]),
        "body" => (&["head"], &[]),
        _ if is_paragraph(name) || matches!(name, "ul" | "ol" | "table" | "pre") => (
            &["p"],
            &[
                "div",
                "section",
                "article",
                "li",
                "td",
                "th",
                "body",
                "button",
                "table",
                "blockquote",
            ],
        ),
        _ => return None,
    })
}

pub(super) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
            | "basefont"
            | "bgsound"
            | "frame"
            | "keygen"
    )
}

pub(super) fn is_paragraph(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "main"
            | "header"
            | "footer"
            | "aside"
            | "address"
            | "blockquote"
            | "center"
            | "details"
            | "dialog"
            | "dl"
            | "fieldset"
            | "figure"
            | "form"
            | "hgroup"
            | "search"
            | "nav"
            | "body"
            | "dir"
    )
}

pub(super) fn is_line(name: &str) -> bool {
    matches!(
        name,
        "dt" | "dd"
            | "figcaption"
            | "summary"
            | "legend"
            | "caption"
            | "option"
            | "optgroup"
            | "select"
            | "textarea"
            | "text"
            | "title"
            | "desc"
            | "tbody"
            | "thead"
            | "tfoot"
            | "head"
            | "html"
            | "frameset"
    )
}
