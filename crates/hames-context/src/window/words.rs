//! What stands in the window in place of what left it. Short, plain, and never like something a person or a model said.

use std::fmt::Write;
use std::sync::Arc;

use hames_protocol::{BlobRef, Externalised, Item, Label, Part, ToolItem, UserItem};

use crate::estimate_tokens;

/// Calls named in a digest; the rest is counted.
const DIGEST_CALLS: usize = 10;
/// Bytes of one call's name in a digest.
const DIGEST_NAME: usize = 60;
/// Texts named in a digest that hold the whole.
pub(crate) const DIGEST_KEPT: usize = 3;
/// Archives named in an opening.
const OPENING_ARCHIVES: usize = 3;

/// Who shows what was kept: the name of the tool, where there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recaller(pub(crate) Option<Arc<str>>);

impl Recaller {
    /// `out-3; Recall shows it`
    fn place(&self, blob: &BlobRef) -> String {
        let name = blob.name.as_deref().unwrap_or(&blob.hash);
        match &self.0 {
            Some(tool) => format!("{name}; {tool} shows it"),
            None => name.to_owned(),
        }
    }

    /// A result that was masked.
    pub(crate) fn stub(&self, result: &ToolItem, label: &Label, kept: Option<&BlobRef>) -> ToolItem {
        let size = size_of(&result.text);
        let how = match kept {
            Some(blob) => format!("It is kept as {}.", self.place(blob)),
            None => "Call it again if you need it.".to_owned(),
        };
        let what = if result.error.is_some() { "Error" } else { "Output" };
        let text = format!("[{what} of {label} left out to save room ({size}). {how}]");
        ToolItem { text, blob: None, attachments: Vec::new(), ..result.clone() }
    }

    /// A message of which only beginning and end are sent.
    pub(crate) fn part(&self, message: &UserItem, how: &Externalised) -> UserItem {
        let text = text_of(message);
        let head = floor(&text, usize::try_from(how.head_bytes).unwrap_or(usize::MAX));
        let tail = ceil(&text, text.len().saturating_sub(usize::try_from(how.tail_bytes).unwrap_or(usize::MAX)));
        let mut parts = Vec::new();
        if head < tail {
            let place = match &how.blob {
                Some(blob) => format!("the whole message is kept as {}", self.place(blob)),
                None => "the message is too large for the window".to_owned(),
            };
            let gap = tail - head;
            parts.push(Part::text(format!(
                "{}\n[{gap} bytes left out here; {place}]\n{}",
                &text[..head],
                &text[tail..]
            )));
        } else if !text.is_empty() {
            parts.push(Part::text(text));
        }
        let images = message.parts.iter().filter(|part| matches!(part, Part::Image { .. }));
        if how.without_images {
            let count = images.count();
            if count > 0 {
                parts
                    .push(Part::text(format!("[{count} attached image(s) left out: the window has no room for them]")));
            }
        } else {
            parts.extend(images.cloned());
        }
        UserItem { parts, ..UserItem::default() }
    }

    /// Steps that were left out between what was said.
    pub(crate) fn digest(&self, labels: &[&Label], kept: &[&str]) -> UserItem {
        let mut counted: Vec<(String, usize)> = Vec::new();
        let mut more = 0;
        for label in labels {
            let name = clipped(&label.to_string(), DIGEST_NAME);
            match counted.iter().position(|(known, _)| *known == name) {
                Some(at) => counted[at].1 += 1,
                None if counted.len() < DIGEST_CALLS => counted.push((name, 1)),
                None => more += 1,
            }
        }
        let mut text = format!("[{} calls were made here and are left out to save room: ", labels.len());
        for (at, (name, count)) in counted.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { ", " });
            text.push_str(name);
            if *count > 1 {
                let _ = write!(text, " ×{count}");
            }
        }
        if more > 0 {
            let _ = write!(text, ", and {more} more");
        }
        text.push('.');
        if !kept.is_empty() {
            let how = self.0.as_ref().map(|tool| format!("; {tool} shows it")).unwrap_or_default();
            let _ = write!(text, " The whole is kept as {}{how}.", kept.join(", "));
        }
        text.push(']');
        said(text)
    }

    /// What stands behind a message whose work left the window: it is not asked for anew.
    pub(crate) fn under_way() -> UserItem {
        said(
            "[This was being worked on when the window began anew. What was done stands above. Go on from there.]"
                .into(),
        )
    }

    /// What a window opens with whose beginning left.
    pub(crate) fn opening(&self, document: &str, archives: &[BlobRef], pins: &[String]) -> UserItem {
        let mut text = String::from(
            "[The earlier part of this conversation is no longer shown. This is not a message of the user.]",
        );
        if !archives.is_empty() {
            let names: Vec<&str> = archives
                .iter()
                .rev()
                .take(OPENING_ARCHIVES)
                .map(|blob| blob.name.as_deref().unwrap_or(&blob.hash))
                .collect();
            let how = self.0.as_ref().map(|tool| format!("; {tool} shows it")).unwrap_or_default();
            let _ = write!(text, "\n[Its whole text is kept, the newest first: {}{how}.]", names.join(", "));
        }
        for pin in pins {
            let _ = write!(text, "\n\n[Pinned]\n{pin}");
        }
        if !document.trim().is_empty() {
            let _ = write!(text, "\n\n[State of the work]\n{}", document.trim());
        }
        said(text)
    }
}

