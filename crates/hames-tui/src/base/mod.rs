//! The base: conversation, what is on its way, prompt, hint line and status line, at any size.

use hames_protocol::{Delivery, Part};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::prompt::{Command, Kept, Prompt, PromptOutcome};
use crate::{Action, Cx, Effect, Input, Layer, Link, Outcome, Sight, Talk, status};

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

/// Rows of a notice that is too long for the hint line.
const NOTICE_ROWS: usize = 8;
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

    /// What layers may cover: everything but the hint and the status line.
    pub(crate) fn above(area: Rect) -> Rect {
        let rows = share(area, 2, 0);
        Rect { height: area.height - rows.status.height - u16::from(rows.prompt.height > 1), ..area }
    }

    /// Draws everything; `hint` is said in place of the prompt's own.
    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        sight: Sight<'_>,
        hint: Option<&str>,
    ) -> Option<Position> {
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
            let hint = hint.or(self.talk.hint());
            let room = rows.talk.union(rows.sending);
            draw_hint(last, room, buf, sight, hint);
        }
        status::draw(rows.status, buf, sight);
        cursor
    }
}

/// What is said in place of what Enter does: what just happened, what lies on top, what is wrong with the connection.
/// What does not fit there and has to be read whole stands in the last rows of `room` instead.
fn draw_hint(row: Rect, room: Rect, buf: &mut Buffer, sight: Sight<'_>, top: Option<&str>) {
    let (text, style) = match (&sight.face.notice, top, &sight.face.link) {
        (Some(notice), ..) => (notice.clone(), sight.theme.warn()),
        (None, Some(top), _) => (top.to_owned(), sight.theme.dim()),
        (None, None, Link::Lost(why)) => (format!("Connecting again: {why}"), sight.theme.warn()),
        _ => return,
    };
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if sight.face.notice.is_some() && text.width() > usize::from(row.width) && room.height > 0 {
        let lines = textwrap(&text, row.width.into());
        let height = lines.len().min(NOTICE_ROWS).min(room.height.into()) as u16;
        let place = Rect { y: room.bottom() - height, height, ..room };
        Clear.render(place, buf);
        for (row, line) in place.rows().zip(lines) {
            Line::styled(line, style).render(row, buf);
        }
        return;
    }
    Clear.render(row, buf);
    Line::styled(text, style).render(row, buf);
}

/// A text in rows that are broken between words where that is possible.
fn textwrap(text: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        if used > 0 && used + word.trim_end().width() > width {
            rows.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width && c != ' ' {
                rows.push(String::new());
                used = 0;
            }
            if let Some(row) = rows.last_mut() {
                row.push(c);
            }
            used += wide;
        }
    }
    rows
}

/// An empty screen says what can be done.
fn draw_beginning(area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
    let key = |action| sight.keys.hint(action);
    let mut lines = vec![Line::styled("Hames", sight.theme.name()), Line::default()];
    lines.push(Line::raw("Write what is to be done; your first message makes a session."));
    if let Some(last) = &sight.face.last {
        let what = if last.name.is_empty() { &last.first_line } else { &last.name };
        lines.push(Line::raw(format!("Enter goes on with \"{what}\" ({} turns).", last.turns)));
    }
    lines.push(Line::styled(
        format!(
            "{} sessions · {} Analyze or Build · {} models · {} keys",
            key(Action::Sessions),
            key(Action::Mode),
            key(Action::Models),
            key(Action::Help)
        ),
        sight.theme.dim(),
    ));
    for (row, line) in area.rows().zip(lines) {
        line.render(row, buf);
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
    fn a_notice_is_broken_between_words_and_loses_none() {
        assert_eq!(textwrap("one two three", 8), ["one two ", "three"]);
        assert_eq!(textwrap("abcdefghij 節点", 4), ["abcd", "efgh", "ij ", "節点"]);
        let text = "no model is configured. Any one of these gives one: a flag, a file, a variable";
        for width in 2..90 {
            let rows = textwrap(text, width);
            assert_eq!(rows.concat(), text);
            assert!(rows.iter().all(|row| row.trim_end().width() <= width), "{width}: {rows:?}");
        }
    }

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
