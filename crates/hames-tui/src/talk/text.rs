//! Text as rows: cleaning, widths, wrapping, and the way back from a cell to the text.
//!
//! A [`Sheet`] holds what it shows twice: as rows of styled spans, and as the logical text they stand for, in which a line
//! that was wrapped is still one line. Decoration (bars, markers, indents) is in the rows alone, so whatever is copied is
//! free of it.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use hames_protocol::is_unprintable;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns of a tab.
const TAB: &str = "    ";
/// Bytes of one grapheme; more than that is marks heaped on marks and shown as one replacement character.
const MAX_GRAPHEME: usize = 64;

/// Text of which nothing can rule the terminal or hide other text: controls come out as visible escapes, CR LF as LF.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t')) || !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            c if is_harmful(c) => escape(c, &mut out),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The same for text that has to stay on one line.
pub(crate) fn clean_line(text: &str) -> String {
    let text = clean(text);
    if text.contains(['\n', '\t']) { text.replace(['\n', '\t'], " ") } else { text.into_owned() }
}

fn is_harmful(c: char) -> bool {
    is_unprintable(c) && c != '\n' && c != '\t'
}

fn escape(c: char, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match c {
        '\r' => out.write_str("\\r"),
        c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
}

/// The largest char boundary up to `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Columns of a text on one row.
pub(crate) fn columns(text: &str) -> usize {
    text.graphemes(true).map(|g| if g == "\t" { TAB.len() } else { shown(g).width() }).sum()
}

fn shown(grapheme: &str) -> &str {
    if grapheme.len() > MAX_GRAPHEME { "\u{fffd}" } else { grapheme }
}

/// Something on a row in one style.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    /// What is shown.
    pub(crate) text: String,
    pub(crate) style: Style,
    /// Where it stands in the logical text, and how many bytes of it it is; none for decoration.
    pub(super) at: u32,
    pub(super) len: u32,
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) spans: Vec<Span>,
    /// The bytes of the logical text that this row is.
    pub(crate) range: Range<u32>,
}

impl Row {
    /// The logical place at a column, the nearest one where the column is decoration.
    pub(super) fn offset_at(&self, column: usize) -> u32 {
        let mut x = 0;
        for span in &self.spans {
            let width = span.text.width();
            if span.len > 0 && column < x + width {
                if column < x || span.len as usize != span.text.len() {
                    return span.at;
                }
                for (at, g) in span.text.grapheme_indices(true) {
                    x += g.width();
                    if column < x {
                        return span.at + at as u32;
                    }
                }
            }
            x += width;
        }
        self.range.end
    }

    /// The columns that show a range of the logical text.
    pub(super) fn columns_of(&self, range: &Range<u32>) -> Vec<Range<u16>> {
        let mut found: Vec<Range<u16>> = Vec::new();
        let mut x = 0u16;
        for span in &self.spans {
            let is_whole = span.len as usize != span.text.len();
            for (at, g) in span.text.grapheme_indices(true) {
                let width = g.width() as u16;
                let at = if is_whole { span.at } else { span.at + at as u32 };
                if span.len > 0 && range.contains(&at) {
                    match found.last_mut() {
                        Some(last) if last.end == x => last.end = x + width,
                        _ => found.push(x..x + width),
                    }
                }
                x += width;
            }
        }
        found
    }

    /// What the row shows.
    #[cfg(test)]
    pub(super) fn shown(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

/// Styled text that is to be laid out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) style: Style,
}

impl<'a> Run<'a> {
    pub(crate) fn new(text: impl Into<Cow<'a, str>>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

/// What stands before a row and is no text: a bar, a marker, an indent.
pub(crate) type Deco = (String, Style);

/// How a line that is too long goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrap {
    /// At words where there are any; the spaces at a break are not shown.
    Words,
    /// Anywhere; every space is shown.
    Anywhere,
    /// Not at all: it ends in an ellipsis.
    Cut,
}

/// Laid out text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sheet {
    /// The logical text; each line ends in LF.
    pub(crate) text: String,
    pub(crate) rows: Vec<Row>,
    pub(super) width: usize,
}

struct Glyph {
    at: u32,
    len: u32,
    width: usize,
    style: Style,
    is_space: bool,
}

impl Sheet {
    pub(crate) fn new(width: u16) -> Self {
        Self { width: usize::from(width), ..Self::default() }
    }

