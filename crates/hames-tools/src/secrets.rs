//! Known secret values, masked wherever they would leave a call.
//!
//! By value, never by the look of a text: what is not known is not touched. A value is found as it is and as it stands
//! inside a JSON string.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use aho_corasick::{AhoCorasick, Input, MatchKind};

/// Shorter values are words that occur by chance.
const MIN_SECRET: usize = 8;
/// What stands in a secret's place.
const MARKER: &str = "[masked secret]";
/// Bytes held of a stream at once.
const CHUNK: usize = 64 << 10;

/// Values that no result, event, blob or log may carry.
#[derive(Clone, Default)]
pub struct Secrets {
    matcher: Option<AhoCorasick>,
    /// Every spelling, longest first.
    values: Vec<String>,
}

impl Secrets {
    /// Masks these values. Values under 8 bytes are left out: masking them would damage ordinary text.
    pub fn new(values: Vec<String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for value in values {
            let value = value.trim();
            if value.len() < MIN_SECRET {
                continue;
            }
            let quoted = serde_json::Value::from(value).to_string();
            all.push(quoted[1..quoted.len() - 1].to_owned());
            all.push(value.to_owned());
        }
        all.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        all.dedup();
        let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&all);
        Self { matcher: matcher.ok().filter(|_| !all.is_empty()), values: all }
    }

    /// Whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.matcher.is_none()
    }

    /// The text without secrets.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.matcher {
            Some(matcher) if matcher.is_match(text) => {
                let mut out = String::with_capacity(text.len());
                matcher.replace_all_with(text, &mut out, |_, _, out| {
                    out.push_str(MARKER);
                    true
                });
                Cow::Owned(out)
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// The bytes without secrets.
    pub fn mask_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match &self.matcher {
            Some(matcher) if matcher.is_match(bytes) => {
                let mut out = Vec::with_capacity(bytes.len());
                matcher.replace_all_with_bytes(bytes, &mut out, |_, _, out| {
                    out.extend_from_slice(MARKER.as_bytes());
                    true
                });
                Cow::Owned(out)
            }
            _ => Cow::Borrowed(bytes),
        }
    }

    /// Copies `from` to `to` without secrets, in bounded memory. Says whether there were any.
    pub(crate) fn mask_stream(&self, from: &mut dyn Read, to: &mut dyn Write) -> io::Result<bool> {
        let longest = self.values.first().map_or(0, String::len);
        let mut held: Vec<u8> = Vec::with_capacity(CHUNK + longest);
        let mut found = false;
        loop {
            let read = Read::take(&mut *from, CHUNK as u64).read_to_end(&mut held)?;
            let at_end = read == 0;
            // A match that begins before this point is whole in what is held; a later one may still grow.
            let safe = if at_end { held.len() } else { held.len().saturating_sub(longest.max(1) - 1) };
            let mut done = 0;
            if let Some(matcher) = &self.matcher {
                while let Some(hit) = matcher.find(Input::new(&held).range(done..)) {
                    if hit.start() >= safe {
                        break;
                    }
                    to.write_all(&held[done..hit.start()])?;
                    to.write_all(MARKER.as_bytes())?;
                    done = hit.end();
                    found = true;
                }
            }
            let keep_from = done.max(safe);
            to.write_all(&held[done..keep_from])?;
            held.drain(..keep_from);
            if at_end {
                return Ok(found);
            }
        }
    }

    /// How much of `text`, from its beginning, no further text can turn into another secret.
    pub(crate) fn settled(&self, text: &str) -> usize {
        let open = self.values.iter().map(|value| open_end(text, value)).max().unwrap_or(0);
        let mut settled = text.len() - open;
        // A whole secret stays in one piece.
        let hits = self.matcher.iter().flat_map(|matcher| matcher.find_iter(text));
        if let Some(hit) = hits.take_while(|hit| hit.start() < settled).find(|hit| hit.end() > settled) {
            settled = hit.start();
        }
        settled
    }
}

