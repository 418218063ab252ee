//! The keys that hold now and the commands there are, and what they do.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::parts::{Look, Scroll, frame};
use crate::keys::INNER;
use crate::prompt::COMMANDS;
use crate::{Action, Cx, Input, Layer, Outcome, Sight};

/// Cells of the first column; narrow screens put what a key does below it.
const COLUMN: usize = 24;
/// Columns of a screen that has room for both beside each other.
const WIDE: u16 = 60;

/// The list, scrolled so far.
#[derive(Debug, Default)]
pub(super) struct Help {
    text: Scroll,
}

fn lines(sight: Sight<'_>, is_wide: bool) -> Vec<Vec<(String, Look)>> {
    let mut lines = Vec::new();
    let mut row = |left: String, does: &str, name: &str| {
        // One that is longer than its column pushes the rest away.
        let left = if is_wide { format!("{left:<0$}  ", COLUMN - 2) } else { format!("{left}\n  ") };
        lines.push(vec![(left, Look::Name), (does.to_owned(), Look::Text), (name.to_owned(), Look::Dim)]);
    };
    for (action, keys) in sight.keys.list() {
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let keys = if keys.is_empty() { "(no key)".to_owned() } else { keys.join(", ") };
        row(keys, action.does(), &format!("  {}", action.name()));
    }
    row(String::new(), "", "");
    for inner in INNER {
        row(sight.keys.inner(inner.name), inner.does, &format!("  {}", inner.name));
    }
    row(String::new(), "", "");
    for command in COMMANDS {
        row(format!("/{} {}", command.name, command.arguments), command.does, "");
    }
    lines
}

impl Layer for Help {
    fn handle(&mut self, input: &Input, action: Option<Action>, _cx: &mut Cx<'_>) -> Outcome {
        match input {
            _ if self.text.handle(input, action) => Outcome::Taken,
            Input::Key(_) => Outcome::Closed,
            _ => Outcome::Passed,
        }
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let inner = frame(area, buf, sight, "Keys, then keys of what lies on top, then commands");
        self.text.set(lines(sight, area.width >= WIDE));
        self.text.draw(inner, buf, sight.theme);
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let key = |action| sight.keys.hint(action);
        let place = self.text.place().map(|place| format!(" · {place}")).unwrap_or_default();
        format!("{} {} scroll · any other key closes{place}", key(Action::PageUp), key(Action::PageDown))
    }

    fn name(&self) -> &'static str {
        "help"
    }
}
