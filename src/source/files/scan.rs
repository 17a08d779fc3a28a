//! Walking the folder: which files are served, and what changed since the last walk.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use ignore::{DirEntry, WalkBuilder};
use rustix::io::Errno;

use super::mime;
use super::uri::RelPath;

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

/// Whether this one file is served, by the same rules as in a scan, reading only the folders on the way.
pub fn is_served(root: &Path, path: &OsStr) -> bool {
    let Ok(root) = fs::canonicalize(root) else { return false };
    let wanted = root.join(path);
    walk(&root, Some(wanted.clone()))
        .filter_map(Result::ok)
        .any(|entry| entry.path() == wanted && entry.file_type().is_some_and(|kind| kind.is_file()))
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

/// Everything that is served: what neither hides behind a dot nor is ignored by a `.gitignore` or
/// `.ignore` in the folder, and no link that leads out. `only` restricts the walk to one path.
///
/// Rules in folders above the root don't count: who names a folder wants its files.
fn walk(root: &Path, only: Option<PathBuf>) -> ignore::Walk {
    let within = root.to_owned();
    WalkBuilder::new(root)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .follow_links(true)
        .filter_entry(move |entry| {
            entry.depth() == 0
                || (!is_hidden(entry.file_name())
                    && only.as_ref().is_none_or(|only| only.starts_with(entry.path()))
                    && leads_inside(entry, &within))
        })
        .build()
}

/// Names with a dot first, whatever an ignore file's exceptions say: `!.env` is a rule about version
/// control, not about who may read it.
pub fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

/// Files that decide what is served.
pub fn is_ignore_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore")
        || path.ends_with(".git/info/exclude")
}

fn leads_inside(entry: &DirEntry, root: &Path) -> bool {
    !entry.path_is_symlink()
        || fs::canonicalize(entry.path()).is_ok_and(|real| real.starts_with(root))
}

/// Failures that concern one file or folder alone: it vanished, isn't for us, or is a link in a circle.
fn is_passing(error: &ignore::Error) -> bool {
    let Some(error) = error.io_error() else { return true };
    let passing =
        [Errno::NOENT, Errno::ACCESS, Errno::PERM, Errno::LOOP, Errno::NOTDIR, Errno::NAMETOOLONG];
    error
        .raw_os_error()
        .is_some_and(|code| passing.iter().any(|errno| errno.raw_os_error() == code))
        || error.kind() == io::ErrorKind::NotFound
}

/// Reads a file's first bytes for its title and, where its name doesn't tell, its type. What can't be
/// read has neither.
pub fn head(root: &Path, path: &OsString) -> Head {
    /// Enough for a front matter or an HTML head with its scripts.
    const BYTES: u64 = 16 << 10;
    let by_name = mime::of_name(path);
    let wanted = by_name.is_none_or(|mime| matches!(mime, "text/markdown" | "text/html"));
    let bytes = if wanted { super::open::head(root, path, BYTES).ok() } else { None };
    let mime = by_name.or_else(|| bytes.as_deref().map(mime::of_head));
    let title = mime.zip(bytes).and_then(|(mime, bytes)| super::title::title(mime, &bytes));
    Head { title, mime }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn names(found: &Snapshot) -> Vec<&str> {
        found.files.keys().map(|path| path.to_str().unwrap()).collect()
    }

    #[test]
    fn ignored_and_hidden_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(
            root,
            &[
                (".gitignore", "*.log\n/build/\n!keep.log\n!.env\n"),
                (".ignore", "private.md\n"),
                ("a.md", ""),
                ("a.log", ""),
                ("keep.log", ""),
                ("private.md", ""),
                ("build/out.md", ""),
                ("sub/build/in.md", ""),
                ("sub/.gitignore", "draft-*\n"),
                ("sub/draft-1.md", ""),
                ("sub/退款.md", ""),
                ("draft-2.md", ""),
                (".env", "SECRET"),
                (".git/config", ""),
                (".hidden/x.md", ""),
            ],
        );
        let found = scan(root, None, 100).unwrap();
        assert_eq!(
            names(&found),
            ["a.md", "draft-2.md", "keep.log", "sub/build/in.md", "sub/退款.md"]
        );
        let folders: Vec<_> = found.folders.iter().filter_map(|f| below(&found.root, f)).collect();
        assert_eq!(folders, ["sub", "sub/build"], "nothing ignored is watched");
        for (path, served) in [
            ("a.md", true),
            ("sub/退款.md", true),
            ("a.log", false),
            ("keep.log", true),
            (".env", false),
            (".git/config", false),
            ("build/out.md", false),
            ("sub/draft-1.md", false),
            ("sub", false),
            ("none.md", false),
        ] {
            assert_eq!(is_served(root, OsStr::new(path)), served, "{path}");
        }
    }

    #[test]
    fn links_stay_inside() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        put(base.path(), &[("root/sub/b.md", ""), ("root/..data/c.md", ""), ("out/secret.md", "")]);
        symlink("sub/b.md", root.join("link.md")).unwrap();
        symlink("..data/c.md", root.join("c.md")).unwrap();
        symlink("sub", root.join("dir")).unwrap();
        symlink("..", root.join("sub/loop")).unwrap();
        symlink("../out/secret.md", root.join("escape.md")).unwrap();
        symlink("../out", root.join("escape")).unwrap();
        symlink("nowhere", root.join("dangling.md")).unwrap();
        let found = scan(&root, None, 100).unwrap();
        assert_eq!(names(&found), ["c.md", "dir/b.md", "link.md", "sub/b.md"]);
        assert!(found.links);
        assert!(found.folders.contains(&found.root.join("..data")), "a link's target is watched");
        assert!(!is_served(&root, OsStr::new("escape/secret.md")));
        assert!(!is_served(&root, OsStr::new("escape.md")));
        assert!(is_served(&root, OsStr::new("dir/b.md")));
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