/// Bytes at the end of `text` that begin `value` without being all of it. Both are UTF-8, so they begin at a character
/// whenever `value` does.
fn open_end(text: &str, value: &str) -> usize {
    let most = value.len().saturating_sub(1).min(text.len());
    (1..=most).rev().find(|n| text.as_bytes().ends_with(&value.as_bytes()[..*n])).unwrap_or(0)
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the values.
        f.debug_struct("Secrets").field("spellings", &self.values.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-live-0123456789";

    fn streamed(secrets: &Secrets, bytes: &[u8], piece: usize) -> Vec<u8> {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let n = self.0.len().min(self.1).min(buf.len());
                buf[..n].copy_from_slice(&self.0[..n]);
                self.0 = &self.0[n..];
                Ok(n)
            }
        }
        let mut out = Vec::new();
        secrets.mask_stream(&mut Pieces(bytes, piece), &mut out).unwrap();
        out
    }

    #[test]
    fn a_secret_is_masked_wherever_it_stands() {
        let secrets = Secrets::new(vec![KEY.into(), "pa\"ss\\word\n!".into(), "ключ-секрет".into()]);
        for (text, wanted) in [
            ("", ""),
            ("nothing here: sk-live-", "nothing here: sk-live-"),
            (KEY, MARKER),
            ("a sk-live-0123456789 b sk-live-0123456789", "a [masked secret] b [masked secret]"),
            ("sk-live-0123456789sk-live-0123456789", "[masked secret][masked secret]"),
            ("{\"k\":\"pa\\\"ss\\\\word\\n!\"}", "{\"k\":\"[masked secret]\"}"),
            ("raw pa\"ss\\word\n!", "raw [masked secret]"),
            ("ключ-секрет.", "[masked secret]."),
            ("Authorization: Bearer sk-live-0123456789\r\n", "Authorization: Bearer [masked secret]\r\n"),
        ] {
            assert_eq!(secrets.mask(text), wanted, "{text:?}");
            assert_eq!(secrets.mask_bytes(text.as_bytes()), wanted.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn the_longer_of_two_secrets_wins() {
        for order in [["abcdefgh", "abcdefghijkl"], ["abcdefghijkl", "abcdefgh"]] {
            let secrets = Secrets::new(order.map(String::from).to_vec());
            assert_eq!(secrets.mask("x abcdefghijkl y abcdefghi"), "x [masked secret] y [masked secret]i");
        }
    }

    #[test]
    fn short_and_blank_values_are_left_alone() {
        let secrets = Secrets::new(vec!["".into(), "        ".into(), "1234567".into(), " true ".into()]);
        assert!(secrets.is_empty());
        assert_eq!(secrets.mask("1234567 true"), "1234567 true");
    }

    #[test]
    fn debug_output_never_shows_a_value() {
        assert!(!format!("{:?}", Secrets::new(vec![KEY.into()])).contains("sk-live"));
    }

    #[test]
    fn what_may_become_a_secret_is_not_settled() {
        let secrets = Secrets::new(vec![KEY.into(), "élan-vital".into(), "abcabcabc".into()]);
        for (text, settled) in [
            ("", 0),
            ("plain", 5),
            ("x s", 2),
            ("x sk-live-012345678", 2),
            (KEY, KEY.len()),
            ("vive l'é", 7),
            ("abcabcabc", 0),
            ("abcabcabc.", 10),
        ] {
            assert_eq!(secrets.settled(text), settled, "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::cases())]
        #[test]
        fn a_stream_is_masked_like_the_whole(
            parts in prop::collection::vec(prop_oneof![Just(KEY.to_owned()), Just("sk-live-".to_owned()), "[a-s\\-]{0,9}"], 0..40),
            piece in 1usize..50,
            fill in 0usize..3,
        ) {
            let mut text = "-".repeat(fill * (CHUNK - 7));
            text.extend(parts);
            let secrets = Secrets::new(vec![KEY.into(), "sk-live-0".into()]);
            let whole = secrets.mask(&text).into_owned();
            prop_assert!(!whole.contains(KEY));
            let out = streamed(&secrets, text.as_bytes(), piece);
            prop_assert_eq!(String::from_utf8(out).unwrap(), whole);
        }
    }
}
