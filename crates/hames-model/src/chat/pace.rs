//! When a stream that says many small pieces is read again.
//!
//! Each read wakes a task or two and asks the kernel, for a piece that is a word or less. So once many pieces have come
//! close together, what comes is read together, every [`BREATH`]. A stream that has only begun, one that is slow and one
//! that brings much at once are read as soon as something is there. Knows no clock.

use std::time::Duration;

use tokio::time::Instant;

/// Between two reads of a fast stream: a frame of a screen.
const BREATH: Duration = Duration::from_millis(16);
/// Reads close together that make a stream a fast one. Short answers and calls are never kept waiting.
const MANY: u32 = 32;

/// The pace of one stream.
#[derive(Debug, Default)]
pub(super) struct Pace {
    last: Option<Instant>,
    close: u32,
}

impl Pace {
    /// Something was read.
    pub(super) fn has_read(&mut self, now: Instant) {
        let is_close = self.last.is_some_and(|last| now.duration_since(last) < BREATH * 2);
        self.close = if is_close { self.close.saturating_add(1) } else { 0 };
        self.last = Some(now);
    }

    /// When to read again; `None` for as soon as something is there.
    pub(super) fn next(&self) -> Option<Instant> {
        self.last.filter(|_| self.close >= MANY).map(|last| last + BREATH)
    }

    /// More was there than is read at once: waiting would hold the stream up.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads so many pieces as they come, each so long after the one before or when it is time; says how often it waited.
    fn waits(pieces: u32, apart: Duration) -> u32 {
        let (mut pace, began) = (Pace::default(), Instant::now());
        let (mut now, mut waited, mut read) = (began, 0, 0);
        while read < pieces {
            if let Some(next) = pace.next().filter(|next| *next > now) {
                now = next;
                waited += 1;
            }
            let come = (now.duration_since(began).as_micros() / apart.as_micros().max(1)) as u32;
            read = come.max(read + 1);
            now = now.max(began + apart * read);
            pace.has_read(now);
        }
        waited
    }

    #[test]
    fn only_a_stream_that_stays_fast_is_read_in_breaths() {
        assert_eq!(waits(MANY, Duration::from_millis(2)), 0, "it has only begun");
        assert_eq!(waits(1_000, Duration::from_millis(40)), 0, "as fast as one reads along");
        let waited = waits(4_000, Duration::from_millis(2));
        assert!((400..=500).contains(&waited), "{waited} breaths in eight seconds");
    }

    #[test]
    fn a_pause_and_a_flood_end_it() {
        let mut now = Instant::now();
        let mut pace = Pace::default();
        let mut fast = |pace: &mut Pace| {
            for _ in 0..=MANY {
                now += BREATH / 4;
                pace.has_read(now);
            }
            assert_eq!(pace.next(), Some(now + BREATH));
            now
        };
        let last = fast(&mut pace);
        pace.has_read(last + BREATH * 2);
        assert_eq!(pace.next(), None);
        fast(&mut pace);
        pace.begin_anew();
        assert_eq!(pace.next(), None);
    }
}
