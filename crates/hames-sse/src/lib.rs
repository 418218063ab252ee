//! Server-sent events: bytes in, events out.
//!
//! A push parser for the `text/event-stream` line format: LF, CR and CRLF line ends at any split, a byte-order mark, zero
//! or one blank after the colon, comments, data over several lines, an unterminated tail. Servers that are not quite
//! SSE are met half-way: a line that is no field at all is handed on as [`Event::Stray`] (plain JSON and NDJSON bodies
//! arrive that way), and two JSON documents without a blank line between them are two events.
//!
//! It knows nothing of JSON beyond that, keeps no more than one event, and reads no clock. How many bytes an event may have
//! is for whoever reads to say.

#![forbid(unsafe_code)]

use memchr::memchr2;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a stream is made of. Comments are not: they say nothing, not even that the model is alive.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An event: its name (empty where it has none) and its data.
    Data {
        /// The name.
        name: &'a [u8],
        /// The data.
        data: &'a [u8],
    },
    /// A line that is neither field nor comment.
    Stray(&'a [u8]),
}

/// The stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event of the stream is larger than {} MB", .limit / 1024 / 1024)]
pub struct TooLarge {
    /// Bytes it might have had.
    pub limit: usize,
}

/// The parser. Feed it what the network gives, in whatever pieces.
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    past_first_line: bool,
    skip_lf: bool,
}

impl Reader {
    /// A reader of events, and lines, of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            past_first_line: false,
            skip_lf: false,
        }
    }

    /// Takes in bytes and gives every event they complete to `sink`.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Event<'_>)) -> Result<(), TooLarge> {
        loop {
            if self.skip_lf && !bytes.is_empty() {
                self.skip_lf = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                }
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                return self.keep(bytes);
            };
            self.skip_lf = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&bytes[..end], sink)?;
            } else {
                self.keep(&bytes[..end])?;
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, sink)?;
                self.line = line;
                self.line.clear();
            }
            bytes = &bytes[end + 1..];
        }
    }

    /// The body has ended: gives what was left without a line end or a blank line.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), TooLarge> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, sink)?;
        }
        self.dispatch(sink);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, mut line: &[u8], sink: &mut dyn FnMut(Event<'_>)) -> Result<(), TooLarge> {
        if !self.past_first_line {
            self.past_first_line = true;
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(sink);
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.take_data(value, sink),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
                Ok(())
            }
            b"" | b"id" | b"retry" => Ok(()),
            _ => {
                sink(Event::Stray(line));
                Ok(())
            }
        }
    }

    fn take_data(&mut self, value: &[u8], sink: &mut dyn FnMut(Event<'_>)) -> Result<(), TooLarge> {
        // No JSON document continues with `{` on the line after a closing brace: the blank line was forgotten.
        if self.has_data && ends_document(&self.data) && starts_document(value) {
            self.dispatch(sink);
        }
        if self.data.len() + value.len() > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        if self.has_data {
            sink(Event::Data { name: &self.name, data: &self.data });
            self.has_data = false;
            self.data.clear();
        }
        self.name.clear();
    }
}

fn ends_document(data: &[u8]) -> bool {
    data.trim_ascii_end().ends_with(b"}")
}

