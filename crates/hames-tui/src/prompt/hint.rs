//! The hint line: what Enter does now, then what the other keys do.
//!
//! It is a function of what is to be seen, so that a table of situations shows every sentence.

use std::borrow::Cow;

use hames_protocol::api::SessionView;
use hames_protocol::{Delivery, Mode};

use super::command::{Parsed, entry, split};
use super::menu::{Menu, Of};
use super::text::fit;
use crate::{Action, Keymap, Link};

/// Cells of why a file is not there; all of it was said when it happened.
const MAX_WHY: usize = 48;
/// Cells of what an interrupting message waits for.
const MAX_LABEL: usize = 28;

/// What the line depends on.
pub(super) struct Situation<'a> {
    pub(super) keys: &'a Keymap,
    pub(super) link: &'a Link,
    pub(super) view: Option<&'a SessionView>,
    pub(super) menu: Option<&'a Menu>,
    /// What the draft is, were it sent.
    pub(super) parsed: Parsed,
    /// The draft's text.
    pub(super) text: &'a str,
    /// Whether there is anything to send.
    pub(super) is_empty: bool,
    /// A delivery that waits for uploads or the server.
    pub(super) waits: Option<Delivery>,
    /// Names of attachments that are on their way.
    pub(super) uploading: Vec<&'a str>,
    /// One that failed, and why.
    pub(super) failed: Option<(&'a str, &'a str)>,
    /// Whether a waiting message is edited; `false` where it has been delivered meanwhile.
    pub(super) editing: Option<bool>,
    /// Whether keys go to the attachments.
    pub(super) on_attachments: bool,
    /// Names of files that a paste offers.
    pub(super) offer: Option<String>,
    /// What was to be said about the last key.
    pub(super) note: Option<&'a str>,
}

/// The parts of the line, the most important first.
pub(super) fn hint(now: &Situation<'_>) -> Vec<String> {
    let mut says: Vec<String> = now.note.map(str::to_owned).into_iter().collect();
    says.extend(special(now).unwrap_or_else(|| usual(now)));
    says
}

/// `Alt+Enter queues`; nothing where the action has no key.
fn key(keys: &Keymap, action: Action, does: &str) -> Option<String> {
    let key = keys.hint(action);
    (!key.is_empty()).then(|| format!("{key} {does}"))
}

fn names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    }
}

/// Where Enter does something other than sending.
fn special(now: &Situation<'_>) -> Option<Vec<String>> {
    let enter = now.keys.hint(Action::Submit);
    let esc = now.keys.hint(Action::Abort);
    if let Some(menu) = now.menu {
        return Some(in_menu(menu, now, &enter, &esc));
    }
    if now.waits.is_some() {
        let what = match (now.link, now.uploading.is_empty()) {
            (link, false) if link.takes_messages() => format!("it is sent once {} is uploaded", names(&now.uploading)),
            _ => "it is sent once the server is there".to_owned(),
        };
        return Some(vec![what, format!("{esc} holds it back")]);
    }
    if let Some((name, why)) = now.failed {
        return Some(vec![
            format!("{name}: {}", fit(why, MAX_WHY)),
            format!("{enter} tries again"),
            "Left, then Del takes it off".to_owned(),
        ]);
    }
    if now.on_attachments {
        return Some(vec!["Del takes it off".to_owned(), "←→ choose".to_owned(), sends(now, &enter)]);
    }
    if let Some(offer) = &now.offer {
        return Some(vec![format!("Tab attaches {offer} instead"), sends(now, &enter)]);
    }
    match &now.parsed {
        Parsed::Text => {}
        Parsed::Command(_) => {
            let about = split(now.text).and_then(|(name, _)| entry(name));
            let about = about.map(|entry| format!("{enter} runs /{}: {}", entry.name, entry.does));
            return Some(vec![about.unwrap_or_default(), "a space in front sends it as text".to_owned()]);
        }
        Parsed::Unknown { name, near } => {
            let near = near.map(|near| format!("; did you mean /{near}?")).unwrap_or_default();
            return Some(vec![
                format!("there is no command /{name}{near}"),
                "a space in front sends it as text".to_owned(),
            ]);
        }
        Parsed::Wrong(why) => return Some(vec![why.clone(), "a space in front sends it as text".to_owned()]),
    }
    match now.editing {
        Some(true) => Some(vec![format!("{enter} puts the change in its place"), format!("{esc} leaves it as it was")]),
        Some(false) => {
            Some(vec![format!("it was delivered meanwhile: {}", sends(now, &enter)), format!("{esc} drops the change")])
        }
        None => None,
    }
}

