//! Pieces of drafts: text in which pastes may stand that are shown as one unit.

use std::sync::Arc;

use crate::prompt::text::{CHIP, clean};

/// A paste of more bytes becomes a unit.
pub(crate) const LONG_BYTES: usize = 2_000;
/// So does one of more lines.
pub(crate) const LONG_LINES: usize = 12;

/// A paste that is shown, moved over and deleted as one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chip {
    text: Arc<str>,
    /// Made once: counting a long text takes longer than drawing everything else.
    label: Arc<str>,
}

impl Chip {
    /// A unit of a text.
    pub(crate) fn new(text: &str) -> Self {
        let label = match text.lines().count() {
            0 | 1 => format!("[pasted {} characters]", grouped(text.chars().count())),
            lines => format!("[pasted {} lines]", grouped(lines)),
        };
        Self { text: text.into(), label: label.into() }
    }

    /// What it stands for.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// How it is shown.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

/// A number with commas: `1,204`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text with its units, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The text; every [`CHIP`] in it is a unit.
    pub(super) text: String,
    pub(super) chips: Vec<Chip>,
}

impl Piece {
    /// Text that was typed: nothing of it becomes a unit.
    pub(crate) fn typed(text: &str) -> Self {
        Self { text: clean(text).into_owned(), chips: Vec::new() }
    }

    /// Text that came at once: a unit where it is long, or `is_full` where there is no room for more in the open.
    pub(crate) fn pasted(text: &str, is_full: bool) -> Self {
        let text = clean(text);
        let is_long = text.len() > LONG_BYTES || text.lines().take(LONG_LINES + 1).count() > LONG_LINES;
        if is_long || (is_full && !text.is_empty()) {
            Self::unit(Chip::new(&text))
        } else {
            Self { text: text.into_owned(), chips: Vec::new() }
        }
    }

    /// One unit.
    pub(crate) fn unit(chip: Chip) -> Self {
        Self { text: CHIP.into(), chips: vec![chip] }
    }

    /// A piece of text and units that were kept apart; `None` where they do not belong together.
    pub(crate) fn of(text: &str, chips: Vec<Chip>) -> Option<Self> {
        let is_whole = text.matches(CHIP).count() == chips.len();
        is_whole.then(|| Self { text: text.to_owned(), chips })
    }

    /// The text as it is shown to programs that keep it, units as [`CHIP`].
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The units, in order.
    pub(crate) fn chips(&self) -> &[Chip] {
        &self.chips
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Bytes of it, units in full.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.chips.iter().map(|chip| chip.text.len()).sum::<usize>()
    }

    /// Puts another piece behind it.
    pub(crate) fn append(&mut self, other: &Piece) {
        self.text.push_str(&other.text);
        self.chips.extend_from_slice(&other.chips);
    }

    /// The whole text, units written out.
    pub(crate) fn whole(&self) -> String {
        if self.chips.is_empty() {
            return self.text.clone();
        }
        let mut whole = String::with_capacity(self.bytes());
        let mut chips = self.chips.iter();
        for (index, between) in self.text.split(CHIP).enumerate() {
            if index > 0 {
                whole.push_str(chips.next().map_or("", |chip| &chip.text));
            }
            whole.push_str(between);
        }
        whole
    }

    /// The whole text back as a piece, where what were units before are units again as far as they are unchanged.
    pub(crate) fn folded(&self, whole: &str) -> Self {
        let whole = clean(whole);
        let mut folded = Self::default();
        let mut rest = whole.as_ref();
        for chip in &self.chips {
            if let Some(at) = rest.find(chip.text.as_ref()) {
                folded.append(&Self::pasted(&rest[..at], false));
                folded.append(&Self::unit(chip.clone()));
                rest = &rest[at + chip.text.len()..];
            }
        }
        folded.append(&Self::pasted(rest, false));
        folded
    }
}
