//! Live pieces on their way to whoever watches: many that come close together become one.
//!
//! A model may say hundreds of pieces a second. Nobody sees them apart, and each would cost the server and every client a
//! wake-up. So the first goes on at once, and what comes within [`EVERY`] behind it waits and is joined. This keeps only
//! what waits: the channel says what time it is, lets it go when it is due, and ahead of whatever must not wait.

use std::time::Duration;

use hames_protocol::{Envelope, Event};
use tokio::time::Instant;

/// Between two frames of live pieces. Screens are drawn no more often, and a model whose pieces
/// can be told apart is slower.
pub(crate) const EVERY: Duration = Duration::from_millis(33);
/// Text that waits at most, in bytes: a large piece is worth a frame of its own.
const MAX_HELD: usize = 16 * 1024;
/// Pieces are joined up to this length, in bytes.
const MAX_JOINED: usize = 4 * 1024;

/// The pieces that wait.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pieces: Vec<Envelope>,
    bytes: usize,
    /// When they go on.
    due: Option<Instant>,
    /// When others did; `None` where that does not count.
    released: Option<Instant>,
}

impl Held {
    /// Keeps a piece behind those that wait.
    pub(crate) fn keep(&mut self, piece: &Envelope, now: Instant) {
        self.bytes = self.bytes.saturating_add(text_of(&piece.event).map_or(0, str::len));
        let is_joined = self.pieces.last_mut().is_some_and(|last| join(last, piece));
        if !is_joined {
            self.pieces.push(piece.clone());
        }
        if self.bytes > MAX_HELD {
            self.due = Some(now);
        }
        self.due.get_or_insert_with(|| self.released.map_or(now, |released| now.max(released + EVERY)));
    }

    /// When what waits is to go on; `None` where nothing waits.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What waits, which goes on now.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<Envelope> {
        if self.due.take().is_some() {
            self.released = Some(now);
        }
        self.bytes = 0;
        std::mem::take(&mut self.pieces)
    }

    /// Something was told that does not wait: the next piece is a first one, and goes at once too.
    pub(crate) fn begin_anew(&mut self) {
        self.released = None;
    }
}

/// The text of a live piece; `None` for everything else.
pub(crate) fn text_of(event: &Event) -> Option<&str> {
    match event {
        Event::TextDelta(piece) => Some(&piece.text),
        Event::ReasoningDelta(piece) => Some(&piece.text),
        Event::ToolInputDelta(piece) => Some(&piece.text),
        Event::ToolOutputDelta(piece) => Some(&piece.text),
        _ => None,
    }
}

/// Whether `next` goes on in the block of `last` exactly where that ends, so that both are one piece.
pub(crate) fn follows(last: &Envelope, next: &Envelope) -> bool {
    let goes_on = |offset: u64, text: &str, next_offset: u64, next_text: &str| {
        offset + text.len() as u64 == next_offset && text.len() + next_text.len() <= MAX_JOINED
    };
    let is_one_block = match (&last.event, &next.event) {
        (Event::TextDelta(a), Event::TextDelta(b)) => {
            a.index == b.index && goes_on(a.offset, &a.text, b.offset, &b.text)
        }
        (Event::ReasoningDelta(a), Event::ReasoningDelta(b)) => {
            a.index == b.index && goes_on(a.offset, &a.text, b.offset, &b.text)
        }
        (Event::ToolInputDelta(a), Event::ToolInputDelta(b)) => {
            a.index == b.index && b.name.is_none() && goes_on(a.offset, &a.text, b.offset, &b.text)
        }
        (Event::ToolOutputDelta(a), Event::ToolOutputDelta(b)) => {
            a.call_id == b.call_id && goes_on(a.offset, &a.text, b.offset, &b.text)
        }
        _ => false,
    };
    is_one_block && (&last.run, last.step, &last.agent) == (&next.run, next.step, &next.agent)
}

/// Makes both pieces one where `next` follows `last`; says whether it does.
pub(crate) fn join(last: &mut Envelope, next: &Envelope) -> bool {
    if !follows(last, next) {
        return false;
    }
    let text = match &mut last.event {
        Event::TextDelta(piece) => &mut piece.text,
        Event::ReasoningDelta(piece) => &mut piece.text,
        Event::ToolInputDelta(piece) => &mut piece.text,
        Event::ToolOutputDelta(piece) => &mut piece.text,
        _ => return false,
    };
    text.push_str(text_of(&next.event).unwrap_or_default());
    true
}

#[cfg(test)]
mod tests {
    use hames_protocol::{ReasoningDelta, TextDelta, ToolInputDelta, ToolOutputDelta};
    use proptest::prelude::*;

    use super::*;

    fn text(index: u32, offset: u64, text: &str) -> Envelope {
        Envelope::detached(1, Event::TextDelta(TextDelta { index, offset, text: text.into() }))
    }

    fn input(index: u32, offset: u64, name: Option<&str>, text: &str) -> Envelope {
        let name = name.map(str::to_owned);
        Envelope::detached(1, Event::ToolInputDelta(ToolInputDelta { index, offset, name, text: text.into() }))
    }

    fn output(call: &str, offset: u64, text: &str) -> Envelope {
        let piece = ToolOutputDelta { call_id: call.into(), offset, text: text.into() };
        Envelope::detached(1, Event::ToolOutputDelta(piece))
    }

