use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::wrap::Rows;
use super::*;
use crate::prompt::text::{cells, clean};

fn rows(draft: &Draft, width: usize) -> Rows {
    Rows::new(draft.text(), draft.piece().chips(), width)
}

fn typed(text: &str) -> Draft {
    let mut draft = Draft::default();
    text.chars().for_each(|c| draft.type_char(c));
    draft
}

/// The text with the cursor as `|` and units as `#`.
fn shown(draft: &Draft) -> String {
    let (before, behind) = draft.text().split_at(draft.cursor());
    format!("{before}|{behind}").replace(CHIP, "#")
}

fn with_cursor(text: &str) -> Draft {
    let at = text.find('|').unwrap();
    let mut draft = typed(&text.replacen('|', "", 1));
    draft.go_to(at, false);
    draft
}

#[test]
fn backspace_removes_one_visible_character_beside_a_paste_too() {
    let mut draft = Draft::default();
    draft.paste(&"가".repeat(1_200));
    "안녕🙂e\u{301}".chars().for_each(|c| draft.type_char(c));
    let mut seen = Vec::new();
    for _ in 0..6 {
        draft.delete(Edit::Back);
        seen.push(shown(&draft));
    }
    assert_eq!(seen, ["#안녕🙂|", "#안녕|", "#안|", "#|", "|", "|"]);
    let mut draft = typed("안녕\u{202f}🙂e\u{301}");
    let laid = rows(&draft, 80);
    draft.go(To::WordLeft, false, &laid);
    assert_eq!(shown(&draft), "안녕\u{202f}🙂|e\u{301}");
    draft.delete(Edit::WordBack);
    assert_eq!(shown(&draft), "안녕\u{202f}|e\u{301}");
    draft.delete(Edit::ToLineStart);
    assert_eq!(shown(&draft), "|e\u{301}");
    assert_eq!(draft.piece().whole(), "e\u{301}");
}

#[test]
fn deletions_and_moves_take_what_their_names_say() {
    use Edit::*;
    for (before, edit, after) in [
        ("one two|", WordBack, "one |"),
        ("one two  |x", WordBack, "one |x"),
        ("a.b|", WordBack, "a.|"),
        ("one| two x", WordAhead, "one| x"),
        ("a\nbc|d", ToLineStart, "a\n|d"),
        ("a\n|d", ToLineStart, "a|d"),
        ("|a", ToLineStart, "|a"),
        ("a|b\nc", ToLineEnd, "a|\nc"),
        ("a|\nc", ToLineEnd, "a|c"),
        ("a|", ToLineEnd, "a|"),
        ("👩‍👩‍👧|", Back, "|"),
        ("|🇩🇪🇫🇷", Ahead, "|🇫🇷"),
        ("漢|字", Back, "|字"),
        ("a\n|b", Back, "a|b"),
        ("a|", Ahead, "a|"),
        ("|", Back, "|"),
    ] {
        let mut draft = with_cursor(before);
        draft.delete(edit);
        assert_eq!(shown(&draft), after, "{edit:?} in {before:?}");
    }
    for (before, to, after) in [
        ("ab|", To::Left, "a|b"),
        ("👩‍👩‍👧|x", To::Left, "|👩‍👩‍👧x"),
        ("a|\nb", To::Right, "a\n|b"),
        ("one, two|", To::WordLeft, "one, |two"),
        ("|one, two", To::WordRight, "one|, two"),
        ("ab\ncd|e", To::LineStart, "ab\n|cde"),
        ("a|b\ncd", To::LineEnd, "ab|\ncd"),
        ("abc\nd|e", To::Up, "a|bc\nde"),
        ("漢字x\nab|c", To::Up, "漢|字x\nabc"),
        ("ab|c\nd", To::Down, "abc\nd|"),
        ("a|b\nd", To::Start, "|ab\nd"),
        ("a|b\nd", To::End, "ab\nd|"),
        // Rows are what is shown, not lines.
        ("aaaa bbbb c|c", To::Up, "aaaa b|bbb cc"),
    ] {
        let mut draft = with_cursor(before);
        let laid = rows(&draft, 5);
        draft.go(to, false, &laid);
        assert_eq!(shown(&draft), after, "{to:?} in {before:?}");
    }
}

#[test]
fn moves_between_rows_keep_the_column_they_came_from() {
    let mut draft = with_cursor("long line\nx\nlong lin|e");
    let laid = rows(&draft, 80);
    draft.go(To::Up, false, &laid);
    assert_eq!(shown(&draft), "long line\nx|\nlong line");
    draft.go(To::Up, false, &laid);
    assert_eq!(shown(&draft), "long lin|e\nx\nlong line");
    assert!(!draft.go(To::Up, false, &laid));
}

#[test]
fn a_selection_is_replaced_by_what_is_typed_and_left_at_its_ends() {
    let mut draft = with_cursor("one |two");
    let laid = rows(&draft, 80);
    draft.go(To::WordRight, true, &laid);
    assert_eq!(draft.selection(), Some(4..7));
    draft.go(To::Left, false, &laid);
    assert_eq!(shown(&draft), "one |two");
    draft.go(To::LineEnd, true, &laid);
    draft.type_char('X');
    assert_eq!(shown(&draft), "one X|");
    draft.undo();
    assert_eq!(draft.piece().whole(), "one two");
}

