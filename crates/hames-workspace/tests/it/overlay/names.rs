//! Proposals for files that have several names.

use std::os::unix::fs::MetadataExt;

use hames_tools::FsError;
use hames_workspace::files::ApplyError;

use super::kit::{Act, Node, Proposing, hash, tree};

/// A workspace where `a` and `d/b` are one file, and `c` is another.
fn proposing() -> Proposing {
    let file = |path: &str| (path.to_owned(), Node::File(b"old\n".to_vec()));
    let proposing = Proposing::over(&[file("a"), file("c"), file("d/x")]);
    link(&proposing, "a", "d/b");
    proposing
}

fn link(proposing: &Proposing, from: &str, to: &str) {
    std::fs::hard_link(proposing.disk_root().join(from), proposing.disk_root().join(to)).unwrap();
}

fn write(path: &str, content: &str) -> Act {
    Act::Write(path.into(), content.as_bytes().to_vec())
}

fn remove(path: &str) -> Act {
    Act::Remove(path.into())
}

/// What the session sees at some paths; `-` where nothing is.
fn seen(proposing: &Proposing, paths: &[&str]) -> Vec<String> {
    let fs = &proposing.fs;
    let read = |path: &&str| match fs.read(&fs.resolve(path).unwrap(), 1000) {
        Ok(content) => {
            let opened = std::io::read_to_string(fs.open(&fs.resolve(path).unwrap()).unwrap()).unwrap();
            assert_eq!((opened.as_bytes(), opened.len() as u64), (&content[..], size(proposing, path)));
            opened
        }
        Err(FsError::NotFound { .. }) => "-".into(),
        Err(error) => panic!("{path}: {error}"),
    };
    paths.iter().map(read).collect()
}

fn size(proposing: &Proposing, path: &str) -> u64 {
    proposing.fs.stat(&proposing.fs.resolve(path).unwrap()).unwrap().size
}

/// The paths with proposals, from the workspace on.
fn proposed(proposing: &Proposing) -> Vec<String> {
    let state = proposing.state.lock().unwrap();
    let root = format!("{}/", state.folder);
    state.proposals.keys().map(|path| path.trim_start_matches(&root).to_owned()).collect()
}

#[test]
fn an_edit_under_one_name_is_seen_and_goes_on_under_the_others() {
    for (first, second) in [("a", "d/b"), ("d/b", "a")] {
        let proposing = proposing();
        let before = tree(proposing.scratch.path(), true);
        proposing.act(&write(first, "once\n")).unwrap();
        assert_eq!(seen(&proposing, &["a", "d/b", "c"]), ["once\n", "once\n", "old\n"]);
        // Who saw the file as it was has to read it again, under whichever name.
        let stale = proposing.fs.resolve(second).unwrap();
        let staged = proposing.fs.stage_write(&stale, b"lost\n", &hash(b"old\n"), None);
        assert!(matches!(staged.err(), Some(FsError::Changed { .. })));
        proposing.act(&write(second, "once\ntwice\n")).unwrap();
        assert_eq!(seen(&proposing, &["a", "d/b", "c"]), ["once\ntwice\n", "once\ntwice\n", "old\n"]);
        assert_eq!(proposed(&proposing), [first], "one file, one proposal");
        assert_eq!(tree(proposing.scratch.path(), true), before);
        let applied = proposing.apply(proposing.disk.clone(), &[]).unwrap();
        assert_eq!((applied.paths.len(), applied.failed.len()), (1, 0));
        for name in ["a", "d/b"] {
            let at = proposing.disk_root().join(name);
            assert_eq!(std::fs::read_to_string(&at).unwrap(), "once\ntwice\n");
            assert_eq!(at.metadata().unwrap().nlink(), 2, "the names stay one file");
        }
    }
}

#[test]
fn an_edit_that_is_taken_back_under_another_name_leaves_no_proposal() {
    let proposing = proposing();
    proposing.act(&write("a", "new\n")).unwrap();
    proposing.act(&write("d/b", "old\n")).unwrap();
    assert_eq!(proposed(&proposing), Vec::<String>::new());
}

#[test]
fn names_go_one_by_one_and_the_edit_stays_with_one_that_is_left() {
    let proposing = proposing();
    proposing.act(&write("a", "new\n")).unwrap();
    let Err(FsError::Io { reason, .. }) = proposing.act(&remove("a")) else { panic!("the edit would be lost") };
    assert!(reason.contains("has other names too"), "{reason}");
    proposing.act(&remove("d/b")).unwrap();
    assert_eq!(seen(&proposing, &["a", "d/b"]), ["new\n", "-"]);
    // A file that is made in a name's place is another one.
    proposing.act(&write("d/b", "another\n")).unwrap();
    assert_eq!(seen(&proposing, &["a", "d/b"]), ["new\n", "another\n"]);
    proposing.act(&remove("d/b")).unwrap();
    let applied = proposing.apply(proposing.disk.clone(), &[]).unwrap();
    assert_eq!((applied.paths.len(), applied.failed.len()), (2, 0), "{applied:?}");
    assert_eq!(std::fs::read_to_string(proposing.disk_root().join("a")).unwrap(), "new\n");
    assert!(!proposing.disk_root().join("d/b").exists());
}

#[test]
fn a_removed_name_takes_nothing_from_the_others() {
    let proposing = proposing();
    proposing.act(&remove("a")).unwrap();
    assert_eq!(seen(&proposing, &["a", "d/b"]), ["-", "old\n"]);
    proposing.act(&write("d/b", "new\n")).unwrap();
    assert_eq!(seen(&proposing, &["a", "d/b"]), ["-", "new\n"]);
    proposing.apply(proposing.disk.clone(), &[]).unwrap();
    assert!(!proposing.disk_root().join("a").exists());
    assert_eq!(std::fs::read_to_string(proposing.disk_root().join("d/b")).unwrap(), "new\n");
}

#[test]
fn two_proposals_for_what_became_one_file_are_not_applied_together() {
    let proposing = proposing();
    proposing.act(&write("c", "of c\n")).unwrap();
    proposing.act(&write("d/x", "of x\n")).unwrap();
    std::fs::remove_file(proposing.disk_root().join("d/x")).unwrap();
    link(&proposing, "c", "d/x");
    let before = tree(proposing.scratch.path(), true);
    let Err(ApplyError::Refused(wrong)) = proposing.apply(proposing.disk.clone(), &[]) else { panic!() };
    assert!(wrong.len() == 1 && wrong[0].path.ends_with("/d/x"), "{wrong:?}");
    assert!(wrong[0].reason.contains("it is one file with"), "{wrong:?}");
    assert_eq!(tree(proposing.scratch.path(), true), before);
    assert_eq!(proposed(&proposing), ["c", "d/x"], "both stay proposed");
}
