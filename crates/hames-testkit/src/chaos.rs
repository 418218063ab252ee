//! The turns of a long run, faults included, from a seed.
//!
//! A [`Chaos`] answers each request with a next turn: calls of `Read`, `Shell` and `StrReplace` (as far as they are
//! offered), one or several at once, with and without reasoning, in pieces of all sizes; and now and then one of the
//! faults of [`Fault`]. After its limit of turns it only says that it is done, so every run comes to an end. The same
//! seed and the same requests give the same turns.
//!
//! The calls touch files named `chaos-0.txt` to `chaos-7.txt` in the working folder and nothing else, and some of them
//! fail. No more than [`IN_A_ROW`] faults that want a retry follow each other, so that a client with patience gets
//! through. It judges nothing: whether the client coped is seen from the provider's violations.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use hames_testkit::{Script, chaos::Chaos};
//!
//! let chaos = Arc::new(Mutex::new(Chaos::new(7).steps(500)));
//! let script = Script::new().respond({
//!     let chaos = Arc::clone(&chaos);
//!     move |request| chaos.lock().unwrap().turn(request)
//! });
//! # drop(script);
//! println!("{:?}", chaos.lock().unwrap().counts());
//! ```

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{ChatRequest, Turn};

/// Faults that want a retry in a row, at most: fewer than any sensible client tries.
pub const IN_A_ROW: usize = 2;

/// Turns of a run, unless said otherwise.
const STEPS: usize = 200;
/// One turn in so many has a fault.
const FAULT_EVERY: u64 = 3;
/// Files the calls touch.
const FILES: u64 = 8;
/// Bytes of a broken stream at most. The shortest turn that is broken is longer.
const BREAK_WITHIN: u64 = 900;

/// What can be wrong with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// Status 429 with `retry-after-ms`.
    RateLimited,
    /// Status 500, 502 or 503 with `retry-after-ms`.
    ServerError,
    /// The connection is reset instead of an answer.
    ResetBeforeHead,
    /// The connection is reset within a stream with calls.
    ResetStream,
    /// The connection is closed within a stream with calls.
    CutStream,
    /// An error event ends the stream after some text.
    ErrorEvent,
    /// Arguments that are no JSON object, or not the tool's.
    MalformedArguments,
    /// A call of a tool that is not offered, its name possible or not.
    UnknownTool,
    /// Calls without an id.
    EmptyCallId,
    /// Calls with an id that was used before, within the answer too.
    RepeatedCallId,
    /// Calls, `[DONE]` and usage, but no finish reason.
    NoFinishReason,
    /// Calls, and the finish reason `stop`.
    StopWithCalls,
    /// The output limit within the arguments of a call.
    LengthWithinCall,
    /// Neither text nor calls.
    EmptyAnswer,
    /// Text that ends the run before its time.
    EarlyEnd,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 15] = [
        Fault::RateLimited,
        Fault::ServerError,
        Fault::ResetBeforeHead,
        Fault::ResetStream,
        Fault::CutStream,
        Fault::ErrorEvent,
        Fault::MalformedArguments,
        Fault::UnknownTool,
        Fault::EmptyCallId,
        Fault::RepeatedCallId,
        Fault::NoFinishReason,
        Fault::StopWithCalls,
        Fault::LengthWithinCall,
        Fault::EmptyAnswer,
        Fault::EarlyEnd,
    ];

    /// Whether the answer is of no use, so that a client asks again.
    pub fn wants_retry(self) -> bool {
        matches!(
            self,
            Fault::RateLimited
                | Fault::ServerError
                | Fault::ResetBeforeHead
                | Fault::ResetStream
                | Fault::CutStream
                | Fault::ErrorEvent
        )
    }
}

/// What was given out so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChaosCounts {
    /// Turns of all kinds.
    pub turns: usize,
    /// Calls, in sound and in faulty turns.
    pub calls: usize,
    /// Turns with more than one call.
    pub parallel: usize,
    /// Turns with signed reasoning.
    pub signed: usize,
    /// Turns after the limit.
    pub ends: usize,
    faults: BTreeMap<Fault, usize>,
}

impl ChaosCounts {
    /// How often a fault was injected.
    pub fn of(&self, fault: Fault) -> usize {
        self.faults.get(&fault).copied().unwrap_or(0)
    }

    /// All faults injected.
    pub fn faults(&self) -> usize {
        self.faults.values().sum()
    }
}

