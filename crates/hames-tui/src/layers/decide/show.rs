//! What is decided about, in lines: exactly what will run, with nothing hidden in it.

use hames_protocol::{ApprovalAsked, Grant, QuestionAsked, is_unprintable};
use serde_json::Value;

use crate::layers::parts::Look;
use crate::talk::diff::hunks;

/// A line, in pieces of a look.
pub(super) type Line = Vec<(String, Look)>;

/// Everything of a call that a person has to know before it runs.
pub(super) fn approval(asked: &ApprovalAsked) -> Vec<Line> {
    let mut lines = vec![vec![(shown(&asked.reason), Look::Warn)]];
    let members = members(&asked.input);
    let hides = members.iter().any(|(_, text)| text.chars().any(hides)) || asked.label.target.chars().any(hides);
    for (name, text) in &members {
        let mut rest = text.split('\n');
        let first = shown(rest.next().unwrap_or_default());
        lines.push(match name {
            Some(name) => vec![(format!("{}: ", shown(name)), Look::Dim), (first, Look::Text)],
            None => vec![(first, Look::Text)],
        });
        lines.extend(rest.map(|line| vec![(format!("  {}", shown(line)), Look::Text)]));
    }
    if hides {
        let says = "It holds characters that would not show, or would move others: they are written out.";
        lines.push(vec![(says.into(), Look::Warn)]);
    }
    if let Some(diff) = &asked.diff {
        lines.push(Line::new());
        lines.push(vec![
            (shown(&diff.path), Look::Name),
            (format!(" +{}", diff.added), Look::Good),
            (format!(" −{}", diff.removed), Look::Bad),
        ]);
        lines.extend(hunks(&diff.text).lines().map(|line| {
            let look = match line.as_bytes().first() {
                Some(b'+') => Look::Good,
                Some(b'-') => Look::Bad,
                Some(b'@') => Look::Dim,
                _ => Look::Text,
            };
            vec![(shown(line), look)]
        }));
    }
    let grants = asked.grants.iter().map(|grant| format!("could be allowed from now on: {}", shown(&words(grant))));
    lines.extend(grants.map(|text| vec![(text, Look::Dim)]));
    lines
}

/// A question and what can be answered.
pub(super) fn question(asked: &QuestionAsked, chosen: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = asked.text.lines().map(|line| vec![(shown(line), Look::Text)]).collect();
    for (at, choice) in asked.choices.iter().enumerate() {
        let (mark, look) = if at == chosen { ("› ", Look::Name) } else { ("  ", Look::Text) };
        lines.push(vec![(format!("{mark}{}  {}", at + 1, shown(choice)), look)]);
    }
    lines
}

/// The members of an input, each as text.
fn members(input: &Value) -> Vec<(Option<&str>, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match input {
        Value::Object(members) => members.iter().map(|(name, value)| (Some(name.as_str()), text(value))).collect(),
        other => vec![(None, text(other))],
    }
}

/// What a grant would allow.
fn words(grant: &Grant) -> String {
    match grant {
        Grant::Path { path, write: true } => format!("reading and changing {path}"),
        Grant::Path { path, write: false } => format!("reading {path}"),
        Grant::Command { words } => format!("exactly the command {}", words.join(" ")),
        Grant::Host { host } => format!("the host {host}"),
        Grant::Tool { name } => format!("every {name}"),
    }
}

/// Text in which nothing hides: what does not show, and what turns the direction, is written out.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\u{1b}' => out.push_str("\\e"),
            c if hides(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

fn hides(c: char) -> bool {
    let is_format = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}');
    c != '\n' && c != '\t' && (c.is_control() || is_unprintable(c) || is_format)
}
