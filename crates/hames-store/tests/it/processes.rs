//! Several processes on one home.

use std::collections::BTreeSet;

use hames_protocol::*;
use hames_store::Store;

use crate::kit::*;

const EVENTS_EACH: usize = 5000;

#[test]
fn two_processes_append_five_thousand_events_each() {
    let home = Home::new();
    let shared = home.session("shared").id;
    let own: Vec<SessionId> = ["a", "b"].map(|name| home.session(name).id).into();
    let start = |id: &SessionId, name: &str| {
        let task = format!("{shared} {id} {name}");
        helper("processes::helper_appends", home.path(), &task).spawn().unwrap()
    };
    let mut children = [start(&own[0], "a"), start(&own[1], "b")];
    for child in &mut children {
        drop(child.stdin.take());
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    // Half of each one's events went to a session of its own, half to one that both write.
    for (id, expected) in [(&own[0], EVENTS_EACH / 2), (&own[1], EVENTS_EACH / 2), (&shared, EVENTS_EACH)] {
        let read = home.read(id);
        assert_eq!(read.len(), expected + 1);
        assert!(read.iter().zip(1..).all(|(e, seq)| e.seq == Some(seq)));
        assert_eq!(texts(&read[1..]).into_iter().collect::<BTreeSet<_>>().len(), expected);
    }
    assert_eq!(home.store().check().unwrap().integrity, Ok(()));
}

#[test]
#[ignore = "a process started by the test above"]
fn helper_appends() {
    let Some((home, task)) = helper_task() else { return };
    let [shared, own, name] = task.split(' ').collect::<Vec<_>>()[..] else { panic!() };
    let (shared, own): (SessionId, SessionId) = (shared.into(), own.into());
    let store = Store::open(&home).unwrap().store;
    let mut next = 2;
    for n in 0..EVENTS_EACH / 2 {
        append(&store, &own, n as u64 + 2, vec![user(&format!("{name} own {n}"))]).unwrap();
        loop {
            match append(&store, &shared, next, vec![user(&format!("{name} shared {n}"))]) {
                Ok(_) => break next += 1,
                Err(LogError::Conflict { found, .. }) => next = found,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    use std::io::BufRead;
    let home = Home::new();
    for round in 0..5 {
        let id = home.session("s").id;
        let mut child = helper("processes::helper_says_what_it_appended", home.path(), id.as_str()).spawn().unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = format!("SEQ {}", 20 + 37 * round);
        let mut last = 0;
        while let Some(Ok(line)) = lines.next() {
            if line == wanted {
                child.kill().unwrap();
            }
            // What was printed before the kill is still in the pipe.
            last = line.strip_prefix("SEQ ").map_or(last, |seq| seq.parse().unwrap());
        }
        child.wait().unwrap();
        assert!(home.read(&id).len() >= last, "printed {last}");
    }
}

#[test]
#[ignore = "a process started by the test above"]
fn helper_says_what_it_appended() {
    let Some((home, id)) = helper_task() else { return };
    let id: SessionId = id.into();
    let store = Store::open(&home).unwrap().store;
    for seq in 2.. {
        append(&store, &id, seq, vec![user("x")]).unwrap();
        println!("SEQ {seq}");
    }
}

#[test]
fn many_processes_may_open_a_new_home_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut children: Vec<_> =
        (0..6).map(|n| helper("processes::helper_creates", dir.path(), &n.to_string()).spawn().unwrap()).collect();
    for child in &mut children {
        drop(child.stdin.take());
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let opened = Store::open(dir.path()).unwrap();
    assert_eq!(opened.notices, Vec::<String>::new());
    let mut names: Vec<String> = opened.store.list(None).unwrap().into_iter().map(|s| s.name).collect();
    names.sort();
    assert_eq!(names, ["same", "same (2)", "same (3)", "same (4)", "same (5)", "same (6)"]);
}

#[test]
#[ignore = "a process started by the test above"]
fn helper_creates() {
    let Some((home, _)) = helper_task() else { return };
    let opened = Store::open(&home).unwrap();
    assert_eq!(opened.notices, Vec::<String>::new());
    opened.store.create("same", "/work".as_ref(), Settings::default(), 1, "t").unwrap();
}
