//! The fold of proposals, held against a tree that is simply changed.

#![allow(clippy::unwrap_used)] // helpers of tests fail like tests

use std::collections::BTreeMap;

use hames_protocol::*;
use proptest::prelude::*;

use crate::samples::user;

/// What stands at a path. A mode of `None` is what the system gives to a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File { hash: String, mode: Option<u32> },
    Link { target: String },
    Dir,
}

type Tree = BTreeMap<String, Node>;

#[derive(Clone, Debug)]
enum Act {
    Write { path: String, content: u8 },
    Remove { path: String },
}

fn parents(path: &str) -> Vec<String> {
    let mut parents: Vec<_> = path.match_indices('/').skip(1).map(|(at, _)| path[..at].to_owned()).collect();
    parents.retain(|parent| parent != "/w");
    parents
}

fn holds_something(tree: &Tree, folder: &str) -> bool {
    tree.keys().any(|path| path.starts_with(&format!("{folder}/")))
}

/// Changes the tree as a disk would be changed, and gives the event that proposes it.
fn act(disk: &Tree, tree: &mut Tree, act: &Act) -> Option<ChangeProposed> {
    let (Act::Write { path, .. } | Act::Remove { path }) = act;
    let base = disk.get(path).and_then(|node| match node {
        Node::File { hash, .. } => Some(hash.clone()),
        Node::Link { target } => Some(target.clone()),
        Node::Dir => None,
    });
    let mut change = ChangeProposed {
        call_id: "c".into(),
        path: path.clone(),
        base,
        content: None,
        mode: None,
        kind: ChangeKind::File,
        folders: vec![],
    };
    match act {
        Act::Write { content, .. } => {
            let parents = parents(path);
            if parents.iter().any(|parent| !matches!(tree.get(parent), None | Some(Node::Dir))) {
                return None;
            }
            change.mode = match tree.get(path) {
                None => None,
                Some(Node::File { mode, .. }) => *mode,
                Some(_) => return None,
            };
            change.folders = parents.into_iter().filter(|parent| !tree.contains_key(parent)).collect();
            tree.extend(change.folders.iter().map(|folder| (folder.clone(), Node::Dir)));
            let hash = format!("content {content}");
            tree.insert(path.clone(), Node::File { hash: hash.clone(), mode: change.mode });
            change.content = Some(BlobRef { hash, bytes: 1, dropped: 0, name: None });
        }
        Act::Remove { .. } => {
            change.kind = match tree.get(path)? {
                Node::File { mode, .. } => {
                    change.mode = *mode;
                    ChangeKind::File
                }
                Node::Link { .. } => ChangeKind::Link,
                Node::Dir if holds_something(tree, path) => return None,
                Node::Dir => ChangeKind::Dir,
            };
            tree.remove(path);
        }
    }
    Some(change)
}

/// What the disk would be.
fn would_be(disk: &Tree, state: &SessionState) -> Tree {
    let mut tree = disk.clone();
    tree.retain(|path, _| !state.proposals.contains_key(path));
    tree.extend(state.proposed_folders.iter().map(|folder| (folder.clone(), Node::Dir)));
    for (path, proposal) in &state.proposals {
        if let Some(content) = &proposal.content {
            tree.insert(path.clone(), Node::File { hash: content.hash.clone(), mode: proposal.mode });
        }
    }
    tree
}

fn fold(state: &mut SessionState, event: impl Into<Event>) {
    state.apply(&Envelope::detached(7, event.into()));
}

/// Folds what the acts propose, and checks after each that it stands for the tree and for nothing else.
fn follow(disk: &Tree, acts: &[Act]) -> SessionState {
    let (mut tree, mut state) = (disk.clone(), SessionState::default());
    for one in acts {
        let Some(change) = act(disk, &mut tree, one) else { continue };
        fold(&mut state, change);
        assert_eq!(would_be(disk, &state), tree, "after {one:?}");
        for (path, proposal) in &state.proposals {
            assert!(tree.get(path) != disk.get(path), "{path} is as it was: {proposal:?}");
            let base = disk.get(path);
            let agrees = match (proposal.kind, base) {
                (ChangeKind::File, Some(Node::File { hash, mode })) => {
                    (proposal.base.as_ref(), proposal.base_mode) == (Some(hash), *mode)
                }
                (ChangeKind::File, None) => proposal.is_new() && proposal.base_mode.is_none(),
                (ChangeKind::Link, Some(Node::Link { target })) => proposal.base.as_ref() == Some(target),
                (ChangeKind::Dir, Some(Node::Dir)) => proposal.base.is_none(),
                _ => false,
            };
            assert!(agrees, "{path}: {proposal:?} was made to {base:?}");
        }
        assert_eq!(tree == *disk, !state.has_proposals(), "{state:?}");
    }
    state
}

fn tree(nodes: &[(&str, Node)]) -> Tree {
    nodes.iter().map(|(path, node)| ((*path).to_owned(), node.clone())).collect()
}

