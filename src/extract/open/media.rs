//! Sound and film: the tags of their containers.

use std::io::Cursor;

use lofty::config::ParseOptions;
use lofty::file::{AudioFile as _, TaggedFileExt as _};
use lofty::probe::Probe;
use lofty::tag::ItemKey;

use super::{Draft, Reader, Task, essence, film};

/// # Errors
/// There are no tags, or none that are read.
pub fn read(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let essence = essence(Reader::Media, bytes);
    let none = || format!("{essence} has no title or other words in its tags");
    let film = match essence {
        "video/x-matroska" | "video/webm" => Some(film::matroska(bytes)),
        "video/x-msvideo" => Some(film::avi(bytes)),
        _ => None,
    };
    if let Some(said) = film {
        let mut draft = Draft::new(task.budget);
        draft.mime_type = Some(essence);
        for (label, text) in &said {
            if *label == "Title" {
                draft.title(text);
            }
            draft.line(&format!("{label}: {text}"));
        }
        return if said.is_empty() { Err(none()) } else { Ok(draft) };
    }
    let options = ParseOptions::new().read_cover_art(false);
    let probe = Probe::new(Cursor::new(bytes)).options(options).guess_file_type();
    let file = probe.map_err(|_| none())?.read().map_err(|_| none())?;
    let mut draft = Draft::new(task.budget);
    draft.mime_type = Some(essence);
    let mut lines: Vec<String> = vec![];
    for tag in file.tags() {
        for (key, label) in [
            (ItemKey::TrackTitle, "Title"),
            (ItemKey::TrackArtist, "Artist"),
            (ItemKey::AlbumTitle, "Album"),
            (ItemKey::AlbumArtist, "Album artist"),
            (ItemKey::Composer, "Composer"),
            (ItemKey::Genre, "Genre"),
            (ItemKey::RecordingDate, "Date"),
            (ItemKey::Comment, "Comment"),
            (ItemKey::Description, "Description"),
            (ItemKey::Lyrics, "Lyrics"),
            (ItemKey::UnsyncLyrics, "Lyrics"),
        ] {
            for text in tag.get_strings(key) {
                let text = text.trim();
                let line = format!("{label}: {text}");
                if !text.is_empty() && !lines.contains(&line) {
                    if label == "Title" {
                        draft.title(text);
                    }
                    lines.push(line);
                }
            }
        }
    }
    if lines.is_empty() {
        return Err(none());
    }
    let seconds = file.properties().duration().as_secs();
    if seconds > 0 {
        lines.push(format!("Duration: {}:{:02}", seconds / 60, seconds % 60));
    }
    lines.iter().for_each(|line| draft.line(line));
    Ok(draft)
}