/// Makes up turns.
#[derive(Clone, Debug)]
pub struct Chaos {
    random: Random,
    limit: usize,
    enabled: Vec<Fault>,
    in_a_row: usize,
    counts: ChaosCounts,
}

impl Chaos {
    /// All faults, 200 turns.
    pub fn new(seed: u64) -> Chaos {
        Chaos {
            random: Random(seed),
            limit: STEPS,
            enabled: Fault::ALL.to_vec(),
            in_a_row: 0,
            counts: ChaosCounts::default(),
        }
    }

    /// How many turns there are before the end.
    pub fn steps(mut self, limit: usize) -> Chaos {
        self.limit = limit;
        self
    }

    /// Leaves a fault out.
    pub fn without(mut self, fault: Fault) -> Chaos {
        self.enabled.retain(|enabled| *enabled != fault);
        self
    }

    /// What was given out so far.
    pub fn counts(&self) -> &ChaosCounts {
        &self.counts
    }

    /// The answer to a request.
    pub fn turn(&mut self, request: &ChatRequest) -> Turn {
        self.counts.turns += 1;
        let tools: Vec<_> = Tool::ALL.into_iter().filter(|tool| request.tools().contains(&tool.name())).collect();
        if self.counts.turns > self.limit || tools.is_empty() {
            self.counts.ends += 1;
            return Turn::text(format!("Done after {} turns.", self.counts.turns - 1));
        }
        let turn = match self.fault() {
            Some(fault) => self.faulty(fault, &tools),
            None => self.sound(&tools),
        };
        self.varied(turn)
    }

    /// Whether there is a fault this time, and which.
    fn fault(&mut self) -> Option<Fault> {
        let fault = (self.random.below(FAULT_EVERY) == 0).then(|| self.random.pick(&self.enabled)).flatten();
        let fault = fault.filter(|fault| !fault.wants_retry() || self.in_a_row < IN_A_ROW);
        self.in_a_row = if fault.is_some_and(Fault::wants_retry) { self.in_a_row + 1 } else { 0 };
        if let Some(fault) = fault {
            *self.counts.faults.entry(fault).or_default() += 1;
        }
        fault
    }

    fn sound(&mut self, tools: &[Tool]) -> Turn {
        let turn = self.opening();
        self.calls(turn, tools, |random| random.fresh_id())
    }

    fn faulty(&mut self, fault: Fault, tools: &[Tool]) -> Turn {
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
        let broken_at = 1 + self.random.below(BREAK_WITHIN) as usize;
        match fault {
            Fault::RateLimited => self.status(429, "rate_limit_exceeded"),
            Fault::ServerError => {
                let status = [500, 502, 503][self.random.below(3) as usize];
                self.status(status, "server_error")
            }
            Fault::ResetBeforeHead => Turn::new().reset_before_head(),
            Fault::ResetStream => self.sound(tools).reset_after(broken_at),
            Fault::CutStream => self.sound(tools).cut_after(broken_at),
            Fault::ErrorEvent => Turn::raw_sse(ERROR_EVENT),
            Fault::MalformedArguments => self.malformed(tools),
            Fault::UnknownTool => {
                let name = UNKNOWN_TOOLS[self.random.below(UNKNOWN_TOOLS.len() as u64) as usize];
                self.counts.calls += 1;
                self.opening().raw_call(&self.random.fresh_id(), name, "{\"path\":\"chaos-0.txt\"}")
            }
            Fault::EmptyCallId => self.calls(Turn::new(), tools, |_| String::new()),
            Fault::RepeatedCallId => self.calls(Turn::new(), tools, |_| "call_0".to_owned()),
            Fault::NoFinishReason => self.sound(tools).finish(None).usage(usage),
            Fault::StopWithCalls => self.sound(tools).finish("stop"),
            Fault::LengthWithinCall => {
                self.counts.calls += 1;
                let id = self.random.fresh_id();
                Turn::text("I will write").raw_call(&id, tools[0].name(), "{\"path\":\"chaos-").finish("length")
            }
            Fault::EmptyAnswer => Turn::new(),
            Fault::EarlyEnd => Turn::text("That should be all."),
        }
    }

    fn status(&mut self, status: u16, code: &str) -> Turn {
        let body = json!({"error": {"message": "try again", "type": code, "code": code, "param": null}});
        Turn::error(status, body).header("retry-after-ms", &(1 + self.random.below(5)).to_string())
    }