fn starts_document(value: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    value.starts_with(b"{") || value.starts_with(b"[DONE]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 64 * 1024;

    type Owned = (String, String);

    /// Few by default, more where somebody has time.
    fn cases() -> u32 {
        std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
    }

    fn read_in(pieces: &[&[u8]]) -> Vec<Owned> {
        let mut events = Vec::new();
        let mut sink = |event: Event<'_>| {
            events.push(match event {
                Event::Data { name, data } => (text(name), text(data)),
                Event::Stray(line) => ("<stray>".to_owned(), text(line)),
            });
        };
        let mut reader = Reader::new(LIMIT);
        for piece in pieces {
            reader.feed(piece, &mut sink).unwrap();
        }
        reader.finish(&mut sink).unwrap();
        events
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn data(items: &[&str]) -> Vec<Owned> {
        items.iter().map(|d| (String::new(), (*d).to_owned())).collect()
    }

    #[test]
    fn the_line_format_is_read_in_all_its_forms() {
        let cases: &[(&str, Vec<Owned>)] = &[
            ("data: a\n\ndata: b\n\n", data(&["a", "b"])),
            ("data:a\n\ndata:b\n\n", data(&["a", "b"])),
            ("data:  a\n\n", data(&[" a"])),
            ("data: a\r\n\r\ndata: b\r\n\r\n", data(&["a", "b"])),
            ("data: a\r\rdata: b\r\r", data(&["a", "b"])),
            ("data: a\r\n\ndata: b\n\r\n", data(&["a", "b"])),
            ("\u{feff}data: a\n\n", data(&["a"])),
            (": ping\n\ndata: a\n: ping\n\n:\n\n", data(&["a"])),
            ("data: a\ndata: b\n\n", data(&["a\nb"])),
            ("data\n\ndata:\n\n", data(&["", ""])),
            ("id: 7\nretry: 100\ndata: a\n\n", data(&["a"])),
            ("event: error\ndata: a\n\ndata: b\n\n", vec![("error".into(), "a".into()), (String::new(), "b".into())]),
            ("event: lost\n\ndata: b\n\n", data(&["b"])),
            ("data: a", data(&["a"])),
            ("data: a\n", data(&["a"])),
            ("data: a\r", data(&["a"])),
            ("\n\n\ndata: a\n\n\n\n", data(&["a"])),
            ("data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n", data(&["{\"a\":1}", "{\"a\":2}", "[DONE]"])),
            ("{\"error\":\"x\"}\n", vec![("<stray>".into(), "{\"error\":\"x\"}".into())]),
            ("datax: a\n\n", vec![("<stray>".into(), "datax: a".into())]),
        ];
        for (input, expected) in cases {
            assert_eq!(&read_in(&[input.as_bytes()]), expected, "{input:?}");
        }
    }

    #[test]
    fn every_cut_of_a_stream_gives_the_same_events() {
        let stream =
            "\u{feff}: hi\r\ndata: 台🙂\r\n\r\nevent: e\rdata:x\r\rdata: {\"k\":\ndata: 1}\n\n{\"s\":1}\r\ndata: end";
        let whole = read_in(&[stream.as_bytes()]);
        for at in 0..=stream.len() {
            let (a, b) = stream.as_bytes().split_at(at);
            assert_eq!(read_in(&[a, b]), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(read_in(&bytes), whole);
    }

    #[test]
    fn an_event_or_a_line_past_the_limit_is_a_typed_error() {
        let filler = vec![b'x'; 4 * 1024];
        for line_end in ["", "\ndata: "] {
            let mut reader = Reader::new(LIMIT);
            let mut result = reader.feed(b"data: ", &mut |_| {});
            for _ in 0..17 {
                result = result.and_then(|()| reader.feed(&filler, &mut |_| {}));
                result = result.and_then(|()| reader.feed(line_end.as_bytes(), &mut |_| {}));
            }
            assert_eq!(result, Err(TooLarge { limit: LIMIT }), "{line_end:?}");
        }
    }

    #[test]
    fn what_has_not_ended_is_no_event_until_the_body_has() {
        let mut reader = Reader::new(LIMIT);
        let mut events = 0;
        reader.feed(b"data: cut in the mid", &mut |_| events += 1).unwrap();
        reader.feed(b"dle\n", &mut |_| events += 1).unwrap();
        assert_eq!(events, 0);
        let mut last = Vec::new();
        reader.finish(&mut |event| last.push(format!("{event:?}"))).unwrap();
        assert_eq!(last.len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

        #[test]
        fn arbitrary_bytes_split_anywhere_give_the_same_events(
            lines in prop::collection::vec("(data|event|id|: c|\\{\"a\"|x)?:? ?[a-z{}\u{e9}]{0,6}(\n|\r|\r\n|\n\n)", 0..12),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let bytes = lines.concat().into_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(read_in(&pieces), read_in(&[&bytes]));
        }
    }
}
