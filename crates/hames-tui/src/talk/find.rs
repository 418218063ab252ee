//! Finding in the conversation: from the end towards the beginning, older pages too.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::Rect;

use super::Talk;
use super::block::{Block, Key, Kind};
use super::text::cut_to;
use super::view::{Part, Seen};
use crate::{Action, Input, Outcome, Theme};

/// Bytes that are looked at in one frame.
const BYTES_A_FRAME: usize = 4 * 1024 * 1024;
/// Characters of what is looked for.
const MAX_QUERY: usize = 200;

#[derive(Clone, Debug, PartialEq)]
enum State {
    Idle,
    /// On the way; the blocks on this side of the key are looked at already.
    Going {
        forward: bool,
        from: Option<Key>,
    },
    Hit(Key),
    /// There is none before this hit in what is loaded, and older pages are still to come.
    Beyond(Key),
    None,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Find {
    query: String,
    state: State,
    /// Keys go into what is looked for.
    is_typing: bool,
}

impl Find {
    /// Whether it goes on in the next frame.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.state, State::Going { .. })
    }

    /// Whether nothing was found in what is loaded.
    pub(super) fn wants_older(&self) -> bool {
        matches!(self.state, State::None | State::Beyond(_)) && !self.query.is_empty()
    }
}

impl Talk {
    pub(super) fn is_finding(&self) -> bool {
        self.find.as_ref().is_some_and(|find| find.is_typing)
    }

    pub(super) fn begin_find(&mut self) {
        let query = self.find.take().map(|find| find.query).unwrap_or_default();
        self.find = Some(Find { query, state: State::Idle, is_typing: true });
    }

    /// Goes to an event as soon as it is loaded, and looks there for what was found; both show where it is.
    pub(crate) fn seek(&mut self, seq: u64, words: &str) {
        let words = words.lines().next().unwrap_or("").chars().take(MAX_QUERY).collect();
        self.seek = Some((seq, words));
    }

    /// Whether it is still on the way there.
    pub(crate) fn is_seeking(&self) -> bool {
        self.seek.is_some()
    }

    /// Ends the way where the event is loaded, or cannot be. The width has to be known.
    pub(super) fn arrive(&mut self) {
        let Some((seq, words)) = self.seek.take_if(|(seq, _)| !self.older || self.fold.first <= Some(*seq)) else {
            return;
        };
        let is_there = |block: &Block| matches!(block.key, Key::Log(at, _) if at <= seq);
        let Some(at) = (0..self.len()).rev().find(|at| is_there(self.block(*at))).or((self.len() > 0).then_some(0))
        else {
            return;
        };
        let key = self.block(at).key.clone();
        if matches!(self.block(at).kind, Kind::User(_) | Kind::Answer(_)) {
            self.marker = Some(key.clone());
        }
        if words.is_empty() {
            return self.show(&key, 0);
        }
        self.reveal(&key, &words.to_lowercase());
        self.find = Some(Find { query: words, state: State::Hit(key), is_typing: true });
    }

