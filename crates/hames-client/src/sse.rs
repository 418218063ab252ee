//! Server-sent events as our own server writes them: bytes in, events out.
//!
//! The line format of `text/event-stream` (LF, CR and CRLF at any split, comments, data over several lines), with a
//! bound. It knows nothing of what the data says and reads no clock. The reader of `hames-model` is another: that one meets
//! providers half-way, this one takes only what a server of Hames may write.

use memchr::memchr2;

/// Bytes one event may have: an envelope with the longest answer and the largest call that a log takes.
pub(crate) const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// An event of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// Its name; empty where it has none.
    pub(crate) name: &'a [u8],
    /// Its data.
    pub(crate) data: &'a [u8],
}

/// One event passed [`MAX_EVENT_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// The reader. Feed it what the network gives, in whatever pieces.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    skip_lf: bool,
}

impl Reader {
    /// Takes in bytes and gives every event they complete to `sink`. What is not completed by a blank line is no event.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
        loop {
            if self.skip_lf && !bytes.is_empty() {
                self.skip_lf = false;
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
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

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], sink: &mut dyn FnMut(Frame<'_>)) -> Result<(), TooLarge> {
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
            b"data" => {
                if self.data.len() + value.len() > MAX_EVENT_BYTES {
                    return Err(TooLarge);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // `id` repeats the seq that is in the data; `retry` is for browsers; what else there is, is for later.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        if self.has_data {
            sink(Frame { name: &self.name, data: &self.data });
            self.has_data = false;
            self.data.clear();
        }
        self.name.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = Reader::default();
        let mut frames = Vec::new();
        for piece in pieces {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            reader.feed(piece, &mut |frame| frames.push((text(frame.name), text(frame.data)))).unwrap();
        }
        frames
    }

    fn frame(name: &str, data: &str) -> (String, String) {
        (name.into(), data.into())
    }

    #[test]
    fn frames_comments_and_line_ends_are_read_and_an_unfinished_event_is_none() {
        let cases: [(&str, Vec<(String, String)>); 7] = [
            ("id: 3\ndata: {\"a\":1}\n\n", vec![frame("", "{\"a\":1}")]),
            (":\n\n:beat\n\ndata:x\n\n", vec![frame("", "x")]),
            ("event: refusal\r\ndata: no\r\n\r\n", vec![frame("refusal", "no")]),
            ("data: a\rdata: b\r\r", vec![frame("", "a\nb")]),
            ("event: left\n\ndata: y\n\n", vec![frame("", "y")]),
            ("data\n\n", vec![frame("", "")]),
            ("data: cut in the mid", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn an_event_without_end_is_given_up_at_the_bound() {
        let mut reader = Reader::default();
        let piece = vec![b'x'; 1024 * 1024];
        let mut fed = 0;
        while reader.feed(&piece, &mut |_| {}).is_ok() {
            fed += piece.len();
            assert!(fed <= MAX_EVENT_BYTES);
        }
        assert_eq!(fed, MAX_EVENT_BYTES);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases()))]
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            lines in prop::collection::vec("(data|event|id|: x)?:? ?[a-z]{0,6}", 0..12),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let text = lines.join(end) + end + end;
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            at.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for to in at.into_iter().chain([text.len()]) {
                pieces.push(&text.as_bytes()[from..to]);
                from = to;
            }
            prop_assert_eq!(read(&pieces), read(&[text.as_bytes()]));
        }
    }
}
