//! Watching what another process writes.

use std::io::Write;

use hames_protocol::*;
use hames_store::{Moved, Store};

use crate::kit::*;

#[test]
#[ignore = "a process started by the test below"]
fn helper_appends_when_told() {
    let Some((home, task)) = helper_task() else { return };
    let store = Store::open(&home).unwrap().store;
    let id: SessionId = task.into();
    let _lease = store.lease(&id, "the helper").unwrap();
    let mut seq = 2;
    println!("READY");
    loop {
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).unwrap() == 0 {
            break;
        }
        append(&store, &id, seq, vec![user(line.trim())]).unwrap();
        seq += 1;
        println!("APPENDED");
    }
}

#[test]
fn what_another_process_appends_is_seen_at_the_next_look() {
    let home = Home::new();
    let (id, quiet) = (home.session("one").id, home.session("two").id);
    let mut child = helper("tails::helper_appends_when_told", home.path(), id.as_str()).spawn().unwrap();
    wait_for_line(&mut child, "READY");
    let held = home.store().holder(&id).unwrap();
    assert_eq!((held.pid, held.holder.as_str(), held.session), (child.id(), "the helper", id.clone()));
    assert_eq!(home.store().holder(&quiet), None);
    let mut tail = home.store().tail();
    let mut known = 1;
    assert_eq!(tail.poll(&[(id.clone(), 1), (quiet.clone(), 1)]).unwrap(), []);
    for n in 0..5 {
        writeln!(child.stdin.as_mut().unwrap(), "message {n}").unwrap();
        wait_for_line(&mut child, "APPENDED");
        let seen = tail.poll(&[(id.clone(), known), (quiet.clone(), 1)]).unwrap();
        assert_eq!(seen, [Moved { session: id.clone(), last_seq: Some(known + 1) }]);
        let new = wait(home.log().read(&id, known, 99)).unwrap();
        assert_eq!(texts(&new), [format!("message {n}")]);
        known += 1;
        assert_eq!(tail.poll(&[(id.clone(), known), (quiet.clone(), 1)]).unwrap(), []);
    }
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(home.store().holder(&id), None);
}

#[test]
fn a_look_asks_again_for_what_it_was_not_asked_before() {
    let home = Home::new();
    let ids = ["a", "b", "c"].map(|name| home.session(name).id);
    let mut tail = home.store().tail();
    assert_eq!(tail.poll(&[]).unwrap(), []);
    assert_eq!(tail.poll(&[(ids[0].clone(), 1)]).unwrap(), []);
    assert_eq!(tail.poll(&[(ids[1].clone(), 0)]).unwrap().len(), 1, "nobody wrote meanwhile, and this one is behind");
    home.append(&ids[2], 2, vec![user("x")]).unwrap();
    home.store().delete(&ids[0], "t").unwrap();
    let known: Vec<(SessionId, u64)> = ids.iter().map(|id| (id.clone(), 1)).collect();
    let gone = Moved { session: ids[0].clone(), last_seq: None };
    let ahead = Moved { session: ids[2].clone(), last_seq: Some(2) };
    assert_eq!(tail.poll(&known).unwrap(), [gone, ahead]);
    let strange: Vec<(SessionId, u64)> = ["", "../x", "\"]", "db"].iter().map(|id| (SessionId::from(*id), 0)).collect();
    assert_eq!(tail.poll(&strange).unwrap().len(), 4);
    assert_eq!(home.store().holder(&"../hames".into()), None);
}

#[test]
fn a_tail_goes_on_over_a_repair() {
    let home = Home::new();
    let id = home.session("one").id;
    let mut tail = home.store().tail();
    assert_eq!(tail.poll(&[(id.clone(), 1)]).unwrap(), []);
    home.append(&id, 2, (0..400).map(|n| answer(&format!("{n} {}", "x".repeat(3000)))).collect()).unwrap();
    home.sql().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    // Damage in the middle, met by a reader.
    let mut bytes = std::fs::read(home.database()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40_000].fill(0x55);
    std::fs::write(home.database(), bytes).unwrap();
    let read = wait(home.log().read(&id, 0, usize::MAX)).unwrap();
    assert_eq!(home.store().take_notices().len(), 1);
    let last = home.store().last_seq(&id).unwrap();
    assert_eq!(read.last().unwrap().seq, Some(last));
    home.append(&id, last + 1, vec![user("on")]).unwrap();
    assert_eq!(tail.poll(&[(id.clone(), last)]).unwrap(), [Moved { session: id, last_seq: Some(last + 1) }]);
}
