//! Proves of a command line that it only reads, or says which part of it may not.
//!
//! Think of it as a border officer with a list: a line passes only if every part of it is understood and every program in
//! it is on the list with exactly these options. The text is read by a reader of our own ([`parse`]) and, independently,
//! by tree-sitter's grammar ([`grammar`]); where they disagree, nobody is believed. Words that are expanded when the line
//! runs count as anything that they could become ([`value`]), a file named `-o` included. What each program may be given
//! is data ([`readers`]) and, for those with a language of their own, a reader of that language ([`programs`]).
//!
//! What holds of a proven line also depends on how it is run: with programs from outside the workspace, an environment
//! that says nothing, and git's helpers switched off. That is [`hardened`](super::hardened)'s part, and the two files are
//! to be read together.
//!
//! It does no I/O and asks no file: whether a path may be read is for the filesystem, which gets the operands. It does not
//! try to be complete. What it refuses may be harmless; what it lets pass must be.

mod commands;
mod grammar;
mod judge;
mod kept;
mod options;
mod parse;
mod programs;
mod readers;
mod syntax;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod words;

use std::fmt;

pub(crate) use kept::proof_of;

/// Characters of the line that a refusal shows at most.
const SHOWN_LIMIT: usize = 80;

/// What is known of a command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proof {
    /// Whether it is proven to only read.
    pub(crate) reads: bool,
    /// What it runs, for rules about commands: see [`commands`](commands::commands). Empty where the line is not
    /// understood.
    pub(crate) commands: Vec<Vec<String>>,
    /// What a proven line may read, as far as it is named.
    pub(crate) operands: Vec<Operand>,
    /// The programs a proven line starts, by name or path.
    pub(crate) programs: Vec<String>,
    /// Where a proven line calls git.
    pub(crate) git: Vec<GitCall>,
    /// Why it is not proven.
    pub(crate) refusal: Option<Refusal>,
}

/// Something that could be a path, with a folder it could be relative to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    /// The folder, itself relative to where the line runs.
    pub(crate) folder: Location,
    /// The path as it is written.
    pub(crate) path: Location,
    /// What lies below it may be read, too.
    pub(crate) deep: bool,
}

/// A path as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    /// Absolute or relative; what follows the `~` where it is below the home folder.
    pub(crate) text: String,
    /// Below the home folder.
    pub(crate) home: bool,
}

/// A call of git in a proven line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitCall {
    /// Every folder it can run in.
    pub(crate) folders: Vec<(Location, Location)>,
    /// Where options for git itself can be put into the line.
    pub(crate) options_at: usize,
    /// What has to be put into the line, and where: options that switch programs off.
    pub(crate) insert: Option<(usize, &'static str)>,
}

/// Why a line is not proven: for the model, in a sentence or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The part it is about; empty where that is the whole line.
    pub(crate) part: String,
    /// Why that part is not known to only read.
    pub(crate) why: String,
    /// What to use instead.
    pub(crate) instead: String,
}

impl Refusal {
    fn new(part: &str, why: impl Into<String>, instead: &str) -> Self {
        Self { part: part.trim().to_owned(), why: why.into(), instead: instead.to_owned() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.part.is_empty() {
            f.write_str("The command was not run: ")?;
        } else {
            let shown: String = self.part.chars().take(SHOWN_LIMIT).flat_map(visible).collect();
            let more = if self.part.chars().nth(SHOWN_LIMIT).is_some() { "…" } else { "" };
            write!(f, "The command was not run because of `{shown}{more}`: ")?;
        }
        write!(f, "{}. {}", self.why, self.instead)
    }
}

/// A character as it can be shown in the middle of a sentence.
fn visible(c: char) -> Vec<char> {
    if c == '\n' || c == '\t' {
        return vec![' '];
    }
    if hames_protocol::is_unprintable(c) { c.escape_unicode().collect() } else { vec![c] }
}

/// Looks at a command line. Does no I/O.
pub(crate) fn prove(line: &str) -> Proof {
    match understand(line) {
        Err(refusal) => Proof { refusal: Some(refusal), ..Proof::default() },
        Ok(list) => {
            let commands = commands::commands(line, &list);
            match judge::judge(line, &list) {
                Ok(verdict) if verdict.programs.iter().all(|name| name == "exit") => Proof {
                    commands,
                    refusal: Some(Refusal::new("", "it looks at nothing", "Leave it out.")),
                    ..Proof::default()
                },
                Ok(verdict) => Proof {
                    reads: true,
                    commands,
                    operands: verdict.operands,
                    programs: verdict.programs,
                    git: verdict.git,
                    refusal: None,
                },
                Err(refusal) => Proof { commands, refusal: Some(refusal), ..Proof::default() },
            }
        }
    }
}

/// What the line consists of, where both readers see the same.
fn understand(line: &str) -> Result<syntax::List, Refusal> {
    text::check(line)?;
    let list = parse::read(line)?;
    grammar::agree(line, &list)?;
    Ok(list)
}
