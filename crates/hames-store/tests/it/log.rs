//! Appending and reading.

use hames_protocol::*;
use proptest::prelude::*;

use crate::kit::*;

#[test]
fn what_is_appended_is_read_back_as_it_was() {
    let home = Home::new();
    let id = home.session("one").id;
    let mut full = envelope(&id, 77, answer("hé\0llo\u{2028}"));
    full.run = Some("run-1".into());
    full.turn = Some(3);
    full.step = Some(9);
    full.agent = vec!["explore-2".into(), "deep".into()];
    let unknown = serde_json::json!({"type": "from.the.future", "b": 1, "a": [0.1, null]});
    let sent = vec![full, envelope(&id, 78, Event::Unknown(unknown))];
    let stored = wait(home.log().append(&id, 2, sent.clone(), Durability::Power)).unwrap();
    assert_eq!(stored.iter().map(|e| e.seq).collect::<Vec<_>>(), [Some(2), Some(3)]);
    assert_eq!(home.read(&id)[1..], stored[..]);
    let mut without_seq = stored;
    without_seq.iter_mut().for_each(|e| e.seq = None);
    assert_eq!(without_seq, sent);
}

#[test]
fn an_append_at_another_seq_is_refused_whole() {
    let home = Home::new();
    let id = home.session("one").id;
    for expected in [0, 1, 3, 4, 1 << 40] {
        let error = home.append(&id, expected, vec![user("a"), user("b")]).unwrap_err();
        assert_eq!(error, LogError::Conflict { session: id.clone(), expected, found: 2 });
    }
    assert_eq!(home.read(&id).len(), 1);
    assert_eq!(home.append(&"no-such".into(), 1, vec![user("a")]), Err(LogError::NoSession("no-such".into())));
}

#[test]
fn a_session_can_be_created_by_its_first_event() {
    let home = Home::new();
    let created = Event::SessionCreated(SessionCreated {
        name: "mine".into(),
        folder: "/f".into(),
        settings: Settings::default(),
    });
    home.append(&"my-id".into(), 1, vec![created.clone(), user("hello")]).unwrap();
    let info = home.store().session(&"my-id".into()).unwrap().unwrap();
    assert_eq!((info.name.as_str(), info.folder.as_str(), info.last_seq), ("mine", "/f", 2));
    // An id names files.
    for id in ["", "../up", "a/b", "a b", "é", "x\0", ".", &"x".repeat(65)] {
        assert!(matches!(home.append(&id.into(), 1, vec![created.clone()]), Err(LogError::Io(_))), "{id:?}");
    }
}

#[test]
fn reading_gives_a_page_after_a_seq() {
    let home = Home::new();
    let id = home.session("one").id;
    home.append(&id, 2, (0..10).map(|n| user(&n.to_string())).collect()).unwrap();
    let page = |after, limit| texts(&wait(home.log().read(&id, after, limit)).unwrap());
    assert_eq!(page(1, 3), ["0", "1", "2"]);
    assert_eq!(page(10, 3), ["9"]);
    assert_eq!(page(11, 3), Vec::<String>::new());
    assert_eq!(page(u64::MAX, usize::MAX), Vec::<String>::new());
    assert_eq!(wait(home.log().read(&"none".into(), 0, 1)), Err(LogError::NoSession("none".into())));
}

fn piece(kind: OpenKind, index: u32, text: &str) -> OpenBlock {
    OpenBlock { kind, index, name: None, text: text.into() }
}

