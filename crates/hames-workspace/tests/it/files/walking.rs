//! Walks: ignore files, order, links.

use std::ops::ControlFlow;
use std::os::unix::fs::symlink;

use hames_tools::{FileKind, FsProvider, WalkOptions};

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
