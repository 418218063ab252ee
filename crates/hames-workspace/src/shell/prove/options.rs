//! Checks arguments against the options of a program that are known to only read.
//!
//! Options are an allow-list, one word each: `-x` takes nothing, `-x:` takes a value (attached or the next word), `-x?`
//! takes one only where it is attached, `-x!` takes the next word if there is one; `--long`, `--long:` and `--long?` likewise, with `=`. `-len:` is a long option
//! with one dash, and `-#` is a number. What is not listed is refused, abbreviations included: `--outp` is no option here
//! whatever a program would make of it.

use super::Refusal;
use super::value::{Arg, Value};

/// The options of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// What is allowed.
    pub(super) allowed: &'static str,
    /// What is refused with a reason of its own: the option as it is listed above, and what it does.
    pub(super) refused: &'static [(&'static str, &'static str)],
    /// Options end with the first operand, as for programs that run another one.
    pub(super) stop: bool,
}

/// Arguments taken apart.
#[derive(Debug, Default)]
pub(super) struct Parsed<'a> {
    /// What is no option.
    pub(super) operands: Vec<&'a Arg>,
    /// How many operands stand behind `--`.
    pub(super) behind_dashes: usize,
    /// The options that were given, with their values where those are known.
    pub(super) given: Vec<(&'static str, Option<String>)>,
    /// Arguments that were used up, operands not among them; where options stop, the operands begin behind these.
    pub(super) used: usize,
}

impl Parsed<'_> {
    pub(super) fn has(&self, options: &[&str]) -> bool {
        self.given.iter().any(|(given, _)| options.contains(given))
    }
}

/// How an allowed option takes its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    Attached,
    /// The next word, unless it is the last itself.
    UnlessLast,
}

impl Options {
    /// Takes arguments apart; refuses the first that is not allowed.
    pub(super) fn parse<'a>(&self, program: &str, args: &'a [Arg]) -> Result<Parsed<'a>, Refusal> {
        let mut parsed = Parsed::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match &arg.value {
                Value::Known(text) if text == "--" => {
                    parsed.used += 1;
                    if !self.stop {
                        parsed.behind_dashes = rest.len();
                        parsed.operands.extend(rest.by_ref());
                    }
                    return Ok(parsed);
                }
                value if !value.may_be_option() => {
                    if self.stop {
                        return Ok(parsed);
                    }
                    parsed.operands.push(arg);
                }
                Value::Any { .. } => return Err(self.unknown_value(program)),
                value => {
                    parsed.used += 1;
                    let known = value.known().is_some();
                    let (option, takes, attached) = self.option(program, value.beginning(), known, &mut parsed)?;
                    let value = match (takes, attached) {
                        (Takes::Value, None) => {
                            parsed.used += 1;
                            separate_value(program, option, rest.next())?
                        }
                        (Takes::UnlessLast, None) if rest.len() > 0 => {
                            parsed.used += 1;
                            separate_value(program, option, rest.next())?
                        }
                        (_, attached) if known => attached,
                        // What is not known belongs to the value, and to nothing else.
                        (_, Some(_)) if arg.value.is_single() => None,
                        _ => return Err(self.unknown_value(program)),
                    };
                    parsed.given.push((option, value));
                }
            }
        }
        Ok(parsed)
    }

    fn unknown_value(&self, program: &str) -> Refusal {
        Refusal::new(
            program,
            "an argument that is not known beforehand could be an option that writes or runs something",
            "Put -- before it, or begin it with ./ or another fixed text.",
        )
    }

    /// One word with options: the last of them, how it takes its value, and the value where it is attached. `whole` where
    /// the word is known to its end.
    fn option(
        &self,
        program: &str,
        word: &str,
        whole: bool,
        parsed: &mut Parsed<'_>,
    ) -> Result<(&'static str, Takes, Option<String>), Refusal> {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        // A name that goes on behind what is known is no name yet.
        let name_is_whole = whole || attached.is_some();
        if let Some((option, takes)) = self.allowed(name).filter(|_| name_is_whole && name.len() > 2) {
            match (takes, &attached) {
                (Takes::Nothing, Some(_)) => {}
                _ => return Ok((option, takes, attached)),
            }
        }
        if word.starts_with("--") {
            return Err(self.refused(program, name));
        }
        let is_number = word.len() > 1 && word[1..].bytes().all(|b| b.is_ascii_digit());
        if whole && is_number && self.allowed(word.get(..2).unwrap_or_default()).is_none() {
            return match self.allowed("-#") {
                Some((option, _)) => Ok((option, Takes::Nothing, Some(word[1..].to_owned()))),
                None => Err(self.refused(program, word)),
            };
        }
        // A cluster of single letters: the first that takes a value takes the rest.
        let mut letters = word.char_indices().skip(1).peekable();
        while let Some((at, letter)) = letters.next() {
            let single = format!("-{letter}");
            let Some((option, takes)) = self.allowed(&single) else {
                return Err(self.refused(program, &single));
            };
            let after = &word[at + letter.len_utf8()..];
            match takes {
                Takes::Value if after.is_empty() => return Ok((option, takes, (!whole).then(String::new))),
                Takes::Attached if after.is_empty() && !whole => return Ok((option, takes, Some(String::new()))),
                Takes::Value | Takes::Attached if !after.is_empty() => {
                    return Ok((option, takes, Some(after.to_owned())));
                }
                _ if letters.peek().is_none() => return Ok((option, Takes::Nothing, None)),
                _ => parsed.given.push((option, None)),
            }
        }
        Err(self.refused(program, word))
    }

    fn allowed(&self, name: &str) -> Option<(&'static str, Takes)> {
        self.allowed.split_ascii_whitespace().find_map(|listed| {
            let (option, takes) = match listed.as_bytes().last() {
                Some(b':') => (&listed[..listed.len() - 1], Takes::Value),
                Some(b'!') => (&listed[..listed.len() - 1], Takes::UnlessLast),
                Some(b'?') if listed.len() > 2 => (&listed[..listed.len() - 1], Takes::Attached),
                _ => (listed, Takes::Nothing),
            };
            (option == name).then_some((option, takes))
        })
    }

    fn refused(&self, program: &str, option: &str) -> Refusal {
        let reason = self.refused.iter().find(|(listed, _)| {
            listed.split_ascii_whitespace().any(|listed| {
                listed == option || (option.len() > 3 && option.starts_with("--") && listed.starts_with(option))
            })
        });
        let part = format!("{program} {option}");
        match reason {
            Some((_, why)) => Refusal::new(&part, *why, "Leave that option out."),
            None => Refusal::new(
                &part,
                format!("{option} is not among the options of {program} that are known to only read"),
                "Leave it out, or write it in full if it is shortened.",
            ),
        }
    }
}

/// The word behind an option that takes one; `None` where it is not known beforehand.
fn separate_value(program: &str, option: &str, next: Option<&Arg>) -> Result<Option<String>, Refusal> {
    let Some(next) = next else {
        return Err(Refusal::new(program, format!("{option} has no value"), "Give it one."));
    };
    let text = next.value.beginning();
    let is_number = text.len() > 1 && text[1..].starts_with(|c: char| c.is_ascii_digit());
    let could_be_option = text.len() > 1 && text.starts_with('-') && !is_number;
    if !next.value.is_single() || could_be_option {
        return Err(Refusal::new(
            program,
            format!("the value of {option} could be an option of its own"),
            "Attach it to the option, or quote it.",
        ));
    }
    Ok(next.known().map(str::to_owned))
}
