//! The folder as one walk found it, and what changed since the one before.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::mime;
use super::uri::RelPath;
use super::walk::{is_passing, walk};

/// Why the folder can't be listed. Nothing may be concluded from it about any file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    #[error("the folder {} doesn't exist; create it, or correct its path", .0.display())]
    Missing(PathBuf),
    #[error("{} is no folder; correct its path", .0.display())]
    NotAFolder(PathBuf),
    #[error("the folder {} can't be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("the folder {} was replaced while it was being listed; list again", .0.display())]
    Replaced(PathBuf),
    #[error(
        "the folder {} was replaced by an empty one (unmounted?); if it stays empty, that is believed in a minute",
        .0.display()
    )]
    Emptied(PathBuf),
    #[error("the folder {} holds more than {limit} files; serve a smaller one, or ignore some of it", path.display())]
    TooManyFiles { path: PathBuf, limit: usize },
}

/// What tells that a file was written or replaced. The change time is in it because a copy may keep
/// the time of modification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    pub size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    pub fn modified(&self) -> Option<chrono::DateTime<chrono::Utc>> {
        chrono::DateTime::from_timestamp(self.modified.0, u32::try_from(self.modified.1).ok()?)
    }
}

/// What a file's first bytes tell, once somebody lists it.
#[derive(Debug)]
pub struct Head {
    pub title: Option<String>,
    pub mime: Option<&'static str>,
}

#[derive(Debug)]
pub struct Entry {
    pub stamp: Stamp,
    pub head: OnceLock<Head>,
}

impl Entry {
    fn new(stamp: Stamp) -> Self {
        Self { stamp, head: OnceLock::new() }
    }
}

/// Tells a folder from another one that came to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderId {
    device: u64,
    inode: u64,
    /// Inode numbers are used again.
    created: Option<SystemTime>,
}

impl FolderId {
    fn of(meta: &Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino(), created: meta.created().ok() }
    }
}

/// The folder as one walk found it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub files: BTreeMap<RelPath, Arc<Entry>>,
    /// Folders whose events matter, absolute.
    pub folders: BTreeSet<PathBuf>,
    /// Resolved path of the root.
    pub root: PathBuf,
    pub id: FolderId,
    /// Whether a link is among the files and folders: then an event's path doesn't tell all files
    /// that it concerns.
    pub links: bool,
}

/// What a client may be told about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files came or went.
    pub listed: bool,
    /// Files that are new or have another content.
    pub updated: BTreeSet<RelPath>,
}

/// Walks the folder; entries that didn't change since `previous` are kept with what is known of them.
///
/// Folders and files that vanish meanwhile, or that we may not read, are left out; any other failure
/// fails the walk, since what lies behind it would seem to be gone.
pub fn scan(
    root: &Path,
    previous: Option<&Snapshot>,
    max_files: usize,
) -> Result<Snapshot, ScanError> {
    let unreadable = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => ScanError::Missing(root.to_owned()),
        _ => ScanError::Unreadable { path: root.to_owned(), reason: e.to_string() },
    };
    let real = fs::canonicalize(root).map_err(unreadable)?;
    let meta = fs::metadata(&real).map_err(unreadable)?;
    if !meta.is_dir() {
        return Err(ScanError::NotAFolder(root.to_owned()));
    }
    fs::read_dir(&real).map_err(unreadable)?;
    let mut found = Snapshot {
        files: BTreeMap::new(),
        folders: BTreeSet::from([real.clone()]),
        id: FolderId::of(&meta),
        root: real,
        links: false,
    };
    // `current -> releases/42`: the swap of such a link is seen where the link stands.
    if root.is_symlink() {
        found.links = true;
        found.folders.extend(root.parent().and_then(|parent| fs::canonicalize(parent).ok()));
    }
    for entry in walk(&found.root, None) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) if is_passing(&e) => continue,
            Err(e) => {
                return Err(ScanError::Unreadable { path: root.to_owned(), reason: e.to_string() });
            }
        };
        if entry.path_is_symlink() {
            found.links = true;
            if let Ok(target) = fs::canonicalize(entry.path()) {
                let folder = if target.is_dir() { Some(&*target) } else { target.parent() };
                found.folders.extend(folder.map(Path::to_owned));
            }
        }
        match entry.file_type() {
            Some(kind) if kind.is_dir() => {
                found.folders.insert(entry.into_path());
            }
            Some(kind) if kind.is_file() => {
                let (Some(path), Ok(meta)) = (below(&found.root, entry.path()), entry.metadata())
                else {
                    continue;
                };
                let stamp = Stamp::of(&meta);
                let known =
                    previous.and_then(|p| p.files.get(&path)).filter(|known| known.stamp == stamp);
                let entry = known.cloned().unwrap_or_else(|| Arc::new(Entry::new(stamp)));
                found.files.insert(path, entry);
                if found.files.len() > max_files {
                    return Err(ScanError::TooManyFiles {
                        path: root.to_owned(),
                        limit: max_files,
                    });
                }
            }
            _ => {}
        }
    }
    // Where the root itself went away, everything below it only seems to have.
    let id = fs::metadata(root).map(|meta| FolderId::of(&meta)).map_err(unreadable)?;
    if id == found.id { Ok(found) } else { Err(ScanError::Replaced(root.to_owned())) }
}