fn file(content: u8) -> Node {
    Node::File { hash: format!("content {content}"), mode: Some(0o755) }
}

fn write(path: &str, content: u8) -> Act {
    Act::Write { path: path.into(), content }
}

fn remove(path: &str) -> Act {
    Act::Remove { path: path.into() }
}

#[test]
fn what_leads_back_is_no_proposal_and_everything_else_is_the_whole_difference() {
    let disk = tree(&[
        ("/w/f", file(1)),
        ("/w/l", Node::Link { target: "f".into() }),
        ("/w/d", Node::Dir),
        ("/w/d/x", file(1)),
    ]);
    let all = |acts: &[Act]| -> Vec<String> {
        let state = follow(&disk, acts);
        let changed = state.proposals.iter().map(|(path, p)| {
            let how = match (&p.content, p.is_new(), p.takes_a_place()) {
                (None, ..) => "-",
                (Some(_), true, _) => "+",
                (Some(_), false, true) => "!",
                (Some(_), false, false) => "~",
            };
            format!("{how}{path}")
        });
        changed.chain(state.proposed_folders.iter().map(|folder| format!("+{folder}/"))).collect()
    };
    for (acts, expected) in [
        (vec![write("/w/f", 2)], vec!["~/w/f"]),
        (vec![write("/w/f", 2), write("/w/f", 3), write("/w/f", 1)], vec![]),
        (vec![write("/w/n", 1)], vec!["+/w/n"]),
        (vec![write("/w/n", 1), remove("/w/n")], vec![]),
        (vec![remove("/w/f")], vec!["-/w/f"]),
        (vec![remove("/w/f"), write("/w/f", 2)], vec!["!/w/f"]),
        // The bits of the removed file went with it.
        (vec![remove("/w/f"), write("/w/f", 1)], vec!["!/w/f"]),
        (vec![remove("/w/l")], vec!["-/w/l"]),
        (vec![remove("/w/l"), write("/w/l", 1)], vec!["!/w/l"]),
        (vec![remove("/w/l"), write("/w/l", 1), remove("/w/l")], vec!["-/w/l"]),
        (vec![write("/w/n/m/x", 1)], vec!["+/w/n/m/x", "+/w/n/", "+/w/n/m/"]),
        (vec![write("/w/n/m/x", 1), remove("/w/n/m/x")], vec!["+/w/n/", "+/w/n/m/"]),
        (vec![write("/w/n/x", 1), remove("/w/n/x"), remove("/w/n")], vec![]),
        (vec![remove("/w/d/x"), remove("/w/d")], vec!["-/w/d", "-/w/d/x"]),
        (vec![remove("/w/d/x"), remove("/w/d"), write("/w/d/y", 1)], vec!["-/w/d/x", "+/w/d/y"]),
        (vec![remove("/w/d/x"), remove("/w/d"), write("/w/d/y", 1), remove("/w/d/y")], vec!["-/w/d/x"]),
        (vec![remove("/w/d/x"), remove("/w/d"), write("/w/d", 1)], vec!["!/w/d", "-/w/d/x"]),
        (vec![remove("/w/d/x"), remove("/w/d"), write("/w/d", 1), remove("/w/d")], vec!["-/w/d", "-/w/d/x"]),
        (vec![remove("/w/f"), write("/w/f/x", 1)], vec!["-/w/f", "+/w/f/x", "+/w/f/"]),
        (vec![remove("/w/f"), write("/w/f/x", 1), remove("/w/f/x"), remove("/w/f")], vec!["-/w/f"]),
    ] {
        assert_eq!(all(&acts), expected, "{acts:?}");
    }
}

#[test]
fn what_was_decided_on_is_open_no_more_and_is_told_until_the_next_message() {
    let disk = tree(&[("/w/f", file(1))]);
    let mut state = follow(&disk, &[write("/w/f", 2), write("/w/n/m/x", 1), write("/w/k", 1), write("/w/e/x", 1)]);
    fold(&mut state, ChangeProposed { content: None, base: None, ..removal("/w/e/x") });
    let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let started = paths(&["/w/f", "/w/n/m/x"]);
    fold(&mut state, Event::ChangesApplyStarted(ChangePaths { paths: started.clone() }));
    assert_eq!(state.applying, started);
    fold(&mut state, ChangesApplied { paths: paths(&["/w/f", "/w/n", "/w/n/m", "/w/n/m/x"]) });
    assert!(state.applying.is_empty());
    fold(&mut state, ChangesDiscarded { paths: paths(&["/w/k", "/w/e", "/w/unknown"]) });
    assert!(!state.has_proposals(), "{state:?}");
    // Folders that were made for a file are not told of; one that nothing is in is.
    assert_eq!(state.settled.applied, paths(&["/w/f", "/w/n/m/x"]));
    assert_eq!(state.settled.discarded, paths(&["/w/k", "/w/e"]));
    fold(&mut state, user("go on"));
    assert_eq!(state.settled, Settled::default());
}

