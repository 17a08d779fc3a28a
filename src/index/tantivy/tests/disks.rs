//! Disks that lose their power and disks that fail: whatever happens to what wasn't synced, the index
//! opens at the last commit that was persisted or at a later one, whole.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use ::tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use ::tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use super::super::directory::Room;
use super::*;

/// Everything stays in memory until it is persisted.
const ROOMY: Room = Room { file: usize::MAX, all: usize::MAX };
/// Some files go to the disk as they are written, some when they are complete, and some are held.
const NARROW: Room = Room { file: 200, all: 600 };

/// Files by name, as they are found after a restart.
type Image = BTreeMap<PathBuf, Vec<u8>>;

/// What is noted after each operation.
#[derive(Clone, Copy, PartialEq)]
enum Records {
    /// What a killed process leaves: all that it has written.
    Kills,
    /// What a power cut may leave besides.
    PowerCuts,
}

/// A disk in memory that tells what is safe from what isn't yet.
#[derive(Clone, Default)]
struct Disk {
    platters: Arc<Mutex<Platters>>,
    /// The real one's are the kernel's: no operations of the disk, and gone with the process.
    locks: RamDirectory,
}

#[derive(Default)]
struct Platters {
    /// Content of files by number: the bytes, and how many of them were synced.
    files: Vec<(Vec<u8>, usize)>,
    /// Names as they are now, and as they are for sure.
    names: BTreeMap<PathBuf, usize>,
    safe_names: BTreeMap<PathBuf, usize>,
    /// Names changed since the folder was synced.
    changed: Vec<PathBuf>,
    /// Operations that write, so far; the one of this number fails.
    operations: usize,
    fails_at: Option<usize>,
    failed: bool,
    /// After each operation, what a power cut could leave; with the commits that were persisted
    /// and begun by then.
    images: Vec<((usize, usize), Image)>,
    seen: HashSet<[u8; 32]>,
    records: Option<Records>,
    persisted: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}

impl Platters {
    /// Begins an operation that writes.
    fn begin(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.fails_at == Some(self.operations) {
            self.failed = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn name(&mut self, path: &Path, file: Option<usize>) {
        match file {
            Some(file) => self.names.insert(path.to_owned(), file),
            None => self.names.remove(path),
        };
        self.changed.push(path.to_owned());
    }

    fn content(&self, names: &BTreeMap<PathBuf, usize>, all: bool) -> Image {
        let content = |file: &usize| {
            let (bytes, synced) = &self.files[*file];
            bytes[..if all { bytes.len() } else { *synced }].to_vec()
        };
        names.iter().map(|(path, file)| (path.clone(), content(file))).collect()
    }

    /// Notes what could be left if it ended now.
    fn record(&mut self) {
        let Some(records) = self.records else { return };
        // Deletions that got to the disk before what came before them.
        let mut deleted_first = self.safe_names.clone();
        deleted_first.retain(|path, _| self.names.contains_key(path));
        let mut images = vec![self.content(&self.names, true)];
        if records == Records::PowerCuts {
            images.extend([
                // Nothing but what was synced; names without their content.
                self.content(&self.safe_names, false),
                self.content(&self.names, false),
                self.content(&deleted_first, false),
            ]);
        }
        let commits = [&self.persisted, &self.begun].map(|number| number.load(Ordering::SeqCst));
        for image in images {
            let mut hasher = blake3::Hasher::new();
            for number in commits {
                hasher.update(&number.to_le_bytes());
            }
            for (path, bytes) in &image {
                hasher.update(path.as_os_str().as_encoded_bytes());
                hasher.update(&bytes.len().to_le_bytes());
                hasher.update(bytes);
            }
            if self.seen.insert(*hasher.finalize().as_bytes()) {
                self.images.push((commits.into(), image));
            }
        }
    }
}

impl Disk {
    fn of(image: Image) -> Self {
        let mut platters = Platters::default();
        for (path, bytes) in image {
            let synced = bytes.len();
            platters.files.push((bytes, synced));
            platters.names.insert(path, platters.files.len() - 1);
        }
        platters.safe_names = platters.names.clone();
        Self { platters: Arc::new(Mutex::new(platters)), locks: RamDirectory::default() }
    }

    fn platters(&self) -> std::sync::MutexGuard<'_, Platters> {
        lock(&self.platters)
    }

    fn open(&self) -> ::tantivy::Result<TantivyStore> {
        self.open_with(ROOMY)
    }

    fn open_with(&self, room: Room) -> ::tantivy::Result<TantivyStore> {
        let config = IndexConfig { threads: 1, ..IndexConfig::default() };
        // How large the folder is doesn't matter.
        let home = Home::Folder(PathBuf::from("."), Deferred::with_room(self.clone(), room));
        TantivyStore::with_home(home, &config)
    }
}

struct Writing {
    disk: Disk,
    file: usize,
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut platters = self.disk.platters();
        platters.begin()?;
        platters.files[self.file].0.extend_from_slice(bytes);
        platters.record();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Writing {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let mut platters = self.disk.platters();
        platters.begin()?;
        let (bytes, synced) = &mut platters.files[self.file];
        *synced = bytes.len();
        platters.record();
        Ok(())
    }
}

impl Directory for Disk {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(OwnedBytes::new(self.atomic_read(path)?)))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let mut platters = self.platters();
        if !platters.names.contains_key(path) {
            return Err(DeleteError::FileDoesNotExist(path.to_owned()));
        }
        platters.begin().map_err(|error| DeleteError::IoError {
            io_error: Arc::new(error),
            filepath: path.to_owned(),
        })?;
        platters.name(path, None);
        platters.record();
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.platters().names.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let mut platters = self.platters();
        if platters.names.contains_key(path) {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        platters.begin().map_err(|error| OpenWriteError::IoError {
            io_error: Arc::new(error),
            filepath: path.to_owned(),
        })?;
        platters.files.push((vec![], 0));
        let file = platters.files.len() - 1;
        platters.name(path, Some(file));
        platters.record();
        Ok(BufWriter::new(Box::new(Writing { disk: self.clone(), file })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let platters = self.platters();
        let file = platters.names.get(path);
        let file = file.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))?;
        Ok(platters.files[*file].0.clone())
    }

