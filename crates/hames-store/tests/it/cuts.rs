//! Cut: the tail goes, and what lives outside the transcript stays.

use hames_protocol::*;
use hames_store::Store;

use crate::kit::*;
use crate::story::*;

fn types(log: &[Envelope]) -> Vec<&str> {
    log.iter().map(|envelope| envelope.event.type_name()).collect()
}

#[test]
fn what_goes_is_the_message_and_everything_behind_it() {
    // Where, the first seq that goes, what closes the log behind session.cut, turns, first line, outputs.
    type Case = (fn(&Story) -> u64, u64, &'static [&'static str], u32, &'static str, &'static [u8]);
    let cases: [Case; 4] = [
        (|s| s.third, 30, &[], 2, "first words", &[1, 2, 3]),
        (|s| s.second, 17, &[], 1, "first words", &[1, 2]),
        (|s| s.steer, 12, &["done", "turn.done", "run.done"], 1, "first words", &[1, 2]),
        (|s| s.first, 2, &[], 0, "", &[]),
    ];
    for (at, from, closing, turns, first_line, kept) in cases {
        let mut home = Home::new();
        let story = story(&home);
        let before = home.read(&story.id);
        let last = before.len() as u64;
        assert_eq!(home.store().search("words", None, 99).unwrap().len(), 3);
        let lease = home.store().lease(&story.id, "t").unwrap();
        let done = home.store().cut(&lease, at(&story), 5000).unwrap();
        assert_eq!((done.from_seq, done.seq, done.removed), (from, last + 1, last + 1 - from));
        let after = home.read(&story.id);
        let (head, tail) = after.split_at(from as usize - 1);
        assert_eq!(head, &before[..from as usize - 1]);
        assert_eq!(types(tail), [&["session.cut"], closing].concat());
        assert!(tail.iter().zip(last + 1..).all(|(envelope, seq)| envelope.seq == Some(seq)));
        assert!(is_whole(&after), "{from}");
        assert_eq!(items(&after), items(&before)[..items(head).len()]);
        let info = home.store().session(&story.id).unwrap().unwrap();
        assert_eq!(done.session, info);
        assert_eq!(
            (info.turns, info.first_line.as_str(), info.name.as_str()),
            (turns, first_line, "the renamed story")
        );
        assert_eq!(info.last_seq, after.last().unwrap().seq.unwrap());
        assert_eq!(outputs(home.store(), &story.id), kept);
        let found = home.store().search("words", None, 99).unwrap();
        assert!(found.iter().all(|hit| hit.seq < from) && found.len() == turns as usize, "{found:?}");
        // It goes on, also after a restart.
        drop(lease);
        home.reopen();
        home.append(&story.id, info.last_seq + 1, vec![user("and words anew")]).unwrap();
        assert_eq!(home.store().search("anew", None, 9).unwrap().len(), 1);
        assert_eq!(home.store().check().unwrap().integrity, Ok(()));
    }
}

#[test]
fn what_lives_outside_the_transcript_stays_as_it_is() {
    for at in [|s: &Story| s.third, |s: &Story| s.second, |s: &Story| s.steer, |s: &Story| s.first] {
        let home = Home::new();
        let story = story(&home);
        let before = state(&home.read(&story.id));
        assert_eq!((before.todos.len(), before.pending.len(), before.grants.len()), (1, 1, 1));
        let lease = home.store().lease(&story.id, "t").unwrap();
        home.store().cut(&lease, at(&story), 5000).unwrap();
        let after = state(&home.read(&story.id));
        // The highest name given was one that no event came to mention.
        assert_eq!(after.outside(), Outside { outputs: 5, ..before.outside() });
        assert_eq!(after.settings.max_steps, Some(7));
    }
}

