//! The border of the workspace: nothing outside is read or changed, whatever links and spellings there are.

use std::os::unix::fs::symlink;

use hames_tools::{Expect, FsError, FsProvider, WalkOptions};
use hames_workspace::files::{LocalFs, LocalFsOptions};
use serde_json::json;

use super::kit::{Bench, put};

/// A workspace with links to a secret beside it, and a sibling whose name begins like the workspace's.
fn bench_with_links() -> Bench {
    let bench = Bench::new();
    put(&bench.beside("secret/k"), "secret");
    put(&bench.beside("w-evil/c"), "sibling");
    put(&bench.beside("q/b"), "other");
    symlink(bench.beside("secret"), bench.path("out")).unwrap();
    symlink("../secret/k", bench.path("key")).unwrap();
    symlink("../secret/new", bench.path("dangling")).unwrap();
    symlink("out", bench.path("twice")).unwrap();
    symlink("loop2", bench.path("loop1")).unwrap();
    symlink("loop1", bench.path("loop2")).unwrap();
    symlink("..", bench.path("up")).unwrap();
    bench
}

fn outside_unchanged(bench: &Bench) {
    assert_eq!(std::fs::read(bench.beside("secret/k")).unwrap(), b"secret");
    assert_eq!(std::fs::read(bench.beside("w-evil/c")).unwrap(), b"sibling");
    assert_eq!(std::fs::read(bench.beside("q/b")).unwrap(), b"other");
    for folder in ["secret", "w-evil", "q"] {
        assert_eq!(std::fs::read_dir(bench.beside(folder)).unwrap().count(), 1, "{folder}");
    }
}

#[tokio::test]
async fn no_spelling_leads_out_of_the_workspace() {
    let bench = bench_with_links();
    let absolute = |name: &str| bench.beside(name).to_string_lossy().into_owned();
    let through_proc = format!("/proc/self/root{}", absolute("secret/k"));
    let paths = [
        "out/k",
        "out/new",
        "out/deep/new",
        "key",
        "dangling",
        "twice/k",
        "../q/b",
        "../q/new",
        "up/q/b",
        "sub/../../q/b",
        "./out/../secret/k",
        &absolute("w-evil/c"),
        &absolute("w-evil/new"),
        &absolute("w/../q/b"),
        &through_proc,
        "/etc/hostname-of-nobody",
        "/proc/self/environ",
        "loop1",
        "~/../../x/../../../etc/hostname",
    ];
    for path in paths {
        for (tool, input) in [
            ("Read", json!({"path": path})),
            ("Write", json!({"path": path, "content": "changed"})),
            ("StrReplace", json!({"path": path, "old_string": "e", "new_string": "E", "replace_all": true})),
            ("Edit", json!({"path": path, "edits": [{"old_string": "secret", "new_string": "S"}]})),
            ("List", json!({"path": path})),
        ] {
            let said = bench.refused(tool, input).await;
            assert!(said.contains("outside the workspace") || said.contains("links"), "{tool} {path}: {said}");
            outside_unchanged(&bench);
        }
    }
    let said = bench.refused("Read", json!({"path": "out/k"})).await;
    let target = std::fs::canonicalize(bench.beside("secret/k")).unwrap();
    assert!(said.contains(&*target.to_string_lossy()), "the resolved path is shown: {said}");
    assert_eq!(bench.changes(), []);
}

#[tokio::test]
async fn what_was_approved_outside_can_be_used_and_nothing_beside_it() {
    let mut bench = bench_with_links();
    bench.cx.approved = vec![std::fs::canonicalize(bench.beside("secret")).unwrap()];
    assert_eq!(bench.said("Read", json!({"path": "out/k"})).await, "1\tsecret");
    bench.ok("Write", json!({"path": "../secret/k", "content": "changed"})).await;
    bench.ok("Write", json!({"path": "dangling", "content": "made through the link"})).await;
    assert_eq!(std::fs::read(bench.beside("secret/k")).unwrap(), b"changed");
    assert_eq!(std::fs::read(bench.beside("secret/new")).unwrap(), b"made through the link");
    assert!(std::fs::symlink_metadata(bench.path("dangling")).unwrap().is_symlink());
    bench.refused("Read", json!({"path": "../q/b"})).await;
}

