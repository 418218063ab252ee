//! What holds for every log, whatever happened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hames_context::WireRules;
use hames_protocol::{Envelope, Event, Item, RunResult};

/// Checks a log whose last run has ended.
#[track_caller]
pub(crate) fn log(events: &[Envelope]) {
    for (seq, envelope) in (1..).zip(events) {
        assert_eq!(envelope.seq, Some(seq), "{envelope:?}");
        assert!(envelope.event.is_durable(), "{envelope:?}");
        assert_eq!(envelope.v, 1);
    }
    assert!(matches!(events.first().map(|e| &e.event), Some(Event::SessionCreated(_))));
    let starts: Vec<usize> = (0..events.len()).filter(|&i| matches!(events[i].event, Event::RunStart(_))).collect();
    for (turn, &from) in (1..).zip(&starts) {
        let to = starts.iter().copied().find(|&next| next > from).unwrap_or(events.len());
        // Settings may change between runs; everything else belongs to one.
        let of_run: Vec<&Envelope> = events[from..to].iter().filter(|e| e.run.is_some()).collect();
        run(&of_run, turn);
    }
}

fn run(events: &[&Envelope], turn: u32) {
    let types: Vec<&str> = events.iter().map(|e| e.event.type_name()).collect();
    assert_eq!(types[0], "run.start");
    let ends = types.len() - 3;
    assert_eq!(&types[ends..], ["done", "turn.done", "run.done"], "{types:?}");
    assert!(!types[..ends].iter().any(|t| matches!(*t, "done" | "turn.done" | "run.done" | "session.created")));

    let (mut step, mut in_step) = (0, false);
    let (mut asked, mut started, mut answered) = (HashMap::new(), HashSet::new(), HashSet::new());
    let mut done_steps = HashSet::new();
    let mut errors = 0;
    for envelope in events {
        assert_eq!((envelope.run.as_ref(), envelope.turn), (events[0].run.as_ref(), Some(turn)));
        assert!(envelope.agent.is_empty());
        let place = envelope.step;
        match &envelope.event {
            Event::StepStart(start) => {
                assert!(!in_step && start.number == step + 1, "{types:?}");
                assert_eq!(asked.len(), answered.len(), "a request with open calls: {types:?}");
                (step, in_step) = (start.number, true);
                assert_eq!(place, Some(step));
            }
            Event::StepDone(_) => {
                assert!(in_step, "{types:?}");
                in_step = false;
                done_steps.insert(step);
                assert_eq!(place, Some(step));
            }
            Event::ReasoningDone(_) | Event::TextDone(_) | Event::ParameterLearned(_) => {
                assert!(in_step && place == Some(step), "{envelope:?}");
            }
            // Within a step, or behind one whose request did not fit and is made smaller.
            Event::Retry(_) => assert!(step > 0 && place == Some(step), "{envelope:?}"),
            Event::ToolCall(call) => {
                assert!(in_step && place == Some(step), "{envelope:?}");
                assert!(asked.insert(call.call_id.clone(), step).is_none(), "a call id twice");
            }
            Event::ToolStart(start) => {
                assert!(done_steps.contains(&asked[&start.call_id]) && !in_step, "started before step.done");
                assert!(started.insert(start.call_id.clone()), "started twice");
                assert_eq!(place, Some(step));
            }
            Event::ToolDone(done) => {
                assert_ne!(started.contains(&done.call_id), done.served_from.is_some(), "a result without a start");
                assert!(!done.output.trim().is_empty());
                assert!(asked.contains_key(&done.call_id) && answered.insert(done.call_id.clone()));
                assert_eq!(place, Some(step));
            }
            Event::ToolError(error) => {
                errors += 1;
                assert!(!error.error.trim().is_empty());
                assert!(asked.contains_key(&error.call_id) && answered.insert(error.call_id.clone()));
                assert_eq!(place, Some(step));
            }
            Event::MessageUser(_) | Event::RunStart(_) | Event::TurnDone(_) | Event::RunDone(_) => {
                assert!(place.is_none() && !in_step, "{envelope:?}");
            }
            Event::Done(done) => {
                assert!(place.is_none() && !in_step, "{types:?}");
                let calls = u32::try_from(asked.len()).unwrap();
                assert_eq!((done.steps, done.calls, done.errors), (step, calls, errors), "{types:?}");
            }
            _ => {}
        }
    }
    assert_eq!(asked.len(), answered.len(), "every call is answered: {types:?}");
    let Event::RunDone(end) = &events[events.len() - 1].event else { unreachable!() };
    let Event::Done(done) = &events[ends].event else { unreachable!() };
    let has_error = types[..ends].last() == Some(&"error");
    assert_eq!(done.result, end.result);
    assert_eq!(has_error, end.result == RunResult::Error, "{types:?}");
    let codes: &[i32] = match end.result {
        RunResult::Complete => &[0],
        RunResult::Stopped | RunResult::MaxSteps => &[3],
        RunResult::Interrupted => &[130],
        RunResult::Error => &[1, 2],
    };
    assert!(codes.contains(&end.exit_code), "{end:?}");
}

/// Checks that what was seen is the log, in its order, with live events between.
#[track_caller]
pub(crate) fn watched<'a>(log: impl Iterator<Item = &'a Envelope>, seen: &[Envelope]) {
    let durable: Vec<&Envelope> = seen.iter().filter(|e| e.event.is_durable()).collect();
    assert!(seen.iter().filter(|e| !e.event.is_durable()).all(|e| e.seq.is_none()));
    assert_eq!(durable, log.collect::<Vec<_>>());
}

/// Checks that the conversation may be sent as it is.
#[track_caller]
pub(crate) fn sendable(items: &[Arc<Item>]) {
    let says = |item: &&Arc<Item>| match item.as_ref() {
        Item::Assistant(answer) => !answer.text.trim().is_empty() || !answer.calls.is_empty(),
        _ => true,
    };
    let items: Vec<Arc<Item>> = items.iter().filter(says).cloned().collect();
    assert_eq!(WireRules::default().check(&items), Ok(()), "{items:#?}");
}
