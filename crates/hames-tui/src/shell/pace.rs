//! When a frame may be drawn: at once after a quiet time, thirty times a second at most, and never where nothing changed.
//!
//! Time is passed in, so that a second is tested in no time.

use std::time::{Duration, Instant};

/// Between two frames at least: thirty a second.
const FRAME: Duration = Duration::from_millis(33);

/// What was drawn and what has changed since.
#[derive(Debug)]
pub(super) struct Pace {
    /// Before it no frame is drawn.
    earliest: Instant,
    has_drawn: bool,
    is_dirty: bool,
}

impl Pace {
    /// The first frame waits until then for what the terminal says of itself.
    pub(super) fn first_at(at: Instant) -> Self {
        Self { earliest: at, has_drawn: false, is_dirty: true }
    }

    /// Something has changed.
    pub(super) fn touch(&mut self) {
        self.is_dirty = true;
    }

    /// What the first frame waits for has come.
    pub(super) fn answered(&mut self, now: Instant) {
        if !self.has_drawn {
            self.hurry(now);
        }
    }

    /// The next frame waits for nothing: one of the old size is worse than one too many.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.earliest = self.earliest.min(now);
    }

    /// When the next frame is to be drawn; none where nothing changed.
    pub(super) fn due(&self) -> Option<Instant> {
        self.is_dirty.then_some(self.earliest)
    }

    /// A frame was drawn.
    pub(super) fn drawn(&mut self, now: Instant) {
        *self = Self { earliest: now + FRAME, has_drawn: true, is_dirty: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws whenever a frame is due, while something changes every `step` milliseconds; says when frames were drawn.
    fn frames(pace: &mut Pace, begun: Instant, milliseconds: u64, step: u64) -> Vec<u64> {
        let mut drawn = Vec::new();
        for at in 0..milliseconds {
            if step > 0 && at % step == 0 {
                pace.touch();
            }
            let now = begun + Duration::from_millis(at);
            if pace.due().is_some_and(|due| due <= now) {
                pace.drawn(now);
                drawn.push(at);
            }
        }
        drawn
    }

    #[test]
    fn frames_come_thirty_times_a_second_however_fast_things_change() {
        let begun = Instant::now();
        let mut pace = Pace::first_at(begun);
        for step in [1, 2, 10] {
            let drawn = frames(&mut pace, begun, 1_000, step);
            pace = Pace::first_at(begun);
            assert!((25..=31).contains(&drawn.len()), "{step} ms: {drawn:?}");
            assert!(drawn.windows(2).all(|pair| pair[1] - pair[0] >= 33), "{step} ms: {drawn:?}");
        }
    }

    #[test]
    fn nothing_is_due_where_nothing_changed_and_a_key_is_drawn_at_once_after_a_quiet_time() {
        let begun = Instant::now();
        let mut pace = Pace::first_at(begun);
        assert_eq!(frames(&mut pace, begun, 1_000, 0), [0]);
        assert_eq!(pace.due(), None);
        pace.touch();
        assert!(pace.due() <= Some(begun + Duration::from_millis(100)));
    }

    #[test]
    fn the_first_frame_waits_for_the_terminal_and_another_size_for_nothing() {
        let begun = Instant::now();
        let after = |ms| begun + Duration::from_millis(ms);
        let mut pace = Pace::first_at(after(30));
        assert_eq!(pace.due(), Some(after(30)));
        pace.answered(after(4));
        assert_eq!(pace.due(), Some(after(4)));
        pace.drawn(after(4));
        pace.touch();
        pace.answered(after(5));
        assert_eq!(pace.due(), Some(after(37)), "an answer that comes later hurries nothing");
        pace.hurry(after(6));
        assert_eq!(pace.due(), Some(after(6)));
    }
}
