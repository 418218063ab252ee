//! What comes next: a request, a decision to record, a document to ask for, or a plain no.

use std::fmt;

use hames_protocol::{
    CheckpointKind, CompactionStart, Event, RetireScope, WindowCheckpoint, WindowExternalised, WindowRetired,
};

use super::decision::Decision;
use super::entry::How;
use super::shape::Shape;
use super::summary::{SummaryAnswer, SummaryRequest};
use super::{Window, words};
use crate::estimate_tokens;
use crate::policy::{Limits, Terms};
use crate::strategy::{Author, Choice, Moment, Situation};
use crate::wire_rules::RuleBroken;

/// A document may be so much longer than asked for, in percent, before it has to become shorter.
const OVERSHOT: u64 = 130;
/// The share of the usable window that a compaction has to gain.
const LEAST_GAIN: u64 = 20;
/// Estimated tokens that one has to gain that somebody asked for.
const ASKED_GAIN: u64 = 64;

/// What comes next.
#[derive(Debug)]
pub enum Plan {
    /// [`Window::items`] may be sent.
    Ready(Ready),
    /// To be performed and recorded; then the plan is made again.
    Decide(Box<Decision>),
    /// To be asked of a model, and answered with [`Window::resume`].
    Summarise(Box<SummaryRequest>),
    /// Nothing need be done: after a response, or where somebody asked and nothing could be gained.
    Nothing,
    /// It cannot be sent.
    Refused(Refused),
}

/// A request that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Tokens of the input as estimated, before correction: what `step.start` records.
    pub input_estimate: u64,
    /// Tokens the answer may have.
    pub max_output_tokens: u64,
}

/// Why nothing can be sent. Numbers are estimated tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Tools and system text leave no room for a conversation.
    Head {
        /// Of tools and system text.
        head: u64,
        /// Of the window.
        window: u64,
    },
    /// The conversation is too long, and tidying is switched off.
    Full {
        /// Of the request.
        input: u64,
        /// Of the window.
        window: u64,
    },
    /// A rule of the wire is broken.
    Rule(RuleBroken),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Head { head, window } => write!(
                f,
                "The fixed part of every request (tools, system text, instruction files) has about {head} tokens; the window \
                 has {window}, and what is left holds no conversation. Shorten the instruction files, use fewer tools, or \
                 choose a model with a larger window."
            ),
            Refused::Full { input, window } => write!(
                f,
                "The conversation has about {input} tokens and leaves no room for an answer in the window of {window}. \
                 Compaction is switched off: compact the session by hand, switch it on, or choose a model with a larger window."
            ),
            Refused::Rule(broken) => {
                write!(
                    f,
                    "{broken}. Nothing was sent. This is a fault of Hames; start a new session to go on, and please report it."
                )
            }
        }
    }
}

impl std::error::Error for Refused {}

/// A document that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) shape: Shape,
    pub(crate) request: SummaryRequest,
    pub(crate) ceiling: u64,
    pub(crate) before: u64,
    pub(crate) moment: Moment,
    /// Whether the answer ran into its limit once.
    pub(crate) was_cut: bool,
}

impl Window {
    /// Says what comes next. The same window and terms give the same plan.
    pub fn plan(&mut self, moment: Moment, terms: &Terms) -> Plan {
        self.pending = None;
        self.limits = Limits::of(terms);
        if !self.limits.has_room() {
            return Plan::Refused(Refused::Head { head: self.limits.head, window: terms.budget.window });
        }
        if let Some(decision) = self.externalise() {
            return Plan::Decide(Box::new(decision));
        }
        let fill = self.fill();
        let is_asked = matches!(moment, Moment::Manual | Moment::Overflow | Moment::Judged);
        let due = is_asked || fill > self.limits.hard || (terms.policy.auto && fill >= self.due_at());
        if !due {
            return self.at_rest(moment, terms);
        }
        if !terms.policy.auto && !is_asked {
            return Plan::Refused(Refused::Full { input: fill, window: terms.budget.window });
        }
        self.tidy(moment, terms)
    }