#[test]
fn changes_are_taken_back_in_groups_that_make_sense() {
    let mut draft = typed("one two");
    draft.paste("PASTE");
    draft.type_char('x');
    draft.delete(Edit::Back);
    draft.delete(Edit::Back);
    let mut seen = vec![draft.piece().whole()];
    while draft.undo() {
        seen.push(draft.piece().whole());
    }
    assert_eq!(seen, ["one twoPAST", "one twoPASTEx", "one twoPASTE", "one two", "one ", ""]);
    for expected in seen.iter().rev().skip(1) {
        assert!(draft.redo());
        assert_eq!(draft.piece().whole(), *expected);
    }
    assert!(!draft.redo());
    // What is written after taking back leaves nothing to make again.
    draft.undo();
    draft.type_char('!');
    assert!(!draft.redo());
}

#[test]
fn a_long_paste_is_one_unit_that_opens_and_sends_as_what_it_stands_for() {
    let long = "line\n".repeat(1_204);
    let mut draft = typed("see ");
    draft.paste(&long);
    assert_eq!((shown(&draft), draft.chip_at(4).unwrap().label()), ("see #|".into(), "[pasted 1,204 lines]".into()));
    assert_eq!(draft.piece().whole(), format!("see {long}"));
    assert_eq!(draft.expand(), Ok(()));
    assert_eq!(draft.text(), format!("see {long}"));
    draft.undo();
    draft.delete(Edit::Back);
    assert_eq!(draft.piece().whole(), "see ");
    draft.undo();
    assert_eq!(draft.piece().whole(), format!("see {long}"));
    draft.paste(&"x".repeat(40_000));
    assert_eq!(draft.chip_at(draft.text().len() - 1).unwrap().label(), "[pasted 40,000 characters]");
    assert!(draft.expand().unwrap_err().contains("your editor"));
    assert!(typed("a").expand().is_err());
}

#[test]
fn many_pastes_do_not_make_the_text_in_the_open_long() {
    let mut draft = Draft::default();
    for _ in 0..200 {
        draft.paste(&"word ".repeat(300));
    }
    assert!(draft.text().len() <= OPEN_BYTES + 200, "{}", draft.text().len());
    assert_eq!(draft.piece().whole().len(), 200 * 1_500);
}

#[test]
fn what_comes_back_from_an_editor_has_its_units_again() {
    let long = "log\n".repeat(50);
    let mut draft = typed("before ");
    draft.paste(&long);
    typed(" behind").text().chars().for_each(|c| draft.type_char(c));
    let whole = draft.piece().whole();
    let folded = draft.piece().folded(&whole.replace("before", "BEFORE"));
    assert_eq!((folded.text(), folded.whole()), ("BEFORE \u{1} behind", whole.replace("before", "BEFORE")));
    let changed = draft.piece().folded(&whole.replacen("log", "LOG", 1));
    assert_eq!(changed.whole(), whole.replacen("log", "LOG", 1));
}

#[test]
fn rows_break_between_words_and_never_within_a_character() {
    for (text, width, expected) in [
        ("", 5, &[""][..]),
        ("one two three", 7, &["one two ", "three"]),
        ("one two", 100, &["one two"]),
        ("abcdefgh", 3, &["abc", "def", "gh"]),
        ("a abcdefgh", 3, &["a ", "abc", "def", "gh"]),
        ("漢字漢字", 3, &["漢", "字", "漢", "字"]),
        ("漢字", 1, &["漢", "字"]),
        ("👩‍👩‍👧👩‍👩‍👧", 2, &["👩‍👩‍👧", "👩‍👩‍👧"]),
        ("a\n\nb", 5, &["a", "", "b"]),
        ("ab   cd", 3, &["ab   ", "cd"]),
        ("\tx", 4, &["\t", "x"]),
        ("ab\n", 5, &["ab", ""]),
    ] {
        let laid = Rows::new(text, &[], width);
        let shown: Vec<&str> =
            (0..laid.len()).map(|row| laid.get(row).unwrap()).map(|r| &text[r.start..r.end]).collect();
        assert_eq!(shown, expected, "{text:?} in {width}");
    }
}

#[test]
fn control_bytes_are_removed_and_line_ends_are_one_kind() {
    for (text, expected) in [
        ("a\nb\r\nc", "a\nb\nc"),
        ("a\rb", "a\nb"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("x\u{1b}[201~\ry", "x\ny"),
        ("\u{1b}[200~a", "a"),
        ("\u{1b}]0;title\u{7}text", "text"),
        ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ("\u{1b}]not ended\nnext", "not ended\nnext"),
        ("\u{1b}OAx", "x"),
        ("\u{1b}", ""),
        ("\u{1b}[", ""),
        ("a\u{1b}b", "ab"),
        ("\u{9b}31mx", "x"),
        ("bell\u{7} null\0 del\u{7f} one\u{1}", "bell null del one"),
        ("tab\tstays", "tab\tstays"),
        ("漢字 🙂 e\u{301}", "漢字 🙂 e\u{301}"),
    ] {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}

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

/// Measured by hand: `cargo test --release -p hames-tui -- --ignored --nocapture five_megabytes`.
#[test]
#[ignore = "measures; run it in release"]
fn five_megabytes_are_taken_in_at_once() {
    for megabytes in [1, 5, 10] {
        for (what, text) in [
            ("lines", "2026-01-01 \u{1b}[31mERROR\u{1b}[0m something 漢字\r\n".repeat(megabytes * 1024 * 1024 / 45)),
            ("one line", "x".repeat(megabytes * 1024 * 1024)),
        ] {
            let begun = std::time::Instant::now();
            let mut draft = typed("see ");
            draft.paste(&text);
            let laid = rows(&draft, 80);
            let taken = begun.elapsed();
            let begun = std::time::Instant::now();
            let whole = draft.piece().whole();
            println!(
                "{megabytes} MB, {what}: in {taken:?}, out {:?} ({} bytes, {} rows)",
                begun.elapsed(),
                whole.len(),
                laid.len()
            );
        }
    }
}