#[test]
fn what_a_run_made_of_its_proposals_is_settled_and_not_told_as_a_persons_doing() {
    let mut state = follow(&tree(&[]), &[write("/w/a", 1), write("/w/b", 1)]);
    in_run(&mut state, "r", ChangesApplied { paths: vec!["/w/a".into()] });
    assert_eq!(state.open_changes().collect::<Vec<_>>(), ["/w/b"]);
    assert_eq!(state.settled, Settled::default());
}

/// One event of a run.
fn in_run(state: &mut SessionState, run: &str, event: impl Into<Event>) {
    let envelope = Envelope { run: Some(run.into()), ..Envelope::detached(0, event.into()) };
    state.apply(&envelope);
}

#[test]
fn a_run_that_ended_with_open_proposals_waits_for_one_decision() {
    let start = || RunStart {
        mode: Mode::Analyze,
        parallel: false,
        model: "p/m".parse().unwrap(),
        settings: Settings::default(),
        tools: vec![],
        instructions: vec![],
        skills: vec![],
    };
    let end = || RunDone { result: RunResult::Complete, exit_code: 0 };
    let one = || ChangeProposed { base: Some("h".into()), ..removal("/w/f") };
    let undecided = |decision: Event| {
        let mut state = SessionState::default();
        in_run(&mut state, "r-1", start());
        in_run(&mut state, "r-1", one());
        assert_eq!(state.undecided, None, "the run may still take it back");
        in_run(&mut state, "r-1", end());
        assert_eq!(state.undecided, Some("r-1".into()));
        fold(&mut state, SessionRenamed { name: "x".into() });
        assert!(state.undecided.is_some());
        fold(&mut state, decision);
        let has_proposals = state.has_proposals();
        (state.undecided.is_some(), has_proposals)
    };
    let paths = || vec!["/w/f".to_owned()];
    assert_eq!(undecided(ChangesKept { run: "r-1".into() }.into()), (false, true));
    assert_eq!(undecided(ChangesApplied { paths: paths() }.into()), (false, false));
    assert_eq!(undecided(ChangesDiscarded { paths: paths() }.into()), (false, false));
    assert_eq!(undecided(start().into()), (false, true));

    let mut state = SessionState::default();
    in_run(&mut state, "r-1", start());
    in_run(&mut state, "r-1", one());
    in_run(&mut state, "r-1", end());
    in_run(&mut state, "r-2", start());
    in_run(&mut state, "r-2", end());
    assert_eq!((state.undecided.clone(), state.has_proposals()), (None, true), "the second proposed nothing");
    in_run(&mut state, "r-3", start());
    in_run(&mut state, "r-3", removal("/w/new"));
    fold(&mut state, ChangesDiscarded { paths: paths() });
    in_run(&mut state, "r-3", end());
    assert_eq!(state.undecided, None, "nothing is open");
}

fn removal(path: &str) -> ChangeProposed {
    ChangeProposed {
        call_id: "c".into(),
        path: path.into(),
        base: None,
        content: None,
        mode: None,
        kind: ChangeKind::File,
        folders: vec![],
    }
}

#[test]
fn events_that_no_overlay_writes_leave_a_state_that_can_be_used() {
    let mut state = SessionState::default();
    for path in ["/w/a", "", "relative", "/w/a/"] {
        for kind in [ChangeKind::File, ChangeKind::Dir, ChangeKind::Link] {
            fold(&mut state, ChangeProposed { kind, ..removal(path) });
            fold(&mut state, ChangeProposed { kind, folders: vec![path.into()], ..removal(path) });
        }
    }
    let all: Vec<String> = state.proposals.keys().chain(&state.proposed_folders).cloned().collect();
    fold(&mut state, ChangesDiscarded { paths: all });
    assert!(!state.has_proposals());
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b"]), 1..4)
        .prop_map(|parts| format!("/w/{}", parts.join("/")))
}

fn some_disk() -> impl Strategy<Value = Tree> {
    let node = prop_oneof![
        3 => (0_u8..3).prop_map(file),
        1 => Just(Node::Link { target: "elsewhere".into() }),
        1 => Just(Node::Dir),
    ];
    prop::collection::vec((path(), node), 0..8).prop_map(|wanted| {
        let mut disk = Tree::new();
        for (path, node) in wanted {
            let parents = parents(&path);
            let fits = parents.iter().all(|parent| matches!(disk.get(parent), None | Some(Node::Dir)));
            if fits && !disk.contains_key(&path) {
                disk.extend(parents.into_iter().map(|parent| (parent, Node::Dir)));
                disk.insert(path, node);
            }
        }
        disk
    })
}

fn some_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (path(), 0_u8..3).prop_map(|(path, content)| Act::Write { path, content }),
        path().prop_map(|path| Act::Remove { path }),
    ]
}

fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn the_fold_of_any_acts_stands_for_the_tree_they_would_leave(
        disk in some_disk(),
        acts in prop::collection::vec(some_act(), 0..40),
    ) {
        follow(&disk, &acts);
    }
}
