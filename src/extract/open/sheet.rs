//! Spreadsheets: a page for each sheet, its rows as a table whose first row is the header.

use std::io::Cursor;

use calamine::{Data, DataRef, ExcelDateTime, Reader as _, Xls, Xlsb, Xlsx};

use super::package::Package;
use super::{Draft, Task};

/// Empty cells that are kept between two others, so that columns stay below their header.
const MAX_GAP: u32 = 64;

/// XLSX and XLSB. `package` is the same file, opened.
///
/// # Errors
/// It unpacks to more than the limits let, is broken, or has no text.
pub fn read(bytes: &[u8], mut package: Package<'_>, task: &Task<'_>) -> Result<Draft, String> {
    // The reader has no limits of its own.
    for name in package.names() {
        package.member(&name)?;
    }
    let is_binary = package.has("xl/workbook.bin");
    let title = package.text("docProps/core.xml")?;
    drop(package);
    let mut draft = Draft::new(task.budget);
    if let Some(title) = title.and_then(|xml| super::xml::text_of(&xml, "title")) {
        draft.title(&title);
    }
    if is_binary {
        draft.mime_type = Some("application/vnd.ms-excel.sheet.binary.macroenabled.12");
        let mut book = Xlsb::new(Cursor::new(bytes.to_vec())).map_err(broken)?;
        for (number, name) in (1..).zip(book.sheet_names()) {
            if let Ok(range) = book.worksheet_range(&name) {
                whole(&range, number, &name, &mut draft);
            }
        }
        return finished(draft);
    }
    draft.mime_type = Some("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
    let mut book = Xlsx::new(Cursor::new(bytes.to_vec())).map_err(broken)?;
    for (number, name) in (1..).zip(book.sheet_names()) {
        // A chart has no cells; and a range of all of them would be as large as the file claims.
        let Ok(mut cells) = book.worksheet_cells_reader(&name) else { continue };
        let mut rows = Rows::begin(number, &name, &mut draft);
        while let Ok(Some(cell)) = cells.next_cell() {
            let text = match cell.get_value() {
                DataRef::Empty => continue,
                DataRef::String(text) => text.clone(),
                DataRef::SharedString(text) => (*text).to_owned(),
                DataRef::Int(n) => n.to_string(),
                DataRef::Float(n) => n.to_string(),
                DataRef::Bool(value) => value.to_string(),
                DataRef::DateTime(time) => date(*time),
                DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
                DataRef::Error(error) => error.to_string(),
            };
            if !rows.cell(cell.get_position(), text) {
                break;
            }
        }
        rows.end();
    }
    finished(draft)
}

/// OLE files: sheets of Excel before 2007; other programs' files aren't read.
///
/// # Errors
/// It is broken, of another program, or has no text.
pub fn old(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let has = |stream: &str| {
        let name: Vec<u8> = stream.encode_utf16().flat_map(u16::to_le_bytes).collect();
        bytes.windows(name.len()).any(|window| window == name)
    };
    if has("WordDocument") {
        return Err("Word documents of before 2007 (.doc) are not read; as DOCX they are".into());
    }
    if has("PowerPoint Document") {
        return Err("PowerPoint slides of before 2007 (.ppt) are not read; as PPTX they are".into());
    }
    if has("EncryptedPackage") {
        return Err("the document is encrypted".into());
    }
    if !has("Workbook") && !has("Book") {
        return Err("OLE files other than Excel's are not read".into());
    }
    let mut draft = Draft::new(task.budget);
    draft.mime_type = Some("application/vnd.ms-excel");
    let mut book = Xls::new(Cursor::new(bytes.to_vec())).map_err(broken)?;
    for (number, name) in (1..).zip(book.sheet_names()) {
        if let Ok(range) = book.worksheet_range(&name) {
            whole(&range, number, &name, &mut draft);
        }
    }
    finished(draft)
}

fn broken(error: impl std::fmt::Display) -> String {
    format!("the Excel sheet is broken: {error}")
}

fn finished(draft: Draft) -> Result<Draft, String> {
    // Each sheet's name is a heading.
    if draft.text.lines().all(|line| line.starts_with('#') || line.is_empty()) {
        return Err("the sheets have no text".into());
    }
    Ok(draft)
}

fn whole(range: &calamine::Range<Data>, number: u32, name: &str, draft: &mut Draft) {
    let (top, left) = range.start().unwrap_or_default();
    let mut rows = Rows::begin(number, name, draft);
    for (row, column, value) in range.used_cells() {
        let text = match value {
            Data::Float(n) => n.to_string(),
            Data::DateTime(time) => date(*time),
            value => value.to_string(),
        };
        if !rows.cell((top + row as u32, left + column as u32), text) {
            break;
        }
    }
    rows.end();
}

/// `2026-01-31`, with the time where there is one; a duration in days stays a number.
fn date(time: ExcelDateTime) -> String {
    if time.is_duration() {
        return time.as_f64().to_string();
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    match (hour, minute, second) {
        (0, 0, 0) => date,
        _ => format!("{date} {hour:02}:{minute:02}:{second:02}"),
    }
}

/// The rows of a sheet while they are read, cell by cell in order.
pub(super) struct Rows<'a> {
    draft: &'a mut Draft,
    row: Vec<String>,
    /// Row and column of the cell that is expected next.
    at: (u32, u32),
    left: u32,
    has_header: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn begin(number: u32, name: &str, draft: &'a mut Draft) -> Self {
        draft.page(number, Some(name));
        draft.heading(1, name);
        draft.line("");
        Self { draft, row: vec![], at: (0, 0), left: u32::MAX, has_header: false }
    }

    /// Whether more cells are wanted.
    pub(super) fn cell(&mut self, (row, column): (u32, u32), text: String) -> bool {
        if text.is_empty() {
            return true;
        }
        if row != self.at.0 {
            self.end_row();
            self.at = (row, 0);
        }
        if !self.has_header && self.row.is_empty() {
            self.left = column;
        }
        let gap = column.saturating_sub(self.left.min(column) + self.row.len() as u32);
        self.row.extend(std::iter::repeat_n(String::new(), gap.min(MAX_GAP) as usize));
        self.row.push(text);
        !self.draft.is_full()
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.is_empty() {
            return;
        }
        self.draft.row(&row);
        if !self.has_header {
            self.draft.line(&("| --- ".repeat(row.len()) + "|"));
            self.has_header = true;
        }
    }

    pub(super) fn end(mut self) {
        self.end_row();
    }
}