#[test]
fn proposals_of_the_tail_go_and_what_was_settled_in_it_stays_settled() {
    let paths = |state: &SessionState| state.proposals.keys().cloned().collect::<Vec<_>>();
    let home = Home::new();
    let story = story(&home);
    assert_eq!(paths(&state(&home.read(&story.id))), ["/w/early and open"]);
    let lease = home.store().lease(&story.id, "t").unwrap();
    home.store().cut(&lease, story.third, 5000).unwrap();
    home.store().cut(&lease, story.second, 5001).unwrap();
    let cut = state(&home.read(&story.id));
    assert_eq!(paths(&cut), ["/w/early and open"]);
    assert_eq!((cut.settled.applied, cut.settled.discarded), (vec!["/w/early".into()], vec!["/w/early too".into()]));
    // A cut further up takes the events that said so with it, and still knows.
    let done = home.store().cut(&lease, story.steer, 5002).unwrap();
    assert_eq!(paths(&state(&home.read(&story.id))), ["/w/early and open"]);
    home.store().cut(&lease, story.first, 5003).unwrap();
    let empty = state(&home.read(&story.id));
    assert_eq!((paths(&empty).len(), empty.settled.applied.len()), (0, 0));
    assert!(done.seq < empty.seq);
}

#[test]
fn a_cut_wants_a_message_of_the_user_its_lease_and_no_apply_under_way() {
    let home = Home::new();
    let story = story(&home);
    let before = home.read(&story.id);
    let messages = [story.first, story.steer, story.second, story.third];
    let lease = home.store().lease(&story.id, "t").unwrap();
    for seq in (0..=before.len() as u64 + 2).chain([u64::MAX]).filter(|seq| !messages.contains(seq)) {
        let error = home.store().cut(&lease, seq, 1).unwrap_err();
        assert!(matches!(&error, LogError::Invalid(text) if text.contains(&seq.to_string())), "{seq}: {error}");
    }
    let other = Store::open(home.path()).unwrap().store;
    assert!(matches!(other.lease(&story.id, "t"), Err(LogError::Busy(_))), "nobody else gets to cut");
    let mut child = envelope(&story.id, 9, user("of a child"));
    child.agent = vec!["explore-1".into()];
    let next = before.len() as u64 + 1;
    wait(home.log().append(&story.id, next, vec![child], Durability::Process)).unwrap();
    assert!(matches!(home.store().cut(&lease, next, 1), Err(LogError::Invalid(_))));
    let started = Event::ChangesApplyStarted(ChangePaths { paths: vec!["/w/early and open".into()] });
    home.append(&story.id, next + 1, vec![started]).unwrap();
    assert!(matches!(home.store().cut(&lease, story.third, 1), Err(LogError::Busy(text)) if text.contains("applied")));
    assert_eq!(home.read(&story.id).len() as u64, next + 1);
}

#[test]
fn blobs_of_the_tail_go_unless_somebody_else_has_them() {
    let home = Home::new();
    let story = story(&home);
    let shared = home.session("other").id;
    put(home.store(), &shared, 4);
    let file = |n: u8| {
        let hash = blake3::hash(&content(n)).to_hex().to_string();
        home.path().join("blobs").join(&hash[..2]).join(&hash[2..])
    };
    let lease = home.store().lease(&story.id, "t").unwrap();
    home.store().cut(&lease, story.second, 5).unwrap();
    assert!(file(2).exists() && file(4).exists());
    assert_eq!(outputs(home.store(), &shared), [4]);
    home.store().cut(&lease, story.first, 6).unwrap();
    assert!(!file(2).exists() && file(4).exists());
    let rows: i64 = home.sql().query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn a_log_with_gaps_is_repaired_exported_and_read_like_any_other() {
    let mut home = Home::new();
    let story = story(&home);
    let lease = home.store().lease(&story.id, "t").unwrap();
    home.store().cut(&lease, story.third, 5).unwrap();
    home.store().cut(&lease, story.steer, 6).unwrap();
    drop(lease);
    let before = home.read(&story.id);
    let mut lines = Vec::new();
    assert_eq!(home.store().export(&story.id, &mut lines).unwrap(), before.len() as u64);
    // The index on names is what a repair here begins with; the events stay.
    home.close();
    let mut bytes = std::fs::read(home.database()).unwrap();
    bytes[..100].fill(7);
    std::fs::write(home.database(), bytes).unwrap();
    let notices = home.reopen();
    assert!(notices[0].contains("recovered"), "{notices:?}");
    assert!(!notices[0].contains("missing"), "a cut is no hole: {notices:?}");
    assert_eq!(home.read(&story.id), before);
    let info = home.store().session(&story.id).unwrap().unwrap();
    assert_eq!((info.turns, info.name.as_str()), (1, "the renamed story"));
}
