//! Single streams that go wrong, from a seed: cut, reset, stalled, kept alive without a word, full of garbage, with lines
//! of giants, without an end.
//!
//! The same seed gives the same stream. What a client made of it is judged elsewhere; a [`Trouble`] says what to expect of
//! the server, so that a test can set its patience. The streams without an end and the giant line are large and come
//! once in [`RARE_EVERY`] seeds each, so that a few dozen seeds have them all and take little time.
//!
//! ```
//! use hames_testkit::trouble::{Trouble, stream};
//!
//! let (trouble, turn) = stream(7);
//! assert_eq!(trouble, Trouble::EndlessReasoning);
//! # drop(turn);
//! ```

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Turn, chaos::Random};

/// Each of the large troubles comes once in so many seeds.
pub const RARE_EVERY: u64 = 50;

/// Bytes of a piece of a stream without an end: few pieces make it long.
const LARGE_PIECE_BYTES: usize = 256 * 1024;

/// Bytes of a line of giants: more than any client should keep.
const GIANT_LINE_BYTES: usize = 40 * 1024 * 1024;

/// How often a connection without a word is kept alive.
const KEEPALIVE: Duration = Duration::from_millis(5);

/// What goes wrong with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Trouble {
    /// Nothing does.
    None,
    /// The connection is closed somewhere within.
    Cut,
    /// The connection is reset somewhere within.
    Reset,
    /// Nothing more comes from somewhere on.
    Stall,
    /// Comments come for ever.
    KeepAlives,
    /// Bytes are changed, lost, doubled or put in.
    Garbage,
    /// The stream is of bytes by chance.
    Noise,
    /// An error in one of the shapes errors have, after some of the answer or none.
    Error,
    /// A line that ends only after 40 MB.
    GiantLine,
    /// Reasoning without an end.
    EndlessReasoning,
    /// Text without an end.
    EndlessText,
    /// Arguments of a call without an end.
    EndlessArguments,
    /// Calls without an end.
    EndlessCalls,
}

impl Trouble {
    /// Every trouble.
    pub const ALL: [Trouble; 13] = [
        Trouble::None,
        Trouble::Cut,
        Trouble::Reset,
        Trouble::Stall,
        Trouble::KeepAlives,
        Trouble::Garbage,
        Trouble::Noise,
        Trouble::Error,
        Trouble::GiantLine,
        Trouble::EndlessReasoning,
        Trouble::EndlessText,
        Trouble::EndlessArguments,
        Trouble::EndlessCalls,
    ];

    /// Whether only the client's patience ends it.
    pub fn needs_patience(self) -> bool {
        matches!(self, Trouble::Stall | Trouble::KeepAlives)
    }
}

/// The trouble of a seed, and its stream. Calls are of `Read`.
pub fn stream(seed: u64) -> (Trouble, Turn) {
    const COMMON: [Trouble; 8] = [
        Trouble::None,
        Trouble::Cut,
        Trouble::Reset,
        Trouble::Stall,
        Trouble::KeepAlives,
        Trouble::Garbage,
        Trouble::Noise,
        Trouble::Error,
    ];
    let mut random = Random(seed);
    let trouble = match seed % RARE_EVERY {
        7 => Trouble::EndlessReasoning,
        17 => Trouble::EndlessText,
        27 => Trouble::EndlessArguments,
        37 => Trouble::EndlessCalls,
        47 => Trouble::GiantLine,
        _ => random.pick(&COMMON).unwrap_or(Trouble::None),
    };
    (trouble, turn(trouble, &mut random))
}

fn turn(trouble: Trouble, random: &mut Random) -> Turn {
    match trouble {
        Trouble::None => sound(random),
        Trouble::Cut | Trouble::Reset | Trouble::Stall => {
            // Any place, often within the first events, sometimes behind the end.
            let within = [40, 600, 3_000][random.below(3) as usize];
            let at = random.below(within) as usize;
            match trouble {
                Trouble::Cut => sound(random).cut_after(at),
                Trouble::Reset => sound(random).reset_after(at),
                _ => sound(random).stall_after(at),
            }
        }
        Trouble::KeepAlives => sound(random).keepalive_only(KEEPALIVE),
        Trouble::Garbage => Turn::raw_sse(garbled(&body(random), random)).split_bytes(1 + random.below(200) as usize),
        Trouble::Noise => Turn::raw_sse(noise(random)).split_bytes(1 + random.below(200) as usize),
        Trouble::Error => {
            let before = if random.below(2) == 0 { String::new() } else { event(&delta(json!({"content": "So far"}))) };
            let error = random.pick(&ERRORS).unwrap_or("");
            Turn::raw_sse(format!("{before}{error}"))
        }
        Trouble::GiantLine => {
            let begun = if random.below(2) == 0 { String::new() } else { event(&delta(json!({"content": "So far"}))) };
            let open =
                ["data: {\"choices\":[{\"delta\":{\"content\":\"", "data: ", ": ", "x", ""][random.below(5) as usize];
            Turn::raw_sse(format!("{begun}{open}{}", "x".repeat(GIANT_LINE_BYTES))).split_bytes(LARGE_PIECE_BYTES)
        }
        Trouble::EndlessReasoning => {
            let field = ["reasoning_content", "reasoning"][random.below(2) as usize];
            endless(delta(json!({ field: "hm ".repeat(LARGE_PIECE_BYTES / 3) })))
        }
        Trouble::EndlessText => {
            // Between tags it is reasoning again.
            let tag = ["", "<think>", "<tool_call>"][random.below(3) as usize];
            let open = event(&delta(json!({"content": tag})));
            let piece = event(&delta(json!({"content": "so ".repeat(LARGE_PIECE_BYTES / 3)})));
            Turn::raw_sse(open + &piece).endless()
        }
        Trouble::EndlessArguments => {
            let open =
                event(&call(json!({"index": 0, "id": "c", "function": {"name": "Read", "arguments": "{\"path\":\""}})));
            let piece = json!({"index": 0, "function": {"arguments": "x".repeat(LARGE_PIECE_BYTES)}});
            Turn::raw_sse(open + &event(&call(piece))).endless()
        }
        Trouble::EndlessCalls => {
            // Without an index each is a call of its own.
            let one = json!({"function": {"name": "Read", "arguments": "{\"path\":\"chaos-0.txt\"}"}});
            endless(json!({"choices": [{"index": 0, "delta": {"tool_calls": vec![one; 8]}, "finish_reason": null}]}))
        }
    }
}

