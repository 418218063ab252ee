//! Writes: atomic, with everything but the content kept, and nothing left behind when they fail.

use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use hames_tools::{Expect, FsError, FsProvider, StagedChange, WalkOptions};
use hames_workspace::files::{LocalFs, LocalFsOptions, remove_staged_beside};
use serde_json::json;

use super::kit::{Bench, hash, is_root};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn mode_bits_are_kept() {
    for (name, bits) in [
        ("run.sh", 0o755),
        (".key", 0o600),
        ("plain", 0o644),
        ("group", 0o664),
        ("mine", 0o700),
        ("open", 0o666),
        ("odd", 0o751),
        ("setid", 0o6755),
        ("sticky", 0o1644),
    ] {
        let bench = Bench::new();
        let path = bench.file(name, "one\n");
        set_mode(&path, bits);
        bench.ok("StrReplace", json!({"path": name, "old_string": "one", "new_string": "two"})).await;
        assert_eq!(mode(&path), bits, "{name} after StrReplace");
        bench.ok("Write", json!({"path": name, "content": "three\n"})).await;
        assert_eq!(mode(&path), bits, "{name} after Write");
        assert_eq!(bench.bytes(name), b"three\n");
        assert_eq!(bench.changes()[0].mode, Some(bits));
        assert_eq!(bench.names(), [name], "nothing is left beside it");
    }
}

#[tokio::test]
async fn a_new_file_gets_what_the_umask_leaves() {
    let bench = Bench::new();
    let plain = bench.path("made by the system");
    std::fs::File::create(&plain).unwrap();
    bench.ok("Write", json!({"path": "deep/er/new", "content": "x"})).await;
    assert_eq!(mode(&bench.path("deep/er/new")), mode(&plain));
    assert_eq!(bench.changes()[0].mode, Some(mode(&plain)));
}

#[tokio::test]
async fn every_name_of_a_file_with_several_sees_the_new_content() {
    let bench = Bench::new();
    bench.file("a", "one\n");
    std::fs::hard_link(bench.path("a"), bench.path("b")).unwrap();
    set_mode(&bench.path("a"), 0o640);
    let inode = std::fs::metadata(bench.path("a")).unwrap().ino();
    for content in ["longer than before\n", "short", ""] {
        bench.ok("Write", json!({"path": "a", "content": content})).await;
        assert_eq!(bench.bytes("b"), content.as_bytes());
    }
    assert_eq!(std::fs::metadata(bench.path("a")).unwrap().ino(), inode);
    assert_eq!(mode(&bench.path("b")), 0o640);
    assert_eq!(bench.blob(&bench.changes()[0].before.as_ref().unwrap().hash).await, b"one\n");
}

#[tokio::test]
async fn a_link_stays_a_link_and_its_target_changes() {
    let bench = Bench::new();
    bench.file("target", "one\n");
    set_mode(&bench.path("target"), 0o711);
    symlink("target", bench.path("link")).unwrap();
    bench.ok("StrReplace", json!({"path": "link", "old_string": "one", "new_string": "two"})).await;
    assert_eq!(std::fs::read_link(bench.path("link")).unwrap(), Path::new("target"));
    assert_eq!(bench.bytes("target"), b"two\n");
    assert_eq!(mode(&bench.path("target")), 0o711);
}

#[test]
fn extended_attributes_are_kept() {
    let bench = Bench::new();
    let path = bench.file("f", "one");
    if let Err(error) = rustix::fs::setxattr(&path, "user.note", b"kept", rustix::fs::XattrFlags::empty()) {
        return skipped("extended_attributes_are_kept", &error.to_string());
    }
    bench.fs.write(&bench.fs.resolve("f").unwrap(), b"two", &hash(b"one"), &mut |_| Ok(())).unwrap();
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"kept");
}

#[tokio::test]
async fn a_path_that_ends_in_a_slash_is_no_file() {
    let bench = Bench::new();
    let said = bench.refused("Write", json!({"path": "new/", "content": "x"})).await;
    assert_eq!(said, "new is a folder, not a file");
    assert_eq!(bench.names(), Vec::<String>::new());
}

