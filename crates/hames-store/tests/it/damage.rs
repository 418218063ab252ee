//! Damaged databases: the program starts, the bad file is kept under another name, the user is told once, what can be
//! read is still there, what cannot is marked, and new sessions are saved.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hames_protocol::*;
use hames_store::Store;

use crate::kit::*;

const PAGE: u64 = 4096;

/// What every session was announced to hold.
type Announced = BTreeMap<SessionId, Vec<Envelope>>;

fn announced(home: &Home) -> Announced {
    home.store().list(None).unwrap().into_iter().map(|s| (s.id.clone(), home.read(&s.id))).collect()
}

/// A home with three sessions over many pages.
fn full_home(events: u64, bytes: usize) -> Home {
    let home = Home::new();
    for name in ["one", "two", "three"] {
        let id = home.session(name).id;
        home.append(&id, 2, vec![run_start("openai/gpt", Mode::Build), user("do something")]).unwrap();
        for n in 4..events {
            home.append(&id, n, vec![answer(&format!("{name} {n} {}", "x".repeat(bytes)))]).unwrap();
        }
        wait(home.store().blobs().put(&id, "out-1", BlobSource::Bytes(name.into()))).unwrap();
        wait(home.store().blobs().put(&id, "out-2", BlobSource::Bytes(name.repeat(50_000).into()))).unwrap();
    }
    home.store().search("something", None, 1).unwrap();
    home
}

fn garbage(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

fn kept_aside(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains("hames.db.damaged-")).collect()
}

