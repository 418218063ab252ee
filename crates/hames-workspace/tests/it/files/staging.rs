//! Changes that are staged and wait: many at once, each checked again when it takes place, none leaving a trace.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use hames_tools::{Expect, FileKind, FsError, FsProvider, Staged};

use super::kit::{Bench, hash, put, tree};

fn stage(bench: &Bench, name: &str, content: &str, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
    bench.fs.stage_write(&bench.fs.resolve(name)?, content.as_bytes(), expect, None)
}

fn stage_removal(bench: &Bench, name: &str, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
    bench.fs.stage_remove(&bench.fs.resolve_entry(name)?, expect)
}

#[test]
fn what_is_staged_is_not_seen_until_it_takes_place() {
    let bench = Bench::new();
    bench.file("old", "one");
    let old = stage(&bench, "old", "two", &hash(b"one")).unwrap();
    let new = stage(&bench, "new", "new", &Expect::Absent).unwrap();
    let gone = stage_removal(&bench, "old", &hash(b"one")).unwrap();
    assert_eq!(bench.bytes("old"), b"one");
    assert!(!bench.path("new").exists());
    assert_eq!(old.change().before.as_deref(), Some(&b"one"[..]));
    assert_eq!((new.change().before.as_deref(), new.change().after_hash.is_some()), (None, true));
    assert_eq!((gone.change().before.as_deref(), &gone.change().after_hash), (Some(&b"one"[..]), &None));
    // A staged change is a value of its own: it may take place anywhere, after the filesystem is gone.
    let path = bench.path("");
    std::thread::spawn(move || (old.commit(), new.commit())).join().unwrap().0.unwrap();
    assert!(matches!(gone.commit(), Err(FsError::Changed { .. })), "it was edited meanwhile");
    assert_eq!(tree(&path), ["new", "old"]);
    assert_eq!((bench.bytes("old"), bench.bytes("new")), (b"two".to_vec(), b"new".to_vec()));
}

#[test]
fn a_whole_set_is_staged_and_takes_place_in_any_order() {
    // More than may be kept open at once.
    const FILES: usize = 150;
    let bench = Bench::new();
    for n in 0..FILES {
        bench.file(&format!("d{}/f{n}", n % 7), format!("old {n}"));
    }
    let staged: Vec<_> = (0..FILES)
        .map(|n| {
            let old = hash(format!("old {n}").as_bytes());
            stage(&bench, &format!("d{}/f{n}", n % 7), &format!("new {n}"), &old).unwrap()
        })
        .collect();
    let before = tree(&bench.path(""));
    for (n, staged) in staged.into_iter().enumerate().rev() {
        // Every third one is given up.
        if n % 3 > 0 {
            staged.commit().unwrap();
        }
    }
    for n in 0..FILES {
        let which = if n % 3 > 0 { "new" } else { "old" };
        assert_eq!(bench.bytes(&format!("d{}/f{n}", n % 7)), format!("{which} {n}").into_bytes());
    }
    let after = tree(&bench.path(""));
    assert_eq!(after.len(), FILES + 7, "nothing is left beside them");
    assert!(before.len() > after.len(), "those beyond what may be open have hidden names while they wait");
}

#[test]
fn folders_made_for_staged_files_go_with_the_last_that_is_given_up() {
    // Which of the staged files take place, in the order they are staged, and what is there then.
    let cases: [(&[bool], &[&str]); 5] = [
        (&[false, false, false], &[]),
        (&[true, false, false], &["a/", "a/b/", "a/b/1"]),
        (&[false, true, false], &["a/", "a/b/", "a/b/2"]),
        (&[false, false, true], &["a/", "a/b/", "a/b/c/", "a/b/c/3"]),
        (&[true, true, true], &["a/", "a/b/", "a/b/1", "a/b/2", "a/b/c/", "a/b/c/3"]),
    ];
    for (wanted, left) in cases {
        for backwards in [false, true] {
            let bench = Bench::new();
            let names = ["a/b/1", "a/b/2", "a/b/c/3"];
            let mut staged: Vec<_> =
                names.iter().map(|name| stage(&bench, name, "x", &Expect::Absent).unwrap()).zip(wanted).collect();
            if backwards {
                staged.reverse();
            }
            for (staged, wanted) in staged {
                if *wanted {
                    staged.commit().unwrap();
                }
            }
            let mut left: Vec<_> = left.iter().map(ToString::to_string).collect();
            left.sort();
            assert_eq!(tree(&bench.path("")), left, "{wanted:?}, backwards: {backwards}");
        }
    }
    // Somebody else has put something there: the folder is theirs now.
    let bench = Bench::new();
    let staged = stage(&bench, "a/b/1", "x", &Expect::Absent).unwrap();
    bench.file("a/theirs", "x");
    drop(staged);
    assert_eq!(tree(&bench.path("")), ["a/", "a/theirs"]);
}

