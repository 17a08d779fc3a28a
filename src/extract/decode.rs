//! Base64 → bytes → text. A blob is decoded right or refused with a reason, never garbled.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// Padding may be missing; stray bits at the end may not, they betray text that isn't base64.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Decodes base64 (RFC 4648) in either alphabet, with line breaks, and with or without padding.
///
/// # Errors
/// Says what isn't base64 about it.
pub fn base64(blob: &str) -> Result<Vec<u8>, String> {
    let body = blob.trim();
    let body = match body.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((_, payload)) => payload,
        None => body,
    };
    let compact = without_line_breaks(body)?;
    let url_safe = compact.contains(['-', '_']);
    if url_safe && compact.contains(['+', '/']) {
        return Err("it mixes the two base64 alphabets".into());
    }
    let engine = if url_safe { URL_SAFE } else { STANDARD };
    engine.decode(compact.as_bytes()).map_err(|error| match error {
        base64::DecodeError::InvalidByte(at, _) => {
            let found = compact.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('?');
            format!("it has {found:?} at position {at}")
        }
        base64::DecodeError::InvalidLength(_) => "it is cut off".into(),
        base64::DecodeError::InvalidLastSymbol(..) => "its end has stray bits".into(),
        base64::DecodeError::InvalidPadding => "its padding is wrong".into(),
    })
}

/// Takes out line breaks, and spaces and tabs next to them. Spaces elsewhere mean prose, which
/// would decode to garbage if they were dropped.
fn without_line_breaks(body: &str) -> Result<Cow<'_, str>, String> {
    if !body.contains([' ', '\t', '\r', '\n']) {
        return Ok(Cow::Borrowed(body));
    }
    let mut compact = String::with_capacity(body.len());
    for line in body.split(['\r', '\n']) {
        let line = line.trim_matches([' ', '\t']);
        if line.contains([' ', '\t']) {
            return Err("it has spaces inside a line".into());
        }
        compact.push_str(line);
    }
    Ok(Cow::Owned(compact))
}

/// The first bytes of a blob, up to about `max`; `None` if it isn't base64 from its start.
pub fn base64_head(blob: &str, max: usize) -> Option<Vec<u8>> {
    let body = blob.trim_start();
    let body = match body.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((_, payload)) => payload,
        None => body,
    };
    let digits: String =
        body.chars().take(2 * max + 4).filter(|c| !c.is_ascii_whitespace() && *c != '=').collect();
    let whole = &digits.get(..digits.len() / 4 * 4)?;
    let engine = if whole.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    let short = digits.len() < 4;
    engine.decode(if short { digits.as_str() } else { whole }).ok().map(|mut bytes| {
        bytes.truncate(max);
        bytes
    })
}

/// How many bytes a blob decodes to, without decoding it.
pub fn decoded_len(blob: &str) -> usize {
    let digits = blob.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=').count();
    digits / 4 * 3 + (digits % 4 * 3) / 4
}

/// Text of a blob, with the charset it was in where that wasn't UTF-8.
#[derive(Debug, PartialEq)]
pub struct Decoded {
    pub text: String,
    pub charset: &'static str,
    /// Whether the declared charset was not the one used.
    pub corrected: bool,
}

