//! A run for people: the answer on standard output as it streams, everything else as calm lines on standard error.

use std::collections::HashMap;

pub(crate) use hames_protocol::grouped as count;
use hames_protocol::{
    ApprovalAnswered, CallId, Decision, Diff, Done, Envelope, ErrorClass, Event, Failure, LoopStopped, Nudge,
    OpenBlock, OpenKind, Part, RunResult, TextDelta, TextDone, ToolDone, ToolError, Usage,
};

use super::Style;
use super::clean::{self, Cleaner};
use super::money::Spent;
use super::printer::Sink;
use super::window::window_line;
use crate::approve::BY_FLAG;

/// Characters of one progress line: more is cut, the log has it all.
const LINE_CHARS: usize = 160;

/// Renders batches of envelopes.
#[derive(Debug)]
pub(crate) struct Text {
    sink: Sink,
    style: Style,
    session: String,
    /// Labels of the calls under way.
    labels: HashMap<CallId, String>,
    /// The block of text being printed: its step, its index, and the bytes of it seen so far.
    open: Option<(Option<u32>, u32, usize)>,
    /// The step and index of the last block that was printed to its end.
    closed: Option<(Option<u32>, u32)>,
    cleaner: Cleaner,
    /// Whether the last character printed ended a line; true before the first.
    line_ended: bool,
    done: Option<Done>,
    spent: Spent,
    reason_said: bool,
}

impl Text {
    pub(crate) fn new(sink: Sink, style: Style, session: String) -> Self {
        Self {
            sink,
            style,
            session,
            labels: HashMap::new(),
            open: None,
            closed: None,
            cleaner: Cleaner::default(),
            line_ended: true,
            done: None,
            spent: Spent::default(),
            reason_said: false,
        }
    }

    /// Prints a batch.
    pub(crate) fn see(&mut self, batch: &[Envelope]) {
        for envelope in batch {
            self.one(envelope);
        }
    }

    fn one(&mut self, envelope: &Envelope) {
        let own = envelope.agent.is_empty();
        match &envelope.event {
            Event::TextDelta(delta) if own => self.text(envelope.step, delta),
            Event::TextDone(done) if own => self.text_done(envelope.step, done),
            Event::StepSnapshot(snapshot) if own => {
                let texts = snapshot.blocks.iter().filter(|block| block.kind == OpenKind::Text);
                texts.for_each(|block| self.catch_up(envelope.step, block));
            }
            Event::StepDone(done) => self.spent.add(done.cost.as_ref()),
            Event::CompactionAsked(asked) => self.spent.add(asked.cost.as_ref()),
            Event::ToolCall(call) => {
                self.labels.insert(call.call_id.clone(), call.label.to_string());
            }
            Event::ChangeProposed(change) => {
                if let Some(label) = self.labels.get_mut(&change.call_id) {
                    mark_proposed(label);
                }
            }
            Event::ToolDone(done) => {
                let line = tool_line(&self.label(&done.call_id, &done.name), done);
                self.progress(&envelope.agent, self.style.dim(&line));
            }
            Event::ToolError(error) => {
                let line = tool_error_line(&self.label(&error.call_id, &error.name), error);
                self.progress(&envelope.agent, self.style.yellow(&line));
            }
            // Said once: it may be asked dozens of times until a large model is loaded.
            Event::Retry(retry) if retry.failure.is_loading() && retry.attempt > 1 => {}
            Event::Retry(retry) if retry.failure.is_loading() => {
                let line =
                    format!("the model is still loading; asking again until it answers: {}", retry.failure.message);
                self.progress(&envelope.agent, self.style.yellow(&line));
            }
            Event::ApprovalAnswered(answer) => {
                if let Some(line) = answer_line(answer, self.labels.get(&answer.call_id).map_or("", String::as_str)) {
                    self.progress(&envelope.agent, self.style.yellow(&line));
                }
            }
            Event::Retry(retry) if retry.failure.class == ErrorClass::ContextOverflow => {
                self.progress(&envelope.agent, self.style.yellow(super::window::SENT_SMALLER));
            }
            Event::Retry(retry) => {
                let line = format!(
                    "trying again in {} (attempt {} of {}): {}",
                    duration(retry.delay_ms),
                    retry.attempt + 1,
                    retry.max_attempts,
                    retry.failure.message
                );
                self.progress(&envelope.agent, self.style.yellow(&line));
            }
            Event::ParameterLearned(learned) => {
                let (model, lesson) =
                    (clean::line(&learned.model.to_string()), clean::line(&learned.lesson.to_string()));
                self.progress(&envelope.agent, self.style.dim(&format!("learned of {model}: {lesson}")));
            }
            Event::Nudge(nudge) => {
                self.progress(&envelope.agent, self.style.cyan(&nudge_line(nudge)));
            }
            Event::LoopStopped(stopped) => {
                self.reason_said = true;
                self.end_line();
                self.raw_line(&self.style.red(&format!("hames: {}", stopped_line(stopped))));
            }
            Event::Error(failure) => {
                self.reason_said = true;
                self.end_line();
                for line in failure_lines(failure) {
                    self.raw_line(&self.style.red(&line));
                }
            }
            Event::Done(done) if own => self.done = Some(done.clone()),
            Event::TurnDone(turn) if own => {
                self.end_line();
                let line = self.summary(turn.duration_ms, &turn.usage);
                self.raw_line(&self.style.dim(&line));
            }
            Event::RunDone(end) if own => {
                self.end_line();
                if let Some(line) = self.why(end.result) {
                    self.raw_line(&self.style.yellow(&line));
                }
            }
            event => {
                if let Some(line) = window_line(event) {
                    self.progress(&envelope.agent, self.style.dim(&line));
                }
            }
        }
    }

