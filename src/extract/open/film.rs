//! Film whose tags no library of ours reads: Matroska with WebM, and AVI.

use super::draft::one_line;
use crate::extract::decode;

/// A label, and what is said.
pub type Said = Vec<(&'static str, String)>;

/// Texts of a film, and the longest of them, in bytes.
const MAX_SAID: usize = 256;
const MAX_TEXT: usize = 64 << 10;

fn say(said: &mut Said, label: &'static str, text: &[u8]) {
    let text = &text[..text.len().min(MAX_TEXT)];
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = decode::text(text.to_vec(), None).map(|decoded| one_line(&decoded.text));
    let row = (label, text.unwrap_or_default());
    if !row.1.is_empty() && said.len() < MAX_SAID && !said.contains(&row) {
        said.push(row);
    }
}

/// Title, tags, chapters and names of tracks (RFC 9559). Elements are taken as they come: an element
/// that holds others is entered, and where it ends doesn't matter.
pub fn matroska(bytes: &[u8]) -> Said {
    let mut said = vec![];
    let mut label = None;
    let mut at = 0;
    while let Some((id, size, body)) = element(bytes, at) {
        let holds_others = matches!(
            id,
            // Segment, Info, Tags, Tag, SimpleTag
            0x1853_8067 | 0x1549_A966 | 0x1254_C367 | 0x7373 | 0x67C8
            // Chapters, EditionEntry, ChapterAtom, ChapterDisplay, Tracks, TrackEntry
            | 0x1043_A770 | 0x45B9 | 0xB6 | 0x80 | 0x1654_AE6B | 0xAE
        );
        let Some(size) = size.filter(|_| !holds_others) else {
            at = body;
            continue;
        };
        let Some(content) = bytes.get(body..body.saturating_add(size)) else { break };
        match id {
            0x7BA9 => say(&mut said, "Title", content),
            0x45A3 => label = tag_label(content),
            0x4487 => {
                if let Some(label) = label {
                    say(&mut said, label, content);
                }
            }
            0x85 => say(&mut said, "Chapter", content),
            0x536E => say(&mut said, "Track", content),
            _ => {}
        }
        at = body + size;
    }
    said
}

/// An element's number, its size if it is known, and where its content begins (RFC 8794).
fn element(bytes: &[u8], at: usize) -> Option<(u64, Option<usize>, usize)> {
    let (id, at) = number(bytes, at, 4, false)?;
    let (size, body) = number(bytes, at, 8, true)?;
    let len = body - at;
    let unknown = (1_u64 << (7 * len)) - 1;
    Some((id, usize::try_from(size).ok().filter(|_| size != unknown), body))
}

/// A number whose leading zeros tell its length, with or without the bit that ends them, and where it ends.
fn number(bytes: &[u8], at: usize, most: usize, without_mark: bool) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    let len = first.leading_zeros() as usize + 1;
    if len > most {
        return None;
    }
    let rest = bytes.get(at + 1..at + len)?;
    let first = if without_mark { u64::from(first) & ((1 << (8 - len)) - 1) } else { first.into() };
    Some((rest.iter().fold(first, |number, byte| number << 8 | u64::from(*byte)), at + len))
}

fn tag_label(name: &[u8]) -> Option<&'static str> {
    Some(match name.to_ascii_uppercase().as_slice() {
        b"TITLE" => "Title",
        b"SUBTITLE" => "Subtitle",
        b"ARTIST" | b"LEAD_PERFORMER" => "Artist",
        b"DIRECTOR" => "Director",
        b"ACTOR" => "Actor",
        b"WRITTEN_BY" | b"AUTHOR" | b"COMPOSER" => "Author",
        b"PUBLISHER" | b"COPYRIGHT" => "Copyright",
        b"GENRE" => "Genre",
        b"KEYWORDS" | b"SUBJECT" => "Keyword",
        b"DESCRIPTION" | b"SUMMARY" | b"SYNOPSIS" => "Description",
        b"COMMENT" => "Comment",
        b"LYRICS" => "Lyrics",
        b"DATE_RELEASED" | b"DATE_RECORDED" | b"DATE" => "Date",
        _ => return None,
    })
}