    /// Estimated tokens of a request as things are, head included.
    pub(crate) fn fill(&self) -> u64 {
        self.limits.head + self.view.tokens
    }

    /// The fill at which something is due: later where the last compaction gained nothing.
    pub(crate) fn due_at(&self) -> u64 {
        let fruitless = self.known.state.fruitless.map_or(0, |left| left + self.limits.usable / 10);
        self.limits.trigger.max(fruitless).min(self.limits.hard)
    }

    fn at_rest(&mut self, moment: Moment, terms: &Terms) -> Plan {
        match moment {
            Moment::AfterResponse | Moment::Manual => Plan::Nothing,
            _ => self.ready(terms),
        }
    }

    fn ready(&mut self, terms: &Terms) -> Plan {
        if let Err(broken) = self.check() {
            return Plan::Refused(Refused::Rule(broken));
        }
        let input = self.fill();
        match terms.budget.output_for(terms.counted(input)) {
            Ok(output) => Plan::Ready(Ready { input_estimate: input, max_output_tokens: output }),
            Err(_) => Plan::Refused(Refused::Head { head: self.limits.head, window: terms.budget.window }),
        }
    }

    fn tidy(&mut self, moment: Moment, terms: &Terms) -> Plan {
        let fill = self.fill();
        let situation = Situation {
            moment,
            fill,
            trigger: self.limits.trigger,
            low: self.limits.low,
            usable: self.limits.usable,
            keep: self.limits.keep,
            keep_tidied: self.limits.keep_tidied,
            window: self,
        };
        let choice = terms.policy.strategy.choose(&situation);
        let must = fill > self.limits.hard || moment == Moment::Overflow;
        let gain = match moment {
            // Who asks by hand gets what there is to gain.
            Moment::Manual => ASKED_GAIN,
            _ => (self.limits.usable / LEAST_GAIN).min(self.limits.room / 8),
        };
        let (shape, author) = match choice {
            Choice::Nothing => (Shape::default(), Author::Rolled),
            Choice::Tidy(sketch) => (sketch.shape, Author::Rolled),
            Choice::Checkpoint(sketch, author) => (sketch.shape, author),
        };
        let after = self.size(&shape);
        let is_worth = after + gain <= fill && after <= self.limits.hard;
        if is_worth && shape.cut == 0 {
            return Plan::Decide(Box::new(self.tidied(&shape, moment, fill)));
        }
        if is_worth {
            return self.begin_anew(shape, author, moment, terms);
        }
        if !must {
            return self.at_rest(moment, terms);
        }
        match self.smaller(fill) {
            Some(shape) if shape.cut == 0 => Plan::Decide(Box::new(self.tidied(&shape, moment, fill))),
            Some(shape) => self.begin_anew(shape, author, moment, terms),
            None if fill <= self.limits.hard => self.ready(terms),
            None => Plan::Refused(Refused::Head { head: self.limits.head, window: terms.budget.window }),
        }
    }

    /// Results become stubs, exchanges leave.
    fn tidied(&self, shape: &Shape, moment: Moment, before: u64) -> Decision {
        let after = self.size(shape);
        let mut decision = Decision::new(before, after);
        decision.starts(moment.reason());
        self.add_masks(&mut decision, shape);
        if shape.retire_below > 0 {
            let masked = Shape { retire_below: 0, ..shape.clone() };
            let tokens = self.size(&masked).saturating_sub(after);
            let up_to_seq = self.seq_before(shape.retire_below);
            let retired = WindowRetired { up_to_seq, tokens, scope: RetireScope::Exchanges, archive: None };
            decision.retire(retired, self.retired_text(shape.retire_below));
        }
        decision.ends();
        let what = if shape.retire_below > 0 { "masked and retired" } else { "masked" };
        decision.counted(what, &self.known.state.repairs)
    }

