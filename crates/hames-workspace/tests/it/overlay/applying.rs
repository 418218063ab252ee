//! Applying and discarding, where something speaks against it.

use std::os::unix::fs::{PermissionsExt, symlink};

use hames_protocol::ChangesDiscarded;
use hames_workspace::files::ApplyError;

use super::kit::{Act, Folding, Node, Proposing, session, tree};

fn file(path: &str, content: &str) -> (String, Node) {
    (path.into(), Node::File(content.as_bytes().to_vec()))
}

fn write(path: &str, content: &str) -> Act {
    Act::Write(path.into(), content.as_bytes().to_vec())
}

fn remove(path: &str) -> Act {
    Act::Remove(path.into())
}

fn proposing(nodes: &[(String, Node)], acts: &[Act]) -> Proposing {
    let proposing = Proposing::over(nodes);
    for act in acts {
        proposing.act(act).unwrap();
    }
    proposing
}

/// What refuses the whole set, by path from the workspace; the disk has to stay as it is.
fn refused(proposing: &Proposing) -> Vec<String> {
    let before = tree(proposing.scratch.path(), true);
    let state = proposing.state.lock().unwrap().clone();
    let Err(ApplyError::Refused(mismatches)) = proposing.apply(proposing.disk.clone(), &[]) else {
        panic!("nothing was refused");
    };
    assert_eq!(tree(proposing.scratch.path(), true), before);
    assert_eq!(*proposing.state.lock().unwrap(), state, "nothing is recorded");
    let root = format!("{}/", state.folder);
    mismatches.iter().map(|m| format!("{}: {}", m.path.trim_start_matches(&root), m.reason)).collect()
}

#[test]
fn whatever_was_changed_meanwhile_refuses_the_whole_set_and_is_named() {
    let nodes = [
        file("a", "old\n"),
        file("b", "old\n"),
        file("d/x", "x\n"),
        file("d/y", "y\n"),
        ("l".into(), Node::Link("a".into())),
        file("other", "untouched\n"),
    ];
    let acts = [
        write("a", "new\n"),
        remove("b"),
        remove("d/x"),
        remove("d/y"),
        remove("d"),
        remove("l"),
        write("l", "a file\n"),
        write("n/new", "new\n"),
    ];
    type Meddle = fn(&std::path::Path);
    let cases: [(Meddle, &[&str]); 13] = [
        (|w| std::fs::write(w.join("a"), "else\n").unwrap(), &["a: its content has changed since"]),
        (|w| std::fs::remove_file(w.join("a")).unwrap(), &["a: a file was there, and it is gone"]),
        (|w| std::fs::write(w.join("b"), "old").unwrap(), &["b: its content has changed since"]),
        (|w| std::fs::write(w.join("d/z"), "").unwrap(), &["d: the folder holds z, which is not to be removed"]),
        (
            |w| std::fs::write(w.join("d/x"), "else").unwrap(),
            &["d: the folder holds x, which cannot be removed", "d/x: its content has changed since"],
        ),
        (
            |w| {
                std::fs::remove_file(w.join("l")).unwrap();
                symlink("b", w.join("l")).unwrap();
            },
            &["l: the link leads elsewhere since"],
        ),
        (
            |w| {
                std::fs::remove_file(w.join("l")).unwrap();
                std::fs::write(w.join("l"), "somebody's").unwrap();
            },
            &["l: a link was there, and now a file is"],
        ),
        (
            |w| {
                std::fs::create_dir(w.join("n")).unwrap();
                std::fs::write(w.join("n/new"), "somebody's").unwrap();
            },
            &["n/new: nothing was there, and now a file is"],
        ),
        (
            |w| std::fs::write(w.join("n"), "somebody's").unwrap(),
            &["n/new: a part of the path is a file, not a folder", "n: nothing was there, and now a file is"],
        ),
        (
            |w| symlink("d", w.join("n")).unwrap(),
            &[
                "n/new: it leads through too many links, or one appeared on its way meanwhile",
                "n: nothing was there, and now a link is",
            ],
        ),
        (
            |w| {
                std::fs::remove_file(w.join("a")).unwrap();
                std::fs::create_dir(w.join("a")).unwrap();
            },
            &["a: a file was there, and now a folder is"],
        ),
        (
            |w| {
                std::fs::write(w.join("a"), "1").unwrap();
                std::fs::write(w.join("b"), "2").unwrap();
            },
            &["a: its content has changed since", "b: its content has changed since"],
        ),
        (
            |w| {
                std::fs::remove_file(w.join("a")).unwrap();
                symlink("other", w.join("a")).unwrap();
            },
            &["a: a file was there, and now a link is"],
        ),
    ];
    for (meddle, expected) in cases {
        let proposing = proposing(&nodes, &acts);
        meddle(proposing.disk_root());
        assert_eq!(refused(&proposing), expected);
    }
}

