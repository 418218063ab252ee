//! The todo list of the session, as it changes.

use hames_protocol::{Todo, TodoPriority, TodoStatus};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::parts::{Look, Scroll, frame};
use crate::{Action, Cx, Input, Layer, Outcome, Sight};

/// The list, and where one reads it.
#[derive(Debug, Default)]
pub(super) struct Todos {
    scroll: Scroll,
}

fn line(todo: &Todo) -> Vec<(String, Look)> {
    let (mark, look, said) = match todo.status {
        TodoStatus::Pending => (("○ ", Look::Dim), Look::Text, ""),
        TodoStatus::InProgress => (("● ", Look::Warn), Look::Name, " · being done"),
        TodoStatus::Completed => (("✓ ", Look::Good), Look::Dim, ""),
        TodoStatus::Cancelled => (("✗ ", Look::Dim), Look::Dim, " · given up"),
    };
    let mut pieces = vec![(mark.0.to_owned(), mark.1), (todo.content.replace('\n', " "), look)];
    if todo.priority == TodoPriority::High && todo.status != TodoStatus::Completed {
        pieces.push((" · first of all".into(), Look::Warn));
    }
    pieces.push((said.into(), Look::Dim));
    pieces
}

impl Layer for Todos {
    fn handle(&mut self, input: &Input, action: Option<Action>, _cx: &mut Cx<'_>) -> Outcome {
        if self.scroll.handle(input, action) {
            return Outcome::Taken;
        }
        match (action, input) {
            (Some(Action::Abort | Action::Submit | Action::Todos), _) => Outcome::Closed,
            (_, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) => Outcome::Taken,
            _ => Outcome::Passed,
        }
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let todos = sight.face.view.as_ref().map_or(&[][..], |view| &view.todos);
        let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
        let title =
            if todos.is_empty() { "Todo list".into() } else { format!("Todo list · {done} of {} done", todos.len()) };
        let inner = frame(area, buf, sight, &title);
        if todos.is_empty() {
            self.scroll.set([
                vec![("There is no todo list yet.".into(), Look::Text)],
                vec![("The agent makes one for work of several steps. Ask for one in your message.".into(), Look::Dim)],
            ]);
        } else {
            self.scroll.set(todos.iter().map(line));
        }
        self.scroll.draw(inner, buf, sight.theme);
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        format!("{} closes · it changes as the agent works", sight.keys.hint(Action::Abort))
    }

    fn name(&self) -> &'static str {
        "todos"
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::kit::{Stand, key, row};
    use super::*;
    use crate::snapshot::compare;
    use ratatui::crossterm::event::KeyCode;

    fn todo(content: &str, status: TodoStatus, priority: TodoPriority) -> Todo {
        Todo { id: content.into(), content: content.into(), status, priority }
    }

    #[test]
    fn the_screens() {
        let mut stand = Stand::showing(row("s1", "lathe"));
        let mut layer = Todos::default();
        let mut out = stand.screens(&mut layer);
        let long =
            "read every caller of the parser, and write down which of them keep what it gives: 設計 \u{1b}[2J\u{202e}";
        stand.face.view.as_mut().unwrap().todos = vec![
            todo("find the cause", TodoStatus::Completed, TodoPriority::High),
            todo(long, TodoStatus::InProgress, TodoPriority::High),
            todo("mend it\nand test it", TodoStatus::Pending, TodoPriority::Medium),
            todo("rewrite everything", TodoStatus::Cancelled, TodoPriority::Low),
        ];
        out.push_str(&stand.screens(&mut layer));
        compare("layer-todos", &out);
        stand.at_every_size(&mut layer);
    }

    #[test]
    fn the_list_is_what_the_session_has_now() {
        let mut stand = Stand::showing(row("s1", "lathe"));
        let mut layer = Todos::default();
        let all = |n: usize| (0..n).map(|n| todo(&format!("step {n}"), TodoStatus::Pending, TodoPriority::Medium));
        stand.face.view.as_mut().unwrap().todos = all(100).collect();
        stand.screen(&mut layer, 60, 12);
        stand.give(&mut layer, &key(KeyCode::End));
        assert!(stand.screen(&mut layer, 60, 12).contains("step 99"));
        stand.face.view.as_mut().unwrap().todos = all(3).collect();
        let screen = stand.screen(&mut layer, 60, 12);
        assert!(screen.contains("0 of 3 done") && screen.contains("step 0"), "{screen}");
        assert!(matches!(stand.give(&mut layer, &key(KeyCode::Esc)), Outcome::Closed));
    }
}
