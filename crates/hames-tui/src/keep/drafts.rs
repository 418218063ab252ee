//! Drafts in files: one for each place something was written at, of each terminal.
//!
//! A terminal only ever writes files of its own name, and holds a lock of that name while it lives, so two terminals never
//! overwrite each other. What a terminal that is gone has left is taken over by the next one that shows the same place: its
//! files change their names. The kernel lets a lock go with its process, whatever it died of.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{MAX_BYTES, lock_file, make_folder, name_of, write_whole};
use crate::{SavedDraft, Spot};

/// Files that terminals which are gone have left; of more the oldest go.
const MAX_LEFT: usize = 200;

/// The drafts of one terminal.
#[derive(Default)]
pub(super) struct Drafts {
    folder: PathBuf,
    seed: String,
    /// Held from the first file on.
    lock: Option<File>,
    /// What is in the files, by the name of the place.
    kept: HashMap<String, Vec<SavedDraft>>,
    taken_over: u64,
    /// How often was asked, and by which time the answer held something, by the name of the place.
    recalls: u64,
    answered: HashMap<String, u64>,
}

/// The name of a file: the place, the terminal, and a number: 0 is what it writes, others it has taken over.
struct Name {
    place: String,
    seed: String,
    number: u64,
}

impl Name {
    fn read(file: &str) -> Option<Self> {
        let mut parts = file.strip_suffix(".json")?.split('.');
        let (place, seed, number) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then(|| Self { place: place.to_owned(), seed: seed.to_owned(), number })
    }

    fn write(&self) -> String {
        format!("{}.{}.{}.json", self.place, self.seed, self.number)
    }
}

fn place_of(spot: &Spot) -> String {
    match spot {
        Spot::Folder(folder) => name_of("folder", folder),
        Spot::Session(session) => name_of("session", session.as_str()),
    }
}

impl Drafts {
    pub(super) fn new(folder: &Path, seed: &str) -> Self {
        let folder = folder.join("drafts");
        Self { folder, seed: name_of("terminal", seed), ..Self::default() }
    }

    /// Makes the files what these drafts are. What was taken over stays until the first `recalled` answers are part of the
    /// drafts: those who write may be gone before they have heard of it.
    pub(super) fn save(&mut self, drafts: &BTreeMap<Spot, Vec<SavedDraft>>, recalled: u64) -> io::Result<()> {
        let now: BTreeMap<String, &Vec<SavedDraft>> = drafts.iter().map(|(spot, all)| (place_of(spot), all)).collect();
        let mut done = Ok(());
        for (place, all) in &now {
            if self.kept.get(place) != Some(*all) {
                // One that cannot be kept does not keep the others from it.
                done = self.write(place, all, recalled).and(done);
            }
        }
        done?;
        // What is in another place now was written there before it goes here.
        let is_gone = |place: &&String| !now.contains_key(*place);
        let gone: Vec<String> = self.kept.keys().chain(self.answered.keys()).filter(is_gone).cloned().collect();
        for place in gone {
            remove(&self.path(&place, 0))?;
            self.kept.remove(&place);
            self.drop_taken_over(&place, recalled)?;
        }
        Ok(())
    }

