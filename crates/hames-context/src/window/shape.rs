//! Shapes a window could have, and what each would cost: arithmetic over what is known of the items.

use super::Window;

/// Estimated tokens of a digest at most, and of its words without the calls it names.
const DIGEST_TOKENS: u64 = 260;
const DIGEST_WORDS: u64 = 44;
/// Estimated tokens of the words around document and pins.
const OPENING_TOKENS: u64 = 70;
/// Of the words behind a message whose work left.
const UNDER_WAY_TOKENS: u64 = 36;
/// And around each pin.
const PIN_TOKENS: u64 = 4;

/// What would be different.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Results of entries before this one are stubs.
    pub(crate) mask_below: usize,
    /// Whether results that say what can be done are among them: the last ones to go.
    pub(crate) capabilities: bool,
    /// Exchanges of entries before this one are gone.
    pub(crate) retire_below: usize,
    /// The window begins at this entry; 0 where it begins where it does.
    pub(crate) cut: usize,
    /// Messages before the cut that stay, by their entry.
    pub(crate) held: Vec<usize>,
    /// Estimated tokens of the document it opens with.
    pub(crate) document: u64,
    /// Estimated tokens that pins before the cut may have; whole where unset.
    pub(crate) pins: Option<u64>,
}

impl Window {
    /// Estimated tokens of a request of this shape, head included.
    pub(crate) fn size(&self, shape: &Shape) -> u64 {
        let from = shape.cut.max(self.view.first);
        let mut tokens = self.limits.head + self.opening_size(shape);
        let mut digest = 0;
        for (at, entry) in self.entries.iter().enumerate().skip(from) {
            if at < shape.retire_below && entry.shown > 0 && entry.retirable() {
                let before = digest;
                digest = (digest.max(DIGEST_WORDS) + entry.named).min(DIGEST_TOKENS);
                tokens += digest - before;
                continue;
            }
            digest = 0;
            let stub = at < shape.mask_below && entry.maskable(shape.capabilities);
            tokens += if stub { entry.stub } else { entry.shown };
        }
        tokens + self.digest_tokens(from)
    }

    fn opening_size(&self, shape: &Shape) -> u64 {
        if shape.cut == 0 {
            let held = self.entries[..self.view.first].iter().map(|entry| entry.shown).sum::<u64>();
            return self.view.opening_tokens + held;
        }
        let held: u64 = shape.held.iter().filter_map(|at| self.entries.get(*at)).map(|entry| self.cost(entry)).sum();
        let pins: u64 = self.pin_tokens_before(shape.cut, &shape.held);
        let under_way = if shape.cut < self.entries.len() { 0 } else { UNDER_WAY_TOKENS };
        OPENING_TOKENS + shape.document + pins.min(shape.pins.unwrap_or(u64::MAX)) + held + under_way
    }

    /// What pins before an entry would have in an opening.
    pub(crate) fn pin_tokens_before(&self, cut: usize, held: &[usize]) -> u64 {
        self.pinned
            .iter()
            .filter(|at| **at < cut && !held.contains(at))
            .filter_map(|at| self.entries.get(*at))
            .map(|entry| entry.tokens + PIN_TOKENS)
            .sum()
    }

    fn digest_tokens(&self, from: usize) -> u64 {
        let digests = self.view.digests().filter(|(first, _)| *first >= from);
        digests.map(|(_, item)| crate::estimate_item(item)).sum()
    }

    /// Stubs for all results but the newest `keep` tokens; those of the last step stay.
    pub(crate) fn mask_shape(&self, keep: u64) -> Shape {
        let last_step = self.entries.iter().rposition(super::entry::Entry::begins).unwrap_or(0);
        Shape { mask_below: self.tail(keep).min(last_step), ..Shape::default() }
    }

    /// Besides, no exchanges before the newest `keep` tokens.
    pub(crate) fn retire_shape(&self, keep: u64, open_turn: bool) -> Shape {
        let masked = self.mask_shape(keep);
        let mut below = self.step_border(masked.mask_below);
        if !open_turn {
            below = below.min(self.entries.iter().rposition(super::entry::Entry::opens_turn).unwrap_or(0));
        }
        Shape { retire_below: below, ..masked }
    }

