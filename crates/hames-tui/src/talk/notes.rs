//! What events say in one line, and what the end of a call leaves in its card.

use hames_protocol::{
    ApprovalAnswered, BlobRef, Decision, ErrorClass, Event, Failure, RunResult, ToolDone, ToolError, ToolOutputDelta,
    WindowLimited,
};
use serde_json::Value;

use super::block::{Card, Note, Progress, Tone, Whole};
use super::numbers::{count, seconds, tokens};
use super::split;
use super::text::{clean, clean_line, floor};

/// Bytes kept of what a running command printed: its end.
const LIVE_BYTES: usize = 32 * 1024;

/// The note for an event; none for most.
pub(super) fn of(event: &Event) -> Option<Note> {
    let note = match event {
        Event::Nudge(nudge) => {
            let said = clean(&nudge.text).into_owned();
            if nudge.detected.is_empty() {
                Note::new(Tone::Nudge, format!("Nudge: {}", clean_line(&nudge.kind))).with(said)
            } else {
                let (detected, done) = (clean_line(&nudge.detected), clean_line(&nudge.done));
                Note::new(Tone::Nudge, format!("Nudge {} of {}: {detected}; {done}", nudge.count, nudge.max)).with(said)
            }
        }
        Event::LoopStopped(stopped) => {
            let nudges = if stopped.nudges == 1 { "1 nudge".into() } else { format!("{} nudges", stopped.nudges) };
            let (kind, detected) = (clean_line(&stopped.kind), clean_line(&stopped.detected));
            Note::new(Tone::Bad, format!("Loop not resolved [{kind}]: {detected}, after {nudges}"))
        }
        Event::Retry(retry) if retry.failure.is_loading() => {
            Note::new(Tone::Retry, format!("The model is still loading: {}", clean_line(&retry.failure.message)))
        }
        Event::Retry(retry) if retry.failure.class == ErrorClass::ContextOverflow => {
            Note::new(Tone::Retry, "The request did not fit; it is made smaller and sent again")
        }
        Event::Retry(retry) => {
            let next = format!("attempt {} of {}", u64::from(retry.attempt) + 1, retry.max_attempts);
            let why = clean_line(&retry.failure.message);
            Note::new(Tone::Retry, format!("Trying again in {} ({next}): {why}", seconds(retry.delay_ms)))
        }
        Event::ParameterLearned(learned) => {
            let (model, lesson) = (clean_line(&learned.model.to_string()), clean_line(&learned.lesson.to_string()));
            Note::new(Tone::Plain, format!("Learned of {model}: {lesson}"))
        }
        Event::WindowLimited(limited) => Note::new(Tone::Warn, limited_line(limited)),
        Event::CompactionDone(done) => {
            let (before, after) = (tokens(done.tokens_before), tokens(done.tokens_after));
            Note::new(Tone::Plain, format!("Window compacted: {before} → {after} tokens"))
        }
        Event::ChangesApplied(changed) => Note::new(Tone::Plain, format!("Applied {}", files(&changed.paths))),
        Event::ChangesDiscarded(changed) => Note::new(Tone::Plain, format!("Discarded {}", files(&changed.paths))),
        Event::SessionRenamed(renamed) => {
            Note::new(Tone::Plain, format!("The session is now called {}", clean_line(&renamed.name)))
        }
        Event::SessionMoved(moved) => {
            Note::new(Tone::Plain, format!("The session moved to {}", clean_line(&moved.folder)))
        }
        Event::SessionCut(cut) => Note::new(Tone::Plain, format!("{} events were cut here", count(cut.removed))),
        Event::SessionBranched(_) => Note::new(Tone::Plain, "The session was branched here from another"),
        Event::SessionImported(_) => Note::new(Tone::Plain, "Everything above was imported"),
        Event::SubagentStart(start) => {
            Note::new(Tone::Plain, format!("{} began", clean_line(&start.profile))).with(clean(&start.task))
        }
        Event::SubagentDone(done) => {
            let how = ended(done.result, None).unwrap_or_else(|| "Done".into());
            Note::new(Tone::Plain, format!("{how} · {}", seconds(done.duration_ms)))
        }
        Event::SubagentError(error) => Note::new(Tone::Bad, format!("Failed: {}", clean_line(&error.error))),
        Event::Error(failure) => error(failure),
        event if event.is_damaged() => {
            Note::new(Tone::Warn, "A record of the log is damaged and cannot be shown; the rest is not touched by it")
        }
        _ => return None,
    };
    Some(note)
}

fn error(failure: &Failure) -> Note {
    let mut more = Vec::new();
    if let Some(theirs) = failure.provider_message.as_deref().filter(|text| !failure.message.contains(*text)) {
        more.push(format!("The provider says: {}", clean(theirs)));
    }
    if let Some(id) = &failure.request_id {
        more.push(format!("Request id: {}", clean_line(id)));
    }
    Note::new(Tone::Bad, clean(&failure.message)).with(more.join("\n"))
}