#[tokio::test]
async fn links_that_stay_inside_work() {
    let bench = Bench::new();
    bench.file("real/a.txt", "inside\n");
    symlink(bench.path("real"), bench.path("absolute")).unwrap();
    symlink("real", bench.path("relative")).unwrap();
    symlink("../real/a.txt", bench.path("real/self")).unwrap();
    symlink("../w/real/a.txt", bench.path("around")).unwrap();
    symlink("real/new.txt", bench.path("dangling")).unwrap();
    for path in ["absolute/a.txt", "relative/a.txt", "real/self", "around", "absolute/../real/a.txt"] {
        assert_eq!(bench.said("Read", json!({"path": path})).await, "1\tinside", "{path}");
    }
    for (path, content) in [("absolute/a.txt", "1"), ("real/self", "2"), ("around", "3")] {
        bench.ok("Write", json!({"path": path, "content": content})).await;
        assert_eq!(bench.bytes("real/a.txt"), content.as_bytes(), "{path}");
    }
    bench.ok("Write", json!({"path": "dangling", "content": "made"})).await;
    assert_eq!(bench.bytes("real/new.txt"), b"made");
    for link in ["absolute", "relative", "real/self", "around", "dangling"] {
        assert!(std::fs::symlink_metadata(bench.path(link)).unwrap().is_symlink(), "{link} is still a link");
    }
}

#[tokio::test]
async fn a_link_swapped_in_between_check_and_use_leads_nowhere() {
    for swap_folder in [true, false] {
        let bench = bench_with_links();
        bench.file("sub/k", "mine");
        let path = bench.fs.resolve("sub/k").unwrap();
        let new = bench.fs.resolve("sub/new").unwrap();
        if swap_folder {
            std::fs::rename(bench.path("sub"), bench.path("moved")).unwrap();
            symlink(bench.beside("secret"), bench.path("sub")).unwrap();
        } else {
            std::fs::remove_file(bench.path("sub/k")).unwrap();
            symlink(bench.beside("secret/k"), bench.path("sub/k")).unwrap();
            symlink(bench.beside("secret/new"), bench.path("sub/new")).unwrap();
        }
        assert!(bench.fs.open(&path).is_err());
        assert!(bench.fs.read(&path, 100).is_err());
        let known = Expect::Hash(blake3::hash(b"secret").to_hex().to_string());
        let mut recorded = 0;
        for (path, expect) in [(&path, &known), (&path, &Expect::Absent), (&new, &Expect::Absent)] {
            let written = bench.fs.write(path, b"changed", expect, &mut |_| {
                recorded += 1;
                Ok(())
            });
            assert!(written.is_err());
        }
        assert_eq!(recorded, 0);
        if swap_folder {
            assert!(bench.fs.list(&bench_path(&bench, "sub")).is_err());
        }
        outside_unchanged(&bench);
    }
}

/// A path as it was resolved before a link took its place.
fn bench_path(bench: &Bench, name: &str) -> hames_tools::FsPath {
    hames_tools::FsPath { abs: bench.fs.root().join(name), shown: name.into(), inside: true, identity: None }
}

