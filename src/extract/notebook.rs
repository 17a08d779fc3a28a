//! Jupyter notebooks (nbformat 3 and 4): their cells as Markdown, code in fences, outputs as text.

use serde_json::Value;

use super::clean;
use super::markdown;
use super::open::Draft;

/// Longest output of a cell that is kept: what is longer is data.
const MAX_OUTPUT: usize = 4 << 10;

/// `None` if it is no notebook.
pub fn convert(text: &str) -> Option<Draft> {
    let notebook: Value = serde_json::from_str(text).ok()?;
    let cells = match notebook.get("cells") {
        Some(cells) => cells.as_array()?,
        None => notebook.get("worksheets")?.get(0)?.get("cells")?.as_array()?,
    };
    let language = ["/metadata/language_info/name", "/metadata/kernelspec/language"]
        .iter()
        .find_map(|path| notebook.pointer(path)?.as_str())
        .unwrap_or_default();
    // The text of the notebook is within the limit already, and this is less.
    let mut draft = Draft::new(text.len().saturating_mul(2));
    for cell in cells {
        let source = words(cell.get("source").or_else(|| cell.get("input")));
        match cell.get("cell_type").and_then(Value::as_str) {
            Some("code") => {
                draft.code(language, &source);
                let outputs = cell.get("outputs").and_then(Value::as_array);
                for output in outputs.into_iter().flatten() {
                    let shown = output.get("text").or_else(|| output.pointer("/data/text~1plain"));
                    let shown = words(shown);
                    if shown.len() <= MAX_OUTPUT {
                        draft.code("", &shown);
                    }
                }
            }
            Some("heading") => {
                let level = cell.get("level").and_then(Value::as_u64).unwrap_or(1);
                draft.heading(level.min(6) as u8, &source);
            }
            _ => draft.append(&source, &markdown::outline(&source).headings, 0),
        }
    }
    let title = notebook.pointer("/metadata/title").and_then(Value::as_str);
    let first = draft.headings.first().map(|heading| heading.text.clone());
    if let Some(title) = title.map(str::to_owned).or(first) {
        draft.title(&title);
    }
    Some(draft)
}

/// A text, or one in lines.
fn words(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => clean::decoded(text).into_owned(),
        Some(Value::Array(lines)) => {
            clean::decoded(&lines.iter().filter_map(Value::as_str).collect::<String>()).into_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_markdown() {
        let notebook = r##"{"cells": [
            {"cell_type": "markdown", "source": ["# 分析\n", "words"]},
            {"cell_type": "code", "source": "print(1)", "outputs": [{"text": ["1\n"]},
                {"data": {"text/plain": "2", "image/png": "iVBOR"}}]}
            ], "metadata": {"language_info": {"name": "python"}}}"##;
        let draft = convert(notebook).unwrap_or_default();
        assert_eq!(
            draft.text,
            "# 分析\nwords\n\n```python\nprint(1)\n```\n\n```\n1\n```\n\n```\n2\n```\n"
        );
        assert_eq!(draft.title.as_deref(), Some("分析"));
        assert_eq!(convert("{}"), None);
        assert_eq!(convert("no"), None);
    }
}
