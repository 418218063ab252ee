//! Three kinds of fault that searches are known for, each with inputs of many shapes.

use hames_workspace::search::{Glob, Grep};
use serde_json::json;

use crate::bench::Bench;

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('(') && !line.starts_with("No ")).collect()
}

#[test]
fn a_glob_never_switches_ignore_files_off() {
    let bench = Bench::new(&[
        (".gitignore", "dist/\n*.min.js\n/local.js\n"),
        (".ignore", "vendor\n"),
        ("src/a.js", "needle\n"),
        ("src/b.min.js", "needle\n"),
        ("dist/a.js", "needle\n"),
        ("dist/deep/b.js", "needle\n"),
        ("src/dist/c.js", "needle\n"),
        ("vendor/v.js", "needle\n"),
        ("local.js", "needle\n"),
        ("sub/.gitignore", "gen/*\n!gen/keep.js\n!kept.min.js\n"),
        ("sub/gen/a.js", "needle\n"),
        ("sub/gen/keep.js", "needle\n"),
        ("sub/kept.min.js", "needle\n"),
        ("sub/local.js", "needle\n"),
    ]);
    let all = ["src/a.js", "sub/gen/keep.js", "sub/kept.min.js", "sub/local.js"];
    // Each glob with what is visible of what it fits, and with what `no_ignore` must add at least.
    let table: &[(&str, &[&str], &str)] = &[
        ("*.js", &all, "dist/a.js"),
        ("**/*.js", &all, "dist/deep/b.js"),
        ("**/*.{js,ts}", &all, "vendor/v.js"),
        ("**/a.js", &["src/a.js"], "sub/gen/a.js"),
        ("src/**", &["src/a.js"], "src/dist/c.js"),
        ("dist/*.js", &[], "dist/a.js"),
        ("dist/**", &[], "dist/deep/b.js"),
        ("{src,dist}/*.js", &["src/a.js"], "dist/a.js"),
        ("[ds]*/*.js", &["src/a.js", "sub/kept.min.js", "sub/local.js"], "dist/a.js"),
        ("./**/dist/*", &[], "src/dist/c.js"),
        ("*.min.js", &["sub/kept.min.js"], "src/b.min.js"),
        ("vendor/*", &[], "vendor/v.js"),
        ("./l*.js", &[], "local.js"),
        ("sub/gen/*", &["sub/gen/keep.js"], "sub/gen/a.js"),
    ];
    for &(glob, visible, hidden) in table {
        let found = bench.text(&Glob::new(), json!({"pattern": glob}));
        assert_eq!(lines(&found), visible, "Glob {glob}");
        let input = json!({"pattern": "needle", "glob": glob, "mode": "files"});
        assert_eq!(lines(&bench.text(&Grep::new(), input)), visible, "Grep {glob}");

        let found = bench.text(&Glob::new(), json!({"pattern": glob, "no_ignore": true}));
        assert!(lines(&found).contains(&hidden), "Glob {glob} with no_ignore: {found}");
        let input = json!({"pattern": "needle", "glob": glob, "mode": "files", "no_ignore": true});
        let found = bench.text(&Grep::new(), input);
        assert!(lines(&found).contains(&hidden), "Grep {glob} with no_ignore: {found}");
    }
}

