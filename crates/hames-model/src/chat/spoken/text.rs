//! The steps all forms are made of: blanks, words of a form, names of tools, what stands up to a word.

use super::{Read, Reader, Stop};

/// Bytes of the longest word, its bars of full width.
const MAX_WORD_BYTES: usize = 64;

impl<'t> Reader<'t> {
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Whether the text ends here.
    pub(super) fn is_over(&self) -> bool {
        self.at == self.text.len()
    }

    /// One of these words, the longest that is there.
    pub(super) fn word(&mut self, words: &[&'static str]) -> Read<&'static str> {
        let mut may_come = false;
        let mut found: Option<(&'static str, usize)> = None;
        for word in words {
            match begins(self.rest(), word) {
                Ok(len) if found.is_none_or(|(_, longest)| len > longest) => found = Some((word, len)),
                Ok(_) | Err(Stop::No) => {}
                Err(Stop::More) => may_come = true,
            }
        }
        match found {
            // A longer one may still come.
            _ if may_come && !self.is_end => Err(Stop::More),
            Some((word, len)) => {
                self.at += len;
                Ok(word)
            }
            None => Err(if may_come { Stop::More } else { Stop::No }),
        }
    }

    /// One of these words where it is there; it need not be.
    pub(super) fn maybe(&mut self, words: &[&'static str]) -> Read<bool> {
        match self.word(words) {
            Ok(_) => Ok(true),
            Err(Stop::More) if !self.is_end => Err(Stop::More),
            Err(_) => Ok(false),
        }
    }

    /// The name of a tool that was offered.
    pub(super) fn tool(&mut self) -> Read<&'t str> {
        let rest = self.rest();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        if end == rest.len() && !self.is_end {
            let may_be = self.offered.iter().any(|tool| tool.name.starts_with(name));
            return Err(if may_be { Stop::More } else { Stop::No });
        }
        self.offered_as(name)?;
        self.at += end;
        Ok(name)
    }

    pub(super) fn offered_as(&self, name: &str) -> Read<()> {
        if self.offered.iter().any(|tool| tool.name == name) { Ok(()) } else { Err(Stop::No) }
    }

    /// What stands before `word`, which is passed as well.
    pub(super) fn until(&mut self, word: &str, most: usize) -> Read<&'t str> {
        let rest = self.rest();
        match find(rest, word) {
            Some((at, len)) if at <= most => {
                self.at += at + len;
                Ok(&rest[..at])
            }
            Some(_) => Err(Stop::No),
            None if rest.len() > most.saturating_add(MAX_WORD_BYTES) => Err(Stop::No),
            None => Err(Stop::More),
        }
    }

    /// Tries one way of reading after the other; what one has taken in vain is given back.
    pub(super) fn either(&mut self, ways: &[fn(&mut Self) -> Read<()>]) -> Read<()> {
        let (at, calls) = (self.at, self.calls.len());
        let mut outcome = Err(Stop::No);
        for way in ways {
            match way(self) {
                Ok(()) => return Ok(()),
                Err(Stop::More) => outcome = Err(Stop::More),
                Err(Stop::No) => {}
            }
            self.at = at;
            self.calls.truncate(calls);
        }
        outcome
    }
}

/// Where a word is in a text, and how long there.
fn find(text: &str, word: &str) -> Option<(usize, usize)> {
    let first = word.chars().next()?;
    text.match_indices(first).find_map(|(at, _)| Some((at, begins(&text[at..], word).ok()?)))
}

/// How much of a text a word is; bars and blanks of full width are those of ASCII.
fn begins(text: &str, word: &str) -> Read<usize> {
    let mut text = text.char_indices();
    for expected in word.chars() {
        match text.next() {
            None => return Err(Stop::More),
            Some((_, c)) if plain(c) == expected => {}
            Some(_) => return Err(Stop::No),
        }
    }
    Ok(text.offset())
}

fn plain(c: char) -> char {
    match c {
        '｜' => '|',
        '▁' => '_',
        c => c,
    }
}
