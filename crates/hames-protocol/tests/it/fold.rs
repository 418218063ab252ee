//! The folds: what a transcript and a session's state make of any sequence of events.

#![allow(clippy::unwrap_used)] // helpers of tests fail like tests

use std::collections::HashSet;

use hames_protocol::*;
use proptest::prelude::*;
use serde_json::json;

use crate::samples::{blob, call, done, error, pending, run_start, settings, user};

fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

fn transcript(events: &[Event]) -> Transcript {
    let mut transcript = Transcript::default();
    events.iter().for_each(|event| transcript.apply(event));
    transcript
}

/// A transcript in one line: `U` user, `A[calls]` assistant, `T(id)` tool.
fn outline(transcript: &Transcript) -> String {
    let items = transcript.items().iter().map(|item| match item.as_ref() {
        Item::User(_) => "U".to_owned(),
        Item::Assistant(answer) => {
            format!("A[{}]", answer.calls.iter().map(|c| c.call_id.as_str()).collect::<Vec<_>>().join(" "))
        }
        Item::Tool(tool) => format!("T({})", tool.call_id),
    });
    items.collect::<Vec<_>>().join(" ")
}

fn text(text: &str) -> Event {
    TextDone { index: 0, text: text.into(), cut: None }.into()
}

fn nudge(kind: &str, text: &str) -> Event {
    let (kind, text) = (kind.into(), text.into());
    Nudge { kind, text, detected: String::new(), done: String::new(), count: 1, max: 2 }.into()
}

fn step_done() -> Event {
    Event::step_done_for_tests("tool_calls")
}

#[test]
fn a_turn_becomes_user_assistant_and_tool_items() {
    let reasoning = ReasoningBlock { text: "hm".into(), field: "reasoning".into(), blocks: vec!["{}".into()] };
    let folded = transcript(&[
        MessageUser { note: Some("Mode: build".into()), ..user("do it") }.into(),
        ReasoningDone { index: 0, block: reasoning.clone(), cut: None }.into(),
        text("I "),
        text("will."),
        call("c0").into(),
        step_done(),
        ToolStart { call_id: "c0".into(), name: "Read".into() }.into(),
        ToolDone { blob: Some(blob()), ..done("c0", "content") }.into(),
        text("Done."),
        step_done(),
    ]);
    assert_eq!(outline(&folded), "U A[c0] T(c0) A[]");
    let Item::User(first) = folded.items()[0].as_ref() else { panic!() };
    assert_eq!(first.note.as_deref(), Some("Mode: build"));
    let Item::Assistant(answer) = folded.items()[1].as_ref() else { panic!() };
    assert_eq!((answer.text.as_str(), &answer.reasoning[..], answer.cut), ("I will.", &[reasoning][..], None));
    let Item::Tool(tool) = folded.items()[2].as_ref() else { panic!() };
    assert_eq!((tool.text.as_str(), tool.error, &tool.blob), ("content", None, &Some(blob())));
    assert!(folded.open_calls().is_empty() && !folded.has_open_answer());
}

#[test]
fn where_the_message_of_a_run_cannot_be_read_something_stands_in_its_place() {
    let lost = || Event::Unknown(serde_json::json!({"type": "damaged"}));
    let said = |text: &str| Event::from(user(text));
    let answered = || [text("yes"), step_done()];
    let run_done = || Event::from(RunDone { result: RunResult::Complete, exit_code: 0 });
    let run = |opening: Vec<Event>| [opening, answered().to_vec(), vec![run_done()]].concat();
    let start = || Event::from(run_start());
    for (events, expected) in [
        (run(vec![start(), said("a")]), "U A[]"),
        (run(vec![start(), lost()]), "U A[]"),
        (run(vec![lost(), said("a")]), "U A[]"),
        (run(vec![lost(), lost()]), "U A[]"),
        (run(vec![lost(), start(), said("a")]), "U A[]"),
        (run(vec![start(), lost(), lost(), lost()]), "U A[]"),
        (run(vec![start(), said("a"), lost()]), "U A[]"),
        (run(vec![start(), lost(), said("b")]), "U A[]"),
        ([run(vec![start(), said("a")]), run(vec![start(), lost()])].concat(), "U A[] U A[]"),
        ([run(vec![start(), said("a")]), run(vec![lost(), lost()])].concat(), "U A[] U A[]"),
        ([run(vec![start(), lost()]), run(vec![start(), said("b")])].concat(), "U A[] U A[]"),
        ([run(vec![start(), said("a"), text("x"), step_done(), lost()])].concat(), "U A[] A[]"),
    ] {
        assert_eq!(outline(&transcript(&events)), expected, "{events:?}");
    }
}