/// A snapshot in which these files are looked at again; `None` when one of them isn't as expected and
/// only a whole scan tells.
pub fn touch(previous: &Snapshot, touched: &HashSet<PathBuf>) -> Option<Snapshot> {
    let mut next = previous.clone();
    for path in touched {
        let Some(path) =
            below(&previous.root, path).filter(|path| previous.files.contains_key(path))
        else {
            continue;
        };
        let meta =
            fs::symlink_metadata(previous.root.join(&path)).ok().filter(Metadata::is_file)?;
        next.files.insert(path, Arc::new(Entry::new(Stamp::of(&meta))));
    }
    Some(next)
}

/// What changed from one snapshot to the next, where `touched` is what events named besides.
pub fn changes(old: &Snapshot, new: &Snapshot, touched: &HashSet<PathBuf>) -> Changes {
    let mut updated: BTreeSet<RelPath> = new
        .files
        .iter()
        .filter(|(path, entry)| {
            old.files.get(*path).is_none_or(|before| before.stamp != entry.stamp)
        })
        .map(|(path, _)| path.clone())
        .collect();
    // Two writes within the clock's resolution leave the same stamp.
    let named = touched.iter().filter_map(|path| below(&new.root, path));
    updated.extend(named.filter(|path| new.files.contains_key(path)));
    let listed = old.files.len() != new.files.len() || !old.files.keys().eq(new.files.keys());
    Changes { listed, updated }
}

/// The path below the root.
pub fn below(root: &Path, path: &Path) -> Option<RelPath> {
    let path = path.strip_prefix(root).ok()?.as_os_str();
    (!path.is_empty()).then(|| path.to_owned())
}

/// How much of a file is read for its title: enough for a front matter, or an HTML head with scripts.
pub const HEAD_BYTES: usize = 16 << 10;

/// Reads a file's first bytes for its title and, where its name doesn't tell, its type. What can't be
/// read has neither.
pub fn head(root: &Path, path: &OsString) -> Head {
    let by_name = mime::of_name(path);
    let wanted = by_name.is_none_or(|mime| matches!(mime, "text/markdown" | "text/html"));
    let bytes = if wanted { super::open::head(root, path, HEAD_BYTES as u64).ok() } else { None };
    let mime = by_name.or_else(|| bytes.as_deref().map(mime::of_head));
    let title = mime.zip(bytes).and_then(|(mime, bytes)| super::title::title(mime, &bytes));
    Head { title, mime }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn put(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, &[("a", ""), ("b", "")]);
        let missing = root.join("none");
        assert_eq!(scan(&missing, None, 9).unwrap_err(), ScanError::Missing(missing));
        assert_eq!(
            scan(&root.join("a"), None, 9).unwrap_err(),
            ScanError::NotAFolder(root.join("a"))
        );
        assert!(matches!(
            scan(root, None, 1).unwrap_err(),
            ScanError::TooManyFiles { limit: 1, .. }
        ));
    }

    #[test]
    fn what_changed_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, &[("a.md", "1"), ("b.md", "1"), ("c.md", "1")]);
        let none = HashSet::new();
        let one = scan(root, None, 9).unwrap();
        let same = scan(root, Some(&one), 9).unwrap();
        assert_eq!(changes(&one, &same, &none), Changes::default());
        assert!(Arc::ptr_eq(&one.files[OsStr::new("a.md")], &same.files[OsStr::new("a.md")]));

        put(root, &[("a.md", "longer"), ("new/d.md", "")]);
        fs::remove_file(root.join("c.md")).unwrap();
        // An editor's save: another file takes the name.
        put(root, &[("b.tmp", "1")]);
        fs::rename(root.join("b.tmp"), root.join("b.md")).unwrap();
        let two = scan(root, Some(&one), 9).unwrap();
        let updated: BTreeSet<RelPath> = ["a.md", "b.md", "new/d.md"].map(RelPath::from).into();
        assert_eq!(changes(&one, &two, &none), Changes { listed: true, updated });

        let touched = HashSet::from([two.root.join("a.md"), two.root.join("unknown.md")]);
        let updated: BTreeSet<RelPath> = ["a.md"].map(RelPath::from).into();
        assert_eq!(
            changes(&two, &two, &touched),
            Changes { listed: false, updated: updated.clone() }
        );
        let three = touch(&two, &touched).unwrap();
        assert_eq!(changes(&two, &three, &touched), Changes { listed: false, updated });
        fs::remove_file(root.join("a.md")).unwrap();
        assert!(touch(&two, &touched).is_none(), "a missing file wants a whole scan");
    }

    #[test]
    fn heads_tell_title_and_type() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(
            root,
            &[("a.md", "# 退款\n"), ("b", "plain words"), ("c.json", "{}"), ("d.md", "text")],
        );
        fs::write(root.join("e.bin"), b"\0\x01").unwrap();
        for (path, title, mime) in [
            ("a.md", Some("退款"), Some("text/markdown")),
            ("b", None, Some("text/plain")),
            ("c.json", None, Some("application/json")),
            ("d.md", None, Some("text/markdown")),
            ("e.bin", None, Some("application/octet-stream")),
            ("none", None, None),
        ] {
            let head = head(root, &path.into());
            assert_eq!((head.title.as_deref(), head.mime), (title, mime), "{path}");
        }
    }
}
