//! The keys that hold now, and what they do.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};

use crate::{Action, Cx, Input, Layer, Outcome, Sight};

/// The list, scrolled so far.
#[derive(Debug, Default)]
pub(super) struct Help {
    scroll: usize,
}

impl Layer for Help {
    fn handle(&mut self, input: &Input, action: Option<Action>, _cx: &mut Cx<'_>) -> Outcome {
        match (action, input) {
            (Some(Action::PageUp), _) => self.scroll = self.scroll.saturating_sub(10),
            (Some(Action::PageDown), _) => self.scroll += 10,
            (Some(Action::Previous), _) => self.scroll = self.scroll.saturating_sub(1),
            (Some(Action::Next), _) => self.scroll += 1,
            (_, Input::Key(_)) => return Outcome::Closed,
            _ => return Outcome::Passed,
        }
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        Clear.render(area, buf);
        let block = Block::bordered().border_style(sight.theme.frame()).title(" Keys ");
        let inner = block.inner(area);
        block.render(area, buf);
        let rows: Vec<Line<'_>> = sight
            .keys
            .list()
            .map(|(action, keys)| {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                Line::from_iter([
                    Span::styled(format!("{:<22}", keys.join(", ")), sight.theme.name()),
                    Span::raw(action.does()),
                    Span::styled(format!("  {}", action.name()), sight.theme.dim()),
                ])
            })
            .collect();
        self.scroll = self.scroll.min(rows.len().saturating_sub(inner.height.into()));
        for (row, line) in inner.rows().zip(rows.into_iter().skip(self.scroll)) {
            line.render(row, buf);
        }
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let key = |action| sight.keys.hint(action);
        format!("{} {} scroll · any other key closes", key(Action::PageUp), key(Action::PageDown))
    }

    fn name(&self) -> &'static str {
        "help"
    }
}
