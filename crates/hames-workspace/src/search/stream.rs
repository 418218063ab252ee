//! A search of one stream under a name: what Grep does to a file, for text that is none.

use std::io::Read;

use hames_tools::ToolFailure;
use tokio_util::sync::CancellationToken;

use super::hits::{FileHits, Hits, MAX_MATCHES};
use super::needle::Needle;
use super::page::{Window, tail};

/// What to look for in a stream, and which part of the matches to show.
pub(crate) struct StreamSearch<'a> {
    /// What the stream is called.
    pub(crate) name: &'a str,
    /// A regular expression as Grep takes it.
    pub(crate) pattern: &'a str,
    /// Lines around a match.
    pub(crate) context: usize,
    /// Matches to skip.
    pub(crate) offset: Option<usize>,
    /// Matches to show at most.
    pub(crate) limit: Option<usize>,
    /// Bytes the result may have.
    pub(crate) cap_bytes: usize,
}

impl StreamSearch<'_> {
    /// Searches the stream to its end.
    pub(crate) fn run(&self, stream: &mut dyn Read, cancel: &CancellationToken) -> Result<String, ToolFailure> {
        let needle = Needle::compile(self.pattern, false).map_err(ToolFailure::invalid)?;
        let window = Window::new(self.offset, self.limit, self.cap_bytes);
        let mut hits = Hits::new(window, self.context, true);
        let mut found = FileHits::new(&mut hits, &needle.matcher, cancel, self.name);
        let searched = needle.searcher(self.context).search_reader(&needle.matcher, stream, &mut found);
        let binary = found.binary;
        found.keep();
        if cancel.is_cancelled() {
            return Err(ToolFailure::cancelled());
        }
        if let Err(error) = searched {
            return Err(ToolFailure::failed(format!(
                "{} cannot be searched to its end: {error}; read it by offset and limit",
                self.name
            )));
        }
        let mut text = needle.note.map(|note| note + "\n").unwrap_or_default();
        if hits.total == 0 {
            let why = if binary { ": it is binary" } else { "" };
            text.push_str(&format!("No matches in {}{why}.", self.name));
            return Ok(text);
        }
        text.push_str(&hits.text);
        text.push_str(&tail(window.offset, hits.shown, hits.total, "matches"));
        text.truncate(text.trim_end_matches('\n').len());
        if hits.at_limit() {
            text.push_str(&format!("\n(stopped after {MAX_MATCHES} matches; narrow the pattern)"));
        }
        if binary {
            text.push_str("\n(binary from here on, and not searched further)");
        }
        Ok(text)
    }
}