    /// A key while something is looked for: Enter and Up go to the hit before, Down to the one after, Esc ends.
    pub(super) fn find_key(&mut self, input: &Input, action: Option<Action>) -> Option<Outcome> {
        let find = self.find.as_mut().filter(|find| find.is_typing)?;
        match input {
            Input::Paste(text) => {
                find.query.extend(text.lines().next().unwrap_or("").chars().take(MAX_QUERY));
                self.look(false, true);
            }
            Input::Key(key) => {
                let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
                match (key.code, action) {
                    (KeyCode::Esc, _) => self.find = None,
                    (KeyCode::Enter | KeyCode::Up, _) | (_, Some(Action::Find)) => self.look(false, false),
                    (KeyCode::Down, _) => self.look(true, false),
                    (KeyCode::Backspace, _) => {
                        find.query.pop();
                        self.look(false, true);
                    }
                    (KeyCode::Char(c), _) if plain => {
                        if find.query.chars().count() < MAX_QUERY {
                            find.query.push(c);
                        }
                        self.look(false, true);
                    }
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(Outcome::Taken)
    }

    /// Looks on from the hit, or anew from the end.
    fn look(&mut self, forward: bool, anew: bool) {
        let Some(find) = &mut self.find else { return };
        let from = match &find.state {
            State::Hit(key) | State::Beyond(key) if !anew => Some(key.clone()),
            _ => None,
        };
        find.state = if find.query.is_empty() { State::Idle } else { State::Going { forward, from } };
        self.continue_find();
    }

    /// Looks at as much as a frame may.
    pub(super) fn continue_find(&mut self) {
        let Some(find) = &self.find else { return };
        let State::Going { forward, from } = find.state.clone() else { return };
        let query = find.query.to_lowercase();
        let mut at = match (from.as_ref().and_then(|key| self.index(key)), forward) {
            (Some(at), true) => Some(at + 1).filter(|at| *at < self.len()),
            (Some(at), false) => at.checked_sub(1),
            (None, _) => self.len().checked_sub(1),
        };
        let mut left = BYTES_A_FRAME;
        let mut state = State::None;
        while let Some(place) = at {
            let block = self.block(place);
            let texts = texts(block);
            if texts.iter().any(|text| contains(text, &query)) {
                state = State::Hit(block.key.clone());
                break;
            }
            let looked: usize = texts.iter().map(|text| text.len()).sum();
            if looked >= left {
                state = State::Going { forward, from: Some(block.key.clone()) };
                break;
            }
            left -= looked;
            at = if forward { Some(place + 1).filter(|at| *at < self.len()) } else { place.checked_sub(1) };
        }
        if let State::Hit(key) = &state {
            self.reveal(&key.clone(), &query);
        } else if let (State::None, Some(from)) = (&state, from) {
            // There is no further one, or not yet: the last hit stays.
            state = if !forward && self.older { State::Beyond(from) } else { State::Hit(from) };
        }
        if let Some(find) = &mut self.find {
            find.state = state;
        }
    }

    /// Opens the block where what was found is folded away, and brings it on the screen.
    fn reveal(&mut self, key: &Key, query: &str) {
        let Some(at) = self.index(key) else { return };
        for seen in [self.seen(self.block(at)), Seen::Whole] {
            if seen != self.seen(self.block(at)) {
                self.folds.insert(key.clone(), seen);
            }
            let pieces = self.pieces(at);
            let holds = |talk: &mut Self, piece: usize| match pieces[piece].part {
                // Long texts are not laid out only to be looked through.
                Part::Prose(stretch) => pieces[piece]
                    .block(talk.block(at))
                    .and_then(|block| texts(block).first().copied())
                    .and_then(|text| text.get(stretch.range()))
                    .is_some_and(|text| contains(text, query)),
                _ => contains(&talk.laid(at, piece).sheet.text, query),
            };
            if let Some(piece) = (0..pieces.len()).find(|piece| holds(self, *piece)) {
                return self.show(key, piece);
            }
        }
        self.show(key, 0);
    }

    /// The stretches of a text that are what is looked for.
    pub(super) fn found_in(&self, text: &str) -> Vec<Range<u32>> {
        let Some(find) = self.find.as_ref().filter(|find| !find.query.is_empty()) else { return Vec::new() };
        let query = find.query.to_lowercase();
        let lower = text.to_lowercase();
        // Where lower case has another length, places would be wrong; those few texts are not marked.
        if lower.len() != text.len() {
            return Vec::new();
        }
        lower.match_indices(&query).map(|(at, hit)| at as u32..(at + hit.len()) as u32).collect()
    }

    /// The area that is left, and the row of the search.
    pub(super) fn find_area(&self, area: Rect) -> (Rect, Option<Rect>) {
        if self.find.is_none() || area.height < 2 {
            return (area, None);
        }
        let line = Rect { y: area.bottom() - 1, height: 1, ..area };
        (Rect { height: area.height - 1, ..area }, Some(line))
    }

    pub(super) fn draw_find(&self, line: Rect, buf: &mut Buffer, theme: Theme) {
        let Some(find) = &self.find else { return };
        let says = match &find.state {
            State::Idle => "Enter finds the one before, Down the one after, Esc ends".into(),
            State::Going { .. } => "looking …".into(),
            State::Hit(_) => "Enter: the one before · Down: the one after · Esc".into(),
            State::None | State::Beyond(_) if self.older => match self.oldest_seq() {
                Some(seq) => format!("looking further back, before event {seq} · Esc ends"),
                None => "looking further back · Esc ends".into(),
            },
            State::Beyond(_) => "Down: the one after · Esc".into(),
            State::None => String::from("not found"),
        };
        let room = usize::from(line.width);
        let query = cut_to(&format!("Find: {}▏", super::text::clean_line(&find.query)), room);
        let (x, _) = buf.set_stringn(line.x, line.y, query, room, theme.name());
        let left = usize::from(line.right().saturating_sub(x));
        buf.set_stringn(x, line.y, cut_to(&format!("  {says}"), left), left, theme.dim());
    }

    /// More is loaded: a search that found nothing goes on.
    pub(super) fn look_further(&mut self) {
        match self.find.as_ref().map(|find| &find.state) {
            Some(State::None) => self.look(false, true),
            // On from where it was: the hits behind it were seen.
            Some(State::Beyond(_)) => self.look(false, false),
            _ => {}
        }
    }
}

/// Everything of a block that can be found.
fn texts(block: &Block) -> Vec<&str> {
    match &block.kind {
        Kind::User(user) => vec![&user.prose.text],
        Kind::Answer(prose) | Kind::Reasoning(prose) => vec![&prose.text],
        Kind::Checkpoint(made) => vec![&made.prose.text],
        Kind::Note(note) => vec![&note.text, &note.detail],
        Kind::Card(card) => {
            let mut all = vec![card.label.as_str(), &card.input, &card.output, &card.decision];
            all.extend(card.diffs.iter().map(|diff| diff.text.as_str()));
            all
        }
        Kind::Child(child) => child.texts().into_iter().chain(child.blocks().flat_map(texts)).collect(),
        Kind::Writing { .. } | Kind::Badge(_) => Vec::new(),
    }
}

/// Whether a text holds a query, which is in lower case.
fn contains(text: &str, query: &str) -> bool {
    if query.is_ascii() {
        let (text, query) = (text.as_bytes(), query.as_bytes());
        let Some(first) = query.first() else { return false };
        let upper = first.to_ascii_uppercase();
        return text.len() >= query.len()
            && (0..=text.len() - query.len()).any(|at| {
                (text[at] == *first || text[at] == upper) && text[at..at + query.len()].eq_ignore_ascii_case(query)
            });
    }
    text.to_lowercase().contains(query)
}
