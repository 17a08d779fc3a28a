//! YAML, line by line, by its indentation.

use std::mem::take;

use super::{Path, is_too_much, unescaped};

/// A step that is open, with the column in which its line's content began.
struct Level {
    column: usize,
    /// The position in a sequence; none for a key.
    index: Option<usize>,
}

/// What goes on beyond the end of a line.
enum Open {
    /// A block of text, of lines that are indented more than this; its own indentation once known.
    Block { column: usize, indent: Option<usize> },
    /// Brackets.
    Flow(usize),
    /// A string in these quotes, with as many breaks that a backslash takes back.
    Quoted { quote: char, joined: usize },
}

/// Flattens a text. The lines stay.
pub fn flatten(text: &str) -> String {
    let mut flat = Flattener {
        out: String::with_capacity(text.len()),
        path: Path::default(),
        levels: vec![],
        open: None,
    };
    let mut read = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let len = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(len);
        read += len;
        flat.line(line.trim_end_matches(['\n', '\r', ' ', '\t']), after, read);
        if line.ends_with('\n') {
            flat.end_line();
        }
        rest = after;
    }
    flat.end_joined();
    flat.out
}

struct Flattener {
    out: String,
    path: Path,
    levels: Vec<Level>,
    open: Option<Open>,
}

impl Flattener {
    fn line(&mut self, line: &str, after: &str, read: usize) {
        let body = line.trim_start_matches([' ', '\t']);
        let column = line.len() - body.len();
        let is_marker = column == 0 && (body == "..." || body == "---" || body.starts_with("--- "));
        if is_marker {
            self.end_joined();
            self.open = None;
        }
        if self.goes_on(line, body, column) || body.is_empty() {
            return;
        }
        if body.starts_with(['#', '%']) {
            return self.out.push_str(body);
        }
        if is_marker {
            self.to(0);
            return self.out.push_str(body);
        }
        let (mut body, mut column) = (body, column);
        let mut is_item = false;
        while body == "-" || body.starts_with("- ") {
            self.item(column);
            is_item = true;
            let next = body[1..].trim_start_matches([' ', '\t']);
            column += body.len() - next.len();
            body = next;
        }
        let Some((key, value)) = key(body) else {
            // An item's value, or a line of a text that goes on.
            if is_item {
                let path = self.path.show(self.is_too_much(read));
                self.write(&path, if body.is_empty() || path.is_empty() { "" } else { ": " }, body);
                self.begins(body, column.saturating_sub(1));
            } else if self.path.unshown().is_some() {
                // A key's value that begins below it.
                let path = self.path.show(self.is_too_much(read));
                self.write(&path, ": ", body);
                self.begins(body, self.levels.last().map_or(0, |level| level.column));
            } else {
                self.out.push_str("  ");
                self.out.push_str(&unescaped(body, false));
            }
            return;
        };
        self.close_to(column);
        let is_opening = is_opening(value) && is_deeper(after, column);
        let above = match is_opening {
            true => String::new(),
            false => self.path.show(self.is_too_much(read)),
        };
        self.path.key(key);
        self.levels.push(Level { column, index: None });
        if is_opening {
            // What it holds names it.
            if let Some(at) = value.find('#') {
                self.out.push_str(&value[at..]);
            }
            return;
        }
        self.path.shown = self.path.steps.len();
        let above = if above.is_empty() { above } else { above + "." };
        self.write(&above, "", body);
        self.begins(value, column);
    }

    fn is_too_much(&self, read: usize) -> bool {
        is_too_much(self.out.len(), read)
    }

    /// Ends a line, later if the string that it holds takes its break back.
    fn end_line(&mut self) {
        if let Some(Open::Quoted { quote: '"', joined }) = &mut self.open
            && self.out.ends_with('\\')
        {
            self.out.pop();
            *joined += 1;
        } else {
            self.out.push('\n');
        }
    }

    /// Ends the lines that a string had joined.
    fn end_joined(&mut self) {
        if let Some(Open::Quoted { joined, .. }) = &mut self.open {
            self.out.extend(std::iter::repeat_n('\n', take(joined)));
        }
    }

    fn write(&mut self, path: &str, between: &str, body: &str) {
        self.out.push_str(path);
        self.out.push_str(between);
        self.out.push_str(&unescaped(body, false));
    }