#[tokio::test]
async fn denied_places_are_out_of_reach_even_approved() {
    let mut bench = Bench::new();
    put(&bench.beside("home/config.jsonc"), "key");
    put(&bench.beside("home/blobs/aa"), "blob");
    put(&bench.beside("homely/x"), "another folder");
    symlink(bench.beside("home"), bench.path("link")).unwrap();
    symlink(bench.beside("home/config.jsonc"), bench.path("config")).unwrap();
    std::fs::hard_link(bench.beside("home/config.jsonc"), bench.path("hard")).unwrap();
    std::fs::hard_link(bench.beside("home/blobs/aa"), bench.path("hard2")).unwrap();
    bench.cx.approved = vec!["/".into()];
    let home = std::fs::canonicalize(bench.beside("home")).unwrap().to_string_lossy().into_owned();
    let paths = [
        format!("{home}/config.jsonc"),
        format!("{home}/new"),
        format!("{home}/./blobs/../config.jsonc"),
        format!("//{home}//config.jsonc"),
        format!("/proc/self/root{home}/config.jsonc"),
        "../home/config.jsonc".into(),
        "../homely/../home/config.jsonc".into(),
        "link/config.jsonc".into(),
        "link".into(),
        "config".into(),
        "hard".into(),
        "hard2".into(),
        "../home".into(),
        "../home/".into(),
    ];
    for path in &paths {
        for (tool, input) in [
            ("Read", json!({"path": path})),
            ("Write", json!({"path": path, "content": "changed"})),
            ("StrReplace", json!({"path": path, "old_string": "k", "new_string": "K"})),
        ] {
            let said = bench.refused(tool, input).await;
            assert!(said.contains("belongs to Hames itself"), "{tool} {path}: {said}");
        }
    }
    for path in ["../home", "link", "../home/blobs"] {
        for recursive in [false, true] {
            bench.refused("List", json!({"path": path, "recursive": recursive})).await;
        }
    }
    assert_eq!(bench.said("List", json!({"path": ".."})).await, "homely/\nw/");
    assert_eq!(std::fs::read(bench.beside("home/config.jsonc")).unwrap(), b"key");
    assert_eq!(bench.said("Read", json!({"path": "../homely/x"})).await, "1\tanother folder");
}

#[test]
fn a_denied_place_that_is_made_later_is_denied_then() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("w");
    std::fs::create_dir(&root).unwrap();
    let fs = LocalFs::new(&root, LocalFsOptions { denied: vec![root.join("home")] }).unwrap();
    assert!(matches!(fs.resolve("home/x"), Err(FsError::Denied { .. })));
    put(&scratch.path().join("real/x"), "key");
    symlink(scratch.path().join("real"), root.join("home")).unwrap();
    assert!(matches!(fs.resolve("home/x"), Err(FsError::Denied { .. })));
    assert!(matches!(fs.resolve("../real/x"), Err(FsError::Denied { .. })));
    let mut seen = Vec::new();
    fs.walk(&fs.resolve(".").unwrap(), &WalkOptions::default(), &mut |entry| {
        seen.push(entry.path.shown);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, Vec::<String>::new());
    assert!(matches!(
        LocalFs::new(&scratch.path().join("real"), LocalFsOptions { denied: vec![scratch.path().join("real")] }),
        Err(FsError::Denied { .. })
    ));
}

#[tokio::test]
async fn pipes_sockets_devices_and_folders_are_never_opened() {
    let mut bench = Bench::new();
    bench.cx.approved = vec!["/dev".into()];
    let pipe = bench.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of every system");
    let _listener = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    std::fs::create_dir(bench.path("folder")).unwrap();
    for (path, found) in [
        ("pipe", "a pipe, socket or device"),
        ("socket", "a pipe, socket or device"),
        ("/dev/zero", "a pipe, socket or device"),
        ("/dev/null", "a pipe, socket or device"),
        ("folder", "a folder"),
        (".", "a folder"),
    ] {
        let said = bench.refused("Read", json!({"path": path})).await;
        assert!(said.contains(found), "{path}: {said}");
        for (tool, input) in [
            ("Write", json!({"path": path, "content": "x"})),
            ("StrReplace", json!({"path": path, "old_string": "x", "new_string": "y"})),
        ] {
            let said = bench.refused(tool, input).await;
            assert!(said.contains(found), "{tool} {path}: {said}");
        }
        let resolved = bench.fs.resolve(path).unwrap();
        assert!(matches!(bench.fs.open(&resolved), Err(FsError::WrongKind { .. })), "{path}");
        let written = bench.fs.write(&resolved, b"x", &Expect::Absent, &mut |_| Ok(()));
        assert!(matches!(written, Err(FsError::WrongKind { .. })), "{path}");
    }
    let listed = bench.said("List", json!({})).await;
    assert_eq!(listed, "folder/\npipe (pipe, socket or device)\nsocket (pipe, socket or device)");
}