#[test]
fn what_is_on_disk_already_as_proposed_speaks_against_nothing() {
    let nodes = [file("a", "old\n"), file("b", "old\n"), file("d/x", "x\n")];
    let acts =
        [write("a", "new\n"), remove("b"), remove("d/x"), remove("d"), write("n/new", "new\n"), write("c", "c\n")];
    let proposing = proposing(&nodes, &acts);
    let root = proposing.disk_root();
    std::fs::write(root.join("a"), "new\n").unwrap();
    std::fs::remove_file(root.join("b")).unwrap();
    std::fs::remove_dir_all(root.join("d")).unwrap();
    std::fs::create_dir(root.join("n")).unwrap();
    std::fs::write(root.join("n/new"), "new\n").unwrap();
    let applied = proposing.apply(proposing.disk.clone(), &[]).unwrap();
    assert_eq!(applied.failed, []);
    assert!(!proposing.state.lock().unwrap().has_proposals());
    assert_eq!(std::fs::read_to_string(root.join("c")).unwrap(), "c\n");
}

#[test]
fn a_right_that_is_missing_is_missed_when_it_is_proposed_and_again_when_it_is_applied() {
    if rustix::process::geteuid().is_root() {
        println!("not tested as root, who may do anything");
        return;
    }
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let proposing =
        proposing(&[file("a", "old\n"), file("d/x", "x\n"), file("d/y", "y\n")], &[write("a", "new\n"), remove("d/x")]);
    let folder = proposing.disk_root().join("d");
    set(&folder, 0o555);
    set(&proposing.disk_root().join("d/y"), 0o444);
    assert_eq!(refused(&proposing), ["d/x: permission denied"]);
    for act in [write("d/new", ""), write("d/e/new", ""), write("d/y", "z\n"), remove("d/y")] {
        let refused = proposing.act(&act).unwrap_err().to_string();
        assert!(
            refused.contains("permission denied") || refused.contains("the file is read-only"),
            "{act:?}: {refused}"
        );
    }
    set(&folder, 0o755);
    proposing.act(&write("d/new", "")).unwrap();
    assert_eq!(proposing.apply(proposing.disk.clone(), &[]).unwrap().failed, []);
}

#[test]
fn a_large_set_is_applied_whole() {
    let nodes: Vec<_> = (0..300).map(|n| file(&format!("d{}/f{n}", n % 7), "old\n")).collect();
    let acts: Vec<_> = (0..300)
        .map(|n| match n % 3 {
            0 => write(&format!("d{}/f{n}", n % 7), "new\n"),
            1 => remove(&format!("d{}/f{n}", n % 7)),
            _ => write(&format!("n{}/f{n}", n % 7), "made\n"),
        })
        .collect();
    let proposing = proposing(&nodes, &acts);
    let applied = proposing.apply(proposing.disk.clone(), &[]).unwrap();
    assert_eq!((applied.paths.len(), applied.failed), (307, vec![]), "300 files and 7 new folders");
    for n in 0..300 {
        let read = |at: String| std::fs::read_to_string(proposing.disk_root().join(at)).ok();
        let (old, new) = (read(format!("d{}/f{n}", n % 7)), read(format!("n{}/f{n}", n % 7)));
        let expected = match n % 3 {
            0 => (Some("new\n".to_owned()), None),
            1 => (None, None),
            _ => (Some("old\n".to_owned()), Some("made\n".to_owned())),
        };
        assert_eq!((old, new), expected, "{n}");
    }
}

