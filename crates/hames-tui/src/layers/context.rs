//! The report about the window: what the next request carries, what was left out of it and why, and what a compaction would
//! do now. Compacting asks first and says what it will do.

mod tell;

use hames_protocol::api::{ApiError, ApiErrorCode, SessionCompacted, SessionContext};
use hames_protocol::{Event, SessionId};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};

use super::parts::{Confirm, Decided, Look, Scroll, asking, foot, frame, line, numbers};
use crate::{Action, Answer, Cx, Input, Layer, Outcome, Request, Sight, Ticket};

pub(in crate::layers) use tell::plan as plan_words;

/// The report on the screen.
#[derive(Debug, Default)]
pub(super) struct Report {
    session: Option<SessionId>,
    asked: Option<Ticket>,
    is_stale: bool,
    told: Option<Box<SessionContext>>,
    wrong: Option<ApiError>,
    scroll: Scroll,
    confirm: Option<Confirm>,
    /// The question comes up by itself once the plan is known.
    asks_at_once: bool,
    compacting: Option<Ticket>,
    said: Option<(String, Look)>,
}

impl Report {
    /// The report; with `asks` also what a compaction would do, to be said yes or no to.
    pub(super) fn new(asks: bool, cx: &mut Cx<'_>) -> Self {
        let mut report = Self { session: cx.face.session.clone(), asks_at_once: asks, ..Self::default() };
        report.read(cx);
        report
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        let Some(session) = self.session.clone() else { return };
        if self.asked.is_some() {
            self.is_stale = true;
        } else {
            self.asked = Some(cx.ask(Request::Context(session)));
        }
    }

    fn took(&mut self, told: Box<SessionContext>) {
        self.scroll.set(tell::lines(&told));
        self.wrong = None;
        self.told = Some(told);
        if std::mem::take(&mut self.asks_at_once) {
            self.ask_compact();
        }
    }

    fn ask_compact(&mut self) {
        let Some(told) = &self.told else { return };
        match tell::plan(&told.next) {
            Some(body) => self.confirm = Some(Confirm::new("Compact the window now?", body, "Compact")),
            None => self.said = Some(("A compaction would gain nothing now.".into(), Look::Dim)),
        }
    }

    fn compact(&mut self, cx: &mut Cx<'_>) {
        let Some(session) = self.session.clone() else { return };
        if self.compacting.is_none() {
            self.said = Some(("compacting …".into(), Look::Dim));
            self.compacting = Some(cx.ask(Request::Compact(session)));
        }
    }

    fn compacted(&mut self, answer: Result<Answer, ApiError>) {
        self.said = match answer {
            Ok(Answer::Compacted(done)) => Some(match *done {
                SessionCompacted { compacted: true, tokens_before: Some(before), tokens_after: Some(after) } => {
                    let (before, after) = (numbers::count(before), numbers::count(after));
                    (format!("Compacted: about {after} tokens instead of {before}."), Look::Good)
                }
                SessionCompacted { compacted: true, .. } => ("Compacted.".into(), Look::Good),
                _ => ("Nothing was gained; the window is as it was.".into(), Look::Warn),
            }),
            Ok(_) => None,
            Err(error) => Some((format!("Not compacted: {}", line(&error.message)), Look::Bad)),
        };
    }

    /// What stands in place of the report.
    fn instead(&self, sight: Sight<'_>) -> Option<Vec<Vec<(String, Look)>>> {
        let said = |text: String, look| vec![(text, look)];
        match (&self.session, &self.wrong, &self.told) {
            (None, ..) => Some(vec![said("There is no session yet; your first message makes one.".into(), Look::Text)]),
            (_, Some(wrong), None) => {
                let next = match wrong.code {
                    ApiErrorCode::Busy => "It comes by itself when the run is over.",
                    ApiErrorCode::Configuration => "/providers sets up a model; r tries again.",
                    _ => "r tries again.",
                };
                let mut lines = vec![said(format!("The window cannot be told: {}", line(&wrong.message)), Look::Bad)];
                lines.push(said(next.into(), Look::Dim));
                if let Some(view) = &sight.face.view {
                    let (used, usable) = (numbers::count(view.window.used), numbers::count(view.window.usable));
                    lines.push(said(format!("About {used} of {usable} usable tokens are in it."), Look::Text));
                }
                Some(lines)
            }
            (.., None) => Some(vec![said(asking(sight).into(), Look::Dim)]),
            _ => None,
        }
    }
}

