//! What can be done with a session of the picker.

use hames_protocol::api::SessionRow;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::delete::Delete;
use super::export::Export;
use super::messages::{For, Messages};
use super::parts::{Item, List, Look, Said, dialog, frame};
use super::relocate::Relocate;
use super::rename::Rename;
use crate::{Action, Cx, Effect, Input, Layer, Outcome, Sight};

/// What can be done: its id, its name, and the command that does it in the session itself.
const ALL: [(&str, &str, &str); 7] = [
    ("open", "Open it", ""),
    ("rename", "Give it another name", "/rename"),
    ("branch", "Copy it, or a part of it", "/branch"),
    ("cut", "Cut it from a message on", "/cut"),
    ("move", "Move it to another folder", "/move"),
    ("export", "Write it into a file", "/export"),
    ("delete", "Delete it", "/delete"),
];

/// The list of what can be done.
pub(super) struct SessionMenu {
    row: SessionRow,
    list: List,
}

impl SessionMenu {
    pub(super) fn of(row: SessionRow) -> Self {
        let mut list = List::new();
        let item = |(id, text, command): &(&str, &str, &str)| Item {
            id: (*id).into(),
            text: (*text).into(),
            columns: vec![((*command).into(), Look::Dim)],
            ..Item::default()
        };
        list.set(ALL.iter().map(item).collect());
        Self { row, list }
    }

    fn pick(&self, id: &str, cx: &mut Cx<'_>) -> Outcome {
        let row = self.row.clone();
        Outcome::Became(match id {
            "rename" => Box::new(Rename::form(&row)),
            "branch" => Box::new(Messages::of(row, For::Branch, None, cx)),
            "cut" => Box::new(Messages::of(row, For::Cut, None, cx)),
            "move" => Box::new(Relocate::form(&row)),
            "export" => Box::new(Export::form(&row)),
            "delete" => Box::new(Delete::of(row, cx)),
            _ => {
                cx.push(Effect::Show(Some(row.id)));
                return Outcome::Closed;
            }
        })
    }
}

impl Layer for SessionMenu {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        if action == Some(Action::Abort) {
            return Outcome::Closed;
        }
        match self.list.handle(input, action) {
            Said::Passed => Outcome::Passed,
            Said::Taken | Said::Query => Outcome::Taken,
            Said::Picked(id) => self.pick(&id, cx),
        }
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let inner = frame(dialog(area, ALL.len() as u16 + 1), buf, sight, &self.row.name);
        self.list.draw(inner, buf, "", sight)
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        format!("{} does it · {} goes back", sight.keys.hint(Action::Submit), sight.keys.hint(Action::Abort))
    }

    fn name(&self) -> &'static str {
        "session-menu"
    }
}
