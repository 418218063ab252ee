//! Grep and Glob: what they give and how they say it.

use hames_protocol::{Effect, Resource, ToolErrorClass};
use hames_tools::Tool;
use hames_workspace::search::{Glob, Grep};
use serde_json::{Value, json};

use crate::bench::Bench;

fn grep(bench: &Bench, input: Value) -> String {
    bench.text(&Grep::new(), input)
}

fn glob(bench: &Bench, input: Value) -> String {
    bench.text(&Glob::new(), input)
}

fn code() -> Bench {
    Bench::new(&[
        ("src/a.rs", "one\nneedle two\nthree\nfour\nfive\nneedle six\n"),
        ("src/deep/b.rs", "Needle\n"),
        ("a.txt", "no\n"),
        ("z.txt", "needle"),
    ])
}

#[test]
fn matches_are_grouped_by_file_in_the_order_of_paths() {
    assert_eq!(grep(&code(), json!({"pattern": "needle"})), "src/a.rs\n2: needle two\n6: needle six\nz.txt\n1: needle");
    assert_eq!(
        grep(&code(), json!({"pattern": "needle$", "ignore_case": true})),
        "src/deep/b.rs\n1: Needle\nz.txt\n1: needle"
    );
}

#[test]
fn context_lines_are_marked_and_never_shown_twice() {
    assert_eq!(
        grep(&code(), json!({"pattern": "needle", "context": 1, "path": "src/a.rs"})),
        "src/a.rs\n1- one\n2: needle two\n3- three\n5- five\n6: needle six"
    );
    assert_eq!(
        grep(&code(), json!({"pattern": "needle", "context": 9, "path": "src/a.rs"})),
        "src/a.rs\n1- one\n2: needle two\n3- three\n4- four\n5- five\n6: needle six"
    );
    // A match before or behind the page is context of the page.
    assert_eq!(
        grep(&code(), json!({"pattern": "needle|four", "context": 2, "path": "src/a.rs", "offset": 1, "limit": 1})),
        "src/a.rs\n2- needle two\n3- three\n4: four\n5- five\n6- needle six\n(matches 2-2 of 3; continue with offset 2)"
    );
}

#[test]
fn a_match_over_lines_behind_the_page_is_context_line_by_line() {
    let bench = Bench::new(&[("a", "x\ny\nx\ny\nz\n")]);
    assert_eq!(grep(&bench, json!({"pattern": r"x\ny", "context": 3, "limit": 1})), "a\n1: x\n2: y\n3: x\n4: y\n5- z");
    let bench = Bench::new(&[("a", "x\ny\n-\nx\ny\nz\n")]);
    assert_eq!(
        grep(&bench, json!({"pattern": r"x\ny", "context": 2, "limit": 1})),
        "a\n1: x\n2: y\n3- -\n4- x\n(matches 1-1 of 2; continue with offset 1)"
    );
}

#[test]
fn modes_list_files_or_counts_under_any_common_name() {
    for mode in ["files", "files_with_matches", "FILES"] {
        assert_eq!(grep(&code(), json!({"pattern": "needle", "mode": mode})), "src/a.rs\nz.txt");
    }
    assert_eq!(grep(&code(), json!({"pattern": "needle", "mode": "count"})), "src/a.rs: 2\nz.txt: 1");
    let failure = code().run(&Grep::new(), json!({"pattern": "a", "mode": "tree"})).unwrap_err();
    assert_eq!(failure.class, ToolErrorClass::Invalid);
    assert!(failure.text.contains("content, files or count"));
}

