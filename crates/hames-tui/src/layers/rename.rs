//! Another name for a session.

use hames_protocol::SessionId;
use hames_protocol::api::SessionRow;

use super::form::{Form, Given, Purpose};
use super::parts::{Ask, Look};
use crate::{Answer, Cx, Request};

/// Renames a session.
pub(super) struct Rename {
    session: SessionId,
    before: String,
}

impl Rename {
    pub(super) fn form(row: &SessionRow) -> Form<Self> {
        let ask = Ask::new(format!("Another name for \"{}\"", row.name), &row.name)
            .about("No two sessions of a folder have the same name.", Look::Dim);
        Form::new(Self { session: row.id.clone(), before: row.name.clone() }, ask)
    }
}

impl Purpose for Rename {
    const NAME: &'static str = "rename";
    const DOES: &'static str = "renames it";

    fn give(&mut self, line: String, cx: &mut Cx<'_>) -> Given {
        if line.is_empty() {
            return Given::Refused("A session has a name. Write one.".into());
        }
        if line == self.before {
            return Given::Done;
        }
        Given::Waits(cx.ask(Request::Rename(self.session.clone(), line)), "renaming")
    }

    fn done(&mut self, answer: Answer, cx: &mut Cx<'_>) {
        if let Answer::Row(row) = answer {
            cx.say(format!("It is called \"{}\" from now on.", row.name));
        }
    }
}
