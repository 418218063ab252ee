//! The report in words: most important first, then item by item.

use hames_protocol::api::SessionContext;
use hames_protocol::{
    Break, CheckpointKind, ItemKind, ItemState, PinnedBy, Projection, ReportItem, ReportSum, WindowPreview,
    WindowReport,
};

use super::super::parts::{Look, line, numbers, plural};

type Line = Vec<(String, Look)>;

fn text(text: impl Into<String>) -> Line {
    vec![(text.into(), Look::Text)]
}

fn dim(text: impl Into<String>) -> Line {
    vec![(text.into(), Look::Dim)]
}

fn head(text: &str) -> Line {
    vec![(text.to_owned(), Look::Name)]
}

fn tokens(n: u64) -> String {
    plural(n, "token")
}

/// Everything of it.
pub(super) fn lines(told: &SessionContext) -> Vec<Line> {
    let report = &told.report;
    let mut out = fill(report);
    out.push(Line::new());
    out.push(head("Next compaction"));
    match plan(&told.next) {
        Some(body) => out.extend(body.into_iter().map(|piece| vec![piece])),
        None => out.push(dim("Nothing would be gained now.")),
    }
    out.push(Line::new());
    out.push(head("Last request"));
    out.extend(request(report));
    if !report.pins.is_empty() {
        out.push(Line::new());
        out.push(head("Pins"));
        out.extend(pins(report));
    }
    out.push(Line::new());
    out.push(head("Items, the newest first"));
    if report.items.is_empty() {
        out.push(dim("None yet: nothing was said."));
    }
    out.extend(report.items.iter().rev().map(item));
    out
}

fn fill(report: &WindowReport) -> Vec<Line> {
    let budget = &report.budget;
    let percent = budget.fill.saturating_mul(100) / budget.usable.max(1);
    let mut out = vec![vec![
        (format!("{} of {} usable tokens", numbers::count(budget.fill), numbers::count(budget.usable)), Look::Name),
        (format!(" · {percent}%"), if budget.fill >= budget.trigger { Look::Warn } else { Look::Dim }),
    ]];
    out.push(text(format!(
        "{} are tools and system text. The window has {}; {} are kept for the answer.",
        numbers::count(budget.head),
        numbers::count(budget.window),
        numbers::count(budget.reserve)
    )));
    out.push(text(format!(
        "It is compacted at {}, and {} stay verbatim then ({}).",
        numbers::count(budget.trigger),
        numbers::count(budget.landing),
        line(&report.strategy)
    )));
    if budget.ratio != 1_000 && budget.ratio > 0 {
        let percent = budget.ratio as f64 / 10.0;
        out.push(dim(format!(
            "The provider counts {percent}% of what is estimated; the numbers here are the provider's."
        )));
    }
    out.push(Line::new());
    out.push(sum("sent", &report.sent));
    for (what, of) in [
        ("masked: sent as one line", &report.masked),
        ("retired: finished calls left out", &report.retired),
        ("archived: before the window", &report.archived),
    ] {
        if of.items > 0 {
            out.push(sum(what, of));
        }
    }
    if let Some(opening) = &report.opening {
        let by = match opening.kind {
            CheckpointKind::Summary => "written by a model",
            CheckpointKind::Rolled => "a list of what was said and done",
            CheckpointKind::Trim => "carried over unchanged",
        };
        out.push(text(format!(
            "The window opens with a document of {} ({by}). Kept in the session above it: {}.",
            tokens(opening.document_tokens),
            plural(opening.items_above, "item")
        )));
        if !opening.deferred.is_empty() {
            out.push(vec![("Part of what left was too much to be read for it.".into(), Look::Warn)]);
        }
    }
    out
}

fn sum(what: &str, sum: &ReportSum) -> Line {
    vec![
        (what.to_owned(), Look::Text),
        (
            format!(" · {} · {} · {}", plural(sum.items, "item"), tokens(sum.tokens), numbers::bytes(sum.bytes)),
            Look::Dim,
        ),
    ]
}

/// What a compaction would do; none where it would do nothing.
pub(in crate::layers) fn plan(next: &WindowPreview) -> Option<Vec<(String, Look)>> {
    let what = match next.stage.as_str() {
        "mask" => "Old results would be sent as one line each; no model is asked.",
        "retire" => "Old results would be sent as one line each, and finished calls left out; no model is asked.",
        "summary" => "A model would write a document of what leaves the window.",
        "rolled" => "A list of what was said and done would stand for what leaves; no model is asked.",
        "trim" => "The oldest part would leave without a new document; no model is asked.",
        _ => return None,
    };
    let mut out = vec![(what.to_owned(), Look::Text)];
    out.push((
        format!(
            "About {} instead of {}, {} of them verbatim; {} would leave.",
            tokens(next.after),
            numbers::count(next.fill),
            numbers::count(next.kept),
            plural(next.leaving, "item")
        ),
        Look::Text,
    ));
    out.push(("The session keeps everything; nothing is deleted.".into(), Look::Dim));
    Some(out)
}

