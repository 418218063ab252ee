//! Delete: what goes, what stays, and what can come back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use hames_protocol::{Effect, Event, Resource};
use hames_tools::{FsProvider, Tool, Whole};
use serde_json::{Value, json};

use super::kit::{Bench, put, tool_named, tree};

fn recursive(path: &str) -> Value {
    json!({"path": path, "recursive": true})
}

#[test]
fn every_tool_that_edits_can_be_previewed_and_only_a_whole_folder_is_asked_about() {
    for (tool, input, asks) in [
        ("Write", json!({"path": "a", "content": "x"}), false),
        ("StrReplace", json!({"path": "a", "old_string": "x", "new_string": "y"}), false),
        ("Edit", json!({"path": "a", "edits": []}), false),
        ("Delete", json!({"path": "a"}), false),
        ("Delete", json!({"path": "a", "recursive": false}), false),
        ("Delete", recursive("a"), true),
    ] {
        let tool: std::sync::Arc<dyn Tool> = tool_named(tool);
        let declared = tool.declare(&input);
        assert_eq!((declared.effect, declared.preview), (Effect::Edit, true), "{input}");
        assert_eq!(declared.ask.is_some(), asks, "{input}");
        let no_follow = tool.spec().name == "Delete";
        assert_eq!(declared.resources, [Resource::Path { path: "a".into(), write: true, no_follow }]);
    }
}