fn in_menu(menu: &Menu, now: &Situation<'_>, enter: &str, esc: &str) -> Vec<String> {
    let closes = format!("{esc} closes the list");
    match (menu.of, menu.chosen()) {
        (Of::Commands, Some(item)) => {
            let needs = entry(&item.value[1..])
                .is_some_and(|entry| !entry.arguments.is_empty() && !entry.arguments.starts_with('['));
            let does = if needs { "writes" } else { "runs" };
            vec![format!("{enter} {does} {}", item.value), "Tab writes it".to_owned(), closes]
        }
        (Of::Files(_), Some(item)) if item.value == menu.query => vec![sends(now, enter), closes],
        (Of::Files(_), Some(item)) => vec![format!("{enter} or Tab names {}", item.value), closes],
        (Of::History, Some(_)) => vec![
            format!("search: {}", menu.query),
            format!("{enter} takes it into the prompt"),
            format!("{esc} leaves it"),
        ],
        (Of::History, None) => vec![format!("search: {}", menu.query), format!("{esc} leaves the search")],
        (_, None) => vec![sends(now, enter), closes],
    }
}

/// What Enter does with text.
fn sends(now: &Situation<'_>, enter: &str) -> String {
    if !now.link.takes_messages() {
        return format!("{enter} sends once the server is there");
    }
    if !now.uploading.is_empty() {
        return format!("{enter} sends once {} is uploaded", names(&now.uploading));
    }
    let Some(view) = now.view else { return format!("{enter} begins a session") };
    match &view.run {
        Some(run) if run.finishing.is_empty() => format!("{enter} interrupts now"),
        Some(run) => {
            let first: Vec<Cow<'_, str>> = run.finishing.iter().map(|label| fit(label, MAX_LABEL)).collect();
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{enter} interrupts after {}", names(&first))
        }
        None => match view.effective.mode.unwrap_or_default() {
            Mode::Build => format!("{enter} sends, in Build: files change"),
            Mode::Analyze => format!("{enter} sends, in Analyze: nothing changes"),
        },
    }
}

fn usual(now: &Situation<'_>) -> Vec<String> {
    let enter = now.keys.hint(Action::Submit);
    let mut says = Vec::new();
    if !now.is_empty || now.view.is_none_or(|view| view.run.is_none()) {
        says.push(sends(now, &enter));
    }
    let queued = now.view.map_or(0, |view| view.pending.iter().filter(|m| m.delivery == Delivery::Queue).count());
    let paused = now.view.is_some_and(|view| view.paused && queued > 0);
    match now.view.and_then(|view| view.run.as_ref().map(|run| (view, run))) {
        Some((view, run)) => {
            let next = view.effective.mode.unwrap_or_default();
            let queues = match (next == run.mode, next) {
                (true, _) => "queues",
                (false, Mode::Build) => "queues, for Build",
                (false, Mode::Analyze) => "queues, for Analyze",
            };
            if !now.is_empty {
                says.extend(key(now.keys, Action::Queue, queues));
                says.extend(key(now.keys, Action::Steer, "steers"));
            }
            says.extend(key(now.keys, Action::Abort, "stops"));
            if now.is_empty {
                says.push(format!("a message {}", sends(now, &enter).replacen(&format!("{enter} "), "", 1)));
                says.extend(key(now.keys, Action::Queue, queues));
                says.extend(key(now.keys, Action::Steer, "steers"));
            }
        }
        None => {
            if !paused && now.is_empty {
                says.extend(["/ commands", "@ files", "? keys"].map(str::to_owned));
            }
            if !paused {
                says.extend(key(now.keys, Action::NewLine, "new line"));
                says.extend(key(now.keys, Action::Editor, "your editor"));
            }
            // Where nothing runs there is nothing to wait for.
            if !now.is_empty {
                says.extend(key(now.keys, Action::Queue, "sends too"));
                says.extend(key(now.keys, Action::Steer, "sends too"));
            }
        }
    }
    if paused {
        let held = if queued == 1 { "1 message is held".to_owned() } else { format!("{queued} messages are held") };
        let at = 1.min(says.len());
        says.insert(
            at,
            format!(
                "the queue is paused, {held}: {} then {} lets it go on",
                now.keys.hint(Action::Pending),
                now.keys.inner("pending.pause")
            ),
        );
    }
    says
}
