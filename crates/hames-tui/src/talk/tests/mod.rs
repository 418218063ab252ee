//! The conversation, tested as a person sees it: events in, rows out.

mod children;
mod folding;
mod previews;
mod rows;
mod screens;
mod scrolling;
mod selecting;

use hames_protocol::api::LogPage;
use hames_protocol::*;
use proptest::prelude::ProptestConfig;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use serde_json::{Value, json};

use super::Talk;
use crate::{Action, Cx, Depth, Effect, Face, Input, Keymap, Outcome, Shade, Sight, Theme};

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A log that is being written.
#[derive(Default)]
struct Log {
    all: Vec<Envelope>,
    seq: u64,
    turn: u32,
    step: u32,
    agent: Vec<String>,
}

impl Log {
    fn event(&mut self, event: impl Into<Event>) -> &mut Self {
        let event = event.into();
        self.seq += u64::from(event.is_durable());
        if let Event::RunStart(_) = event {
            self.turn += 1;
            self.step = 0;
        }
        if let Event::StepStart(_) = event {
            self.step += 1;
        }
        self.all.push(Envelope {
            v: ENVELOPE_VERSION,
            seq: event.is_durable().then_some(self.seq),
            at: 0,
            session: Some("s".into()),
            run: Some(format!("run-{}", self.turn).as_str().into()),
            turn: Some(self.turn),
            step: Some(self.step),
            agent: self.agent.clone(),
            event,
        });
        self
    }

    fn json(&mut self, value: Value) -> &mut Self {
        let event: Event = serde_json::from_value(value).unwrap();
        assert!(!matches!(event, Event::Unknown(_)), "{event:?}");
        self.event(event)
    }

    fn run(&mut self, mode: &str, text: &str) -> &mut Self {
        self.json(json!({"type": "run.start", "mode": mode, "model": "acme/large"})).user(text)
    }

    fn user(&mut self, text: &str) -> &mut Self {
        self.json(json!({"type": "message.user", "parts": [{"type": "text", "text": text}]}))
    }

    fn step(&mut self) -> &mut Self {
        self.json(json!({"type": "step.start", "number": 1, "fingerprint": "f", "bytes": 10, "changed_why": "first"}))
    }

    /// A block of text or reasoning in drops of so many bytes, then whole.
    fn says(&mut self, what: &str, index: u32, text: &str, drop: usize) -> &mut Self {
        let mut at = 0;
        while drop > 0 && at < text.len() {
            let end = super::text::floor(text, at + drop).max(at + text[at..].chars().next().map_or(1, char::len_utf8));
            self.json(json!({"type": format!("{what}.delta"), "index": index, "offset": at, "text": &text[at..end]}));
            at = end;
        }
        self.json(json!({"type": format!("{what}.done"), "index": index, "text": text}))
    }

    fn call(&mut self, id: &str, tool: &str, target: &str, input: Value) -> &mut Self {
        let arguments = input.to_string();
        let (name, label) = (tool.to_lowercase(), json!({"tool": tool, "target": target}));
        self.json(json!({"type": "tool.input.delta", "index": 0, "offset": 0, "name": name, "text": arguments}));
        self.json(json!({"type": "tool.call", "call_id": id, "name": name, "arguments": arguments,
            "input": input, "label": label}))
    }

    fn step_done(&mut self) -> &mut Self {
        self.json(json!({"type": "step.done", "finish_reason": "stop", "whole": true,
            "usage": {"input": 6943, "output": 74, "cache_read": 800},
            "cost": {"micros": 1234, "currency": "USD"}, "timings": {"first_token_ms": 676, "total_ms": 2300}}))
    }

    fn start(&mut self, id: &str) -> &mut Self {
        self.json(json!({"type": "tool.start", "call_id": id, "name": "t"}))
    }

    fn gives(&mut self, id: &str, output: &str, diffs: Value) -> &mut Self {
        self.json(json!({"type": "tool.done", "call_id": id, "name": "t", "output": output, "diffs": diffs,
            "duration_ms": 12}))
    }

    fn ends(&mut self) -> &mut Self {
        let usage = json!({"input": 13886, "output": 148, "cache_read": 1600});
        self.json(json!({"type": "done", "result": "complete", "usage": usage, "steps": 2, "calls": 1, "errors": 0}))
            .json(json!({"type": "turn.done", "duration_ms": 2345, "usage": usage}))
            .json(json!({"type": "run.done", "result": "complete", "exit_code": 0}))
    }
}

