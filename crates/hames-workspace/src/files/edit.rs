//! The edit engine: text in, replacements, text out. Pure.
//!
//! The search text is literal and exact but for line ends: a line end in it finds any line end of the file, and the
//! text that takes its place ends its lines the way the file does there. Nothing else is ever guessed: no pattern
//! syntax, no entities, no tolerance for blanks. Bytes that no replacement covers do not change, and even within one
//! only what differs between old and new text is written.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::nearest;
use super::text::LineEnds;

/// An edited file may not grow past this.
const MAX_RESULT: usize = 64 * 1024 * 1024;

/// Lines named in a refusal.
const MAX_LINES_NAMED: usize = 8;

/// One replacement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Every occurrence instead of the only one.
    pub(crate) all: bool,
}

/// Why a replacement was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("old_string is empty; use Write for the content of a new or empty file")]
    EmptyOld,
    #[error("no change: old_string and new_string are the same")]
    NoChange,
    #[error("old_string was not found in {path}{nearest}")]
    NotFound { path: String, nearest: String },
    #[error(
        "old_string occurs {count} times in {path} (lines {lines}); add surrounding lines to make it unique, or set replace_all"
    )]
    Ambiguous { path: String, count: usize, lines: String },
    #[error("{path} would grow past {MAX_RESULT} bytes")]
    TooLarge { path: String },
}

/// Applies replacements one after the other, each to the result of the one before. All or nothing: the error carries
/// the index of the one that could not be made.
pub(crate) fn apply(path: &str, body: &[u8], edits: &[Replacement<'_>]) -> Result<Vec<u8>, (usize, Refusal)> {
    let mut body = Cow::Borrowed(body);
    for (index, edit) in edits.iter().enumerate() {
        body = Cow::Owned(replace(path, &body, edit).map_err(|refusal| (index, refusal))?);
    }
    Ok(body.into_owned())
}

fn replace(path: &str, body: &[u8], edit: &Replacement<'_>) -> Result<Vec<u8>, Refusal> {
    if edit.old.is_empty() {
        return Err(Refusal::EmptyOld);
    }
    if edit.old == edit.new {
        return Err(Refusal::NoChange);
    }
    let view = View::of(body);
    let old = view.written(edit.old);
    let finder = Finder::new(old.as_ref());
    let matches = matches(path, &view, &finder, edit)?;
    let plan = Plan::new(&view, &old, edit);
    let growth = plan.longest.saturating_mul(matches.len());
    if body.len().saturating_add(growth) > MAX_RESULT {
        return Err(Refusal::TooLarge { path: path.to_owned() });
    }
    let mut result = Vec::with_capacity(body.len() + growth);
    let mut copied = 0;
    let mut ends = NextEnd::default();
    for at in matches {
        let from = view.original(at + plan.same_front);
        let to = view.original(at + old.len() - plan.same_back);
        result.extend_from_slice(&body[copied..from]);
        plan.write(&view, at, &mut ends, &mut result);
        copied = to;
    }
    result.extend_from_slice(&body[copied..]);
    Ok(result)
}

/// Where the search text stands, in the view. One place, unless all were asked for.
fn matches(path: &str, view: &View<'_>, finder: &Finder<'_>, edit: &Replacement<'_>) -> Result<Vec<usize>, Refusal> {
    let text = view.text.as_ref();
    let Some(first) = finder.find(text) else {
        let nearest = nearest::describe(text, edit.old);
        return Err(Refusal::NotFound { path: path.to_owned(), nearest });
    };
    if edit.all {
        return Ok(finder.find_iter(text).collect());
    }
    // Overlapping occurrences are two places as well.
    let Some(second) = finder.find(&text[first + 1..]).map(|at| first + 1 + at) else { return Ok(vec![first]) };
    let mut places: Vec<usize> = finder.find_iter(text).collect();
    if places.len() == 1 {
        places.push(second);
    }
    let mut lines: Vec<String> = line_numbers(text, &places[..places.len().min(MAX_LINES_NAMED)]);
    if places.len() > MAX_LINES_NAMED {
        lines.push("…".into());
    }
    Err(Refusal::Ambiguous { path: path.to_owned(), count: places.len(), lines: lines.join(", ") })
}

fn line_numbers(text: &[u8], places: &[usize]) -> Vec<String> {
    let mut seen = 0;
    let mut line = 1;
    places
        .iter()
        .map(|&at| {
            line += memchr::memchr_iter(b'\n', &text[seen..at]).count();
            seen = at;
            line.to_string()
        })
        .collect()
}

/// How one line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lf,
    CrLf,
    Cr,
}

impl End {
    fn bytes(self) -> &'static [u8] {
        match self {
            End::Lf => b"\n",
            End::CrLf => b"\r\n",
            End::Cr => b"\r",
        }
    }
}

/// A file in which every line ends in LF, and the way back to its own bytes.
struct View<'a> {
    text: Cow<'a, [u8]>,
    /// Where in `text` the LFs are that were CRLF, ascending.
    crlf: Vec<usize>,
    /// Every line of the file ends in a bare CR.
    only_cr: bool,
}

impl<'a> View<'a> {
    fn of(body: &'a [u8]) -> Self {
        let ends = LineEnds::of(body);
        if ends.only_cr() {
            let text = body.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect();
            return View { text: Cow::Owned(text), crlf: Vec::new(), only_cr: true };
        }
        if ends.crlf == 0 {
            return View { text: Cow::Borrowed(body), crlf: Vec::new(), only_cr: false };
        }
        let mut text = Vec::with_capacity(body.len() - ends.crlf);
        let mut crlf = Vec::with_capacity(ends.crlf);
        let mut copied = 0;
        for at in memchr::memmem::find_iter(body, b"\r\n") {
            text.extend_from_slice(&body[copied..at]);
            crlf.push(text.len());
            copied = at + 1;
        }
        text.extend_from_slice(&body[copied..]);
        View { text: Cow::Owned(text), crlf, only_cr: false }
    }

