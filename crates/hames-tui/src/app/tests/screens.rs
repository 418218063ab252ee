//! The whole screen as a terminal shows it, in every situation, size and shade: what is painted goes through an emulator.

use std::fmt::Write as _;

use hames_protocol::api::{ApiError, ApiErrorCode, Waiting};
use serde_json::{Value, json};

use super::*;
use crate::shell::Painter;
use crate::snapshot::{THEMES, compare};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 15)];
/// A moment in the middle of a run.
const NOW: u64 = 12_000;

fn hear(app: &mut App, events: &[Value]) {
    let first = app.face.view.as_ref().map_or(0, |view| view.row.last_seq);
    let envelope = |(at, event): (usize, &Value)| {
        let event: Event = serde_json::from_value(event.clone()).unwrap();
        let seq = event.is_durable().then(|| first + at as u64 + 1);
        let run = Some("r1".into());
        Envelope { seq, run, step: Some(1), session: Some("s1".into()), ..Envelope::detached(0, event) }
    };
    app.update(Input::News(events.iter().enumerate().map(envelope).collect()), NOW);
}

fn talk() -> Vec<Value> {
    vec![
        json!({"type": "message.user",
            "parts": [{"type": "text", "text": "Why does the lathe wobble? See src/spindle.rs."}]}),
        json!({"type": "reasoning.done", "index": 0,
            "text": "The bearing is **preloaded** wrongly.\nI look first."}),
        json!({"type": "tool.call", "call_id": "c1", "name": "Read", "arguments": "{\"path\":\"src/spindle.rs\"}",
            "label": {"tool": "Read", "target": "src/spindle.rs"}}),
        json!({"type": "tool.done", "call_id": "c1", "name": "Read", "duration_ms": 12,
            "output": (1..=30).map(|n| format!("{n}: let turn = {n};\n")).collect::<String>()}),
        json!({"type": "tool.call", "call_id": "c2", "name": "Edit", "arguments": "{\"path\":\"src/spindle.rs\"}",
            "label": {"tool": "Edit", "target": "src/spindle.rs"}}),
        json!({"type": "tool.done", "call_id": "c2", "name": "Edit", "duration_ms": 8, "output": "Changed.",
            "diffs": [{"path": "src/spindle.rs", "added": 1, "removed": 1,
                "text": "--- a/src/spindle.rs\n+++ b/src/spindle.rs\n@@ -3 +3 @@\n-let turn = 3;\n+let turn = 4;\n"}]}),
        json!({"type": "text.done", "index": 1,
            "text": "The spindle turned **one** step short; 節点 and 👩‍👩‍👧 keep their width.\n\n\
                | part | play |\n|---|---:|\n| bearing | 0.2 |\n\n```rust\nlet turn = 4; // fits\n```\n"}),
    ]
}

fn asked_about() -> Waiting {
    serde_json::from_value(json!({"approvals": [{
        "call_id": "c9", "name": "Shell", "reason": "it writes outside of the folder", "digest": "d",
        "label": {"tool": "Shell", "target": "rm -rf /tmp/chips"},
        "input": {"command": "rm -rf /tmp/chips \u{1b}[31m# \u{202e}looks harmless"}}], "questions": []}))
    .unwrap()
}

fn waiting() -> Vec<Pending> {
    let one = |id: &str, delivery, text: &str| Pending {
        id: id.into(),
        parts: vec![Part::text(text)],
        delivery,
        idempotency_id: None,
    };
    vec![
        one("p1", Delivery::Steer, "measure the bearing first"),
        one("p2", Delivery::Queue, "then oil it\nand write down how much"),
    ]
}

/// The ticket of the one request of a kind.
fn ticket_of(effects: &[Effect], is_it: impl Fn(&Request) -> bool) -> Ticket {
    asked(effects).into_iter().find(|(_, request)| is_it(request)).unwrap().0
}

