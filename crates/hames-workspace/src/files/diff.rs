//! Unified diffs of text for people and models.
//!
//! Line ends are not shown; a line whose end alone changed is shown as removed and added. Bounded in time and size.

use std::time::{Duration, Instant};

use hames_protocol::Diff;
use similar::{Algorithm, DiffOp};

/// After this the diff is no longer the smallest, only correct.
const DEADLINE: Duration = Duration::from_millis(250);

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Bytes of a diff, or of all diffs of one call, that are kept.
pub(crate) const MAX_DIFF: usize = 256 * 1024;

const CUT: &str = "… the rest of the diff is not shown\n";

/// The diff between two bodies; `None` is no file.
pub(crate) fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Diff {
    let old_lines = lines(old.unwrap_or_default());
    let new_lines = lines(new.unwrap_or_default());
    let deadline = Instant::now() + DEADLINE;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, Some(deadline));
    let (mut added, mut removed) = (0, 0);
    for op in &ops {
        if !matches!(op, DiffOp::Equal { .. }) {
            added += op.new_range().len();
            removed += op.old_range().len();
        }
    }
    let name = |side: &str, body: Option<&[u8]>| match body {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".into(),
    };
    let mut text = format!("--- {}\n+++ {}\n", name("a", old), name("b", new));
    for hunk in similar::group_diff_ops(ops, CONTEXT) {
        if text.len() > MAX_DIFF {
            break;
        }
        write_hunk(&mut text, &hunk, &old_lines, &new_lines);
    }
    let text = cut(text, MAX_DIFF);
    let count = |lines: usize| u32::try_from(lines).unwrap_or(u32::MAX);
    Diff { path: path.to_owned(), text, added: count(added), removed: count(removed) }
}

/// A diff's hunks, without the names of the files, in at most `limit` bytes.
pub(crate) fn hunks(diff: &Diff, limit: usize) -> String {
    let hunks = diff.text.find("\n@@ ").map_or("", |at| &diff.text[at + 1..]);
    cut(hunks.to_owned(), limit)
}

/// The same diff with at most about `limit` bytes of text.
pub(crate) fn shortened(diff: Diff, limit: usize) -> Diff {
    Diff { text: cut(diff.text, limit), ..diff }
}

fn write_hunk(text: &mut String, hunk: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let range = |start: usize, end: usize| match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let old_range = range(first.old_range().start, last.old_range().end);
    let new_range = range(first.new_range().start, last.new_range().end);
    text.push_str(&format!("@@ -{old_range} +{new_range} @@\n"));
    for op in hunk {
        if let DiffOp::Equal { .. } = op {
            write_lines(text, ' ', &old[op.old_range()]);
        } else {
            write_lines(text, '-', &old[op.old_range()]);
            write_lines(text, '+', &new[op.new_range()]);
        }
    }
}

fn write_lines(text: &mut String, sign: char, lines: &[&[u8]]) {
    for line in lines {
        if text.len() > MAX_DIFF {
            return;
        }
        let (shown, ended) = match line {
            [rest @ .., b'\r', b'\n'] => (rest, true),
            [rest @ .., b'\n' | b'\r'] => (rest, true),
            rest => (*rest, false),
        };
        text.push(sign);
        text.push_str(&String::from_utf8_lossy(&shown[..shown.len().min(MAX_DIFF)]));
        text.push('\n');
        if !ended {
            text.push_str("\\ No newline at end of file\n");
        }
    }
}

/// Lines with their ends.
fn lines(body: &[u8]) -> Vec<&[u8]> {
    let end = if memchr::memchr(b'\n', body).is_some() { b'\n' } else { b'\r' };
    body.split_inclusive(|byte| *byte == end).collect()
}

/// Cuts a text to whole lines, or within the first one, and says so.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let mut at = limit.saturating_sub(CUT.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let at = text[..at].rfind('\n').map_or(at, |end| end + 1);
    text.truncate(at);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(CUT);
    text
}
