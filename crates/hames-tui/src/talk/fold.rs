//! The fold: envelopes in, blocks out.
//!
//! Blocks of the log come first, in its order; behind them stands whatever streams just now. A durable event takes the place
//! of what was streamed of it, so it does not matter which deltas somebody saw: with all of them, with none, or with a
//! snapshot in the middle, the blocks come out the same. What a child says goes to its bubble, which is a fold of its own.

use std::collections::{HashMap, HashSet, VecDeque};

use hames_protocol::{
    CallId, Cost, Envelope, Event, MessageUser, Mode, Part, RetireScope, RunId, StepDone, ToolCall, WindowCheckpoint,
};

use super::block::{Badge, Block, Card, Checkpoint, Key, Kind, Note, Progress, Prose, Tone, User};
use super::child::Child;
use super::open::Open;
use super::{notes, text};

/// What is known of a run, by the events it is known from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunSum {
    pub(super) began: Option<(u64, Mode, String)>,
    pub(super) first_token: Option<(u64, u64)>,
    pub(super) costs: Vec<(u64, Cost)>,
    pub(super) reason: Option<(u64, String)>,
}

/// Where the window began from an event on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) made_at: u64,
    /// The window begins behind this event.
    pub(super) behind: u64,
}

/// The conversation as far as it is loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    pub(super) blocks: VecDeque<Block>,
    pub(super) open: Open,
    pub(super) runs: HashMap<RunId, RunSum>,
    pub(super) bounds: Vec<Bound>,
    /// Calls by where their cards stand.
    pub(super) calls: HashMap<CallId, Key>,
    pub(super) masked: HashSet<CallId>,
    /// The last bubble of each name.
    pub(super) children: HashMap<String, Key>,
    /// Seq of the last event that was taken in.
    pub(super) seq: u64,
    /// Seq of the first.
    pub(super) first: Option<u64>,
    loose: u64,
}

impl Fold {
    /// Takes in the next event. What is older than what was seen is here already; what is unknown changes nothing.
    pub(super) fn apply(&mut self, envelope: &Envelope) {
        if !self.is_next(envelope) {
            return;
        }
        match envelope.agent.first() {
            Some(name) => self.child(envelope, &text::clean_line(name)),
            None if self.open.see(envelope) => {}
            None => self.durable(envelope),
        }
    }

    /// Whether an event was not taken in yet; it counts as taken in from now on.
    pub(super) fn is_next(&mut self, envelope: &Envelope) -> bool {
        let Some(seq) = envelope.seq else { return true };
        if seq <= self.seq {
            return false;
        }
        self.seq = seq;
        self.first.get_or_insert(seq);
        true
    }

    /// What a child says and does, in the bubble that began last under its name.
    fn child(&mut self, envelope: &Envelope, name: &str) {
        let begins = envelope.agent.len() == 1 && matches!(envelope.event, Event::SubagentStart(_));
        let known = self.children.get(name).filter(|_| !begins).cloned();
        let key = known.unwrap_or_else(|| {
            self.push(envelope, Kind::Child(Box::new(Child::new(name))));
            let key = self.blocks.back().map_or(Key::Loose(self.loose), |block| block.key.clone());
            self.children.insert(name.to_owned(), key.clone());
            key
        });
        if let Event::StepDone(done) = &envelope.event
            && let Some(run) = &envelope.run
        {
            let cost = done.cost.clone().map(|cost| (self.seq, cost));
            self.runs.entry(run.clone()).or_default().costs.extend(cost);
        }
        let Some(at) = self.position(&key) else { return };
        let block = &mut self.blocks[at];
        if let Kind::Child(child) = &mut block.kind {
            child.hear(&Envelope { agent: envelope.agent[1..].to_vec(), ..envelope.clone() });
            block.version += 1;
        }
    }

