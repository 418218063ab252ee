//! The overlay against a tree that is changed for real.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;

use super::kit::{Act, Cut, Node, Proposing, do_to, local, picture, planted, tree};

fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

/// Does the same to both, and finds them the same again and again.
fn follow(nodes: &[(String, Node)], acts: &[Act], paths: &[String]) {
    let proposing = Proposing::over(nodes);
    let before = tree(proposing.scratch.path(), true);
    let real = tempfile::tempdir().unwrap();
    let disk = local(&planted(&real, nodes));
    for (number, act) in acts.iter().enumerate() {
        let proposed = proposing.act(act);
        let done = do_to(disk.as_ref(), act, &mut |_| Ok(()));
        assert_eq!(proposed.is_ok(), done.is_ok(), "{act:?}: {proposed:?} and {done:?}");
        // Looking at everything costs far more than an act.
        if number % 4 != 3 && number + 1 < acts.len() {
            continue;
        }
        let (proposed, done) = (picture(proposing.fs.as_ref(), paths), picture(disk.as_ref(), paths));
        for (proposed, done) in proposed.iter().zip(&done) {
            assert_eq!(proposed, done, "after {act:?} of {acts:?} on {nodes:?}");
        }
    }
    assert_eq!(tree(proposing.scratch.path(), true), before, "nothing is touched");
    let applied = proposing.apply(proposing.disk.clone(), &[]).unwrap();
    assert_eq!(applied.failed, [], "{acts:?} on {nodes:?}");
    assert_eq!(tree(proposing.scratch.path(), false), tree(real.path(), false), "applied {acts:?} on {nodes:?}");
    assert!(!proposing.state.lock().unwrap().has_proposals());
}

/// Does the acts to proposals, cuts applying them at a moment, and finishes it; and does them for real.
fn cut(nodes: &[(String, Node)], acts: &[Act], moment: usize) {
    let proposing = Proposing::over(nodes);
    let real = tempfile::tempdir().unwrap();
    let disk = local(&planted(&real, nodes));
    for act in acts {
        let _ = proposing.act(act);
        let _ = do_to(disk.as_ref(), act, &mut |_| Ok(()));
    }
    let cut = Cut { inner: proposing.disk.clone(), left: Arc::new(AtomicUsize::new(moment)) };
    let was_cut = proposing.apply(Arc::new(cut), &[]).is_err();
    assert_eq!(was_cut, !proposing.state.lock().unwrap().applying.is_empty());
    let finished = proposing.finish();
    assert_eq!(finished.left, [], "{acts:?} on {nodes:?}, cut at {moment}");
    assert_eq!(tree(proposing.scratch.path(), false), tree(real.path(), false), "{acts:?} on {nodes:?} at {moment}");
    let state = proposing.state.lock().unwrap();
    assert!(!state.has_proposals() && state.applying.is_empty());
}

fn all_paths() -> Vec<String> {
    let mut paths: Vec<String> =
        [".", "a/../b", "l/../a", "a/b/../../l", "nb\u{a0}p", "nb p"].map(String::from).to_vec();
    for one in ["a", "b", "l", ".gitignore"] {
        paths.push(one.into());
        for two in ["a", "b", "l", ".gitignore"] {
            paths.push(format!("{one}/{two}"));
            paths.push(format!("{one}/{two}/a"));
            paths.push(format!("{one}/{two}/l"));
        }
    }
    paths
}

fn some_path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "l", "a", "b", ".gitignore"]);
    prop_oneof![
        12 => prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/")),
        1 => prop::sample::select(vec!["nb\u{a0}p", "nb p"]).prop_map(String::from),
    ]
}

fn some_content() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec!["", "one\n", "two\n", "b\n", "a/\n!b\n", "/a\nl\n", "*\n"])
        .prop_map(|c| c.as_bytes().to_vec())
}

fn some_node() -> impl Strategy<Value = Node> {
    prop_oneof![
        4 => some_content().prop_map(Node::File),
        1 => some_content().prop_map(Node::Script),
        2 => prop::sample::select(vec!["a", "b", "a/b", "../a", "l", "missing", "..", "../.."])
            .prop_map(|target| Node::Link(target.into())),
        2 => Just(Node::Dir),
    ]
}

/// What an ignore file that is a link says stays what the disk has there.
fn no_rules((path, node): &(String, Node)) -> bool {
    !path.ends_with(".gitignore") || !matches!(node, Node::Link(_))
}

fn some_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (some_path(), some_content()).prop_map(|(path, content)| Act::Write(path, content)),
        some_path().prop_map(Act::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn an_overlay_shows_what_the_disk_would_show_and_touches_nothing(
        nodes in prop::collection::vec((some_path(), some_node()).prop_filter("no ignore file that is a link", no_rules), 0..10),
        acts in prop::collection::vec(some_act(), 1..12),
    ) {
        follow(&nodes, &acts, &all_paths());
    }

    #[test]
    fn an_apply_that_was_cut_anywhere_is_finished_to_the_same_end(
        nodes in prop::collection::vec((some_path(), some_node()), 0..10),
        acts in prop::collection::vec(some_act(), 1..16),
        moment in 0_usize..12,
    ) {
        cut(&nodes, &acts, moment);
    }
}
