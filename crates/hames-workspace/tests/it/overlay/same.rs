//! The overlay against a tree that is changed for real.

use proptest::prelude::*;

use super::kit::{Act, Node, Proposing, do_to, local, picture, planted, tree};

fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

/// Does the same to both, and finds them the same again and again.
fn follow(nodes: &[(String, Node)], acts: &[Act], paths: &[String]) -> Proposing {
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
    let same = tree(real.path(), false) == tree(proposing.scratch.path(), false);
    let rights = |act: &Act| matches!(act, Act::Remove(_));
    if !acts.iter().any(rights) {
        assert_eq!(same, !proposing.state.lock().unwrap().has_proposals());
    }
    proposing
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
}