fn said(text: String) -> UserItem {
    UserItem { parts: vec![Part::text(text)], ..UserItem::default() }
}

/// All text of a message, its note included.
pub(crate) fn text_of(message: &UserItem) -> String {
    let mut text = String::new();
    for part in &message.parts {
        if let Part::Text { text: said } = part {
            text.push_str(if text.is_empty() { "" } else { "\n\n" });
            text.push_str(said);
        }
    }
    if let Some(note) = &message.note {
        text.push_str(if text.is_empty() { "" } else { "\n\n" });
        text.push_str(note);
    }
    text
}

/// What a pinned item says, for where it no longer stands.
pub(crate) fn pinned_text(item: &Item) -> String {
    match item {
        Item::User(message) => text_of(message),
        Item::Assistant(answer) => answer.text.clone(),
        Item::Tool(result) => result.text.clone(),
    }
}

/// `12 lines, 3400 bytes`
pub(crate) fn size_of(text: &str) -> String {
    let lines = text.lines().count();
    format!("{lines} line{}, {} bytes", if lines == 1 { "" } else { "s" }, text.len())
}

/// The beginning of a text, in whole characters.
pub(crate) fn clipped(text: &str, bytes: usize) -> String {
    match text.len() > bytes {
        true => format!("{}…", &text[..floor(text, bytes)]),
        false => text.to_owned(),
    }
}

/// As much of the beginning of a text as has so many estimated tokens, with a mark where it ends early.
pub(crate) fn clip_tokens(text: &str, tokens: u64) -> String {
    if estimate_tokens(text) <= tokens {
        return text.to_owned();
    }
    let end = head_of(text, tokens.saturating_sub(1));
    // A whole line is better than a part of one, where that costs little.
    let line = text[..end].rfind('\n').filter(|at| *at * 4 > end * 3).unwrap_or(end);
    format!("{}…", &text[..line])
}

/// Beginning and end of a text that together have at most so many estimated tokens, with a mark for what is left out.
pub(crate) fn clip_middle(text: &str, tokens: u64) -> String {
    /// Estimated tokens of the mark.
    const MARK: u64 = 8;
    if estimate_tokens(text) <= tokens {
        return text.to_owned();
    }
    let room = tokens.saturating_sub(MARK);
    let head = head_of(text, room * 2 / 3);
    let tail = (text.len() - tail_of(text, room / 3)).max(head);
    format!("{}\n[{} bytes left out here]\n{}", &text[..head], tail - head, &text[tail..])
}

/// Bytes of the longest beginning of a text with at most so many estimated tokens.
pub(crate) fn head_of(text: &str, tokens: u64) -> usize {
    let mut quarters = 0u64;
    let most = tokens.saturating_mul(4);
    for (at, c) in text.char_indices() {
        quarters += quarters_of(c);
        if quarters > most {
            return at;
        }
    }
    text.len()
}

/// Bytes of the longest end of a text with at most so many estimated tokens.
pub(crate) fn tail_of(text: &str, tokens: u64) -> usize {
    let mut quarters = 0u64;
    let most = tokens.saturating_mul(4);
    for (at, c) in text.char_indices().rev() {
        quarters += quarters_of(c);
        if quarters > most {
            return text.len() - at - c.len_utf8();
        }
    }
    text.len()
}

/// Quarters of an estimated token that a character has.
fn quarters_of(c: char) -> u64 {
    if c.is_ascii() { 1 } else { 4 * c.len_utf16() as u64 }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}