    fn write(&mut self, place: &str, all: &Vec<SavedDraft>, recalled: u64) -> io::Result<()> {
        self.hold()?;
        let bytes = serde_json::to_vec(all)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(io::Error::other("the draft is larger than 64 MB; send it in parts, or as a file"));
        }
        write_whole(&self.path(place, 0), &bytes)?;
        self.kept.insert(place.to_owned(), all.clone());
        self.drop_taken_over(place, recalled)
    }

    /// Takes over what terminals that are gone have left for a place, the oldest first.
    pub(super) fn recall(&mut self, spot: &Spot) -> io::Result<Vec<SavedDraft>> {
        self.recalls += 1;
        let (place, mut found) = (place_of(spot), Vec::new());
        let mut others: BTreeSet<String> = self.names().into_iter().map(|name| name.seed).collect();
        others.remove(&self.seed);
        for seed in others {
            let Some(lock) = self.lock_of(&seed)? else { continue };
            self.hold()?;
            let names = self.names().into_iter().filter(|name| name.seed == seed);
            let (here, elsewhere): (Vec<Name>, Vec<Name>) = names.partition(|name| name.place == place);
            for name in here {
                let path = self.folder.join(name.write());
                let age = fs::metadata(&path).and_then(|info| info.modified()).ok();
                self.taken_over += 1;
                let ours = self.path(&place, self.taken_over);
                fs::rename(&path, &ours)?;
                found.push((age, read(&ours)));
            }
            if elsewhere.is_empty() {
                remove(&self.folder.join(format!("{seed}.lock")))?;
            }
            drop(lock);
        }
        self.clear_out()?;
        found.sort_by_key(|(age, _)| *age);
        let found: Vec<SavedDraft> = found.into_iter().flat_map(|(_, drafts)| drafts).collect();
        if !found.is_empty() {
            self.answered.insert(place, self.recalls);
        }
        Ok(found)
    }

    /// The end of this terminal: without drafts nothing stays.
    pub(super) fn leave(self) {
        if self.lock.is_some() && self.names().iter().all(|name| name.seed != self.seed) {
            let _ = remove(&self.folder.join(format!("{}.lock", self.seed)));
        }
    }

    fn path(&self, place: &str, number: u64) -> PathBuf {
        let name = Name { place: place.to_owned(), seed: self.seed.clone(), number };
        self.folder.join(name.write())
    }

    /// From here on what is written is this terminal's.
    fn hold(&mut self) -> io::Result<()> {
        if self.lock.is_none() {
            make_folder(&self.folder)?;
            let seed = self.seed.clone();
            self.lock = self.lock_of(&seed)?;
        }
        Ok(())
    }

    /// The lock of a terminal; `None` where it lives.
    fn lock_of(&self, seed: &str) -> io::Result<Option<File>> {
        let path = self.folder.join(format!("{seed}.lock"));
        loop {
            let file = lock_file(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Somebody may have removed it between the two: a lock nobody else finds is none.
            if fs::metadata(&path).is_ok_and(|info| file.metadata().is_ok_and(|ours| ours.ino() == info.ino())) {
                return Ok(Some(file));
            }
        }
    }

    fn names(&self) -> Vec<Name> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| Name::read(entry.file_name().to_str()?)).collect()
    }

    /// What was taken over is part of what is written by now, or was deleted by hand.
    fn drop_taken_over(&mut self, place: &str, recalled: u64) -> io::Result<()> {
        if self.answered.get(place).is_some_and(|answer| *answer <= recalled) {
            let ours = |name: &Name| name.seed == self.seed && name.place == place && name.number > 0;
            let names = self.names();
            names.iter().filter(|name| ours(name)).try_for_each(|name| remove(&self.folder.join(name.write())))?;
            self.answered.remove(place);
        }
        Ok(())
    }

    /// Bounds what is left of terminals that are gone.
    fn clear_out(&self) -> io::Result<()> {
        let mut left: Vec<_> = self.names().into_iter().filter(|name| name.seed != self.seed).collect();
        if left.len() <= MAX_LEFT {
            return Ok(());
        }
        let age = |name: &Name| fs::metadata(self.folder.join(name.write())).and_then(|info| info.modified()).ok();
        left.sort_by_cached_key(|name| std::cmp::Reverse(age(name)));
        for name in &left[MAX_LEFT..] {
            if self.lock_of(&name.seed)?.is_some() {
                remove(&self.folder.join(name.write()))?;
            }
        }
        Ok(())
    }
}

/// The drafts of a file; none where it is damaged.
fn read(path: &Path) -> Vec<SavedDraft> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Removes a file that may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
