//! Reasoning that says again what it said a step or two before.

use std::collections::VecDeque;

use super::repetition::{Trigrams, trigrams};
use super::signature::Signature;

/// Steps that are looked back on.
const BACK: usize = 3;
/// Words of a step's reasoning that are compared.
const WORDS: usize = 16_384;

/// A step, as far as it is compared.
pub(super) struct Thought {
    trigrams: Trigrams,
    characters: usize,
    /// The calls that succeeded, sorted; empty where none did.
    pub(super) did: Vec<Signature>,
}

impl Thought {
    /// The reasoning of a step and what was done after it.
    pub(super) fn new(reasoning: &str, mut did: Vec<Signature>) -> Self {
        did.sort_unstable();
        Self { trigrams: trigrams(reasoning, WORDS), characters: reasoning.chars().count(), did }
    }
}

/// The reasoning of the last steps.
#[derive(Default)]
pub(super) struct Across(VecDeque<Thought>);

impl Across {
    /// Forgets it.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Takes in a step, and gives how alike its reasoning is to that of a step before, 0 to 1. Steps that both got
    /// something done, and not the same, are no loop however alike they sound.
    pub(super) fn take(&mut self, thought: Thought, min_characters: usize) -> f64 {
        let is_long = |thought: &Thought| thought.characters >= min_characters && !thought.trigrams.is_empty();
        let moved_on =
            |before: &Thought| !before.did.is_empty() && !thought.did.is_empty() && before.did != thought.did;
        let comparable = self.0.iter().filter(|before| is_long(before) && is_long(&thought) && !moved_on(before));
        let most = comparable.map(|before| likeness(&before.trigrams, &thought.trigrams)).fold(0.0, f64::max);
        self.0.push_back(thought);
        if self.0.len() > BACK {
            self.0.pop_front();
        }
        most
    }
}

/// Jaccard's measure: what both have of what either has.
fn likeness(one: &Trigrams, other: &Trigrams) -> f64 {
    let both = one.intersection(other).count();
    let either = one.len() + other.len() - both;
    if either == 0 { 0.0 } else { both as f64 / either as f64 }
}