    /// The window begins anew before the newest `keep` tokens.
    pub(crate) fn checkpoint_shape(&self, keep: u64) -> Shape {
        let cut = self.cut(keep);
        self.shape_at(cut)
    }

    /// The shape with a cut at an entry; no shape at all where nothing would leave.
    pub(crate) fn shape_at(&self, cut: usize) -> Shape {
        if cut <= self.view.first {
            return Shape::default();
        }
        let span: u64 = self.entries[self.view.first..cut].iter().map(|entry| entry.shown).sum();
        Shape { cut, held: self.held(cut), document: self.document_target(span), ..Shape::default() }
    }

    /// How long a document of a span should be: a tenth of it, but never less than what is carried on, and bounded.
    pub(crate) fn document_target(&self, span: u64) -> u64 {
        const LEAST: u64 = 64;
        (span / 10).max(self.document_tokens).max(LEAST).min(self.limits.document)
    }

    /// The first entry of the newest ones that have at most `keep` tokens.
    fn tail(&self, keep: u64) -> usize {
        let mut kept = 0u64;
        for (at, entry) in self.entries.iter().enumerate().rev() {
            kept += entry.shown;
            if kept > keep {
                return at + 1;
            }
        }
        0
    }

    /// The entry, or the next one at which a step or a message begins.
    pub(crate) fn step_border(&self, at: usize) -> usize {
        (at..self.entries.len()).find(|at| self.entries[*at].begins()).unwrap_or(self.entries.len())
    }

    /// Where a window begins that keeps at most `keep` tokens: at the first turn that fits; where the last turn alone is
    /// larger, at the first step in it that fits; where not even the last step fits, before that one.
    fn cut(&self, keep: u64) -> usize {
        let first = self.view.first;
        let last_step = self.entries.iter().rposition(super::entry::Entry::begins).unwrap_or(0);
        let keep = if keep == 0 { self.last_turn_tokens() } else { keep };
        let tail = self.tail(keep).max(first);
        let turn = (tail..self.entries.len()).find(|at| self.entries[*at].opens_turn());
        turn.unwrap_or_else(|| self.step_border(tail).min(last_step))
    }

    /// Tokens of the last complete turn and what came since, where that leaves the window worth the name.
    fn last_turn_tokens(&self) -> u64 {
        let answered = |at: usize| matches!(self.entries[at].item.as_ref(), hames_protocol::Item::Assistant(_));
        let mut has_answer = false;
        let mut tokens = 0;
        for at in (self.view.first..self.entries.len()).rev() {
            tokens += self.entries[at].shown;
            has_answer |= answered(at);
            if self.entries[at].opens_turn() && has_answer {
                break;
            }
        }
        if tokens <= self.limits.room / 3 { tokens } else { 0 }
    }

    /// The messages before a cut that stay: the one that the turn opened with, and the last that was said.
    pub(crate) fn held(&self, cut: usize) -> Vec<usize> {
        if self.entries.get(cut).is_some_and(|entry| entry.opens_turn()) {
            return Vec::new();
        }
        let turn = self.entries[..cut].iter().rposition(|entry| entry.opens_turn());
        let last = self.entries.iter().rposition(|entry| entry.is_message()).filter(|last| *last < cut);
        let cost = |at: Option<usize>| at.map_or(0, |at| self.cost(&self.entries[at]));
        let both = turn != last && cost(turn) + cost(last) <= self.limits.message;
        let mut held: Vec<usize> = turn.filter(|_| both || last.is_none()).into_iter().chain(last).collect();
        held.dedup();
        held.retain(|at| cost(Some(*at)) <= self.limits.message);
        held
    }

    /// What a message costs where it is shown: archived ones too.
    fn cost(&self, entry: &super::entry::Entry) -> u64 {
        match &entry.made {
            Some((Some(_), made)) => crate::estimate_item(made),
            _ => entry.tokens,
        }
    }
}