    fn durable(&mut self, envelope: &Envelope) {
        let seq = self.seq;
        match &envelope.event {
            Event::RunStart(start) => {
                let began = (seq, start.mode, text::clean_line(&start.model.to_string()));
                self.with_run(envelope, |run| run.began = Some(began));
            }
            Event::MessageUser(message) => self.push(envelope, Kind::User(user(message, envelope.step))),
            Event::ReasoningDone(done) if !done.block.text.trim().is_empty() => {
                self.push(envelope, Kind::Reasoning(Prose::whole(&done.block.text, done.cut)));
            }
            Event::TextDone(done) if !done.text.trim().is_empty() || done.cut.is_some() => {
                self.push(envelope, Kind::Answer(Prose::whole(&done.text, done.cut)));
            }
            Event::ToolCall(call) => self.call(envelope, call),
            Event::StepDone(done) => self.step_done(envelope, done),
            Event::CompactionAsked(asked) => {
                let cost = asked.cost.clone();
                self.with_run(envelope, |run| run.costs.extend(cost.map(|cost| (seq, cost))));
            }
            Event::WindowMasked(masked) => {
                for id in &masked.calls {
                    self.masked.insert(id.clone());
                    self.touch(id, |card| card.is_masked = true);
                }
            }
            Event::WindowRetired(retired) if retired.scope == RetireScope::Turns => {
                self.bounds.push(Bound { made_at: seq, behind: retired.up_to_seq });
            }
            Event::WindowCheckpoint(checkpoint) => self.checkpoint(envelope, checkpoint),
            Event::SessionCut(cut) => {
                self.cut_from(cut.from_seq);
                self.note(envelope);
            }
            Event::Done(done) => {
                let reason = done.reason.clone().map(|reason| (seq, reason));
                self.with_run(envelope, |run| run.reason = reason);
            }
            Event::TurnDone(turn) => {
                let badge = Badge {
                    run: envelope.run.clone(),
                    usage: turn.usage.clone(),
                    duration_ms: turn.duration_ms,
                    ..Badge::default()
                };
                self.push(envelope, Kind::Badge(badge));
                self.settle_badge(self.blocks.len() - 1);
            }
            Event::RunDone(done) => {
                let Some(run) = &envelope.run else { return };
                let reason = self.runs.get(run).and_then(|sum| sum.reason.as_ref());
                if let Some(text) = notes::ended(done.result, reason.map(|(_, reason)| reason.as_str())) {
                    let ends = Some((run.clone(), done.result));
                    self.push(envelope, Kind::Note(Note { ends, ..Note::new(Tone::Warn, text) }));
                }
            }
            event => {
                if !self.card_event(envelope, event) {
                    self.note(envelope);
                }
            }
        }
    }

    fn note(&mut self, envelope: &Envelope) {
        let Some(note) = notes::of(&envelope.event) else { return };
        // A model that loads is asked dozens of times, and a request may be tried often: one line that counts.
        if matches!(envelope.event, Event::Retry(_))
            && let Some(last) = self.blocks.back_mut()
            && let Kind::Note(old) = &mut last.kind
            && old.tone == note.tone
        {
            *old = note;
            last.version += 1;
            return;
        }
        self.push(envelope, Kind::Note(note));
    }

    fn with_run(&mut self, envelope: &Envelope, change: impl FnOnce(&mut RunSum)) {
        if let Some(run) = &envelope.run {
            change(self.runs.entry(run.clone()).or_default());
        }
    }

    fn step_done(&mut self, envelope: &Envelope, done: &StepDone) {
        let (seq, cost, first) = (self.seq, done.cost.clone(), done.timings.first_token_ms);
        if let Some(run) = &envelope.run {
            let run = self.runs.entry(run.clone()).or_default();
            run.costs.extend(cost.map(|cost| (seq, cost)));
            if run.first_token.is_none() {
                run.first_token = first.map(|ms| (seq, ms));
            }
        }
    }

    pub(super) fn push(&mut self, envelope: &Envelope, kind: Kind) {
        let key = match envelope.seq {
            Some(seq) => Key::Log(seq, 1),
            None => {
                self.loose += 1;
                Key::Loose(self.loose)
            }
        };
        self.blocks.push_back(Block { key, version: 0, kind });
    }

    fn checkpoint(&mut self, envelope: &Envelope, checkpoint: &WindowCheckpoint) {
        self.bounds.push(Bound { made_at: self.seq, behind: checkpoint.from_seq });
        let kind = Kind::Checkpoint(Checkpoint {
            prose: Prose::whole(&checkpoint.document, None),
            kind: checkpoint.kind,
            made_at: self.seq,
            behind: checkpoint.from_seq,
            span_tokens: checkpoint.span_tokens,
            deferred: checkpoint.deferred.is_some(),
        });
        self.push(envelope, kind);
        self.settle_checkpoints();
    }

    fn call(&mut self, envelope: &Envelope, call: &ToolCall) {
        if self.calls.contains_key(&call.call_id) {
            return;
        }
        let card = Card {
            call_id: Some(call.call_id.clone()),
            has_call: true,
            label: text::clean_line(&call.label.to_string()),
            effect: call.declaration.as_ref().map(|declared| declared.effect),
            input: notes::input(call.input.as_ref(), &call.arguments),
            is_masked: self.masked.contains(&call.call_id),
            ..Card::default()
        };
        self.push(envelope, Kind::Card(Box::new(card)));
        self.index_last(&call.call_id);
    }

    fn index_last(&mut self, id: &CallId) {
        if let Some(last) = self.blocks.back() {
            self.calls.insert(id.clone(), last.key.clone());
        }
    }