    /// A model's text with its line ends as the view has them.
    fn written<'t>(&self, text: &'t str) -> Cow<'t, [u8]> {
        if !text.contains('\r') {
            return Cow::Borrowed(text.as_bytes());
        }
        let text = text.replace("\r\n", "\n");
        Cow::Owned(if self.only_cr { text.replace('\r', "\n") } else { text }.into_bytes())
    }

    /// Where a place of the view is in the file.
    fn original(&self, at: usize) -> usize {
        at + self.crlf.partition_point(|&end| end < at)
    }

    /// How the line end at a place of the view is written in the file.
    fn end_at(&self, at: usize) -> End {
        match self.crlf.binary_search(&at) {
            Ok(_) => End::CrLf,
            Err(_) if self.only_cr => End::Cr,
            Err(_) => End::Lf,
        }
    }
}

/// What takes the place of a match: what differs between old and new text, in pieces between line ends.
struct Plan<'a> {
    /// Bytes of a match, at its front and at its back, that stay.
    same_front: usize,
    same_back: usize,
    /// What comes between.
    middle: Cow<'a, [u8]>,
    /// Its line ends are the file's; otherwise it is written as given.
    fit_ends: bool,
    /// Line ends of the old text that are replaced, counted from the beginning of a match.
    old_ends: Vec<usize>,
    /// The line end of the old text that is nearest to the middle and stays, where there is one.
    near_end: Option<usize>,
    old_len: usize,
    /// The most bytes one replacement can have.
    longest: usize,
}

impl<'a> Plan<'a> {
    fn new(view: &View<'_>, old: &[u8], edit: &Replacement<'a>) -> Self {
        let new = view.written(edit.new);
        let as_given = Plan {
            same_front: 0,
            same_back: 0,
            middle: Cow::Borrowed(edit.new.as_bytes()),
            fit_ends: false,
            old_ends: Vec::new(),
            near_end: None,
            old_len: old.len(),
            longest: edit.new.len(),
        };
        // A change of nothing but line ends means them, and a file without any has no way of its own.
        if *new == *old || memchr::memchr(b'\n', &view.text).is_none() {
            return as_given;
        }
        // CRs in the new text alone are meant where neither the file nor the old text has any.
        if view.crlf.is_empty() && !view.only_cr && !edit.old.contains("\r\n") && edit.new.contains("\r\n") {
            return as_given;
        }
        let same_front = old.iter().zip(new.iter()).take_while(|(a, b)| a == b).count();
        let (old_rest, new_rest) = (&old[same_front..], &new[same_front..]);
        let same_back = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
        let replaced = &old[same_front..old.len() - same_back];
        let old_ends = memchr::memchr_iter(b'\n', replaced).map(|at| same_front + at).collect();
        let near_end = memchr::memrchr(b'\n', &old[..same_front])
            .or_else(|| memchr::memchr(b'\n', &old[old.len() - same_back..]).map(|at| old.len() - same_back + at));
        let middle = new_rest[..new_rest.len() - same_back].to_vec();
        let longest = middle.len() + memchr::memchr_iter(b'\n', &middle).count();
        Plan {
            same_front,
            same_back,
            middle: middle.into(),
            fit_ends: true,
            old_ends,
            near_end,
            old_len: old.len(),
            longest,
        }
    }

    /// Writes the replacement for the match at `at`. Each line end is written like the one it replaces; those that are
    /// more, like the last of these, else like the nearest in the match, else like the next in the file.
    fn write(&self, view: &View<'_>, at: usize, next: &mut NextEnd, result: &mut Vec<u8>) {
        let mut ends = memchr::memchr_iter(b'\n', &self.middle).peekable();
        if !self.fit_ends || ends.peek().is_none() {
            result.extend_from_slice(&self.middle);
            return;
        }
        let mut old_ends = self.old_ends.iter().map(|end| view.end_at(at + end));
        let mut latest = None;
        let mut copied = 0;
        for end in ends {
            result.extend_from_slice(&self.middle[copied..end]);
            latest = old_ends.next().or(latest);
            let near = || self.near_end.map(|end| view.end_at(at + end));
            let end_like = latest.or_else(near).unwrap_or_else(|| next.after(view, at + self.old_len));
            result.extend_from_slice(end_like.bytes());
            copied = end + 1;
        }
        result.extend_from_slice(&self.middle[copied..]);
    }
}

/// Finds the line end next to a place; remembers it, so that many matches in one long line cost one search.
#[derive(Default)]
struct NextEnd {
    found: Option<(usize, End)>,
}

impl NextEnd {
    /// How the line that holds the place ends, or, for the last line, the one before it.
    fn after(&mut self, view: &View<'_>, place: usize) -> End {
        if let Some((at, end)) = self.found
            && at >= place
        {
            return end;
        }
        let (at, end) = match memchr::memchr(b'\n', &view.text[place..]) {
            Some(at) => (place + at, view.end_at(place + at)),
            // Good for every later place as well: there is no line end behind it either.
            None => (usize::MAX, memchr::memrchr(b'\n', &view.text).map_or(End::Lf, |at| view.end_at(at))),
        };
        self.found = Some((at, end));
        end
    }
}