#[test]
fn an_answer_names_the_model_of_its_run() {
    let run = |model: &str| RunStart { model: model.parse().unwrap(), ..run_start() }.into();
    let folded = transcript(&[
        text("of no run"),
        step_done(),
        run("a/1"),
        text("first"),
        step_done(),
        text("second"),
        step_done(),
        run("b/2/3"),
        text("third"),
        step_done(),
    ]);
    let models: Vec<Option<String>> = folded
        .items()
        .iter()
        .map(|item| match item.as_ref() {
            Item::Assistant(answer) => answer.model.as_ref().map(|model| model.to_string()),
            _ => panic!(),
        })
        .collect();
    assert_eq!(models, [None, Some("a/1".into()), Some("a/1".into()), Some("b/2/3".into())]);
}

#[test]
fn answers_stand_in_the_order_of_their_calls_whenever_they_come() {
    let asked = [call("a").into(), call("b").into(), call("c").into(), step_done()];
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"], ["c", "a", "b"]] {
        let mut events: Vec<Event> = asked.to_vec();
        events.extend(order.map(|id| done(id, "x").into()));
        assert_eq!(outline(&transcript(&events)), "A[a b c] T(a) T(b) T(c)");
    }
    // A message that came before the last answer stands behind it all the same.
    let mut events = asked.to_vec();
    events.extend([done("a", "x").into(), user("stop").into(), error("c", "not run").into(), done("b", "x").into()]);
    assert_eq!(outline(&transcript(&events)), "A[a b c] T(a) T(b) T(c) U");
}

#[test]
fn nudges_stand_where_they_were_given() {
    let folded = transcript(&[
        user("go").into(),
        nudge("a", "1"),
        nudge("b", "2"),
        call("c").into(),
        step_done(),
        done("c", "x").into(),
        nudge("a", "3"),
        nudge("a", "4"),
        user("a").into(),
    ]);
    assert_eq!(outline(&folded), "U U U A[c] T(c) U U U");
}

#[test]
fn images_of_a_result_stay_with_it_and_an_error_has_none() {
    let image = |name: &str| Part::Image { blob: blob(), media_type: "image/png".into(), name: Some(name.into()) };
    let seen = |id: &str, name: &str| ToolDone { attachments: vec![image(name)], ..done(id, "an image") };
    let asked = [call("a").into(), call("b").into(), call("c").into(), step_done()];
    let mut events: Vec<Event> = asked.to_vec();
    events.extend([seen("c", "3").into(), error("b", "no").into(), seen("a", "1").into()]);
    let folded = transcript(&events);
    assert_eq!(outline(&folded), "A[a b c] T(a) T(b) T(c)");
    let attached: Vec<_> = folded.items()[1..]
        .iter()
        .map(|item| match item.as_ref() {
            Item::Tool(tool) => tool.attachments.clone(),
            _ => panic!(),
        })
        .collect();
    assert_eq!(attached, [vec![image("1")], vec![], vec![image("3")]]);
}

#[test]
fn an_open_call_says_whether_it_had_begun() {
    let start: Event = ToolStart { call_id: "b".into(), name: "Read".into() }.into();
    let folded = transcript(&[call("a").into(), call("b").into(), step_done(), start]);
    let open: Vec<_> = folded.open_calls().iter().map(|o| (o.call.call_id.as_str(), o.started)).collect();
    assert_eq!(open, [("a", false), ("b", true)]);
}

#[test]
fn an_id_is_asked_for_and_answered_once() {
    let folded = transcript(&[
        call("a").into(),
        call("a").into(),
        step_done(),
        done("a", "first").into(),
        done("a", "second").into(),
        error("a", "third").into(),
        call("a").into(),
        step_done(),
        done("a", "fourth").into(),
    ]);
    assert_eq!(outline(&folded), "A[a] T(a)");
    assert!(folded.open_calls().is_empty());
}

