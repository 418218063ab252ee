//! What a session holds from a message on: enough to say what a cut removes and where a copy ends. A fold of pages of the
//! log, which come from the end backwards, and of the events that come meanwhile.

use std::collections::BTreeSet;

use hames_protocol::api::LogPage;
use hames_protocol::{Envelope, Event, Part, RunId};

/// Bytes of a message that are kept to be shown.
const MAX_SHOWN: usize = 400;

/// Something that was said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) seq: u64,
    pub(super) at: u64,
    /// Whether the user said it; an answer otherwise.
    pub(super) is_user: bool,
    /// Its first lines.
    pub(super) text: String,
    /// What the user wrote, whole.
    pub(super) whole: Option<String>,
    run: Option<RunId>,
}

/// What goes with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) users: u64,
    pub(super) answers: u64,
    pub(super) calls: u64,
    pub(super) events: u64,
    /// Paths for which a change was proposed in it.
    pub(super) proposed: BTreeSet<String>,
}

/// The part of the log that is known: everything from its first event to the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    messages: Vec<Message>,
    events: Vec<u64>,
    calls: Vec<u64>,
    starts: Vec<(u64, Option<RunId>)>,
    proposed: Vec<(u64, String)>,
    /// Whether there are older events.
    pub(super) is_older: bool,
    is_read: bool,
}

impl Span {
    /// Whether anything is known.
    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    /// The first event that is known: the next page ends before it.
    pub(super) fn first(&self) -> Option<u64> {
        self.events.first().copied()
    }

    /// What was said, in order.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Puts a page in front of what is known; the first one is the end of the log.
    pub(super) fn prepend(&mut self, page: &LogPage) {
        let mut before = Self::default();
        let known = self.first().unwrap_or(u64::MAX);
        page.events.iter().filter(|event| event.seq.is_some_and(|seq| seq < known)).for_each(|e| before.take(e));
        before.messages.append(&mut self.messages);
        before.events.append(&mut self.events);
        before.calls.append(&mut self.calls);
        before.starts.append(&mut self.starts);
        before.proposed.append(&mut self.proposed);
        *self = Self { is_older: page.older, is_read: true, ..before };
    }

    /// Takes in what comes while somebody looks. What was cut away goes.
    pub(super) fn hear(&mut self, event: &Envelope) {
        let is_new = event.seq.is_some_and(|seq| self.events.last().is_none_or(|last| seq > *last));
        if self.is_read && is_new {
            self.take(event);
        }
    }

    fn take(&mut self, envelope: &Envelope) {
        let Some(seq) = envelope.seq else { return };
        if let Event::SessionCut(cut) = &envelope.event {
            self.messages.retain(|message| message.seq < cut.from_seq);
            self.events.retain(|seq| *seq < cut.from_seq);
            self.calls.retain(|seq| *seq < cut.from_seq);
            self.starts.retain(|(seq, _)| *seq < cut.from_seq);
            self.proposed.retain(|(seq, _)| *seq < cut.from_seq);
        }
        self.events.push(seq);
        match &envelope.event {
            Event::ToolCall(_) => self.calls.push(seq),
            Event::ChangeProposed(change) => self.proposed.push((seq, change.path.clone())),
            _ if !envelope.agent.is_empty() => {}
            Event::RunStart(_) => self.starts.push((seq, envelope.run.clone())),
            Event::MessageUser(message) => {
                let whole = whole(&message.parts);
                let text = if whole.is_empty() { "an image".to_owned() } else { beginning(&whole) };
                self.say(envelope, seq, true, text, Some(whole));
            }
            Event::TextDone(done) if !done.text.trim().is_empty() => {
                self.say(envelope, seq, false, beginning(&done.text), None);
            }
            _ => {}
        }
    }

    fn say(&mut self, envelope: &Envelope, seq: u64, is_user: bool, text: String, whole: Option<String>) {
        self.messages.push(Message { seq, at: envelope.at, is_user, text, whole, run: envelope.run.clone() });
    }

    /// The event from which on everything goes where a message of the user is cut off: the start of its run where it began
    /// it.
    pub(super) fn cut_from(&self, message: &Message) -> u64 {
        let start = self.starts.iter().rev().find(|(seq, run)| *seq < message.seq && *run == message.run);
        let Some((start, _)) = start else { return message.seq };
        let has_earlier = self.messages.iter().any(|m| m.is_user && m.seq > *start && m.seq < message.seq);
        if has_earlier { message.seq } else { *start }
    }

    /// What goes with a message of the user.
    pub(super) fn tail(&self, message: &Message) -> Tail {
        let from = self.cut_from(message);
        let count = |seqs: &[u64]| (seqs.len() - seqs.partition_point(|seq| *seq < from)) as u64;
        let said = self.messages.iter().filter(|message| message.seq >= from);
        let (users, answers): (Vec<&Message>, Vec<&Message>) = said.partition(|message| message.is_user);
        Tail {
            users: users.len() as u64,
            answers: answers.len() as u64,
            calls: count(&self.calls),
            events: count(&self.events),
            proposed: self.proposed.iter().filter(|(seq, _)| *seq >= from).map(|(_, path)| path.clone()).collect(),
        }
    }

