//! Leases.

use hames_protocol::LogError;
use hames_store::Store;

use crate::kit::*;

#[test]
fn a_lease_is_held_by_one_and_names_its_holder() {
    let home = Home::new();
    let (session, lease) = home.held("parser");
    let second = Store::open(home.path()).unwrap().store;
    let LogError::Busy(text) = second.lease(&session.id, "hames sessions rename").unwrap_err() else { panic!() };
    assert!(text.contains("\"parser\"") && text.contains("a test"), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    assert!(matches!(second.rename(&session.id, "x", 1, "t"), Err(LogError::Busy(_))));
    assert!(matches!(second.delete(&session.id, "t"), Err(LogError::Busy(_))));
    drop(lease);
    let lease = second.lease(&session.id, "an\nother\tone").unwrap();
    let LogError::Busy(text) = home.store().lease(&session.id, "t").unwrap_err() else { panic!() };
    assert!(text.contains("an other one"), "{text}");
    drop(lease);
    assert_eq!(second.rename(&session.id, "x", 1, "t").unwrap().name, "x");
}

#[test]
fn released_leases_leave_no_files() {
    let home = Home::new();
    let session = home.session("one");
    for _ in 0..3 {
        drop(home.store().lease(&session.id, "t").unwrap());
    }
    let locks: Vec<String> = std::fs::read_dir(home.path().join("locks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(locks, ["db.lock"]);
}

#[test]
fn there_is_no_lease_on_what_is_no_session() {
    let home = Home::new();
    for id in ["none", "", "..", "../db", "/etc/passwd", "db", "x\0y", "é"] {
        assert_eq!(home.store().lease(&id.into(), "t").unwrap_err(), LogError::NoSession(id.into()));
    }
}

#[test]
fn readers_do_not_need_the_lease() {
    let home = Home::new();
    let (session, _lease) = home.held("one");
    let second = Store::open(home.path()).unwrap().store;
    assert_eq!(second.list(None).unwrap().len(), 1);
    assert_eq!(wait(second.log().read(&session.id, 0, 9)).unwrap().len(), 1);
}

#[test]
fn a_killed_holder_holds_nothing() {
    let home = Home::new();
    let session = home.session("one");
    for _ in 0..3 {
        let mut child = helper("leases::helper_holds_a_lease", home.path(), session.id.as_str()).spawn().unwrap();
        wait_for_line(&mut child, "HELD");
        let LogError::Busy(text) = home.store().lease(&session.id, "t").unwrap_err() else { panic!() };
        assert!(text.contains(&child.id().to_string()) && text.contains("the helper"), "{text}");
        child.kill().unwrap();
        child.wait().unwrap();
        drop(home.store().lease(&session.id, "t").unwrap());
    }
}

#[test]
#[ignore = "a process started by the test above"]
fn helper_holds_a_lease() {
    let Some((home, id)) = helper_task() else { return };
    let store = Store::open(&home).unwrap().store;
    let _lease = store.lease(&id.as_str().into(), "the helper").unwrap();
    println!("HELD");
    let _ = std::io::stdin().read_line(&mut String::new());
}