    fn text(&mut self, step: Option<u32>, delta: &TextDelta) {
        let seen = match self.open {
            Some((open_step, index, seen)) if (open_step, index) == (step, delta.index) => seen,
            _ => {
                self.close_block();
                0
            }
        };
        self.print(&delta.text);
        self.open = Some((step, delta.index, seen + delta.text.len()));
    }

    fn text_done(&mut self, step: Option<u32>, done: &TextDone) {
        let seen = match self.open {
            Some((open_step, index, seen)) if (open_step, index) == (step, done.index) => seen,
            _ => {
                self.close_block();
                0
            }
        };
        // What no delta carried: everything, where the answer did not stream.
        if let Some(rest) = done.text.get(seen..) {
            self.print(rest);
        }
        self.closed = Some((step, done.index));
        self.close_block();
    }

    /// What an open block has so far, for whoever came in its middle or was away: only what was not printed yet.
    fn catch_up(&mut self, step: Option<u32>, block: &OpenBlock) {
        let seen = match self.open {
            Some((open_step, index, _)) if open_step == step && block.index < index => return,
            Some((open_step, index, seen)) if (open_step, index) == (step, block.index) => seen,
            _ if self.closed.is_some_and(|(closed, index)| closed == step && block.index <= index) => return,
            _ => {
                self.close_block();
                0
            }
        };
        if let Some(rest) = block.text.get(seen..) {
            self.print(rest);
            self.open = Some((step, block.index, block.text.len()));
        }
    }

    fn print(&mut self, text: &str) {
        let mut out = String::with_capacity(text.len());
        self.cleaner.push(text, &mut out);
        self.put(&out);
    }

    fn put(&mut self, out: &str) {
        if let Some(last) = out.chars().next_back() {
            self.line_ended = last == '\n';
            self.sink.out(out.as_bytes());
        }
    }

    /// Every block of text ends its line, the last one too.
    fn close_block(&mut self) {
        let mut out = String::new();
        self.cleaner.end(&mut out);
        self.put(&out);
        self.open = None;
        self.end_line();
    }

    fn end_line(&mut self) {
        if !self.line_ended {
            self.sink.out(b"\n");
            self.line_ended = true;
        }
    }

    fn progress(&mut self, agent: &[String], line: String) {
        let who = if agent.is_empty() { String::new() } else { format!("{}: ", clean::line(&agent.join("/"))) };
        self.raw_line(&format!("  {who}{line}"));
    }

    fn raw_line(&self, line: &str) {
        self.sink.err(format!("{line}\n").as_bytes());
    }

    fn label(&mut self, call: &CallId, name: &str) -> String {
        shortened(&clean::line(&self.labels.remove(call).unwrap_or_else(|| name.to_owned())))
    }

    fn summary(&self, duration_ms: u64, usage: &Usage) -> String {
        let mut parts = vec![format!("session \"{}\"", clean::line(&self.session))];
        if let Some(done) = &self.done {
            parts.push(format!("{} step{}", count(done.steps.into()), if done.steps == 1 { "" } else { "s" }));
        }
        parts.extend(tokens(usage));
        parts.extend(self.spent.text());
        parts.push(duration(duration_ms));
        format!("hames: {}", parts.join(" · "))
    }