#[test]
fn a_filter_is_relative_to_the_search_path_and_a_bare_name_fits_at_any_depth() {
    let files = |input: Value| {
        let mut input = input;
        input["pattern"] = json!("(?i)needle");
        input["mode"] = json!("files");
        grep(&code(), input)
    };
    assert_eq!(files(json!({"glob": "*.rs"})), "src/a.rs\nsrc/deep/b.rs");
    assert_eq!(files(json!({"glob": "src/*.rs"})), "src/a.rs");
    assert_eq!(files(json!({"glob": "*.rs", "path": "src/deep"})), "src/deep/b.rs");
    assert_eq!(files(json!({"glob": "./*.rs", "path": "src"})), "src/a.rs");
    assert_eq!(files(json!({"glob": "**/deep/**"})), "src/deep/b.rs");
    assert_eq!(files(json!({"glob": "*.{rs,txt}"})), "src/a.rs\nsrc/deep/b.rs\nz.txt");
    assert_eq!(files(json!({"glob": "!*.rs"})), "z.txt");
    assert_eq!(files(json!({"glob": "*.py"})), "No matches: no file in . fits the glob *.py.");
    // A file that is named is searched whatever the filter says.
    assert_eq!(files(json!({"glob": "*.py", "path": "z.txt"})), "z.txt");
}

#[test]
fn a_pattern_over_line_ends_finds_lf_and_crlf() {
    let bench = Bench::new(&[("unix", "x\nfoo\nbar\ny\n"), ("dos", "x\r\nfoo\r\nbar\r\ny\r\n")]);
    let both = "dos\n2: foo\n3: bar\nunix\n2: foo\n3: bar";
    for pattern in [r"foo\nbar", "foo\nbar", r"foo$\nbar", r"foo[\s\S]bar|foo[\s\S][\s\S]bar", r"(?s)foo.{1,2}bar"] {
        assert_eq!(grep(&bench, json!({"pattern": pattern})), both, "{pattern}");
    }
    assert_eq!(grep(&bench, json!({"pattern": "foo$"})), "dos\n2: foo\nunix\n2: foo");
    assert_eq!(grep(&bench, json!({"pattern": "^bar$", "mode": "count"})), "dos: 1\nunix: 1");
    assert_eq!(grep(&bench, json!({"pattern": r"foo\r$"})), "dos\n2: foo");
    assert_eq!(grep(&bench, json!({"pattern": r"foo\s+bar"})), "No matches in 2 files.");
    assert_eq!(grep(&bench, json!({"pattern": r"x\nfoo", "context": 1, "path": "unix"})), "unix\n1: x\n2: foo\n3- bar");
}

#[test]
fn an_invalid_regex_is_searched_as_text_and_the_first_line_says_so() {
    let bench = Bench::new(&[("a.c", "p->name(1);\n")]);
    let text = grep(&bench, json!({"pattern": "name("}));
    let (note, rest) = text.split_once('\n').unwrap();
    assert_eq!(note, "Not a valid regex (unclosed group); searched as plain text.");
    assert_eq!(rest, "a.c\n1: p->name(1);");
    assert_eq!(
        grep(&bench, json!({"pattern": r"foo\|name"})),
        r"No matches in 1 file. \| is a literal bar here; alternatives are written a|b."
    );
}

#[test]
fn binary_files_are_skipped_even_when_the_first_nul_comes_late() {
    let bench = code();
    let mut late = "needle\n".repeat(40_000).into_bytes();
    late.push(0);
    bench.write("early.bin", b"needle\0needle\n");
    bench.write("late.bin", &late);
    assert_eq!(grep(&bench, json!({"pattern": "needle", "mode": "count"})), "src/a.rs: 2\nz.txt: 1");
    assert_eq!(grep(&bench, json!({"pattern": "needle"})), grep(&code(), json!({"pattern": "needle"})));
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": "early.bin"})), "No matches: the file is binary.");
    assert_eq!(grep(&bench, json!({"pattern": r"needle\n", "path": "early.bin"})), "No matches: the file is binary.");
}

#[test]
fn text_with_a_utf16_mark_is_searched() {
    let bench = Bench::new(&[]);
    let little: Vec<u8> = "\u{feff}grün\nneedle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = "\u{feff}grün\nneedle\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    bench.write("le.txt", &little);
    bench.write("be.txt", &big);
    assert_eq!(
        grep(&bench, json!({"pattern": "grün|needle"})),
        "be.txt\n1: grün\n2: needle\nle.txt\n1: grün\n2: needle"
    );
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let bench = Bench::new(&[]);
    bench.write("min.js", format!("{}needle{}\n", "a".repeat(300_000), "b".repeat(300_000)).as_bytes());
    let text = grep(&bench, json!({"pattern": "needle"}));
    assert!(text.contains("needle") && text.len() < 600, "{} bytes", text.len());
}

