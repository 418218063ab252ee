//! What holds for every text, edit and page.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;

use super::edit::{Refusal, Replacement, apply};
use super::page::{Pager, Wanted};
use super::text::Text;
use super::{binary, diff, nearest};

/// 64 cases, or as many as `HAMES_PROPTEST_CASES` says.
pub(crate) fn cases() -> Config {
    let cases = std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Texts of few different pieces, so that searches hit, often more than once.
fn text(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

const LF: &[&str] = &["a", "b", "ab", "é", "\n", "\n\n", " "];
const MIXED: &[&str] = &["a", "b", "é", "\n", "\r\n", "\r\n\r\n", " "];
const STRAY_CR: &[&str] = &["a", "b", "\n", "\r\n", "\r", "\r\r\n", "é"];

/// A piece of a text, never empty unless the text is.
fn piece(text: &str, from: Index, length: usize) -> &str {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    if starts.is_empty() {
        return "";
    }
    let from = from.index(starts.len());
    let to = starts.get(from + length.max(1)).copied().unwrap_or(text.len());
    &text[starts[from]..to]
}

fn lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn edited(body: &str, old: &str, new: &str, all: bool) -> Result<String, Refusal> {
    apply("f", body.as_bytes(), &[Replacement { old, new, all }])
        .map(|bytes| String::from_utf8(bytes).expect("text in, text out"))
        .map_err(|(_, refusal)| refusal)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn without_cr_an_edit_is_a_plain_replacement(body in text(LF), from: Index, length in 1..6usize, new in text(LF)) {
        let old = piece(&body, from, length);
        if old.is_empty() || old == new {
            return Ok(());
        }
        prop_assert_eq!(edited(&body, old, &new, true).expect("it is there"), body.replace(old, &new));
        match edited(&body, old, &new, false) {
            Ok(result) => prop_assert_eq!(result, body.replacen(old, &new, 1)),
            Err(refusal) => {
                let ambiguous = matches!(refusal, Refusal::Ambiguous { .. });
                prop_assert!(ambiguous);
            }
        }
    }

    #[test]
    fn a_crlf_file_is_edited_like_an_lf_file_and_stays_crlf(
        body in text(LF), from: Index, length in 1..6usize, new in text(LF)
    ) {
        let old = piece(&body, from, length);
        if old.is_empty() || old == new || !body.contains('\n') {
            return Ok(());
        }
        let result = edited(&body.replace('\n', "\r\n"), old, &new, true).expect("it is there");
        prop_assert_eq!(result, body.replace(old, &new).replace('\n', "\r\n"));
    }

    #[test]
    fn line_ends_apart_a_mixed_file_is_edited_like_any_other(
        body in text(MIXED), from: Index, length in 1..6usize, new in text(MIXED)
    ) {
        let plain = lf(&body);
        let old = piece(&plain, from, length);
        if old.is_empty() || old == new {
            return Ok(());
        }
        let result = edited(&body, old, &new, true).expect("it is there");
        prop_assert_eq!(lf(&result), plain.replace(old, &lf(&new)));
    }

    #[test]
    fn what_is_not_matched_keeps_its_bytes(body in text(STRAY_CR), from: Index, length in 1..6usize, new in text(STRAY_CR)) {
        let old = piece(&body, from, length);
        // A CR at its edge may be half a line end, which is no match, and then the place is another.
        if old.is_empty() || old.starts_with('\r') || old.ends_with('\r') {
            return Ok(());
        }
        let at = body.find(old).expect("it is a piece of it");
        let Ok(result) = edited(&body, old, &new, false) else { return Ok(()) };
        // The match is not larger than what was searched for, but for the other half of a line end.
        let before = body[..at].trim_end_matches('\r');
        let after = body[at + old.len()..].trim_start_matches('\n');
        prop_assert!(result.starts_with(before), "{body:?} -> {result:?}");
        prop_assert!(result.ends_with(after), "{body:?} -> {result:?}");
    }

    #[test]
    fn nothing_is_edited_that_is_not_there(body in text(STRAY_CR), old in text(STRAY_CR), new in text(STRAY_CR)) {
        let mac = body.contains('\r') && !body.contains('\n');
        let (plain, wanted) = if mac { (body.replace('\r', "\n"), lf(&old).replace('\r', "\n")) } else { (lf(&body), lf(&old)) };
        if !old.is_empty() && !plain.contains(&wanted) && old != new {
            let not_found = matches!(edited(&body, &old, &new, true), Err(Refusal::NotFound { .. }));
            prop_assert!(not_found);
        }
    }

    #[test]
    fn what_can_be_edited_comes_back_byte_for_byte(mark in 0..4usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mark: &[u8] = [&b""[..], b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"][mark];
        let bytes = [mark, &bytes].concat();
        if let Ok(text) = Text::decode(&bytes)
            && text.exact
        {
            prop_assert_eq!(text.encoding.encode(&text.body).expect("it came from there"), bytes);
        }
    }

    #[test]
    fn a_page_does_not_depend_on_how_its_text_arrives(
        body in text(STRAY_CR), cuts in prop::collection::vec(any::<Index>(), 0..5),
        offset in 1..6u64, limit in 1..6u64, cap_bytes in 161..400usize
    ) {
        let body = body.as_bytes();
        let wanted = Wanted { offset, limit, cap_bytes, line_end: b'\n' };
        let mut whole = Pager::new(wanted);
        whole.feed(body);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).chain([0, body.len()]).collect();
        cuts.sort_unstable();
        let mut pieces = Pager::new(wanted);
        for cut in cuts.windows(2) {
            pieces.feed(&body[cut[0]..cut[1]]);
        }
        let page = whole.finish("f", true);
        prop_assert_eq!(&page, &pieces.finish("f", true));
        prop_assert!(page.len() <= cap_bytes);
    }

    #[test]
    fn a_diff_counts_the_lines_that_came_and_went(old in text(STRAY_CR), new in text(STRAY_CR)) {
        let diff = diff::unified("f", Some(old.as_bytes()), Some(new.as_bytes()));
        let lines = |sign| diff.text.lines().skip(2).filter(|line| line.starts_with(sign)).count();
        if !old.contains('\r') && !new.contains('\r') {
            prop_assert_eq!((lines('+'), lines('-')), (diff.added as usize, diff.removed as usize));
            let grown = new.split_inclusive('\n').count() as i64 - old.split_inclusive('\n').count() as i64;
            prop_assert_eq!(i64::from(diff.added) - i64::from(diff.removed), grown);
        }
        prop_assert_eq!(diff.added + diff.removed == 0, old == new);
    }

    #[test]
    fn no_bytes_confuse_what_only_describes(bytes in prop::collection::vec(any::<u8>(), 0..300), old in ".{0,40}") {
        binary::kind(&bytes);
        nearest::describe(&bytes, &old);
        let diff = diff::unified("f", None, Some(&bytes));
        diff::hunks(&diff, old.len());
    }
}
