//! What a search text that was not found may have meant. Only words for an error text: nothing is ever replaced by
//! resemblance.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Bytes of a file that are looked through: an error text may not cost seconds.
const MAX_SCAN: usize = 4 * 1024 * 1024;

/// Bytes of one line that are compared.
const MAX_LINE: usize = 400;

/// Lines of a search text that are compared.
const MAX_WANTED: usize = 200;

/// Lines shown.
const MAX_SHOWN: usize = 6;

/// Characters of a line shown.
const MAX_SHOWN_LINE: usize = 160;

/// Lines with fewer characters than this (braces, mostly) say nothing about the place.
const TELLING: usize = 3;

/// The share of common pairs of bytes from which two lines resemble each other.
const ALIKE: f64 = 0.5;

/// Describes the place of `text` that resembles `old` most. Begins with a separator.
pub(super) fn describe(text: &[u8], old: &str) -> String {
    if text.is_empty() {
        return "; the file is empty".into();
    }
    if has_line_numbers(old) {
        return "; it begins with line numbers as Read shows them, which are not in the file".into();
    }
    let text = &text[..text.len().min(MAX_SCAN)];
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let wanted: Vec<&[u8]> = old.lines().take(MAX_WANTED).map(str::as_bytes).collect();
    let Some(start) = by_equal_lines(&lines, &wanted).or_else(|| by_resemblance(&lines, &wanted)) else {
        return "; nothing in it is similar, read the file again".into();
    };
    // From the first line that differs, and the one before it.
    let pairs = wanted.iter().zip(lines.iter().skip(start));
    let same = pairs.take_while(|(wanted, line)| wanted == line).count();
    let first = start + same.saturating_sub(1).min(wanted.len().saturating_sub(1));
    let count = (start + wanted.len()).saturating_sub(first).clamp(1, MAX_SHOWN);
    let only_blanks = wanted.len() <= lines.len() - start
        && wanted.iter().zip(&lines[start..]).all(|(a, b)| squeezed(a) == squeezed(b));
    let why = if only_blanks { "; only blanks or line breaks differ from" } else { "; most similar is" };
    let mut hint = format!("{why} line {}:", first + 1);
    for (number, line) in lines.iter().enumerate().skip(first).take(count) {
        hint.push_str(&format!("\n{}\t{}", number + 1, shown(line)));
    }
    hint
}

/// Whether every line begins with a number and a tab, as in the output of Read.
fn has_line_numbers(old: &str) -> bool {
    let mut lines = old.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let line = line.trim_start();
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && line[digits..].starts_with('\t')
        })
}

/// Where most lines are the same but for blanks.
fn by_equal_lines(lines: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let mut index = HashMap::new();
    for (at, line) in wanted.iter().enumerate() {
        let line = squeezed(line);
        if line.len() >= TELLING {
            index.entry(line).or_insert(at);
        }
    }
    // By where the text would begin: how many lines say so, and the first of them.
    let mut votes: HashMap<usize, (usize, usize)> = HashMap::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(&at) = index.get(&squeezed(line)) else { continue };
        if let Some(start) = number.checked_sub(at) {
            let vote = votes.entry(start).or_insert((0, at));
            *vote = (vote.0 + 1, vote.1.min(at));
        }
    }
    votes.into_iter().max_by_key(|&(start, (votes, at))| (votes, Reverse(at), Reverse(start))).map(|(start, _)| start)
}

/// Where the line is that resembles the longest wanted one most.
fn by_resemblance(lines: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let (at, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.len())?;
    let longest = squeezed(longest).to_ascii_lowercase();
    let pairs: HashSet<&[u8]> = longest.windows(2).collect();
    if pairs.is_empty() {
        return None;
    }
    let score = |line: &[u8]| {
        let line = squeezed(line).to_ascii_lowercase();
        let common = line.windows(2).filter(|pair| pairs.contains(pair)).count();
        2.0 * common as f64 / (pairs.len() + line.len().saturating_sub(1)) as f64
    };
    let mut best = (ALIKE, None);
    for (number, line) in lines.iter().enumerate() {
        let score = score(line);
        if score > best.0 {
            best = (score, Some(number));
        }
    }
    best.1.map(|number| number.saturating_sub(at))
}

/// A line without its blanks.
fn squeezed(line: &[u8]) -> Vec<u8> {
    line.iter().take(MAX_LINE).copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(MAX_SHOWN_LINE * 4)]);
    let text = text.trim_end_matches('\r');
    match text.char_indices().nth(MAX_SHOWN_LINE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