#[test]
fn what_is_on_disk_has_to_be_what_is_expected() {
    let bench = Bench::new();
    bench.file("f", "one");
    let path = bench.fs.resolve("f").unwrap();
    let new = bench.fs.resolve("sub/new").unwrap();
    let mut recorded = 0;
    for (path, expect) in [(&path, Expect::Absent), (&path, hash(b"other")), (&new, hash(b"one"))] {
        let written = bench.fs.write(path, b"two", &expect, &mut |_| {
            recorded += 1;
            Ok(())
        });
        assert!(matches!(written, Err(FsError::Changed { .. })), "{expect:?}");
    }
    assert_eq!(recorded, 0);
    assert_eq!(bench.names(), ["f"]);
    assert_eq!(bench.bytes("f"), b"one");
}

#[test]
fn whoever_writes_while_a_change_is_recorded_wins() {
    type Meddle = fn(&Bench);
    let meddlers: [(&str, Meddle, &[u8]); 4] = [
        ("other content", |bench| drop(bench.file("f", "theirs")), b"theirs"),
        ("same size", |bench| drop(bench.file("f", "uno")), b"uno"),
        (
            "another file",
            |bench| {
                bench.file("g", "theirs");
                std::fs::rename(bench.path("g"), bench.path("f")).unwrap();
            },
            b"theirs",
        ),
        ("emptied", |bench| drop(bench.file("f", "")), b""),
    ];
    for in_place in [false, true] {
        for (what, meddle, left) in &meddlers {
            let bench = Bench::new();
            bench.file("f", "one");
            if in_place {
                std::fs::hard_link(bench.path("f"), bench.beside("second name")).unwrap();
            }
            let path = bench.fs.resolve("f").unwrap();
            let written = bench.fs.write(&path, b"two", &hash(b"one"), &mut |_| {
                meddle(&bench);
                Ok(())
            });
            assert!(matches!(written, Err(FsError::Changed { .. })), "{what}, in place: {in_place}");
            assert_eq!(bench.bytes("f"), *left, "{what}, in place: {in_place}");
            assert_eq!(bench.names(), ["f"]);
        }
    }
    // Touched but the same: not a change.
    let bench = Bench::new();
    bench.file("f", "one");
    let path = bench.fs.resolve("f").unwrap();
    let mut touch = |_: &StagedChange| {
        bench.file("f", "one");
        Ok(())
    };
    bench.fs.write(&path, b"two", &hash(b"one"), &mut touch).unwrap();
    assert_eq!(bench.bytes("f"), b"two");
    // A new file that somebody else makes meanwhile is theirs.
    let path = bench.fs.resolve("new").unwrap();
    let mut make = |_: &StagedChange| {
        bench.file("new", "theirs");
        Ok(())
    };
    let written = bench.fs.write(&path, b"mine", &Expect::Absent, &mut make);
    assert!(matches!(written, Err(FsError::Changed { .. })));
    assert_eq!(bench.bytes("new"), b"theirs");
}

#[test]
fn a_reader_sees_the_old_content_or_the_new_one() {
    let bench = Bench::new();
    let (old, new) = (vec![b'o'; 300_000], vec![b'n'; 200_000]);
    bench.file("f", &old);
    let path = bench.path("f");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let seen = std::fs::read(&path).unwrap();
                assert!(seen == old || seen == new, "{} bytes", seen.len());
            }
        });
        let target = bench.fs.resolve("f").unwrap();
        for _ in 0..10 {
            bench.fs.write(&target, &new, &hash(&old), &mut |_| Ok(())).unwrap();
            bench.fs.write(&target, &old, &hash(&new), &mut |_| Ok(())).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap();
    });
}

#[test]
fn an_error_of_the_recorder_leaves_everything_as_it_was() {
    let bench = Bench::new();
    bench.file("f", "one");
    for name in ["f", "new", "a/b/c"] {
        let path = bench.fs.resolve(name).unwrap();
        let expect = if name == "f" { hash(b"one") } else { Expect::Absent };
        let written = bench.fs.write(&path, b"two", &expect, &mut |staged| {
            assert_eq!(staged.before.is_some(), name == "f");
            Err(FsError::NotRecorded("no".into()))
        });
        assert!(matches!(written, Err(FsError::NotRecorded(_))));
    }
    assert_eq!(bench.names(), ["f"]);
    assert_eq!(bench.bytes("f"), b"one");
}

/// Set in the process that runs the tests below as somebody, or somewhere, else.
const INNER: &str = "HAMES_TEST_FOLDER";