#[test]
fn an_answer_to_nothing_changes_nothing() {
    let folded = transcript(&[text("one "), done("nobody", "x").into(), text("two"), step_done()]);
    assert_eq!(outline(&folded), "A[]");
    let Item::Assistant(answer) = folded.items()[0].as_ref() else { panic!() };
    assert_eq!(answer.text, "one two");
}

#[test]
fn blank_results_become_visible_text() {
    for blank in ["", " ", "\n\n", "\t\r\n \u{a0}\u{3000}"] {
        for event in [Event::from(done("a", blank)), error("a", blank).into()] {
            let folded = transcript(&[call("a").into(), step_done(), event]);
            let Item::Tool(tool) = folded.items()[1].as_ref() else { panic!() };
            assert_eq!(tool.text, "(no output)");
        }
    }
}

#[test]
fn a_cut_answer_stays_and_says_why() {
    let cut = |cut| Event::from(TextDone { index: 0, text: "half".into(), cut: Some(cut) });
    for end in [step_done(), user("next").into(), RunDone { result: RunResult::Interrupted, exit_code: 130 }.into()] {
        let folded = transcript(&[cut(Cut::Abort), cut(Cut::Crash), end]);
        let Item::Assistant(answer) = folded.items()[0].as_ref() else { panic!() };
        assert_eq!((answer.text.as_str(), answer.cut), ("halfhalf", Some(Cut::Abort)));
    }
    assert!(transcript(&[text("open")]).has_open_answer());
}

