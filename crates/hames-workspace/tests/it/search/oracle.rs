//! Grep and Glob against the simplest thing that could be right, on small random trees.

use std::collections::{BTreeMap, BTreeSet};

use hames_workspace::search::{Glob, Grep};
use proptest::prelude::*;
use serde_json::json;

use crate::bench::{Bench, cases};

type Tree = BTreeMap<String, String>;

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "x.js", "y.js", "z.ts", "(g)", "a b", "é", ".dot"]).prop_map(String::from)
}

fn content() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["", "foo", "bar", "foo bar", "Foo", "b.r", "ünï foo", "f(o)o"]);
    let end = prop::sample::select(vec!["\n", "\r\n"]);
    (prop::collection::vec((line, end), 0..8), any::<bool>()).prop_map(|(lines, terminated)| {
        let text: String = lines.iter().flat_map(|(line, end)| [*line, *end]).collect();
        if terminated { text } else { text.trim_end_matches(['\n', '\r']).to_owned() }
    })
}

/// Trees in which no name is both a file and a folder.
fn tree() -> impl Strategy<Value = Tree> {
    let path = prop::collection::vec(name(), 1..4).prop_map(|parts| parts.join("/"));
    prop::collection::btree_map(path, content(), 0..12).prop_map(|mut tree: Tree| {
        let folders: BTreeSet<String> = tree.keys().flat_map(|path| folders_of(path)).collect();
        tree.retain(|path, _| !folders.contains(path));
        tree
    })
}

fn folders_of(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect()
}

fn bench(tree: &Tree) -> Bench {
    let files: Vec<(&str, &str)> = tree.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    Bench::new(&files)
}

/// Patterns of components; what a component fits is decided by [`name_fits`].
fn pattern() -> impl Strategy<Value = String> {
    let component =
        prop::sample::select(vec!["a", "b", "*", "**", "a*", "*.js", "*.{js,ts}", "?", "?.js", "{a,b}", "(g)", "*b"]);
    (prop::sample::select(vec!["", "./"]), prop::collection::vec(component, 1..4), prop::sample::select(vec!["", "/"]))
        .prop_map(|(head, parts, tail)| format!("{head}{}{tail}", parts.join("/")))
}

/// The alternatives of the one pair of braces a component may have.
fn alternatives(component: &str) -> Vec<String> {
    match (component.find('{'), component.find('}')) {
        (Some(open), Some(close)) => component[open + 1..close]
            .split(',')
            .map(|choice| format!("{}{choice}{}", &component[..open], &component[close + 1..]))
            .collect(),
        _ => vec![component.to_owned()],
    }
}

fn name_fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => name_fits(rest, name) || (!name.is_empty() && name_fits(pattern, &name[1..])),
        (Some((b'?', rest)), Some((_, name))) => name_fits(rest, name),
        (Some((p, rest)), Some((n, name))) => p == n && name_fits(rest, name),
        _ => false,
    }
}

fn path_fits(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        // At the end it stands for at least one name.
        (["**"], rest) => !rest.is_empty(),
        (["**", tail @ ..], rest) => {
            path_fits(tail, rest) || rest.split_first().is_some_and(|(_, rest)| path_fits(pattern, rest))
        }
        ([part, tail @ ..], [name, rest @ ..]) => {
            alternatives(part).iter().any(|p| name_fits(p.as_bytes(), name.as_bytes())) && path_fits(tail, rest)
        }
        _ => false,
    }
}

/// What Glob should give: the pattern as a path where that exists, else everything it fits.
fn oracle(tree: &Tree, pattern: &str) -> Vec<String> {
    let dirs_only = pattern.ends_with('/');
    let plain = pattern.trim_start_matches("./").trim_end_matches('/');
    let folders: BTreeSet<String> = tree.keys().flat_map(|path| folders_of(path)).collect();
    if folders.contains(plain) {
        return vec![format!("{plain}/")];
    }
    if tree.contains_key(plain) && !dirs_only {
        return vec![plain.to_owned()];
    }
    let mut parts: Vec<&str> = plain.split('/').collect();
    if parts.len() == 1 && !pattern.starts_with("./") {
        parts.insert(0, "**");
    }
    let fits = |path: &String| path_fits(&parts, &path.split('/').collect::<Vec<_>>());
    if dirs_only {
        return folders.iter().filter(|f| fits(f)).map(|f| format!("{f}/")).collect();
    }
    tree.keys().filter(|f| fits(f)).cloned().collect()
}

/// What Grep should list for a word: `path` lines and `N: text` lines.
fn matching(tree: &Tree, filter: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let mut out = Vec::new();
    for (path, content) in tree {
        if !filter.is_empty() && !path.ends_with(filter) {
            continue;
        }
        let lines = content.lines().zip(1..).filter(|(line, _)| fits(line)).map(|(line, n)| format!("{n}: {line}"));
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            out.push(path.clone());
            out.extend(lines);
        }
    }
    out
}