#[test]
fn a_result_keeps_its_cap_and_pages_join_up() {
    let mut bench = Bench::new(&[]);
    for file in 0..4 {
        let lines: String = (0..60).map(|n| format!("needle {file} {n} {}\n", "x".repeat(n * 9))).collect();
        bench.write(&format!("f{file:02}.txt"), lines.as_bytes());
    }
    for cap in [100, 900, 4_000, 30_000] {
        bench.cx.cap_bytes = cap;
        for context in [0, 2] {
            let (mut offset, mut seen) = (0, Vec::new());
            loop {
                let text =
                    grep(&bench, json!({"pattern": "needle", "offset": offset, "limit": 500, "context": context}));
                assert!(text.len() <= cap.max(400), "{} of {cap} bytes", text.len());
                let numbers = text.lines().filter(|l| l.contains(": needle")).map(str::to_owned);
                let before = seen.len();
                seen.extend(numbers);
                assert!(seen.len() > before, "no progress at {offset}:\n{text}");
                match text.rsplit_once("continue with offset ") {
                    Some((_, next)) => offset = next.trim_end_matches(')').parse().unwrap(),
                    None => break,
                }
            }
            assert_eq!(seen.len(), 240, "cap {cap}, context {context}");
        }
    }
}

#[test]
fn a_page_behind_the_end_says_how_many_there_are() {
    assert_eq!(grep(&code(), json!({"pattern": "needle", "offset": 9})), "Nothing at offset 9: there are 3 matches.");
    assert_eq!(glob(&code(), json!({"pattern": "*.rs", "offset": 9})), "Nothing at offset 9: there are 2 files.");
}

#[test]
fn counting_ends_somewhere_and_says_so() {
    let bench = Bench::new(&[]);
    bench.write("many.txt", "x\n".repeat(150_000).as_bytes());
    let text = grep(&bench, json!({"pattern": "x", "limit": 1}));
    assert!(text.ends_with("(stopped after 100000 matches; narrow the search with path, glob or pattern)"), "{text}");
}

#[test]
fn large_and_unreadable_files_are_counted_not_searched() {
    let bench = code();
    let large = std::fs::File::create(bench.path("dump.sql")).unwrap();
    large.set_len((50 << 20) + 1).unwrap();
    let text = grep(&bench, json!({"pattern": "needle", "mode": "files"}));
    assert_eq!(text, "src/a.rs\nz.txt\n(skipped for being over 50 MB: 1 file)");
}

#[test]
fn a_named_path_is_searched_although_it_is_ignored() {
    let bench = Bench::new(&[
        (".gitignore", "out/\n/gen/*\n*.log\n"),
        ("out/a.js", "needle\n"),
        ("gen/a.js", "needle\n"),
        ("x.log", "needle\n"),
    ]);
    assert_eq!(grep(&bench, json!({"pattern": "needle"})), "No matches in 1 file.");
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": "out"})), "out/a.js\n1: needle");
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": "x.log"})), "x.log\n1: needle");
    let gen_note = "\n(gen is ignored; searched because it was named)";
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": "gen"})), format!("gen/a.js\n1: needle{gen_note}"));
    assert_eq!(glob(&bench, json!({"pattern": "*.js", "path": "gen"})), format!("gen/a.js{gen_note}"));
}

#[test]
fn a_search_can_be_cancelled() {
    let bench = code();
    bench.cx.cancel.cancel();
    for tool in [&Grep::new() as &dyn Tool, &Glob::new()] {
        let failure = bench.run(tool, json!({"pattern": "*a*"})).unwrap_err();
        assert_eq!(failure.class, ToolErrorClass::Cancelled);
    }
}

