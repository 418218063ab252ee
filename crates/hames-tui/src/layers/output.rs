//! The whole output of a call, of which the conversation shows a part.
//!
//! It comes in pieces: the next one is asked for when the reader comes near to the end of what is there, or wants the end.
//! Bytes stay bytes until a screen shows them, so neither their number nor the length of a line is felt.

use std::ops::Range;

use hames_protocol::SessionId;
use hames_protocol::api::{ApiError, ApiErrorCode};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::pager::{Chunks, Pager};
use super::parts::{Look, asking, foot, frame, line, numbers};
use crate::prompt::paint::Line;
use crate::talk::Output;
use crate::talk::text::{Row, Run, Sheet, Wrap, clean};
use crate::{Action, Answer, Cx, Input, Layer, Outcome, Request, Sight, Ticket};

/// Bytes that are asked for at once.
const PIECE: u64 = 2 * 1024 * 1024;
/// Bytes that are held at most.
const MOST: u64 = 64 * 1024 * 1024;
/// Bytes of a chunk: laying one out takes about a millisecond.
const CHUNK: usize = 8 * 1024;
/// Chunks from the end at which more is asked for.
const NEAR: usize = 16;

/// An output on the screen.
#[derive(Debug)]
pub(super) struct Whole {
    session: SessionId,
    all: Vec<Output>,
    at: usize,
    text: Text,
    pager: Pager,
    asked: Option<Ticket>,
    is_whole: bool,
    /// The end is wanted as soon as it is there.
    to_end: bool,
    wrong: Option<ApiError>,
}

/// Bytes in chunks.
#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    chunks: Vec<Range<usize>>,
    style: Style,
}

impl Text {
    /// Takes in more; the last chunk may have gone on.
    fn push(&mut self, more: &[u8]) {
        let mut from = self.chunks.pop().map_or(self.bytes.len(), |last| last.start);
        self.bytes.extend_from_slice(more);
        while from < self.bytes.len() {
            let to = end_of(&self.bytes, from);
            self.chunks.push(from..to);
            from = to;
        }
    }
}

/// Where a chunk ends: behind a line, else between two characters.
fn end_of(bytes: &[u8], from: usize) -> usize {
    let to = from + CHUNK;
    if to >= bytes.len() {
        return bytes.len();
    }
    if let Some(at) = memchr::memrchr(b'\n', &bytes[from..to]) {
        return from + at + 1;
    }
    let is_inside = |at: &usize| bytes[*at] & 0xC0 == 0x80;
    to - (0..3).take_while(|back| is_inside(&(to - back))).count()
}

impl Chunks for Text {
    fn count(&self) -> usize {
        self.chunks.len()
    }

    fn lay(&mut self, chunk: usize, width: u16) -> Vec<Row> {
        let text = String::from_utf8_lossy(&self.bytes[self.chunks[chunk].clone()]);
        let text = clean(&text);
        let mut sheet = Sheet::new(width);
        sheet.flow(&[], &[], &[Run::new(text.strip_suffix('\n').unwrap_or(&text), self.style)], Wrap::Anywhere);
        sheet.rows
    }
}

impl Whole {
    /// One of the outputs there are.
    pub(super) fn new(session: SessionId, all: Vec<Output>, at: usize, cx: &mut Cx<'_>) -> Self {
        let mut whole = Self {
            session,
            all,
            at,
            text: Text::default(),
            pager: Pager::default(),
            asked: None,
            is_whole: false,
            to_end: false,
            wrong: None,
        };
        whole.ask(cx);
        whole
    }

    fn loaded(&self) -> u64 {
        self.text.bytes.len() as u64
    }

    fn ask(&mut self, cx: &mut Cx<'_>) {
        let Some(output) = self.all.get(self.at) else { return };
        if self.asked.is_some() || self.is_whole || self.wrong.is_some() || self.loaded() >= MOST {
            return;
        }
        let (session, name) = (self.session.clone(), output.name.clone());
        self.asked = Some(cx.ask(Request::Artifact { session, name, offset: self.loaded(), limit: PIECE }));
    }

    /// More, where the reader comes near to the end of what is there.
    fn ask_on(&mut self, cx: &mut Cx<'_>) {
        if self.to_end || self.pager.chunk() + NEAR >= self.text.count() {
            self.ask(cx);
        }
    }

    fn go_to(&mut self, at: usize, cx: &mut Cx<'_>) {
        self.at = at;
        self.text = Text::default();
        self.pager.reset();
        (self.asked, self.is_whole, self.to_end, self.wrong) = (None, false, false, None);
        self.ask(cx);
    }

    fn is_cut(&self) -> bool {
        !self.is_whole && self.loaded() >= MOST
    }

