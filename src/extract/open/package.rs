//! ZIP archives and the document formats that are one: which it is, and its members within limits.

use std::io::Cursor;
use std::io::Read;

use zip::ZipArchive;

use super::{Draft, Task, archive, epub, opendocument, sheet, slides, word};
use crate::config::Limits;

/// An opened archive that gives no more than the limits let.
pub struct Package<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// Bytes that may still be unpacked.
    left: usize,
    limits: &'a Limits,
}

impl<'a> Package<'a> {
    /// # Errors
    /// It is no ZIP archive, or has too many members.
    pub fn open(bytes: &'a [u8], limits: &'a Limits) -> Result<Self, String> {
        let zip = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| format!("the archive is broken: {error}"))?;
        if zip.len() > limits.max_archive_members {
            return Err(format!(
                "{} files are over the limit of {} (limits.max_archive_members)",
                zip.len(),
                limits.max_archive_members
            ));
        }
        let by_ratio = bytes.len().saturating_mul(limits.max_archive_ratio);
        Ok(Self { zip, left: limits.max_archive_bytes.min(by_ratio), limits })
    }

    pub fn names(&self) -> Vec<String> {
        self.zip.file_names().flatten().map(std::borrow::Cow::into_owned).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// A member's bytes; `None` if there is no such member or it is encrypted or broken.
    ///
    /// # Errors
    /// It unpacks to more than the limits let.
    pub fn member(&mut self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let Ok(file) = self.zip.by_name(name) else { return Ok(None) };
        let mut bytes = vec![];
        // What the archive says of the size is a claim: too much is refused by it, and little isn't believed.
        let is_over = file.size() > self.left as u64;
        let read =
            if is_over { Ok(0) } else { file.take(self.left as u64 + 1).read_to_end(&mut bytes) };
        if is_over || bytes.len() > self.left {
            self.left = 0;
            return Err(format!(
                "it unpacks to more than {} MiB or {} times its size (limits.max_archive_bytes, limits.max_archive_ratio)",
                self.limits.max_archive_bytes >> 20,
                self.limits.max_archive_ratio
            ));
        }
        self.left -= bytes.len();
        Ok((read.is_ok() || !bytes.is_empty()).then_some(bytes))
    }

    /// A member as text.
    ///
    /// # Errors
    /// As [`Package::member`].
    pub fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        Ok(self.member(name)?.and_then(|bytes| super::decode::text(bytes, None)).map(|d| d.text))
    }
}

/// Reads an archive as what its members make it.
///
/// # Errors
/// It is broken, too large, encrypted, or has no text.
pub fn read(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let mut package = Package::open(bytes, task.limits)?;
    if let Some(kind) = package.member("mimetype")? {
        let kind = String::from_utf8_lossy(&kind).trim().to_owned();
        match kind.as_str() {
            "application/epub+zip" => return epub::read(&mut package, task),
            _ if kind.starts_with("application/vnd.oasis.opendocument.") => {
                return opendocument::read(&mut package, &kind, task);
            }
            _ => {}
        }
    }
    if package.has("word/document.xml") {
        return word::read(&mut package, task);
    }
    if package.has("ppt/presentation.xml") {
        return slides::read(&mut package, task);
    }
    if package.has("xl/workbook.xml") || package.has("xl/workbook.bin") {
        return sheet::read(bytes, package, task);
    }
    if package.has("META-INF/container.xml") {
        return epub::read(&mut package, task);
    }
    archive::zip(&mut package, task)
}
