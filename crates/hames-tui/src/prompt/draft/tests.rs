use super::wrap::Rows;
use super::*;
use crate::prompt::text::clean;

pub(super) fn rows(draft: &Draft, width: usize) -> Rows {
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
    assert_eq!((shown(&draft), draft.chip_at(4).unwrap().label()), ("see #|".into(), "[pasted 1,204 lines]"));
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

#[test]
fn what_can_be_taken_back_is_bounded_in_whole_groups() {
    let mut draft = Draft::default();
    for word in 0..3_000 {
        format!("{} ", word % 10).chars().for_each(|c| draft.type_char(c));
        draft.go_to(draft.text().len(), false);
    }
    let whole = draft.piece().whole();
    let mut groups = 0;
    while draft.undo() {
        groups += 1;
        assert!(draft.text().is_empty() || draft.text().ends_with(' '), "a group goes whole");
    }
    assert!((700..=1_000).contains(&groups), "{groups}");
    while draft.redo() {}
    assert_eq!(draft.piece().whole(), whole);
    // Pastes of megabytes do not pile up.
    let mut heavy = Draft::default();
    let paste = Piece::unit(Chip::new(&"x".repeat(5 * 1024 * 1024)));
    for _ in 0..20 {
        heavy.insert(paste.clone());
        heavy.delete(Edit::Back);
    }
    let mut groups = 0;
    while heavy.undo() {
        groups += 1;
    }
    assert!((2..=6).contains(&groups), "{groups}");
}