#[test]
fn items_once_closed_are_shared_not_copied() {
    let mut one = transcript(&[user("a").into(), text("b"), step_done()]);
    let before = one.items().to_vec();
    one.apply(&user("c").into());
    for (old, new) in before.iter().zip(one.items()) {
        assert!(std::sync::Arc::ptr_eq(old, new));
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let id = || prop::sample::select(vec!["c0", "c1", "c2", "c3", "c4", "c5"]);
    let words = || prop::sample::select(vec!["", " \n", "text", "more"]);
    prop_oneof![
        1 => words().prop_map(|w| Event::from(user(w))),
        1 => words().prop_map(|w| nudge("k", w)),
        1 => words().prop_map(|w| ReasoningDone {
            index: 0,
            block: ReasoningBlock { text: w.into(), ..ReasoningBlock::default() },
            cut: None,
        }.into()),
        2 => (words(), any::<bool>()).prop_map(|(w, cut)| {
            TextDone { index: 0, text: w.into(), cut: cut.then_some(Cut::Limit) }.into()
        }),
        5 => id().prop_map(|id| call(id).into()),
        3 => Just(step_done()),
        2 => id().prop_map(|id| ToolStart { call_id: id.into(), name: "Read".into() }.into()),
        5 => (id(), words()).prop_map(|(id, w)| done(id, w).into()),
        2 => (id(), words()).prop_map(|(id, w)| error(id, w).into()),
        1 => Just(RunDone { result: RunResult::Complete, exit_code: 0 }.into()),
        1 => Just(Event::Unknown(serde_json::json!({"type": "text.done"}))),
        1 => prop::sample::select(crate::samples::events()),
    ]
}

/// What must hold of a transcript whatever it was folded from.
fn check(transcript: &Transcript) -> Result<(), TestCaseError> {
    let (mut asked, mut answered) = (HashSet::new(), HashSet::new());
    let mut behind: Option<(&AssistantItem, usize)> = None;
    for item in transcript.items() {
        match item.as_ref() {
            Item::User(_) => behind = None,
            Item::Assistant(answer) => {
                for call in &answer.calls {
                    prop_assert!(asked.insert(call.call_id.clone()), "{} is asked for twice", call.call_id);
                }
                behind = Some((answer, 0));
            }
            Item::Tool(tool) => {
                prop_assert!(!tool.text.trim().is_empty());
                prop_assert!(answered.insert(tool.call_id.clone()), "{} is answered twice", tool.call_id);
                let Some((answer, from)) = behind else {
                    return Err(TestCaseError::fail(format!("{} stands alone: {}", tool.call_id, outline(transcript))));
                };
                let at = answer.calls.iter().skip(from).position(|c| c.call_id == tool.call_id);
                let Some(at) = at else {
                    return Err(TestCaseError::fail(format!(
                        "{} is out of place: {}",
                        tool.call_id,
                        outline(transcript)
                    )));
                };
                behind = Some((answer, from + at + 1));
            }
        }
    }
    let open: Vec<CallId> = transcript.open_calls().iter().map(|o| o.call.call_id.clone()).collect();
    let unique: HashSet<&CallId> = open.iter().collect();
    prop_assert_eq!(unique.len(), open.len());
    prop_assert!(open.iter().all(|id| !answered.contains(id)));
    // Every call that was asked for is open or answered. Calls of the step still open are in no item yet.
    prop_assert!(asked.iter().all(|id| answered.contains(id) || unique.contains(id)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() * 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_events_folds_to_a_transcript_in_order(events in prop::collection::vec(any_event(), 0..60)) {
        let mut folded = Transcript::default();
        let mut seen: Vec<std::sync::Arc<Item>> = Vec::new();
        for event in &events {
            folded.apply(event);
            check(&folded)?;
            // What stood there stays there, in its order; a late answer may come in between.
            let mut items = folded.items().iter();
            prop_assert!(seen.iter().all(|old| items.any(|item| std::sync::Arc::ptr_eq(item, old))));
            seen = folded.items().to_vec();
        }
    }

    #[test]
    fn any_sequence_of_envelopes_folds_to_a_state(
        envelopes in prop::collection::vec(
            (any_event(), prop::option::of(any::<u64>()), prop::option::of(any::<u32>()), any::<bool>()),
            0..40,
        ),
    ) {
        let mut state = SessionState::default();
        for (event, seq, turn, child) in envelopes {
            let agent = if child { vec!["explore-1".into()] } else { vec![] };
            state.apply(&Envelope { seq, turn, step: turn, agent, ..Envelope::detached(0, event) });
            prop_assert!(seq.is_none_or(|seq| state.seq >= seq));
        }
    }
}

/// A state folded from events of the run itself, numbered from 1.
fn state(events: Vec<Event>) -> SessionState {
    let mut state = SessionState::default();
    for (event, seq) in events.into_iter().zip(1..) {
        state.apply(&Envelope { seq: Some(seq), run: Some("r".into()), ..Envelope::detached(0, event) });
    }
    state
}

#[test]
fn a_state_follows_name_folder_and_settings() {
    let changed = Settings { mode: Some(Mode::Build), max_steps: Some(9), ..Settings::default() };
    let folded = state(vec![
        SessionCreated { name: "a".into(), folder: "/w".into(), settings: settings() }.into(),
        SessionRenamed { name: "b".into() }.into(),
        SessionMoved { folder: "/v".into() }.into(),
        SettingsChanged { settings: changed, unset: vec!["thinking_level".into(), "no such".into()] }.into(),
    ]);
    assert_eq!((folded.name.as_str(), folded.folder.as_str(), folded.seq), ("b", "/v", 4));
    let kept = Settings { mode: Some(Mode::Build), max_steps: Some(9), thinking_level: None, ..settings() };
    assert_eq!(folded.settings, kept);
}

#[test]
fn a_run_is_open_from_its_start_to_its_end() {
    let mut folded = state(vec![run_start().into()]);
    assert_eq!((folded.turn, folded.open_run.clone(), folded.step), (1, Some("r".into()), 0));
    folded.apply(&Envelope { step: Some(4), ..Envelope::detached(0, step_done()) });
    assert_eq!(folded.step, 4);
    let end = || Event::from(RunDone { result: RunResult::Complete, exit_code: 0 });
    folded.apply(&Envelope { agent: vec!["child".into()], step: Some(9), ..Envelope::detached(0, end()) });
    assert_eq!((folded.open_run.is_some(), folded.step), (true, 4), "a child's end is not the run's");
    folded.apply(&Envelope::detached(0, end()));
    assert_eq!(folded.open_run, None);
    folded.apply(&Envelope { turn: Some(u32::MAX), ..Envelope::detached(0, run_start().into()) });
    folded.apply(&Envelope::detached(0, run_start().into()));
    assert_eq!((folded.turn, folded.step), (u32::MAX, 0));
}

#[test]
fn a_pending_message_leaves_by_delivery_or_by_withdrawal() {
    let added = |id: &str| Event::PendingAdded(pending(id, Delivery::Queue));
    let folded = state(vec![
        added("p1"),
        added("p2"),
        added("p3"),
        PendingEdited {
            pending: Pending { parts: vec![Part::text("new")], ..pending("p2", Delivery::Steer) },
            before: None,
            last: false,
        }
        .into(),
        PendingEdited { pending: pending("nobody", Delivery::Steer), before: None, last: false }.into(),
        PendingCancelled { id: "p1".into() }.into(),
        MessageUser { pending_id: Some("p3".into()), ..user("wait") }.into(),
    ]);
    assert_eq!(folded.pending, [Pending { parts: vec![Part::text("new")], ..pending("p2", Delivery::Steer) }]);
}

#[test]
fn a_pending_message_stands_where_it_was_put() {
    let moved = |id: &str, before: Option<&str>, last| {
        let pending = pending(id, Delivery::Queue);
        Event::from(PendingEdited { pending, before: before.map(Into::into), last })
    };
    for (edit, order) in [
        (moved("p3", Some("p1"), false), ["p3", "p1", "p2"]),
        (moved("p1", Some("p3"), false), ["p2", "p1", "p3"]),
        (moved("p1", None, true), ["p2", "p3", "p1"]),
        (moved("p2", None, false), ["p1", "p2", "p3"]),
        (moved("p2", Some("p2"), false), ["p1", "p2", "p3"]),
        (moved("p2", Some("gone"), false), ["p1", "p2", "p3"]),
    ] {
        let added = ["p1", "p2", "p3"].map(|id| Event::PendingAdded(pending(id, Delivery::Queue)));
        let folded = state(added.into_iter().chain([edit.clone()]).collect());
        let ids: Vec<&str> = folded.pending.iter().map(|p| p.id.as_str()).collect();
        assert_eq!(ids, order, "{edit:?}");
    }
}

#[test]
fn the_last_messages_are_known_by_their_senders_ids() {
    let mut folded = SessionState::default();
    for seq in 1..=600u64 {
        let idempotency_id = (seq != 599).then(|| format!("mine-{seq}"));
        let pending = Pending { idempotency_id, ..pending(&format!("p{seq}"), Delivery::Queue) };
        folded.apply(&Envelope { seq: Some(seq), ..Envelope::detached(0, Event::PendingAdded(pending)) });
    }
    let known = folded.sent.iter().map(|sent| (sent.seq, sent.pending_id.as_str(), sent.idempotency_id.as_str()));
    assert_eq!(
        (known.len(), known.clone().next(), known.clone().next_back()),
        (500, Some((100, "p100", "mine-100")), Some((600, "p600", "mine-600")),)
    );
}

#[test]
fn known_file_contents_follow_reads_and_changes() {
    let files = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(path, hash)| FileHash { path: (*path).into(), hash: (*hash).into() }).collect()
    };
    let changed = |path: &str, after: Option<&str>| {
        let after = after.map(String::from);
        Event::from(FileChanged { call_id: "c".into(), path: path.into(), before: None, after, mode: None, link: None })
    };
    let folded = state(vec![
        ToolDone { files: files(&[("/a", "1"), ("/b", "1")]), blob: Some(blob()), ..done("c0", "x") }.into(),
        changed("/a", Some("2")),
        changed("/b", None),
        ToolError { blob: Some(blob()), ..error("c1", "x") }.into(),
    ]);
    assert_eq!(folded.files.into_iter().collect::<Vec<_>>(), [("/a".to_owned(), "2".to_owned())]);
    assert_eq!(folded.blobs, 2);
}

#[test]
fn the_todo_list_is_the_last_one_the_session_itself_wrote() {
    let list = |content: &str| {
        let todo = Todo {
            id: "1".into(),
            content: content.into(),
            status: TodoStatus::Pending,
            priority: TodoPriority::Medium,
        };
        Event::from(TodoUpdated { todos: vec![todo] })
    };
    let mut folded = state(vec![list("first"), list("second")]);
    folded.apply(&Envelope { agent: vec!["explore-1".into()], ..Envelope::detached(0, list("a child's")) });
    assert_eq!(folded.todos[0].content, "second");
    folded.apply(&Envelope::detached(0, TodoUpdated { todos: vec![] }.into()));
    assert!(folded.todos.is_empty());
}

#[test]
fn settings_of_a_patch_replace_only_what_they_set() {
    let base = settings();
    assert_eq!(base.patched(&Settings::default()), base);
    assert_eq!(Settings::default().patched(&base), base);
    // A field added later and forgotten in the patch would stay at its default here.
    let patched = Settings::default().patched(&base);
    assert_eq!(serde_json::to_value(&patched).unwrap().as_object().unwrap().len(), 12);
}

#[test]
fn a_window_that_turned_out_smaller_stays_so_and_belongs_to_its_model() {
    let limited = |model: &str, tokens| -> Event {
        WindowLimited { model: model.parse().unwrap(), tokens, before: 9, how: "stated".into(), words: None }.into()
    };
    let mut state = SessionState::default();
    for event in [limited("a/m", 8_192), limited("a/m", 32_768), limited("b/m", 16_384), limited("b/m", 4_096)] {
        state.apply(&Envelope::detached(1, event));
    }
    let limits: Vec<(&str, u64)> = state.limits.iter().map(|(model, tokens)| (model.as_str(), *tokens)).collect();
    assert_eq!(limits, [("a/m", 8_192), ("b/m", 4_096)]);
}

#[test]
fn a_person_who_sets_the_window_ends_what_was_learned_of_it() {
    let limited: Event =
        WindowLimited { model: "a/m".parse().unwrap(), tokens: 8_192, before: 9, how: "stated".into(), words: None }
            .into();
    let set = |window: Option<u64>, unset: &[&str]| -> Event {
        SettingsChanged {
            settings: Settings { context_window: window, ..Settings::default() },
            unset: unset.iter().map(|name| (*name).to_owned()).collect(),
        }
        .into()
    };
    let mode: Event = SettingsChanged::from(Settings { mode: Some(Mode::Build), ..Settings::default() }).into();
    let mut state = SessionState::default();
    let mut limits = |event: &Event| {
        state.apply(&Envelope::detached(1, event.clone()));
        state.limits.values().copied().collect::<Vec<_>>()
    };
    assert_eq!(limits(&limited), [8_192]);
    assert_eq!(limits(&mode), [8_192], "other settings say nothing of it");
    assert_eq!(limits(&set(Some(32_000), &[])), [] as [u64; 0]);
    assert_eq!(limits(&limited), [8_192], "and it may be learned again");
    assert_eq!(limits(&set(Some(32_000), &[])), [8_192], "what is set already is no news");
    assert_eq!(limits(&set(None, &["context_window"])), [] as [u64; 0]);
}

#[test]
fn a_window_is_as_full_as_was_counted_or_else_estimated() {
    let asked = |estimate: u64| -> Event {
        serde_json::from_value(json!({
            "type": "step.start", "number": 1, "fingerprint": "f", "bytes": 1, "changed_why": "first",
            "input_estimate": estimate,
        }))
        .unwrap()
    };
    let done = |input: Option<u64>| -> Event {
        let Event::StepDone(done) = Event::step_done_for_tests("stop") else { panic!() };
        let usage = input.map(|input| Usage { input: Some(input), output: Some(5), ..Usage::default() });
        StepDone { usage, ..done }.into()
    };
    let mut state = SessionState::default();
    let mut fill = |events: &[Event]| {
        events.iter().for_each(|event| state.apply(&Envelope::detached(1, event.clone())));
        state.fill
    };
    assert_eq!(fill(&[]), None);
    assert_eq!(fill(&[asked(900), done(Some(1_000))]), Some(1_005));
    assert_eq!(fill(&[asked(1_200), done(None)]), Some(1_200));
    assert_eq!(fill(&[asked(1_300), done(Some(0))]), Some(1_300));
    let compacted = CompactionDone { tokens_before: 1_300, tokens_after: 400 };
    assert_eq!(fill(&[compacted.into()]), Some(400));
}