    /// The last event of a copy that ends with a message: an answer is taken along, and its turn to the end where nothing
    /// more was said in it; a message of the user is not. All where absent.
    pub(super) fn copy_to(&self, message: &Message) -> Option<u64> {
        if message.is_user {
            return Some(self.cut_from(message).saturating_sub(1).max(1));
        }
        match self.messages.iter().find(|other| other.seq > message.seq) {
            None => None,
            Some(next) if next.is_user => Some(self.cut_from(next).saturating_sub(1).max(message.seq)),
            Some(_) => Some(message.seq),
        }
    }
}

fn whole(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn beginning(text: &str) -> String {
    let text = text.trim();
    text[..crate::talk::text::floor(text, MAX_SHOWN)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(seq: u64, run: &str, value: Value) -> Envelope {
        let event: Event = serde_json::from_value(value).unwrap();
        assert!(!matches!(event, Event::Unknown(_)), "{event:?}");
        Envelope { seq: Some(seq), run: Some(run.into()), ..Envelope::detached(seq, event) }
    }

    fn start(seq: u64, run: &str) -> Envelope {
        event(seq, run, json!({"type": "run.start", "mode": "build", "model": "a/b"}))
    }

    fn user(seq: u64, run: &str, text: &str) -> Envelope {
        event(seq, run, json!({"type": "message.user", "parts": [{"type": "text", "text": text}]}))
    }

    fn answer(seq: u64, run: &str, text: &str) -> Envelope {
        event(seq, run, json!({"type": "text.done", "index": 0, "text": text}))
    }

    fn end(seq: u64, run: &str) -> Envelope {
        event(seq, run, json!({"type": "run.done", "result": "complete", "exit_code": 0}))
    }

    /// Two turns; in the second one a steer comes between two answers.
    fn log() -> Vec<Envelope> {
        let mut child = answer(10, "r2", "a child's");
        child.agent = vec!["explore-1".into()];
        vec![
            event(1, "", json!({"type": "session.created", "name": "n", "folder": "/w"})),
            start(2, "r1"),
            user(3, "r1", "first"),
            answer(4, "r1", "one"),
            end(5, "r1"),
            start(6, "r2"),
            user(7, "r2", "second"),
            answer(8, "r2", "two"),
            event(
                9,
                "r2",
                json!({"type": "tool.call", "call_id": "c", "name": "read", "arguments": "{}",
                "label": {"tool": "Read", "target": "x"}}),
            ),
            child,
            user(11, "r2", "a steer"),
            answer(12, "r2", "three"),
            end(13, "r2"),
        ]
    }

    fn page(events: &[Envelope], older: bool) -> LogPage {
        LogPage { events: events.to_vec(), older, newer: false }
    }

    fn span() -> Span {
        let mut span = Span::default();
        span.prepend(&page(&log()[6..], true));
        span.prepend(&page(&log()[..6], false));
        span
    }

    fn message(span: &Span, seq: u64) -> Message {
        span.messages().iter().find(|message| message.seq == seq).unwrap().clone()
    }

    #[test]
    fn pages_make_the_same_whatever_their_size_and_events_come_behind() {
        let whole = span();
        for size in 1..14 {
            let mut span = Span::default();
            let log = log();
            let mut end = log.len();
            while end > 0 {
                let from = end.saturating_sub(size);
                span.prepend(&page(&log[from..end], from > 0));
                end = from;
            }
            assert_eq!((span.messages(), &span.events), (whole.messages(), &whole.events));
        }
        let mut live = Span::default();
        live.prepend(&page(&log()[..5], false));
        log().iter().for_each(|event| live.hear(event));
        assert_eq!((live.messages(), &live.events), (whole.messages(), &whole.events));
    }

    #[test]
    fn a_cut_takes_the_start_of_the_run_along_where_the_message_began_it() {
        let span = span();
        let tail = |seq| {
            let tail = span.tail(&message(&span, seq));
            (span.cut_from(&message(&span, seq)), tail.users, tail.answers, tail.calls, tail.events)
        };
        assert_eq!(tail(3), (2, 3, 3, 1, 12));
        assert_eq!(tail(7), (6, 2, 2, 1, 8));
        assert_eq!(tail(11), (11, 1, 1, 0, 3));
    }

    #[test]
    fn a_copy_ends_with_the_turn_of_the_answer_or_before_the_users_message() {
        let span = span();
        for (seq, ends) in [(3, Some(1)), (4, Some(5)), (7, Some(5)), (8, Some(10)), (11, Some(10)), (12, None)] {
            assert_eq!(span.copy_to(&message(&span, seq)), ends, "{seq}");
        }
    }

    #[test]
    fn what_was_cut_away_meanwhile_is_gone() {
        let mut span = span();
        span.hear(&event(14, "", json!({"type": "session.cut", "from_seq": 6, "removed": 8})));
        assert_eq!(span.messages().iter().map(|message| message.seq).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(span.tail(&message(&span, 3)).events, 5);
    }
}
