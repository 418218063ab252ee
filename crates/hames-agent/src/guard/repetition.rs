//! How much of a text repeats itself, while it streams.
//!
//! The measure is the share of word trigrams that have been there before: over the whole text, over its last 240 words and
//! over its last 960. The short window sees a loop soon after a long good beginning, the long one sees loops of whole
//! paragraphs. A short line with a word that was never used before is an entry of a list: what it shares with the other
//! entries is no repetition. A number alone makes no entry, or whoever counts its rounds would never be found. Every word
//! costs a few map operations, and memory is bounded.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use hames_context::Counted;

use super::words::{Word, Words, trigram};

/// Words of the windows.
const SHORT: usize = 240;
const LONG: usize = 960;
/// Different trigrams of the whole text that are kept. Beyond them only the windows count.
const WHOLE: usize = 1 << 14;
/// Words of a line that may be an entry of a list.
const ENTRY: usize = 30;
/// Tokens between two looks.
const LOOK_EVERY: u64 = 32;

/// Keys that are hashes already.
#[derive(Clone, Copy, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

pub(super) type Trigrams = HashSet<u64, BuildHasherDefault<AsItIs>>;
type Counts = HashMap<u64, u32, BuildHasherDefault<AsItIs>>;

/// A trigram of the last words.
#[derive(Clone, Copy)]
struct Recent {
    hash: u64,
    /// Where it begins, in bytes.
    start: u64,
    is_repeated: bool,
}

/// The present line, while it is short.
#[derive(Default)]
struct Line {
    words: usize,
    has_new_word: bool,
    held: Vec<Recent>,
    /// Lines before it.
    number: u64,
}

/// The text so far.
#[derive(Default)]
pub(super) struct Repetition {
    words: Words,
    last: [Option<Word>; 2],
    known_words: Trigrams,
    line: Line,
    seen: Trigrams,
    total: usize,
    recent: VecDeque<Recent>,
    short: Counts,
    long: Counts,
    counted: Counted,
    looked_at: u64,
}

impl Repetition {
    /// Reads a piece that follows the last one.
    pub(super) fn feed(&mut self, piece: &str) {
        let at = self.words.at;
        self.feed_at(piece, at);
    }

    /// Reads a piece that begins at this byte of the text.
    pub(super) fn feed_at(&mut self, piece: &str, at: u64) {
        self.counted.add(piece);
        let mut words = std::mem::take(&mut self.words);
        words.at = at;
        for part in piece.split_inclusive('\n') {
            words.feed(part, |word| self.take(word));
            if part.ends_with('\n') {
                self.end_line();
            }
        }
        self.words = words;
    }

    /// Estimated tokens so far, as the budget counts them.
    pub(super) fn tokens(&self) -> u64 {
        self.counted.tokens()
    }

    /// Whether enough has come since the last look; then this is one.
    pub(super) fn is_due(&mut self) -> bool {
        let tokens = self.tokens();
        let is_due = tokens >= self.looked_at + LOOK_EVERY;
        if is_due {
            self.looked_at = tokens;
        }
        is_due
    }

    /// The share of trigrams that repeat others, 0 to 1: the highest of the three.
    pub(super) fn share(&self) -> f64 {
        let of = |different: usize, total: usize| {
            if total < 3 { 0.0 } else { 1.0 - different as f64 / total as f64 }
        };
        let whole = if self.seen.len() < WHOLE { of(self.seen.len(), self.total) } else { 0.0 };
        let in_short = self.recent.len().min(SHORT - 2);
        whole.max(of(self.short.len(), in_short)).max(of(self.long.len(), self.recent.len()))
    }

    /// Where the repetition begins: the first repeated trigram from which on repeats outweigh what is new, in bytes.
    pub(super) fn begins_at(&self) -> Option<u64> {
        let (mut best, mut weight, mut start) = (0i64, 0i64, None);
        for recent in self.recent.iter().rev() {
            weight += if recent.is_repeated { 1 } else { -1 };
            if recent.is_repeated && weight >= best {
                (best, start) = (weight, Some(recent.start));
            }
        }
        start
    }

    fn take(&mut self, word: Word) {
        let is_new = self.known_words.len() < WHOLE && self.known_words.insert(word.hash);
        self.line.has_new_word |= is_new && !word.is_number;
        self.line.words += 1;
        if let [Some(first), Some(second)] = self.last {
            let hash = trigram([first.hash, second.hash, word.hash]);
            self.line.held.push(Recent { hash, start: first.start, is_repeated: false });
        }
        self.last = [self.last[1], Some(word)];
        if self.line.words >= ENTRY {
            self.release(false);
        }
    }

    fn end_line(&mut self) {
        let is_entry = self.line.words < ENTRY && self.line.has_new_word;
        self.release(is_entry);
        self.line = Line { number: self.line.number + 1, held: std::mem::take(&mut self.line.held), ..Line::default() };
    }

    /// Counts what was held of the line. What an entry of a list shares with others is counted as its own.
    fn release(&mut self, is_entry: bool) {
        let mut held = std::mem::take(&mut self.line.held);
        for mut recent in held.drain(..) {
            if is_entry && self.seen.contains(&recent.hash) {
                recent.hash = trigram([recent.hash, self.line.number, self.total as u64]);
            }
            self.count(recent);
        }
        self.line.held = held;
    }