#[test]
fn the_open_step_survives_the_store_and_ends_with_the_step() {
    let mut home = Home::new();
    let id = home.session("one").id;
    let other = home.session("two").id;
    let save = |home: &Home, id: &SessionId, pieces| wait(home.log().save_open(id, pieces)).unwrap();
    save(&home, &id, vec![piece(OpenKind::Reasoning, 0, "hm"), piece(OpenKind::Text, 0, "He")]);
    save(&home, &other, vec![piece(OpenKind::Text, 0, "other")]);
    save(&home, &id, vec![piece(OpenKind::Text, 0, "llo")]);
    home.append(&id, 2, vec![user("not the end of a step")]).unwrap();
    home.reopen();
    let kept = [piece(OpenKind::Reasoning, 0, "hm"), piece(OpenKind::Text, 0, "Hello")];
    assert_eq!(wait(home.log().take_open(&id)).unwrap(), kept);
    home.reopen();
    assert_eq!(wait(home.log().take_open(&id)).unwrap(), kept, "whoever took it may have died since");
    for (next, end) in [(3, step_done()), (4, run_done())] {
        save(&home, &id, vec![piece(OpenKind::Text, 1, "x")]);
        home.append(&id, next, vec![end]).unwrap();
        assert_eq!(wait(home.log().take_open(&id)).unwrap(), []);
    }
    assert_eq!(wait(home.log().take_open(&other)).unwrap().len(), 1);
    // A refused append drops nothing.
    save(&home, &id, vec![piece(OpenKind::Text, 1, "x")]);
    home.append(&id, 99, vec![step_done()]).unwrap_err();
    assert_eq!(wait(home.log().take_open(&id)).unwrap().len(), 1);
}

#[test]
fn a_refused_append_takes_nothing_else_of_its_batch_with_it() {
    let home = Home::new();
    let ids: Vec<SessionId> = (0..8).map(|n| home.session(&n.to_string()).id).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcomes = runtime.block_on(async {
        let appends = (0..400_u64).map(|n| {
            let (log, id) = (home.log(), ids[(n % 8) as usize].clone());
            // Every append names seq 2: one of each session can succeed.
            tokio::spawn(async move {
                let event = envelope(&id, n, user(&n.to_string()));
                log.append(&id, 2, vec![event], Durability::Process).await
            })
        });
        let mut outcomes = Vec::new();
        for append in appends.collect::<Vec<_>>() {
            outcomes.push(append.await.unwrap());
        }
        outcomes
    });
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 8);
    assert!(outcomes.iter().all(|o| matches!(o, Ok(_) | Err(LogError::Conflict { expected: 2, .. }))));
    for id in &ids {
        assert_eq!(home.read(id).len(), 2);
    }
}

#[test]
fn an_export_is_the_log_line_by_line() {
    let home = Home::new();
    let id = home.session("one").id;
    home.append(&id, 2, (0..300).map(|n| user(&n.to_string())).collect()).unwrap();
    let mut out = Vec::new();
    assert_eq!(home.store().export(&id, &mut out).unwrap(), 301);
    let lines: Vec<Envelope> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, home.read(&id));
}

#[test]
fn a_record_that_cannot_be_read_hides_nothing_after_it() {
    let whole = r#"{"type":"text.done","index":0,"text":"twenty"}"#;
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("cut", whole.as_bytes()[..20].to_vec()),
        ("cut, then zeros", [&whole.as_bytes()[..20], &[0; 40]].concat()),
        ("only zeros", vec![0; 64]),
        ("empty", vec![]),
        ("not UTF-8", vec![0xff, 0xfe, b'{', b'}']),
        (
            "bad UTF-8 inside",
            whole.replace("twenty", "tw").into_bytes().iter().map(|b| if *b == b'w' { 0xf8 } else { *b }).collect(),
        ),
        ("another kind of JSON", b"[1,2]".to_vec()),
        ("null", b"null".to_vec()),
        ("a number", b"17".to_vec()),
        ("no type", b"{\"text\":\"x\"}".to_vec()),
        ("a field missing", b"{\"type\":\"text.done\"}".to_vec()),
        ("a field of another type", b"{\"type\":\"text.done\",\"index\":\"a\",\"text\":4}".to_vec()),
        ("something after it", [whole.as_bytes(), b"}}"].concat()),
        ("too deep", [b"[".repeat(100_000)].concat()),
    ];
    for (what, body) in bodies {
        for as_text in [true, false] {
            let home = Home::new();
            let id = home.session("one").id;
            home.append(&id, 2, (2..=50).map(|n| answer(&n.to_string())).collect()).unwrap();
            let cast = if as_text { "CAST(?1 AS TEXT)" } else { "?1" };
            let changed = home.sql().execute(&format!("UPDATE events SET body = {cast} WHERE seq = 20"), [&body]);
            assert_eq!(changed, Ok(1), "{what}");
            let read = home.read(&id);
            assert_eq!(read.len(), 50, "{what}");
            assert!(read[19].event.is_damaged(), "{what}: {:?}", read[19]);
            assert_eq!(read[19].seq, Some(20), "{what}");
            let others = read.iter().filter(|e| e.seq != Some(20));
            assert!(others.clone().all(|e| !e.event.is_damaged()), "{what}");
            assert_eq!(others.count(), 49, "{what}");
            home.append(&id, 51, vec![user("and on")]).unwrap();
            assert_eq!(home.store().search("and on", None, 5).unwrap().len(), 1, "{what}");
        }
    }
}

