//! The sections that hold for the whole daemon.

use std::time::Duration;

use crate::config::read::Reader;
use crate::config::tree::{Entry, Value};
use crate::config::{Config, Limits, validate};

pub(super) const SOCKET: [&str; 3] = ["mode", "group", "allow_uids"];
pub(super) const HTTP: [&str; 3] = ["listen", "allowed_hosts", "allowed_origins"];
pub(super) const INDEX: [&str; 2] = ["heap_bytes", "threads"];
pub(super) const SYNC: [&str; 4] = ["schedule", "timezone", "mime_types", "exclude_mime_types"];
pub(super) const TRACE: [&str; 1] = ["queries"];
pub(super) fn sync(reader: &mut Reader<'_>, entry: &Entry, config: &mut Config) {
    match entry.key.as_str() {
        "schedule" => {
            if let Some(schedule) = reader.string_that(entry, validate::schedule) {
                config.sync.schedule = schedule;
            }
        }
        "mime_types" => {
            config.sync.mime_types.allow =
                reader.strings_that(entry, validate::mime_pattern).unwrap_or_default();
        }
        "exclude_mime_types" => {
            config.sync.mime_types.deny =
                reader.strings_that(entry, validate::mime_pattern).unwrap_or_default();
        }
        "timezone" => config.sync.timezone = reader.string_that(entry, validate::timezone),
        _ => reader.unknown(entry, "in [sync]", &SYNC),
    }
}

pub(super) fn index(reader: &mut Reader<'_>, entry: &Entry, config: &mut Config) {
    match entry.key.as_str() {
        "heap_bytes" => {
            if let Some(bytes) = reader.bytes(entry) {
                // tantivy's writer refuses less than 15 MB for each of its threads.
                if (16 << 20..=64 << 30).contains(&bytes) {
                    config.index.heap_bytes = bytes as usize;
                } else {
                    let message = "`heap_bytes` must be from 16MiB to 64GiB";
                    reader.error(entry.value.at.start, message, None);
                }
            }
        }
        "threads" => {
            if let Some(threads) = reader.count(entry, 1, 64) {
                config.index.threads = threads as usize;
            }
        }
        _ => reader.unknown(entry, "in [index]", &INDEX),
    }
}

pub(super) fn http(reader: &mut Reader<'_>, entry: &Entry, config: &mut Config) {
    match entry.key.as_str() {
        "listen" => {
            config.http.listen =
                reader.string_that(entry, |text| validate::listen(text).map(|_| ()));
        }
        "allowed_hosts" => {
            config.http.allowed_hosts =
                reader.strings_that(entry, validate::host).unwrap_or_default();
        }
        "allowed_origins" => {
            config.http.allowed_origins =
                reader.strings_that(entry, validate::origin).unwrap_or_default();
        }
        _ => reader.unknown(entry, "in [http]", &HTTP),
    }
}

pub(super) fn socket(reader: &mut Reader<'_>, entry: &Entry, config: &mut Config) {
    match entry.key.as_str() {
        "mode" => {
            let mode = reader.string_that(entry, |text| validate::socket_mode(text).map(|_| ()));
            if let Some(Ok(mode)) = mode.map(|text| validate::socket_mode(&text)) {
                config.socket.mode = mode;
            }
        }
        "group" => config.socket.group = reader.string(entry),
        "allow_uids" => {
            let uids = entry.value.as_list().map(|items| {
                items
                    .iter()
                    .map(|item| match item.value {
                        Value::Integer(uid) => u32::try_from(uid).ok(),
                        _ => None,
                    })
                    .collect::<Option<Vec<u32>>>()
            });
            match uids.flatten() {
                Some(uids) => config.socket.allow_uids = uids,
                None => reader.error(
                    entry.value.at.start,
                    "`allow_uids` must be a list of user ids (numbers)",
                    None,
                ),
            }
        }
        _ => reader.unknown(entry, "in [socket]", &SOCKET),
    }
}

pub(super) fn trace(reader: &mut Reader<'_>, entry: &Entry, config: &mut Config) {
    match entry.key.as_str() {
        "queries" => config.trace.queries = reader.boolean(entry).unwrap_or_default(),
        _ => reader.unknown(entry, "in [trace]", &TRACE),
    }
}

