//! What the overlay promises whoever stages changes over it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use hames_tools::{Expect, FsError, WalkOptions};

use super::kit::{Act, Node, Proposing, hash, tree, walked};

fn proposing() -> Proposing {
    let file = |path: &str, content: &str| (path.to_owned(), Node::File(content.as_bytes().to_vec()));
    Proposing::over(&[file("a.txt", "one\n"), file("d/x.txt", "x\n"), ("l".into(), Node::Link("a.txt".into()))])
}

#[test]
fn a_proposal_that_nobody_takes_up_is_an_error_and_not_a_pretence() {
    let proposing = proposing();
    for act in [
        Act::Write("a.txt".into(), b"two\n".to_vec()),
        Act::Write("new.txt".into(), b"new\n".to_vec()),
        Act::Remove("a.txt".into()),
        Act::Remove("l".into()),
    ] {
        let done = super::kit::do_to(proposing.fs.as_ref(), &act, &mut |_| Ok(()));
        assert!(
            matches!(&done, Err(FsError::NotRecorded(text)) if text.contains("was not changed")),
            "{act:?}: {done:?}"
        );
        let refused = |_: &_| Err(FsError::NotRecorded("the log is full".into()));
        let done = super::kit::do_to(proposing.fs.as_ref(), &act, &mut { refused });
        assert!(matches!(&done, Err(FsError::NotRecorded(text)) if text == "the log is full"), "{act:?}: {done:?}");
    }
    assert!(!proposing.state.lock().unwrap().has_proposals());
}

#[test]
fn what_was_seen_must_still_be_there() {
    let proposing = proposing();
    proposing.act(&Act::Write("a.txt".into(), b"two\n".to_vec())).unwrap();
    let fs = proposing.fs.as_ref();
    let path = |text: &str| fs.resolve_entry(text).unwrap();
    for (name, expect) in [
        ("a.txt", hash(b"one\n")),
        ("a.txt", Expect::Absent),
        ("a.txt", Expect::Dir),
        ("new.txt", hash(b"")),
        ("d/x.txt", hash(b"y\n")),
    ] {
        let staged = fs.stage_write(&path(name), b"three\n", &expect, None);
        assert!(matches!(staged.err(), Some(FsError::Changed { .. })), "{name} {expect:?}");
    }
    for (name, expect) in [("a.txt", hash(b"one\n")), ("a.txt", Expect::Dir), ("d", hash(b"")), ("l", hash(b"b.txt"))] {
        let staged = fs.stage_remove(&path(name), &expect);
        assert!(matches!(staged.err(), Some(FsError::Changed { .. })), "{name} {expect:?}");
    }
    assert!(matches!(fs.stage_write(&path("d"), b"", &Expect::Absent, None).err(), Some(FsError::WrongKind { .. })));
    assert!(matches!(fs.stage_remove(&path("no"), &Expect::Dir).err(), Some(FsError::NotFound { .. })));
    for root in [".", ".."] {
        assert!(matches!(fs.stage_remove(&path(root), &Expect::Dir).err(), Some(FsError::Io { .. })));
    }
}

#[test]
fn a_name_that_is_no_text_stays_visible_and_is_not_proposed() {
    let proposing = proposing();
    let odd = proposing.disk_root().join(OsStr::from_bytes(b"odd\xff.txt"));
    std::fs::write(&odd, "x\n").unwrap();
    let before = tree(proposing.scratch.path(), true);
    proposing.act(&Act::Write("new.txt".into(), b"new\n".to_vec())).unwrap();
    assert!(walked(proposing.fs.as_ref(), ".", &WalkOptions::default()).contains("odd\u{fffd}.txt"));
    let mut path = proposing.fs.resolve("new.txt").unwrap();
    path.abs = odd;
    let staged = proposing.fs.stage_write(&path, b"y\n", &hash(b"x\n"), None);
    assert!(matches!(&staged.err(), Some(FsError::Io { reason, .. }) if reason.contains("not UTF-8")));
    assert_eq!(tree(proposing.scratch.path(), true), before);
}

#[test]
fn an_error_says_what_is_there_instead() {
    let proposing = proposing();
    proposing.act(&Act::Write("reading.md".into(), b"x".to_vec())).unwrap();
    proposing.act(&Act::Remove("a.txt".into())).unwrap();
    let fs = proposing.fs.as_ref();
    let said = |name: &str| fs.stat(&fs.resolve(name).unwrap()).unwrap_err().to_string();
    assert_eq!(said("readin.md"), "readin.md does not exist; did you mean reading.md?");
    assert_eq!(said("a.txt"), "a.txt does not exist", "nothing that is gone is suggested");
    assert_eq!(said("A.TXT"), "A.TXT does not exist");
    assert!(fs.resolve("reading.md/x").unwrap_err().to_string().contains("a part of the path is a file"));
}

#[test]
fn a_large_content_is_proposed_and_read_like_any_other() {
    let proposing = proposing();
    let large: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 253) as u8).collect();
    proposing.act(&Act::Write("large.bin".into(), large.clone())).unwrap();
    let path = proposing.fs.resolve("large.bin").unwrap();
    assert_eq!(proposing.fs.stat(&path).unwrap().size, 9_000_000);
    assert!(proposing.fs.read(&path, 10_000_000).unwrap() == large);
    assert!(matches!(proposing.fs.read(&path, 1_000), Err(FsError::TooLarge { .. })));
    proposing.apply(proposing.disk.clone(), &[]).unwrap();
    assert!(std::fs::read(proposing.disk_root().join("large.bin")).unwrap() == large);
}
