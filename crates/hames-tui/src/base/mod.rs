//! The base: conversation, what is on its way, prompt, hint line and status line, at any size.

pub(crate) mod hint;

use hames_protocol::{Delivery, Part};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::Widget;

use crate::layers::plural;
use crate::prompt::{Command, Kept, Prompt, PromptOutcome};
use crate::talk::text::clean_line;
use crate::{Action, Cx, Effect, Input, Layer, Outcome, Sight, Talk, status};

/// What the base did with an input.
pub(crate) enum Said {
    /// It is done with.
    Taken,
    /// Nothing.
    Passed,
    /// A message is to be sent.
    Submit {
        /// What it says.
        parts: Vec<Part>,
        /// How it reaches a run that goes on.
        delivery: Delivery,
        /// What was written, should it not be taken.
        draft: Box<Kept>,
    },
    /// Something that was asked for by name.
    Command(Command),
    /// The app is to do this.
    Act(Action),
    /// This is to lie on top.
    Open(Box<dyn Layer>),
}

/// Rows of messages on their way that are shown.
const SENDING_ROWS: usize = 3;

/// What lies under every layer.
#[derive(Default)]
pub(crate) struct Base {
    talk: Talk,
    prompt: Prompt,
    /// Messages on their way to the server: their id and first line.
    sending: Vec<(String, String)>,
    /// Whether older events stand before those that are shown.
    is_begun: bool,
    /// Where the hint line is.
    hint: hint::Place,
}

/// Where everything stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rows {
    talk: Rect,
    sending: Rect,
    rule: Rect,
    prompt: Rect,
    status: Rect,
}

/// Shares rows out, from the most needed on: the prompt's first, the status line, the prompt's hint, the conversation.
fn share(area: Rect, prompt: u16, sending: u16) -> Rows {
    let mut left = area.height;
    let mut take = |wanted: u16, spare: u16| {
        let got = wanted.min(left.saturating_sub(spare));
        left -= got;
        got
    };
    let first = take(1, 0);
    let status = take(1, 0);
    let second = take(prompt.saturating_sub(1).min(1), 1);
    let rule = take(1, 4);
    let more = take(prompt.saturating_sub(2), 1 + area.height / 3);
    let sending = take(sending, 2);
    let mut at = area.y;
    let mut rows = |height: u16| {
        let rows = Rect::new(area.x, at, area.width, height);
        at += height;
        rows
    };
    Rows {
        talk: rows(left),
        sending: rows(sending),
        rule: rows(rule),
        prompt: rows(first + second + more),
        status: rows(status),
    }
}

impl Base {
    pub(crate) fn talk(&mut self) -> &mut Talk {
        &mut self.talk
    }

    pub(crate) fn prompt(&mut self) -> &mut Prompt {
        &mut self.prompt
    }

    /// Another conversation begins. The draft stays.
    pub(crate) fn clear(&mut self) {
        self.talk = Talk::default();
        self.sending.clear();
        self.is_begun = false;
    }

    /// A message is on its way.
    pub(crate) fn sending(&mut self, id: &str, parts: &[Part]) {
        if self.sending.iter().all(|(other, _)| other != id) {
            self.sending.push((id.to_owned(), first_line(parts)));
        }
    }

    /// It has arrived, or is back.
    pub(crate) fn sent(&mut self, id: &str) {
        self.sending.retain(|(other, _)| other != id);
    }

    /// Something of the conversation is there.
    pub(crate) fn begin(&mut self) {
        self.is_begun = true;
    }

    pub(crate) fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Said {
        // The offer is taken with Enter, as long as nothing is written.
        if let (Some(Action::Submit), Some(last), None, true) =
            (action, &cx.face.last, &cx.face.session, self.prompt.is_empty() && self.talk.hint().is_none())
        {
            let session = last.id.clone();
            cx.push(Effect::Show(Some(session)));
            return Said::Taken;
        }
        // In an empty prompt it asks; a message begins otherwise.
        if let (Input::Key(key), true) = (input, self.prompt.is_empty() && self.talk.hint().is_none())
            && key.code == KeyCode::Char('?')
        {
            return Said::Command(Command::Keys);
        }
        if self.talk.hint().is_some() {
            match self.give_to_talk(input, action, cx) {
                Said::Passed => {}
                said => return said,
            }
        }
        let outcome = match input {
            Input::Reply(ticket, answer) => self.prompt.answer(*ticket, answer, cx),
            _ => self.prompt.handle(input, action, cx),
        };
        match outcome {
            PromptOutcome::Taken => Said::Taken,
            PromptOutcome::Passed => self.give_to_talk(input, action, cx),
            PromptOutcome::Submit { parts, delivery, draft } => Said::Submit { parts, delivery, draft },
            PromptOutcome::Command(command) => Said::Command(command),
        }
    }

