//! The tools over real folders against the simplest thing that could be right.
//!
//! Texts: an edit list over a file of any encoding and line end gives what plain replacement over its characters
//! gives, written the same way. Trees: any sequence of writes, edits and deletions leaves what the same sequence leaves
//! in a map, fails exactly where it fails there, and is recorded so that going back through the records gives the files
//! that were there before.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hames_protocol::FileChanged;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;
use serde_json::{Value, json};

use super::kit::Bench;
use crate::bench::cases;

fn config() -> Config {
    Config { cases: cases(), failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() }
}

/// Runs a tool to its end; says whether it was done.
fn done(bench: &Bench, tool: &str, input: Value) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(bench.run(tool, input)).map(|output| output.text).map_err(|failure| failure.text)
}

// Texts.

/// How a text lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Utf8,
    Utf8WithMark,
    Utf16Le,
    Utf16Be,
    Legacy,
}

fn encoded(text: &str, form: Form, crlf: bool) -> Vec<u8> {
    let text = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
    let wide = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
        mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
    };
    match form {
        Form::Utf8 => text.into_bytes(),
        Form::Utf8WithMark => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        Form::Utf16Le => wide(b"\xff\xfe", u16::to_le_bytes),
        Form::Utf16Be => wide(b"\xfe\xff", u16::to_be_bytes),
        // Each of the characters used here is one byte of Latin-1, with the same number.
        Form::Legacy => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect(),
    }
}

#[derive(Clone, Debug)]
struct Replacement {
    old: String,
    new: String,
    all: bool,
}

/// What an edit list makes of a text; nothing where one of its edits cannot be made.
fn replaced(text: &str, edits: &[Replacement]) -> Option<String> {
    edits.iter().try_fold(text.to_owned(), |text, Replacement { old, new, all }| {
        let places = text.char_indices().filter(|(at, _)| text[*at..].starts_with(old)).count();
        let can_be = !old.is_empty() && old != new && (places == 1 || (*all && places > 1));
        can_be.then(|| text.replace(old, new))
    })
}