#[test]
fn what_a_killed_write_left_staged_is_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let (gone, alive) = (gone.id(), std::process::id());
    let left = [format!(".hames-{gone:x}-18ec-0.staged"), format!(".hames-{gone:x}-18ed-1f.staged")];
    let others = [
        format!(".hames-{alive:x}-18ec-0.staged"),
        format!(".hames-{gone:x}-18ec-0"),
        format!(".hames-{gone:x}.staged"),
        format!("hames-{gone:x}-18ec-0.staged"),
        ".hames-xyz-1-0.staged".to_owned(),
        ".hames--1-0.staged".to_owned(),
        ".hames-0-1-0.staged".to_owned(),
        ".hames-fffffffff-1-0.staged".to_owned(),
        "a.txt".to_owned(),
    ];
    for name in left.iter().chain(&others) {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    remove_staged_beside(&folder.path().join("a.txt"));
    let mut expected = others.to_vec();
    expected.sort();
    let mut found: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, expected);
    // Where there is no folder there is nothing to do.
    remove_staged_beside(&folder.path().join("missing/a.txt"));
    remove_staged_beside(Path::new("/"));
}

/// Runs one test of this binary again in another process, unless the system does not let us.
fn again(test: &str, folder: &Path, command: &mut Command) {
    let command = command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("files::writes::{test}"), "--nocapture"])
        .env(INNER, folder);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return skipped(test, &error.to_string()),
    };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if out.contains("running 1 test") {
        assert!(output.status.success(), "{out}{err}");
    } else {
        assert!(!output.status.success(), "{test} is no test");
        skipped(test, &err);
    }
}

#[allow(clippy::print_stdout)] // a test that was skipped has to say so
fn skipped(test: &str, why: &str) {
    println!("skipped {test}: {why}");
}

fn inner() -> Option<LocalFs> {
    let folder = std::env::var_os(INNER)?;
    Some(LocalFs::new(Path::new(&folder), LocalFsOptions::default()).unwrap())
}

fn read(fs: &LocalFs, name: &str) -> Vec<u8> {
    std::fs::read(fs.root().join(name)).unwrap()
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    let Some(fs) = inner() else {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("mount -t tmpfs -o size=256k none '{}' && exec \"$@\"", folder.path().display());
        let mut command = Command::new("unshare");
        again(
            "a_full_disk_leaves_everything_as_it_was",
            folder.path(),
            command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]),
        );
        return;
    };
    let old = vec![b'o'; 60_000];
    std::fs::write(fs.root().join("f"), &old).unwrap();
    std::fs::write(fs.root().join("g"), &old).unwrap();
    std::fs::hard_link(fs.root().join("g"), fs.root().join("g2")).unwrap();
    let large = vec![b'n'; 600_000];
    for (name, expect) in [("f", hash(&old)), ("g", hash(&old)), ("new", Expect::Absent), ("a/b", Expect::Absent)] {
        let written = fs.write(&fs.resolve(name).unwrap(), &large, &expect, &mut |_| Ok(()));
        assert!(matches!(written, Err(FsError::NoSpace { .. })), "{name}: {written:?}");
    }
    for name in ["f", "g", "g2"] {
        assert!(read(&fs, name) == old, "{name}");
    }
    assert_eq!(std::fs::read_dir(fs.root()).unwrap().count(), 3);
    fs.write(&fs.resolve("f").unwrap(), b"small", &hash(&old), &mut |_| Ok(())).unwrap();
}

#[test]
fn a_mounted_file_is_written_in_place() {
    let Some(fs) = inner() else {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), "under the mount").unwrap();
        std::fs::write(folder.path().join("source"), "one").unwrap();
        let at = folder.path().display();
        let script = format!("mount --bind '{at}/source' '{at}/f' && exec \"$@\"");
        let mut command = Command::new("unshare");
        again(
            "a_mounted_file_is_written_in_place",
            folder.path(),
            command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]),
        );
        return;
    };
    let mut recorded = 0;
    let written = fs.write(&fs.resolve("f").unwrap(), b"two", &hash(b"one"), &mut |staged| {
        recorded += 1;
        assert_eq!(staged.before.as_deref(), Some(&b"one"[..]));
        Ok(())
    });
    written.unwrap();
    assert_eq!((read(&fs, "f"), read(&fs, "source"), recorded), (b"two".to_vec(), b"two".to_vec(), 1));
    assert_eq!(std::fs::read_dir(fs.root()).unwrap().count(), 2);
}

