//! A thread that swaps files and folders for links as fast as it can, while the filesystem is used.
//!
//! Whatever the moment, nothing of the folder beside the workspace is read, listed, named or changed.

use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hames_tools::{Expect, FsError, FsPath, FsProvider, WalkOptions};
use rustix::fs::{CWD, RenameFlags};

use super::local::{LocalFs, LocalFsOptions};
use super::resolve::Reach;
use super::sys::Walker;
use super::write::hash_of;

/// Rounds of every operation: 30, or as many as `HAMES_PROPTEST_CASES` says.
fn rounds() -> usize {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(30)
}

fn exchange(a: &Path, b: &Path) {
    rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

/// Runs `work` while `swap` runs over and over, an even number of times.
fn during(swap: impl Fn() + Send + Sync, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                swap();
                swap();
            }
        });
        // Also where the work fails: the other thread has to end.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _done = Done(&done);
        work();
    });
}

/// How often something worked, and how often it was refused.
#[derive(Default, Debug)]
struct Tally {
    worked: usize,
    refused: usize,
}

impl Tally {
    fn count<T>(&mut self, outcome: Result<T, FsError>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.worked += 1;
                Some(value)
            }
            Err(_) => {
                self.refused += 1;
                None
            }
        }
    }
}

fn all_kinds() -> impl Iterator<Item = (Walker, Reach)> {
    [Walker::detect(), Walker::Stepwise]
        .into_iter()
        .flat_map(|walker| [Reach::Everything, Reach::Beneath].map(|reach| (walker, reach)))
}

#[test]
fn whatever_is_swapped_meanwhile_nothing_outside_is_read_or_changed() {
    for (walker, reach) in all_kinds() {
        for folder in [true, false] {
            let scratch = tempfile::tempdir().unwrap();
            let root = scratch.path().join("w");
            let secret = scratch.path().join("secret");
            std::fs::create_dir_all(root.join("sub/empty")).unwrap();
            std::fs::create_dir_all(secret.join("empty")).unwrap();
            for name in ["k", "gone"] {
                std::fs::write(root.join("sub").join(name), "mine").unwrap();
                std::fs::write(secret.join(name), "secret").unwrap();
            }
            std::fs::write(secret.join("only here"), "secret").unwrap();
            // What the folder, or the file in it, is exchanged for.
            let (real, link) = match folder {
                true => (root.join("sub"), root.join("link")),
                false => (root.join("sub/k"), root.join("sub/link")),
            };
            symlink(if folder { secret.clone() } else { secret.join("k") }, &link).unwrap();
            let fs = LocalFs::with_walker(&root, LocalFsOptions::default(), walker, reach).unwrap();
            let mut tally = Tally::default();
            during(|| exchange(&real, &link), || (0..rounds()).for_each(|round| use_all(&fs, round, &mut tally)));
            let context = format!("{walker:?} {reach:?} folder: {folder} {tally:?}");
            assert!(tally.worked > 0, "{context}");
            for name in ["k", "gone", "only here"] {
                assert_eq!(std::fs::read(secret.join(name)).unwrap(), b"secret", "{context}");
            }
            assert_eq!(std::fs::read_dir(&secret).unwrap().count(), 4, "{context}");
            // After an even number of swaps the folder is in its place again. A link in the place of the file itself may
            // have been replaced, between the last look and the rename; never what it leads to.
            assert!(!folder || std::fs::symlink_metadata(&link).unwrap().is_symlink(), "{context}");
        }
    }
}

/// Every operation once, by paths resolved just now and by paths that were resolved when there was no link.
fn use_all(fs: &LocalFs, round: usize, tally: &mut Tally) {
    let inside = |name: &str| {
        let before = FsPath { abs: fs.root().join(name), shown: name.into(), inside: true, identity: None };
        let now = fs.resolve(name).ok().filter(|path| path.inside);
        if round.is_multiple_of(2) { now.unwrap_or(before) } else { before }
    };
    let key = inside("sub/k");
    if let Some(content) = tally.count(fs.read(&key, 1_000)) {
        assert!(content.starts_with(b"mine"), "read {:?}", String::from_utf8_lossy(&content));
        let new = format!("mine {round}");
        for expect in [Expect::Hash(hash_of(&content)), Expect::Hash(hash_of(b"secret"))] {
            let staged = fs.stage_write(&key, new.as_bytes(), &expect, None);
            if let Ok(staged) = staged {
                assert!(staged.change().before.as_ref().is_some_and(|before| before.starts_with(b"mine")));
                tally.count(staged.commit());
            }
        }
    }
    let new = inside("sub/new/deeper/file");
    if let Some(staged) = tally.count(fs.stage_write(&new, b"mine", &Expect::Absent, Some(0o644)))
        && tally.count(staged.commit()).is_some()
    {
        for (name, expect) in [("file", Expect::Hash(hash_of(b"mine"))), ("", Expect::Dir)] {
            let path = inside(format!("sub/new/deeper/{name}").trim_end_matches('/'));
            while fs.stage_remove(&path, &expect).and_then(|staged| staged.commit()).is_err() {}
        }
        let path = inside("sub/new");
        while fs.stage_remove(&path, &Expect::Dir).and_then(|staged| staged.commit()).is_err() {}
    }
    for (name, expect) in [("sub/gone", Expect::Hash(hash_of(b"secret"))), ("sub/empty", Expect::Hash(String::new()))] {
        assert!(fs.stage_remove(&inside(name), &expect).is_err(), "{name} is not what is expected");
    }
    let sub = inside("sub");
    if let Some(entries) = tally.count(fs.list(&sub)) {
        assert!(entries.iter().all(|entry| entry.name != "only here"), "{entries:?}");
    }
    let walked = fs.walk(&inside("."), &WalkOptions::default(), &mut |entry| {
        assert!(!entry.path.shown.ends_with("only here"), "{entry:?}");
        ControlFlow::Continue(())
    });
    tally.count(walked);
    match fs.stat(&inside("sub/only hers")) {
        Err(FsError::NotFound { hint, .. }) => assert!(!hint.contains("only here"), "{hint}"),
        Err(_) => {}
        Ok(stat) => panic!("{stat:?}"),
    }
}
