//! Archives: what they hold, one level deep, each file under its name.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::package::Package;
use super::{Draft, Reader, Task, reader_of};
use crate::extract::mime::MimeType;

/// # Errors
/// It unpacks to more than the limits let, or nothing in it has text.
pub fn zip(package: &mut Package<'_>, task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    let names = package.names();
    let mut encrypted = 0;
    for name in names.iter().filter(|name| is_wanted(name)) {
        match package.member(name)? {
            Some(bytes) => add(&bytes, name, &mut draft, task),
            None => encrypted += 1,
        }
        if draft.is_full() {
            break;
        }
    }
    if encrypted > 0 {
        draft.note(format!("{encrypted} files in it are encrypted or broken"));
    }
    finished(draft)
}

/// # Errors
/// It unpacks to more than the limits let, is broken, or nothing in it has text.
pub fn gzip(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let most = task.limits.max_archive_bytes;
    let most = most.min(bytes.len().saturating_mul(task.limits.max_archive_ratio));
    let mut unpacked = vec![];
    let read = MultiGzDecoder::new(bytes).take(most as u64 + 1).read_to_end(&mut unpacked);
    if unpacked.len() > most {
        return Err(format!(
            "it unpacks to more than {} MiB or {} times its size (limits.max_archive_bytes, limits.max_archive_ratio)",
            task.limits.max_archive_bytes >> 20,
            task.limits.max_archive_ratio
        ));
    }
    if let Err(error) = read
        && unpacked.is_empty()
    {
        return Err(format!("the archive is broken: {error}"));
    }
    let inner = task.uri.split(['?', '#']).next().unwrap_or_default();
    let inner = inner.strip_suffix(".gz").or_else(|| inner.strip_suffix(".tgz")).unwrap_or(inner);
    if reader_of(&unpacked, inner, &MimeType::default()) == Some(Reader::Tar) {
        return tar(&unpacked, task);
    }
    // One packed file is that file.
    let mut draft = super::super::member(&unpacked, inner, &deeper(task))?;
    draft.mime_type = Some("application/gzip");
    Ok(draft)
}

/// # Errors
/// It is broken, or nothing in it has text.
pub fn tar(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    let mut archive = tar::Archive::new(bytes);
    let entries = archive.entries().map_err(|error| format!("the archive is broken: {error}"))?;
    let mut members = 0;
    for entry in entries {
        let Ok(mut entry) = entry else {
            draft.note("the archive is broken; what stands before the fault was read");
            break;
        };
        members += 1;
        if members > task.limits.max_archive_members {
            draft.note(format!(
                "only {} files of it are read (limits.max_archive_members)",
                task.limits.max_archive_members
            ));
            draft.truncated = true;
            break;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut content = vec![];
        if entry.header().entry_type().is_file()
            && is_wanted(&name)
            && entry.by_ref().take(bytes.len() as u64).read_to_end(&mut content).is_ok()
        {
            add(&content, &name, &mut draft, task);
        }
        if draft.is_full() {
            break;
        }
    }
    finished(draft)
}

/// What is no system's litter.
fn is_wanted(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    !file.is_empty() && !name.starts_with("__MACOSX/") && file != ".DS_Store" && file != "Thumbs.db"
}

fn finished(mut draft: Draft) -> Result<Draft, String> {
    if draft.is_blank() {
        let reasons = draft.notes.join("; ");
        return Err(match reasons.as_str() {
            "" => "the archive is empty".into(),
            reasons => format!("nothing in the archive has text: {reasons}"),
        });
    }
    draft.title = None;
    Ok(draft)
}

fn deeper<'a>(task: &Task<'a>) -> Task<'a> {
    Task { depth: task.depth + 1, ..*task }
}

/// Adds a file in an archive, or an attachment, under its name. An archive in it stays closed.
pub fn add(bytes: &[u8], name: &str, draft: &mut Draft, task: &Task<'_>) {
    let reader = reader_of(bytes, name, &MimeType::default());
    let is_archive = matches!(reader, Some(Reader::Gzip | Reader::Tar | Reader::Mailbox));
    if task.depth > 0 || is_archive {
        draft.note(format!("{name}: an archive within an archive isn't opened"));
        return;
    }
    let task = Task { uri: name, budget: draft.room(), ..deeper(task) };
    match super::super::member(bytes, name, &task) {
        Ok(member) => {
            draft.heading(1, name);
            draft.append(&member.text, &member.headings, 1);
            draft.truncated |= member.truncated;
        }
        Err(reason) => draft.note(format!("{name}: {reason}")),
    }
}