#[test]
fn a_path_that_does_not_exist_is_an_error() {
    for path in ["nowhere", "src/*.rs"] {
        let failure = code().run(&Grep::new(), json!({"pattern": "a", "path": path})).unwrap_err();
        assert!(failure.text.contains("does not exist"), "{}", failure.text);
        assert_eq!(failure.text.contains("wildcards"), path.contains('*'), "{}", failure.text);
    }
    assert!(code().run(&Grep::new(), json!({"pattern": ""})).unwrap_err().text.contains("pattern is empty"));
    let failure = code().run(&Glob::new(), json!({"pattern": "*", "path": "z.txt"})).unwrap_err();
    assert_eq!(failure.text, "z.txt is a file, not a folder; Grep searches in files");
}

#[test]
fn globs_find_by_name() {
    let bench = code();
    let table = [
        ("*.rs", "src/a.rs\nsrc/deep/b.rs"),
        ("**/*.rs", "src/a.rs\nsrc/deep/b.rs"),
        ("./*.txt", "a.txt\nz.txt"),
        ("src/*", "src/a.rs"),
        ("src/**", "src/a.rs\nsrc/deep/b.rs"),
        ("**", "a.txt\nsrc/a.rs\nsrc/deep/b.rs\nz.txt"),
        ("**/b.rs", "src/deep/b.rs"),
        ("b.rs", "src/deep/b.rs"),
        ("{a,z}.txt", "a.txt\nz.txt"),
        ("src/**/{a,b}.rs", "src/a.rs\nsrc/deep/b.rs"),
        ("[az].txt", "a.txt\nz.txt"),
        ("./src//a.rs", "src/a.rs"),
        ("src/../a.txt", "a.txt"),
        ("src/x/../*.rs", "src/a.rs"),
        ("src/*/", "src/deep/"),
        ("**/", "src/\nsrc/deep/"),
        ("src", "src/"),
        ("src/", "src/"),
    ];
    for (pattern, expected) in table {
        assert_eq!(glob(&bench, json!({"pattern": pattern})), expected, "{pattern}");
    }
    assert_eq!(
        glob(&bench, json!({"pattern": "src/a.rs/", "no_ignore": true})),
        "No folder matches src/a.rs/. Files do (1); leave the last / out to see them."
    );
    assert_eq!(
        glob(&bench, json!({"pattern": "src/d*"})),
        "No file matches src/d*. Folders do (1); add / to see them. Ignored files were left out; no_ignore includes them."
    );
    assert!(bench.run(&Glob::new(), json!({"pattern": "*.{py"})).unwrap_err().text.contains("no valid glob"));
    assert_eq!(glob(&bench, json!({"pattern": "../*.txt", "path": "src"})), "a.txt\nz.txt");
    assert_eq!(glob(&bench, json!({"pattern": "../../src/*.rs", "path": "src/deep"})), "src/a.rs");
    assert_eq!(glob(&bench, json!({"pattern": "*.rs", "path": "src/deep"})), "src/deep/b.rs");
    assert_eq!(
        glob(&bench, json!({"pattern": "**", "limit": 2, "offset": 1})),
        "src/a.rs\nsrc/deep/b.rs\n(files 2-3 of 4; continue with offset 3)"
    );
}

#[test]
fn an_absolute_glob_inside_the_workspace_is_a_glob_and_outside_it_is_refused() {
    let bench = code();
    let root = bench.cx.fs.root().to_string_lossy().into_owned();
    let absolute = |rest: &str| bench.run(&Glob::new(), json!({"pattern": format!("{root}{rest}")}));
    assert_eq!(absolute("/src/*.rs").unwrap(), "src/a.rs");
    assert_eq!(absolute("/**/*.rs").unwrap(), "src/a.rs\nsrc/deep/b.rs");
    assert_eq!(absolute("/src/a.rs").unwrap(), "src/a.rs");
    assert_eq!(absolute("/*.txt").unwrap(), "a.txt\nz.txt");
    for pattern in ["/*", "/etc/*.conf", "/etc/passwd", "../*", "../../**/x", "src/../../*", "./../*.rs"] {
        let failure = bench.run(&Glob::new(), json!({"pattern": pattern})).unwrap_err();
        assert_eq!(failure.class, ToolErrorClass::Refused, "{pattern}: {}", failure.text);
        assert!(failure.text.contains("workspace"), "{pattern}: {}", failure.text);
    }
    assert_eq!(bench.run(&Glob::new(), json!({"pattern": "*/../x"})).unwrap_err().class, ToolErrorClass::Invalid);
    assert_eq!(bench.run(&Glob::new(), json!({"pattern": " "})).unwrap_err().class, ToolErrorClass::Invalid);
}