fn limited_line(limited: &WindowLimited) -> String {
    let how = match limited.how.as_str() {
        "stated" => "it says so itself",
        "observed" => "it read no more than that of what was sent",
        _ => "it refused more and says no number",
    };
    let model = clean_line(&limited.model.to_string());
    format!("{model} takes {} tokens and not {}: {how}", count(limited.tokens), count(limited.before))
}

fn files(paths: &[String]) -> String {
    match paths {
        [path] => clean_line(path),
        paths => format!("{} files", count(paths.len() as u64)),
    }
}

/// Why a run ended, where it did not simply complete. Of failures the error itself tells.
pub(super) fn ended(result: RunResult, reason: Option<&str>) -> Option<String> {
    let text = match (result, reason) {
        (RunResult::Complete | RunResult::Error, _) => return None,
        (RunResult::MaxSteps, _) => "Stopped at the step limit; say \"go on\" to continue".into(),
        (RunResult::Stopped, Some("output_limit")) => {
            "Stopped: the answer reached the output limit; raise max_output in the settings".into()
        }
        (RunResult::Stopped, Some("question")) => "Stopped: the agent has a question for you".into(),
        (RunResult::Stopped, Some("loop")) => {
            "Stopped: it went round in circles; give it a hint, or make the guard more patient in the settings".into()
        }
        (RunResult::Stopped, Some("empty_answer")) => {
            "Stopped: the model gave neither text nor a tool call; say \"go on\" to ask again".into()
        }
        (RunResult::Stopped, Some("content_filter")) => "Stopped by the provider's content filter".into(),
        (RunResult::Stopped, Some(other)) => format!("Stopped: {}", clean_line(other)),
        (RunResult::Stopped, None) => "Stopped short".into(),
        (RunResult::Interrupted, _) => "Interrupted; the next message goes on from here".into(),
    };
    Some(text)
}

/// The input of a call for people: one line per member, texts as they are.
pub(super) fn input(input: Option<&Value>, arguments: &str) -> String {
    let Some(Value::Object(members)) = input else {
        return input.filter(|v| !v.is_null()).map_or_else(|| arguments.to_owned(), Value::to_string);
    };
    let lines = members.iter().map(|(name, value)| match value {
        Value::String(text) if text.contains('\n') => format!("{name}:\n{}", text.trim_end_matches('\n')),
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What was decided about a call; empty where it need not be said.
pub(super) fn decided(answer: &ApprovalAnswered) -> String {
    let what = match answer.decision {
        Decision::Once => "allowed once",
        Decision::Session => "allowed for the session",
        Decision::Folder => "allowed for the folder",
        Decision::Deny => "declined",
    };
    let note = answer.note.as_ref().map(|note| format!("; {}", clean_line(note))).unwrap_or_default();
    format!("{what} by {}{note}", clean_line(&answer.by))
}

/// A piece of what a running command prints.
pub(super) fn live(card: &mut Card, delta: &ToolOutputDelta) {
    let end = delta.offset.saturating_add(delta.text.len() as u64);
    if matches!(card.progress, Progress::Done | Progress::Failed(_)) || end <= card.live_read {
        return;
    }
    let known = card.live_read.saturating_sub(delta.offset) as usize;
    if delta.offset > card.live_read {
        card.live.push_str("…\n");
    }
    card.live.push_str(delta.text.get(known..).unwrap_or(&delta.text));
    card.live_read = end;
    if card.live.len() > 2 * LIVE_BYTES {
        let from = floor(&card.live, card.live.len() - LIVE_BYTES);
        card.live.drain(..from);
    }
}

/// The call gave a result.
pub(super) fn done(card: &mut Card, done: &ToolDone) {
    card.progress = Progress::Done;
    finish(card, &done.output, done.duration_ms);
    card.diffs.clone_from(&done.diffs);
    card.exit_code = done.exit_code;
    card.images = done.attachments.len();
    card.is_served = done.served_from.is_some();
    card.whole = done.blob.as_ref().map(whole);
}

/// The call gave none.
pub(super) fn failed(card: &mut Card, error: &ToolError) {
    card.progress = Progress::Failed(error.class);
    finish(card, &error.error, error.duration_ms);
    card.diffs.clear();
    card.whole = error.blob.as_ref().map(whole);
}

fn whole(blob: &BlobRef) -> Whole {
    let name = clean_line(blob.name.as_deref().unwrap_or(""));
    Whole { name, hash: blob.hash.clone(), bytes: blob.bytes }
}

fn finish(card: &mut Card, output: &str, duration_ms: u64) {
    card.output = output.trim_end_matches('\n').to_owned();
    card.lines = split::count(&card.output);
    card.duration_ms = Some(duration_ms);
    card.live = String::new();
    card.live_read = 0;
}
