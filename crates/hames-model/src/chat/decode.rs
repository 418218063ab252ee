//! From the bytes of a response to an answer.
//!
//! A response is a stream of events, a stream of JSON lines, one JSON document, or a web page that has no business here;
//! the content type does not decide, the first line does. An event that cannot be read is mended if it can be, and where
//! it cannot, the answer is marked as incomplete: a lost piece may have been part of a call. Events of unknown kinds are
//! skipped.

use std::sync::Arc;

use hames_protocol::{Completion, Delta, ErrorClass, Failure};
use hames_sse::{Event, Reader};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::Answer;
use super::content::Reading;
use super::mend::mend;
use super::wire::Chunk;
use crate::MAX_EVENT_BYTES;
use crate::error::{Place, clipped};

/// Bytes of stray text kept to explain an answer that never came.
const MAX_STRAY_BYTES: usize = 2 * 1024;

#[derive(Debug, Default)]
enum Body {
    /// Nothing but blank lines and comments so far.
    #[default]
    Unknown,
    /// Events.
    Events,
    /// JSON, a document a line; how many there were.
    Lines(u32),
    /// One JSON document over several lines.
    Document(Vec<u8>),
    /// A web page; its beginning is kept.
    Page(Vec<u8>),
}

/// The state of one response.
#[derive(Debug)]
pub(crate) struct Decoder {
    reader: Reader,
    state: State,
}

#[derive(Debug)]
struct State {
    place: Arc<Place>,
    body: Body,
    answer: Answer,
    deltas: Vec<Delta>,
    stray: String,
    carried: bool,
    at_end: bool,
}

impl Decoder {
    pub(crate) fn new(place: Arc<Place>, reading: Reading) -> Self {
        let state = State {
            place,
            body: Body::Unknown,
            answer: Answer::new(reading),
            deltas: Vec::new(),
            stray: String::new(),
            carried: false,
            at_end: false,
        };
        Self { reader: Reader::new(MAX_EVENT_BYTES), state }
    }

    /// Takes in bytes. Gives whether they carried anything of the answer; comments and keep-alives do not.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        let Self { reader, state } = self;
        state.carried = false;
        if let Err(error) = reader.feed(bytes, &mut |event| state.event(event)) {
            let failure = state.place.failure(ErrorClass::StreamIncomplete, &error.to_string(), "Use another endpoint");
            state.answer.stop(failure);
        }
        state.carried
    }

    /// The body has ended, or is given up because of `accident`.
    pub(crate) fn end(&mut self, accident: Option<Failure>) {
        let Self { reader, state } = self;
        state.at_end = true;
        // Only a line that never ended can be left, and no limit is passed by ending it.
        let _ = reader.finish(&mut |event| state.event(event));
        state.close_body();
        if accident.is_none() {
            state.explain_silence();
        }
        state.answer.conclude(&state.place, accident, &mut state.deltas);
    }

    /// What came since the last time.
    pub(crate) fn take_deltas(&mut self) -> Option<Vec<Delta>> {
        (!self.state.deltas.is_empty()).then(|| std::mem::take(&mut self.state.deltas))
    }

    /// Whether the end marker was seen, or nothing more will be taken.
    pub(crate) fn is_over(&self) -> bool {
        self.state.answer.is_over()
    }

    /// Whether little can follow.
    pub(crate) fn is_closing(&self) -> bool {
        self.state.answer.is_closing()
    }

    /// Whether the answer began inside its reasoning; `None` where it did not show.
    pub(crate) fn began_inside(&self) -> Option<bool> {
        self.state.answer.began_inside()
    }

    pub(crate) fn into_completion(self) -> Completion {
        self.state.answer.into_completion()
    }
}

impl State {
    fn event(&mut self, event: Event<'_>) {
        if self.answer.is_over() {
            return;
        }
        match event {
            Event::Data { name, data } => {
                if matches!(self.body, Body::Unknown) {
                    self.body = Body::Events;
                }
                self.payload(data, name == b"error");
            }
            Event::Stray(line) => self.stray_line(line),
        }
    }

    fn stray_line(&mut self, line: &[u8]) {
        match &mut self.body {
            Body::Document(document) => {
                if document.len() + line.len() < MAX_EVENT_BYTES {
                    document.extend_from_slice(line);
                    document.push(b'\n');
                }
            }
            Body::Page(page) => {
                if page.len() < MAX_STRAY_BYTES {
                    page.extend_from_slice(&line[..line.len().min(MAX_STRAY_BYTES)]);
                    page.push(b'\n');
                }
            }
            Body::Unknown | Body::Events | Body::Lines(_) => self.bare_line(line),
        }
    }

    /// A line of JSON, of a document, of a page, or of plain words.
    fn bare_line(&mut self, line: &[u8]) {
        let is_first = matches!(self.body, Body::Unknown);
        let text = line.trim_ascii();
        match text.first() {
            None => {}
            Some(b'{' | b'[') if serde_json::from_slice::<&RawValue>(text).is_ok() => {
                self.payload(text, false);
                match &mut self.body {
                    Body::Lines(count) => *count += 1,
                    body if is_first => *body = Body::Lines(1),
                    _ => {}
                }
            }
            Some(b'{' | b'[') if is_first => self.body = Body::Document([text, b"\n"].concat()),
            Some(b'<') if is_first => self.body = Body::Page(text[..text.len().min(MAX_STRAY_BYTES)].to_vec()),
            Some(_) => self.keep_stray(&String::from_utf8_lossy(text)),
        }
    }