    fn give_to_talk(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Said {
        match self.talk.handle(input, action, cx) {
            Outcome::Passed => Said::Passed,
            Outcome::Opened(layer) | Outcome::Became(layer) => Said::Open(layer),
            Outcome::ClosedFor(action) => Said::Act(action),
            Outcome::Taken | Outcome::Closed => Said::Taken,
        }
    }

    /// What layers may cover: everything but the status line and so many rows of what their keys do.
    pub(crate) fn above(area: Rect, hints: usize) -> Rect {
        let rows = share(area, 2, 0);
        let hints = if rows.prompt.height > 1 { hints as u16 } else { 0 };
        Rect { height: (area.height - rows.status.height).saturating_sub(hints), ..area }
    }

    /// Draws everything but what is said over the hint line.
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        self.hint = hint::Place::default();
        if area.is_empty() {
            return None;
        }
        let prompt = self.prompt.height(area.width, area.height, sight);
        let rows = share(area, prompt, self.sending.len().min(SENDING_ROWS) as u16);
        if sight.face.session.is_none() && !self.is_begun {
            draw_beginning(rows.talk, buf, sight);
        } else {
            self.talk.draw(rows.talk, buf, sight);
        }
        for (row, (_, text)) in rows.sending.rows().zip(&self.sending) {
            Line::styled(format!("… {text}"), sight.theme.dim()).render(row, buf);
        }
        if !rows.rule.is_empty() {
            let rule = "─".repeat(rows.rule.width.into());
            Line::styled(rule, sight.theme.frame()).render(rows.rule, buf);
        }
        let cursor = self.prompt.draw(rows.prompt, buf, sight);
        if let (true, Some(last)) = (rows.prompt.height > 1, rows.prompt.rows().next_back()) {
            self.hint = hint::Place { row: last, room: rows.talk.union(rows.sending) };
        }
        status::draw(rows.status, buf, sight);
        cursor
    }

    /// Says over the prompt's own hint what is more important: what just happened, what stops, what is wrong.
    pub(crate) fn draw_hint(&self, buf: &mut Buffer, sight: Sight<'_>, hint: Option<&str>) {
        let hint = hint.or(self.talk.hint()).map(|hint| hint::rows(hint, self.hint.row.width).into_iter().take(1));
        if !self.hint.row.is_empty() {
            hint::draw(self.hint, buf, sight, &hint.into_iter().flatten().collect::<Vec<_>>());
        }
    }

    /// Says what the keys of a layer do, in rows that it left free.
    pub(crate) fn draw_layer_hint(&self, area: Rect, buf: &mut Buffer, sight: Sight<'_>, rows: &[String]) {
        let row = self.hint.row;
        if !row.is_empty() {
            let room = Rect { height: row.y - area.y, ..area };
            hint::draw(hint::Place { row, room }, buf, sight, rows);
        }
    }
}

/// An empty screen says what can be done.
fn draw_beginning(area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
    let key = |action| sight.keys.hint(action);
    let mut lines = vec![("Hames".to_owned(), sight.theme.name()), (String::new(), sight.theme.text())];
    lines.push(("Write what is to be done; your first message makes a session.".to_owned(), sight.theme.text()));
    if let Some(last) = &sight.face.last {
        let what = clean_line(if last.name.is_empty() { &last.first_line } else { &last.name });
        let turns = plural(last.turns.into(), "turn");
        lines.push((format!("Enter goes on with \"{what}\" ({turns})."), sight.theme.text()));
    }
    let keys = format!(
        "{} sessions · {} Analyze or Build · {} models · {} keys",
        key(Action::Sessions),
        key(Action::Mode),
        key(Action::Models),
        key(Action::Help)
    );
    lines.extend(hint::rows(&keys, area.width).into_iter().map(|row| (row, sight.theme.dim())));
    let mut rows = area.rows();
    for (text, style) in lines {
        for (line, row) in hint::wrapped(&text, area.width.into()).iter().zip(rows.by_ref()) {
            Line::styled(line.as_str(), style).render(row, buf);
        }
    }
}

fn first_line(parts: &[Part]) -> String {
    let text = parts.iter().find_map(|part| match part {
        Part::Text { text } => text.lines().next(),
        Part::Image { .. } => None,
    });
    text.unwrap_or("an image").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_at_any_size_and_the_prompt_is_never_missing() {
        for height in 0..60 {
            for (prompt, sending) in [(1, 0), (50, 3), (3, 1)] {
                let rows = share(Rect::new(0, 0, 40, height), prompt, sending);
                let all = [rows.talk, rows.sending, rows.rule, rows.prompt, rows.status];
                assert_eq!(all.iter().map(|rows| rows.height).sum::<u16>(), height);
                assert!(height == 0 || rows.prompt.height > 0, "{height}: {rows:?}");
                assert!(height < 7 || rows.talk.height > 0, "{height}: {rows:?}");
                for pair in all.windows(2) {
                    assert_eq!(pair[0].bottom(), pair[1].y);
                }
            }
        }
    }
}
