//! A session as a readable transcript, event by event, so that a log of any length is shown in little memory.

use std::collections::HashMap;
use std::io::Write;

use hames_protocol::{CallId, Diff, Envelope, ErrorClass, Event, Part};

use crate::clock::local_minute;
use crate::exit::Stop;
use crate::ledger::result_name;
use crate::output::text::{
    decision_line, duration, failure_lines, first_line, mark_proposed, nudge_line, stopped_line, tokens,
    tool_error_line, tool_line,
};
use crate::output::window::window_line;
use crate::output::{Out, Style, clean};

/// Writes events as they are read.
pub(crate) struct Transcript {
    style: Style,
    /// Labels of the calls that have no answer yet.
    labels: HashMap<CallId, String>,
}

impl Transcript {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, labels: HashMap::new() }
    }

    /// Writes one event; most have nothing to show.
    pub(crate) fn write(&mut self, envelope: &Envelope, out: &mut Out) -> Result<(), Stop> {
        match &envelope.event {
            Event::RunStart(start) => {
                let head = format!(
                    "── run {} · {} · {} · {} ──",
                    envelope.turn.unwrap_or(0),
                    start.mode,
                    clean::line(&start.model.to_string()),
                    local_minute(envelope.at)
                );
                out.line("")?;
                out.line(self.style.bold(&head))?;
            }
            Event::MessageUser(message) => {
                out.line("")?;
                for part in &message.parts {
                    self.part(part, out)?;
                }
            }
            Event::TextDone(done) => {
                out.line("")?;
                out.line(clean::block(done.text.trim_end()))?;
                if done.cut.is_some() {
                    out.line(self.style.yellow("[cut here]"))?;
                }
            }
            Event::ToolCall(call) => {
                self.labels.insert(call.call_id.clone(), clean::line(&call.label.to_string()));
            }
            Event::ChangeProposed(change) => {
                if let Some(label) = self.labels.get_mut(&change.call_id) {
                    mark_proposed(label);
                }
            }
            Event::ChangesApplied(applied) => self.settled("applied", &applied.paths, out)?,
            Event::ChangesDiscarded(discarded) => self.settled("discarded", &discarded.paths, out)?,
            Event::ToolDone(done) => {
                let label = self.labels.remove(&done.call_id).unwrap_or_else(|| clean::line(&done.name));
                out.line(self.style.dim(&format!("  {}", tool_line(&label, done))))?;
                for diff in &done.diffs {
                    self.diff(diff, out)?;
                }
                for part in &done.attachments {
                    if let Some(line) = image_line(part) {
                        out.line(self.style.dim(&format!("    {line}")))?;
                    }
                }
            }
            Event::ToolError(error) => {
                let label = self.labels.remove(&error.call_id).unwrap_or_else(|| clean::line(&error.name));
                out.line(self.style.yellow(&format!("  {}", tool_error_line(&label, error))))?;
            }
            Event::ApprovalAnswered(answer) => {
                let label = self.labels.get(&answer.call_id).map_or("", String::as_str);
                out.line(self.style.dim(&format!("  {}", decision_line(answer, label))))?;
            }
            Event::Nudge(nudge) => out.line(self.style.dim(&format!("  [{}]", nudge_line(nudge))))?,
            Event::LoopStopped(stopped) => out.line(self.style.red(&format!("  {}", stopped_line(stopped))))?,
            Event::Retry(retry) if retry.failure.class == ErrorClass::ContextOverflow => {
                out.line(self.style.dim(&format!("  [{}]", crate::output::window::SENT_SMALLER)))?;
            }
            Event::Retry(retry) => {
                out.line(self.style.dim(&format!("  [tried again] {}", first_line(&retry.failure.message))))?;
            }
            Event::ParameterLearned(learned) => {
                out.line(self.style.dim(&format!("  [learned] {}", clean::line(&learned.lesson.to_string()))))?;
            }
            Event::SessionRenamed(renamed) => {
                out.line(self.style.dim(&format!("  [renamed to \"{}\"]", clean::line(&renamed.name))))?;
            }
            Event::SessionCut(_) => out.line(self.style.dim("  [what followed was removed]"))?,
            Event::Error(failure) => {
                for line in failure_lines(failure) {
                    out.line(self.style.red(&line))?;
                }
            }
            Event::TurnDone(turn) => {
                let mut parts: Vec<String> = tokens(&turn.usage).into_iter().collect();
                parts.push(duration(turn.duration_ms));
                out.line("")?;
                write!(out, "{}", self.style.dim(&format!("{} · ", parts.join(" · "))))?;
            }
            Event::RunDone(done) => out.line(self.style.dim(result_name(done.result)))?,
            event if event.is_damaged() => {
                let seq = envelope.seq.map(|seq| format!(" {seq}")).unwrap_or_default();
                let said = format!("  [event{seq} of this session is damaged and cannot be read]");
                out.line(self.style.yellow(&said))?;
            }
            event => {
                if let Some(line) = window_line(event) {
                    out.line(self.style.dim(&format!("  [{line}]")))?;
                }
            }
        }
        Ok(())
    }

    /// What a person decided on proposals.
    fn settled(&self, how: &str, paths: &[String], out: &mut Out) -> Result<(), Stop> {
        for path in paths {
            out.line(self.style.dim(&format!("  [proposal {how}: {}]", clean::line(path))))?;
        }
        Ok(())
    }

    fn part(&self, part: &Part, out: &mut Out) -> Result<(), Stop> {
        match part {
            Part::Text { text } => {
                for line in clean::block(text.trim_end()).lines() {
                    out.line(self.style.green(&format!("> {line}")))?;
                }
                Ok(())
            }
            Part::Image { .. } => match image_line(part) {
                Some(line) => out.line(self.style.green(&format!("> {line}"))),
                None => Ok(()),
            },
        }
    }

    fn diff(&self, diff: &Diff, out: &mut Out) -> Result<(), Stop> {
        for line in clean::block(&diff.text).lines() {
            out.line(format!("    {}", self.style.diff_line(line)))?;
        }
        Ok(())
    }
}

/// An image in words; a screen of text shows no more of it.
fn image_line(part: &Part) -> Option<String> {
    let Part::Image { name, media_type, blob } = part else { return None };
    let name = clean::line(name.as_deref().unwrap_or(media_type));
    Some(format!("[image {name}, {media_type}, {} bytes]", blob.bytes, media_type = clean::line(media_type)))
}
