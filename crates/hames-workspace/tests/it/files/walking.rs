//! Walks: ignore files, order, links.

use std::ops::ControlFlow;
use std::os::unix::fs::symlink;

use hames_tools::{FileKind, FsProvider, WalkOptions};
use hames_workspace::files::{LocalFs, LocalFsOptions};

use super::kit::{Bench, put};

fn walked(bench: &Bench, from: &str, options: WalkOptions) -> Vec<String> {
    let mut seen = Vec::new();
    let from = bench.fs.resolve(from).unwrap();
    bench
        .fs
        .walk(&from, &options, &mut |entry| {
            let slash = if entry.kind == FileKind::Dir { "/" } else { "" };
            seen.push(format!("{}{slash}", entry.path.shown));
            ControlFlow::Continue(())
        })
        .unwrap();
    seen
}

#[test]
fn ignore_files_hide_and_version_control_is_never_visited() {
    let bench = Bench::new();
    for name in [
        "src/a.js",
        "dist/a.js",
        "src/dist/b.js",
        "keep.log",
        "x.log",
        ".env",
        ".git/HEAD",
        ".hg/x",
        ".jj/x",
        ".svn/x",
        "sub/.git",
        "sub/c.js",
        "sub/local.tmp",
        "docs/d.md",
    ] {
        bench.file(name, "");
    }
    bench.file(".gitignore", "dist/\n*.log\n!keep.log\n/docs\n");
    bench.file("sub/.gitignore", "*.tmp\n");
    let plain = walked(&bench, ".", WalkOptions::default());
    assert_eq!(plain, [".env", ".gitignore", "keep.log", "src/", "src/a.js", "sub/", "sub/.gitignore", "sub/c.js"]);
    let all = walked(&bench, ".", WalkOptions { no_ignore: true, max_depth: None });
    assert!(
        all.contains(&"dist/a.js".into()) && all.contains(&"sub/local.tmp".into()) && all.contains(&"x.log".into())
    );
    assert!(
        !all.iter().any(|path| [".git/", ".git/HEAD", ".hg/", ".jj/", ".svn/", "sub/.git"].contains(&path.as_str()))
    );
    // The rules of folders above the start hold as well.
    assert_eq!(walked(&bench, "src", WalkOptions::default()), ["src/a.js"]);
    assert_eq!(walked(&bench, "sub", WalkOptions::default()), ["sub/.gitignore", "sub/c.js"]);
    // What is named is visited, ignored or not.
    assert_eq!(walked(&bench, "dist", WalkOptions::default()), ["dist/a.js"]);
    assert_eq!(walked(&bench, "x.log", WalkOptions::default()), ["x.log"]);
}

#[test]
fn ignore_files_hold_without_a_repository_and_come_from_the_whole_of_one() {
    // No repository: nothing above the root counts.
    let bench = Bench::new();
    put(&bench.beside(".gitignore"), "*\n");
    bench.file("a.txt", "");
    bench.file("deep/b.txt", "");
    bench.file("deep/c.log", "");
    bench.file("deep/d.tmp", "");
    bench.file("deep/gone/e.txt", "");
    bench.file("deep/kept/gone", "");
    bench.file(".ignore", "*.log\n");
    bench.file(".gitignore", "*.tmp\n/deep/gone\n");
    assert_eq!(
        walked(&bench, ".", WalkOptions::default()),
        [".gitignore", ".ignore", "a.txt", "deep/", "deep/b.txt", "deep/kept/", "deep/kept/gone"]
    );
    assert_eq!(walked(&bench, "deep", WalkOptions::default()), ["deep/b.txt", "deep/kept/", "deep/kept/gone"]);
    // The root is a folder of a repository: its rules count, those above it do not.
    let bench = Bench::new();
    put(&bench.beside(".git/HEAD"), "");
    put(&bench.beside(".gitignore"), "*.log\n");
    bench.file("a.txt", "");
    bench.file("deep/c.log", "");
    assert_eq!(walked(&bench, ".", WalkOptions::default()), ["a.txt", "deep/"]);
}

#[test]
fn nearer_rules_decide_and_what_git_is_told_ends_at_a_repository() {
    let bench = Bench::new();
    for name in ["a.log", "a.tmp", "a.own", "sub/a.log", "sub/a.tmp", "sub/kept.tmp", "sub/deep/a.tmp"] {
        bench.file(name, "");
    }
    for name in ["nested/a.log", "nested/a.tmp", "nested/a.own", "nested/.git/HEAD", ".git/HEAD"] {
        bench.file(name, "");
    }
    bench.file(".ignore", "*.log\n");
    bench.file(".gitignore", "\u{feff}*.tmp\n[\n");
    bench.file(".git/info/exclude", "*.own\n");
    bench.file("sub/.gitignore", "!*.log\n!kept.tmp\n");
    bench.file("sub/deep/.ignore", "!a.tmp\n");
    bench.file("nested/.git/info/exclude", "nothing\n");
    let found = |seen: Vec<String>| -> Vec<String> {
        seen.into_iter().filter(|path| !path.ends_with('/') && !path.ends_with("ignore")).collect()
    };
    // `.ignore` goes before `.gitignore` whichever is nearer, and alone counts in a repository below.
    let all = ["nested/a.own", "nested/a.tmp", "sub/deep/a.tmp", "sub/kept.tmp"];
    assert_eq!(found(walked(&bench, ".", WalkOptions::default())), all);
    assert_eq!(found(walked(&bench, "nested", WalkOptions::default())), all[..2]);
    assert_eq!(found(walked(&bench, "sub/deep", WalkOptions::default())), all[2..3]);
}