/// An answer there is nothing wrong with, in one of the ways answers come.
fn sound(random: &mut Random) -> Turn {
    let turn = match random.below(6) {
        0 => Turn::text("A short answer."),
        1 => Turn::new().reasoning("Hm, let me see what there is to say.").then_text("An answer, then. Ünd 🙂."),
        2 => Turn::text("<think>\nBetween tags.\n</think>\n\nThe answer."),
        3 => Turn::text("I look.").then_call("Read", json!({"path": "chaos-0.txt"})),
        4 => Turn::text("<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"chaos-0.txt\"}}\n</tool_call>"),
        _ => Turn::new().signed_reasoning("Step by step.", "c2lnbmVk").then_text("Signed."),
    };
    turn.chunk_chars(random.below(9) as usize)
}

/// A sound stream as bytes, to be spoilt.
fn body(random: &mut Random) -> Vec<u8> {
    let mut out = event(&delta(json!({"role": "assistant", "content": ""})));
    for _ in 0..=random.below(6) {
        let chunk = match random.below(5) {
            0 => delta(json!({"reasoning_content": "Hm, "})),
            1 => delta(json!({"content": "<think>Hm</think>\n"})),
            2 => call(
                json!({"index": 0, "id": "c1", "function": {"name": "Read", "arguments": "{\"path\":\"chaos-0.txt\"}"}}),
            ),
            _ => delta(json!({"content": "said, ünd 🙂 "})),
        };
        out += &event(&chunk);
    }
    out += &event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    out += &event(&json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}));
    out += "data: [DONE]\n\n";
    out.into_bytes()
}

/// The same bytes with a few of them spoilt.
fn garbled(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(5) {
        let at = random.below(out.len() as u64) as usize;
        let end = (at + 1 + random.below(40) as usize).min(out.len());
        match random.below(6) {
            0 => out[at] = random.below(256) as u8,
            1 => drop(out.drain(at..end)),
            2 => {
                let again = out[at..end].to_vec();
                out.splice(at..at, again);
            }
            3 => drop(out.splice(at..at, SPICE[random.below(SPICE.len() as u64) as usize].bytes())),
            4 => out[at..end].fill(0xff),
            _ => out.truncate(at),
        }
        if out.is_empty() {
            break;
        }
    }
    out
}

fn noise(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.below(300) {
        match random.below(4) {
            0 => out.extend_from_slice(SPICE[random.below(SPICE.len() as u64) as usize].as_bytes()),
            _ => out.push(random.below(256) as u8),
        }
    }
    out
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn call(piece: Value) -> Value {
    delta(json!({"tool_calls": [piece]}))
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn endless(chunk: Value) -> Turn {
    Turn::raw_sse(event(&chunk)).endless()
}

/// What streams trip over.
const SPICE: [&str; 22] = [
    "\n",
    "\r",
    "\r\n\r\n",
    "data: ",
    "data:",
    "event: error\n",
    ": ping\n\n",
    "[DONE]",
    "data: [DONE]\n\n",
    "\u{feff}",
    "\0",
    "{",
    "}",
    "[[[[[[[[[[[[[[[[",
    "\"",
    "\\",
    "\\ud83d",
    "</think>",
    "1e999",
    "null",
    "<html><title>No</title>",
    "{\"error\":{\"message\":\"no\"}}\n",
];

/// Errors within a stream, in the shapes they have.
const ERRORS: [&str; 10] = [
    "event: error\ndata: {\"error\":{\"message\":\"the upstream is gone\",\"type\":\"server_error\"}}\n\n",
    "data: {\"error\":{\"message\":\"the upstream is overloaded\",\"code\":503}}\n\ndata: [DONE]\n\n",
    "data: {\"error\":\"something went wrong\"}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}],\"error\":{\"code\":502,\"message\":\"gone\"}}\n\n",
    "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    "{\"error\":\"one line, and no event\"}\n",
    "data: {\"error\":{\"message\":\"Invalid API key\",\"code\":401}}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
    "data: [DONE]\n\n",
    "<html><title>502 Bad Gateway</title></html>\n",
];
