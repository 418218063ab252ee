//! Rows of any text in any width.

use proptest::prelude::*;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::talk::code::{Fences, Painter};
use crate::talk::markdown;
use crate::talk::text::{Row, Run, Sheet, Wrap, clean, columns, cut_to};

fn widest(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.spans.iter().map(|span| span.text.width()).sum()).max().unwrap_or(0)
}

fn flowed(text: &str, width: u16, wrap: Wrap) -> Sheet {
    let mut sheet = Sheet::new(width);
    sheet.flow(&[("> ".into(), Style::new())], &[("  ".into(), Style::new())], &[Run::new(text, Style::new())], wrap);
    sheet
}

fn marked(text: &str, width: u16) -> Sheet {
    let mut sheet = Sheet::new(width);
    let mut fences = Fences::default();
    fences.frame(theme());
    markdown::lay(&mut sheet, text, Style::new(), theme(), &mut Painter::new(&mut fences, Style::new()));
    sheet
}

fn shown(sheet: &Sheet) -> Vec<String> {
    sheet.rows.iter().map(|row| row.shown().trim_end().to_owned()).collect()
}

#[test]
fn lines_break_at_words_and_around_wide_characters() {
    for (text, width, expected) in [
        ("", 10, vec![">"]),
        ("one two three", 10, vec!["> one two", "  three"]),
        ("one\ntwo", 10, vec!["> one", "  two"]),
        ("unbreakable", 7, vec!["> unbre", "  akabl", "  e"]),
        ("漢字漢字漢字", 8, vec!["> 漢字漢", "  字漢字"]),
        ("a 👨‍👩‍👧 e\u{301}x", 6, vec!["> a 👨‍👩‍👧", "  e\u{301}x"]),
        ("\tx", 20, vec![">     x"]),
        ("漢", 1, vec!["·"]),
        ("ab", 0, vec!["a", "b"]),
    ] {
        assert_eq!(shown(&flowed(text, width, Wrap::Words)), expected, "{text:?} in {width}");
    }
    assert_eq!(cut_to("漢字漢字", 5), "漢字…");
    assert_eq!(cut_to("short", 5), "short");
    assert_eq!(cut_to("short", 0), "");
}

#[test]
fn what_could_rule_the_terminal_is_shown() {
    for (text, expected) in [
        ("ok \u{1b}[31mred\u{7}", r"ok \x1b[31mred\x07"),
        ("a\r\nb\rc", "a\nb\\rc"),
        ("x\u{202e}exe.cod", r"x\u{202e}exe.cod"),
        ("\u{9b}2J\u{200b}", r"\x9b2J\u{200b}"),
        ("tab\tstays, می\u{200c}خواهم too", "tab\tstays, می\u{200c}خواهم too"),
    ] {
        assert_eq!(clean(text), expected);
    }
    let mut log = Log::default();
    log.run("analyze", "evil \u{1b}]0;title\u{7} \u{202e}me").step();
    log.says("text", 0, "`\u{1b}[2J` \u{2066}x\u{0}", 1).call("c", "Shell", "a\u{1b}c", json!({"command": "\u{1b}c"}));
    log.gives(
        "c",
        "out \u{1b}[1;1H\u{8}\u{202e}",
        json!([{"path": "\u{1b}x", "text": "@@\n+\u{1b}[0m\n", "added": 1, "removed": 0}]),
    );
    log.json(json!({"type": "error", "class": "internal", "message": "bad \u{1b}[m", "retryable": false}));
    log.json(json!({"type": "session.renamed", "name": "\u{1b}]2;x"}));
    let mut talk = talk_of(&log);
    act(&mut talk, &plain(KeyCode::F(5)));
    let buf = draw(&mut talk, 70, 60, theme());
    for cell in &buf.content {
        assert!(!cell.symbol().chars().any(is_unprintable), "{:?}", cell.symbol());
    }
    assert!(text(&buf).join("\n").contains(r"\x1b[1;1H"));
}

