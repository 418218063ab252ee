//! Drafts beside a naive model of them, under any sequence of edits.

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::tests::rows;
use super::*;
use crate::prompt::text::{cells, clean};

/// The same as a draft, done the slow way: over the whole text, without lines, rows and units kept apart.
#[derive(Clone, Default, Debug)]
struct Model {
    text: String,
    pastes: Vec<String>,
    cursor: usize,
}

impl Model {
    fn bounds(&self) -> Vec<usize> {
        self.text.grapheme_indices(true).map(|(at, _)| at).chain([self.text.len()]).collect()
    }

    fn replace(&mut self, start: usize, end: usize, text: &str, pastes: &[String]) {
        let first = self.text[..start].matches(CHIP).count();
        let gone = self.text[start..end].matches(CHIP).count();
        self.pastes.splice(first..first + gone, pastes.iter().cloned());
        self.text = format!("{}{}{}", &self.text[..start], text, &self.text[end..]);
        let at = start + text.len();
        self.cursor = self.bounds().into_iter().find(|bound| *bound >= at).unwrap();
    }

    fn whole(&self) -> String {
        let mut pastes = self.pastes.iter();
        self.text.chars().map(|c| if c == CHIP { pastes.next().unwrap().clone() } else { c.to_string() }).collect()
    }

    fn apply(&mut self, op: &Op) {
        let bounds = self.bounds();
        let at = self.cursor;
        let before = bounds.iter().copied().rfind(|bound| *bound < at).unwrap_or(at);
        let behind = bounds.iter().copied().find(|bound| *bound > at).unwrap_or(at);
        match op {
            Op::Type(c) if c.is_control() && *c != '\n' && *c != '\t' => {}
            Op::Type(c) => self.replace(at, at, &c.to_string(), &[]),
            Op::Paste(text) => {
                let text = clean(text).into_owned();
                let is_long = text.len() > 2_000 || text.lines().count() > 12;
                match is_long {
                    true => self.replace(at, at, &CHIP.to_string(), &[text]),
                    false if text.is_empty() => {}
                    false => self.replace(at, at, &text, &[]),
                }
            }
            Op::Back => self.delete(before, at),
            Op::Ahead => self.delete(at, behind),
            Op::ToLineStart => {
                let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
                self.delete(if start == at { before } else { start }, at);
            }
            Op::ToLineEnd => {
                let end = self.text[at..].find('\n').map_or(self.text.len(), |length| at + length);
                self.delete(at, if end == at { behind } else { end });
            }
            Op::Left => self.cursor = before,
            Op::Right => self.cursor = behind,
            Op::Start => self.cursor = 0,
            Op::End => self.cursor = self.text.len(),
            Op::Click(at) => self.cursor = bounds.iter().copied().rfind(|bound| bound <= at).unwrap_or(0),
        }
    }

