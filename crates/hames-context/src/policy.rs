//! How a conversation is kept within its window: when, how far, and by whom.

use std::sync::Arc;

use hames_protocol::CompactionSettings;
pub use hames_protocol::{DEFAULT_LANDING, DEFAULT_TRIGGER};

use crate::Budget;
use crate::strategy::{Carried, Strategy};

/// Thousandths of a counted token to an estimated one where nobody has measured.
const EVEN: u64 = 1_000;

/// When to tidy, how far, and how.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether it happens by itself. Where not, a conversation that has no room left is refused.
    pub auto: bool,
    /// Percent of the usable window at which it begins.
    pub trigger: u8,
    /// Tokens of a request, as the provider counts them, at which it begins in place of that percentage.
    pub trigger_tokens: Option<u64>,
    /// Percent of the usable window that stays verbatim; 0 keeps only the last complete turn.
    pub landing: u8,
    /// How.
    pub strategy: Arc<dyn Strategy>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            auto: true,
            trigger: DEFAULT_TRIGGER,
            trigger_tokens: None,
            landing: DEFAULT_LANDING,
            strategy: Arc::new(Carried),
        }
    }
}

impl Policy {
    /// This policy with trigger and landing brought within their bounds: what is set by hand can say anything.
    pub fn clamped(&self) -> Self {
        let given = CompactionSettings {
            trigger: Some(self.trigger),
            landing: Some(self.landing),
            ..CompactionSettings::default()
        };
        let (trigger, landing) = given.marks();
        Self { trigger, landing, ..self.clone() }
    }
}

/// What a plan is made for: the model's window, what every request costs, and the policy.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The window, and the answer one would like to get.
    pub budget: Budget,
    /// Estimated tokens of tools and system text.
    pub head_tokens: u64,
    /// Thousandths of a counted token to an estimated one; 1,000 where nobody has measured.
    pub ratio: u64,
    /// When and how to tidy.
    pub policy: Policy,
    /// The window of the model that writes documents; the budget's own where absent.
    pub summary_budget: Option<Budget>,
    /// Estimated tokens of the words around what that model is given.
    pub prompt_tokens: u64,
}

impl Terms {
    /// Terms with the default policy, uncorrected estimates, and documents written by the same model.
    pub fn new(budget: Budget, head_tokens: u64) -> Self {
        Self { budget, head_tokens, ratio: EVEN, policy: Policy::default(), summary_budget: None, prompt_tokens: 800 }
    }

    /// Estimated tokens as the provider would count them.
    pub(crate) fn counted(&self, tokens: u64) -> u64 {
        scaled(tokens, self.ratio.max(1), EVEN)
    }

    /// Tokens as a provider counts them, as they would be estimated.
    pub(crate) fn measured(&self, tokens: u64) -> u64 {
        scaled(tokens, EVEN, self.ratio)
    }
}

/// `by / of` of a number, however large it is.
fn scaled(tokens: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(by) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

/// The marks of a plan, all in estimated tokens: what providers count is brought to the estimator's measure once, here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Tools and system text.
    pub(crate) head: u64,
    /// The window less what is kept for the answer.
    pub(crate) usable: u64,
    /// At this fill, head included, the window is tidied.
    pub(crate) trigger: u64,
    /// Below this fill, head included, nothing more need be done.
    pub(crate) low: u64,
    /// More than this, head included, cannot be sent.
    pub(crate) hard: u64,
    /// What messages may have at most.
    pub(crate) room: u64,
    /// What stays verbatim where the window begins anew.
    pub(crate) keep: u64,
    /// A message with more than this is sent in part.
    pub(crate) message: u64,
    /// All pins together.
    pub(crate) pins: u64,
    /// What stays where results only become stubs.
    pub(crate) keep_tidied: u64,
    /// A document.
    pub(crate) document: u64,
    /// A document that a model writes: its answer may be no longer.
    pub(crate) written: u64,
}

/// Estimated tokens that messages need at least: less holds no message, no document and no answer to it.
const MIN_ROOM: u64 = 320;
/// The share of the messages' room below which no trigger lies, however much of the window tools and system text take.
const LEAST_SPAN: u64 = 4;
/// The part of the way from the head to the trigger that may stay verbatim, in quarters: what leaves has to be worth it.
const MOST_KEPT: u64 = 3;
/// The part of its answer that an author is asked to fill, in quarters: it may think before it writes, and overshoot.
const WRITTEN: u64 = 3;
/// A document shorter than this says nothing.
const LEAST_WRITTEN: u64 = 64;
/// Percent of the usable window that pins may have.
const PIN_PERCENT: u64 = 15;

impl Limits {
    pub(crate) fn of(terms: &Terms) -> Self {
        let policy = terms.policy.clamped();
        let measured = |tokens: u64| terms.measured(tokens);
        let percent = |of: u64, part: u64| scaled(of, part, 100);
        let head = terms.head_tokens;
        let usable = measured(terms.budget.usable());
        let hard = measured(terms.budget.most_input());
        let room = hard.saturating_sub(head);
        let begins = policy.trigger_tokens.map_or(percent(usable, policy.trigger.into()), measured);
        let trigger = begins.max(head + room / LEAST_SPAN).min(hard);
        let span = trigger.saturating_sub(head);
        let keep = percent(usable, policy.landing.into()).min(span / 4 * MOST_KEPT);
        let author = terms.summary_budget.unwrap_or(terms.budget);
        Self {
            head,
            usable,
            trigger,
            low: head + scaled(span, 5, 8),
            hard,
            room,
            keep,
            keep_tidied: keep.min(room / 3).min(span / 2),
            message: (usable / 2).min(room / 2),
            pins: percent(usable, PIN_PERCENT),
            document: room / 6,
            written: (measured(author.reserve()) / 4 * WRITTEN).max(LEAST_WRITTEN),
        }
    }

    /// The fill at which a window is tidied, in percent of what is usable: what the landing point lies below.
    pub(crate) fn trigger_percent(&self, policy: &Policy) -> u8 {
        match policy.trigger_tokens {
            None => policy.clamped().trigger,
            Some(_) => u8::try_from(scaled(self.trigger, 100, self.usable)).unwrap_or(100).min(100),
        }
    }

    /// Whether anything can be said at all.
    pub(crate) fn has_room(&self) -> bool {
        self.room >= MIN_ROOM
    }
}