    /// Whether a line belongs to the value that began before it; it is written then.
    fn goes_on(&mut self, line: &str, body: &str, column: usize) -> bool {
        let is_done = match &mut self.open {
            None => return false,
            Some(Open::Block { column: of, indent }) => {
                if body.is_empty() {
                    return true;
                }
                if column <= *of {
                    self.open = None;
                    return false;
                }
                let indent = *indent.get_or_insert(column);
                self.out.push_str("  ");
                self.out.push_str(&line[indent.min(column)..]);
                return true;
            }
            Some(Open::Flow(brackets)) => {
                *brackets = balance(body, *brackets);
                *brackets == 0
            }
            Some(Open::Quoted { quote, joined }) => {
                let is_done = ends_quote(body, *quote);
                let in_string = *quote == '"';
                if *joined == 0 && !body.is_empty() {
                    self.out.push_str("  ");
                }
                // An escaped space is how a string goes on with one.
                let body = if *joined > 0 {
                    body.strip_prefix("\\").filter(|rest| rest.starts_with(' ')).unwrap_or(body)
                } else {
                    body
                };
                self.out.push_str(&unescaped(body, in_string));
                if is_done {
                    self.end_joined();
                    self.open = None;
                }
                return true;
            }
        };
        if !body.is_empty() {
            self.out.push_str("  ");
        }
        self.out.push_str(&unescaped(body, false));
        if is_done {
            self.open = None;
        }
        true
    }

    /// Notes whether a value goes on in the next lines.
    fn begins(&mut self, value: &str, column: usize) {
        let value = without_marks(value);
        let block = value
            .strip_prefix(['|', '>'])
            .map(|rest| rest.split('#').next().unwrap_or_default().trim_end());
        self.open = match value.chars().next() {
            Some('|' | '>')
                if block.is_some_and(|rest| {
                    rest.len() <= 2 && rest.chars().all(|c| c.is_ascii_digit() || "+-".contains(c))
                }) =>
            {
                Some(Open::Block { column, indent: None })
            }
            Some('[' | '{') => Some(balance(value, 0)).filter(|n| *n > 0).map(Open::Flow),
            Some(quote @ ('"' | '\'')) if !ends_quote(&value[1..], quote) => {
                Some(Open::Quoted { quote, joined: 0 })
            }
            _ => None,
        };
    }

    /// The next item of the sequence whose dashes stand in a column.
    fn item(&mut self, column: usize) {
        while let Some(last) = self.levels.last() {
            let is_sequence = last.column == column && last.index.is_some();
            // A sequence may stand in its key's own column.
            let is_key_of_it = last.column == column && last.index.is_none();
            if last.column < column || is_sequence || is_key_of_it && !self.is_in_item(column) {
                break;
            }
            self.to(self.levels.len() - 1);
        }
        let next = match self.levels.last() {
            Some(Level { column: of, index: Some(index) }) if *of == column => {
                let next = index + 1;
                self.to(self.levels.len() - 1);
                next
            }
            _ => 0,
        };
        self.path.index(next);
        self.levels.push(Level { column, index: Some(next) });
    }

    /// Whether an item in this very column is open below the last step.
    fn is_in_item(&self, column: usize) -> bool {
        let below = self.levels.len().checked_sub(2).and_then(|at| self.levels.get(at));
        below.is_some_and(|level| level.column == column && level.index.is_some())
    }

    /// Closes what doesn't hold a key in a column.
    fn close_to(&mut self, column: usize) {
        let open = self.levels.iter().rposition(|level| level.column < column);
        self.to(open.map_or(0, |at| at + 1));
    }

    fn to(&mut self, levels: usize) {
        self.levels.truncate(levels);
        self.path.truncate(levels);
    }
}

/// Takes `key: value` apart.
fn key(body: &str) -> Option<(&str, &str)> {
    let quote = body.chars().next().filter(|c| matches!(c, '"' | '\''));
    let from = match quote {
        Some(quote) => 2 + closing(&body[1..], quote)?,
        None if body.starts_with(['[', '{', '?', '|', '>', '@', '`']) => return None,
        None => 0,
    };
    let mut at = from;
    loop {
        at += body[at..].find(':')?;
        let value = &body[at + 1..];
        if value.is_empty() || value.starts_with([' ', '\t']) {
            let key = body[..at].trim_end();
            let is_key = !key.is_empty() && (quote.is_some() || !key.contains(" #"));
            return is_key.then_some((key, value.trim_start()));
        }
        if quote.is_some() {
            return None;
        }
        at += 1;
    }
}

/// A value without its anchor and tag.
fn without_marks(value: &str) -> &str {
    let mut value = value.trim_start();
    while value.starts_with(['&', '!']) {
        value = value.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
    }
    value
}

/// Whether a key has nothing beside it.
fn is_opening(value: &str) -> bool {
    value.is_empty() || value.starts_with('#')
}

/// Whether the next line with content stands below a key in a column.
fn is_deeper(after: &str, column: usize) -> bool {
    // Bounded: comments may be long, and each key looks.
    let mut lines = after.lines().take(32).filter(|line| {
        let body = line.trim();
        !body.is_empty() && !body.starts_with('#')
    });
    lines.next().is_some_and(|line| {
        let body = line.trim_start_matches([' ', '\t']);
        let next = line.len() - body.len();
        next > column || next == column && (body == "-" || body.starts_with("- "))
    })
}