    fn malformed(&mut self, tools: &[Tool]) -> Turn {
        let arguments = MALFORMED[self.random.below(MALFORMED.len() as u64) as usize];
        let tool = tools[self.random.below(tools.len() as u64) as usize];
        self.counts.calls += 1;
        let turn = self.opening().raw_call(&self.random.fresh_id(), tool.name(), arguments);
        // A broken call may come beside sound ones, which are to run all the same.
        if self.random.below(2) == 0 { turn } else { self.calls(turn, tools, Random::fresh_id) }
    }

    /// What comes before the calls.
    fn opening(&mut self) -> Turn {
        match self.random.below(5) {
            0 => Turn::new().reasoning("What is in the file decides what to do."),
            1 => {
                self.counts.signed += 1;
                let signature = format!("c2lnbmVk{:08x}", self.random.below(1 << 32));
                Turn::new().signed_reasoning("Öne step after the other. 🙂", &signature)
            }
            2 => Turn::text("Let me look."),
            3 => Turn::new().reasoning("hm").reasoning_field("reasoning").then_text("Next:"),
            _ => Turn::new(),
        }
    }

    /// Adds one to four calls.
    fn calls(&mut self, mut turn: Turn, tools: &[Tool], id: impl Fn(&mut Random) -> String) -> Turn {
        let count = [1, 1, 1, 2, 3, 4][self.random.below(6) as usize];
        self.counts.calls += count;
        self.counts.parallel += usize::from(count > 1);
        for _ in 0..count {
            let tool = tools[self.random.below(tools.len() as u64) as usize];
            let arguments = self.arguments(tool);
            turn = turn.call_with_id(&id(&mut self.random), tool.name(), arguments);
        }
        turn
    }

    fn arguments(&mut self, tool: Tool) -> Value {
        let path = format!("chaos-{}.txt", self.random.below(FILES));
        let mark = self.random.below(4);
        match tool {
            Tool::Read => json!({"path": path}),
            Tool::StrReplace => json!({"path": path, "old_string": format!("mark {mark}\n"),
                "new_string": format!("mark {}\n", (mark + 1) % 4)}),
            Tool::Shell => json!({"command": match self.random.below(4) {
                0 => format!("cat {path}"),
                1 => "exit 3".to_owned(),
                _ => format!("printf 'mark {mark}\\n' > {path}"),
            }}),
        }
    }

    /// The same turn, in other pieces.
    fn varied(&mut self, turn: Turn) -> Turn {
        let turn = turn.chunk_chars([0, 1, 4, 16][self.random.below(4) as usize]);
        match self.random.below(5) {
            0 => turn.split_bytes(7 + self.random.below(60) as usize),
            1 => turn.crlf(),
            2 => turn.comments_every(2),
            _ => turn,
        }
    }
}

/// The tools it knows how to call.
#[derive(Clone, Copy)]
enum Tool {
    Read,
    Shell,
    StrReplace,
}

impl Tool {
    const ALL: [Tool; 3] = [Tool::Read, Tool::Shell, Tool::StrReplace];

    fn name(self) -> &'static str {
        match self {
            Tool::Read => "Read",
            Tool::Shell => "Shell",
            Tool::StrReplace => "StrReplace",
        }
    }
}

/// Arguments no tool can take as they are.
const MALFORMED: [&str; 14] = [
    "",
    "   ",
    "null",
    "[]",
    "\"chaos-1.txt\"",
    "{\"path\":\"chaos-1.t",
    "{\"path\":\"chaos-1.txt\"}{\"path\":\"chaos-2.txt\"}",
    "{'path': 'chaos-1.txt'}",
    "{path: chaos-1.txt}",
    "{\"path\":\"chaos-1.txt\",}",
    "{\"path\":42}",
    "{\"pfad\":\"chaos-1.txt\"}",
    "<path>chaos-1.txt</path>",
    "{\"path\":\"\\ud83d\"}",
];

/// Names nobody offers; the later ones are not even possible.
const UNKNOWN_TOOLS: [&str; 6] =
    ["Bash", "read_the_file_for_me", "functions.Read", "Read file", "", "Übersetze<|channel|>commentary"];

/// Some text, and then an error in place of the end.
const ERROR_EVENT: &str = concat!(
    r#"data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Let"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"error":{"message":"the upstream is overloaded","type":"server_error","code":503}}"#,
    "\n\n",
);

/// A small generator (splitmix64): the same numbers everywhere, good enough to choose by, and no secret.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 for a limit of 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.below(items.len() as u64) as usize).copied()
    }

    fn fresh_id(&mut self) -> String {
        format!("call_{:016x}", self.next())
    }
}