    fn delete(&mut self, start: usize, end: usize) {
        if start < end {
            self.replace(start, end, "", &[]);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Type(char),
    Paste(String),
    Back,
    Ahead,
    ToLineStart,
    ToLineEnd,
    Left,
    Right,
    Start,
    End,
    Click(usize),
}

/// Characters that join with others, are wide, or take no room.
const ODD: &[char] = &[
    'a', ' ', '\n', '\t', '漢', '가', '\u{1100}', '\u{1161}', 'e', '\u{301}', '🙂', '👩', '\u{200d}', '👧', '🇩', '🇪',
    '\u{fe0f}', '\u{200b}', '\u{202e}', '\u{1}', '\u{1b}', '\r', '\u{7f}', 'ا', '\u{94d}', 'क',
];

fn op() -> impl Strategy<Value = Op> {
    let odd = proptest::sample::select(ODD);
    prop_oneof![
        6 => odd.clone().prop_map(Op::Type),
        1 => any::<char>().prop_map(Op::Type),
        2 => proptest::collection::vec(odd, 0..30).prop_map(|chars| Op::Paste(chars.into_iter().collect())),
        1 => (13usize..40).prop_map(|lines| Op::Paste("x\r\n".repeat(lines))),
        3 => Just(Op::Back),
        2 => Just(Op::Ahead),
        1 => Just(Op::ToLineStart),
        1 => Just(Op::ToLineEnd),
        3 => Just(Op::Left),
        2 => Just(Op::Right),
        1 => Just(Op::Start),
        1 => Just(Op::End),
        2 => (0usize..200).prop_map(Op::Click),
    ]
}

fn apply(draft: &mut Draft, op: &Op, width: usize) {
    let laid = rows(draft, width);
    match op {
        Op::Type(c) => draft.type_char(*c),
        Op::Paste(text) => drop(draft.paste(text)),
        Op::Back => drop(draft.delete(Edit::Back)),
        Op::Ahead => drop(draft.delete(Edit::Ahead)),
        Op::ToLineStart => drop(draft.delete(Edit::ToLineStart)),
        Op::ToLineEnd => drop(draft.delete(Edit::ToLineEnd)),
        Op::Left => drop(draft.go(To::Left, false, &laid)),
        Op::Right => drop(draft.go(To::Right, false, &laid)),
        Op::Start => drop(draft.go(To::Start, false, &laid)),
        Op::End => drop(draft.go(To::End, false, &laid)),
        Op::Click(at) => draft.go_to(*at, false),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_draft_is_what_a_naive_one_is(ops in proptest::collection::vec(op(), 0..80)) {
        let (mut draft, mut model) = (Draft::default(), Model::default());
        for op in &ops {
            apply(&mut draft, op, 10);
            model.apply(op);
            prop_assert_eq!((draft.text(), draft.cursor()), (model.text.as_str(), model.cursor), "after {:?}", op);
            prop_assert!(model.bounds().contains(&draft.cursor()));
        }
        prop_assert_eq!(draft.piece().whole(), model.whole());
    }

    #[test]
    fn taking_everything_back_gives_the_beginning_and_making_it_again_the_end(
        ops in proptest::collection::vec(op(), 0..80),
        halfway in 0usize..80,
    ) {
        let mut draft = Draft::of(Piece::pasted("begun e\u{301}", false));
        let beginning = draft.piece().clone();
        for (index, op) in ops.iter().enumerate() {
            apply(&mut draft, op, 10);
            if index == halfway {
                draft.undo();
                draft.redo();
            }
        }
        let end = draft.piece().clone();
        while draft.undo() {
            prop_assert!(draft.text().is_char_boundary(draft.cursor()));
        }
        prop_assert_eq!(draft.piece(), &beginning);
        while draft.redo() {}
        prop_assert_eq!(draft.piece(), &end);
    }

    #[test]
    fn rows_hold_every_byte_once_and_every_place_is_found_again(
        chars in proptest::collection::vec(proptest::sample::select(ODD), 0..120),
        long in any::<bool>(),
        width in 0usize..20,
    ) {
        let mut draft = Draft::default();
        draft.paste(&chars.iter().collect::<String>());
        if long {
            draft.paste(&"x\n".repeat(20));
        }
        let laid = rows(&draft, width);
        let text = draft.text();
        let mut next = 0;
        for index in 0..laid.len() {
            let row = laid.get(index).unwrap();
            prop_assert_eq!(row.start, next);
            prop_assert!(row.start <= row.end && (row.end > row.start || !row.goes_on));
            next = if row.goes_on { row.end } else { row.end + 1 };
            let shown = text[row.start..row.end].trim_end();
            if !shown.contains(CHIP) && !shown.contains('\t') && shown.graphemes(true).count() > 1 {
                prop_assert!(cells(shown) <= width.max(1), "{:?} in {}", shown, width);
            }
        }
        prop_assert_eq!(next, text.len() + 1);
        for (at, _) in text.grapheme_indices(true).chain([(text.len(), "")]) {
            let (row, column) = laid.place(text, draft.piece().chips(), at);
            let found = laid.at(text, draft.piece().chips(), row, column);
            prop_assert_eq!(laid.row_of(found), row);
        }
    }

    #[test]
    fn whatever_bytes_are_pasted_only_text_comes_in(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let cleaned = clean(&text).into_owned();
        prop_assert!(!cleaned.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        prop_assert_eq!(clean(&cleaned), cleaned.as_str());
        let mut draft = Draft::default();
        draft.paste(&text);
        prop_assert_eq!(draft.piece().whole(), cleaned);
    }
}