#[test]
fn a_rooted_filesystem_takes_no_rule_from_above_its_root() {
    let bench = Bench::new();
    put(&bench.beside(".ignore"), "*.log\n");
    put(&bench.beside(".gitignore"), "*.tmp\n");
    for name in ["../.git/HEAD", "a.log", "a.tmp", "a.own", "sub/a.log"] {
        bench.file(name, "");
    }
    bench.file(".gitignore", "*.own\n");
    let rooted = LocalFs::rooted(&bench.path(""), LocalFsOptions::default()).unwrap();
    let mut seen = Vec::new();
    let from = rooted.resolve(".").unwrap();
    rooted
        .walk(&from, &WalkOptions::default(), &mut |entry| {
            seen.push(entry.path.shown);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen, [".gitignore", "a.log", "a.tmp", "sub", "sub/a.log"]);
    assert_eq!(walked(&bench, ".", WalkOptions::default()), [".gitignore", "sub/"]);
}

#[test]
fn links_to_files_count_as_files_and_links_to_folders_are_not_entered() {
    let bench = Bench::new();
    bench.file("real/a.txt", "abc");
    put(&bench.beside("secret/k"), "secret");
    symlink("real/a.txt", bench.path("link.txt")).unwrap();
    symlink("real", bench.path("linkdir")).unwrap();
    symlink("..", bench.path("real/cycle")).unwrap();
    symlink("../secret/k", bench.path("out.txt")).unwrap();
    symlink("../secret", bench.path("outdir")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    let mut seen = Vec::new();
    bench
        .fs
        .walk(&bench.fs.resolve(".").unwrap(), &WalkOptions::default(), &mut |entry| {
            let readable = bench.fs.read(&entry.path, 100).ok();
            seen.push((entry.path.shown, entry.kind, entry.size, readable));
            ControlFlow::Continue(())
        })
        .unwrap();
    let abc = || Some(b"abc".to_vec());
    let expected = [
        ("dangling", FileKind::Link, 0, None),
        ("link.txt", FileKind::File, 3, abc()),
        ("linkdir", FileKind::Link, 0, None),
        ("out.txt", FileKind::Link, 0, None),
        ("outdir", FileKind::Link, 0, None),
        ("real", FileKind::Dir, 0, None),
        ("real/a.txt", FileKind::File, 3, abc()),
        ("real/cycle", FileKind::Link, 0, None),
    ];
    assert_eq!(seen, expected.map(|(path, kind, size, text)| (path.to_owned(), kind, size, text)));
}

#[test]
fn a_walk_goes_as_deep_as_asked_and_stops_when_told() {
    let bench = Bench::new();
    bench.file("a/b/c/d.txt", "");
    bench.file("e.txt", "");
    let depth = |depth| walked(&bench, ".", WalkOptions { no_ignore: false, max_depth: Some(depth) });
    assert_eq!(depth(0), ["a/", "e.txt"]);
    assert_eq!(depth(1), ["a/", "a/b/", "e.txt"]);
    assert_eq!(depth(9), ["a/", "a/b/", "a/b/c/", "a/b/c/d.txt", "e.txt"]);
    let mut seen = 0;
    bench
        .fs
        .walk(&bench.fs.resolve(".").unwrap(), &WalkOptions::default(), &mut |_| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(seen, 2);
    let missing = bench
        .fs
        .walk(&bench.fs.resolve("missing").unwrap(), &WalkOptions::default(), &mut |_| ControlFlow::Continue(()));
    assert!(missing.is_err());
}

#[test]
fn an_ignore_file_that_is_no_file_hides_nothing_and_holds_nothing_up() {
    let (told, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let bench = Bench::new();
        put(&bench.beside("secret"), "a.txt\n");
        for (folder, made) in [("pipe", "mkfifo"), ("folder", "mkdir")] {
            bench.file(&format!("{folder}/a.txt"), "");
            for name in [".gitignore", ".ignore"] {
                let made = std::process::Command::new(made).arg(bench.path(folder).join(name)).status();
                assert!(made.is_ok_and(|status| status.success()), "{folder}");
            }
        }
        for (folder, target) in
            [("device", "/dev/zero"), ("outside", "../../secret"), ("nowhere", "none"), ("to pipe", "../pipe/.ignore")]
        {
            bench.file(&format!("{folder}/a.txt"), "");
            symlink(target, bench.path(folder).join(".gitignore")).unwrap();
            symlink(target, bench.path(folder).join(".ignore")).unwrap();
        }
        bench.file("large/a.txt", "");
        bench.file("large/.gitignore", "a.txt\n");
        let large = std::fs::File::options().append(true).open(bench.path("large/.gitignore")).unwrap();
        large.set_len(1 << 40).unwrap();
        bench.file("inside/a.txt", "");
        bench.file("inside/rules", "a.txt\n");
        symlink("rules", bench.path("inside/.gitignore")).unwrap();
        let seen = walked(&bench, ".", WalkOptions::default());
        told.send(seen.into_iter().filter(|path| path.ends_with("a.txt")).collect::<Vec<_>>()).unwrap();
    });
    let seen = finished.recv_timeout(std::time::Duration::from_secs(20)).expect("the walk comes to an end");
    let visible = ["device", "folder", "large", "nowhere", "outside", "pipe", "to pipe"];
    assert_eq!(seen, visible.map(|folder| format!("{folder}/a.txt")));
}

#[test]
fn a_tree_deeper_than_may_be_open_is_walked_to_its_end() {
    let bench = Bench::new();
    let mut name = String::new();
    for _ in 0..600 {
        name.push_str("d/");
    }
    bench.file(&format!("{name}f"), "");
    let seen = walked(&bench, ".", WalkOptions::default());
    assert_eq!((seen.len(), seen.last().unwrap()), (601, &format!("{name}f")));
}