    /// Lays out text of any number of lines: `first` stands before the first row, `rest` before all others.
    pub(crate) fn flow(&mut self, first: &[Deco], rest: &[Deco], runs: &[Run<'_>], wrap: Wrap) {
        let mut before = first;
        let mut glyphs = Vec::new();
        for run in runs {
            for g in run.text.graphemes(true) {
                if g == "\n" || g == "\r\n" {
                    self.line(before, rest, &glyphs, wrap);
                    glyphs.clear();
                    before = rest;
                    continue;
                }
                let at = self.text.len() as u32;
                self.text.push_str(g);
                let width = if g == "\t" { TAB.len() } else { shown(g).width() };
                let is_space = g == " " || g == "\t";
                glyphs.push(Glyph { at, len: g.len() as u32, width, style: run.style, is_space });
            }
        }
        self.line(before, rest, &glyphs, wrap);
    }

    /// A row without text.
    pub(super) fn blank(&mut self, decos: &[Deco]) {
        self.flow(decos, decos, &[], Wrap::Cut);
    }

    /// A row of decoration alone.
    pub(super) fn deco(&mut self, decos: &[Deco]) {
        let at = self.text.len() as u32;
        let mut row = Row { spans: Vec::new(), range: at..at };
        let mut left = self.width;
        for (text, style) in decos {
            let text = cut_to(text, left);
            left -= text.width();
            row.spans.push(Span { text, style: *style, at: 0, len: 0 });
        }
        self.rows.push(row);
    }

    fn line(&mut self, first: &[Deco], rest: &[Deco], glyphs: &[Glyph], wrap: Wrap) {
        let mut from = 0;
        let mut before = self.fitting(first);
        loop {
            let room = self.width.saturating_sub(deco_width(before)).max(1);
            let (mut end, mut next) = fill(glyphs, from, room, wrap);
            let is_cut = wrap == Wrap::Cut && end < glyphs.len();
            if is_cut {
                (end, next) = (fill(glyphs, from, room - 1, wrap).0, glyphs.len());
            }
            let mut row = self.row(before, &glyphs[from..end], room);
            if is_cut {
                row.spans.push(Span { text: "…".into(), style: Style::new(), at: 0, len: 0 });
                row.range.end = self.text.len() as u32;
            }
            self.rows.push(row);
            from = next;
            if from >= glyphs.len() {
                break;
            }
            before = self.fitting(rest);
        }
        self.text.push('\n');
    }

    fn row(&self, decos: &[Deco], glyphs: &[Glyph], room: usize) -> Row {
        let start = glyphs.first().map_or(self.text.len() as u32, |g| g.at);
        let end = glyphs.last().map_or(start, |g| g.at + g.len);
        let mut spans: Vec<Span> =
            decos.iter().map(|(text, style)| Span { text: text.clone(), style: *style, at: 0, len: 0 }).collect();
        for glyph in glyphs {
            let logical = &self.text[glyph.at as usize..(glyph.at + glyph.len) as usize];
            let text = match logical {
                "\t" => &TAB[..TAB.len().min(room)],
                // A wide character in a single column.
                _ if glyph.width > room => "·",
                _ => shown(logical),
            };
            let is_same = |last: &&mut Span| {
                last.style == glyph.style
                    && last.at + last.len == glyph.at
                    && last.len as usize == last.text.len()
                    && last.len > 0
                    && text.len() == logical.len()
            };
            match spans.last_mut().filter(is_same) {
                Some(last) => {
                    last.text.push_str(text);
                    last.len += glyph.len;
                }
                None => {
                    spans.push(Span { text: text.to_owned(), style: glyph.style, at: glyph.at, len: glyph.len });
                }
            }
        }
        Row { spans, range: start..end }
    }

    /// Decoration never takes more than half of a row.
    fn fitting<'d>(&self, decos: &'d [Deco]) -> &'d [Deco] {
        let mut sum = 0;
        let fits = decos.iter().take_while(|(text, _)| {
            sum += text.width();
            sum <= self.width / 2
        });
        &decos[..fits.count()]
    }
}

fn deco_width(decos: &[Deco]) -> usize {
    decos.iter().map(|(text, _)| text.width()).sum()
}

/// Where the row that begins at `from` ends, and where the next one begins. A row holds at least one glyph.
fn fill(glyphs: &[Glyph], from: usize, room: usize, wrap: Wrap) -> (usize, usize) {
    let (mut x, mut end) = (0, from);
    let mut words: Option<usize> = None;
    while let Some(glyph) = glyphs.get(end) {
        if x + glyph.width > room && (end > from || wrap == Wrap::Cut) {
            break;
        }
        // One may break behind a space, and around characters that stand for words.
        if end > from && (glyphs[end - 1].is_space || glyph.width > 1 || glyphs[end - 1].width > 1) {
            words = Some(end);
        }
        x += glyph.width;
        end += 1;
    }
    if end >= glyphs.len() || wrap != Wrap::Words {
        return (end, end);
    }
    let skip = |mut at: usize| {
        while glyphs.get(at).is_some_and(|g| g.is_space) {
            at += 1;
        }
        at
    };
    if glyphs[end].is_space || glyphs[end].width > 1 || glyphs[end - 1].is_space {
        return (end, skip(end));
    }
    let end = words.unwrap_or(end);
    (end, skip(end))
}

/// As much of a text as fits into columns, with an ellipsis where something is missing.
pub(crate) fn cut_to(text: &str, room: usize) -> String {
    // Most is short; what is long is not measured to its end.
    if text.len() <= room || (text.len() < 4 * room + 64 && columns(text) <= room) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = room.saturating_sub(1);
    for g in text.graphemes(true) {
        let g = shown(g);
        let Some(rest) = left.checked_sub(g.width()) else { break };
        left = rest;
        out.push_str(g);
    }
    if room > 0 {
        out.push('…');
    }
    out
}
