//! A session in lines of text: each said once, whole, in the order of the log.

use std::collections::HashMap;

use hames_protocol::{CallId, Envelope, Event, Label, OpenKind, Part, RunResult};

use crate::layers::approval_lines;

/// Lines of a result that are said; the rest is counted.
const RESULT_LINES: usize = 8;

/// What was said of the block that is open.
#[derive(Debug, Default)]
pub(crate) struct Saying {
    calls: HashMap<CallId, Label>,
    /// The block that streams, and how many bytes of it were said.
    open: Option<(u32, String, usize)>,
}

impl Saying {
    /// Takes an event in; `out` is given what it adds.
    pub(crate) fn see(&mut self, envelope: &Envelope, out: &mut Vec<String>) {
        if !envelope.agent.is_empty() {
            return;
        }
        match &envelope.event {
            Event::MessageUser(message) => {
                let mut lead = "You: ";
                for part in &message.parts {
                    match part {
                        Part::Text { text } => {
                            for line in text.lines() {
                                out.push(format!("{lead}{}", clean(line)));
                                lead = "     ";
                            }
                        }
                        Part::Image { name, .. } => {
                            out.push(format!("{lead}[image {}]", clean(name.as_deref().unwrap_or(""))));
                        }
                    }
                }
            }
            Event::RunStart(start) => out.push(format!("-- {} with {}", crate::app::name_of(start.mode), start.model)),
            Event::StepStart(_) => self.open = None,
            Event::TextDelta(delta) => self.stream(delta.index, delta.offset, &delta.text, out),
            Event::StepSnapshot(snapshot) => {
                for block in snapshot.blocks.iter().filter(|block| block.kind == OpenKind::Text) {
                    self.stream(block.index, 0, &block.text, out);
                }
            }
            Event::TextDone(done) => {
                let said = match self.open.take() {
                    Some((index, _, said)) if index == done.index => said,
                    _ => 0,
                };
                let rest = done.text.get(said..).unwrap_or_default();
                out.extend(rest.lines().map(clean));
                if done.cut.is_some() {
                    out.push("[cut]".into());
                }
            }
            Event::ToolCall(call) => {
                self.calls.insert(call.call_id.clone(), call.label.clone());
            }
            Event::ToolDone(done) => {
                out.push(format!("* {}", self.label(&done.call_id, &done.name)));
                results(&done.output, out);
            }
            Event::ToolError(error) => {
                out.push(format!("* {} failed:", self.label(&error.call_id, &error.name)));
                results(&error.error, out);
            }
            Event::ApprovalAsked(asked) => {
                out.push(format!(
                    "? May this run: {} {} ({})",
                    asked.label.tool,
                    clean(&asked.label.target),
                    clean(&asked.reason)
                ));
                // Its first line is the reason.
                out.extend(approval_lines(asked).into_iter().skip(1).map(|line| format!("  {line}")));
            }
            Event::ApprovalAnswered(answered) => {
                let label = self.label(&answered.call_id, "the call");
                out.push(format!("? {label}: {:?} by {}", answered.decision, clean(&answered.by)));
            }
            Event::QuestionAsked(asked) => {
                out.push(format!("? {}", clean(&asked.text)));
                out.extend(
                    asked.choices.iter().enumerate().map(|(at, choice)| format!("  {} {}", at + 1, clean(choice))),
                );
            }
            Event::QuestionAnswered(answered) => out.push(format!("? answered: {}", clean(&answered.text))),
            Event::PendingAdded(pending) => out.push(format!("-- a message waits ({:?})", pending.delivery)),
            Event::PendingCancelled(_) => out.push("-- a waiting message was withdrawn".into()),
            Event::Retry(retry) => out.push(format!("-- asked again: {}", clean(&retry.failure.message))),
            Event::Nudge(nudge) => out.push(format!("-- the loop guard says: {}", clean(&nudge.text))),
            Event::CompactionDone(_) => out.push("-- the window was compacted".into()),
            Event::WindowCheckpoint(_) => out.push("-- the model's window begins here".into()),
            Event::SessionCut(cut) => out.push(format!("-- {} events were cut", cut.removed)),
            Event::Error(failure) => out.push(format!("! {}", clean(&failure.message))),
            Event::RunDone(done) => out.push(
                match done.result {
                    RunResult::Complete => "-- done",
                    RunResult::Stopped => "-- stopped short",
                    RunResult::MaxSteps => "-- stopped at the step limit",
                    RunResult::Error => "-- failed",
                    RunResult::Interrupted => "-- stopped",
                }
                .into(),
            ),
            _ => {}
        }
    }

    fn label(&self, call: &CallId, name: &str) -> String {
        match self.calls.get(call) {
            Some(label) => clean(format!("{} {} {}", label.tool, label.target, label.size).trim()),
            None => clean(name),
        }
    }

    /// Whole lines are said as soon as they are there.
    fn stream(&mut self, index: u32, offset: u64, piece: &str, out: &mut Vec<String>) {
        if self.open.as_ref().is_none_or(|(open, ..)| *open != index) {
            self.open = Some((index, String::new(), 0));
        }
        let Some((_, text, said)) = &mut self.open else { return };
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        // A piece that does not follow is told again, whole, when the block is done.
        if at > text.len() || !text.is_char_boundary(at) {
            return;
        }
        let known = text.len() - at;
        text.push_str(piece.get(known.min(piece.len())..).unwrap_or_default());
        let Some(rest) = text.get(*said..) else { return };
        if let Some(end) = rest.rfind('\n') {
            out.extend(rest[..end].split('\n').map(clean));
            *said += end + 1;
        }
    }
}

fn results(text: &str, out: &mut Vec<String>) {
    let mut lines = text.lines();
    out.extend(lines.by_ref().take(RESULT_LINES).map(|line| format!("  {}", clean(line))));
    let more = lines.count();
    if more > 0 {
        out.push(format!("  … {more} more lines"));
    }
}

/// A line without what terminals would obey.
fn clean(line: impl AsRef<str>) -> String {
    crate::shell::clean(line.as_ref()).replace('\n', " ").replace('\t', "    ")
}