/// The `INFO` list of a RIFF file (Microsoft's Multimedia Programming Interface 1.0).
pub fn avi(bytes: &[u8]) -> Said {
    let mut said = vec![];
    let mut at = 12_usize;
    while let Some(head) = bytes.get(at..at.saturating_add(8)) {
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let body = at + 8;
        if head.starts_with(b"LIST") && bytes.get(body..body + 4) == Some(b"INFO") {
            at = body + 4;
            continue;
        }
        let end = body.saturating_add(size).min(bytes.len());
        let label = match &head[..4] {
            b"INAM" => "Title",
            b"IART" => "Artist",
            b"ISBJ" => "Description",
            b"ICMT" => "Comment",
            b"IKEY" => "Keyword",
            b"IGNR" => "Genre",
            b"ICRD" => "Date",
            b"ICOP" => "Copyright",
            _ => "",
        };
        if !label.is_empty() {
            say(&mut said, label, &bytes[body..end]);
        }
        // Chunks begin at even places.
        at = body.saturating_add(size).saturating_add(size % 2);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: u32, content: &[u8]) -> Vec<u8> {
        let id = id.to_be_bytes();
        let mut made = id[id.iter().position(|byte| *byte > 0).unwrap()..].to_vec();
        made.extend((content.len() as u32 | 0x1000_0000).to_be_bytes());
        made.extend(content);
        made
    }

    #[test]
    fn matroska_says_its_title_tags_and_chapters() {
        let tag = |name: &str, text: &str| {
            of(0x67C8, &[of(0x45A3, name.as_bytes()), of(0x4487, text.as_bytes())].concat())
        };
        let chapter = of(0xB6, &of(0x80, &of(0x85, "Возврат".as_bytes())));
        let inner = [
            of(0x1549_A966, &of(0x7BA9, "退款政策".as_bytes())),
            of(0x1F43_B675, &[0x85; 40]),
            of(0x1043_A770, &of(0x45B9, &chapter)),
            of(
                0x1254_C367,
                &of(
                    0x7373,
                    &[tag("ENCODER", "x"), tag("description", "คืนเงิน"), tag("TITLE", "退款政策")]
                        .concat(),
                ),
            ),
        ]
        .concat();
        let expected = [("Title", "退款政策"), ("Chapter", "Возврат"), ("Description", "คืนเงิน")];
        let head = of(0x1A45_DFA3, b"\x42\x82\x84webm");
        let known = [head.clone(), of(0x1853_8067, &inner)].concat();
        // A stream's segment has no size.
        let stream =
            [head, b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff".to_vec(), inner].concat();
        for bytes in [&known, &stream] {
            let said = matroska(bytes);
            let said: Vec<_> = said.iter().map(|(label, text)| (*label, text.as_str())).collect();
            assert_eq!(said, expected);
        }
        for cut in 0..known.len() {
            assert!(matroska(&known[..cut]).len() <= 3);
        }
    }

    #[test]
    fn avi_says_its_info() {
        let chunk = |name: &str, content: &[u8]| {
            let mut made = name.as_bytes().to_vec();
            made.extend((content.len() as u32).to_le_bytes());
            made.extend(content);
            made.extend(vec![0; content.len() % 2]);
            made
        };
        let info = [
            b"INFO".to_vec(),
            chunk("ISFT", b"Lavf"),
            chunk("INAM", "返金ポリシー\0".as_bytes()),
            chunk("ICMT", b"Odd\0\0"),
        ];
        let body = [b"AVI ".to_vec(), chunk("LIST", b"hdrlavih"), chunk("LIST", &info.concat())];
        let bytes = chunk("RIFF", &body.concat());
        assert_eq!(avi(&bytes), [("Title", "返金ポリシー".into()), ("Comment", "Odd".into())]);
        for cut in 0..bytes.len() {
            assert!(avi(&bytes[..cut]).len() <= 2);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_walked_to_an_end(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            matroska(&bytes);
            avi(&bytes);
        }
    }
}