#[test]
fn a_denied_place_that_is_mounted_elsewhere_is_denied_there() {
    let name = "a_denied_place_that_is_mounted_elsewhere_is_denied_there";
    let Some(folder) = std::env::var_os(INNER) else {
        let folder = tempfile::tempdir().unwrap();
        for made in ["home", "w/mounted", "w/open"] {
            std::fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        std::fs::write(folder.path().join("home/key"), "key").unwrap();
        let at = folder.path().display();
        let script = format!("mount --bind '{at}/home' '{at}/w/mounted' && exec \"$@\"");
        let mut command = Command::new("unshare");
        again(name, folder.path(), command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]));
        return;
    };
    let folder = Path::new(&folder);
    let fs = LocalFs::new(&folder.join("w"), LocalFsOptions { denied: vec![folder.join("home")] }).unwrap();
    assert!(folder.join("w/mounted/key").is_file());
    for path in ["mounted/key", "mounted", "mounted/new", "open/../mounted/key"] {
        assert!(matches!(fs.resolve(path), Err(FsError::Denied { .. })), "{path}");
    }
    let root = fs.resolve(".").unwrap();
    assert_eq!(fs.list(&root).unwrap().len(), 1);
    let mut seen = Vec::new();
    fs.walk(&root, &WalkOptions::default(), &mut |entry| {
        seen.push(entry.path.shown);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, ["open"]);
}

#[test]
fn rights_are_heeded() {
    let Some(fs) = inner() else {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::fs::create_dir(at.join("locked")).unwrap();
        std::fs::create_dir(at.join("closed")).unwrap();
        for (name, bits) in [("read-only", 0o444), ("locked/f", 0o666), ("unreadable", 0o222), ("closed/x", 0o666)] {
            std::fs::write(at.join(name), "one").unwrap();
            set_mode(&at.join(name), bits);
        }
        set_mode(&at.join("locked"), 0o555);
        set_mode(&at.join("closed"), 0o000);
        set_mode(at, 0o777);
        if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            again("rights_are_heeded", at, &mut command);
        } else {
            check_rights(&LocalFs::new(at, LocalFsOptions::default()).unwrap());
        }
        set_mode(&at.join("locked"), 0o755);
        set_mode(&at.join("closed"), 0o755);
        return;
    };
    check_rights(&fs);
}

fn check_rights(fs: &LocalFs) {
    let write = |name: &str, expect: Expect| {
        fs.resolve(name).and_then(|path| fs.write(&path, b"two", &expect, &mut |_| Ok(()))).map_err(|e| e.to_string())
    };
    let error = write("read-only", hash(b"one")).unwrap_err();
    assert!(error.contains("read-only") && error.contains("make it writable"), "{error}");
    assert_eq!(read(fs, "read-only"), b"one");
    // The folder takes no staged file, but the file itself may be written.
    write("locked/f", hash(b"one")).unwrap();
    assert_eq!(read(fs, "locked/f"), b"two");
    for (name, expect) in [("locked/new", Expect::Absent), ("unreadable", hash(b"one")), ("closed/x", hash(b"one"))] {
        let error = write(name, expect).unwrap_err();
        assert!(error.contains("permission denied"), "{name}: {error}");
    }
    let removal = |name: &str, content: &[u8]| {
        fs.resolve_entry(name).and_then(|path| fs.stage_remove(&path, &hash(content))).map_err(|e| e.to_string())
    };
    for name in ["locked/f", "unreadable", "closed/x"] {
        let error = removal(name, b"two").map(drop).unwrap_err();
        assert!(error.contains("permission denied"), "{name}: {error}");
    }
    removal("read-only", b"one").unwrap().commit().unwrap();
}

#[test]
fn the_owner_is_kept() {
    if !is_root() {
        skipped("the_owner_is_kept", "only root can give files away");
        return;
    }
    let bench = Bench::new();
    bench.file("f", "one");
    std::os::unix::fs::chown(bench.path("f"), Some(1234), Some(5678)).unwrap();
    set_mode(&bench.path("f"), 0o6755);
    bench.fs.write(&bench.fs.resolve("f").unwrap(), b"two", &hash(b"one"), &mut |_| Ok(())).unwrap();
    let meta = std::fs::metadata(bench.path("f")).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (1234, 5678, 0o6755));
}
