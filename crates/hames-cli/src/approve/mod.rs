//! Who answers where a call needs a decision: a person at the terminal, a flag, or nobody.

mod sheet;
mod terminal;

use std::io::IsTerminal;
use std::sync::Arc;

use async_trait::async_trait;
use hames_protocol::{ApprovalAsked, Approver, Decision, NobodyAnswers};

use crate::config::Approve;
use crate::output::Style;
use crate::output::printer::Sink;
pub(crate) use sheet::granted;
use terminal::Terminal;

/// Who says yes to everything on behalf of a flag, in the log.
pub(crate) const BY_FLAG: &str = "flag";

/// Says yes, each time for this once: nothing is remembered.
pub(crate) struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn decide(&self, _asked: &ApprovalAsked) -> Option<(Decision, String)> {
        Some((Decision::Once, BY_FLAG.to_owned()))
    }
}

/// Whether a person can be asked in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    /// Somebody sits at the terminal.
    Present,
    /// Output is for a program, or standard input is not theirs to answer on.
    Absent,
}

impl Person {
    /// `taken` says that standard input or the output has another use: the prompt came from it, or events are printed.
    pub(crate) fn of(taken: bool) -> Person {
        let at_terminal = || std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !taken && at_terminal() { Person::Present } else { Person::Absent }
    }
}

/// Who answers in a run.
pub(crate) fn approver(approve: Approve, person: Person, sink: Sink, style: Style) -> Arc<dyn Approver> {
    match (approve, person) {
        (Approve::Allow, _) => Arc::new(Yes),
        (Approve::Ask, Person::Present) => Arc::new(Terminal::new(sink, style)),
        (Approve::Ask, Person::Absent) | (Approve::Deny, _) => Arc::new(NobodyAnswers),
    }
}