#[test]
fn a_change_takes_place_only_on_what_it_was_made_for() {
    type Meddle = fn(&Bench);
    let meddlers: [(&str, Meddle); 12] = [
        ("other content", |bench| drop(bench.file("sub/f", "theirs"))),
        ("as long as before", |bench| drop(bench.file("sub/f", "uno"))),
        ("emptied", |bench| drop(bench.file("sub/f", ""))),
        ("gone", |bench| std::fs::remove_file(bench.path("sub/f")).unwrap()),
        ("another file with the same content", |bench| {
            bench.file("g", "one");
            std::fs::rename(bench.path("g"), bench.path("sub/f")).unwrap();
        }),
        ("other rights", |bench| {
            std::fs::set_permissions(bench.path("sub/f"), std::fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("a second name", |bench| std::fs::hard_link(bench.path("sub/f"), bench.beside("second")).unwrap()),
        ("a link instead", |bench| {
            std::fs::rename(bench.path("sub/f"), bench.path("sub/g")).unwrap();
            symlink("g", bench.path("sub/f")).unwrap();
        }),
        ("a folder instead", |bench| {
            std::fs::remove_file(bench.path("sub/f")).unwrap();
            std::fs::create_dir(bench.path("sub/f")).unwrap();
        }),
        ("its folder moved out of the workspace", |bench| {
            std::fs::rename(bench.path("sub"), bench.beside("sub")).unwrap();
        }),
        ("its folder swapped for a link to it", |bench| {
            std::fs::rename(bench.path("sub"), bench.beside("sub")).unwrap();
            symlink("../sub", bench.path("sub")).unwrap();
        }),
        ("its folder swapped for another", |bench| {
            std::fs::rename(bench.path("sub"), bench.path("moved")).unwrap();
            bench.file("sub/f", "one");
        }),
    ];
    type Stage = fn(&Bench) -> Box<dyn Staged>;
    let stagers: [(&str, Stage); 3] = [
        ("write", |bench| stage(bench, "sub/f", "two", &hash(b"one")).unwrap()),
        ("write in place", |bench| {
            std::fs::hard_link(bench.path("sub/f"), bench.beside("name")).unwrap();
            stage(bench, "sub/f", "two", &hash(b"one")).unwrap()
        }),
        ("removal", |bench| stage_removal(bench, "sub/f", &hash(b"one")).unwrap()),
    ];
    for (how, stage) in &stagers {
        for (what, meddle) in &meddlers {
            let bench = Bench::new();
            bench.file("sub/f", "one");
            std::fs::set_permissions(bench.path("sub/f"), std::fs::Permissions::from_mode(0o644)).unwrap();
            let staged = stage(&bench);
            meddle(&bench);
            let before = tree(bench.scratch.path());
            let contents = |name: &String| std::fs::read(bench.scratch.path().join(name)).ok();
            let all: Vec<_> = before.iter().map(contents).collect();
            let outcome = staged.commit();
            assert!(outcome.is_err(), "{how}, {what}");
            assert_eq!(tree(bench.scratch.path()), before, "{how}, {what}");
            assert_eq!(before.iter().map(contents).collect::<Vec<_>>(), all, "{how}, {what}");
        }
    }
}

#[test]
fn a_new_file_has_the_mode_that_was_asked_for_and_an_old_one_its_own() {
    for mode in [0o777, 0o755, 0o666, 0o644, 0o600, 0o400, 0o4711, 0o1777] {
        let bench = Bench::new();
        let path = bench.fs.resolve("new").unwrap();
        let staged = bench.fs.stage_write(&path, b"x", &Expect::Absent, Some(mode)).unwrap();
        assert_eq!(staged.change().mode, mode);
        staged.commit().unwrap();
        let now = || std::fs::metadata(bench.path("new")).unwrap().mode() & 0o7777;
        assert_eq!(now(), mode);
        if mode & 0o200 != 0 {
            bench.fs.stage_write(&path, b"y", &hash(b"x"), Some(0o640)).unwrap().commit().unwrap();
            assert_eq!(now(), mode);
        }
    }
}

#[test]
fn files_links_and_empty_folders_are_removed_and_nothing_a_link_leads_to() {
    let bench = Bench::new();
    put(&bench.beside("secret/k"), "secret");
    bench.file("f", "one");
    bench.file("full/x", "x");
    std::fs::create_dir(bench.path("empty")).unwrap();
    for (link, target) in [("link", "f"), ("folder link", "full"), ("dangling", "nowhere"), ("out", "../secret")] {
        symlink(target, bench.path(link)).unwrap();
        let staged = stage_removal(&bench, link, &hash(target.as_bytes())).unwrap();
        let change = staged.change();
        let entry = bench.fs.resolve_entry(link).unwrap();
        assert_eq!(bench.fs.read_link(&entry).unwrap(), target.as_bytes());
        assert_eq!((change.kind, change.before.as_deref()), (FileKind::Link, Some(target.as_bytes())));
        assert_eq!(change.target, bench.fs.root().join(link));
        staged.commit().unwrap();
    }
    for name in ["f", "empty", ".", "none"] {
        assert!(bench.fs.read_link(&bench.fs.resolve_entry(name).unwrap()).is_err(), "{name} is no link");
    }
    let empty = stage_removal(&bench, "empty", &Expect::Dir).unwrap();
    assert_eq!((empty.change().kind, empty.change().before.as_deref()), (FileKind::Dir, None));
    empty.commit().unwrap();
    stage_removal(&bench, "f", &hash(b"one")).unwrap().commit().unwrap();
    assert_eq!(tree(bench.scratch.path()), ["secret/", "secret/k", "w/", "w/full/", "w/full/x"]);
    // A folder is emptied and removed by changes that are all staged before the first takes place.
    let inner = stage_removal(&bench, "full/x", &hash(b"x")).unwrap();
    let outer = stage_removal(&bench, "full", &Expect::Dir).unwrap();
    inner.commit().unwrap();
    outer.commit().unwrap();
    assert_eq!(tree(&bench.path("")), Vec::<String>::new());
}

#[test]
fn nothing_is_removed_that_was_not_expected() {
    let bench = Bench::new();
    bench.file("f", "one");
    bench.file("full/x", "x");
    symlink("f", bench.path("link")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(bench.path("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of every system");
    put(&bench.beside("home/key"), "key");
    std::fs::hard_link(bench.beside("home/key"), bench.path("key")).unwrap();
    let before = tree(bench.scratch.path());
    for (name, expect, said) in [
        ("f", Expect::Absent, "changed"),
        ("f", Expect::Dir, "changed"),
        ("f", hash(b"two"), "changed"),
        ("full", hash(b""), "changed"),
        ("link", hash(b"one"), "changed"),
        ("link", Expect::Dir, "changed"),
        ("none", hash(b""), "does not exist"),
        ("none/deeper", Expect::Dir, "does not exist"),
        ("f/x", Expect::Dir, "a part of the path is a file"),
        ("pipe", hash(b""), "a pipe, socket or device"),
        ("key", hash(b"key"), "belongs to Hames itself"),
        (".", Expect::Dir, "workspace itself"),
        ("..", Expect::Dir, "workspace itself"),
        ("/", Expect::Dir, "workspace itself"),
        ("full/..", Expect::Dir, "workspace itself"),
    ] {
        match stage_removal(&bench, name, &expect) {
            Ok(_) => panic!("{name} {expect:?} was staged"),
            Err(error) => assert!(error.to_string().contains(said), "{name} {expect:?}: {error}"),
        }
    }
    let full = stage_removal(&bench, "full", &Expect::Dir).unwrap();
    assert!(full.commit().unwrap_err().to_string().contains("not empty"));
    assert_eq!(tree(bench.scratch.path()), before);
}

#[test]
fn a_link_or_folder_that_became_another_stays() {
    let bench = Bench::new();
    for name in ["a", "b", "c", "d"] {
        symlink("target", bench.path(name)).unwrap();
    }
    let links: Vec<_> =
        ["a", "b", "c", "d"].map(|name| stage_removal(&bench, name, &hash(b"target")).unwrap()).into_iter().collect();
    for name in ["a", "b", "c", "d"] {
        std::fs::remove_file(bench.path(name)).unwrap();
    }
    symlink("elsewhere", bench.path("a")).unwrap();
    bench.file("b", "target");
    std::fs::create_dir(bench.path("c")).unwrap();
    for link in links {
        assert!(matches!(link.commit(), Err(FsError::Changed { .. })));
    }
    let folder = stage_removal(&bench, "c", &Expect::Dir).unwrap();
    std::fs::rename(bench.path("c"), bench.path("moved")).unwrap();
    std::fs::create_dir(bench.path("c")).unwrap();
    assert!(matches!(folder.commit(), Err(FsError::Changed { .. })));
    assert_eq!(tree(&bench.path("")), ["a", "b", "c/", "moved/"]);
}

#[test]
fn an_entry_is_named_without_following_its_link() {
    let bench = Bench::new();
    bench.file("real/f", "x");
    put(&bench.beside("secret/k"), "secret");
    symlink("real", bench.path("to folder")).unwrap();
    symlink("f", bench.path("real/to file")).unwrap();
    symlink("../secret", bench.path("out")).unwrap();
    symlink("loop", bench.path("loop")).unwrap();
    bench.file("v\u{a0}1", "x");
    let entry = |name: &str| {
        let path = bench.fs.resolve_entry(name).unwrap();
        (path.shown.clone(), path.inside, path.identity.is_some())
    };
    for (name, shown, inside, exists) in [
        ("real/f", "real/f", true, true),
        ("to folder", "to folder", true, true),
        ("to folder/", "to folder", true, true),
        ("./real/../to folder", "to folder", true, true),
        ("to folder/f", "real/f", true, true),
        ("to folder/to file", "real/to file", true, true),
        ("to folder/to file/..", "real", true, true),
        ("out", "out", true, true),
        ("loop", "loop", true, true),
        ("to folder/new", "real/new", true, false),
        ("v 1", "v\u{a0}1", true, true),
        (".", ".", true, true),
    ] {
        assert_eq!(entry(name), (shown.to_owned(), inside, exists), "{name}");
    }
    assert!(!entry("out/k").1, "what lies behind a link out is outside");
    let link = std::fs::symlink_metadata(bench.path("to folder")).unwrap();
    let path = bench.fs.resolve_entry("to folder").unwrap();
    assert_eq!(path.identity, Some((link.dev(), link.ino())));
    assert_eq!(bench.fs.stat(&path).unwrap().kind, FileKind::Link);
}

#[test]
fn what_holds_a_denied_place_says_so() {
    let bench = Bench::new();
    put(&bench.beside("home/deep/key"), "key");
    put(&bench.beside("homely/x"), "x");
    symlink("../home", bench.path("link")).unwrap();
    let hides = |name: &str| {
        let shown = name.to_owned();
        let abs = std::fs::canonicalize(bench.scratch.path()).unwrap().join(name);
        bench.fs.hides(&hames_tools::FsPath { abs, shown, inside: false, identity: None })
    };
    for (name, wanted) in
        [("", true), ("home", true), ("home/deep", true), ("homely", false), ("w", false), ("w/link", false)]
    {
        assert_eq!(hides(name), wanted, "{name:?}");
    }
}