    /// What one has to know beside the text.
    fn note(&self, sight: Sight<'_>) -> (String, Style) {
        if let Some(wrong) = &self.wrong {
            let again = format!(" · {} tries again", sight.keys.inner("output.retry"));
            let next = if wrong.code == ApiErrorCode::NotFound { "" } else { &again };
            return (format!("It cannot be read: {}{next}", line(&wrong.message)), sight.theme.bad());
        }
        if self.is_cut() && self.pager.is_end() {
            let text =
                format!("These are the first {}; ask the agent to recall what comes behind.", numbers::bytes(MOST));
            return (text, sight.theme.warn());
        }
        if self.to_end && self.asked.is_some() {
            return (format!("reading to the end, {} so far …", numbers::bytes(self.loaded())), sight.theme.dim());
        }
        if self.text.count() == 0 {
            let text = if self.is_whole { "It is empty." } else { asking(sight) };
            return (text.to_owned(), sight.theme.dim());
        }
        (String::new(), sight.theme.dim())
    }

    /// How far the reader is, where not all is on the screen.
    fn place(&self) -> Option<String> {
        let top = self.text.chunks.get(self.pager.chunk())?.start as u64;
        let known = self.all.get(self.at)?.bytes.filter(|_| !self.is_whole).unwrap_or_else(|| self.loaded());
        match (top, self.pager.is_end() && self.is_whole) {
            (0, true) => None,
            (_, true) => Some("100%".into()),
            (top, false) => Some(format!("{}%", (top * 100 / known.max(1)).min(99))),
        }
    }

    fn title(&self) -> String {
        let Some(output) = self.all.get(self.at) else { return "Output".into() };
        let known = output.bytes.or(self.is_whole.then(|| self.loaded()));
        let mut title = match output.label.as_str() {
            "" => output.name.clone(),
            label => format!("{label} · {}", output.name),
        };
        if let Some(bytes) = known {
            title.push_str(&format!(" · {}", numbers::bytes(bytes)));
        }
        title
    }
}