    fn reasoning(offset: u64, text: &str) -> Envelope {
        Envelope::detached(1, Event::ReasoningDelta(ReasoningDelta { index: 0, offset, text: text.into() }))
    }

    #[test]
    fn only_pieces_of_one_block_that_meet_are_joined() {
        let of = |agent: &str, step: u32| Envelope { agent: vec![agent.into()], step: Some(step), ..text(0, 2, "cd") };
        let long = "x".repeat(MAX_JOINED - 1);
        let cases = [
            (text(0, 0, "ab"), text(0, 2, "cd"), Some("abcd")),
            (text(0, 0, "é"), text(0, 2, "cd"), Some("écd")),
            (text(0, 0, "ab"), text(1, 2, "cd"), None),
            (text(0, 0, "ab"), text(0, 3, "cd"), None),
            (text(0, 0, "ab"), text(0, 0, "cd"), None),
            (text(0, 0, "ab"), of("child", 1), None),
            (Envelope { step: Some(1), ..text(0, 0, "ab") }, Envelope { step: Some(2), ..text(0, 2, "cd") }, None),
            (text(0, 0, &long), text(0, long.len() as u64, "y"), Some(&*format!("{long}y"))),
            (text(0, 0, &long), text(0, long.len() as u64, "yz"), None),
            (reasoning(4, "ab"), reasoning(6, "cd"), Some("abcd")),
            (reasoning(0, "ab"), text(0, 2, "cd"), None),
            (input(0, 0, Some("Read"), "{"), input(0, 1, None, "}"), Some("{}")),
            (input(0, 0, Some("Read"), "{"), input(1, 1, Some("Read"), "}"), None),
            (input(0, 0, None, "{"), input(0, 1, Some("Read"), "}"), None),
            (output("a", 0, "ab"), output("a", 2, "cd"), Some("abcd")),
            (output("a", 0, "ab"), output("b", 2, "cd"), None),
        ];
        for (last, next, expected) in cases {
            let mut both = last.clone();
            let is_joined = join(&mut both, &next);
            assert_eq!(is_joined, expected.is_some(), "{last:?} {next:?}");
            assert_eq!(text_of(&both.event), expected.or(text_of(&last.event)));
        }
    }

    #[test]
    fn the_first_piece_goes_at_once_and_what_follows_closely_goes_together() {
        let began = Instant::now();
        let mut held = Held::default();
        assert_eq!(held.due(), None);
        held.keep(&text(0, 0, "a"), began);
        assert_eq!(held.due(), Some(began));
        assert_eq!((held.release(began), held.due()), (vec![text(0, 0, "a")], None));
        let then = began + EVERY;
        held.keep(&text(0, 1, "b"), began + EVERY / 4);
        held.keep(&text(0, 2, "c"), began + EVERY / 2);
        held.keep(&reasoning(0, "d"), began + EVERY / 2);
        assert_eq!(held.due(), Some(then));
        assert_eq!(held.release(then), [text(0, 1, "bc"), reasoning(0, "d")]);
        // A model that pauses is heard at once again, and so is the first piece behind something that does not wait.
        let later = then + EVERY * 2;
        held.keep(&text(0, 3, "e"), later);
        assert_eq!(held.due(), Some(later));
        held.release(later);
        held.begin_anew();
        held.keep(&text(0, 4, "f"), later);
        assert_eq!(held.due(), Some(later));
    }

    #[test]
    fn much_text_does_not_wait() {
        let began = Instant::now();
        let mut held = Held::default();
        let large = "x".repeat(MAX_HELD);
        let ends = large.len() as u64;
        held.keep(&text(0, 0, "first"), began);
        held.release(began);
        held.keep(&text(0, 0, &large), began);
        assert_eq!(held.due(), Some(began + EVERY));
        held.keep(&text(0, ends, "y"), began);
        assert_eq!((held.due(), held.release(began).len()), (Some(began), 2));
        held.keep(&text(0, ends + 1, "z"), began);
        assert_eq!(held.due(), Some(began + EVERY), "the count begins anew");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases()))]
        #[test]
        fn whatever_waits_together_is_the_same_text_at_the_same_places(
            pieces in prop::collection::vec((0u32..2, "[a-zé]{0,6}", 0u64..30), 0..60),
        ) {
            let mut held = Held::default();
            let (mut ends, mut now) = ([0u64; 2], Instant::now());
            let (mut sent, mut came): ([String; 2], [String; 2]) = Default::default();
            let take = |batch: Vec<Envelope>, came: &mut [String; 2]| for envelope in batch {
                let Event::TextDelta(piece) = envelope.event else { panic!("another event came") };
                let block = &mut came[piece.index as usize];
                assert_eq!(piece.offset, block.len() as u64, "no gap and no double");
                block.push_str(&piece.text);
            };
            for (index, said, ms) in pieces {
                now += Duration::from_millis(ms);
                if held.due().is_some_and(|due| due <= now) {
                    take(held.release(now), &mut came);
                }
                let block = index as usize;
                held.keep(&text(index, ends[block], &said), now);
                ends[block] += said.len() as u64;
                sent[block].push_str(&said);
            }
            take(held.release(now), &mut came);
            prop_assert_eq!(sent, came);
        }
    }
}
