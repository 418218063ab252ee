//! A copy of a session, the whole of it or up to a message.

use hames_protocol::SessionId;
use hames_protocol::api::{BranchSession, SessionRow};

use super::form::{Form, Given, Purpose};
use super::parts::{Ask, Look};
use crate::{Answer, Cx, Effect, Request};

/// How much is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UpTo {
    /// The last event; all where absent.
    pub(super) seq: Option<u64>,
    /// In words: "everything before your message …".
    pub(super) says: String,
    /// What comes into the prompt of the copy: the message it ends before.
    pub(super) draft: Option<String>,
}

/// Copies a session.
pub(super) struct Branch {
    session: SessionId,
    up_to: UpTo,
}

impl Branch {
    pub(super) fn form(session: &SessionRow, name: &str, up_to: UpTo) -> Form<Self> {
        let says = if up_to.says.is_empty() { "Everything that was said is copied." } else { &up_to.says };
        let ask = Ask::new(format!("A copy of \"{}\"", session.name), name)
            .about("Its name; without one it is called like this one, with a number.", Look::Dim)
            .about(says, Look::Text)
            .about("This session stays as it is. Files are not copied.", Look::Dim);
        Form::new(Self { session: session.id.clone(), up_to }, ask)
    }
}

impl Purpose for Branch {
    const NAME: &'static str = "branch";
    const DOES: &'static str = "makes the copy and shows it";

    fn give(&mut self, line: String, cx: &mut Cx<'_>) -> Given {
        let branch = BranchSession { up_to_seq: self.up_to.seq, name: (!line.is_empty()).then_some(line) };
        Given::Waits(cx.ask(Request::Branch(self.session.clone(), branch)), "copying")
    }

    fn done(&mut self, answer: Answer, cx: &mut Cx<'_>) {
        let Answer::Row(row) = answer else { return };
        cx.push(Effect::Show(Some(row.id.clone())));
        if let Some(draft) = self.up_to.draft.take() {
            cx.push(Effect::Draft(row.id, draft));
        }
        cx.say(format!("This is the copy, \"{}\".", row.name));
    }
}