impl Layer for Whole {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        let is_end = action == Some(Action::ToEnd)
            || matches!((action, input), (None, Input::Key(key)) if key.code == KeyCode::End);
        if self.pager.handle(input, action) {
            self.to_end = is_end && !self.is_whole && !self.is_cut();
            self.ask_on(cx);
            return Outcome::Taken;
        }
        let code = if let Input::Key(key) = input { Some(key.code) } else { None };
        match (action, code) {
            (Some(Action::Previous), _) => self.pager.scroll(-1),
            (Some(Action::Next), _) => self.pager.scroll(1),
            (Some(Action::Abort | Action::Submit | Action::Output), _) => return Outcome::Closed,
            (None, Some(KeyCode::Left)) if self.at > 0 => self.go_to(self.at - 1, cx),
            (None, Some(KeyCode::Right)) if self.at + 1 < self.all.len() => self.go_to(self.at + 1, cx),
            (None, Some(KeyCode::Char('r'))) if self.wrong.is_some() => {
                self.wrong = None;
                self.ask(cx);
            }
            _ if matches!(input, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) => {}
            _ => return Outcome::Passed,
        }
        self.ask_on(cx);
        Outcome::Taken
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if self.asked != Some(ticket) {
            return Outcome::Passed;
        }
        self.asked = None;
        match answer {
            Ok(Answer::Artifact(piece)) => {
                self.is_whole = (piece.len() as u64) < PIECE;
                // The last chunk may go on in the new piece.
                self.pager.forget();
                self.text.push(&piece);
                if self.to_end && (self.is_whole || self.is_cut()) {
                    self.to_end = false;
                    self.pager.end();
                }
                self.ask_on(cx);
            }
            Ok(_) => {}
            Err(error) => self.wrong = Some(error),
        }
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let inner = frame(area, buf, sight, &self.title());
        let (note, style) = self.note(sight);
        let rows = u16::from(!note.is_empty() && inner.height > 1 && self.text.count() > 0);
        let text = Rect { height: inner.height - rows, ..inner };
        self.text.style = Look::Text.style(sight.theme);
        self.pager.draw(text, buf, &mut self.text);
        if !note.is_empty() {
            let at = if self.text.count() == 0 { 0 } else { inner.height.saturating_sub(1) };
            Line::new(inner, at).put(buf, &note, style).fill(buf, Style::new());
        }
        if let Some(place) = self.place() {
            foot(area, buf, sight, &place);
        }
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let key = |action| sight.keys.hint(action);
        let others = match self.all.len() {
            0 | 1 => String::new(),
            n => format!(" · ← → the other outputs ({} of {n})", self.at + 1),
        };
        format!(
            "{} {} pages · Home End{others} · {} closes",
            key(Action::PageUp),
            key(Action::PageDown),
            key(Action::Abort)
        )
    }

    fn name(&self) -> &'static str {
        "output"
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyEvent, KeyModifiers};

    use super::super::parts::kit::{Stand, key, row};
    use super::*;
    use crate::snapshot::compare;

    fn outputs() -> Vec<Output> {
        let output = |label: &str, name: &str, bytes| Output { label: label.into(), name: name.into(), bytes };
        vec![output("Shell cargo test", "out-1", Some(10_000_000)), output("", "out-2", None)]
    }

    fn open(stand: &mut Stand) -> Whole {
        Whole::new("s1".into(), outputs(), 0, &mut stand.cx())
    }

    /// Answers what is asked out of this text, until nothing is asked; says which offsets were.
    fn serve(stand: &mut Stand, layer: &mut Whole, text: &[u8]) -> Vec<u64> {
        let mut asked = Vec::new();
        loop {
            let open = stand.asked();
            let Some((ticket, Request::Artifact { offset, limit, .. })) = open.first() else { return asked };
            asked.push(*offset);
            let from = (*offset as usize).min(text.len());
            let to = (from + *limit as usize).min(text.len());
            layer.answer(*ticket, Ok(Answer::Artifact(text[from..to].to_vec())), &mut stand.cx());
        }
    }

    #[test]
    fn the_screens() {
        let mut stand = Stand::showing(row("s1", "lathe"));
        let mut layer = open(&mut stand);
        let text: String =
            (1..=2_000).map(|n| format!("{n} 設計 \u{1b}[31mred\u{1b}[0m and some more of it\n")).collect();
        serve(&mut stand, &mut layer, text.as_bytes());
        let mut out = stand.screens(&mut layer);
        stand.give(&mut layer, &key(KeyCode::Right));
        stand.answer(&mut layer, Err(ApiError::new(ApiErrorCode::NotFound, "There is no out-2 here.")));
        out.push_str(&stand.screens(&mut layer));
        compare("layer-output", &out);
    }

    #[test]
    fn ten_megabytes_come_in_pieces_as_they_are_wanted() {
        let mut stand = Stand::showing(row("s1", "lathe"));
        let mut layer = open(&mut stand);
        let text: Vec<u8> =
            (0..10_000_000u32).map(|n| if n % 60 == 59 { b'\n' } else { b'a' + (n % 26) as u8 }).collect();
        assert_eq!(serve(&mut stand, &mut layer, &text), [0]);
        stand.screen(&mut layer, 80, 24);
        stand.give(&mut layer, &key(KeyCode::PageDown));
        assert_eq!(serve(&mut stand, &mut layer, &text), [0u64; 0], "the first piece is enough for a while");
        stand.give(&mut layer, &key(KeyCode::End));
        assert_eq!(serve(&mut stand, &mut layer, &text), [PIECE, 2 * PIECE, 3 * PIECE, 4 * PIECE]);
        let screen = stand.screen(&mut layer, 80, 24);
        assert!(screen.contains("100%"), "{screen}");
        assert_eq!(layer.text.bytes, text);
        assert_eq!(layer.text.chunks.iter().map(|chunk| chunk.len()).sum::<usize>(), text.len());
    }

    #[test]
    fn a_long_line_and_broken_characters_are_cut_between_characters() {
        for text in ["設".repeat(400_000).into_bytes(), vec![0x80; 100_000], vec![0xff; 100_000], vec![b'x'; 1_000_000]]
        {
            let mut whole = Text::default();
            for piece in text.chunks(65_537) {
                whole.push(piece);
            }
            let again: Vec<u8> = whole.chunks.iter().flat_map(|chunk| whole.bytes[chunk.clone()].to_vec()).collect();
            assert_eq!(again, text);
            assert!(whole.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK));
            if let Ok(all) = std::str::from_utf8(&text) {
                assert!(whole.chunks.iter().all(|chunk| all.is_char_boundary(chunk.start)));
            }
        }
    }

    #[test]
    fn an_old_answer_changes_nothing_and_a_failure_can_be_tried_again() {
        let mut stand = Stand::showing(row("s1", "lathe"));
        let mut layer = open(&mut stand);
        let [(first, _)] = stand.asked()[..] else { panic!() };
        stand.give(&mut layer, &key(KeyCode::Right));
        let late = layer.answer(first, Ok(Answer::Artifact(b"of the other one".to_vec())), &mut stand.cx());
        assert!(matches!(late, Outcome::Passed));
        assert!(!stand.screen(&mut layer, 60, 10).contains("other one"));
        stand.answer(&mut layer, Err(ApiError::new(ApiErrorCode::Timeout, "it took too long")));
        assert!(stand.screen(&mut layer, 60, 10).contains("it took too long · r tries again"));
        stand.give(&mut layer, &key(KeyCode::Char('r')));
        serve(&mut stand, &mut layer, b"");
        assert!(stand.screen(&mut layer, 60, 10).contains("It is empty."));
        let mut layer = open(&mut stand);
        serve(&mut stand, &mut layer, &b"a line\r\nand \xff\x00\n".repeat(3_000));
        stand.at_every_size(&mut layer);
        let end = Input::Key(KeyEvent::new(KeyCode::End, KeyModifiers::CONTROL));
        stand.give(&mut layer, &end);
        assert!(stand.screen(&mut layer, 60, 10).contains("and \u{fffd}\\x00"));
    }
}
