//! What a path as a model writes it names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use hames_tools::FsProvider;
use serde_json::json;

use super::kit::Bench;

#[test]
fn paths_are_resolved_the_way_the_system_does_it() {
    let bench = Bench::new();
    bench.file("a/b/c.txt", "x");
    let root = bench.fs.root().to_string_lossy().into_owned();
    let unresolved_root = bench.scratch.path().join("w").to_string_lossy().into_owned();
    for (path, shown, exists) in [
        ("a/b/c.txt", "a/b/c.txt", true),
        ("./a/../a/b/./c.txt", "a/b/c.txt", true),
        ("a//b///c.txt", "a/b/c.txt", true),
        ("a/b/", "a/b", true),
        (".", ".", true),
        ("./", ".", true),
        ("a/..", ".", true),
        ("", "", false),
        ("missing/../a/b/c.txt", "a/b/c.txt", true),
        ("new/deep/file", "new/deep/file", false),
        ("~", "~", false),
        ("~/notes", "~/notes", false),
        ("$HOME/x", "$HOME/x", false),
        (&format!("{root}/a/b/c.txt"), "a/b/c.txt", true),
        (&format!("{unresolved_root}/a/./b"), "a/b", true),
        (&root, ".", true),
        ("a/b/c.txt ", "a/b/c.txt ", false),
    ] {
        match bench.fs.resolve(path) {
            Ok(resolved) => {
                assert_eq!(resolved.shown, shown, "{path}");
                assert_eq!(resolved.identity.is_some(), exists, "{path}");
                assert!(resolved.inside && resolved.abs.starts_with(bench.fs.root()), "{path}");
            }
            Err(error) => assert!(shown.is_empty(), "{path}: {error}"),
        }
    }
    for (path, reason) in [("", "empty path"), ("a\0b", "NUL"), ("a/b/c.txt/d", "not a folder")] {
        let error = bench.fs.resolve(path).unwrap_err().to_string();
        assert!(error.contains(reason), "{path:?}: {error}");
    }
    assert!(bench.fs.resolve(&"x".repeat(300)).unwrap_err().to_string().contains("too long"));
    let spellings = ["a/b/c.txt", "a/../a/b/c.txt"].map(|path| bench.fs.resolve(path).unwrap());
    assert_eq!(spellings[0], spellings[1]);
}

#[tokio::test]
async fn the_one_file_that_looks_like_the_name_is_the_one_that_is_meant() {
    for (name, written) in [
        ("Shot at 9.05\u{202f}AM.txt", "Shot at 9.05 AM.txt"),
        ("v\u{a0}13.txt", "v 13.txt"),
        ("a\u{2009}b", "a b"),
        ("x\u{3000}y", "x y"),
        ("a b", "a\u{a0}b"),
        ("caf\u{e9}.txt", "cafe\u{301}.txt"),
        ("cafe\u{301}.txt", "caf\u{e9}.txt"),
        ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
        ("mixed\u{a0}e\u{301}", "mixed \u{e9}"),
        ("dir\u{a0}one/inner\u{202f}file", "dir one/inner file"),
    ] {
        let bench = Bench::new();
        bench.file(name, "look-alike");
        assert_eq!(bench.said("Read", json!({"path": written})).await, "1\tlook-alike", "{name:?}");
        assert_eq!(bench.fs.resolve(written).unwrap().shown, name);
        bench.ok("StrReplace", json!({"path": written, "old_string": "look", "new_string": "sound"})).await;
        assert_eq!(bench.bytes(name), b"sound-alike");
        // The exact name wins once it is there.
        bench.file(written, "exact");
        assert_eq!(bench.said("Read", json!({"path": written})).await, "1\texact", "{written:?}");
    }
}

#[tokio::test]
async fn two_look_alikes_are_none() {
    let bench = Bench::new();
    bench.file("a\u{a0}b", "1");
    bench.file("a\u{202f}b", "2");
    let said = bench.refused("Read", json!({"path": "a b"})).await;
    assert!(said.contains("does not exist"), "{said}");
    // Case and punctuation are no look-alikes.
    bench.file("Readme\u{a0}x", "3");
    bench.refused("Read", json!({"path": "README x"})).await;
    bench.ok("Write", json!({"path": "a b", "content": "new"})).await;
    assert_eq!(bench.bytes("a\u{a0}b"), b"1");
}

#[tokio::test]
async fn brackets_and_other_pattern_characters_in_a_path_are_literal() {
    let names = [
        "app/[id]/page.tsx",
        "app/(shop)/page.tsx",
        "app/i/page.tsx",
        "app/[...slug]/page.tsx",
        "app/@modal/(.)photo/page.tsx",
        "a*b?.txt",
        "{x,y}.txt",
        "!important",
        "#hash%20&$x",
        "-rf",
        "back\\slash",
        "quo'te\"s",
        "new\nline",
        "~tilde",
    ];
    let bench = Bench::new();
    for name in names {
        bench.file(name, format!("in {name:?}"));
    }
    for name in names {
        let expected = format!("1\tin {name:?}");
        assert_eq!(bench.said("Read", json!({"path": name})).await, expected, "{name}");
        bench.ok("Write", json!({"path": name, "content": "w"})).await;
        assert_eq!(bench.bytes(name), b"w", "{name}");
    }
    assert_eq!(bench.said("List", json!({"path": "app/[id]"})).await, "page.tsx (1 B)");
    let said = bench.refused("Read", json!({"path": "app/[ix]/page.tsx"})).await;
    assert!(said.contains("does not exist"), "{said}");
}

#[tokio::test]
async fn names_that_are_no_utf8_are_listed_and_found() {
    let bench = Bench::new();
    std::fs::write(bench.fs.root().join(OsStr::from_bytes(b"caf\xe9.txt")), "latin").unwrap();
    std::fs::create_dir(bench.fs.root().join(OsStr::from_bytes(b"d\xff"))).unwrap();
    assert_eq!(bench.said("List", json!({})).await, "caf\u{fffd}.txt (5 B)\nd\u{fffd}/");
    assert_eq!(bench.said("List", json!({"recursive": true})).await, "caf\u{fffd}.txt (5 B)\nd\u{fffd}/");
    assert_eq!(bench.said("Read", json!({"path": "caf\u{fffd}.txt"})).await, "1\tlatin");
    bench.ok("Write", json!({"path": "d\u{fffd}/x", "content": "y"})).await;
    assert_eq!(std::fs::read(bench.fs.root().join(OsStr::from_bytes(b"d\xff/x"))).unwrap(), b"y");
}

#[tokio::test]
async fn a_path_that_does_not_exist_says_what_does() {
    let bench = Bench::new();
    bench.file("src/main.rs", "");
    bench.file("src/Config.toml", "");
    for (path, hint) in [
        ("src/mian.rs", "did you mean src/main.rs?"),
        ("src/config.toml", "did you mean src/Config.toml?"),
        ("scr/main.rs", "did you mean src?"),
        ("src/deep/main.rs", "there is no deep in src"),
        ("lib/x", "there is no lib in ."),
    ] {
        let said = bench.refused("Read", json!({"path": path})).await;
        assert!(said.contains("does not exist") && said.contains(hint), "{path}: {said}");
    }
}
