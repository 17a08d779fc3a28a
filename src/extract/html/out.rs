//! The output: words, and the white space between them that markup asks for.

/// The text so far, and the white space and list mark that stand before the next word.
#[derive(Default)]
pub(super) struct Out {
    pub(super) text: String,
    /// Line breaks before the next word.
    pub(super) lines: u8,
    pub(super) space: bool,
    /// A list mark before the next word.
    pub(super) prefix: String,
}

impl Out {
    pub(super) fn words(&mut self, text: &str) {
        let is_space = |c: char| c.is_ascii_whitespace();
        self.space |= text.starts_with(is_space);
        for (n, word) in text.split_ascii_whitespace().enumerate() {
            self.space |= n > 0;
            self.settle();
            self.text.push_str(word);
        }
        self.space |= text.ends_with(is_space);
    }

    /// Writes the white space that was asked for.
    fn settle(&mut self) {
        if self.lines > 0 {
            if !self.text.is_empty() {
                let have = self.text.bytes().rev().take(2).take_while(|b| *b == b'\n').count();
                for _ in have..self.lines.into() {
                    self.text.push('\n');
                }
            }
        } else if self.space && !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
        self.text.push_str(&self.prefix);
        self.prefix.clear();
        (self.lines, self.space) = (0, false);
    }

    /// Settles, and says where the next text will stand.
    pub(super) fn settled(&mut self) -> usize {
        self.settle();
        self.text.len()
    }

    /// Begins a block with a mark on its own line, whatever was pending; says where the line begins.
    pub(super) fn begin(&mut self, mark: &str) -> usize {
        self.prefix.clear();
        let at = self.settled();
        self.text.push_str(mark);
        at
    }

    pub(super) fn into_text(self) -> String {
        let mut text = self.text;
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}
