//! A session into a file.

use hames_protocol::SessionId;
use hames_protocol::api::SessionRow;

use super::form::{Form, Given, Purpose};
use super::parts::{Ask, Look};
use crate::{Answer, Cx, Effect};

/// Characters of a name that a file's name takes over.
const MAX_NAME: usize = 60;

/// Writes a session.
pub(super) struct Export {
    session: SessionId,
}

impl Export {
    pub(super) fn form(row: &SessionRow) -> Form<Self> {
        let ask = Ask::new(format!("A file for \"{}\"", row.name), &file_name(&row.name))
            .about("All its events go into it, a line of JSON each; `hames sessions import` reads it.", Look::Dim)
            .about("A file that is there already stays as it is.", Look::Dim);
        Form::new(Self { session: row.id.clone() }, ask)
    }
}

/// A file's name like a session's: without what shells and folders take for something else.
fn file_name(name: &str) -> String {
    let kept = name.chars().map(|c| if c.is_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' });
    let kept: String = kept.take(MAX_NAME).collect();
    let words: Vec<&str> = kept.split('-').map(|word| word.trim_matches('.')).filter(|word| !word.is_empty()).collect();
    let name = words.join("-");
    format!("{}.jsonl", if name.is_empty() { "session" } else { &name })
}

impl Purpose for Export {
    const NAME: &'static str = "export";
    const DOES: &'static str = "writes it";

    fn give(&mut self, line: String, cx: &mut Cx<'_>) -> Given {
        if line.is_empty() {
            return Given::Refused("Which file? Write its name or its path; ~/ is your home.".into());
        }
        let ticket = cx.ticket();
        cx.push(Effect::SaveExport(ticket, self.session.clone(), line));
        Given::Waits(ticket, "writing")
    }

    fn done(&mut self, answer: Answer, cx: &mut Cx<'_>) {
        if let Answer::Saved(place) = answer {
            cx.say(format!("Written to {place}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_is_harmless_whatever_the_session_is_called() {
        for (name, file) in [
            ("mend the lathe", "mend-the-lathe.jsonl"),
            ("../../etc/passwd", "etc-passwd.jsonl"),
            ("  a / b?*\u{1b}[2J ", "a-b-2J.jsonl"),
            ("漢字 🙂", "漢字.jsonl"),
            ("..", "session.jsonl"),
            ("🙂", "session.jsonl"),
            ("v1.2_x", "v1.2_x.jsonl"),
        ] {
            assert_eq!(file_name(name), file, "{name}");
        }
    }
}