fn listed(text: &str) -> Vec<String> {
    text.lines()
        .filter(|l| {
            !l.starts_with("No ")
                && !l.starts_with("(files")
                && !l.starts_with("(folders")
                && !l.starts_with("(matches")
        })
        .map(str::to_owned)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn glob_finds_what_a_naive_matcher_finds(tree in tree(), pattern in pattern()) {
        let text = bench(&tree).text(&Glob::new(), json!({"pattern": pattern}));
        prop_assert_eq!(listed(&text), oracle(&tree, &pattern), "{}", pattern);
    }

    #[test]
    fn grep_finds_what_a_naive_search_finds(
        tree in tree(),
        word in prop::sample::select(vec!["foo", "bar", "b.r", "ünï", "f(o)o", "o b", "nowhere"]),
        ignore_case in any::<bool>(),
        filter in prop::sample::select(vec!["", ".js", ".ts"]),
    ) {
        let bench = bench(&tree);
        let fold = |s: &str| if ignore_case { s.to_lowercase() } else { s.to_owned() };
        let expected = matching(&tree, filter, |line| fold(line).contains(&fold(word)));
        let mut input = json!({
            "pattern": regex_syntax::escape(word), "ignore_case": ignore_case,
        });
        if !filter.is_empty() {
            input["glob"] = json!(format!("*{filter}"));
        }
        prop_assert_eq!(listed(&bench.text(&Grep::new(), input.clone())), expected.clone());

        let paths: Vec<String> = expected.iter().filter(|line| tree.contains_key(*line)).cloned().collect();
        input["mode"] = json!("files");
        prop_assert_eq!(listed(&bench.text(&Grep::new(), input.clone())), paths);
        input["mode"] = json!("count");
        let counts = listed(&bench.text(&Grep::new(), input));
        let sum: usize = counts.iter().map(|l| l.rsplit_once(": ").unwrap().1.parse::<usize>().unwrap()).sum();
        prop_assert_eq!(sum, expected.len() - counts.len());
    }

    #[test]
    fn pages_join_up_to_the_whole(tree in tree(), limit in 1_usize..5, context in 0_usize..3) {
        let bench = bench(&tree);
        let hits = |text: &str| -> Vec<String> {
            let is_hit = |l: &&str| l.split_once(": ").is_some_and(|(n, _)| n.parse::<u64>().is_ok());
            text.lines().filter(is_hit).map(str::to_owned).collect()
        };
        let input = |offset: usize, limit: usize| json!({
            "pattern": "o|b", "offset": offset, "limit": limit, "context": context,
        });
        let whole = hits(&bench.text(&Grep::new(), input(0, 10_000)));
        let mut joined = Vec::new();
        for offset in (0..).step_by(limit) {
            let text = bench.text(&Grep::new(), input(offset, limit));
            joined.extend(hits(&text));
            prop_assert!(text.lines().count() <= 2 * limit + 2 * context * limit + 1);
            if !text.contains("continue with offset") {
                break;
            }
        }
        prop_assert_eq!(joined, whole);

        let all = listed(&bench.text(&Glob::new(), json!({"pattern": "**", "limit": 10_000})));
        let mut joined = Vec::new();
        for offset in (0..=all.len()).step_by(limit) {
            let text = bench.text(&Glob::new(), json!({"pattern": "**", "limit": limit, "offset": offset}));
            joined.extend(listed(&text).into_iter().filter(|line| !line.starts_with("Nothing at")));
        }
        prop_assert_eq!(joined, all);
    }

    #[test]
    fn no_pattern_makes_a_search_panic_or_overrun_its_cap(
        pattern in "\\PC{0,12}|[\\[\\](){}*?\\\\./!,^$|+a-]{0,16}",
        glob in "[\\[\\](){}*?\\\\./!,a-]{0,16}",
        cap in 0_usize..600,
    ) {
        let mut bench = Bench::new(&[("a/[a].js", "a\nb\n[a]\n"), ("a/b", "\\.a*\n"), ("(a)", "a\n")]);
        bench.cx.cap_bytes = cap;
        for context in [0, 2] {
            let input = json!({"pattern": pattern, "glob": glob, "context": context});
            if let Ok(text) = bench.run(&Grep::new(), input) {
                prop_assert!(text.len() <= cap.max(500), "{} bytes", text.len());
            }
        }
        let _ = bench.run(&Glob::new(), json!({"pattern": pattern}));
        let _ = bench.run(&Glob::new(), json!({"pattern": glob}));
    }
}
