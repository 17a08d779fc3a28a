//! A manifest as bytes: small, since there is one in memory-mapped columns for every resource, and
//! without the key, which has a column of its own.

use chrono::DateTime;

use super::schema::damaged;
use crate::index::{Entry, IndexError, description_hash, is_mislabelled};
use crate::model::{ContentHash, Fingerprint, Manifest, Origin, Outcome, ResourceKey};

/// The manifest of an entry whose chunks are still there.
pub fn encode(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&entry.content_hash.0);
    bytes.extend_from_slice(&description_hash(&entry.resource).to_le_bytes());
    bytes.extend_from_slice(&entry.fingerprint.0.to_le_bytes());
    bytes.extend_from_slice(&(entry.chunks.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&entry.indexed_at.timestamp().to_le_bytes());
    bytes.extend_from_slice(&entry.indexed_at.timestamp_subsec_nanos().to_le_bytes());
    let reason = match &entry.outcome {
        Outcome::Indexed => None,
        Outcome::Skipped(reason) => Some(reason.as_str()),
    };
    let template = match &entry.resource.origin {
        Origin::Listed => None,
        Origin::Template(template) => Some(template.as_str()),
    };
    let flags = [reason.is_some(), template.is_some(), is_mislabelled(entry)];
    bytes.push((0..).zip(flags).map(|(bit, flag)| u8::from(flag) << bit).sum());
    let reason = reason.unwrap_or_default();
    bytes.extend_from_slice(&(reason.len() as u32).to_le_bytes());
    bytes.extend_from_slice(reason.as_bytes());
    bytes.extend_from_slice(template.unwrap_or_default().as_bytes());
    bytes
}

/// # Errors
/// [`IndexError::Read`] when the bytes aren't a manifest.
pub fn decode(key: ResourceKey, bytes: &[u8]) -> Result<Manifest, IndexError> {
    read(key, bytes).ok_or_else(|| damaged("a manifest"))
}

fn read(key: ResourceKey, mut bytes: &[u8]) -> Option<Manifest> {
    let content_hash = ContentHash(take(&mut bytes)?);
    let description_hash = u64::from_le_bytes(take(&mut bytes)?);
    let fingerprint = Fingerprint(u64::from_le_bytes(take(&mut bytes)?));
    let chunks = u32::from_le_bytes(take(&mut bytes)?);
    let seconds = i64::from_le_bytes(take(&mut bytes)?);
    let nanos = u32::from_le_bytes(take(&mut bytes)?);
    let [flags] = take(&mut bytes)?;
    let reason_len = u32::from_le_bytes(take(&mut bytes)?) as usize;
    let (reason, template) = bytes.split_at_checked(reason_len)?;
    let text = |bytes| std::str::from_utf8(bytes).ok().map(str::to_owned);
    Some(Manifest {
        key,
        content_hash,
        description_hash,
        fingerprint,
        chunks,
        outcome: if flags & 1 == 0 { Outcome::Indexed } else { Outcome::Skipped(text(reason)?) },
        mislabelled: flags & 4 != 0,
        indexed_at: DateTime::from_timestamp(seconds, nanos)?,
        origin: if flags & 2 == 0 { Origin::Listed } else { Origin::Template(text(template)?) },
    })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}