#[test]
fn content_that_is_lost_refuses_the_set() {
    let proposing = proposing(&[file("a", "old\n")], &[write("a", "new\n"), write("b", "b\n")]);
    let mut state = proposing.state.lock().unwrap().clone();
    for proposal in state.proposals.values_mut().take(1) {
        proposal.content.as_mut().unwrap().hash = "0".repeat(64);
    }
    *proposing.state.lock().unwrap() = state;
    let said = refused(&proposing);
    assert!(said.len() == 1 && said[0].starts_with("a: ") && said[0].contains("there is no blob"), "{said:?}");
}

#[test]
fn what_somebody_made_as_it_was_proposed_is_settled_and_the_rest_stays() {
    let acts = [write("a", "new\n"), write("n/m/x", "x\n"), remove("b"), write("c", "c\n")];
    let proposing = proposing(&[file("a", "old\n"), file("b", "b\n")], &acts);
    let root = proposing.disk_root().to_owned();
    std::fs::create_dir_all(root.join("n/m")).unwrap();
    for (path, content) in [("a", "new\n"), ("n/m/x", "x\n"), ("c", "something else\n")] {
        std::fs::write(root.join(path), content).unwrap();
    }
    std::fs::remove_file(root.join("b")).unwrap();
    let before = tree(proposing.scratch.path(), true);
    let changes = hames_workspace::files::Changes::new(session(), proposing.disk.clone(), proposing.blobs.clone());
    let emit = Folding(proposing.state.clone());
    for expected in [&["a", "b", "n", "n/m", "n/m/x"][..], &[]] {
        let state = proposing.state.lock().unwrap().clone();
        let settled = proposing.runtime.block_on(changes.settle_made(&state, &emit)).unwrap();
        assert_eq!(settled, expected.iter().map(|path| root.join(path).display().to_string()).collect::<Vec<_>>());
        let state = proposing.state.lock().unwrap();
        assert_eq!(state.open_changes().collect::<Vec<_>>(), [root.join("c").to_str().unwrap()]);
    }
    assert_eq!(tree(proposing.scratch.path(), true), before);
    // What is left does not fit, and that is said once.
    let refused = proposing.apply(proposing.disk.clone(), &[]).unwrap_err();
    assert_eq!(refused.to_string(), "nothing was applied: 1 change does not fit the disk any more");
}

#[test]
fn discarding_looks_at_no_disk_and_forgets_what_was_proposed() {
    let proposing = proposing(&[file("a", "old\n")], &[write("a", "new\n"), write("n/m/x", "x\n"), remove("n/m/x")]);
    let before = tree(proposing.scratch.path(), true);
    let state = proposing.state.lock().unwrap().clone();
    let changes = hames_workspace::files::Changes::new(session(), proposing.disk.clone(), proposing.blobs.clone());
    let emit = Folding(proposing.state.clone());
    let discarded = proposing.runtime.block_on(changes.discard(&state, &[], &emit)).unwrap();
    assert_eq!(discarded.len(), 3, "the file, and two folders that were made");
    assert!(!proposing.state.lock().unwrap().has_proposals());
    assert_eq!(tree(proposing.scratch.path(), true), before);
    // Nothing is left that could be decided on.
    let state = proposing.state.lock().unwrap().clone();
    assert_eq!(proposing.runtime.block_on(changes.discard(&state, &[], &emit)).unwrap(), Vec::<String>::new());
    assert_eq!(proposing.apply(proposing.disk.clone(), &[]).unwrap().paths, Vec::<String>::new());
    proposing.fold(ChangesDiscarded { paths: vec!["/nothing".into()] });
}
