//! Opening a file that a client named: below the root or not at all, whatever changes meanwhile.
//!
//! Each part of the path is opened from the folder before it without following links, so no swap of a
//! folder for a link leads out. A path with links in it is first resolved and must then still lie below
//! the root; what is opened is the resolved path, again link by link.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// How often a path is resolved anew that a link swap changed while it was being opened.
const ATTEMPTS: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such file, or it lies outside the root, or is none that is served (a pipe, a device).
    #[error("no such file")]
    NotFound,
    #[error("{size} bytes, and the limit is {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The whole content of a file of at most `limit` bytes.
pub fn read(root: &Path, path: &OsStr, limit: u64) -> Result<Vec<u8>, OpenError> {
    let (file, size) = open(root, path)?;
    if size > limit {
        return Err(OpenError::TooLarge { size, limit });
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    // The file may grow while it is read.
    file.take(limit + 1).read_to_end(&mut content)?;
    let size = content.len() as u64;
    if size > limit { Err(OpenError::TooLarge { size, limit }) } else { Ok(content) }
}

/// The first and the last bytes of a file that has more than both, and how many it has.
pub fn ends(
    root: &Path,
    path: &OsStr,
    (first, last): (u64, u64),
) -> Result<(Vec<u8>, Vec<u8>, u64), OpenError> {
    let (mut file, size) = open(root, path)?;
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    Read::by_ref(&mut file).take(first).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(size.saturating_sub(last).max(first)))?;
    file.take(last).read_to_end(&mut tail)?;
    Ok((head, tail, size))
}

/// The first bytes of a file.
pub fn head(root: &Path, path: &OsStr, bytes: u64) -> Result<Vec<u8>, OpenError> {
    let (file, _) = open(root, path)?;
    let mut content = Vec::new();
    file.take(bytes).read_to_end(&mut content)?;
    Ok(content)
}

fn open(root: &Path, path: &OsStr) -> Result<(File, u64), OpenError> {
    let mut tried = open_without_links(root, Path::new(path));
    for _ in 0..ATTEMPTS {
        // A link where a folder is wanted is either of these, by system.
        if !matches!(tried, Err(Errno::LOOP | Errno::NOTDIR)) {
            break;
        }
        let root = fs::canonicalize(root)?;
        let real = match fs::canonicalize(root.join(path)) {
            Ok(real) => real,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(e.into()),
            Err(_) => return Err(OpenError::NotFound),
        };
        let Ok(below) = real.strip_prefix(&root) else { return Err(OpenError::NotFound) };
        tried = open_without_links(&root, below);
    }
    let file = match tried {
        Ok(file) => File::from(file),
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT | Errno::NAMETOOLONG | Errno::INVAL) => {
            return Err(OpenError::NotFound);
        }
        Err(e) => return Err(OpenError::Io(e.into())),
    };
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta.len())) } else { Err(OpenError::NotFound) }
}

/// Opens a regular file below the root; a link anywhere on the way is an error.
fn open_without_links(root: &Path, path: &Path) -> Result<OwnedFd, Errno> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut parts = path.components().map(|part| match part {
        Component::Normal(name) => Ok(name),
        _ => Err(Errno::INVAL),
    });
    let mut name = parts.next().unwrap_or(Err(Errno::INVAL))?;
    let mut at = rustix::fs::open(root, folder, Mode::empty())?;
    for next in parts {
        at = rustix::fs::openat(&at, name, folder | OFlags::NOFOLLOW, Mode::empty())?;
        name = next?;
    }
    // A device may act on being opened, so it is looked at first. Without NONBLOCK, a pipe put there
    // at this very moment would hold us until somebody writes to it.
    let stat = rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(Errno::LOOP),
        _ => return Err(Errno::NOENT),
    }
    let file =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(&at, name, file, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("a.md"), "inside").unwrap();
        fs::write(root.join("sub/b.md"), "below").unwrap();
        fs::create_dir(base.path().join("out")).unwrap();
        fs::write(base.path().join("out/secret.md"), "secret").unwrap();
        symlink("sub/b.md", root.join("link.md")).unwrap();
        symlink(root.join("a.md"), root.join("absolute.md")).unwrap();
        symlink("../a.md", root.join("sub/up.md")).unwrap();
        symlink("sub", root.join("dir")).unwrap();
        symlink("../out/secret.md", root.join("escape.md")).unwrap();
        symlink("../out", root.join("escape")).unwrap();
        symlink("loop.md", root.join("loop.md")).unwrap();
        symlink("nowhere", root.join("dangling.md")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        base
    }

    #[test]
    fn only_what_lies_below_is_opened() {
        let base = tree();
        let root = base.path().join("root");
        for (path, expected) in [
            ("a.md", Some("inside")),
            ("sub/b.md", Some("below")),
            ("link.md", Some("below")),
            ("absolute.md", Some("inside")),
            ("sub/up.md", Some("inside")),
            ("dir/b.md", Some("below")),
            ("dir/up.md", Some("inside")),
            ("escape.md", None),
            ("escape/secret.md", None),
            ("../out/secret.md", None),
            ("/etc/hostname", None),
            ("sub/../a.md", None),
            ("loop.md", None),
            ("dangling.md", None),
            ("pipe", None),
            ("sub", None),
            ("a.md/b", None),
            ("none.md", None),
            ("", None),
        ] {
            match read(&root, OsStr::new(path), 100) {
                Ok(content) => assert_eq!(Some(&*content), expected.map(str::as_bytes), "{path}"),
                Err(e) => {
                    assert!(matches!(e, OpenError::NotFound), "{path}: {e}");
                    assert_eq!(expected, None, "{path}");
                }
            }
        }
    }

    #[test]
    fn sizes_are_limited() {
        let base = tree();
        let root = base.path().join("root");
        assert_eq!(read(&root, OsStr::new("a.md"), 6).unwrap(), b"inside");
        let error = read(&root, OsStr::new("a.md"), 5).unwrap_err();
        assert_eq!(error.to_string(), "6 bytes, and the limit is 5");
        assert_eq!(head(&root, OsStr::new("a.md"), 3).unwrap(), b"ins");
    }

    #[test]
    fn a_link_swapped_all_the_time_never_leads_out() {
        let base = tree();
        let root = base.path().join("root");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (turn, next) = (root.join("turn"), root.join("next"));
                for target in ["sub", "../out"].iter().cycle() {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    symlink(target, &next).unwrap();
                    fs::rename(&next, &turn).unwrap();
                }
            });
            let mut seen = 0;
            for _ in 0..2_000 {
                assert!(read(&root, OsStr::new("turn/secret.md"), 100).is_err());
                seen += usize::from(read(&root, OsStr::new("turn/b.md"), 100).is_ok());
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(seen > 0, "the inner target was never read");
        });
    }
}