#[test]
fn a_pattern_that_begins_with_a_dash_is_a_pattern() {
    let texts = [
        "->name(",
        "->name()",
        "--regexp",
        "-v",
        "--pre=./evil.sh",
        "--pre ./evil.sh",
        "-e",
        "--",
        "-f/etc/passwd",
        "--help",
        "-rn needle",
        "--no-ignore",
        "-",
        "-i-dash",
        "--files",
        "-- -x",
    ];
    let content: String = texts.iter().map(|text| format!("a {text} b\n")).collect();
    let bench = Bench::new(&[("code.txt", &content), ("-v.txt", "x --regexp y\n"), ("--pre=x/-f.txt", "--help\n")]);
    bench.write("evil.sh", b"#!/bin/sh\ntouch started\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let script = bench.path("evil.sh");
        std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for text in texts {
        // As a regex the one with an empty group finds the name alone; the others mean themselves, or are no regex.
        let meant = text.strip_suffix("()").unwrap_or(text);
        let matching = content.lines().zip(1..).filter(|(line, _)| line.contains(meant));
        let expected: Vec<String> = matching.map(|(line, number)| format!("{number}: {line}")).collect();
        let found = bench.text(&Grep::new(), json!({"pattern": text, "path": "code.txt"}));
        let found: Vec<&str> = found.lines().skip_while(|line| *line != "code.txt").skip(1).collect();
        assert_eq!(found, expected, "{text}");
    }
    let escaped = bench.text(&Grep::new(), json!({"pattern": r"->name\(", "path": "code.txt"}));
    assert_eq!(escaped, "code.txt\n1: a ->name( b\n2: a ->name() b");
    // Paths and globs that begin with a dash are no flags either.
    let found = bench.text(&Grep::new(), json!({"pattern": "--regexp", "path": "-v.txt"}));
    assert_eq!(found, "-v.txt\n1: x --regexp y");
    let found = bench.text(&Grep::new(), json!({"pattern": "--", "path": "--pre=x", "glob": "-*", "mode": "files"}));
    assert_eq!(found, "--pre=x/-f.txt");
    assert_eq!(bench.text(&Glob::new(), json!({"pattern": "-*.txt"})), "--pre=x/-f.txt\n-v.txt");
    assert_eq!(bench.text(&Glob::new(), json!({"pattern": "--pre=x/*"})), "--pre=x/-f.txt");
    assert!(!bench.path("started").exists(), "a helper process was started");
}

fn routes() -> Bench {
    let files = [
        "app/[id]/page.tsx",
        "app/(shop)/page.tsx",
        "app/i/page.tsx",
        "app/d/page.tsx",
        "app/[...all]/page.tsx",
        "app/[[...slug]]/page.tsx",
        "app/{x,y}/page.tsx",
        "app/x/page.tsx",
        "app/@modal/(.)photo/[id]/page.tsx",
        "docs/a*b.md",
        "docs/aXb.md",
        "docs/what?.md",
        "docs/whatX.md",
        r"docs/back\slash.md",
        "docs/!bang #1.md",
    ];
    Bench::new(&files.map(|path| (path, "needle\n")))
}

#[test]
fn a_path_with_brackets_is_a_path() {
    let bench = routes();
    // Whatever has been named literally is found literally, and nothing else.
    for path in [
        "app/[id]/page.tsx",
        "app/(shop)/page.tsx",
        "app/[...all]/page.tsx",
        "app/[[...slug]]/page.tsx",
        "app/{x,y}/page.tsx",
        "app/@modal/(.)photo/[id]/page.tsx",
        "docs/a*b.md",
        "docs/what?.md",
        r"docs/back\slash.md",
        "docs/!bang #1.md",
    ] {
        assert_eq!(bench.text(&Glob::new(), json!({"pattern": path})), path);
        let found = bench.text(&Grep::new(), json!({"pattern": "needle", "path": path}));
        assert_eq!(found, format!("{path}\n1: needle"));
        let (folder, name) = path.rsplit_once('/').unwrap();
        let found = bench.text(&Grep::new(), json!({"pattern": "needle", "path": folder, "mode": "files"}));
        assert!(lines(&found).contains(&path), "Grep in {folder}: {found}");
        assert_eq!(bench.text(&Glob::new(), json!({"pattern": name, "path": folder})), path);
    }
}

#[test]
fn a_glob_with_brackets_means_what_is_there() {
    let bench = routes();
    let pages = [
        "app/(shop)/page.tsx",
        "app/@modal/(.)photo/[id]/page.tsx",
        "app/[...all]/page.tsx",
        "app/[[...slug]]/page.tsx",
        "app/[id]/page.tsx",
        "app/d/page.tsx",
        "app/i/page.tsx",
        "app/x/page.tsx",
        "app/{x,y}/page.tsx",
    ];
    let table: &[(&str, &[&str])] = &[
        (r"app/\[id\]/*", &["app/[id]/page.tsx"]),
        ("app/[id]/*", &["app/[id]/page.tsx"]),
        ("app/[id]/*.{ts,tsx}", &["app/[id]/page.tsx"]),
        ("**/[id]/page.tsx", &["app/@modal/(.)photo/[id]/page.tsx", "app/[id]/page.tsx"]),
        ("./app/[id]/**", &["app/[id]/page.tsx"]),
        ("app/[[]id]/*", &["app/[id]/page.tsx"]),
        ("app/(shop)/*", &["app/(shop)/page.tsx"]),
        ("app/[[...slug]]/*.tsx", &["app/[[...slug]]/page.tsx"]),
        ("app/{x,y}/*", &["app/{x,y}/page.tsx"]),
        ("app/**/page.tsx", &pages),
        // Where no such name exists, brackets and braces are a glob's.
        ("app/[xi]/page.tsx", &["app/i/page.tsx", "app/x/page.tsx"]),
        ("app/{d,i}/*", &["app/d/page.tsx", "app/i/page.tsx"]),
        ("docs/a?b.md", &["docs/a*b.md", "docs/aXb.md"]),
        ("docs/what[?].md", &["docs/what?.md"]),
    ];
    for &(pattern, expected) in table {
        assert_eq!(lines(&bench.text(&Glob::new(), json!({"pattern": pattern}))), expected, "Glob {pattern}");
        let input = json!({"pattern": "needle", "glob": pattern, "mode": "files"});
        assert_eq!(lines(&bench.text(&Grep::new(), input)), expected, "Grep {pattern}");
    }
}