#[tokio::test]
async fn a_rooted_filesystem_reaches_nothing_outside_whatever_is_approved() {
    let mut bench = bench_with_links();
    bench.file("real/a.txt", "inside\n");
    symlink(bench.path("real"), bench.path("absolute")).unwrap();
    symlink("../w/real", bench.path("around")).unwrap();
    let rooted = LocalFs::rooted(&bench.path(""), LocalFsOptions::default()).unwrap();
    bench.cx.fs = std::sync::Arc::new(rooted);
    bench.cx.approved = vec!["/".into()];
    let absolute = |name: &str| bench.beside(name).to_string_lossy().into_owned();
    let paths = [
        "out/k".to_owned(),
        "out/new".into(),
        "out".into(),
        "key".into(),
        "dangling".into(),
        "twice/k".into(),
        "../q/b".into(),
        "../q/../w/real/a.txt".into(),
        "..".into(),
        "up/q/b".into(),
        "/".into(),
        "/etc/hosts".into(),
        "/proc/self/root/etc/hosts".into(),
        "/nowhere/at/all".into(),
        absolute("secret/k"),
        absolute("secret/k/below a file"),
        absolute("w-evil/c"),
    ];
    for path in &paths {
        for (tool, input) in [
            ("Read", json!({"path": path})),
            ("Write", json!({"path": path, "content": "changed"})),
            ("StrReplace", json!({"path": path, "old_string": "e", "new_string": "E", "replace_all": true})),
            ("List", json!({"path": path})),
            ("List", json!({"path": path, "recursive": true})),
        ] {
            let said = bench.refused(tool, input).await;
            assert!(said.contains("outside the workspace"), "{tool} {path}: {said}");
        }
        let outside = bench.cx.fs.resolve_entry(path);
        let names_a_link = ["out", "key", "dangling"].contains(&path.as_str());
        assert_eq!(matches!(outside, Err(FsError::Outside { .. })), !names_a_link, "{path}");
    }
    // A path that was made up is refused where it is used.
    let made_up =
        hames_tools::FsPath { abs: bench.beside("secret/k"), shown: "k".into(), inside: true, identity: None };
    let fs = &bench.cx.fs;
    assert!(matches!(fs.open(&made_up).err(), Some(FsError::Outside { .. })));
    assert!(matches!(fs.stat(&made_up), Err(FsError::Outside { .. })));
    assert!(matches!(fs.stage_write(&made_up, b"x", &Expect::Absent, None).err(), Some(FsError::Outside { .. })));
    assert!(matches!(fs.stage_remove(&made_up, &Expect::Dir).err(), Some(FsError::Outside { .. })));
    outside_unchanged(&bench);
    // What stays inside works as ever, by whatever links.
    for path in ["real/a.txt", "absolute/a.txt", "around/a.txt", "./up/w/real/a.txt", &absolute("w/real/a.txt")] {
        assert_eq!(bench.said("Read", json!({"path": path})).await, "1\tinside", "{path}");
    }
    bench.ok("Write", json!({"path": "absolute/new/b.txt", "content": "x"})).await;
    bench.ok("Delete", json!({"path": "out"})).await;
    bench.ok("Delete", json!({"path": "real", "recursive": true})).await;
    outside_unchanged(&bench);
}