fn request(report: &WindowReport) -> Vec<Line> {
    let Some(request) = &report.request else { return vec![dim("Nothing was sent yet.")] };
    let mut out = vec![text(format!("{} bytes", numbers::count(request.bytes)))];
    let by = request.changed_by.map(|by| format!(", because {}", because(by))).unwrap_or_default();
    out.push(match (request.changed_at, request.changed_why.as_str()) {
        (None, _) | (_, "first") => dim("It was the first; there was no prefix to keep."),
        (Some(at), "appended") => {
            let text = format!("New from byte {} on: everything before was sent before.", numbers::count(at));
            vec![(text, Look::Good)]
        }
        (Some(at), _) => {
            let event = request.changed_by_event.map(|seq| format!(" (event {seq})")).unwrap_or_default();
            let text = format!("The first changed byte of the prefix is {}{by}{event}.", numbers::count(at));
            vec![(text, Look::Warn)]
        }
    });
    let sent = &report.requests;
    out.push(dim(format!(
        "All so far: {}, {}, {} of them new to any cache",
        plural(sent.requests, "request"),
        numbers::bytes(sent.bytes),
        numbers::bytes(sent.uncached_bytes)
    )));
    if !sent.breaks.is_empty() {
        let breaks: Vec<String> = sent.breaks.iter().map(|(why, n)| format!("{} {n}", line(why))).collect();
        out.push(dim(format!("Prefixes changed by: {}", breaks.join(", "))));
    }
    out.push(dim(line(&report.repairs.line())));
    out
}

fn because(by: Break) -> &'static str {
    match by {
        Break::Masked => "old results became stubs",
        Break::Retired => "finished calls or turns left",
        Break::Checkpoint => "the window was compacted",
        Break::Externalised => "a long message is sent in part",
        Break::Nudge => "a newer nudge replaced one of its kind",
        Break::Pin => "what is pinned changed",
        Break::Head => "tools or system text changed",
        Break::Images => "the oldest images are left out",
        Break::Other => "for no cause that is known",
    }
}

fn pins(report: &WindowReport) -> Vec<Line> {
    let budget = &report.budget;
    let mut out = vec![dim(format!("{} of at most {}", tokens(budget.pinned), numbers::count(budget.pin_limit)))];
    out.extend(report.pins.iter().map(|pin| {
        let label = report.items.iter().find(|item| item.event == pin.item).map_or("", |item| &item.label);
        let by = if pin.by == PinnedBy::Model { " by the model" } else { "" };
        let cut = if pin.projection == Projection::Stub { ", cut short" } else { "" };
        vec![(format!("{}{by}{cut} ", pin.pin), Look::Dim), (line(label), Look::Text)]
    }));
    out
}

fn item(item: &ReportItem) -> Line {
    let (sign, look) = match (item.state, item.projection) {
        (ItemState::Pinned, _) => ("◆ ", Look::Warn),
        (ItemState::Active, _) => ("● ", Look::Good),
        (ItemState::Retained, _) => ("◐ ", Look::Dim),
        (ItemState::Archived, _) => ("○ ", Look::Dim),
    };
    let what = match item.kind {
        ItemKind::User => "you",
        ItemKind::Nudge => "nudge",
        ItemKind::Pin => "pin",
        ItemKind::Answer => "answer",
        ItemKind::Result => "result",
    };
    let how = match item.projection {
        Projection::Full => String::new(),
        Projection::Stub => format!(" · a stub, {} sent", tokens(item.sent_tokens)),
        Projection::Opening => " · in the document".into(),
        Projection::Omitted => " · left out".into(),
    };
    let kept = item.kept.as_deref().or(item.archive.as_deref()).map(|name| format!(" · {}", line(name)));
    let size = format!(" · {} · {}", tokens(item.tokens), numbers::bytes(item.bytes));
    vec![
        (sign.to_owned(), look),
        (format!("{what} "), Look::Dim),
        (line(&item.label), if item.state == ItemState::Archived { Look::Dim } else { Look::Text }),
        (format!("{size}{how}{}", kept.unwrap_or_default()), Look::Dim),
    ]
}