/// Opens the home, reads everything, writes something. Gives the notices and how many announced events are gone.
fn use_after_damage(home: &mut Home, before: &Announced, what: &str) -> (Vec<String>, usize) {
    home.close();
    let opened = Store::open(home.path()).unwrap_or_else(|e| panic!("{what}: {e}"));
    home.store = Some(opened.store);
    let mut notices = opened.notices;
    let mut gone = 0;
    for (id, events) in before {
        let Some(info) = home.store().session(id).unwrap_or_else(|e| panic!("{what}: {e}")) else {
            gone += events.len();
            continue;
        };
        let now = wait(home.log().read(id, 0, usize::MAX)).unwrap_or_else(|e| panic!("{what}: {e}"));
        let now: BTreeMap<u64, Envelope> = now.into_iter().map(|e| (e.seq.unwrap(), e)).collect();
        for event in events {
            match now.get(&event.seq.unwrap()) {
                Some(found) if found == event => {}
                Some(found) => {
                    assert!(found.event.is_damaged(), "{what}: {found:?} is not what was written");
                    gone += 1;
                }
                None => gone += 1,
            }
        }
        // What is missing from a session that is there is marked in it.
        let marked = now.values().any(|e| e.event.is_damaged());
        assert!(now.len() >= events.len() || marked, "{what}: {} of {} events, no mark", now.len(), events.len());
        wait(home.log().take_open(id)).unwrap_or_else(|e| panic!("{what}: {e}"));
        // And it goes on; the index in memory may have been behind a repair.
        let next = home.store().session(id).unwrap().map_or(info.last_seq, |i| i.last_seq) + 1;
        append(home.store(), id, next, vec![user("and on")]).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let new = home.session("after the damage").id;
    home.append(&new, 2, vec![user("still here")]).unwrap_or_else(|e| panic!("{what}: {e}"));
    let hits = home.store().search("still here", None, 9).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(hits.len(), 1, "{what}");
    for session in home.store().list(None).unwrap() {
        home.store().blob_named(&session.id, "out-1").unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    notices.extend(home.store().take_notices());
    assert!(gone == 0 || !notices.is_empty(), "{what}: {gone} events are gone without a word");
    // It is said once, and the new session is still there afterwards.
    let again = home.reopen();
    assert_eq!(again, Vec::<String>::new(), "{what}");
    assert_eq!(home.read(&new).len(), 2, "{what}");
    // Damage that nobody met yet is only in the report.
    if !notices.is_empty() {
        assert_eq!(home.store().check().unwrap().integrity, Ok(()), "{what}");
    }
    (notices, gone)
}

#[test]
fn a_damaged_file_is_kept_aside_and_what_it_held_is_recovered() {
    type Injury = fn(&Path);
    // What is done to the closed file, and the most events that may be lost of 360.
    let injuries: [(&str, Injury, usize); 14] = [
        ("garbage over the first 16 bytes", |db| overwrite(db, 0, &garbage(16, 1)), 0),
        ("garbage over the header", |db| overwrite(db, 0, &garbage(100, 2)), 0),
        ("garbage over the first page", |db| overwrite(db, 0, &garbage(4096, 3)), 0),
        ("zeros over the first page", |db| overwrite(db, 0, &[0; 4096]), 0),
        ("a text over the header", |db| overwrite(db, 0, b"not a database at all, just text"), 0),
        ("cut in half", |db| truncate(db, |len| len / 2 / PAGE * PAGE), 260),
        ("cut inside a page", |db| truncate(db, |len| len / 2 + 17), 260),
        ("cut by little more than a page", |db| truncate(db, |len| len - PAGE - 1), 20),
        ("only a header left", |db| truncate(db, |_| 100), 360),
        ("one byte left", |db| truncate(db, |_| 1), 360),
        ("nothing left", |db| truncate(db, |_| 0), 360),
        ("all zeros", |db| fs::write(db, vec![0; 50_000]).unwrap(), 360),
        ("another program's database", other_database, 360),
        (
            "a folder in its place",
            |db| {
                fs::remove_file(db).unwrap();
                fs::create_dir(db).unwrap();
                fs::write(db.join("inside"), "x").unwrap();
            },
            360,
        ),
    ];
    for (what, injure, at_most) in injuries {
        let mut home = full_home(120, 300);
        let before = announced(&home);
        home.close();
        injure(&home.database());
        let injured = fs::read(home.database()).ok();
        let (notices, gone) = use_after_damage(&mut home, &before, what);
        assert!(gone <= at_most, "{what}: {gone} lost; {notices:?}");
        assert_eq!(notices.len(), 1, "{what}: {notices:?}");
        let kept = kept_aside(home.path());
        assert_eq!(kept.len(), 1, "{what}: {kept:?}");
        assert!(notices[0].contains(kept[0].to_str().unwrap()), "{what}: {notices:?}");
        assert_eq!(fs::read(&kept[0]).ok(), injured, "{what}: not kept as it was");
    }
}

fn truncate(path: &Path, length: impl Fn(u64) -> u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let now = file.metadata().unwrap().len();
    file.set_len(length(now)).unwrap();
}

fn other_database(path: &Path) {
    fs::remove_file(path).unwrap();
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("CREATE TABLE sessions (x); INSERT INTO sessions VALUES (1)").unwrap();
}

#[test]
fn garbage_in_any_page_costs_what_lay_there_and_no_more() {
    let model = {
        let mut home = full_home(40, 200);
        let before = announced(&home);
        home.close();
        (home, before)
    };
    let (home, before) = model;
    let pages = fs::metadata(home.database()).unwrap().len() / PAGE;
    assert!((20..200).contains(&pages), "{pages} pages");
    let all: usize = before.values().map(Vec::len).sum();
    for page in 0..pages {
        let mut copy = Home { dir: tempfile::tempdir().unwrap(), store: None };
        copy_home(home.path(), copy.path());
        overwrite(&copy.database(), page * PAGE, &garbage(4096, page + 99));
        let what = format!("page {page} of {pages}");
        let (notices, gone) = use_after_damage(&mut copy, &before, &what);
        assert!(gone <= all / 4, "{what}: {gone} of {all} lost; {notices:?}");
        assert_eq!(kept_aside(copy.path()).len(), notices.len(), "{what}: {notices:?}");
    }
}

fn copy_home(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_home(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A copy of a home whose process is still running: what a kill leaves behind.
fn killed(home: &Home) -> Home {
    let copy = Home { dir: tempfile::tempdir().unwrap(), store: None };
    copy_home(home.path(), copy.path());
    copy
}

#[test]
fn what_a_kill_leaves_is_all_there() {
    let home = full_home(40, 300);
    let before = announced(&home);
    let mut copy = killed(&home);
    assert!(copy.path().join("hames.db-wal").exists());
    let (notices, gone) = use_after_damage(&mut copy, &before, "killed");
    assert_eq!((notices, gone), (vec![], 0));
}

#[test]
fn a_write_ahead_file_that_is_missing_after_a_kill_is_missed() {
    let mut home = full_home(40, 300);
    home.reopen();
    let id = home.session("late").id;
    home.append(&id, 2, vec![user("only in the write-ahead file")]).unwrap();
    let before = announced(&home);
    let mut copy = killed(&home);
    fs::remove_file(copy.path().join("hames.db-wal")).unwrap();
    let (notices, gone) = use_after_damage(&mut copy, &before, "no -wal");
    assert!(notices[0].contains("write-ahead"), "{notices:?}");
    assert_eq!(gone, 2);
}

#[test]
fn a_stray_write_ahead_file_is_not_obeyed() {
    let other = full_home(10, 10);
    let strays: [(&str, PathBuf); 3] = [
        ("another home's", other.path().join("hames.db-wal")),
        ("garbage", {
            fs::write(other.path().join("garbage"), garbage(9000, 5)).unwrap();
            other.path().join("garbage")
        }),
        ("its own of long ago", {
            let old = full_home(12, 10);
            let kept = other.path().join("old-wal");
            fs::copy(old.path().join("hames.db-wal"), &kept).unwrap();
            kept
        }),
    ];
    for (what, stray) in strays {
        let mut home = full_home(40, 300);
        let before = announced(&home);
        home.close();
        fs::copy(&stray, home.path().join("hames.db-wal")).unwrap();
        let (notices, gone) = use_after_damage(&mut home, &before, what);
        assert_eq!(gone, 0, "{what}");
        assert_eq!(notices.len(), 1, "{what}: {notices:?}");
        assert_eq!(kept_aside(home.path()).len(), 1, "{what}");
    }
}

#[test]
fn a_write_ahead_file_without_its_database_is_kept() {
    for empty in [true, false] {
        let home = full_home(40, 300);
        let mut copy = killed(&home);
        match empty {
            true => truncate(&copy.database(), |_| 0),
            false => fs::remove_file(copy.database()).unwrap(),
        }
        let wal = fs::read(copy.path().join("hames.db-wal")).unwrap();
        let (notices, _) = use_after_damage(&mut copy, &announced(&home), "no database");
        assert_eq!(notices.len(), 1, "{notices:?}");
        let kept = kept_aside(copy.path()).into_iter().find(|path| path.to_string_lossy().ends_with("-wal")).unwrap();
        assert_eq!(fs::read(kept).unwrap(), wal);
    }
}

#[test]
fn a_database_that_was_removed_is_said_and_begun_anew() {
    let mut home = full_home(5, 10);
    home.close();
    fs::remove_file(home.database()).unwrap();
    let notices = home.reopen();
    assert!(notices.len() == 1 && notices[0].contains("missing"), "{notices:?}");
    assert_eq!(home.reopen(), Vec::<String>::new());
}

#[test]
fn damage_that_others_are_using_is_left_to_be_repaired_later() {
    let mut home = full_home(40, 300);
    let before = announced(&home);
    let id = before.keys().next().unwrap().clone();
    home.reopen();
    let second = Store::open(home.path()).unwrap().store;
    // The page of the event tree that both would read next; its own fd must not be closed while they hold locks, so
    // another process writes it.
    let root: i64 =
        home.sql().query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'events'", [], |row| row.get(0)).unwrap();
    let done = std::process::Command::new("dd")
        .args(["if=/dev/urandom", "bs=4096", "count=1", "conv=notrunc", "status=none"])
        .arg(format!("seek={}", root - 1))
        .arg(format!("of={}", home.database().display()))
        .status()
        .unwrap();
    assert!(done.success());
    let error = wait(second.log().read(&id, 0, 1000)).unwrap_err();
    assert!(matches!(&error, LogError::Damaged(text) if text.contains("another hames process")), "{error}");
    drop(second);
    let (notices, _) = use_after_damage(&mut home, &before, "both gone");
    assert_eq!(notices.len(), 1, "{notices:?}");
}

#[test]
fn what_a_repair_that_was_killed_left_is_removed_by_the_next() {
    let mut home = full_home(1, 3);
    home.close();
    let left = home.path().join(".salvage-of-one-that-died");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("whole.db"), garbage(100, 1)).unwrap();
    overwrite(&home.database(), 0, &garbage(4096, 2));
    assert_eq!(home.reopen().len(), 1);
    let hidden = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".salvage-");
    assert_eq!(walk(home.path()).into_iter().find(hidden), None);
    assert_eq!(home.store().list(None).unwrap().len(), 3);
}

#[test]
fn a_place_that_cannot_be_written_is_said_clearly() {
    // Permissions do not stop root, so a copy of this test runs as somebody else where it has to.
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    type Lock = fn(&Path);
    let places: [(&str, Lock); 8] = [
        ("a read-only home", |home| set_mode(home, 0o500)),
        ("a home that does not exist and cannot", |home| {
            fs::remove_dir_all(home).unwrap();
            fs::create_dir(home).unwrap();
            set_mode(home, 0o500);
        }),
        ("a home that cannot be entered", |home| set_mode(home, 0o000)),
        ("a read-only database", |home| set_mode(&home.join("hames.db"), 0o400)),
        ("an unreadable database", |home| set_mode(&home.join("hames.db"), 0o000)),
        ("a read-only lock", |home| set_mode(&home.join("locks/db.lock"), 0o400)),
        ("a read-only lock folder", |home| {
            fs::remove_file(home.join("locks/db.lock")).unwrap();
            set_mode(&home.join("locks"), 0o500);
        }),
        ("no room for the write-ahead file", |home| {
            fs::create_dir_all(home.join("blobs")).unwrap();
            set_mode(home, 0o500);
        }),
    ];
    for (what, lock) in places {
        let mut home = full_home(5, 10);
        home.close();
        let binary = home.path().with_extension("test");
        fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
        let root = fs::metadata(home.path()).unwrap().uid() == 0;
        if root {
            for path in walk(home.path()) {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        lock(home.path());
        let mut command = std::process::Command::new(&binary);
        let mut like = helper("damage::helper_opens", home.path(), what);
        command.args(like.get_args()).envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))));
        like.env_clear();
        if root {
            chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        fs::remove_file(&binary).unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let said = text.lines().find(|line| line.contains("OPEN ")).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(said.contains("cannot be written; check its permissions"), "{what}: {said}");
        assert!(said.contains(home.path().to_str().unwrap()), "{what}: {said}");
        assert_eq!(kept_aside(home.path()), Vec::<PathBuf>::new(), "{what}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn walk(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| found.extend(walk(&entry.unwrap().path())));
    }
    found
}

#[test]
#[ignore = "a process started by the test above"]
fn helper_opens() {
    let Some((home, _)) = helper_task() else { return };
    match Store::open(&home) {
        Ok(opened) => {
            let saved = opened.store.create("x", Path::new("/w"), Settings::default(), 1, "t");
            println!("OPEN {}", saved.err().map_or("saved".into(), |e| e.to_string()));
        }
        Err(error) => println!("OPEN {error}"),
    }
}