/// A limit, by what kind of value it is.
pub(in crate::config) enum Limit<'a> {
    /// Must be longer than zero.
    Time(&'a mut Duration),
    /// May be zero: no waiting.
    Pause(&'a mut Duration),
    Bytes(&'a mut usize),
    Disk(&'a mut u64),
    Count(&'a mut usize),
    Percent(&'a mut u8),
}

/// Every limit with its key. Taken apart by name, so that a new one can't be forgotten here.
pub(in crate::config) fn limit_fields(limits: &mut Limits) -> [(&'static str, Limit<'_>); 34] {
    let Limits {
        connect_timeout,
        list_timeout,
        read_timeout,
        subscribe_timeout,
        max_message_bytes,
        max_json_depth,
        max_text_bytes,
        max_blob_bytes,
        max_parts,
        extract_workers,
        extract_timeout,
        extract_memory_bytes,
        max_archive_bytes,
        max_archive_members,
        max_archive_ratio,
        max_pages,
        max_resources,
        max_uri_bytes,
        max_name_bytes,
        max_description_bytes,
        reads_in_flight,
        reads_in_flight_total,
        relist_interval,
        reread_interval,
        recheck_interval,
        removal_confirmation,
        retry_delay,
        max_retry_delay,
        min_free_disk_bytes,
        min_free_disk_percent,
        max_query_bytes,
        max_query_terms,
        max_answer_bytes,
        max_connections,
    } = limits;
    [
        ("connect_timeout", Limit::Time(connect_timeout)),
        ("list_timeout", Limit::Time(list_timeout)),
        ("read_timeout", Limit::Time(read_timeout)),
        ("subscribe_timeout", Limit::Time(subscribe_timeout)),
        ("max_message_bytes", Limit::Bytes(max_message_bytes)),
        ("max_json_depth", Limit::Count(max_json_depth)),
        ("max_text_bytes", Limit::Bytes(max_text_bytes)),
        ("max_blob_bytes", Limit::Bytes(max_blob_bytes)),
        ("max_parts", Limit::Count(max_parts)),
        ("extract_workers", Limit::Count(extract_workers)),
        ("extract_timeout", Limit::Time(extract_timeout)),
        ("extract_memory_bytes", Limit::Bytes(extract_memory_bytes)),
        ("max_archive_bytes", Limit::Bytes(max_archive_bytes)),
        ("max_archive_members", Limit::Count(max_archive_members)),
        ("max_archive_ratio", Limit::Count(max_archive_ratio)),
        ("max_pages", Limit::Count(max_pages)),
        ("max_resources", Limit::Count(max_resources)),
        ("max_uri_bytes", Limit::Bytes(max_uri_bytes)),
        ("max_name_bytes", Limit::Bytes(max_name_bytes)),
        ("max_description_bytes", Limit::Bytes(max_description_bytes)),
        ("reads_in_flight", Limit::Count(reads_in_flight)),
        ("reads_in_flight_total", Limit::Count(reads_in_flight_total)),
        ("relist_interval", Limit::Pause(relist_interval)),
        ("reread_interval", Limit::Pause(reread_interval)),
        ("recheck_interval", Limit::Pause(recheck_interval)),
        ("removal_confirmation", Limit::Pause(removal_confirmation)),
        ("retry_delay", Limit::Time(retry_delay)),
        ("max_retry_delay", Limit::Time(max_retry_delay)),
        ("min_free_disk_bytes", Limit::Disk(min_free_disk_bytes)),
        ("min_free_disk_percent", Limit::Percent(min_free_disk_percent)),
        ("max_query_bytes", Limit::Bytes(max_query_bytes)),
        ("max_query_terms", Limit::Count(max_query_terms)),
        ("max_answer_bytes", Limit::Bytes(max_answer_bytes)),
        ("max_connections", Limit::Count(max_connections)),
    ]
}

pub(super) fn limit(reader: &mut Reader<'_>, entry: &Entry, limits: &mut Limits) {
    let mut fields = limit_fields(limits);
    let Some((_, field)) = fields.iter_mut().find(|(key, _)| *key == entry.key) else {
        let known: Vec<&str> = fields.iter().map(|(key, _)| *key).collect();
        return reader.unknown(entry, "in [limits]", &known);
    };
    match field {
        Limit::Time(place) => {
            if let Some(time) = reader.duration(entry) {
                if time.is_zero() {
                    let message = format!("`{}` must be longer than zero", entry.key);
                    reader.error(entry.value.at.start, message, None);
                } else {
                    **place = time;
                }
            }
        }
        Limit::Pause(place) => {
            if let Some(time) = reader.duration(entry) {
                **place = time;
            }
        }
        Limit::Bytes(place) => {
            if let Some(bytes) = reader.bytes(entry) {
                if bytes == 0 {
                    let message = format!("`{}` must be more than zero", entry.key);
                    reader.error(entry.value.at.start, message, None);
                } else {
                    **place = usize::try_from(bytes).unwrap_or(usize::MAX);
                }
            }
        }
        Limit::Disk(place) => {
            if let Some(bytes) = reader.bytes(entry) {
                **place = bytes;
            }
        }
        Limit::Count(place) => {
            if let Some(count) = reader.count(entry, 1, u32::MAX.into()) {
                **place = count as usize;
            }
        }
        Limit::Percent(place) => {
            if let Some(percent) = reader.count(entry, 0, 99) {
                **place = percent as u8;
            }
        }
    }
}