/// How many brackets are open after a line.
fn balance(text: &str, open: usize) -> usize {
    let (mut open, mut quote, mut before) = (open, None, ' ');
    for c in text.chars() {
        match c {
            _ if quote == Some(c) && before != '\\' => quote = None,
            _ if quote.is_some() => {}
            '"' | '\'' if !before.is_alphanumeric() => quote = Some(c),
            '#' if before.is_whitespace() => break,
            '[' | '{' => open += 1,
            ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    open
}

/// Whether a string in quotes ends in a line.
fn ends_quote(text: &str, quote: char) -> bool {
    closing(text, quote).is_some()
}

/// Where the quote stands that ends a string.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => drop(chars.next()),
            // Two single ones stand for one.
            '\'' if quote == c && chars.next_if(|(_, next)| *next == c).is_some() => {}
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_get_those_above_them() {
        let rows = [
            (
                "kind: Pod\nspec:\n  containers:\n    - name: web # first\n      image: \"nginx:1.25\"\n      ports:\n        - containerPort: 80\n    - name: db\n",
                "kind: Pod\n\n\nspec.containers[0].name: web # first\nspec.containers[0].image: \"nginx:1.25\"\n\nspec.containers[0].ports[0].containerPort: 80\nspec.containers[1].name: db\n",
            ),
            // A sequence in its key's column, and one of scalars.
            ("a:\n- x\n- y: 1\n  z: 2\nb: 3\n", "\na[0]: x\na[1].y: 1\na[1].z: 2\nb: 3\n"),
            ("- - a\n  - b\n- c: [1, 2]\n", "[0][0]: a\n[0][1]: b\n[1].c: [1, 2]\n"),
            // Keys without a value, comments, anchors.
            ("volumes: # all\n  data:\n  logs:\n", "# all\nvolumes.data:\nvolumes.logs:\n"),
            (
                "base: &b\n  # why\n  x: 1\nuse:\n  <<: *b\n",
                "base: &b\n# why\nbase.x: 1\n\nuse.<<: *b\n",
            ),
            // Text of several lines.
            (
                "a:\n  run: |\n    make\n      deep: no\n\n    end\n  b: 2\n",
                "\na.run: |\n  make\n    deep: no\n\n  end\na.b: 2\n",
            ),
            ("a:\n  - >-\n    x: y\n  - z\n", "\na[0]: >-\n  x: y\na[1]: z\n"),
            ("a: \"one\n  b: two\"\nc: 3\n", "a: \"one\n  b: two\"\nc: 3\n"),
            (
                "a: {\n  b: 1,\n}\nc: [x,\n y: z]\nd: 1\n",
                "a: {\n  b: 1,\n  }\nc: [x,\n  y: z]\nd: 1\n",
            ),
            // Several documents, templates, links.
            ("---\na: 1\n---\nb:\n  c: http://x:1/y\n", "---\na: 1\n---\n\nb.c: http://x:1/y\n"),
            ("a:\n  {{- if .x }}\n  b: {{ .y }}\n", "\na: {{- if .x }}\na.b: {{ .y }}\n"),
            (
                "สินค้า:\n  ราคา: 40\n商品:\n  - 名称: 返金\n",
                "\nสินค้า.ราคา: 40\n\n商品[0].名称: 返金\n",
            ),
            // Values below their key.
            (
                "a:\n  b:\n    one two\n    three\n  c:\n    \"x\n    y: z\"\n",
                "\n\na.b: one two\n  three\n\na.c: \"x\n  y: z\"\n",
            ),
            (
                "a: 'it''s' # it's\nb: \"x\" # 5\" y\nc: 1\n",
                "a: 'it''s' # it's\nb: \"x\" # 5\" y\nc: 1\n",
            ),
            ("'it''s a: b':\n  c: 1\n", "\n'it''s a: b'.c: 1\n"),
            // What writers escape and fold.
            (
                "a:\n  b: \"\\u9000\\u6B3E\\\n    \\u653F\\u7B56 \\U0001F600\\\n    \\ C:\\\\new\\n\"\n  c: 1\n",
                "\na.b: \"退款政策 😀 C:\\\\new \"\n\n\na.c: 1\n",
            ),
            ("a: C:\\new\nb: '\\u9000'\n", "a: C:\\new\nb: '\\u9000'\n"),
            ("a: \"cut\\\n  off", "a: \"cutoff\n"),
            ("a: |\n x\n\u{3000}y\n", "a: |\n  x\n  \u{3000}y\n"),
            ("\"a b\":\n  'c': 1\r\n", "\n\"a b\".'c': 1\n"),
        ];
        for (yaml, expected) in rows {
            assert_eq!(flatten(yaml), expected, "{yaml}");
        }
    }
}