    fn add_masks(&self, decision: &mut Decision, shape: &Shape) {
        let from = shape.cut.max(self.view.first);
        let masked: Vec<_> = (from.max(shape.retire_below)..shape.mask_below.min(self.entries.len()))
            .filter(|at| self.entries[*at].maskable(shape.capabilities))
            .collect();
        if !masked.is_empty() {
            let saved = masked.iter().map(|at| self.entries[*at].shown - self.entries[*at].stub).sum();
            let items: Vec<_> = masked.iter().map(|at| self.entries[*at].item.clone()).collect();
            decision.mask(&items, saved);
        }
    }

    /// The last seq that belongs to what is before an entry.
    fn seq_before(&self, at: usize) -> u64 {
        match (self.entries.get(at), self.entries.last()) {
            (Some(entry), _) => entry.place.seq.saturating_sub(1),
            (None, Some(last)) => last.place.seq.max(last.place.event),
            (None, None) => 0,
        }
    }

    /// The window begins anew: with a document by its author, or as it is where no author can be had.
    fn begin_anew(&mut self, shape: Shape, author: Author, moment: Moment, terms: &Terms) -> Plan {
        let before = self.fill();
        match author {
            Author::Rolled => {
                let document = self.rolled(shape.cut, &shape.held, shape.document);
                self.concluded(shape, document, CheckpointKind::Rolled, None, (0, 0), before, moment)
            }
            Author::Own(document) => {
                let document = words::clip_tokens(&document, shape.document);
                self.concluded(shape, document, CheckpointKind::Rolled, None, (0, 0), before, moment)
            }
            Author::Carried | Author::Afresh => {
                let is_afresh = author == Author::Afresh;
                let budget = terms.summary_budget.unwrap_or(terms.budget);
                let readable = budget.usable().saturating_sub(budget.margin());
                let ceiling = terms.measured(readable).saturating_sub(terms.prompt_tokens);
                let readable = self.readable(shape.cut, &shape.held, self.document_tokens, ceiling);
                let Some(readable) = readable else { return self.trimmed(shape, before, moment) };
                let previous = self.known.state.document().to_owned();
                let (previous, span) = match is_afresh && !previous.is_empty() {
                    true => (String::new(), format!("## Earlier\n{previous}\n{}", readable.text)),
                    false => (previous, readable.text),
                };
                let start = CompactionStart { reason: moment.reason().to_owned(), tokens_before: before };
                let request = SummaryRequest {
                    events: vec![Event::from(start)],
                    previous,
                    span,
                    compress: false,
                    target_tokens: shape.document.min(self.limits.written),
                    max_output_tokens: budget.reserve().max(1),
                    span_tokens: readable.tokens,
                    items: readable.items,
                    deferred: readable.deferred,
                };
                let (ceiling, was_cut) = (readable.ceiling, false);
                self.pending = Some(Pending { shape, request: request.clone(), ceiling, before, moment, was_cut });
                Plan::Summarise(Box::new(request))
            }
        }
    }

