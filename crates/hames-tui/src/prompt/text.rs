//! Characters as a person sees them: where they begin and end, how many cells they take, and which of them may be in a draft.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands in a draft's text for a paste that is shown as one unit. A control character, because those never come in from
/// outside and are always a character of their own, whatever stands beside them.
pub(super) const CHIP: char = '\u{1}';

/// Cells between two tab stops.
const TAB: usize = 4;

/// The character that begins at `at`; empty at the end.
pub(super) fn at(text: &str, at: usize) -> &str {
    text[at..].graphemes(true).next().unwrap_or_default()
}

/// Where the line that holds `at` begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Where the line that holds `at` ends, before its line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length)
}

/// The boundary of characters at or before `at`, which may be any number.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    // A line end never joins with what stands beside it, so only its own line says where characters begin.
    let start = line_start(text, at);
    let line = &text[start..line_end(text, at)];
    let inside = at - start;
    if inside == line.len() {
        return at;
    }
    start + line.grapheme_indices(true).map(|(begin, _)| begin).take_while(|begin| *begin <= inside).last().unwrap_or(0)
}

/// The boundary of characters at or behind `at`.
pub(crate) fn ceil(text: &str, at: usize) -> usize {
    let down = floor(text, at);
    if down >= at.min(text.len()) { down } else { down + self::at(text, down).len() }
}

/// The boundary before `from`.
pub(crate) fn before(text: &str, from: usize) -> usize {
    let start = line_start(text, from);
    match text[start..from].graphemes(true).next_back() {
        Some(last) => from - last.len(),
        None => from.saturating_sub(1),
    }
}

/// The boundary behind `from`.
pub(crate) fn behind(text: &str, from: usize) -> usize {
    from + at(text, from).len()
}

/// What a character is for moves by words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Other,
    Chip,
}

fn kind(cluster: &str) -> Kind {
    match cluster.chars().next() {
        Some(CHIP) => Kind::Chip,
        Some(c) if c.is_whitespace() => Kind::Space,
        Some(c) if c.is_alphanumeric() || c == '_' => Kind::Word,
        _ => Kind::Other,
    }
}

/// Where the word before `from` begins: over spaces, then over what is of one kind.
pub(crate) fn word_before(text: &str, from: usize) -> usize {
    let mut at = from;
    let mut over = Kind::Space;
    for (begin, cluster) in text[..from].grapheme_indices(true).rev() {
        match kind(cluster) {
            kind if kind == over && kind != Kind::Chip => at = begin,
            kind if over == Kind::Space => (over, at) = (kind, begin),
            _ => break,
        }
    }
    at
}

/// Where the word behind `from` ends.
pub(crate) fn word_behind(text: &str, from: usize) -> usize {
    let mut at = from;
    let mut over = Kind::Space;
    for cluster in text[from..].graphemes(true) {
        match kind(cluster) {
            kind if kind == over && kind != Kind::Chip => {}
            kind if over == Kind::Space => over = kind,
            _ => break,
        }
        at += cluster.len();
    }
    at
}

/// How a character is shown in a row whose next free column is `column`, and the cells it takes: always at least one, so
/// that nothing in a message is out of sight and the cursor has a place before it.
pub(super) fn shown(cluster: &str, column: usize) -> (Cow<'_, str>, usize) {
    if cluster == "\t" {
        let cells = TAB - column % TAB;
        return (Cow::Borrowed(&"    "[..cells]), cells);
    }
    match cluster.width() {
        _ if cluster.chars().any(char::is_control) => (Cow::Borrowed("\u{b7}"), 1),
        0 => (Cow::Borrowed("\u{25cc}"), 1),
        cells => (Cow::Borrowed(cluster), cells),
    }
}

/// Cells that a text takes in one row.
pub(crate) fn cells(text: &str) -> usize {
    text.graphemes(true).map(|cluster| shown(cluster, 0).1).sum()
}

/// The beginning of a text that takes `room` cells at most; what is cut off is told by an ellipsis.
pub(crate) fn fit(text: &str, room: usize) -> Cow<'_, str> {
    let (mut used, mut end, mut is_over) = (0, 0, false);
    for (begin, cluster) in text.grapheme_indices(true) {
        used += shown(cluster, 0).1;
        is_over = used > room;
        if is_over {
            break;
        }
        if used < room {
            end = begin + cluster.len();
        }
    }
    match (is_over, room) {
        (false, _) => Cow::Borrowed(text),
        (true, 0) => Cow::Borrowed(""),
        (true, _) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// Text as a draft may hold it: line ends are `\n`, tabs stay, control characters and the sequences that begin with an
/// escape go. It reads every byte once, so a paste of any size costs what it is long.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                clean.push('\n');
            }
            '\n' | '\t' => clean.push(c),
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        // A string for the terminal (a title, a link) ends with BEL or with ESC and a backslash. Its content may be long;
        // what is not ended within a line is text, and only its beginning is taken away.
        Some(']' | 'P' | '_' | '^') => {
            chars.next();
            let mut ahead = chars.clone().take(512);
            while let Some(c) = ahead.next() {
                match c {
                    '\u{7}' => break,
                    '\u{1b}' if ahead.next() == Some('\\') => break,
                    '\u{1b}' | '\n' | '\r' => return,
                    _ => {}
                }
            }
            while let Some(c) = chars.next() {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        Some('N' | 'O') => {
            chars.next();
            chars.next_if(char::is_ascii_graphic);
        }
        _ => {}
    }
}

/// Parameters, then one letter or sign that ends it. What is no such sequence keeps all that is text.
fn skip_csi(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}