const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,4 +1,5 @@\n fn main() {\n-    let count = 1;\n+    let count = 22;\n+    // more\n     run(count);\n }\n";

const ANSWER: &str = "# What I found\n\nThe **cause** is in `src/lib.rs`, see [the guide](https://example.org/guide):\n\n1. the count is wrong\n   - nested *point* with a rather long explanation that has to wrap somewhere\n   - 漢字とかな 👍🏽\n2. nothing else\n\n> quoted words\n\n| File | Lines | What |\n|:-----|------:|------|\n| `a.rs` | 12 | counts |\n| b.rs | 3400 | runs the count over everything it is given |\n\n```rust\nfn main() {\n    let count = 22; // fixed\n}\n```\n\nDone.";

/// A session with something of everything.
fn session() -> Log {
    let mut log = Log::default();
    log.json(json!({"type": "session.created", "name": "one", "folder": "/w"}));
    log.run("analyze", "Why does the count come out wrong?\nLook at `src`.").step();
    log.says("reasoning", 0, "First I look at the file.\nThen at its callers.", 7);
    log.call("c1", "Read", "src/lib.rs", json!({"path": "src/lib.rs"})).step_done().start("c1");
    let lines: Vec<String> = (1..=30).map(|n| format!("line {n} of the file")).collect();
    log.gives("c1", &lines.join("\n"), json!([])).step().says("text", 0, ANSWER, 5).step_done().ends();
    log.run("build", "Fix it.").step();
    log.json(json!({"type": "retry", "attempt": 1, "max_attempts": 5, "delay_ms": 800,
        "failure": {"class": "overloaded", "message": "The provider has no capacity now", "retryable": true}}));
    log.call("c2", "Edit", "src/lib.rs", json!({"path": "src/lib.rs", "old": "1", "new": "22"}));
    log.call("c3", "Shell", "cargo test", json!({"command": "cargo test"})).step_done();
    log.json(json!({"type": "approval.asked", "call_id": "c2", "label": {"tool": "Edit"}, "reason": "it writes",
        "input": {}, "digest": "d"}));
    log.json(json!({"type": "approval.answered", "call_id": "c2", "decision": "once", "by": "user", "digest": "d"}));
    log.start("c2").gives("c2", "Edited.", json!([{"path": "src/lib.rs", "text": DIFF, "added": 2, "removed": 1}]));
    log.start("c3");
    log.json(json!({"type": "tool.output.delta", "call_id": "c3", "offset": 0, "text": "running 3 tests\n"}));
    log.json(json!({"type": "tool.error", "call_id": "c3", "name": "shell", "class": "failed",
        "error": "exit 101\nthread 'main' panicked", "duration_ms": 900}));
    log.json(json!({"type": "nudge", "kind": "same_error", "text": "Change your approach.",
        "detected": "the same command failed again", "done": "the model was told", "count": 1, "max": 3}));
    log.json(json!({"type": "window.masked", "calls": ["c1"], "tokens": 400}));
    log.json(json!({"type": "message.user", "parts": [{"type": "text", "text": "use cargo nextest"}],
        "delivery": "steer"}));
    log.json(json!({"type": "compaction.start", "reason": "threshold", "tokens_before": 90_000}));
    log.json(json!({"type": "window.checkpoint", "from_seq": 12, "document": "## Done\n\n- read `src/lib.rs`",
        "span_tokens": 81_000}));
    log.json(json!({"type": "compaction.done", "tokens_before": 90_000, "tokens_after": 12_300}));
    log.step().says("text", 0, "Fixed: the count is 22 now.", 4).step_done().ends();
    log
}

fn theme() -> Theme {
    Theme { shade: Shade::Dark, depth: Depth::True }
}

fn page(envelopes: &[Envelope], older: bool) -> LogPage {
    let events = envelopes.iter().filter(|e| e.seq.is_some()).cloned().collect();
    LogPage { events, older, newer: false }
}

fn talk_of(log: &Log) -> Talk {
    let mut talk = Talk::default();
    talk.apply(&log.all);
    talk
}

/// A frame with all its colours.
fn draw(talk: &mut Talk, width: u16, height: u16, theme: Theme) -> Buffer {
    for _ in 0..100 {
        let buf = drawn(talk, width, height, theme);
        if talk.wake_at(0).is_none() {
            return buf;
        }
        talk.stage.fences.wait();
    }
    panic!("it never comes to rest");
}

/// One frame.
fn drawn(talk: &mut Talk, width: u16, height: u16, theme: Theme) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    let (face, keys) = (Face::default(), Keymap::default());
    talk.draw(area, &mut buf, Sight { face: &face, keys: &keys, theme: &theme, now: 0 });
    buf
}

/// The rows of a screen as text, without spaces at their ends.
fn text(buf: &Buffer) -> Vec<String> {
    let (width, height) = (buf.area.width, buf.area.height);
    let row = |y: u16| {
        let mut out = String::new();
        let mut skip = 0;
        for x in 0..width {
            let symbol = buf[(x, y)].symbol();
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            out.push_str(symbol);
        }
        out.trim_end().to_owned()
    };
    (0..height).map(row).collect()
}

fn act(talk: &mut Talk, input: &Input) -> (bool, Vec<Effect>) {
    let (face, keys) = (Face::default(), Keymap::default());
    let (mut effects, mut next_ticket) = (Vec::new(), 0);
    let action = if let Input::Key(key) = input { keys.action(key) } else { None };
    let mut cx = Cx { face: &face, keys: &keys, now: 0, effects: &mut effects, next_ticket: &mut next_ticket };
    let outcome = talk.handle(input, action, &mut cx);
    (matches!(outcome, Outcome::Taken), effects)
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Input {
    Input::Key(KeyEvent::new(code, modifiers))
}

/// The key of an action, whatever it is.
fn key_of(action: Action) -> Input {
    let chord = Keymap::default().keys_of(action)[0].to_string();
    let (rest, last) = chord.rsplit_once('+').unwrap_or(("", &chord));
    let mut modifiers = KeyModifiers::NONE;
    for (name, modifier) in
        [("Ctrl", KeyModifiers::CONTROL), ("Alt", KeyModifiers::ALT), ("Shift", KeyModifiers::SHIFT)]
    {
        modifiers.set(modifier, rest.contains(name));
    }
    key(KeyCode::Char(last.to_lowercase().chars().next().unwrap()), modifiers)
}

fn plain(code: KeyCode) -> Input {
    key(code, KeyModifiers::NONE)
}
