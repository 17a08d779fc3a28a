//! A table's cells, written one below the other and put into Markdown rows at the table's end.

use std::ops::Range;

/// A cell with more text is no datum but a column of a page's layout.
const MAX_CELL_BYTES: usize = 2000;

pub(super) struct Table {
    at: usize,
    rows: Vec<Vec<Range<usize>>>,
    pub(super) is_layout: bool,
}

impl Table {
    /// A table whose text begins at a byte of the output.
    pub(super) fn new(at: usize) -> Self {
        Self { at, rows: vec![], is_layout: false }
    }

    pub(super) fn row(&mut self) {
        self.rows.push(vec![]);
    }

    pub(super) fn cell(&mut self, at: usize) {
        if self.rows.is_empty() {
            self.row();
        }
        if let Some(row) = self.rows.last_mut() {
            row.push(at..at);
        }
    }

    pub(super) fn end_cell(&mut self, at: usize) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.end = at.max(cell.start);
        }
    }

    /// Replaces the cells' text at the end of the output by rows, if it is a table of data.
    pub(super) fn write_rows(mut self, out: &mut String) {
        self.rows.retain(|row| !row.is_empty());
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = self.rows.iter().flatten();
        if self.is_layout || columns < 2 || cells.clone().any(|cell| cell.len() > MAX_CELL_BYTES) {
            return;
        }
        let first = cells.clone().map(|cell| cell.start).min().unwrap_or(self.at);
        // Text between the cells has no place in the rows.
        let mut at = first;
        for cell in cells {
            if out.get(at..cell.start).is_none_or(|gap| !gap.trim().is_empty()) {
                return;
            }
            at = cell.end;
        }
        if !out[at..].trim().is_empty() {
            return;
        }
        let mut rows = String::new();
        for (n, row) in self.rows.iter().enumerate() {
            for cell in row {
                rows.push_str("| ");
                for word in out[cell.clone()].split_whitespace() {
                    rows.push_str(&word.replace('|', "\\|"));
                    rows.push(' ');
                }
            }
            rows.push_str("|\n");
            if n == 0 {
                rows.push_str(&"| --- ".repeat(row.len()));
                rows.push_str("|\n");
            }
        }
        rows.truncate(rows.trim_end().len());
        out.truncate(first);
        // A caption before the rows keeps its own paragraph.
        if first > self.at && out.ends_with('\n') && !out.ends_with("\n\n") {
            out.push('\n');
        }
        out.push_str(&rows);
    }
}