    fn why(&self, result: RunResult) -> Option<String> {
        let reason = self.done.as_ref().and_then(|done| done.reason.as_deref());
        let text = match (result, reason) {
            (RunResult::Complete, _) => return None,
            (RunResult::MaxSteps, _) => "stopped at the step limit; `hames run -c \"go on\"` continues".into(),
            (RunResult::Stopped, Some("output_limit")) => {
                "stopped: the answer reached the output limit; raise max_tokens or max_output in the configuration"
                    .into()
            }
            (RunResult::Stopped, Some("question")) => {
                "stopped: the agent has a question; answer it with `hames run -c \"…\"`".into()
            }
            (RunResult::Stopped, Some("loop")) => {
                "stopped: going round in circles; `hames run -c \"…\"` goes on with a hint from you, `--guard low` is more \
                 patient"
                    .into()
            }
            (RunResult::Stopped, Some("empty_answer")) => {
                "stopped: the model gave neither text nor a tool call; `hames run -c \"go on\"` asks again".into()
            }
            (RunResult::Stopped, Some(other)) => format!("stopped: {}", clean::line(other)),
            (RunResult::Stopped, None) => "stopped short".into(),
            (RunResult::Interrupted, _) => "interrupted; `hames run -c \"…\"` goes on from here".into(),
            (RunResult::Error, _) if self.reason_said => return None,
            (RunResult::Error, _) => "failed".into(),
        };
        Some(format!("hames: {text}"))
    }
}

/// What a person should know of an answer that nobody saw given, or of what became of it.
pub(crate) fn answer_line(answer: &ApprovalAnswered, label: &str) -> Option<String> {
    if let Some(note) = &answer.note {
        return Some(format!("{}: {}", shortened(&clean::line(label)), clean::line(note)));
    }
    let by_flag = answer.by == BY_FLAG && answer.decision != Decision::Deny;
    by_flag.then(|| format!("{} · allowed by --approve", shortened(&clean::line(label))))
}

/// An answer in one line: what was decided, by whom, and for which call.
pub(crate) fn decision_line(answer: &ApprovalAnswered, label: &str) -> String {
    let decision = match answer.decision {
        Decision::Once => "allowed once",
        Decision::Session => "allowed for the session",
        Decision::Folder => "allowed for the folder",
        Decision::Deny => "declined",
    };
    let note = answer.note.as_ref().map(|note| format!("; {}", clean::line(note))).unwrap_or_default();
    format!("[{decision} by {}] {}{note}", clean::line(&answer.by), shortened(label))
}

/// Says in a call's label that what it does is only proposed.
pub(crate) fn mark_proposed(label: &mut String) {
    const MARK: &str = " (proposed)";
    if !label.ends_with(MARK) {
        label.push_str(MARK);
    }
}

/// What the loop guard saw and did, in one line.
pub(crate) fn nudge_line(nudge: &Nudge) -> String {
    if nudge.detected.is_empty() {
        return format!("nudge: {}", first_line(&nudge.text));
    }
    let (detected, done) = (clean::line(&nudge.detected), clean::line(&nudge.done));
    format!("nudge {} of {}: {detected}; {done}", nudge.count, nudge.max)
}

/// That a loop was not ended by nudges, in one line.
pub(crate) fn stopped_line(stopped: &LoopStopped) -> String {
    let nudges = if stopped.nudges == 1 { "1 nudge".to_owned() } else { format!("{} nudges", stopped.nudges) };
    let (kind, detected) = (clean::line(&stopped.kind), clean::line(&stopped.detected));
    format!("❌ Loop not resolved [{kind}]: {detected}, after {nudges}")
}

/// A call that gave a result, in one line.
pub(crate) fn tool_line(label: &str, done: &ToolDone) -> String {
    let mut parts = vec![label.to_owned()];
    if !done.diffs.is_empty() {
        parts.push(changes(&done.diffs));
    }
    if let Some(code) = done.exit_code {
        parts.push(format!("exit {code}"));
    }
    match done.attachments.iter().filter(|part| matches!(part, Part::Image { .. })).count() {
        0 => {}
        1 => parts.push("1 image".into()),
        images => parts.push(format!("{images} images")),
    }
    parts.push(if done.served_from.is_some() { "from memory".into() } else { duration(done.duration_ms) });
    parts.join(" · ")
}

/// A call that gave none, in one line.
pub(crate) fn tool_error_line(label: &str, error: &ToolError) -> String {
    let what = error.class.words();
    let why = first_line(&error.error);
    shortened(&format!("{label} · {what}: {}", without_echo(&why, label)))
}

