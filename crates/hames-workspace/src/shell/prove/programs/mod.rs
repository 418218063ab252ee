//! Programs whose arguments are a language of their own.
//!
//! Each has a reader for the part of its language that only reads. Like the reader of the shell they refuse what they do
//! not know.

pub(super) mod archive;
pub(super) mod assign;
pub(super) mod awk;
pub(super) mod builtins;
pub(super) mod conditions;
pub(super) mod find;
pub(super) mod git;
pub(super) mod sed;
pub(super) mod wrappers;
pub(super) mod xargs;

use super::Refusal;
use super::syntax::Span;
use super::value::Arg;

/// One command as it is judged.
pub(super) struct Call<'a> {
    /// The program's name, without its folder.
    pub(super) name: &'a str,
    /// Its arguments.
    pub(super) args: &'a [Arg],
    /// The whole command.
    pub(super) span: Span,
    /// The name as it is written.
    pub(super) program: &'a Arg,
}

impl Call<'_> {
    /// A refusal of this command because of one of its arguments.
    pub(super) fn refusal(&self, argument: &str, why: impl Into<String>, instead: &str) -> Refusal {
        Refusal::new(&format!("{} {argument}", self.name), why, instead)
    }
}