/// What is on the screen, by name.
fn scenes() -> Vec<(&'static str, App)> {
    let mut all = vec![("beginning", app())];
    let mut offered = app();
    let open = asked(&offered.update(Input::Link(Link::Up { notice: None }), 0));
    offered.update(Input::Reply(open[0].0, Ok(Answer::Sessions(Sessions { sessions: vec![row("s1")] }))), 0);
    all.push(("offer", offered));

    let mut rest = shown(None);
    hear(&mut rest, &talk());
    all.push(("talk", rest));

    let mut busy = shown(Some(Mode::Build));
    busy.face.view.as_mut().unwrap().pending = waiting();
    hear(&mut busy, &talk()[..6]);
    let streamed =
        json!({"type": "text.delta", "index": 2, "offset": 0, "text": "The spindle turned\n\n- one step\n- sho"});
    hear(&mut busy, &[streamed]);
    busy.update(Input::Paste("and tell me".into()), NOW);
    all.push(("busy", busy));

    let mut asks = shown(Some(Mode::Build));
    hear(&mut asks, &talk()[..4]);
    let effects = asks.update(Input::Link(Link::Up { notice: None }), NOW);
    let ticket = ticket_of(&effects, |request| matches!(request, Request::Waiting(_)));
    asks.update(Input::Reply(ticket, Ok(Answer::Waiting(asked_about()))), NOW);
    assert_ne!(asks.top(), "base");
    all.push(("approval", asks));

    let mut help = shown(None);
    help.update(key(KeyCode::F(1)), NOW);
    all.push(("help", help));

    let mut lost = shown(None);
    hear(&mut lost, &talk()[..1]);
    lost.update(Input::Link(Link::Lost("the server closed the connection".into())), NOW);
    lost.update(Input::Paste("still here".into()), NOW);
    all.push(("lost", lost));

    let mut stopped = shown(None);
    hear(&mut stopped, &talk()[..1]);
    stopped.update(Input::Link(Link::Stopped), NOW);
    all.push(("stopped", stopped));

    let mut refused = shown(None);
    refused.update(Input::Paste("do it".into()), NOW);
    let effects = refused.update(key(KeyCode::Enter), NOW);
    let ticket = ticket_of(&effects, |request| matches!(request, Request::Send(..)));
    let why = ApiError::new(
        ApiErrorCode::Configuration,
        "no model is configured. Any one of these gives one: --model PROVIDER/MODEL, \"model\" in the configuration, or a provider that /model can choose from",
    );
    refused.update(Input::Reply(ticket, Err(why)), NOW);
    all.push(("refused", refused));
    all
}

fn painted(app: &mut App, (width, height): (u16, u16)) -> vt100::Parser {
    // Nothing answers here, and that is not what is looked at.
    app.progress = Progress::default();
    app.update(Input::Resize { width, height }, NOW);
    let mut emulator = vt100::Parser::new(height, width, 0);
    let frame = Painter::default().frame((width, height), |area, buf| app.draw(area, buf, NOW)).unwrap();
    emulator.process(&frame);
    emulator
}

/// The rows, and below each a letter for each cell that looks in some way.
fn picture(emulator: &vt100::Parser, with_looks: bool) -> String {
    let screen = emulator.screen();
    let (height, width) = screen.size();
    let (mut out, mut looks) = (String::new(), Vec::<String>::new());
    for (y, row) in (0..height).zip(screen.rows(0, width)) {
        let _ = writeln!(out, "|{}", row.trim_end());
        if with_looks {
            let letters: String = (0..width).map(|x| letter(screen.cell(y, x).unwrap(), &mut looks)).collect();
            let _ = writeln!(out, ":{}", letters.trim_end_matches('.'));
        }
    }
    for (letter, look) in (b'a'..).zip(&looks) {
        let _ = writeln!(out, "{} = {look}", char::from(letter));
    }
    let (y, x) = screen.cursor_position();
    let _ = writeln!(out, "cursor {}", if screen.hide_cursor() { "hidden".into() } else { format!("{x},{y}") });
    out
}

fn letter(cell: &vt100::Cell, looks: &mut Vec<String>) -> char {
    let colour = |what: &str, colour| match colour {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(format!("{what} {index}")),
        vt100::Color::Rgb(r, g, b) => Some(format!("{what} #{r:02x}{g:02x}{b:02x}")),
    };
    let ways = [
        (cell.bold(), "bold"),
        (cell.dim(), "dim"),
        (cell.italic(), "italic"),
        (cell.underline(), "underlined"),
        (cell.inverse(), "inverse"),
    ];
    let ways = ways.into_iter().filter(|(is_so, _)| *is_so).map(|(_, way)| way.to_owned());
    let colours = colour("on", cell.bgcolor()).into_iter().chain(colour("in", cell.fgcolor()));
    let parts: Vec<String> = colours.chain(ways).collect();
    if parts.is_empty() {
        return '.';
    }
    let look = parts.join(", ");
    let at = looks.iter().position(|known| *known == look).unwrap_or_else(|| {
        looks.push(look);
        looks.len() - 1
    });
    char::from(b'a' + at as u8)
}

#[test]
fn the_whole_screen_is_as_it_was_looked_at() {
    for (name, mut app) in scenes() {
        let mut out = String::new();
        for size in SIZES {
            let mut words = Vec::new();
            // A layer learns how long it is from its first frame.
            painted(&mut app, size);
            for (look, theme) in THEMES {
                app.theme = theme;
                let emulator = painted(&mut app, size);
                words.push(emulator.screen().rows(0, size.0).map(|row| row.trim_end().to_owned()).collect::<Vec<_>>());
                if size == SIZES[0] {
                    let _ = writeln!(out, "{look}, {}x{}\n{}", size.0, size.1, picture(&emulator, true));
                }
            }
            assert_eq!(words[0], words[1], "{name}: light and dark say the same");
            if size != SIZES[0] {
                let _ = writeln!(out, "{}x{}\n{}", size.0, size.1, picture(&painted(&mut app, size), false));
            }
        }
        compare(&format!("screen-{name}"), &out);
    }
}
