//! What fuzz targets call: each parser of what comes back, held to what must hold of every input.
//!
//! Built for `fuzz/` (feature `fuzzing`) and for the test that runs the corpora; no part of the crate's interface. Each
//! function takes bytes by chance and panics where a promise is broken: that it makes no difference where the bytes were
//! cut, that nothing is lost or shown twice, that what is held has a bound.

use std::sync::{Arc, OnceLock};

use hames_protocol::{Completion, Delta, Head, ToolSpec};
use hames_sse::{Event, Reader};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use crate::Endpoint;
use crate::chat::fuzzing::{Decoder, Gate, Piece, Reading, Splitter};
use crate::error::Place;

/// Splits an input into what says how to cut, and the rest: the first byte counts the bytes that say it.
fn cut(input: &[u8]) -> (&[u8], &[u8]) {
    let Some((count, rest)) = input.split_first() else { return (&[], &[]) };
    rest.split_at((usize::from(*count) % 16).min(rest.len()))
}

/// The pieces of bytes, cut as `cuts` say, over and over.
fn pieces<'b>(cuts: &[u8], mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let mut out = Vec::new();
    for size in cuts.iter().cycle() {
        let (piece, rest) = bytes.split_at((usize::from(*size) % 32).min(bytes.len()));
        out.push(piece);
        bytes = rest;
        if bytes.is_empty() || out.len() > 10_000 {
            break;
        }
    }
    out.push(bytes);
    out
}

/// The same for text, between characters.
fn text_pieces<'t>(cuts: &[u8], mut text: &'t str) -> Vec<&'t str> {
    let mut out = Vec::new();
    for size in cuts.iter().cycle() {
        let at = text.char_indices().nth(usize::from(*size) % 32).map_or(text.len(), |(at, _)| at);
        let (piece, rest) = text.split_at(at);
        out.push(piece);
        text = rest;
        if text.is_empty() || out.len() > 10_000 {
            break;
        }
    }
    out.push(text);
    out
}

fn place() -> Arc<Place> {
    static PLACE: OnceLock<Arc<Place>> = OnceLock::new();
    let make = || {
        let endpoint = Endpoint::new("acme", "https://acme.example").with_key(KEY);
        Arc::new(Place::new(&endpoint, "acme.example", "acme-large"))
    };
    Arc::clone(PLACE.get_or_init(make))
}

const KEY: &str = "sk-live-0123456789";

fn head() -> Arc<Head> {
    static HEAD: OnceLock<Arc<Head>> = OnceLock::new();
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}),
    };
    let make = || Arc::new(Head { tools: vec![tool("Read"), tool("Write")], system: String::new() });
    Arc::clone(HEAD.get_or_init(make))
}

/// The reader of server-sent events.
pub fn sse(input: &[u8]) {
    let (cuts, bytes) = cut(input);
    let read = |pieces: &[&[u8]]| {
        let mut out = Vec::new();
        let mut sink = |event: Event<'_>| {
            out.push(match event {
                Event::Data { name, data } => (name.to_vec(), data.to_vec()),
                Event::Stray(line) => (b"<stray>".to_vec(), line.to_vec()),
            });
        };
        let mut reader = Reader::new(crate::MAX_EVENT_BYTES);
        let fed = pieces.iter().try_for_each(|piece| reader.feed(piece, &mut sink));
        fed.and_then(|()| reader.finish(&mut sink)).map(|()| out)
    };
    let whole = read(&[bytes]);
    assert_eq!(read(&pieces(cuts, bytes)), whole);
    let kept: usize = whole.iter().flatten().map(|(_, data)| data.len()).sum();
    assert!(kept <= bytes.len(), "{kept} bytes out of {}", bytes.len());
}

/// From the bytes of a response to an answer, with everything on.
pub fn answer(input: &[u8]) {
    let (cuts, bytes) = cut(input);
    let choice = cuts.first().copied().unwrap_or(0);
    let reading = || Reading {
        thinking_tags: choice & 1 == 0,
        begins_inside: choice & 2 != 0,
        tools: (choice & 4 == 0).then(head),
    };
    let decode = |pieces: &[&[u8]]| {
        let mut decoder = Decoder::new(place(), reading());
        let mut deltas = Vec::new();
        for piece in pieces {
            decoder.feed(piece);
            deltas.extend(decoder.take_deltas().into_iter().flatten());
            if decoder.is_over() {
                break;
            }
        }
        decoder.end(None);
        deltas.extend(decoder.take_deltas().into_iter().flatten());
        let inside = decoder.began_inside();
        (decoder.into_completion(), deltas, inside)
    };
    let (whole, _, _) = decode(&[bytes]);
    let (completion, deltas, inside) = decode(&pieces(cuts, bytes));
    assert_eq!(completion, whole);
    let turned = reading().begins_inside != inside.unwrap_or(reading().begins_inside);
    if !turned {
        shows_all(&completion, &deltas);
    }
    assert!(completion.calls.len() <= 1_024);
    assert!(!format!("{:?}", completion.failure).contains(KEY));
    // What was left in the middle says no more than what came to its end.
    let mut decoder = Decoder::new(place(), reading());
    decoder.feed(bytes);
    assert!(decoder.into_completion().failure.is_none_or(|failure| !failure.message.is_empty()));
}

