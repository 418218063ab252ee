//! A new session with a name.

use super::form::{Form, Given, Purpose};
use super::parts::{Ask, Look};
use crate::{Answer, Cx, Effect};

/// Begins a session.
pub(super) struct New {
    /// Names of the folder's sessions, as far as they are known.
    taken: Vec<String>,
}

impl New {
    pub(super) fn form(folder: &str, name: &str, taken: Vec<String>) -> Form<Self> {
        let ask = Ask::new("A new session", name)
            .about("Without a name your first message gives one.", Look::Dim)
            .about(format!("It works in {folder}."), Look::Dim);
        Form::new(Self { taken }, ask)
    }
}

impl Purpose for New {
    const NAME: &'static str = "new";
    const DOES: &'static str = "begins it";

    fn give(&mut self, line: String, cx: &mut Cx<'_>) -> Given {
        let lower = line.to_lowercase();
        if let Some(taken) = self.taken.iter().find(|name| name.to_lowercase() == lower) {
            return Given::Refused(format!(
                "There is a session \"{taken}\" in this folder already. Write another name."
            ));
        }
        cx.push(Effect::New((!line.is_empty()).then_some(line)));
        Given::Done
    }

    fn done(&mut self, _: Answer, _: &mut Cx<'_>) {}
}
