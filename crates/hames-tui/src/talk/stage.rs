//! What is laid out, kept for as long as it is near what is shown.

use std::collections::HashMap;
use std::rc::Rc;

use super::Talk;
use super::block::{Block, Key, Kind};
use super::code::Fences;
use super::view::{self, Laid, Piece, Seen};
use crate::Theme;

/// Pieces that are kept: several screens, and what streams.
const MAX_LAID: usize = 256;

/// Something above a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    Blank,
    /// The window begins here.
    Divider {
        above: usize,
        is_all: bool,
    },
}

struct Pieces {
    version: u32,
    seen: Seen,
    pieces: Rc<[Piece]>,
}

/// Rows that were laid out, and what that cost.
#[derive(Default)]
pub(super) struct Stage {
    pieces: HashMap<Key, Pieces>,
    laid: HashMap<(Key, Piece, Seen), (Rc<Laid>, u64)>,
    pub(super) fences: Fences,
    pub(super) width: u16,
    theme: Theme,
    frame: u64,
    /// Something that is shown has colours still to come.
    pub(super) lacks: bool,
    /// Colours have come since the last frame.
    has_colours: bool,
    /// Pieces laid out so far, and bytes of text in them.
    pub(super) work: (u64, u64),
}

impl Stage {
    /// A new frame begins.
    pub(super) fn begin(&mut self, width: u16, theme: Theme) {
        if self.width != width || self.theme != theme {
            self.laid.clear();
        }
        (self.width, self.theme) = (width, theme);
        self.has_colours = self.fences.frame(theme);
        self.frame += 1;
        self.lacks = false;
        if self.laid.len() > MAX_LAID {
            let oldest = self.frame.saturating_sub(2);
            self.laid.retain(|_, (_, used)| *used >= oldest);
        }
        if self.pieces.len() > MAX_LAID {
            self.pieces.clear();
        }
    }

    fn pieces(&mut self, block: &Block, seen: Seen) -> Rc<[Piece]> {
        if let Some(known) = self.pieces.get(&block.key)
            && (known.version, known.seen) == (block.version, seen)
        {
            return known.pieces.clone();
        }
        let pieces: Rc<[Piece]> = view::pieces(block, seen).into();
        self.pieces.insert(block.key.clone(), Pieces { version: block.version, seen, pieces: pieces.clone() });
        pieces
    }

    fn laid(&mut self, block: &Block, piece: Piece, seen: Seen) -> Rc<Laid> {
        let name = (block.key.clone(), piece, seen);
        if let Some((laid, used)) = self.laid.get_mut(&name)
            && !(laid.lacks && self.has_colours)
        {
            *used = self.frame;
            self.lacks |= laid.lacks;
            return laid.clone();
        }
        let laid = Rc::new(view::lay(block, piece, seen, self.width, self.theme, &mut self.fences));
        self.work.0 += 1;
        self.work.1 += laid.sheet.text.len() as u64;
        self.lacks |= laid.lacks;
        // Versions that are no more are found out by age.
        self.laid.insert(name, (laid.clone(), self.frame));
        laid
    }
}

impl Talk {
    /// Blocks there are: those of the log, then those that stream.
    pub(super) fn len(&self) -> usize {
        self.fold.blocks.len() + self.fold.open.blocks.len()
    }

    /// The block at a place below [`Talk::len`].
    pub(super) fn block(&self, at: usize) -> &Block {
        let log = self.fold.blocks.len();
        if at < log { &self.fold.blocks[at] } else { &self.fold.open.blocks[at - log] }
    }

    pub(super) fn index(&self, key: &Key) -> Option<usize> {
        match key {
            Key::Open(..) => self.fold.open.position(key).map(|at| at + self.fold.blocks.len()),
            _ => self.fold.position(key),
        }
    }

    pub(super) fn seen(&self, block: &Block) -> Seen {
        let all = self.all.filter(|_| view::is_foldable(block));
        self.folds.get(&block.key).copied().or(all).unwrap_or(Seen::Folded)
    }

    pub(super) fn pieces(&mut self, at: usize) -> Rc<[Piece]> {
        let seen = self.seen(self.block(at));
        let log = self.fold.blocks.len();
        let block = if at < log { &self.fold.blocks[at] } else { &self.fold.open.blocks[at - log] };
        self.stage.pieces(block, seen)
    }

    /// The rows of a piece.
    pub(super) fn laid(&mut self, at: usize, piece: usize) -> Rc<Laid> {
        let pieces = self.pieces(at);
        let Some(piece) = pieces.get(piece) else { return Rc::default() };
        let seen = self.seen(self.block(at));
        let log = self.fold.blocks.len();
        let block = if at < log { &self.fold.blocks[at] } else { &self.fold.open.blocks[at - log] };
        self.stage.laid(block, *piece, seen)
    }

    /// How many rows a piece takes, with what stands above its block.
    pub(super) fn rows(&mut self, at: usize, piece: usize) -> usize {
        let lead = if piece == 0 { self.lead(at).len() } else { 0 };
        lead + self.laid(at, piece).sheet.rows.len()
    }
}

/// Whether an empty row stands between two blocks: what belongs together stands together.
pub(super) fn is_apart(before: &Block, block: &Block) -> bool {
    let group = |block: &Block| match block.kind {
        Kind::User(_) => 0,
        Kind::Answer(_) => 1,
        Kind::Reasoning(_) | Kind::Card(_) | Kind::Writing { .. } => 2,
        Kind::Note(_) | Kind::Badge(_) => 3,
        Kind::Checkpoint(_) => 4,
        Kind::Child(_) => 5,
    };
    let (a, b) = (group(before), group(block));
    a != b || a < 2 || a == 5
}