    /// As the real one: a new file, written and synced, is renamed into place.
    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let mut platters = self.platters();
        platters.begin()?;
        platters.files.push((data.to_vec(), data.len()));
        let file = platters.files.len() - 1;
        platters.name(path, Some(file));
        platters.record();
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut platters = self.platters();
        platters.begin()?;
        platters.safe_names = platters.names.clone();
        platters.changed.clear();
        platters.record();
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.locks.acquire_lock(lock)
    }

    fn watch(&self, _: WatchCallback) -> ::tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// What is committed round by round: new resources, changed ones, and one that goes.
fn round(number: usize) -> Vec<Change> {
    let text = |of: usize| format!("resource {of} of round {number}");
    let put = |of: usize| replace(entry("docs", &format!("a://{of}"), &[&text(of), "and more"]));
    match number {
        5 => vec![Change::Remove(key("docs", "a://1")), put(0)],
        _ => vec![put(0), put(number)],
    }
}

/// The state after each round: (URI, first chunk).
fn states(rounds: usize) -> Vec<Vec<(String, String)>> {
    let store = TantivyStore::in_memory().unwrap();
    let mut states = vec![state(&store)];
    for number in 1..=rounds {
        apply(&store, round(number));
        states.push(state(&store));
    }
    states
}

/// Everything that the index holds; panics if anything isn't whole.
fn state(store: &TantivyStore) -> Vec<(String, String)> {
    let manifests = store.manifests(&server("docs")).unwrap();
    let mut all: Vec<(String, String)> = manifests
        .iter()
        .map(|manifest| {
            let entry = store.entry(&manifest.key).unwrap().expect("a manifest has its entry");
            assert_eq!(entry.chunks.len(), manifest.chunks as usize);
            (manifest.key.uri.to_string(), entry.chunks[0].text.clone())
        })
        .collect();
    all.sort();
    let stats = store.stats().unwrap();
    assert_eq!(stats.resources as usize, all.len());
    assert_eq!(stats.chunks, manifests.iter().map(|m| u64::from(m.chunks)).sum::<u64>());
    all
}

const ROUNDS: usize = 9;

