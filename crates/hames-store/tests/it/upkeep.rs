//! What the database costs, and making it smaller.

use std::process::Command;

use hames_protocol::*;
use hames_store::Store;

use crate::kit::*;
use crate::story::*;

/// Says a lot, so that there is much to give back.
fn say_much(home: &Home, name: &str) -> SessionId {
    let id = home.session(name).id;
    let words = |n: usize| answer(&format!("number {n} {}", format!("{n:x} ").repeat(300)));
    home.append(&id, 2, (0..2000).map(words).collect()).unwrap();
    assert_eq!(home.store().search("number 1999", None, 5).unwrap().len(), 1);
    id
}

#[test]
fn a_vacuum_gives_back_what_was_deleted_and_loses_nothing() {
    let mut home = Home::new();
    let story = story(&home);
    let before = home.read(&story.id);
    let id = say_much(&home, "much");
    let full = home.store().stats().unwrap();
    assert!(full.search_bytes > 0 && full.wal_bytes > 0);
    assert_eq!((full.sessions, full.events), (2, before.len() as u64 + 2001));
    assert_eq!((full.row_blobs, full.file_blobs, full.file_blob_bytes), (5, 2, 200_000));
    home.store().delete(&id, "t").unwrap();
    let free = home.store().free_space().unwrap();
    assert!(free.free_bytes * 2 > free.bytes, "{free:?}");
    let done = home.store().vacuum(&[]).unwrap();
    assert_eq!(done.before_bytes, free.bytes);
    let after = home.store().stats().unwrap();
    assert_eq!(after.space.bytes, done.after_bytes);
    assert!(after.space.free_bytes == 0 && done.after_bytes * 2 < done.before_bytes, "{done:?}");
    assert_eq!(std::fs::metadata(home.database()).unwrap().len(), done.after_bytes);
    for _ in 0..2 {
        assert_eq!(home.read(&story.id), before);
        assert_eq!(outputs(home.store(), &story.id), [1, 2, 3, 4, 5]);
        assert_eq!(home.store().search("words", None, 9).unwrap().len(), 3);
        assert_eq!(home.store().check().unwrap().integrity, Ok(()));
        home.reopen();
    }
}

#[test]
fn a_vacuum_is_refused_with_who_it_is_while_anybody_holds_a_session() {
    let home = Home::new();
    let (session, lease) = home.held("mine");
    let LogError::Busy(text) = home.store().vacuum(&[]).unwrap_err() else { panic!() };
    assert!(text.contains("\"mine\"") && text.contains("a test"), "{text}");
    home.store().vacuum(std::slice::from_ref(&session.id)).unwrap();
    drop(lease);
    let mut child = helper("leases::helper_holds_a_lease", home.path(), session.id.as_str()).spawn().unwrap();
    wait_for_line(&mut child, "HELD");
    // Naming it idle does not help where it is somebody else's.
    let LogError::Busy(text) = home.store().vacuum(&[session.id]).unwrap_err() else { panic!() };
    assert!(text.contains("the helper") && text.contains(&child.id().to_string()), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    home.store().vacuum(&[]).unwrap();
}

#[test]
fn a_vacuum_goes_beside_readers_and_writers_of_other_processes() {
    let home = Home::new();
    let id = say_much(&home, "much");
    let second = Store::open(home.path()).unwrap().store;
    let mut tail = second.tail();
    assert_eq!(tail.poll(&[(id.clone(), 2001)]).unwrap(), []);
    let appending = std::thread::spawn({
        let second = second.clone();
        let id = id.clone();
        move || (0..50).for_each(|n| drop(append(&second, &id, 2002 + n, vec![user("on")]).unwrap()))
    });
    home.store().vacuum(&[]).unwrap();
    appending.join().unwrap();
    assert_eq!(second.last_seq(&id), Ok(2051));
    assert_eq!(tail.poll(&[(id, 2001)]).unwrap()[0].last_seq, Some(2051));
    assert_eq!(home.store().check().unwrap().integrity, Ok(()));
}

#[test]
fn blobs_that_nobody_names_go_and_those_an_event_names_stay() {
    let home = Home::new();
    let story = story(&home);
    let stray = home.path().join("blobs/ab");
    std::fs::create_dir_all(&stray).unwrap();
    std::fs::write(stray.join("c".repeat(62)), "left by a death").unwrap();
    // As after a repair that lost the references.
    home.sql().execute_batch("DELETE FROM blob_refs; DELETE FROM blob_names").unwrap();
    let before = home.read(&story.id);
    let done = home.store().vacuum(&[]).unwrap();
    assert_eq!(done.blobs_removed, 1, "the output that no event names");
    assert!(!stray.join("c".repeat(62)).exists());
    let blobs = before.iter().filter_map(|e| match &e.event {
        Event::ToolDone(done) => done.blob.clone(),
        Event::ChangeProposed(change) => change.content.clone(),
        _ => None,
    });
    for blob in blobs {
        let bytes = wait(home.store().blobs().get(&blob.hash, 0, 1 << 30)).unwrap();
        assert_eq!(bytes.len() as u64, blob.bytes);
    }
}

/// The whole of what reading may do, in another process, beside a run that is open.
#[test]
#[ignore = "a process started by the test below"]
fn helper_reads_everything() {
    let Some((home, id)) = helper_task() else { return };
    let id: SessionId = id.into();
    let store = Store::open(&home).unwrap().store;
    store.list(None).unwrap();
    store.page(&id, hames_store::PageAt::End, 50).unwrap();
    store.tail().poll(&[(id.clone(), 1)]).unwrap();
    store.export_whole(&id, u64::MAX, &mut Vec::new()).unwrap();
    wait(store.log().read(&id, 0, 99)).unwrap();
    wait(store.log().take_open(&id)).unwrap();
    store.stats().unwrap();
    assert!(store.holder(&id).is_some());
    println!("READ");
}

#[test]
fn a_reader_writes_nothing_into_a_session_whose_run_is_open() {
    let home = Home::new();
    let (session, _lease) = home.held("running");
    let id = session.id;
    home.append(&id, 2, vec![run_start("a/b", Mode::Build), user("go"), named_call("c")]).unwrap();
    let piece = OpenBlock { kind: OpenKind::Text, index: 0, name: None, text: "so far".into() };
    wait(home.log().save_open(&id, vec![piece.clone()])).unwrap();
    let before = home.read(&id);
    let mut command: Command = helper("upkeep::helper_reads_everything", home.path(), id.as_str());
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("READ"), "{output:?}");
    assert_eq!(home.read(&id), before);
    assert_eq!(wait(home.log().take_open(&id)).unwrap(), [piece]);
}
