//! Strategies: which stages a window goes through when it is tidied, in which order.
//!
//! A strategy looks at a [`Situation`], sketches stages and sees what each would come to, and takes one. It changes
//! nothing and cannot break anything: whatever it takes, the window sees to it that the request fits, that pins and the
//! last message stay, and that calls and results go together.

use std::fmt::Debug;

use crate::window::{Shape, Window};

/// When a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before a run's first request.
    BeforeRequest,
    /// Between the steps of a run.
    AtBoundary,
    /// After a run.
    AfterResponse,
    /// The caller's own judgement says that it is time, before a request, between steps or after a run.
    Judged,
    /// A person or a program asked for it.
    Manual,
    /// A provider refused the request as too large; the budget's window says by now what it takes, or less than was sent.
    Overflow,
}

impl Moment {
    /// The reason that `compaction.start` gives.
    pub fn reason(self) -> &'static str {
        match self {
            Moment::Manual => "manual",
            Moment::Overflow => "overflow",
            Moment::BeforeRequest | Moment::AtBoundary | Moment::AfterResponse | Moment::Judged => "threshold",
        }
    }
}

/// Who writes the document of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Author {
    /// A model updates the document there is.
    Carried,
    /// A model writes a new one; the one there is belongs to what it reads.
    Afresh,
    /// Hames, from what was said and done, without a model.
    Rolled,
    /// The strategy itself.
    Own(String),
}

/// A stage as it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// Estimated tokens of the request after it, head included.
    pub tokens_after: u64,
    /// Whether it moves the beginning of the window.
    pub moves_window: bool,
    pub(crate) shape: Shape,
}

/// What a strategy takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing is worth doing.
    Nothing,
    /// Results become stubs, exchanges leave; no document.
    Tidy(Sketch),
    /// The window begins anew.
    Checkpoint(Sketch, Author),
}

/// What a strategy is asked about. All numbers are estimated tokens; fills include tools and system text.
#[derive(Debug)]
pub struct Situation<'a> {
    /// When.
    pub moment: Moment,
    /// What the request has now.
    pub fill: u64,
    /// At this fill the window is tidied.
    pub trigger: u64,
    /// Below this fill nothing more need be done.
    pub low: u64,
    /// The window less what is kept for the answer.
    pub usable: u64,
    /// What stays verbatim where the window begins anew, by the policy.
    pub keep: u64,
    /// What stays as it is where results become stubs and exchanges leave: less than `keep` where that is so much that
    /// hardly anything would be gained.
    pub keep_tidied: u64,
    pub(crate) window: &'a Window,
}

impl Situation<'_> {
    /// All results but the newest `keep` tokens become stubs.
    pub fn masked(&self, keep: u64) -> Sketch {
        self.sketch(self.window.mask_shape(keep))
    }

    /// Besides, exchanges before the newest `keep` tokens leave: those of completed turns, or those of the turn that goes
    /// on too.
    pub fn retired(&self, keep: u64, open_turn: bool) -> Sketch {
        self.sketch(self.window.retire_shape(keep, open_turn))
    }

    /// The window begins anew before the newest `keep` tokens, at a turn's border where there is one.
    pub fn checkpoint(&self, keep: u64) -> Sketch {
        self.sketch(self.window.checkpoint_shape(keep))
    }

    fn sketch(&self, shape: Shape) -> Sketch {
        Sketch { tokens_after: self.window.size(&shape), moves_window: shape.cut > 0, shape }
    }
}

/// How windows are tidied.
pub trait Strategy: Send + Sync + Debug {
    /// Its name in reports and settings.
    fn name(&self) -> &str;
    /// What to do. The same situation gives the same choice.
    fn choose(&self, situation: &Situation<'_>) -> Choice;
}

/// Masks, then retires what completed turns called, then lets a model update one document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried;

impl Strategy for Carried {
    fn name(&self) -> &str {
        "carried"
    }

    fn choose(&self, s: &Situation<'_>) -> Choice {
        let checkpoint = s.checkpoint(s.keep);
        if s.moment == Moment::Manual && checkpoint.moves_window {
            return Choice::Checkpoint(checkpoint, Author::Carried);
        }
        for sketch in [s.masked(s.keep_tidied), s.retired(s.keep_tidied, false)] {
            if sketch.tokens_after <= s.low && sketch.tokens_after < s.fill {
                return Choice::Tidy(sketch);
            }
        }
        Choice::Checkpoint(checkpoint, Author::Carried)
    }
}

/// Never asks a model: masks, retires exchanges, then rolls turns into a document of what was said and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deterministic;

impl Strategy for Deterministic {
    fn name(&self) -> &str {
        "deterministic"
    }

    fn choose(&self, s: &Situation<'_>) -> Choice {
        let checkpoint = s.checkpoint(s.keep);
        if s.moment == Moment::Manual && checkpoint.moves_window {
            return Choice::Checkpoint(checkpoint, Author::Rolled);
        }
        for sketch in [s.masked(s.keep_tidied), s.retired(s.keep_tidied, false), s.retired(s.keep_tidied, true)] {
            if sketch.tokens_after <= s.low && sketch.tokens_after < s.fill {
                return Choice::Tidy(sketch);
            }
        }
        Choice::Checkpoint(checkpoint, Author::Rolled)
    }
}

/// Prunes results outside of a protected end, where that saves enough; otherwise a model sums up everything before what
/// stays verbatim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneThenSummarize {
    /// Estimated tokens of the end whose results are never pruned.
    pub protected_tokens: u64,
    /// Pruning that saves less is not done.
    pub min_savings: u64,
}

impl Default for PruneThenSummarize {
    fn default() -> Self {
        Self { protected_tokens: 40_000, min_savings: 20_000 }
    }
}

impl Strategy for PruneThenSummarize {
    fn name(&self) -> &str {
        "prune-then-summarize"
    }

    fn choose(&self, s: &Situation<'_>) -> Choice {
        // In a small window the two would protect everything; there they are shares of it.
        let protected = self.protected_tokens.min(s.usable / 3);
        let savings = self.min_savings.min(s.usable / 6);
        let checkpoint = s.checkpoint(s.keep);
        if s.moment == Moment::Manual && checkpoint.moves_window {
            return Choice::Checkpoint(checkpoint, Author::Afresh);
        }
        let pruned = s.masked(protected);
        if s.fill.saturating_sub(pruned.tokens_after) >= savings && pruned.tokens_after < s.trigger {
            return Choice::Tidy(pruned);
        }
        Choice::Checkpoint(checkpoint, Author::Afresh)
    }
}