    /// Where a block stands.
    pub(super) fn position(&self, key: &Key) -> Option<usize> {
        if let Key::Log(..) = key {
            // Loose blocks are few and stand between the others: searched over when one is in the way.
            let at = self.blocks.partition_point(|block| matches!(block.key, Key::Log(..)) && block.key < *key);
            if self.blocks.get(at).is_some_and(|block| block.key == *key) {
                return Some(at);
            }
        }
        self.blocks.iter().position(|block| block.key == *key)
    }

    /// Changes the card of a call; a call whose beginning is not loaded gets one that waits for it.
    fn card(&mut self, envelope: &Envelope, id: &CallId, name: &str, change: impl FnOnce(&mut Card)) {
        if !self.calls.contains_key(id) {
            let label = text::clean_line(name);
            let card =
                Card { call_id: Some(id.clone()), label, is_masked: self.masked.contains(id), ..Card::default() };
            self.push(envelope, Kind::Card(Box::new(card)));
            self.index_last(id);
        }
        self.touch(id, change);
    }

    fn touch(&mut self, id: &CallId, change: impl FnOnce(&mut Card)) {
        let Some(at) = self.calls.get(id).and_then(|key| self.position(key)) else { return };
        let block = &mut self.blocks[at];
        if let Kind::Card(card) = &mut block.kind {
            change(card);
            block.version += 1;
        }
    }

    /// What happens to a call; false for any other event.
    fn card_event(&mut self, envelope: &Envelope, event: &Event) -> bool {
        match event {
            Event::ApprovalAsked(asked) => self.card(envelope, &asked.call_id, &asked.name, |card| {
                card.progress = Progress::Waiting;
                card.decision = format!("waits for you: {}", text::clean_line(&asked.reason));
                card.diffs.extend(asked.diff.clone().filter(|_| card.diffs.is_empty()));
            }),
            Event::QuestionAsked(asked) => self.card(envelope, &asked.call_id, "Question", |card| {
                card.progress = Progress::Waiting;
                card.decision = format!("asks you: {}", text::clean_line(&asked.text));
            }),
            Event::ApprovalAnswered(answer) => self.card(envelope, &answer.call_id, "", |card| {
                card.progress = Progress::Asked;
                card.decision = notes::decided(answer);
            }),
            Event::QuestionAnswered(answer) => self.card(envelope, &answer.call_id, "Question", |card| {
                card.progress = Progress::Asked;
                card.decision = format!("answered: {}", text::clean_line(&answer.text));
            }),
            Event::ToolStart(start) => {
                self.card(envelope, &start.call_id, &start.name, |card| card.progress = Progress::Running);
            }
            // Output of a call that nobody asked for, or that has ended, is late: its result has it all.
            Event::ToolOutputDelta(delta) => self.touch(&delta.call_id, |card| notes::live(card, delta)),
            Event::ChangeProposed(change) => {
                self.card(envelope, &change.call_id, "", |card| card.is_proposed = true);
            }
            Event::ToolDone(done) => self.card(envelope, &done.call_id, &done.name, |card| notes::done(card, done)),
            Event::ToolError(error) => {
                self.card(envelope, &error.call_id, &error.name, |card| notes::failed(card, error));
            }
            _ => return false,
        }
        true
    }

    /// Gives the badge at a place what is known of its run.
    fn settle_badge(&mut self, at: usize) {
        let Some(block) = self.blocks.get_mut(at) else { return };
        let Kind::Badge(badge) = &mut block.kind else { return };
        let Some(run) = badge.run.as_ref().and_then(|run| self.runs.get(run)) else { return };
        let before = badge.clone();
        if let Some((_, mode, model)) = &run.began {
            badge.mode = Some(*mode);
            badge.model.clone_from(model);
        }
        badge.first_token_ms = run.first_token.map(|(_, ms)| ms);
        badge.costs.clear();
        for (_, cost) in &run.costs {
            match badge.costs.iter_mut().find(|sum| sum.currency == cost.currency) {
                Some(sum) => sum.micros = sum.micros.saturating_add(cost.micros),
                None => badge.costs.push(cost.clone()),
            }
        }
        block.version += u32::from(before != *badge);
    }

    /// The same for all badges: an older page may tell more of the run at its edge.
    pub(super) fn settle_badges(&mut self) {
        (0..self.blocks.len()).for_each(|at| self.settle_badge(at));
    }
}

/// A message; `step` is the run's last one when it came. One that begins a run reached it in no special way.
fn user(message: &MessageUser, step: Option<u32>) -> User {
    let mut said = String::new();
    let mut images = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => {
                if !said.is_empty() {
                    said.push('\n');
                }
                said.push_str(text);
            }
            Part::Image { name, media_type, .. } => {
                images.push(text::clean_line(name.as_deref().unwrap_or(media_type)));
            }
        }
    }
    User {
        prose: Prose::whole(&said, None),
        images,
        delivery: message.delivery.filter(|_| step.is_some_and(|step| step > 0)),
    }
}