#[test]
fn markdown_becomes_rows() {
    for (source, width, expected) in [
        ("a **b** c", 20, vec!["a b c"]),
        ("- x\n- y\n  - z", 20, vec!["• x", "• y", "  • z"]),
        ("3. x\n4. y", 20, vec!["3. x", "4. y"]),
        ("- one two three", 9, vec!["• one two", "  three"]),
        ("> a\n>\n> b", 20, vec!["│ a", "│", "│ b"]),
        ("[t](http://u) <http://v>", 40, vec!["t (http://u) http://v"]),
        ("- [x] did\n- [ ] not", 20, vec!["• [x] did", "• [ ] not"]),
        ("a  \nb", 20, vec!["a", "b"]),
        ("x\n\n---\n\ny", 5, vec!["x", "", "─────", "", "y"]),
        ("```rust\nlet x = 1;\n\nlet y;\n```", 20, vec!["  let x = 1;", "", "  let y;"]),
        (
            "| a | b |\n|---|--:|\n| x | 1 |\n| long | 22 |",
            30,
            vec!["a    │  b", "─────┼───", "x    │  1", "long │ 22"],
        ),
        ("| a | b |\n|---|---|\n| x | y |", 6, vec!["a: x", "b: y"]),
        ("- ", 10, vec!["•"]),
        ("![alt](u.png)", 30, vec!["[image: alt] (u.png)"]),
        ("<b>raw</b>", 20, vec!["<b>raw</b>"]),
    ] {
        assert_eq!(shown(&marked(source, width)), expected, "{source:?}");
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The text the rows show, in the order of the text.
fn selectable(sheet: &Sheet) -> String {
    let mut spans: Vec<_> = sheet.rows.iter().flat_map(|row| &row.spans).filter(|span| span.len > 0).collect();
    spans.sort_by_key(|span| span.at);
    spans.iter().map(|span| span.text.as_str()).collect()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_row_is_wider_than_the_area_and_no_text_is_lost(text in "(\\PC|[ \n\t]|漢|👨‍👩‍👧|e\u{301}){0,80}", width in 0u16..200) {
        for wrap in [Wrap::Words, Wrap::Anywhere, Wrap::Cut] {
            let sheet = flowed(&text, width, wrap);
            prop_assert!(widest(&sheet.rows) <= usize::from(width).max(1));
            prop_assert_eq!(sheet.text.strip_suffix('\n').unwrap_or(""), text.replace("\r\n", "\n"));
            if wrap != Wrap::Cut && width > 8 {
                prop_assert_eq!(letters(&selectable(&sheet)), letters(&text));
            }
            for row in &sheet.rows {
                for column in 0..width.min(40) {
                    let at = row.offset_at(usize::from(column)) as usize;
                    prop_assert!(sheet.text.is_char_boundary(at));
                }
            }
        }
        prop_assert!(columns(&cut_to(&text.replace(['\n', '\t'], " "), usize::from(width))) <= usize::from(width));
    }

    #[test]
    fn any_markdown_fits_any_width(
        parts in prop::collection::vec(prop::sample::select(vec![
            "# ", "- ", "  - ", "1. ", "> ", "```", "```rust\n", "| a | b |\n|---|---|\n", "| 漢字 | x |\n", "**", "*", "`",
            "[x](y)", "![", "](", "\n", "\n\n", "    ", "word ", "longword", "漢字", "👍🏽", "---\n", "<b>", "&amp;", "\\", "~~", "[ ] ",
        ]), 0..40),
        width in 0u16..200,
    ) {
        let source = parts.concat();
        let sheet = marked(&source, width);
        prop_assert!(widest(&sheet.rows) <= usize::from(width).max(1), "{:?}", source);
        if width > 20 {
            // Bars between cells are in the text that is copied, and drawn by the frame.
            prop_assert_eq!(letters(&selectable(&sheet)).replace('|', ""), letters(&sheet.text).replace('|', ""));
        }
    }

    #[test]
    fn a_session_of_any_text_is_drawn_in_any_size(text in "(\\PC|\n|\t|\r|\u{1b}|\u{202e}|```\n|- |\\| ){0,120}", width in 0u16..60, height in 0u16..30) {
        let mut log = Log::default();
        log.run("build", &text).step().says("reasoning", 0, &text, 0).says("text", 1, &text, 0);
        log.call("c", "Shell", &text, json!({"command": text.clone()}));
        log.gives("c", &text, json!([{"path": text.clone(), "text": text, "added": 1, "removed": 1}]));
        let mut talk = talk_of(&log);
        for step in 0..4 {
            let buf = draw(&mut talk, width, height, theme());
            prop_assert!(buf.content.iter().all(|cell| !cell.symbol().chars().any(is_unprintable)));
            act(&mut talk, &plain(if step % 2 == 0 { KeyCode::PageUp } else { KeyCode::F(5) }));
        }
    }
}
