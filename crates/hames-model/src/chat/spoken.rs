//! Calls that a model speaks as text, where its server does not know the form of its calls.
//!
//! Local models have a dozen forms: JSON between tags, tags with a parameter each, JSON alone. An answer is taken for
//! calls only where nothing else is in it and every call is of a tool that was offered; anything else is text, untouched.
//! [`Gate`] holds an answer back while it may still come to that and lets go of it as soon as it cannot, which for prose
//! is its first character.
//!
//! The reader is forgiving about what models forget (a closing tag at the very end, a line end) and strict about the
//! rest. It judges no arguments: what it finds goes the way of every call.

mod forms;
mod json;
mod text;

use std::sync::Arc;

use hames_protocol::{Head, ToolSpec};

/// Bytes held back at most: a call with a whole file in it. More is no call that a model wrote on purpose.
const MAX_HELD_BYTES: usize = 1024 * 1024;

/// Blanks before the first call that are waited through.
const MAX_BLANKS_BYTES: usize = 256;

/// Up to here every piece is looked at; beyond, whenever an eighth has been added, so that all of it costs little.
const LOOK_ALWAYS_BYTES: usize = 512;

/// Calls one answer may speak: more is a model that repeats itself.
const MAX_SPOKEN: usize = 64;

/// Tags in tags that are followed.
const MAX_DEPTH: u8 = 4;

/// A call as it was spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub(crate) name: String,
    /// A JSON object, as far as the model wrote one.
    pub(crate) arguments: String,
}

/// Why reading came to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// This is none.
    No,
    /// So far it may be one.
    More,
}

type Read<T> = Result<T, Stop>;

/// A place in an answer, and the calls before it.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Whether nothing follows.
    is_end: bool,
    depth: u8,
    offered: &'t [ToolSpec],
    calls: Vec<Spoken>,
}

/// The calls an answer consists of.
fn read(text: &str, offered: &[ToolSpec], is_end: bool) -> Read<Vec<Spoken>> {
    let mut reader = Reader { text, at: 0, is_end, depth: 0, offered, calls: Vec::new() };
    reader.answer()?;
    Ok(reader.calls)
}

/// Holds back an answer while it may be calls.
#[derive(Debug)]
pub(crate) struct Gate {
    head: Arc<Head>,
    held: String,
    next_look: usize,
    is_open: bool,
}

impl Gate {
    /// A gate for the answer to a request that offered the tools of `head`; without tools it stands open.
    pub(crate) fn new(head: Arc<Head>) -> Self {
        let is_open = head.tools.is_empty();
        Self { head, held: String::new(), next_look: 0, is_open }
    }

    /// What is held back now.
    #[cfg(test)]
    pub(crate) fn held(&self) -> &str {
        &self.held
    }

    /// Lets everything through from now on; gives what was held back.
    pub(crate) fn open(&mut self) -> String {
        self.is_open = true;
        std::mem::take(&mut self.held)
    }

    /// Stands at the beginning of an answer again; gives what was held back.
    pub(crate) fn begin_again(&mut self) -> String {
        self.is_open = self.head.tools.is_empty();
        self.next_look = 0;
        std::mem::take(&mut self.held)
    }

    /// Takes in text and gives to `sink` what can be no call.
    pub(crate) fn push(&mut self, text: &str, sink: &mut dyn FnMut(&str)) {
        if self.is_open {
            if !text.is_empty() {
                sink(text);
            }
            return;
        }
        self.held.push_str(text);
        let len = self.held.len();
        if len > LOOK_ALWAYS_BYTES && len < self.next_look {
            return;
        }
        self.next_look = len + len / 8;
        if read(&self.held, &self.head.tools, false) == Err(Stop::No) {
            sink(&self.open());
        }
    }

    /// The answer has ended, well if `is_whole`: the calls it was, or what was held back of a text.
    pub(crate) fn finish(&mut self, is_whole: bool) -> Result<Vec<Spoken>, String> {
        let held = self.open();
        if !is_whole || held.trim().is_empty() {
            return Err(held);
        }
        read(&held, &self.head.tools, true).map_err(|_| held)
    }
}

#[cfg(test)]
mod tests;
