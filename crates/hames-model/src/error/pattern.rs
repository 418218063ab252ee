//! Finds numbers in words: `maximum context length is {limit} tokens…requested {asked} tokens`.
//!
//! A pattern is literal text (lower case), numbers with a role in braces, and `…` for up to [`GAP_BYTES`] of anything on
//! the same line. It is far less than a regular expression, and the time it takes is bounded whatever the text.

/// What `…` may stand for at most: providers put a sentence between two numbers, not two.
const GAP_BYTES: usize = 160;

/// Beginnings that are tried: a message that repeats the same words more often says nothing new.
const MAX_STARTS: usize = 8;

/// The numbers of one match; those in the same role are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// `{limit}`, or one less than `{above}`.
    pub(crate) limit: Option<u64>,
    /// `{asked}`, and everything else that is part of it.
    pub(crate) asked: Option<u64>,
    /// `{input}`: a part of what was asked for.
    pub(crate) input: Option<u64>,
    /// `{excess}`: what was asked for beyond the limit.
    pub(crate) excess: Option<u64>,
}

/// The first match of a pattern in a text of lower case.
pub(crate) fn find(pattern: &str, text: &str) -> Option<Numbers> {
    let begins_with_number = pattern.starts_with('{');
    let first = &pattern[..pattern.find(['{', '…']).unwrap_or(pattern.len())];
    let begins_number = |at: &usize| {
        text[*at..].starts_with(is_digit) && !text[..*at].ends_with(|c| is_digit(c) || c == ',' || c == '.')
    };
    let starts: Vec<usize> = if begins_with_number {
        text.char_indices().map(|(at, _)| at).filter(begins_number).take(MAX_STARTS).collect()
    } else {
        text.match_indices(first).map(|(at, _)| at).take(MAX_STARTS).collect()
    };
    starts.into_iter().find_map(|at| matched(pattern, &text[at..], Numbers::default()))
}

fn matched(pattern: &str, text: &str, mut numbers: Numbers) -> Option<Numbers> {
    if pattern.is_empty() {
        return Some(numbers);
    }
    if let Some(rest) = pattern.strip_prefix('…') {
        let line = text.find('\n').unwrap_or(text.len());
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        return ends.take_while(|at| *at <= line.min(GAP_BYTES)).find_map(|at| matched(rest, &text[at..], numbers));
    }
    if let Some(rest) = pattern.strip_prefix('{') {
        let (role, rest) = rest.split_once('}')?;
        let (number, after) = number(text)?;
        let add = |slot: &mut Option<u64>| *slot = Some(slot.unwrap_or(0).saturating_add(number));
        match role {
            "limit" => numbers.limit = Some(number),
            "asked" => add(&mut numbers.asked),
            "input" => {
                add(&mut numbers.input);
                add(&mut numbers.asked);
            }
            "above" => numbers.limit = number.checked_sub(1),
            "excess" => numbers.excess = Some(number),
            _ => {}
        }
        return matched(rest, after, numbers);
    }
    let end = pattern.find(['{', '…']).unwrap_or(pattern.len());
    matched(&pattern[end..], text.strip_prefix(&pattern[..end])?, numbers)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// A whole number at the start of the text, also with commas between thousands.
fn number(text: &str) -> Option<(u64, &str)> {
    let mut end = 0;
    let mut value: u64 = 0;
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(end) {
        let groups =
            byte == b',' && end > 0 && bytes.get(end + 1..end + 4).is_some_and(|g| g.iter().all(u8::is_ascii_digit));
        match byte {
            b'0'..=b'9' => value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?,
            _ if groups => {}
            _ => break,
        }
        end += 1;
    }
    (end > 0).then(|| (value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_their_roles() {
        let found = |pattern: &str, text: &str| find(pattern, text).map(|n| (n.limit, n.asked, n.input, n.excess));
        let cases = [
            ("limit is {limit} tokens", "so the limit is 4,096 tokens.", Some((Some(4096), None, None, None))),
            ("limit is {limit}…asked {asked}", "limit is 7. you asked 9", Some((Some(7), Some(9), None, None))),
            ("{asked} > {limit}", "id 12: 30 > 20", Some((Some(20), Some(30), None, None))),
            ("{input} + {asked} > {limit}", "5 + 6 > 10", Some((Some(10), Some(11), Some(5), None))),
            ("by {excess}", "by 3 (ref 4)", Some((None, None, None, Some(3)))),
            ("[{x}, {limit}]", "[1, 8192]", Some((Some(8192), None, None, None))),
            ("limit is {limit}", "limit is high, limit is 5", Some((Some(5), None, None, None))),
            ("limit is {limit}", "limit is 99999999999999999999999", None),
            ("a {limit}…b {asked}", "a 1\nb 2", None),
            ("limit", "no such word", None),
            ("é{limit}…é{asked}", "ééé1 éé é2", Some((Some(1), Some(2), None, None))),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(found(pattern, text), expected, "{pattern} in {text}");
        }
    }

    #[test]
    fn a_gap_is_no_longer_than_a_sentence() {
        assert!(find("a {limit}…b {asked}", &format!("a 1{}b 2", " ".repeat(150))).is_some());
        assert!(find("a {limit}…b {asked}", &format!("a 1{}b 2", " ".repeat(200))).is_none());
    }
}
