//! How much room the disk has for the index.

use std::path::Path;

use crate::config::Limits;

/// Why nothing may be written into a folder: its disk has less room than the limits leave free.
///
/// # Errors
/// The reason, and the limit's key.
pub fn room(folder: &Path, limits: &Limits) -> Result<(), String> {
    // A disk that can't be asked tells at the writing itself.
    let Ok(disk) = rustix::fs::statvfs(folder) else { return Ok(()) };
    check(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize, limits)
}

fn check(free: u64, size: u64, limits: &Limits) -> Result<(), String> {
    const MIB: u64 = 1 << 20;
    let (bytes, percent) = (limits.min_free_disk_bytes, limits.min_free_disk_percent);
    if free < bytes {
        let (free, least) = (free / MIB, bytes / MIB);
        return Err(format!(
            "the disk has {free} MiB free, and {least} MiB are to stay so (limits.min_free_disk_bytes)"
        ));
    }
    // In this order nothing overflows, and a fraction of a percent doesn't matter.
    if free / 100 < size / 100 / 100 * u64::from(percent) {
        let free = free / MIB;
        return Err(format!(
            "the disk has {free} MiB free, less than {percent} % (limits.min_free_disk_percent)"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_limit_counts() {
        const GIB: u64 = 1 << 30;
        let limits = |bytes, percent| Limits {
            min_free_disk_bytes: bytes,
            min_free_disk_percent: percent,
            ..Limits::default()
        };
        for (free, size, limits, key) in [
            (10 * GIB, 100 * GIB, limits(GIB, 5), None),
            (GIB - 1, 10 * GIB, limits(GIB, 5), Some("min_free_disk_bytes")),
            (4 * GIB, 100 * GIB, limits(GIB, 5), Some("min_free_disk_percent")),
            (0, 100 * GIB, limits(0, 0), None),
            (u64::MAX / 2, u64::MAX, limits(GIB, 99), Some("min_free_disk_percent")),
        ] {
            let said = check(free, size, &limits);
            assert_eq!(said.is_err(), key.is_some(), "{free} of {size}: {said:?}");
            assert!(key.is_none_or(|key| said.unwrap_err().contains(key)));
        }
    }

    #[test]
    fn a_real_disk_can_be_asked() {
        let folder = tempfile::tempdir().unwrap();
        let limits =
            Limits { min_free_disk_bytes: u64::MAX, min_free_disk_percent: 0, ..Limits::default() };
        assert!(room(folder.path(), &limits).is_err());
        let none = Limits { min_free_disk_bytes: 0, ..limits };
        assert_eq!(room(folder.path(), &none), Ok(()));
    }
}