#[test]
fn a_record_with_damaged_columns_still_shows() {
    let columns =
        ["at = 'x'", "v = -1", "v = x'00'", "agent = '[1,'", "agent = x'ff'", "run = x'ff'", "turn = 'a'", "step = -4"];
    for change in columns {
        let home = Home::new();
        let id = home.session("one").id;
        home.append(&id, 2, vec![answer("a"), answer("b"), answer("c")]).unwrap();
        home.sql().execute(&format!("UPDATE events SET {change} WHERE seq = 3"), []).unwrap();
        assert_eq!(texts(&home.read(&id))[1..], ["a", "b", "c"], "{change}");
    }
}

#[derive(Clone, Debug)]
enum Act {
    Append { session: usize, off_by: u64, events: u8, other: bool },
    Read { session: usize, after: u64, limit: usize, other: bool },
    List,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let append = (0..3_usize, prop_oneof![4 => Just(0_u64), 1 => 1..3_u64], 0..4_u8, any::<bool>())
        .prop_map(|(session, off_by, events, other)| Act::Append { session, off_by, events, other });
    let read = (0..3_usize, 0..20_u64, 0..9_usize, any::<bool>())
        .prop_map(|(session, after, limit, other)| Act::Read { session, after, limit, other });
    proptest::collection::vec(prop_oneof![3 => append, 2 => read, 1 => Just(Act::List)], 1..30)
}

fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    /// Two handles on one home behave as one list of events per session.
    #[test]
    fn two_handles_behave_as_one_log(acts in acts()) {
        let home = Home::new();
        let second = hames_store::Store::open(home.path()).unwrap().store;
        let ids: Vec<SessionId> = (0..3).map(|n| home.session(&n.to_string()).id).collect();
        let mut model: Vec<Vec<String>> = vec![vec!["session.created".into()]; 3];
        for (n, act) in acts.into_iter().enumerate() {
            match act {
                Act::Append { session, off_by, events, other } => {
                    let store = if other { &second } else { home.store() };
                    let names: Vec<String> = (0..events).map(|e| format!("{n}.{e}")).collect();
                    let next = model[session].len() as u64 + 1;
                    let batch = names.iter().map(|name| answer(name)).collect();
                    let outcome = append(store, &ids[session], next + off_by, batch);
                    prop_assert_eq!(outcome.is_ok(), off_by == 0);
                    if off_by == 0 {
                        model[session].extend(names);
                    }
                }
                Act::Read { session, after, limit, other } => {
                    let store = if other { &second } else { home.store() };
                    let read = wait(store.log().read(&ids[session], after, limit)).unwrap();
                    let expected: Vec<String> =
                        model[session].iter().skip(after as usize).take(limit).cloned().collect();
                    prop_assert_eq!(texts(&read), expected);
                }
                Act::List => {
                    let listed = second.list(None).unwrap();
                    for (id, events) in ids.iter().zip(&model) {
                        let info = listed.iter().find(|info| &info.id == id).unwrap();
                        prop_assert_eq!(info.last_seq, events.len() as u64);
                    }
                }
            }
        }
    }
}