    fn keep_stray(&mut self, text: &str) {
        if self.stray.len() < MAX_STRAY_BYTES {
            if !self.stray.is_empty() {
                self.stray.push('\n');
            }
            let room = MAX_STRAY_BYTES - self.stray.len();
            self.stray.push_str(&clipped(text, room));
        }
    }

    fn close_body(&mut self) {
        match std::mem::take(&mut self.body) {
            Body::Document(document) => {
                self.payload(&document, false);
                self.answer.close_document();
            }
            Body::Page(page) => self.answer.fail(self.place.page(&page)),
            Body::Lines(1) => self.answer.close_document(),
            Body::Events | Body::Unknown | Body::Lines(_) => {}
        }
    }

    /// An answer that never began, beside words that may say why.
    fn explain_silence(&mut self) {
        if self.answer.has_begun() || self.answer.is_closing() || self.stray.is_empty() {
            return;
        }
        let mut failure = self.place.failed_in_stream(&Value::String(std::mem::take(&mut self.stray)));
        if failure.class == ErrorClass::ServerError && failure.retryable {
            failure.class = ErrorClass::StreamIncomplete;
        }
        self.answer.fail(failure);
    }

    fn payload(&mut self, data: &[u8], is_error: bool) {
        let data = data.trim_ascii();
        let data = data.strip_prefix(b"data:").map_or(data, <[u8]>::trim_ascii);
        match data.first() {
            None => {}
            Some(b'[') if data.eq_ignore_ascii_case(b"[DONE]") => self.answer.mark_done(),
            Some(b'{') => match serde_json::from_slice::<Chunk<'_>>(data) {
                Ok(chunk) => self.chunk(&chunk, data, is_error),
                Err(_) => self.odd_payload(data, is_error),
            },
            Some(b'[') => self.odd_payload(data, is_error),
            Some(_) if is_error => {
                let words = Value::String(String::from_utf8_lossy(data).into_owned());
                self.answer.fail(self.place.failed_in_stream(&words));
            }
            Some(_) => self.keep_stray(&String::from_utf8_lossy(data)),
        }
    }

    /// Several documents in one event, an array of them, or one that needs mending.
    fn odd_payload(&mut self, data: &[u8], is_error: bool) {
        let text = mend(data);
        let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let mut read_to = 0;
        while let Some(Ok(document)) = documents.next() {
            read_to = documents.byte_offset();
            let parts = match document {
                Value::Array(parts) => parts,
                other => vec![other],
            };
            for part in parts.iter().filter(|part| part.is_object()) {
                // Written anew, a document has no member twice, which is what the typed reader minds.
                let part = part.to_string();
                if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(&part) {
                    self.chunk(&chunk, part.as_bytes(), is_error);
                }
            }
        }
        match text[read_to..].trim() {
            "" => {}
            rest if rest.eq_ignore_ascii_case("[DONE]") => self.answer.mark_done(),
            // What is left at the end of a body was cut with it.
            _ if self.at_end => {}
            _ => self.unreadable(),
        }
    }

    fn unreadable(&mut self) {
        let failure = self.place.failure(
            ErrorClass::StreamIncomplete,
            "one event of the answer is not readable JSON, so a piece of it is lost",
            "Try again",
        );
        self.answer.fail(failure.retryable());
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, data: &[u8], is_error: bool) {
        self.carried |= self.answer.take(chunk, &self.place, &mut self.deltas);
        if chunk.choices.0.is_empty() && chunk.error.is_none() && chunk.usage.is_none() {
            self.maybe_error(chunk, data, is_error);
        }
    }

    /// An object that is no chunk: an error without an `error` member, or a keep-alive.
    fn maybe_error(&mut self, chunk: &Chunk<'_>, data: &[u8], is_error: bool) {
        let blocked = chunk.prompt_feedback.is_some_and(|raw| raw.get().contains("\"blockReason\""));
        let says_so = is_error
            || blocked
            || chunk.object.text() == Some("error")
            || matches!(chunk.kind.text(), Some("error" | "response.failed"));
        let has_words = chunk.message.is_some() || chunk.detail.is_some();
        let is_refusal = !matches!(self.body, Body::Events) && !self.answer.has_begun() && has_words;
        if (says_so || is_refusal)
            && let Ok(value) = serde_json::from_slice::<Value>(data)
        {
            self.carried = true;
            self.answer.fail(self.place.failed_in_stream(&value));
        } else if (has_words || chunk.base_resp.is_some()) && !self.answer.has_begun() {
            // Where no answer follows, this was the reason.
            self.keep_stray(&String::from_utf8_lossy(data));
        }
    }
}

#[cfg(test)]
mod tests;