#[tokio::test]
async fn files_links_and_folders_go_and_what_they_were_is_recorded_first() {
    let bench = Bench::new();
    bench.file("f", "one\ntwo\n");
    std::fs::set_permissions(bench.path("f"), std::fs::Permissions::from_mode(0o751)).unwrap();
    bench.file("logo", b"\x89PNG\r\n\x1a\n\0\0\0");
    bench.file("void", "");
    bench.file("d/a/x", "x");
    bench.file("d/a/y", "y");
    std::fs::create_dir_all(bench.path("d/z/empty")).unwrap();
    std::fs::create_dir(bench.path("bare")).unwrap();
    symlink("f", bench.path("link")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    symlink("../../d", bench.path("d/z/up")).unwrap();
    for (input, said) in [
        (json!({"path": "link"}), "Deleted the link link"),
        (json!({"path": "dangling"}), "Deleted the link dangling"),
        (json!({"path": "./d/../f"}), "Deleted f: -2"),
        (json!({"path": "logo"}), "Deleted logo"),
        (json!({"path": "void"}), "Deleted void"),
        (json!({"path": "bare/"}), "Deleted the empty folder bare"),
        (recursive("d"), "Deleted d with everything in it (2 files, 3 folders, 1 link)"),
    ] {
        let path = input["path"].clone();
        assert_eq!(bench.ok("Delete", input).await.text, said, "{path}");
    }
    assert_eq!(tree(&bench.path("")), Vec::<String>::new());
    let mut recorded = Vec::new();
    for change in bench.changes() {
        let content = match &change.before {
            Some(before) => String::from_utf8_lossy(&bench.blob(&before.hash).await).into_owned(),
            None => change.link.clone().map_or_else(String::new, |target| format!("-> {target}")),
        };
        assert_eq!(change.after, None);
        let name = std::path::Path::new(&change.path).strip_prefix(bench.fs.root()).unwrap().to_owned();
        recorded.push((name.to_string_lossy().into_owned(), content, change.mode.unwrap()));
    }
    let mode = |name: &str| recorded.iter().find(|(path, ..)| path == name).unwrap().2;
    assert_eq!(mode("f"), 0o751);
    let order: Vec<_> = recorded.iter().map(|(name, content, _)| (name.as_str(), content.as_str())).collect();
    assert_eq!(
        order,
        [
            ("link", "-> f"),
            ("dangling", "-> nowhere"),
            ("f", "one\ntwo\n"),
            ("logo", "\u{fffd}PNG\r\n\x1a\n\0\0\0"),
            ("void", ""),
            ("bare", ""),
            ("d/z/up", "-> ../../d"),
            ("d/z/empty", ""),
            ("d/z", ""),
            ("d/a/y", "y"),
            ("d/a/x", "x"),
            ("d/a", ""),
            ("d", ""),
        ]
    );
}

#[tokio::test]
async fn what_a_link_leads_to_stays_wherever_it_is() {
    let bench = Bench::new();
    put(&bench.beside("secret/k"), "secret");
    bench.file("real/f", "mine");
    symlink("../secret", bench.path("out")).unwrap();
    symlink("../secret/k", bench.path("key")).unwrap();
    bench.file("d/f", "x");
    symlink("../../secret", bench.path("d/out")).unwrap();
    symlink("../real", bench.path("d/in")).unwrap();
    symlink("../real/f", bench.path("d/file")).unwrap();
    for input in [recursive("out"), json!({"path": "key"}), recursive("d")] {
        bench.ok("Delete", input).await;
    }
    assert_eq!(tree(bench.scratch.path()), ["secret/", "secret/k", "w/", "w/real/", "w/real/f"]);
    symlink("../secret", bench.path("out")).unwrap();
    for path in ["out/k", "../secret/k", "../secret", "out/../secret"] {
        let said = bench.refused("Delete", recursive(path)).await;
        assert!(said.contains("outside the workspace"), "{path}: {said}");
    }
    assert_eq!(std::fs::read(bench.beside("secret/k")).unwrap(), b"secret");
}

#[tokio::test]
async fn what_cannot_be_deleted_is_refused_as_a_whole_and_says_what_to_do() {
    let bench = Bench::with_home("w/home");
    put(&bench.path("home/key"), "key");
    bench.file("full/x", "x");
    bench.file("full/y", "y");
    bench.file("one/x", "x");
    bench.file("f", "x");
    bench.file("odd/a", "a");
    let made = std::process::Command::new("mkfifo").arg(bench.path("odd/pipe")).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of every system");
    bench.file("named/a", "a");
    std::fs::write(bench.path("named").join(OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
    bench.file("huge/a", "a");
    std::fs::File::create(bench.path("huge/sparse")).unwrap().set_len(64 * 1024 * 1024).unwrap();
    for n in 0..2_000 {
        bench.file(&format!("many/{n}"), "");
    }
    let before = tree(&bench.path(""));
    let root = bench.fs.root().to_string_lossy().into_owned();
    for (input, said) in [
        (json!({"path": "full"}), "full is a folder that holds 2 entries; use recursive"),
        (json!({"path": "one"}), "one is a folder that holds 1 entry; use recursive"),
        (recursive("."), "is the workspace itself or holds it"),
        (recursive("full/.."), "is the workspace itself or holds it"),
        (recursive(&root), "is the workspace itself or holds it"),
        (recursive("/"), "outside the workspace"),
        (recursive(".."), "outside the workspace"),
        (json!({"path": "home"}), "belongs to Hames itself"),
        (recursive("home"), "belongs to Hames itself"),
        (json!({"path": "home/key"}), "belongs to Hames itself"),
        (json!({"path": "ful"}), "ful does not exist; did you mean full?"),
        (json!({"path": "f/"}), "f is a file, not a folder"),
        (json!({"path": ""}), "the empty path"),
        (json!({"path": "f\0"}), "NUL"),
        (recursive("odd"), "odd/pipe is a pipe, socket or device"),
        (recursive("named"), "its name is not UTF-8"),
        (recursive("huge"), "huge is more than 64 MB of content"),
        (recursive("many"), "many is more than 2000 entries"),
    ] {
        let text = bench.refused("Delete", input.clone()).await;
        assert!(text.contains(said), "{input}: {text}");
    }
    assert_eq!(tree(&bench.path("")), before);
    assert_eq!(bench.changes(), []);
    bench.ok("Delete", json!({"path": "many/0"})).await;
    assert_eq!(
        bench.ok("Delete", recursive("many")).await.text,
        "Deleted many with everything in it (1999 files)",
        "one fewer is not too many"
    );
}

#[tokio::test]
async fn what_holds_a_denied_place_is_not_deleted_even_approved() {
    let mut bench = Bench::with_home("outside/deep/home");
    put(&bench.beside("outside/deep/home/key"), "key");
    put(&bench.beside("outside/other/x"), "x");
    bench.cx.approved = vec![std::fs::canonicalize(bench.beside("outside")).unwrap()];
    for path in ["../outside", "../outside/deep", "../outside/deep/home"] {
        let said = bench.refused("Delete", recursive(path)).await;
        assert!(said.contains("belongs to Hames itself"), "{path}: {said}");
    }
    bench.ok("Delete", recursive("../outside/other")).await;
    assert_eq!(
        tree(bench.scratch.path()),
        ["outside/", "outside/deep/", "outside/deep/home/", "outside/deep/home/key", "w/"]
    );
    // Approved or not: never what the workspace lies in.
    bench.cx.approved = vec!["/".into()];
    for path in ["..", "/", "../w"] {
        let said = bench.refused("Delete", recursive(path)).await;
        assert!(said.contains("is the workspace itself or holds it"), "{path}: {said}");
    }
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_stays_and_so_does_its_folder() {
    let bench = Bench::new();
    bench.file("d/a", "one\n");
    bench.file("d/b", "one\n");
    bench.ok("Read", json!({"path": "d/b"})).await;
    bench.file("d/b", "theirs\n");
    for input in [json!({"path": "d/b"}), recursive("d")] {
        let said = bench.refused("Delete", input).await;
        assert_eq!(said, "d/b has changed since it was read; read it again and repeat the change");
    }
    assert_eq!(tree(&bench.path("")), ["d/", "d/a", "d/b"]);
    bench.ok("Read", json!({"path": "d/b"})).await;
    bench.ok("Delete", recursive("d")).await;
    assert_eq!(bench.cx.state().files.len(), 0, "nothing is known of files that are gone");
    bench.ok("Write", json!({"path": "d/b", "content": "new\n"})).await;
}

#[tokio::test]
async fn a_deletion_that_fails_half_way_says_what_went_and_what_is_left() {
    let folder = || {
        let bench = Bench::new();
        for name in ["d/a", "d/b", "d/c/x", "d/c/y"] {
            bench.file(name, name);
        }
        bench
    };
    // The log fills up.
    let bench = folder();
    let mut room = 3;
    bench.before_records(move |_| {
        room -= 1;
        room >= 0
    });
    let said = bench.refused("Delete", recursive("d")).await;
    assert_eq!(said, "the log is full. It was deleted in part. Deleted: d/c/y, d/c/x, d/c. Not deleted: d/b, d/a, d.");
    assert_eq!(tree(&bench.path("")), ["d/", "d/a", "d/b"]);
    // Somebody puts something into the folder, or writes to a file in it.
    for (at, meddled, said, left) in [
        (
            "d/c",
            "d/c/new",
            "d/c: the folder is not empty. It was deleted in part. Deleted: d/c/y, d/c/x. Not deleted: d/c, d/b, d/a, d.",
            vec!["d/", "d/a", "d/b", "d/c/", "d/c/new"],
        ),
        (
            "d/b",
            "d/a",
            "d/a has changed since it was read; read it again and repeat the change. It was deleted in part. Deleted: d/c/y, \
             d/c/x, d/c, d/b. Not deleted: d/a, d.",
            vec!["d/", "d/a"],
        ),
    ] {
        let bench = folder();
        let (at, path) = (bench.fs.root().join(at).to_string_lossy().into_owned(), bench.path(meddled));
        bench.before_records(move |event| {
            if matches!(event, Event::FileChanged(change) if change.path == at) {
                std::fs::write(&path, "theirs").unwrap();
            }
            true
        });
        assert_eq!(bench.refused("Delete", recursive("d")).await, said);
        assert_eq!(tree(&bench.path("")), left);
    }
    // Nothing is gone yet: nothing is said of parts.
    let bench = folder();
    bench.refuse_records();
    assert_eq!(bench.refused("Delete", recursive("d")).await, "the log is full");
    bench.cx.cancel.cancel();
    assert_eq!(bench.refused("Delete", recursive("d")).await, "Cancelled.");
    assert_eq!(tree(&bench.path("")).len(), 6);
}

#[tokio::test]
async fn a_long_list_of_what_went_is_kept_whole() {
    let bench = Bench::new();
    for n in 0..500 {
        bench.file(&format!("d/a file with a long name {n:03}"), "");
    }
    let mut room = 400;
    bench.before_records(move |_| {
        room -= 1;
        room >= 0
    });
    let failure = bench.run("Delete", recursive("d")).await.unwrap_err();
    assert!(failure.text.len() < 5_000, "{} bytes", failure.text.len());
    assert!(failure.text.contains("and 3"), "{}", failure.text);
    let Whole::Bytes(whole) = failure.whole else { panic!("the whole list is kept") };
    let whole = String::from_utf8(whole).unwrap();
    for n in 0..500 {
        assert!(whole.contains(&format!("name {n:03}")), "{n}");
    }
}

#[tokio::test]
async fn a_preview_shows_everything_that_would_go_and_touches_nothing() {
    let bench = Bench::new();
    bench.file("d/a", "one\ntwo\n");
    bench.file("d/logo", b"\x89PNG\r\n\x1a\n\0\0\0");
    std::fs::create_dir(bench.path("d/empty")).unwrap();
    symlink("../secret", bench.path("d/link")).unwrap();
    let before = tree(&bench.path(""));
    let diffs = tool_named("Delete").preview(&recursive("d"), &bench.cx).await.unwrap();
    let texts: Vec<_> = diffs.iter().map(|diff| (diff.text.as_str(), diff.added, diff.removed)).collect();
    assert_eq!(
        texts,
        [
            ("--- a/d/\n+++ /dev/null\n", 0, 0),
            ("--- a/d/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", 0, 2),
            ("--- a/d/empty/\n+++ /dev/null\n", 0, 0),
            ("--- a/d/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-../secret\n\\ No newline at end of file\n", 0, 1),
            ("--- a/d/logo\n+++ /dev/null\n(binary, 11 bytes)\n", 0, 0),
        ]
    );
    assert_eq!(tree(&bench.path("")), before);
    assert_eq!(bench.changes(), []);
    let done = bench.ok("Delete", recursive("d")).await;
    assert_eq!(done.diffs.len(), 3, "folders have no lines");
    // However much goes, the diffs of a call have a bound.
    for n in 0..10 {
        bench.file(&format!("large/{n}"), "a line of text\n".repeat(10_000));
    }
    let diffs = tool_named("Delete").preview(&recursive("large"), &bench.cx).await.unwrap();
    assert_eq!(diffs.iter().map(|diff| diff.removed).sum::<u32>(), 100_000);
    assert!(diffs.iter().map(|diff| diff.text.len()).sum::<usize>() < 300 * 1024);
}