/// What was shown adds up to the answer.
fn shows_all(completion: &Completion, deltas: &[Delta]) {
    let (mut text, mut thought) = (String::new(), String::new());
    for delta in deltas {
        match delta {
            Delta::Text(piece) => text.push_str(piece),
            Delta::Reasoning(piece) => thought.push_str(piece),
            Delta::ToolInput { .. } => {}
        }
    }
    assert_eq!(text, completion.text);
    let kept: String = completion.reasoning.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(thought, kept);
}

/// The splitter of thinking tags.
pub fn tags(input: &[u8]) {
    let (cuts, bytes) = cut(input);
    let text = String::from_utf8_lossy(bytes);
    let inside = cuts.first().is_some_and(|first| first & 1 == 1);
    let split = |pieces: &[&str]| {
        let mut splitter = Splitter::new(inside);
        let (mut text, mut thought) = (String::new(), String::new());
        let mut sink = |piece: Piece<'_>| match piece {
            Piece::Text(t) => text.push_str(t),
            Piece::Reasoning(r) => thought.push_str(r),
            Piece::WasReasoning => thought.push_str(&std::mem::take(&mut text)),
            Piece::WasText => text.push_str(&std::mem::take(&mut thought)),
        };
        pieces.iter().for_each(|piece| splitter.push(piece, &mut sink));
        splitter.finish(&mut sink);
        (text, thought, splitter.tag())
    };
    let whole = split(&[&text]);
    // A lone closing tag leaves the blanks before it, which were shown; how many were, the cut decides.
    let (cut_text, cut_thought, tag) = split(&text_pieces(cuts, &text));
    assert_eq!((cut_text.as_str(), cut_thought.as_str(), tag), (whole.0.as_str(), whole.1.as_str(), whole.2));
    if tag.is_none() && whole.1.is_empty() && !text.contains('/') && !text.contains("<|") {
        assert_eq!(whole.0, text);
    }
    assert!(whole.0.len() + whole.1.len() <= text.len() + 2 * text.matches(['<', '[', '◁']).count());
}

/// The reader of calls that are spoken as text.
pub fn spoken(input: &[u8]) {
    let (cuts, bytes) = cut(input);
    let text = String::from_utf8_lossy(bytes);
    let is_whole = cuts.first().is_none_or(|first| first & 1 == 0);
    let hear = |pieces: &[&str]| {
        let mut gate = Gate::new(head());
        let mut shown = String::new();
        pieces.iter().for_each(|piece| gate.push(piece, &mut |text| shown.push_str(text)));
        match gate.finish(is_whole) {
            Ok(calls) => {
                assert!(shown.is_empty() && !calls.is_empty());
                assert!(calls.iter().all(|call| ["Read", "Write"].contains(&call.name.as_str())));
                Ok(calls)
            }
            Err(rest) => Err(shown + &rest),
        }
    };
    let whole = hear(&[&text]);
    assert_eq!(hear(&text_pieces(cuts, &text)), whole);
    if let Err(said) = whole {
        assert_eq!(said, text);
    }
}

/// The reader of refusals: a status, headers that say when to try again, a body; and the same body within a stream.
pub fn refusal(input: &[u8]) {
    const STATUSES: [u16; 16] = [200, 307, 400, 401, 402, 403, 404, 408, 413, 422, 429, 498, 500, 503, 529, 599];
    const NAMES: [&str; 4] = ["retry-after", "retry-after-ms", "x-should-retry", "x-amzn-errortype"];
    let (cuts, bytes) = cut(input);
    let status = STATUSES[usize::from(cuts.first().copied().unwrap_or(2)) % STATUSES.len()];
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = cuts.get(1).zip(cuts.get(2..)).filter(|(_, value)| !value.is_empty())
        && let Ok(value) = HeaderValue::from_bytes(value)
    {
        headers.insert(HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]), value);
    }
    let text = serde_json::Value::String(String::from_utf8_lossy(bytes).into_owned());
    let value = serde_json::from_slice(bytes).unwrap_or(text);
    for failure in [place().refused(status, &headers, bytes), place().failed_in_stream(&value), place().page(bytes)] {
        assert!(failure.message.starts_with("acme ") && failure.message.len() < 2_000, "{}", failure.message);
        assert!(failure.provider_message.as_ref().is_none_or(|words| words.len() <= 2_048));
        assert!(!format!("{failure:?}").contains(KEY));
        if let Some(stated) = &failure.stated {
            let names = [&stated.code, &stated.parameter, &stated.instead];
            assert!(names.iter().all(|name| name.as_ref().is_none_or(|name| name.len() <= 100)));
            let numbers = [stated.limit_tokens, stated.requested_tokens, stated.input_tokens];
            assert!(numbers.iter().flatten().all(|number| (1..1 << 53).contains(number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every input that once told something is kept in `fuzz/corpus`, and looked at again here.
    #[test]
    fn the_corpora_hold() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        type Target = fn(&[u8]);
        let targets: [(&str, Target); 5] =
            [("sse", sse), ("answer", answer), ("tags", tags), ("spoken", spoken), ("refusal", refusal)];
        for (name, target) in targets {
            let mut count = 0;
            for file in std::fs::read_dir(folder.join(name)).unwrap() {
                let path = file.unwrap().path();
                println!("{}", path.display());
                target(&std::fs::read(path).unwrap());
                count += 1;
            }
            assert!(count >= 8, "{name}: {count} inputs");
        }
    }
}