    /// Takes the answer to what [`Plan::Summarise`] asked for.
    pub fn resume(&mut self, answer: SummaryAnswer) -> Plan {
        let Some(pending) = self.pending.take() else { return Plan::Nothing };
        let text = match answer {
            // What is missing at its end is what comes next: a shorter one is whole.
            SummaryAnswer::Cut(_) if !pending.request.compress && !pending.was_cut => {
                let target_tokens = (pending.request.target_tokens / 2).max(1);
                let request = SummaryRequest { events: Vec::new(), target_tokens, ..pending.request.clone() };
                self.pending = Some(Pending { request: request.clone(), was_cut: true, ..pending });
                return Plan::Summarise(Box::new(request));
            }
            SummaryAnswer::Text(text) | SummaryAnswer::Cut(text) if !text.trim().is_empty() => text.trim().to_owned(),
            // A second pass that failed leaves the first one's words.
            _ if pending.request.compress => pending.request.span.clone(),
            _ => return self.trimmed(pending.shape, pending.before, pending.moment),
        };
        let target = pending.request.target_tokens;
        if estimate_tokens(&text) * 100 > target * OVERSHOT && !pending.request.compress && !pending.was_cut {
            let request = SummaryRequest { events: Vec::new(), span: text, compress: true, ..pending.request.clone() };
            self.pending = Some(Pending { request: request.clone(), ..pending });
            return Plan::Summarise(Box::new(request));
        }
        // What was cut twice is as long as its author can write.
        let most = if pending.was_cut { self.limits.document } else { target * OVERSHOT / 100 };
        let document = words::clip_tokens(&text, most.min(self.limits.document));
        let request = &pending.request;
        let numbers = (request.span_tokens, pending.ceiling);
        self.concluded(
            pending.shape,
            document,
            CheckpointKind::Summary,
            request.deferred.clone(),
            numbers,
            pending.before,
            pending.moment,
        )
    }

    /// The window moves, and the document there is goes with it.
    fn trimmed(&mut self, shape: Shape, before: u64, moment: Moment) -> Plan {
        let document = words::clip_tokens(self.known.state.document(), self.limits.document);
        self.concluded(shape, document, CheckpointKind::Trim, None, (0, 0), before, moment)
    }

    #[allow(clippy::too_many_arguments)]
    fn concluded(
        &mut self,
        mut shape: Shape,
        document: String,
        kind: CheckpointKind,
        deferred: Option<hames_protocol::SeqSpan>,
        (span_tokens, ceiling_tokens): (u64, u64),
        before: u64,
        moment: Moment,
    ) -> Plan {
        shape.document = estimate_tokens(&document);
        let after = self.size(&shape);
        let mut decision = Decision::new(before, after);
        if kind != CheckpointKind::Summary {
            decision.starts(moment.reason());
        }
        self.add_masks(&mut decision, &shape);
        let checkpoint = WindowCheckpoint {
            from_seq: self.seq_before(shape.cut),
            document,
            kind,
            held: shape.held.iter().filter_map(|at| self.entries.get(*at)).map(|entry| entry.place.event).collect(),
            deferred,
            archive: None,
            pin_tokens: shape.pins,
            span_tokens,
            ceiling_tokens,
        };
        decision.checkpoint(checkpoint, Some(self.archive_text(shape.cut)));
        decision.ends();
        let what = match kind {
            CheckpointKind::Summary => "compacted",
            CheckpointKind::Rolled => "rolled",
            CheckpointKind::Trim => "trimmed",
        };
        Plan::Decide(Box::new(decision.counted(what, &self.known.state.repairs)))
    }

    /// A message that is too large for the window is sent in part.
    fn externalise(&self) -> Option<Decision> {
        if self.view.largest_message <= self.limits.message {
            return None;
        }
        let is_large = |at: &usize| {
            self.entries[*at].is_message()
                && self.entries[*at].how == How::Full
                && self.entries[*at].shown > self.limits.message
        };
        let at = (0..self.entries.len()).find(is_large)?;
        let entry = &self.entries[at];
        let hames_protocol::Item::User(message) = entry.item.as_ref() else { return None };
        let text = words::text_of(message);
        let room = self.limits.message / 2;
        let images = entry.tokens.saturating_sub(estimate_tokens(&text));
        let without_images = images > room;
        let room = if without_images { room } else { room - images.min(room) };
        let message = WindowExternalised {
            seq: entry.place.event,
            blob: None,
            head_bytes: words::head_of(&text, room * 2 / 3) as u64,
            tail_bytes: words::tail_of(&text, room / 3) as u64,
            without_images,
            tokens: entry.shown.saturating_sub(room),
        };
        let before = self.fill();
        let mut decision = Decision::new(before, before.saturating_sub(message.tokens));
        decision.externalise(message, Some(text));
        Some(decision.counted("externalised a message", &self.known.state.repairs))
    }
}
