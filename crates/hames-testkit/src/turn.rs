//! One answer of the scripted model: what it says, and how it comes over the wire.

use std::time::Duration;

use serde_json::Value;

use crate::Gate;

/// Characters of text in one streamed event, unless a turn says otherwise: small, so that pieces have to be joined.
const CHUNK_CHARS: usize = 4;

/// One answer. Made by [`Turn::text`], [`Turn::call`], [`Turn::new`], [`Turn::raw_sse`] or [`Turn::error`]; every other
/// method adds to it, and what the model says is sent in the order it was added.
///
/// Streamed events are counted from 0. Of a made-up answer event 0 opens the message, then come its pieces, the
/// finish reason, the usage if it was asked for, and `[DONE]`. Bytes are counted within the body, without the framing
/// of HTTP.
#[derive(Clone, Debug)]
#[must_use]
pub struct Turn {
    pub(crate) source: Source,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delivery: Delivery,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Reply(Reply),
    RawSse(Vec<u8>),
    Error { status: u16, body: Value },
}

/// What the model says.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) parts: Vec<Part>,
    pub(crate) finish: Finish,
    pub(crate) usage: UsageChoice,
    pub(crate) chunk_chars: usize,
    pub(crate) reasoning_field: String,
    pub(crate) done_marker: bool,
    pub(crate) plain_json: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    Text(String),
    /// No id: a fresh one is made when the turn is played.
    Call {
        id: Option<String>,
        name: String,
        arguments: String,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Finish {
    /// `tool_calls` where there are calls, else `stop`.
    Fitting,
    Reason(String),
    Never,
}

#[derive(Clone, Debug)]
pub(crate) enum UsageChoice {
    Estimated,
    Given(Value),
    Never,
}

/// How the answer comes over the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) delay: Duration,
    pub(crate) head_gate: Option<Gate>,
    pub(crate) gates: Vec<(usize, Gate)>,
    pub(crate) cuts: Cuts,
    pub(crate) crlf: bool,
    pub(crate) comments_every: usize,
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Cuts {
    /// One write an event.
    #[default]
    Events,
    /// Writes of so many bytes.
    Every(usize),
    /// Writes that end at these offsets, ascending.
    At(Vec<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sever {
    /// The connection is closed: the peer reads an end of file.
    Cut,
    /// The connection is reset: the peer reads an error.
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    SeverBeforeHead(Sever),
    SeverAfter(usize, Sever),
    StallAfter(usize),
    Endless,
    KeepaliveOnly(Duration),
}

impl Turn {
    /// An empty answer to add to: as it is, it says nothing and finishes with `stop`.
    pub fn new() -> Turn {
        Turn::from_source(Source::Reply(Reply {
            parts: Vec::new(),
            finish: Finish::Fitting,
            usage: UsageChoice::Estimated,
            chunk_chars: CHUNK_CHARS,
            reasoning_field: "reasoning_content".to_owned(),
            done_marker: true,
            plain_json: false,
        }))
    }

    /// An answer of text.
    pub fn text(text: impl Into<String>) -> Turn {
        Turn::new().then_text(text)
    }

    /// An answer of one call with a fresh id. `arguments` become JSON text.
    pub fn call(name: &str, arguments: Value) -> Turn {
        Turn::new().then_call(name, arguments)
    }

    /// A stream sent byte for byte, as events that end at blank lines.
    pub fn raw_sse(body: impl Into<Vec<u8>>) -> Turn {
        Turn::from_source(Source::RawSse(body.into()))
    }

    /// An error status. A JSON string as `body` is sent as plain text, anything else as JSON.
    pub fn error(status: u16, body: impl Into<Value>) -> Turn {
        Turn::from_source(Source::Error { status, body: body.into() })
    }

    fn from_source(source: Source) -> Turn {
        Turn { source, headers: Vec::new(), delivery: Delivery::default() }
    }

    /// Adds text.
    pub fn then_text(self, text: impl Into<String>) -> Turn {
        self.part(Part::Text(text.into()))
    }

    /// Adds a call with a fresh id.
    pub fn then_call(self, name: &str, arguments: Value) -> Turn {
        self.part(Part::Call { id: None, name: name.to_owned(), arguments: arguments.to_string() })
    }

    /// Adds a call with a given id, which may be empty or one that was used before.
    pub fn call_with_id(self, id: &str, name: &str, arguments: Value) -> Turn {
        self.raw_call(id, name, &arguments.to_string())
    }

    /// Adds a call whose arguments are sent as they are, JSON or not.
    pub fn raw_call(self, id: &str, name: &str, arguments: &str) -> Turn {
        self.part(Part::Call { id: Some(id.to_owned()), name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// Adds reasoning.
    pub fn reasoning(self, text: impl Into<String>) -> Turn {
        self.part(Part::Reasoning { text: text.into(), signature: None })
    }

    /// Adds reasoning as `reasoning_details`, closed by a signature that has to go back unchanged.
    pub fn signed_reasoning(self, text: impl Into<String>, signature: &str) -> Turn {
        self.part(Part::Reasoning { text: text.into(), signature: Some(signature.to_owned()) })
    }

    /// The finish reason; `None`: it stays null.
    pub fn finish<'a>(self, reason: impl Into<Option<&'a str>>) -> Turn {
        let finish = reason.into().map_or(Finish::Never, |reason| Finish::Reason(reason.to_owned()));
        self.reply(|reply| reply.finish = finish)
    }

    /// The usage object, in place of an estimate; `None`: there is none. A stream carries it only when asked.
    pub fn usage(self, usage: impl Into<Option<Value>>) -> Turn {
        let usage = usage.into().map_or(UsageChoice::Never, UsageChoice::Given);
        self.reply(|reply| reply.usage = usage)
    }

    /// Characters of text, reasoning or arguments in one event; 0: all in one.
    pub fn chunk_chars(self, count: usize) -> Turn {
        self.reply(|reply| reply.chunk_chars = count)
    }

    /// The member of the delta that carries reasoning: `reasoning_content` unless said otherwise. `reasoning_details`
    /// has a shape of its own.
    pub fn reasoning_field(self, name: &str) -> Turn {
        self.reply(|reply| reply.reasoning_field = name.to_owned())
    }

    /// Ends the stream without `[DONE]`.
    pub fn no_done(self) -> Turn {
        self.reply(|reply| reply.done_marker = false)
    }

    /// Answers in one JSON object even where a stream was asked for.
    pub fn plain_json(self) -> Turn {
        self.reply(|reply| reply.plain_json = true)
    }

    /// Adds a header to the response, or replaces the one of that name.
    pub fn header(mut self, name: &str, value: &str) -> Turn {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// Waits before each event but the first.
    pub fn delay_per_chunk(self, delay: Duration) -> Turn {
        self.deliver(|delivery| delivery.delay = delay)
    }

    /// Waits at the gate once the event with this index is sent; after the last event where there are fewer. An answer
    /// that is no stream is one event.
    pub fn gate(self, after_event: usize, gate: Gate) -> Turn {
        self.deliver(|delivery| delivery.gates.push((after_event, gate)))
    }

    /// Waits at the gate before the response head is sent.
    pub fn gate_head(self, gate: Gate) -> Turn {
        self.deliver(|delivery| delivery.head_gate = Some(gate))
    }

    /// Sends the body in writes that end at these offsets, whatever lies there. Offsets need no order.
    pub fn split_at(self, mut offsets: Vec<usize>) -> Turn {
        offsets.sort_unstable();
        self.deliver(|delivery| delivery.cuts = Cuts::At(offsets))
    }

    /// Sends the body in writes of so many bytes; 0 is taken for 1.
    pub fn split_bytes(self, count: usize) -> Turn {
        self.deliver(|delivery| delivery.cuts = Cuts::Every(count.max(1)))
    }

    /// Ends the lines of the stream with CR LF.
    pub fn crlf(self) -> Turn {
        self.deliver(|delivery| delivery.crlf = true)
    }

    /// Sends a comment before every so-manieth event, the first one included; 0: none.
    pub fn comments_every(self, events: usize) -> Turn {
        self.deliver(|delivery| delivery.comments_every = events)
    }

    /// Closes the connection after so many body bytes.
    pub fn cut_after(self, bytes: usize) -> Turn {
        self.fault(Fault::SeverAfter(bytes, Sever::Cut))
    }

    /// Closes the connection instead of answering.
    pub fn cut_before_head(self) -> Turn {
        self.fault(Fault::SeverBeforeHead(Sever::Cut))
    }

    /// Resets the connection after so many body bytes.
    pub fn reset_after(self, bytes: usize) -> Turn {
        self.fault(Fault::SeverAfter(bytes, Sever::Reset))
    }

    /// Resets the connection instead of answering.
    pub fn reset_before_head(self) -> Turn {
        self.fault(Fault::SeverBeforeHead(Sever::Reset))
    }

    /// Sends nothing more after so many body bytes, and keeps the connection until the client leaves it.
    pub fn stall_after(self, bytes: usize) -> Turn {
        self.fault(Fault::StallAfter(bytes))
    }

    /// Sends the last event again and again, without an end, until the client leaves.
    pub fn endless(self) -> Turn {
        self.fault(Fault::Endless)
    }

    /// Sends nothing but comments (white space, where no stream is sent) at this interval, until the client leaves.
    pub fn keepalive_only(self, interval: Duration) -> Turn {
        self.fault(Fault::KeepaliveOnly(interval))
    }

    fn fault(self, fault: Fault) -> Turn {
        self.deliver(|delivery| delivery.fault = Some(fault))
    }

    fn part(self, part: Part) -> Turn {
        self.reply(|reply| reply.parts.push(part))
    }

    /// Changes what the model says; raw streams and errors say what they say.
    fn reply(mut self, change: impl FnOnce(&mut Reply)) -> Turn {
        if let Source::Reply(reply) = &mut self.source {
            change(reply);
        }
        self
    }

    fn deliver(mut self, change: impl FnOnce(&mut Delivery)) -> Turn {
        change(&mut self.delivery);
        self
    }
}

impl Default for Turn {
    fn default() -> Turn {
        Turn::new()
    }
}
