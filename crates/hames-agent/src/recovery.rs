//! What a death left open, closed: written by the next holder of the session, never by a reader.

use hames_protocol::{
    Cut, Declaration, Effect, Event, OpenBlock, OpenCall, OpenKind, ReasoningBlock, ReasoningDone, Resource, StepDone,
    TextDone, Timings, ToolError, ToolErrorClass,
};

/// The open step as far as it was kept, and its `step.done`. Text and reasoning that were shown stay; a call whose
/// arguments were still arriving was never asked for.
pub(crate) fn close_step(kept: Vec<OpenBlock>) -> Vec<Event> {
    let cut = Some(Cut::Crash);
    let shown = kept.into_iter().filter(|block| !block.text.trim().is_empty()).filter_map(|block| match block.kind {
        OpenKind::Text => Some(Event::TextDone(TextDone { index: block.index, text: block.text, cut })),
        OpenKind::Reasoning => {
            let reasoning = ReasoningBlock { text: block.text, ..ReasoningBlock::default() };
            Some(Event::ReasoningDone(ReasoningDone { index: block.index, block: reasoning, cut }))
        }
        OpenKind::ToolInput => None,
    });
    let done = StepDone {
        finish_reason: None,
        whole: false,
        usage: None,
        cost: None,
        timings: Timings::default(),
        request_id: None,
    };
    shown.chain([Event::StepDone(done)]).collect()
}

/// The answer to a call that has none.
pub(crate) fn answer(open: &OpenCall) -> Event {
    let (class, text) = match (open.started, open.declaration.as_ref().is_some_and(only_reads)) {
        (false, _) => (ToolErrorClass::NotRun, "Not run: the run ended before this call began."),
        (true, true) => {
            (ToolErrorClass::Interrupted, "Interrupted: the run ended during this call. Nothing was changed by it.")
        }
        (true, false) => (
            ToolErrorClass::OutcomeUnknown,
            "Outcome unknown: the run ended during this call, and it may have had an effect. Look at the present state \
             before you change anything again.",
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

fn only_reads(declaration: &Declaration) -> bool {
    declaration.effect == Effect::Read && !declaration.resources.iter().any(Resource::is_written)
}