/// What a call said about its failure, without what its line says already: the target it begins with, the verdict.
fn without_echo<'w>(why: &'w str, label: &str) -> &'w str {
    let why = why.strip_prefix("Refused: ").unwrap_or(why);
    let target = label.split_once(' ').map_or("", |(_, target)| target);
    let rest = why.strip_prefix(target).filter(|_| !target.is_empty());
    rest.and_then(|rest| rest.strip_prefix([' ', ':'])).map_or(why, str::trim_start)
}

/// `+4/−2` over all diffs.
pub(crate) fn changes(diffs: &[Diff]) -> String {
    let added: u32 = diffs.iter().map(|diff| diff.added).fold(0, u32::saturating_add);
    let removed: u32 = diffs.iter().map(|diff| diff.removed).fold(0, u32::saturating_add);
    format!("+{added}/−{removed}")
}

/// A failure in our words, then in the provider's.
pub(crate) fn failure_lines(failure: &Failure) -> Vec<String> {
    let mut lines = vec![format!("hames: {}", clean::block(&failure.message))];
    if let Some(theirs) = failure.provider_message.as_deref().filter(|text| !failure.message.contains(*text)) {
        lines.push(format!("  the provider says: {}", shortened(&clean::line(theirs))));
    }
    if let Some(id) = &failure.request_id {
        lines.push(format!("  request id: {}", clean::line(id)));
    }
    lines
}

/// `1,234 in (1,000 cached), 56 out`; nothing where the provider said nothing.
pub(crate) fn tokens(usage: &Usage) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(input) = usage.input {
        let cached = usage.cache_read.filter(|n| *n > 0).map(|n| format!(" ({} cached)", count(n))).unwrap_or_default();
        parts.push(format!("{} tokens in{cached}", count(input)));
    }
    if let Some(output) = usage.output {
        parts.push(format!("{} out", count(output)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Milliseconds for people.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// The first line that says something, harmless.
pub(crate) fn first_line(text: &str) -> String {
    clean::line(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(""))
}

/// At most [`LINE_CHARS`] characters.
pub(crate) fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hames_protocol::ToolErrorClass;

    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        for (ms, text) in [(0, "0 ms"), (999, "999 ms"), (1050, "1.0 s"), (59_990, "59.9 s"), (61_000, "1 min 1 s")] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn a_failed_call_says_nothing_twice() {
        for (label, error, line) in [
            ("Read no.txt", "no.txt does not exist", "Read no.txt · failed: does not exist"),
            (
                "Read loop",
                "loop: it leads through too many links",
                "Read loop · failed: it leads through too many links",
            ),
            ("Read a", "a.txt does not exist", "Read a · failed: a.txt does not exist"),
            ("Read no.txt", "Refused: /etc/passwd is outside", "Read no.txt · failed: /etc/passwd is outside"),
            ("Read /etc/x", "Refused: /etc/x is outside", "Read /etc/x · failed: is outside"),
            ("Shell", "The command is empty", "Shell · failed: The command is empty"),
            ("Read x", "x", "Read x · failed: x"),
            ("Read ü", "ü is a folder", "Read ü · failed: is a folder"),
        ] {
            let error = ToolError {
                call_id: "c".into(),
                name: "Read".into(),
                error: error.into(),
                class: ToolErrorClass::Failed,
                duration_ms: 0,
                blob: None,
            };
            assert_eq!(tool_error_line(label, &error), line);
        }
    }

    #[test]
    fn a_tool_line_has_label_changes_exit_code_and_duration() {
        let diff = |added, removed| Diff { path: "a".into(), text: String::new(), added, removed };
        let done = ToolDone {
            call_id: "c".into(),
            name: "Shell".into(),
            output: String::new(),
            blob: None,
            diffs: vec![diff(3, 1), diff(1, 1)],
            files: vec![],
            exit_code: Some(2),
            attachments: vec![],
            duration_ms: 1200,
            served_from: None,
            capability: false,
        };
        assert_eq!(tool_line("Shell make", &done), "Shell make · +4/−2 · exit 2 · 1.2 s");
        let blob = hames_protocol::BlobRef { hash: "h".into(), bytes: 1, dropped: 0, name: None };
        let image = Part::Image { blob, media_type: "image/png".into(), name: None };
        for (attachments, line) in [
            (vec![image.clone()], "Read a · 1 image · 9 ms"),
            (vec![image.clone(), Part::text("x"), image], "Read a · 2 images · 9 ms"),
        ] {
            let done = ToolDone { diffs: vec![], exit_code: None, attachments, duration_ms: 9, ..done.clone() };
            assert_eq!(tool_line("Read a", &done), line);
        }
    }
}
