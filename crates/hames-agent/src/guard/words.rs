//! Text as words, from pieces that may be cut anywhere.
//!
//! A word is what stands between blanks, in lower case and without punctuation; where a script sets no blanks (Chinese,
//! Japanese, Thai and the like) every character is one. What would go on for ever without making a word (a line without
//! blanks, a row of dashes, empty lines) is counted in pieces, so that nothing that streams goes unseen.

/// Characters of a word at most; what goes on is the next one.
const LONGEST_WORD: u32 = 32;
/// Signs in a row that count as a word.
const SIGNS: u32 = 32;
/// Blanks in a row that count as a word.
const BLANKS: u32 = 64;

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// A word: its hash, and where it begins in the text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) hash: u64,
    pub(super) start: u64,
    /// It is made of digits alone.
    pub(super) is_number: bool,
}

/// The word that is being read.
#[derive(Clone, Debug)]
pub(super) struct Words {
    hash: u64,
    length: u32,
    start: u64,
    has_letters: bool,
    /// Signs since the last other character, and their hash.
    signs: (u32, u64),
    blanks: u32,
    /// Where the next character stands.
    pub(super) at: u64,
}

impl Default for Words {
    fn default() -> Self {
        Self { hash: SEED, length: 0, start: 0, has_letters: false, signs: (0, SEED), blanks: 0, at: 0 }
    }
}

impl Words {
    /// Reads a piece; every word that is complete is handed on.
    pub(super) fn feed(&mut self, piece: &str, mut take: impl FnMut(Word)) {
        for c in piece.chars() {
            self.read(c, &mut take);
            self.at += c.len_utf8() as u64;
        }
    }

    /// The text has ended: so has its last word.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Word)) {
        self.end_word(&mut take);
    }

    fn read(&mut self, c: char, take: &mut impl FnMut(Word)) {
        if c.is_ascii_alphanumeric() {
            self.letter(c.to_ascii_lowercase(), take);
        } else if c.is_whitespace() {
            self.end_word(take);
            self.signs = (0, SEED);
            self.blanks += 1;
            if self.blanks == BLANKS {
                self.blanks = 0;
                take(Word { hash: SEED, start: self.at, is_number: false });
            }
        } else if !c.is_alphanumeric() {
            self.blanks = 0;
            self.signs = (self.signs.0 + 1, mixed(self.signs.1, c));
            if self.signs.0 == SIGNS {
                take(Word { hash: self.signs.1, start: self.at, is_number: false });
                self.signs = (0, SEED);
            }
        } else if sets_no_blanks(c) {
            self.end_word(take);
            (self.blanks, self.signs) = (0, (0, SEED));
            take(Word { hash: mixed(SEED, c), start: self.at, is_number: false });
        } else {
            c.to_lowercase().for_each(|c| self.letter(c, take));
        }
    }

    fn letter(&mut self, c: char, take: &mut impl FnMut(Word)) {
        (self.blanks, self.signs) = (0, (0, SEED));
        if self.length == 0 {
            self.start = self.at;
        }
        self.hash = mixed(self.hash, c);
        self.length += 1;
        self.has_letters |= !c.is_ascii_digit();
        if self.length == LONGEST_WORD {
            self.end_word(take);
        }
    }

    fn end_word(&mut self, take: &mut impl FnMut(Word)) {
        if self.length > 0 {
            take(Word { hash: self.hash, start: self.start, is_number: !self.has_letters });
            (self.hash, self.length, self.has_letters) = (SEED, 0, false);
        }
    }
}

fn mixed(hash: u64, c: char) -> u64 {
    (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3)
}

/// Scripts that are written without blanks between words.
fn sets_no_blanks(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff      // Thai, Lao, Myanmar, Khmer
        | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff    // kana, Han
        | 0xf900..=0xfaff | 0xff66..=0xff9f | 0x20000..=0x3ffff) // compatibility, half-width kana, rare Han
}

/// Three words in a row, as one number.
pub(super) fn trigram(words: [u64; 3]) -> u64 {
    let turned = words[0].rotate_left(17) ^ words[1].rotate_left(31).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ words[2];
    // The maps below trust their keys to be spread.
    let spread = (turned ^ (turned >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    spread ^ (spread >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let (mut words, mut out) = (Words::default(), Vec::new());
        words.feed(text, |word| out.push(word));
        words.finish(|word| out.push(word));
        out
    }

    fn count(text: &str) -> usize {
        words(text).len()
    }

    #[test]
    fn case_and_punctuation_make_no_difference() {
        let hashes = |text: &str| words(text).iter().map(|word| word.hash).collect::<Vec<_>>();
        assert_eq!(hashes("Don't stop: it's ÄRGER."), hashes("dont stop its ärger"));
        assert_ne!(hashes("step 1"), hashes("step 2"));
        assert_eq!(words("ab  cd").iter().map(|word| word.start).collect::<Vec<_>>(), [0, 4]);
    }

    #[test]
    fn scripts_without_blanks_have_a_word_for_each_character() {
        for (text, number) in
            [("", 0), ("  ", 0), ("...", 0), ("漢字です", 4), ("ไทย", 3), ("한국어 단어", 2), ("ok漢字ok", 4)]
        {
            assert_eq!(count(text), number, "{text}");
        }
    }

    #[test]
    fn what_never_ends_is_counted_in_pieces() {
        for (piece, number) in [("a", 313), ("-", 312), ("\n", 156), ("!?", 625)] {
            assert_eq!(count(&piece.repeat(10_000)), number, "{piece:?}");
        }
    }

    #[test]
    fn how_the_text_is_cut_makes_no_difference() {
        let text = "Let me look again, über die 漢字 and so on…  Next---line\n\n\nthen 'quoted' words.";
        for size in 1..9 {
            let (mut reader, mut out) = (Words::default(), Vec::new());
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                reader.feed(&piece.iter().collect::<String>(), |word| out.push(word));
            }
            reader.finish(|word| out.push(word));
            assert_eq!(out, words(text));
        }
    }
}
