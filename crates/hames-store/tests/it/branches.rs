//! Branch: the beginning of a session as one of its own.

use hames_protocol::*;

use crate::kit::*;
use crate::story::*;

#[test]
fn a_branch_at_every_event_can_be_sent_and_has_its_own_life() {
    let home = Home::new();
    let story = story(&home);
    let log = home.read(&story.id);
    for up_to in 1..=log.len() as u64 {
        let (info, lease) = home.store().branch(&story.id, Some(up_to), None, 9000, "t").unwrap();
        let copy = home.read(&info.id);
        assert!(is_whole(&copy), "at {up_to}");
        let whole = items(&copy);
        assert_eq!(copy[0].event.type_name(), "session.created");
        let Some(place) = copy.iter().position(|e| e.event.type_name() == "session.branched") else {
            panic!("{up_to}")
        };
        let Event::SessionBranched(branched) = &copy[place].event else { panic!() };
        assert_eq!(branched.from, story.id);
        assert!(branched.up_to_seq <= up_to);
        for (copied, original) in copy[1..place].iter().zip(&log[1..]) {
            assert_eq!((copied.seq, &copied.event), (original.seq, &original.event));
            assert_eq!(copied.session.as_ref(), Some(&info.id));
        }
        if is_whole(&log[..up_to as usize]) {
            assert_eq!((branched.up_to_seq, copy.len() as u64), (up_to, up_to + 1));
            assert_eq!(whole, items(&log[..up_to as usize]));
        }
        let state = state(&copy);
        assert_eq!((state.grants.len(), state.pending.len()), (0, 0), "what was given to the other stays there");
        assert_eq!((state.settings.max_steps, state.folder.as_str()), (Some(7), "/work"));
        assert_eq!((state.name.as_str(), info.name.as_str()), (info.name.as_str(), state.name.as_str()));
        assert_eq!(info.last_seq, copy.last().unwrap().seq.unwrap());
        drop(lease);
        home.append(&info.id, info.last_seq + 1, vec![user("on")]).unwrap();
    }
    assert_eq!(home.read(&story.id), log, "the session itself is as it was");
    assert_eq!(home.store().check().unwrap().integrity, Ok(()));
}

#[test]
fn recall_works_in_a_branch_also_when_the_session_is_gone() {
    let home = Home::new();
    let story = story(&home);
    let (all, _a) = home.store().branch(&story.id, None, None, 9000, "t").unwrap();
    let (some, _b) = home.store().branch(&story.id, Some(story.second - 2), Some("Just the first"), 9000, "t").unwrap();
    assert_eq!(outputs(home.store(), &all.id), [1, 2, 3, 4]);
    assert_eq!(outputs(home.store(), &some.id), [1, 2]);
    assert_eq!((all.name.as_str(), some.name.as_str()), ("the renamed story (2)", "Just the first"));
    assert_eq!((all.turns, some.turns, some.first_line.as_str()), (3, 1, "first words"));
    assert_eq!(state(&home.read(&some.id)).blobs, 2);
    assert_eq!(state(&home.read(&some.id)).proposals.len(), 3, "as they were there");
    home.store().delete(&story.id, "t").unwrap();
    assert_eq!(outputs(home.store(), &all.id), [1, 2, 3, 4]);
    assert_eq!(home.store().search("second words", None, 9).unwrap()[0].session.id, all.id);
}

#[test]
fn a_branch_of_nothing_is_refused_and_one_of_a_gap_ends_before_it() {
    let home = Home::new();
    let story = story(&home);
    let last = home.store().last_seq(&story.id).unwrap();
    for nowhere in [0, last + 1, u64::MAX] {
        assert!(matches!(home.store().branch(&story.id, Some(nowhere), None, 1, "t"), Err(LogError::Invalid(_))));
    }
    assert!(matches!(home.store().branch(&"x".into(), None, None, 1, "t"), Err(LogError::NoSession(_))));
    assert_eq!(home.store().list(None).unwrap().len(), 1);
    let lease = home.store().lease(&story.id, "t").unwrap();
    home.store().cut(&lease, story.third, 5).unwrap();
    // Reading needs no lease; the seq lies in what was cut.
    let (branch, _lease) = home.store().branch(&story.id, Some(story.third + 1), None, 9, "t").unwrap();
    let copy = home.read(&branch.id);
    assert_eq!(items(&copy), items(&home.read(&story.id)));
    let (again, _lease) = home.store().branch(&branch.id, None, None, 9, "t").unwrap();
    assert_eq!(items(&home.read(&again.id)), items(&copy));
}
