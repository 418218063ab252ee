//! What a death left open, closed: written by the next holder of the session, never by a reader.

use hames_protocol::{
    Cut, Done, Effect, Event, OpenBlock, OpenCall, OpenKind, ReasoningBlock, ReasoningDone, RunDone, RunResult,
    StepDone, TextDone, Timings, ToolError, ToolErrorClass, TurnDone, Usage,
};

const INTERRUPTED: i32 = 130;

/// The events that close an interrupted run: the open step as far as it was kept, an answer for every open call, the end.
pub(crate) fn closing_events(open_step: Vec<OpenBlock>, open_calls: &[OpenCall], steps: u32) -> Vec<Event> {
    let mut events = open_answer(open_step);
    events.extend(open_calls.iter().map(answer));
    let errors = u32::try_from(open_calls.len()).unwrap_or(u32::MAX);
    let usage = Usage::default();
    events.push(Event::Done(Done {
        result: RunResult::Interrupted,
        reason: Some("crash".to_owned()),
        usage: usage.clone(),
        steps,
        calls: 0,
        errors,
    }));
    events.push(Event::TurnDone(TurnDone { duration_ms: 0, usage }));
    events.push(Event::RunDone(RunDone { result: RunResult::Interrupted, exit_code: INTERRUPTED }));
    events
}

/// Text and reasoning that were shown stay; a call whose arguments were still arriving was never asked for.
fn open_answer(open_step: Vec<OpenBlock>) -> Vec<Event> {
    let cut = Some(Cut::Crash);
    let mut events: Vec<Event> = open_step
        .into_iter()
        .filter(|block| !block.text.is_empty())
        .filter_map(|block| match block.kind {
            OpenKind::Text => Some(Event::TextDone(TextDone { index: block.index, text: block.text, cut })),
            OpenKind::Reasoning => {
                let reasoning = ReasoningBlock { text: block.text, ..ReasoningBlock::default() };
                Some(Event::ReasoningDone(ReasoningDone { index: block.index, block: reasoning, cut }))
            }
            OpenKind::ToolInput => None,
        })
        .collect();
    if !events.is_empty() {
        events.push(Event::StepDone(StepDone {
            finish_reason: None,
            whole: false,
            usage: None,
            cost: None,
            timings: Timings::default(),
            request_id: None,
        }));
    }
    events
}

fn answer(open: &OpenCall) -> Event {
    let reads = open.call.declaration.as_ref().is_some_and(|d| matches!(d.effect, Effect::Read | Effect::Session));
    let (class, text) = match (open.started, reads) {
        (false, _) => (ToolErrorClass::NotRun, "Not run: the program ended before this call began."),
        (true, true) => {
            (ToolErrorClass::Interrupted, "Interrupted: the program ended during this call. Nothing was changed by it.")
        }
        (true, false) => (
            ToolErrorClass::OutcomeUnknown,
            "Outcome unknown: the program ended during this call, and it may have had an effect. Look at the present state before \
             you change anything again.",
        ),
    };
    Event::ToolError(ToolError {
        call_id: open.call.call_id.clone(),
        name: open.call.name.clone(),
        error: text.to_owned(),
        class,
        blob: None,
        duration_ms: 0,
    })
}
