//! Unified diffs as rows: signs, grounds, the code's own colours, and what of a line changed.

use std::ops::Range;

use hames_protocol::Diff;
use ratatui::style::{Modifier, Style};

use super::code::Painter;
use super::text::{Run, Sheet, Wrap, clean, clean_line};
use crate::{Depth, Theme};

/// Bytes of a line of which the changed words are shown.
const MAX_WORDS: usize = 2_000;

/// `src/a.rs +4 −2`.
pub(super) fn title<'t>(diff: &Diff, theme: Theme) -> Vec<Run<'t>> {
    vec![
        Run::new(clean_line(&diff.path), theme.name()),
        Run::new(format!(" +{}", diff.added), theme.good()),
        Run::new(format!(" −{}", diff.removed), theme.bad()),
    ]
}

/// What of a diff tells more than its title: everything from its first hunk on.
pub(crate) fn hunks(text: &str) -> &str {
    if text.starts_with("@@") {
        return text;
    }
    match text.find("\n@@") {
        Some(at) => &text[at + 1..],
        // A head alone: nothing has changed.
        None if text.starts_with("--- ") => "",
        None => text,
    }
}

/// Lays out lines of a diff.
pub(crate) fn lay(sheet: &mut Sheet, lines: &[&str], path: &str, theme: Theme, painter: &mut Painter<'_>, wrap: Wrap) {
    let lines: Vec<_> = lines.iter().map(|line| clean(line)).collect();
    let marks = words(&lines.iter().map(AsRef::as_ref).collect::<Vec<&str>>());
    let code: Vec<&str> = lines.iter().map(|line| line.get(1..).unwrap_or("")).collect();
    let lang = path.rsplit(['/', '\\']).next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, end)| end);
    // Fewer colours than that would be told apart from the signs' own.
    let lang = if theme.depth == Depth::True { lang } else { "" };
    let painted = painter.paint(lang, &format!("{}\n", code.join("\n")));
    for ((line, runs), mark) in lines.iter().zip(painted).zip(marks) {
        let (style, ground) = match line.as_bytes().first() {
            Some(b'+') => (theme.good(), theme.added_ground()),
            Some(b'-') => (theme.bad(), theme.removed_ground()),
            Some(b'@' | b'\\') => {
                sheet.flow(&[], &[], &[Run::new(line.as_ref(), theme.dim())], Wrap::Cut);
                continue;
            }
            _ => (theme.text(), Style::new()),
        };
        let sign = line.get(..1).unwrap_or(" ").to_owned();
        let mut all = vec![Run::new(sign, style.patch(ground))];
        for run in runs {
            let base = if theme.depth == Depth::True { run.style } else { style };
            all.push(Run { style: base.patch(ground), ..run });
        }
        sheet.flow(&[], &[(" ".to_owned(), ground)], &marked(all, &mark), wrap);
    }
}

/// For each line the part of it that differs from the line it replaces, in bytes behind the sign: between what two lines
/// have in common at their ends, where as many lines were added as removed.
fn words(lines: &[&str]) -> Vec<Range<usize>> {
    let mut marks = vec![0..0; lines.len()];
    let run = |from: usize, sign: char| lines[from..].iter().take_while(|line| line.starts_with(sign)).count();
    let mut at = 0;
    while at < lines.len() {
        let removed = run(at, '-');
        let added = run(at + removed, '+');
        if removed > 0 && removed == added {
            for pair in at..at + removed {
                let (old, new) = (&lines[pair][1..], &lines[pair + removed][1..]);
                if old.len().max(new.len()) <= MAX_WORDS {
                    (marks[pair], marks[pair + removed]) = differing(old, new);
                }
            }
        }
        at += (removed + added).max(1);
    }
    marks
}

fn differing(old: &str, new: &str) -> (Range<usize>, Range<usize>) {
    let same = |(a, b): &(char, char)| a == b;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut front: usize = old.chars().zip(new.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    while front > 0 && old[..front].chars().next_back().is_some_and(is_word) {
        front -= old[..front].chars().next_back().map_or(1, char::len_utf8);
    }
    let (a, b) = (&old[front..], &new[front..]);
    let mut back: usize = a.chars().rev().zip(b.chars().rev()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    while back > 0 && a[a.len() - back..].chars().next().is_some_and(is_word) {
        back -= a[a.len() - back..].chars().next().map_or(1, char::len_utf8);
    }
    // Lines that share nothing are not marked: everything would be.
    if front + back == 0 {
        return (0..0, 0..0);
    }
    (front..old.len() - back, front..new.len() - back)
}

/// The runs of a line with a stretch behind the sign made to stand out.
fn marked<'t>(runs: Vec<Run<'t>>, mark: &Range<usize>) -> Vec<Run<'t>> {
    if mark.is_empty() {
        return runs;
    }
    let mut out = Vec::new();
    let mut at = 0;
    for (ordinal, run) in runs.into_iter().enumerate() {
        if ordinal == 0 {
            out.push(run);
            continue;
        }
        let (from, to) = (at, at + run.text.len());
        at = to;
        let (a, b) = (mark.start.clamp(from, to) - from, mark.end.clamp(from, to) - from);
        let strong = run.style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        for (range, style) in [(0..a, run.style), (a..b, strong), (b..to - from, run.style)] {
            if let Some(text) = run.text.get(range).filter(|text| !text.is_empty()) {
                out.push(Run::new(text.to_owned(), style));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_diff_tells_begins_with_its_first_hunk() {
        for (diff, told) in [
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n-a\n+b\n"),
            ("@@ -1 +1 @@\n--- a\n", "@@ -1 +1 @@\n--- a\n"),
            ("--- a/x\n+++ b/x\n", ""),
            ("Binary files differ\n", "Binary files differ\n"),
            ("", ""),
        ] {
            assert_eq!(hunks(diff), told, "{diff:?}");
        }
    }

    #[test]
    fn only_what_changed_in_a_line_stands_out() {
        for (lines, expected) in [
            (vec!["-let a = 1;", "+let a = 22;"], vec!["1", "22"]),
            (vec!["-fn old_name()", "+fn new_name()"], vec!["old_name", "new_name"]),
            (vec!["-x", "+y"], vec!["", ""]),
            (vec!["-größe = ä", "+größe = öü"], vec!["ä", "öü"]),
            (vec!["-a b", "-c d", "+a c", "+c e"], vec!["b", "d", "c", "e"]),
            (vec!["-a b", "+a c", "+c e"], vec!["", "", ""]),
            (vec!["-same", "+same"], vec!["", ""]),
        ] {
            let marks = words(&lines);
            let shown: Vec<&str> = lines.iter().zip(&marks).map(|(line, mark)| &line[1..][mark.clone()]).collect();
            assert_eq!(shown, expected, "{lines:?}");
        }
    }
}