/// Decodes a blob's bytes by byte order mark, declared charset, UTF-8, the look of UTF-16, and at
/// last a statistical guess. `None` if it isn't text.
pub fn text(bytes: Vec<u8>, declared: Option<&str>) -> Option<Decoded> {
    if let Some((encoding, bom)) = Encoding::for_bom(&bytes) {
        return decode(encoding, &bytes[bom..]).map(|text| found(text, encoding, false));
    }
    let declared = declared.and_then(|label| Encoding::for_label(label.as_bytes()));
    // ISO-2022-JP is ASCII with escapes that choose a character set (RFC 1468).
    if bytes.windows(3).any(|three| matches!(three, b"\x1b$B" | b"\x1b$@"))
        && let Some(text) = decode(ISO_2022_JP, &bytes)
    {
        return Some(found(text, ISO_2022_JP, false));
    }
    let bytes = match utf8(bytes, declared) {
        Ok(text) => {
            let corrected = declared.is_some_and(|encoding| encoding != UTF_8) && !text.is_ascii();
            return Some(found(text, UTF_8, corrected));
        }
        Err(bytes) => bytes,
    };
    // "utf-16" leaves the byte order open (RFC 2781), so the look of it decides.
    if let Some(encoding) = declared
        && encoding != UTF_8
        && (![UTF_16LE, UTF_16BE].contains(&encoding) || utf16(&bytes).is_none())
        && let Some(text) = decode(encoding, &bytes)
    {
        return Some(found(text, encoding, false));
    }
    if let Some((text, encoding)) = utf16(&bytes) {
        return Some(found(
            text,
            encoding,
            declared.is_some_and(|d| ![UTF_16LE, UTF_16BE].contains(&d)),
        ));
    }
    if control_share(&bytes) > 0.01 || bytes.contains(&0) {
        return None;
    }
    if let Some(text) = mostly_utf8(&bytes) {
        return Some(found(text, UTF_8, declared.is_some_and(|d| d != UTF_8)));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes, true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    decode(encoding, &bytes).map(|text| found(text, encoding, declared.is_some()))
}

/// UTF-8 with a few broken bytes: a file cut at some size, a log of two programs.
fn mostly_utf8(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let wide = text.chars().filter(|c| !c.is_ascii()).count();
    let broken = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    (broken * 20 <= wide - broken).then(|| text.into_owned())
}

fn found(text: String, encoding: &'static Encoding, corrected: bool) -> Decoded {
    Decoded { text, charset: encoding.name(), corrected }
}

/// Takes bytes as UTF-8 where they are, unless another charset was declared that might be meant.
fn utf8(bytes: Vec<u8>, declared: Option<&'static Encoding>) -> Result<String, Vec<u8>> {
    // Both can look like UTF-8: text in UTF-16 only with NULs in it.
    let stateful = declared.is_some_and(|d| {
        d == ISO_2022_JP || ((d == UTF_16LE || d == UTF_16BE) && bytes.contains(&0))
    });
    if stateful || looks_binary_or_wide(&bytes) {
        return Err(bytes);
    }
    match declared {
        // Text in a multi-byte charset is hardly ever valid UTF-8 too, short text excepted.
        Some(encoding)
            if encoding != UTF_8
                && !encoding.is_single_byte()
                && encoding != UTF_16LE
                && encoding != UTF_16BE
                && !bytes.is_ascii()
                && decode(encoding, &bytes).is_some() =>
        {
            Err(bytes)
        }
        _ => String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes),
    }
}

fn decode(encoding: &'static Encoding, bytes: &[u8]) -> Option<String> {
    encoding
        .decode_without_bom_handling_and_without_replacement(bytes)
        .map(Cow::into_owned)
        .or_else(|| {
            // A few broken characters are forgiven in long text, as after a cut in the middle of one.
            let (text, _) = encoding.decode_without_bom_handling(bytes);
            let broken = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
            (broken > 0 && broken * 1000 <= text.len()).then(|| text.into_owned())
        })
}

/// Bytes that text hardly has: controls but white space and escape.
fn control_share(bytes: &[u8]) -> f64 {
    let controls = bytes
        .iter()
        .filter(|b| matches!(b, 0x00..=0x08 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f))
        .count();
    controls as f64 / bytes.len().max(1) as f64
}

/// Whether so many controls or NULs stand in the bytes that they are UTF-16 or no text at all.
pub fn looks_binary_or_wide(bytes: &[u8]) -> bool {
    control_share(bytes) > 0.1
}

/// UTF-16 without a mark: one byte order gives valid text of plausible characters.
fn utf16(bytes: &[u8]) -> Option<(String, &'static Encoding)> {
    if bytes.len() < 4 || bytes.len() % 2 == 1 {
        return None;
    }
    let head = &bytes[..bytes.len().min(4096)];
    let plausible = |big_endian: bool| {
        let units = head.chunks_exact(2).map(|pair| match big_endian {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        });
        let (mut good, mut marks, mut all) = (0, 0, 0);
        for c in char::decode_utf16(units) {
            all += 1;
            let Ok(c) = c else { continue };
            good += usize::from(is_common(c));
            marks += usize::from(
                c.is_whitespace() || c.is_ascii_punctuation() || "，。、「」".contains(c),
            );
        }
        (good * 100 >= all * 97 && marks > 0).then_some((good, marks))
    };
    let encoding = match (plausible(false), plausible(true)) {
        (Some(little), Some(big)) if big > little => UTF_16BE,
        (Some(_), _) => UTF_16LE,
        (None, Some(_)) => UTF_16BE,
        (None, None) => return None,
    };
    Some((decode(encoding, bytes)?, encoding))
}

fn is_common(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{a0}'..='\u{24f}' | '\u{370}'..='\u{52f}'
        | '\u{590}'..='\u{6ff}' | '\u{900}'..='\u{97f}' | '\u{e00}'..='\u{e7f}'
        | '\u{1e00}'..='\u{1eff}' | '\u{2010}'..='\u{203f}' | '\u{3000}'..='\u{30ff}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{ff00}'..='\u{ffef}')
}

#[cfg(test)]
mod tests;
