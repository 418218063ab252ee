//! A session into another folder.

use hames_protocol::SessionId;
use hames_protocol::api::SessionRow;

use super::form::{Form, Given, Purpose};
use super::parts::{Ask, Look};
use crate::{Answer, Cx, Face, Request};

/// Moves a session.
pub(super) struct Relocate {
    session: SessionId,
    before: String,
}

impl Relocate {
    pub(super) fn form(row: &SessionRow) -> Form<Self> {
        let mut ask = Ask::new(format!("Another folder for \"{}\"", row.name), &row.folder);
        if row.folder_missing {
            ask = ask.about("Its folder is gone; nothing can be read or run there.", Look::Warn);
        }
        let ask = ask.about("The session works there from then on. Files are not moved.", Look::Dim);
        Form::new(Self { session: row.id.clone(), before: row.folder.clone() }, ask)
    }
}

impl Purpose for Relocate {
    const NAME: &'static str = "move";
    const DOES: &'static str = "moves it";

    fn give(&mut self, line: String, cx: &mut Cx<'_>) -> Given {
        if line.is_empty() {
            return Given::Refused("Which folder? Write its path; ~/ is your home.".into());
        }
        let folder = absolute(&line, cx.face);
        if folder == self.before {
            return Given::Done;
        }
        Given::Waits(cx.ask(Request::Move(self.session.clone(), folder)), "moving")
    }

    fn done(&mut self, answer: Answer, cx: &mut Cx<'_>) {
        if let Answer::Row(row) = answer {
            cx.say(format!("It works in {} from now on.", row.folder));
        }
    }
}

/// Where a path as a person writes it leads; what is no absolute path begins in the folder of the program.
fn absolute(path: &str, face: &Face) -> String {
    match (path.strip_prefix('~'), &face.home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{}/{path}", face.folder.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_a_person_means() {
        let face = Face { folder: "/work".into(), home: Some("/home/ada".into()), ..Face::default() };
        for (path, leads) in [
            ("~", "/home/ada"),
            ("~/lathe", "/home/ada/lathe"),
            ("~ada", "/work/~ada"),
            ("/tmp", "/tmp"),
            ("../x", "/work/../x"),
            ("x y", "/work/x y"),
        ] {
            assert_eq!(absolute(path, &face), leads);
        }
        assert_eq!(absolute("x", &Face { folder: "/".into(), ..Face::default() }), "/x");
    }
}
