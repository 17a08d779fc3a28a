//! The rules of what is served.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};
use rustix::io::Errno;

/// Everything that is served: what neither hides behind a dot nor is ignored by a `.gitignore` or
/// `.ignore` in the folder, and no link that leads out. `only` restricts the walk to one path.
///
/// Rules in folders above the root don't count: who names a folder wants its files.
pub fn walk(root: &Path, only: Option<PathBuf>) -> ignore::Walk {
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
}

fn leads_inside(entry: &DirEntry, root: &Path) -> bool {
    !entry.path_is_symlink()
        || fs::canonicalize(entry.path()).is_ok_and(|real| real.starts_with(root))
}

/// Failures that concern one file or folder alone: it vanished, isn't for us, or is a link in a circle.
pub fn is_passing(error: &ignore::Error) -> bool {
    let Some(error) = error.io_error() else { return true };
    // By kind, because the walker's errors don't keep the system's code.
    [Errno::NOENT, Errno::ACCESS, Errno::LOOP, Errno::NOTDIR, Errno::NAMETOOLONG]
        .into_iter()
        .any(|passing| io::Error::from(passing).kind() == error.kind())
}

/// Whether this one file is served, by the same rules as in a scan, reading only the folders on the way.
pub fn is_served(root: &Path, path: &OsStr) -> bool {
    let Ok(root) = fs::canonicalize(root) else { return false };
    let wanted = root.join(path);
    walk(&root, Some(wanted.clone()))
        .filter_map(Result::ok)
        .any(|entry| entry.path() == wanted && entry.file_type().is_some_and(|kind| kind.is_file()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::scan::{Snapshot, below, scan};
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
        symlink("self.md", root.join("self.md")).unwrap();
        symlink("dir/b.md/x", root.join("through.md")).unwrap();
        let found = scan(&root, None, 100).unwrap();
        assert_eq!(names(&found), ["c.md", "dir/b.md", "link.md", "sub/b.md"]);
        assert!(found.links);
        assert!(found.folders.contains(&found.root.join("..data")), "a link's target is watched");
        assert!(!is_served(&root, OsStr::new("escape/secret.md")));
        assert!(!is_served(&root, OsStr::new("escape.md")));
        assert!(is_served(&root, OsStr::new("dir/b.md")));
    }
}