    fn count(&mut self, mut recent: Recent) {
        self.total += 1;
        recent.is_repeated = if self.seen.len() < WHOLE {
            !self.seen.insert(recent.hash)
        } else {
            self.seen.contains(&recent.hash) || self.long.contains_key(&recent.hash)
        };
        *self.short.entry(recent.hash).or_default() += 1;
        *self.long.entry(recent.hash).or_default() += 1;
        self.recent.push_back(recent);
        if let Some(left) = self.recent.len().checked_sub(SHORT - 1) {
            leave(&mut self.short, self.recent[left].hash);
        }
        if self.recent.len() > LONG - 2
            && let Some(oldest) = self.recent.pop_front()
        {
            leave(&mut self.long, oldest.hash);
        }
    }
}

fn leave(counts: &mut Counts, hash: u64) {
    if let Some(count) = counts.get_mut(&hash) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&hash);
        }
    }
}

/// The different trigrams of a text, of its first `most` words.
pub(super) fn trigrams(text: &str, most: usize) -> Trigrams {
    let (mut words, mut hashes) = (Words::default(), Vec::new());
    words.feed(text, |word| {
        if hashes.len() < most {
            hashes.push(word.hash);
        }
    });
    words.finish(|word| hashes.push(word.hash));
    hashes.windows(3).map(|three| trigram([three[0], three[1], three[2]])).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same share, counted the slow way.
    fn slow(text: &str) -> f64 {
        let (mut words, mut hashes) = (Words::default(), Vec::new());
        words.feed(text, |word| hashes.push(word.hash));
        let all: Vec<u64> = hashes.windows(3).map(|w| trigram([w[0], w[1], w[2]])).collect();
        let share = |part: &[u64]| {
            let different: HashSet<&u64> = part.iter().collect();
            if part.len() < 3 { 0.0 } else { 1.0 - different.len() as f64 / part.len() as f64 }
        };
        let last = |words: usize| &all[all.len().saturating_sub(words - 2)..];
        share(&all).max(share(last(SHORT))).max(share(last(LONG)))
    }

    fn read(text: &str) -> Repetition {
        let mut repetition = Repetition::default();
        repetition.feed(text);
        repetition
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_rolling_share_is_that_of_a_fresh_count(
            words in prop::collection::vec(0u8..40, 0..1_400), cut in 1usize..50,
        ) {
            let text: String = words.iter().map(|word| format!("w{word} ")).collect();
            let mut rolling = Repetition::default();
            for piece in text.as_bytes().chunks(cut) {
                rolling.feed(std::str::from_utf8(piece).expect("ASCII"));
            }
            rolling.release(false);
            prop_assert!((rolling.share() - slow(&text)).abs() < 1e-12);
            prop_assert!(rolling.recent.len() <= LONG - 2 && rolling.short.len() <= SHORT - 2);
        }
    }

    #[test]
    fn a_loop_is_found_behind_a_long_good_beginning_whatever_its_length() {
        let good: String = (0..4_000).map(|n| format!("good{n} ")).collect();
        for (period, most) in [(2, 150), (6, 150), (20, 160), (60, 200), (150, 660), (300, 820)] {
            let mut repetition = read(&good);
            let mut words = 0;
            while repetition.share() < 0.5 {
                repetition.feed(&format!("loop{} ", words % period));
                words += 1;
                assert!(words <= most, "{period}: {words}");
            }
        }
    }

    #[test]
    fn the_beginning_of_a_repetition_is_that_of_its_second_round() {
        let good = "This sentence stands alone and one more stands beside it as usual. ";
        let round = "And then the river carried all the boats away to the sea. ";
        let text = format!("{good}{}", round.repeat(8));
        assert_eq!(read(&text).begins_at(), Some((good.len() + round.len()) as u64));
        assert_eq!(read(good).begins_at(), None);
    }

    #[test]
    fn entries_of_a_list_are_no_repetition_and_counting_rounds_is_one() {
        let lines = |line: &str| (1..60).map(|n| line.replace("{n}", &n.to_string()) + "\n").collect::<String>();
        for (line, most) in [
            ("{n}. src/module_{n}.rs: the handler is fine, nothing to change", 0.1),
            ("- caller_{n} keeps what it gets until the session ends and needs no change", 0.1),
        ] {
            assert!(read(&lines(line)).share() < most, "{line}");
        }
        for line in [
            "{n}. let me look at the handler again before I change anything",
            "try it once more, round {n} of it all now",
        ] {
            assert!(read(&lines(line)).share() > 0.5, "{line}");
        }
    }

    #[test]
    fn memory_is_bounded_and_a_loop_is_still_seen_beyond_it() {
        let mut repetition = Repetition::default();
        (0..(WHOLE + 20_000)).for_each(|n| repetition.feed(&format!("w{n} ")));
        assert!(repetition.seen.len() <= WHOLE && repetition.share() < 0.01);
        (0..200).for_each(|n| repetition.feed(&format!("loop{} ", n % 7)));
        assert!(repetition.share() > 0.5);
        assert!(repetition.begins_at().is_some());
    }
}