#[test]
fn an_absolute_or_climbing_glob_switches_no_ignore_file_off() {
    let bench = Bench::new(&[(".gitignore", "dist/\n"), ("dist/a.js", ""), ("src/a.js", "")]);
    let root = bench.cx.fs.root().to_string_lossy().into_owned();
    let none = "Ignored files were left out; no_ignore includes them.";
    assert!(glob(&bench, json!({"pattern": format!("{root}/dist/*.js")})).ends_with(none));
    assert_eq!(glob(&bench, json!({"pattern": "../**/*.js", "path": "src"})), "src/a.js");
}

#[cfg(unix)]
#[test]
fn a_link_is_found_under_its_own_name_and_leads_nowhere_outside() {
    let bench = code();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "needle").unwrap();
    std::os::unix::fs::symlink("z.txt", bench.path("link.txt")).unwrap();
    std::os::unix::fs::symlink(outside.path(), bench.path("out")).unwrap();
    assert_eq!(glob(&bench, json!({"pattern": "./*.txt"})), "a.txt\nlink.txt\nz.txt");
    assert_eq!(glob(&bench, json!({"pattern": "link.txt"})), "link.txt");
    assert!(!grep(&bench, json!({"pattern": "needle"})).contains("secret"));
    assert_eq!(
        bench.run(&Grep::new(), json!({"pattern": "needle", "path": "out"})).unwrap_err().class,
        ToolErrorClass::Refused
    );
}

#[test]
fn both_tools_declare_a_cacheable_read_of_their_path() {
    let read = |path: &str| vec![Resource::path(path, false)];
    for tool in [&Grep::new() as &dyn Tool, &Glob::new()] {
        let declared = tool.declare(&json!({"pattern": "x", "path": "src"}));
        assert_eq!((declared.effect, declared.cacheable, declared.cap_bytes), (Effect::Read, true, Some(30 * 1024)));
        assert_eq!(declared.resources, read("src"));
        assert_eq!(tool.declare(&json!({"pattern": "x"})).resources, read("."));
        let label = tool.label(&json!({"pattern": "x", "path": "src"})).to_string();
        assert_eq!(label, format!("{} x in src", tool.spec().name));
    }
    // An absolute glob names the folder it starts from, so that it can be decided on.
    assert_eq!(Glob::new().declare(&json!({"pattern": "/etc/ssl/*.pem"})).resources, read("/etc/ssl"));
}

#[test]
fn an_approved_folder_outside_can_be_searched() {
    let mut bench = code();
    let outside = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(outside.path()).unwrap();
    std::fs::write(path.join("x.txt"), "needle").unwrap();
    let shown = path.to_string_lossy().into_owned();
    assert!(bench.run(&Grep::new(), json!({"pattern": "needle", "path": shown})).is_err());
    bench.cx.approved = vec![path.clone()];
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": shown})), format!("{shown}/x.txt\n1: needle"));
    assert_eq!(glob(&bench, json!({"pattern": format!("{shown}/*.txt")})), format!("{shown}/x.txt"));
    assert_eq!(glob(&bench, json!({"pattern": "*.txt", "path": shown})), format!("{shown}/x.txt"));
}

#[test]
fn the_advertised_specs_are_small() {
    for (tool, limit) in [(&Glob::new() as &dyn Tool, 480), (&Grep::new(), 760)] {
        let size = serde_json::to_string(tool.spec()).unwrap().len();
        assert!(size <= limit, "{}: {size}", tool.spec().name);
    }
}