/// Commits round after round, persists after every so many of them, and opens whatever a power cut
/// could have left.
fn power_cuts(persisted_every: usize, room: Room) {
    let disk = Disk::default();
    let (persisted, begun) = {
        let platters = disk.platters();
        (platters.persisted.clone(), platters.begun.clone())
    };
    let store = disk.open_with(room).unwrap();
    disk.platters().records = Some(Records::PowerCuts);
    for number in 1..=ROUNDS {
        begun.store(number, Ordering::SeqCst);
        store.apply(round(number)).unwrap();
        store.commit().unwrap();
        if number % persisted_every == 0 {
            store.persist().unwrap();
            persisted.store(number, Ordering::SeqCst);
        }
    }
    // Merges go on in the background; the writer's end waits for what it began.
    store.rollback().unwrap();
    store.persist().unwrap();
    drop(store);

    let states = states(ROUNDS);
    let images = std::mem::take(&mut disk.platters().images);
    assert!(images.len() > 10 * ROUNDS / persisted_every, "{} images", images.len());
    for (at, ((persisted, begun), image)) in images.into_iter().enumerate() {
        let disk = Disk::of(image);
        let store = disk.open().unwrap_or_else(|error| {
            panic!("image {at}, after commit {persisted}, can't be opened: {error}")
        });
        let found = state(&store);
        let round = states.iter().rposition(|state| *state == found);
        assert!(
            round.is_some_and(|round| (persisted..=begun).contains(&round)),
            "image {at}, after commit {persisted} of {begun}: {found:?}"
        );
        // It can be written again, as if nothing had been.
        if at % 16 == 0 {
            for number in round.unwrap() + 1..=ROUNDS {
                apply(&store, self::round(number));
            }
            assert_eq!(state(&store), states[ROUNDS]);
        }
    }
}

#[test]
fn after_a_power_cut_the_last_persisted_commit_is_there() {
    power_cuts(1, ROOMY);
    power_cuts(1, NARROW);
}

#[test]
fn after_a_power_cut_commits_are_missing_from_the_last_on() {
    power_cuts(4, ROOMY);
    power_cuts(4, NARROW);
}

#[test]
fn when_any_write_fails_nothing_is_lost_and_the_next_try_succeeds() {
    failing_writes(ROOMY);
}

#[test]
fn nor_when_files_go_to_the_disk_as_they_are_written() {
    failing_writes(NARROW);
}

fn failing_writes(room: Room) {
    // Each write of some commits, one after the other.
    const ROUNDS: usize = 2;
    let states = states(ROUNDS);
    let mut failures = 0;
    for fails_at in 1.. {
        let disk = Disk::default();
        let store = disk.open_with(room).unwrap();
        let before = disk.platters().operations;
        disk.platters().fails_at = Some(before + fails_at);
        for number in 1..=ROUNDS {
            let mut tries = 0;
            let write = || {
                store.apply(round(number))?;
                store.commit()?;
                store.persist()
            };
            while let Err(error) = write() {
                assert!(matches!(error, IndexError::Write { .. }), "{error}");
                store.rollback().unwrap();
                // A failure after the commit is one of a commit that is there.
                let found = state(&store);
                assert!(found == states[number - 1] || found == states[number], "{found:?}");
                tries += 1;
                assert!(tries < 3, "write {fails_at} failed, and so did what came after: {error}");
            }
            assert_eq!(state(&store), states[number], "write {fails_at} failed");
        }
        let failed = disk.platters().failed;
        failures += usize::from(failed);
        drop(store);
        let opened = disk.open().unwrap();
        assert_eq!(state(&opened), states[ROUNDS], "write {fails_at} failed");
        if !failed {
            break;
        }
    }
    assert!(failures > 10 * ROUNDS, "{failures} writes failed");
}

/// What a kill could leave at each moment of one commit on a disk.
fn kills_during(image: &Image, number: usize) -> Vec<Image> {
    let disk = Disk::of(image.clone());
    let store = disk.open().unwrap();
    disk.platters().records = Some(Records::Kills);
    apply(&store, round(number));
    disk.platters().records = None;
    let images = std::mem::take(&mut disk.platters().images);
    images.into_iter().map(|(_, image)| image).collect()
}

#[test]
fn killed_again_and_again_in_one_commit_it_succeeds_at_last() {
    // A restart numbers its operations as the start before did, so what that one left has the very
    // names that this one wants to write.
    const ROUNDS: usize = 3;
    let states = states(ROUNDS);
    let disk = Disk::default();
    let store = disk.open().unwrap();
    for number in 1..ROUNDS {
        apply(&store, round(number));
    }
    drop(store);
    let image = {
        let platters = disk.platters();
        platters.content(&platters.names, true)
    };
    let once = kills_during(&image, ROUNDS);
    assert!(once.len() > 10, "{} kills", once.len());
    for (at, once) in once.iter().enumerate() {
        let twice = kills_during(once, ROUNDS);
        for image in [once, &twice[at % twice.len()]] {
            let disk = Disk::of(image.clone());
            let store = disk.open().unwrap();
            let found = state(&store);
            assert!(found == states[ROUNDS - 1] || found == states[ROUNDS], "kill {at}: {found:?}");
            apply(&store, round(ROUNDS));
            assert_eq!(state(&store), states[ROUNDS], "kill {at}");
        }
    }
}