/// Few different pieces, so that searches hit, often more than once; all of them exist in every encoding.
fn pieces(most: usize) -> impl Strategy<Value = String> {
    let piece = select(vec!["a", "b", "ab", "é", "ß", "\n", "\n\n", " ", "\t", "$1", "x = 1"]);
    prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

/// A text and edits of it, most of whose search texts are cut from it.
fn edited_text() -> impl Strategy<Value = (String, Vec<Replacement>)> {
    let cut = (any::<Index>(), 1..6usize);
    let edit = (prop::option::weighted(0.8, cut), pieces(4), pieces(5), prop::bool::weighted(0.6));
    (pieces(30), prop::collection::vec(edit, 1..4)).prop_map(|(text, edits)| {
        let letters: Vec<char> = text.chars().collect();
        let replacement = |(cut, other, new, all): (Option<(Index, usize)>, String, String, bool)| {
            let old = match cut {
                Some((from, length)) if !letters.is_empty() => {
                    letters[from.index(letters.len())..].iter().take(length).collect()
                }
                _ => other,
            };
            Replacement { old, new, all }
        };
        let edits = edits.into_iter().map(replacement).collect();
        (text, edits)
    })
}

fn forms() -> impl Strategy<Value = (Form, bool)> {
    let forms = vec![Form::Utf8, Form::Utf8WithMark, Form::Utf16Le, Form::Utf16Be, Form::Legacy];
    (select(forms), any::<bool>())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_edit_list_makes_of_any_file_what_plain_replacement_makes_of_its_text(
        (text, edits) in edited_text(), (form, crlf) in forms()
    ) {
        // A legacy file is told by its bytes beyond ASCII, CRLF by being there.
        prop_assume!(form != Form::Legacy || !text.is_ascii());
        prop_assume!(!crlf || text.contains('\n'));
        let bench = Bench::new();
        let before = encoded(&text, form, crlf);
        bench.file("f", &before);
        let list: Vec<Value> = edits
            .iter()
            .map(|edit| json!({"old_string": edit.old, "new_string": edit.new, "replace_all": edit.all}))
            .collect();
        let said = done(&bench, "Edit", json!({"path": "f", "edits": list}));
        let after = bench.bytes("f");
        match replaced(&text, &edits) {
            Some(wanted) if wanted == text => {
                prop_assert!(said.is_err_and(|said| said.contains("no change")));
                prop_assert_eq!(after, before);
            }
            // Edits one by one may take the last line end, or the last letter that told the encoding, and put others
            // in: what is made of those is no longer a matter of the file.
            Some(_) if crlf && lost_its_line_ends(&text, &edits) => {}
            Some(wanted) => {
                prop_assert!(said.is_ok(), "{:?}", said);
                prop_assert_eq!(after.escape_ascii().to_string(), encoded(&wanted, form, crlf).escape_ascii().to_string());
            }
            None => {
                prop_assert!(said.is_err(), "{:?}", said);
                prop_assert_eq!(after, before);
            }
        }
    }
}

/// Whether at some point of an edit list the text has no line end left.
fn lost_its_line_ends(text: &str, edits: &[Replacement]) -> bool {
    (0..edits.len()).any(|made| replaced(text, &edits[..made]).is_some_and(|text| !text.contains('\n')))
}

// Trees.

/// Names of which paths are made: few, so that a path is a file, a folder and nothing in turn.
fn paths() -> impl Strategy<Value = String> {
    let spelled = select(vec!["", "", "", "./", "a/../"]);
    (spelled, prop::collection::vec(select(vec!["a", "b", "c"]), 1..4))
        .prop_map(|(prefix, names)| format!("{prefix}{}", names.join("/")))
}

#[derive(Clone, Debug)]
enum Step {
    Write(String, String),
    Replace(String, Replacement),
    Delete(String, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let content = || select(vec!["", "one\n", "one two\n", "two\r\nthree\r\n", "no end"]);
    let word = || select(vec!["one", "two", "three", "o", "\n"]);
    let step = prop_oneof![
        4 => (paths(), content()).prop_map(|(path, content)| Step::Write(path, content.into())),
        3 => (paths(), word(), word(), any::<bool>()).prop_map(|(path, old, new, all)| {
            Step::Replace(path, Replacement { old: old.into(), new: new.into(), all })
        }),
        3 => (paths(), any::<bool>()).prop_map(|(path, recursive)| Step::Delete(path, recursive)),
    ];
    prop::collection::vec(step, 1..25)
}

/// A tree as a map: folders hold nothing, files their content.
type Tree = BTreeMap<String, Option<String>>;

fn is_folder(tree: &Tree, path: &str) -> bool {
    path.is_empty() || tree.get(path) == Some(&None)
}

fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// The path without its spelling: `..` goes back by the text, whatever lies there.
fn meant(path: &str) -> &str {
    path.strip_prefix("a/../").or(path.strip_prefix("./")).unwrap_or(path)
}

/// Makes the step in the map. Says whether it can be made.
fn step(tree: &mut Tree, step: &Step) -> bool {
    match step {
        Step::Write(path, content) => {
            let path = meant(path);
            if is_folder(tree, path) || above(path).any(|above| matches!(tree.get(above), Some(Some(_)))) {
                return false;
            }
            for above in above(path) {
                tree.insert(above.to_owned(), None);
            }
            // A file whose lines all end in CRLF keeps them where the content has only LF.
            let old = tree.get(path).cloned().flatten();
            let crlf = old.is_some_and(|old| old.contains("\r\n") && !old.replace("\r\n", "").contains('\n'));
            let content = if crlf && !content.contains('\r') { content.replace('\n', "\r\n") } else { content.clone() };
            tree.insert(path.to_owned(), Some(content));
            true
        }
        Step::Replace(path, edit) => {
            let path = meant(path);
            let Some(Some(text)) = tree.get(path) else { return false };
            let crlf = text.contains("\r\n");
            let Some(new) = replaced(&text.replace("\r\n", "\n"), std::slice::from_ref(edit)) else { return false };
            let new = if crlf { new.replace('\n', "\r\n") } else { new };
            tree.insert(path.to_owned(), Some(new));
            true
        }
        Step::Delete(path, recursive) => {
            let path = meant(path);
            let below = format!("{path}/");
            let holds = tree.keys().any(|key| key.starts_with(&below));
            if !tree.contains_key(path) || (holds && !recursive) {
                return false;
            }
            tree.retain(|key, _| key != path && !key.starts_with(&below));
            true
        }
    }
}

fn on_disk(root: &Path) -> Tree {
    let mut tree = Tree::new();
    for name in super::kit::tree(root) {
        let content = (!name.ends_with('/')).then(|| std::fs::read_to_string(root.join(&name)).unwrap());
        tree.insert(name.trim_end_matches('/').to_owned(), content);
    }
    tree
}

fn files(tree: &Tree) -> Tree {
    tree.iter()
        .filter(|(_, content)| content.is_some())
        .map(|(path, content)| (path.clone(), content.clone()))
        .collect()
}

/// Goes back through what was recorded.
fn rewound(bench: &Bench, mut tree: Tree, changes: &[FileChanged]) -> Tree {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let root = std::fs::canonicalize(bench.path("")).unwrap();
    for change in changes.iter().rev() {
        let path = Path::new(&change.path).strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let hash = |content: &str| blake3::hash(content.as_bytes()).to_hex().to_string();
        let now = tree.get(&path).cloned().flatten().map(|content| hash(&content));
        assert_eq!(now, change.after, "{path}: what is there is what was left");
        let before = change.before.as_ref().map(|before| runtime.block_on(bench.blob(&before.hash)));
        match before {
            Some(content) => drop(tree.insert(path, Some(String::from_utf8(content).unwrap()))),
            None => drop(tree.remove(&path)),
        }
    }
    files(&tree)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_steps_leave_what_they_leave_in_a_map_and_can_be_gone_back_through(first in steps(), then in steps()) {
        let bench = Bench::new();
        let mut tree = Tree::new();
        let make = |tree: &mut Tree, steps: &[Step]| {
            for made in steps {
                let before = tree.clone();
                let can_be = step(tree, made);
                let said = match made {
                    Step::Write(path, content) => done(&bench, "Write", json!({"path": path, "content": content})),
                    Step::Replace(path, edit) => done(
                        &bench,
                        "StrReplace",
                        json!({"path": path, "old_string": edit.old, "new_string": edit.new, "replace_all": edit.all}),
                    ),
                    Step::Delete(path, recursive) => {
                        done(&bench, "Delete", json!({"path": path, "recursive": recursive}))
                    }
                };
                prop_assert_eq!(said.is_ok(), can_be, "{:?} in {:?}: {:?}", made, before, said);
                prop_assert_eq!(&on_disk(&bench.path("")), &*tree, "{:?}", made);
            }
            Ok(())
        };
        make(&mut tree, &first)?;
        let (middle, recorded) = (files(&tree), bench.changes().len());
        // A mode of its own is kept by every change of the file.
        let marked = middle.keys().next().cloned();
        if let Some(marked) = &marked {
            std::fs::set_permissions(bench.path(marked), std::fs::Permissions::from_mode(0o740)).unwrap();
        }
        make(&mut tree, &then)?;
        let changes = &bench.changes()[recorded..];
        prop_assert_eq!(rewound(&bench, tree, changes), middle);
        if let Some(marked) = marked
            && let Some(change) = changes.iter().find(|change| change.path.ends_with(&format!("/w/{marked}")))
        {
            prop_assert_eq!(change.mode, Some(0o740));
        }
    }
}