impl Layer for Report {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        if let Some(confirm) = &mut self.confirm {
            match confirm.handle(input, action) {
                Decided::Passed => {}
                Decided::Taken => return Outcome::Taken,
                decided => {
                    self.confirm = None;
                    if decided == Decided::Yes {
                        self.compact(cx);
                    }
                    return Outcome::Taken;
                }
            }
        }
        if self.scroll.handle(input, action) {
            return Outcome::Taken;
        }
        match (action, input) {
            (Some(Action::Abort | Action::Submit | Action::Context), _) => return Outcome::Closed,
            (None, Input::Key(key)) if key.modifiers.is_empty() => match key.code {
                KeyCode::Char('c') if self.compacting.is_none() => {
                    self.said = None;
                    self.ask_compact();
                }
                KeyCode::Char('r') => self.read(cx),
                _ => {}
            },
            (_, Input::News(news)) => {
                let is_about = |event: &Event| {
                    matches!(
                        event,
                        Event::StepDone(_)
                            | Event::RunDone(_)
                            | Event::CompactionDone(_)
                            | Event::SettingsChanged(_)
                            | Event::SessionCut(_)
                            | Event::PinAdded(_)
                            | Event::PinRemoved(_)
                    )
                };
                if news.iter().any(|envelope| envelope.agent.is_empty() && is_about(&envelope.event)) {
                    self.read(cx);
                }
                return Outcome::Passed;
            }
            (_, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) => {}
            _ => return Outcome::Passed,
        }
        Outcome::Taken
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if self.compacting == Some(ticket) {
            self.compacting = None;
            self.compacted(answer);
            self.read(cx);
            return Outcome::Taken;
        }
        if self.asked != Some(ticket) {
            return Outcome::Passed;
        }
        self.asked = None;
        match answer {
            Ok(Answer::Context(told)) => self.took(told),
            Ok(_) => {}
            Err(error) => self.wrong = Some(error),
        }
        if std::mem::take(&mut self.is_stale) {
            self.read(cx);
        }
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let inner = frame(area, buf, sight, "Context window");
        let mut body = inner;
        if let Some((text, look)) = &self.said {
            let mut said = Scroll::new([vec![(text.clone(), *look)]]);
            let rows = (super::parts::wrapped(text, inner.width).len() as u16).min(inner.height / 2);
            said.draw(Rect { height: rows, ..inner }, buf, sight.theme);
            body = Rect { y: inner.y + rows, height: inner.height - rows, ..inner };
        }
        match self.instead(sight) {
            Some(lines) => Scroll::new(lines).draw(body, buf, sight.theme),
            None => {
                self.scroll.draw(body, buf, sight.theme);
                if let Some(place) = self.scroll.place() {
                    foot(area, buf, sight, &place);
                }
            }
        }
        if let Some(confirm) = &mut self.confirm {
            confirm.draw(area, buf, sight);
        }
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        if let Some(confirm) = &self.confirm {
            return confirm.hint(sight);
        }
        let closes = sight.keys.hint(Action::Abort);
        match &self.told {
            Some(_) => {
                let (compact, reread) = (sight.keys.inner("context.compact"), sight.keys.inner("context.reread"));
                format!("↑↓ scroll · {compact} compact now · {reread} reads it again · {closes} closes")
            }
            None => format!("{closes} closes"),
        }
    }

    fn name(&self) -> &'static str {
        "context"
    }
}

#[cfg(test)]
mod tests;
