//! What the conversation costs: a token that streams in, a frame over 30,000 messages, an output of 10 MB, a line of 1 MB.
//! All of it is time on a processor. `cargo bench -p hames-tui --bench talk`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use hames_protocol::{Envelope, Event};
use hames_tui::{Action, Face, Keymap, Sight, Talk, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};

/// Messages of the long session: a question and an answer a turn.
const TURNS: u64 = 15_000;
/// Tokens of the answer that streams.
const TOKENS: usize = 20_000;
/// Tokens that come between two frames: 400 a second, 30 frames a second.
const TOKENS_A_FRAME: usize = 13;

#[derive(Default)]
struct Log {
    all: Vec<Envelope>,
    seq: u64,
}

impl Log {
    fn push(&mut self, value: Value) {
        let event: Event = serde_json::from_value(value).unwrap();
        let seq = event.is_durable().then(|| {
            self.seq += 1;
            self.seq
        });
        self.all.push(Envelope { seq, run: Some("r".into()), step: Some(1), ..Envelope::detached(0, event) });
    }
}

/// Time this thread had a processor: on a busy machine the clock on the wall says little.
fn busy() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| Instant::now().duration_since(*BEGAN.get_or_init(Instant::now)), Duration::from_nanos)
}

static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

fn since(start: Duration) -> Duration {
    busy().saturating_sub(start)
}

fn frame(talk: &mut Talk, buf: &mut Buffer) -> Duration {
    let (face, keys, theme) = (Face::default(), Keymap::default(), Theme::default());
    let started = busy();
    buf.reset();
    talk.draw(buf.area, buf, Sight { face: &face, keys: &keys, theme: &theme, now: 0 });
    since(started)
}

/// Frames while the reader goes through it, and the slowest of them.
fn walk(name: &str, talk: &mut Talk, buf: &mut Buffer) {
    let first = frame(talk, buf);
    let same = frame(talk, buf);
    let mut worst = Duration::ZERO;
    for (action, times) in [(Action::PageUp, 50), (Action::ToTop, 1), (Action::PageDown, 50), (Action::ToEnd, 1)] {
        for _ in 0..times {
            let started = busy();
            talk.act(action);
            worst = worst.max(since(started) + frame(talk, buf));
        }
    }
    println!("{name}: first frame {first:?}, the same again {same:?}, the slowest of 102 while scrolling {worst:?}");
}

fn main() {
    let mut buf = Buffer::empty(Rect::new(0, 0, 120, 40));
    let mut log = Log::default();
    for turn in 0..TURNS {
        log.push(json!({"type": "message.user", "parts": [{"type": "text", "text": format!("Question {turn}")}]}));
        log.push(json!({"type": "text.done", "index": 0,
            "text": format!("Answer {turn}, with `code`.\n\n- one\n- two\n\n```rust\nlet x = {turn};\n```\n")}));
    }
    let mut talk = Talk::default();
    let started = busy();
    talk.apply(&log.all);
    println!("{} messages taken in: {:?}", 2 * TURNS, since(started));
    walk("30,000 messages", &mut talk, &mut buf);

    let mut talk = Talk::default();
    let mut log = Log::default();
    log.push(json!({"type": "tool.call", "call_id": "c", "name": "t", "arguments": "{}", "label": {"tool": "Shell"}}));
    log.push(json!({"type": "tool.done", "call_id": "c", "name": "t", "duration_ms": 1,
        "output": "a line of output that is neither long nor short\n".repeat(210_000)}));
    log.push(json!({"type": "text.done", "index": 0, "text": "word ".repeat(200_000)}));
    let started = busy();
    talk.apply(&log.all);
    println!("10 MB of output and a line of 1 MB taken in: {:?}", since(started));
    walk("folded", &mut talk, &mut buf);
    talk.act(Action::FoldAll);
    walk("open", &mut talk, &mut buf);

    let mut talk = Talk::default();
    let mut log = Log::default();
    let mut offset = 0;
    for n in 0..TOKENS {
        let text = match n % 400 {
            0 => "\n\n## Part\n\n".to_owned(),
            200 => "\n\n```rust\n".to_owned(),
            399 => "\n```\n\n".to_owned(),
            n if n % 10 == 9 => "word.\n".to_owned(),
            n => format!("word{n} "),
        };
        log.push(json!({"type": "text.delta", "index": 0, "offset": offset, "text": text}));
        offset += text.len();
    }
    let (mut taken, mut drawn, mut worst, mut frames) = (Duration::ZERO, Duration::ZERO, Duration::ZERO, 0u32);
    for tokens in log.all.chunks(TOKENS_A_FRAME) {
        let started = busy();
        talk.apply(tokens);
        taken += since(started);
        let one = frame(&mut talk, &mut buf);
        drawn += one;
        worst = worst.max(one);
        frames += 1;
    }
    println!(
        "streaming {TOKENS} tokens: {:?} a token taken in, {:?} a frame of {TOKENS_A_FRAME} tokens, the slowest {worst:?}",
        taken / TOKENS as u32,
        drawn / frames
    );
}
