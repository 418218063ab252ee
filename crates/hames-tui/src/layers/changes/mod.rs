//! The changes that were proposed in Analyze: what each would do, and what becomes of them.
//!
//! What is shown is what the server says, read again whenever something about it happens. Discarding asks first, because
//! what is gone has to be proposed anew. An apply that was refused lists what stands in its way.

mod diff;
mod draw;

use std::collections::BTreeSet;

use hames_protocol::api::{ApiError, ApiErrorCode, Change, ChangesSettled};
use hames_protocol::{Event, SessionId};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::parts::{Confirm, Decided, Look, line, plural};
use crate::{Action, Answer, Cx, Input, Layer, Outcome, Request, Sight, Ticket};
use diff::Shown;

/// Paths that a question names.
const NAMED: usize = 12;

/// What was asked of the server about changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Apply,
    Discard,
}

/// The proposed changes of a session.
#[derive(Debug, Default)]
pub(super) struct Proposed {
    session: Option<SessionId>,
    open: Option<Vec<Change>>,
    /// How often they were read.
    readings: u64,
    reading: Option<Ticket>,
    /// What was asked for is outdated before it comes.
    is_stale: bool,
    unreadable: Option<String>,
    deciding: Option<(Ticket, Doing)>,
    chosen: usize,
    marked: BTreeSet<String>,
    confirm: Option<(Confirm, Vec<String>)>,
    /// What came of the last decision, line by line.
    said: Vec<(String, Look)>,
    diff: Shown,
    /// Where rows of the list were drawn, and the first of them.
    list: Rect,
    top: usize,
}

impl Proposed {
    pub(super) fn new(cx: &mut Cx<'_>) -> Self {
        let mut layer = Self { session: cx.face.session.clone(), ..Self::default() };
        layer.read(cx);
        layer
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        let Some(session) = self.session.clone() else { return };
        if self.reading.is_some() {
            self.is_stale = true;
        } else {
            self.reading = Some(cx.ask(Request::Changes(session)));
        }
    }

    fn all(&self) -> &[Change] {
        self.open.as_deref().unwrap_or_default()
    }

    fn choose(&mut self, at: usize) {
        self.chosen = at.min(self.all().len().saturating_sub(1));
        self.said.clear();
    }

    /// What a key that decides is about: what is marked, else what is chosen.
    fn meant(&self) -> Vec<String> {
        if self.marked.is_empty() {
            return self.all().get(self.chosen).map(|change| change.path.clone()).into_iter().collect();
        }
        self.all().iter().filter(|change| self.marked.contains(&change.path)).map(|c| c.path.clone()).collect()
    }

    fn decide(&mut self, doing: Doing, paths: Vec<String>, cx: &mut Cx<'_>) {
        let Some(session) = self.session.clone() else { return };
        if self.deciding.is_some() {
            return cx.say("The last decision is not answered yet.");
        }
        if paths.is_empty() {
            return;
        }
        self.said.clear();
        let request = match doing {
            Doing::Apply => Request::ApplyChanges(session, paths),
            Doing::Discard => Request::DiscardChanges(session, paths),
        };
        self.deciding = Some((cx.ask(request), doing));
    }

    fn ask_discard(&mut self, paths: Vec<String>, sight_folder: &str) {
        if paths.is_empty() {
            return;
        }
        let mut body = vec![("What is discarded is gone; the agent would have to propose it anew.".into(), Look::Text)];
        for path in paths.iter().take(NAMED) {
            body.push((format!("  {}", relative(path, sight_folder)), Look::Name));
        }
        if paths.len() > NAMED {
            body.push((format!("  and {} more", paths.len() - NAMED), Look::Dim));
        }
        let title = format!("Discard {}?", plural(paths.len() as u64, "change"));
        self.confirm = Some((Confirm::new(title, body, "Discard"), paths));
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) {
        if !(key.modifiers - ratatui::crossterm::event::KeyModifiers::SHIFT).is_empty() {
            return;
        }
        let every = || self.all().iter().map(|change| change.path.clone()).collect::<Vec<_>>();
        match key.code {
            KeyCode::Char('a') => self.decide(Doing::Apply, self.meant(), cx),
            KeyCode::Char('A') => self.decide(Doing::Apply, every(), cx),
            KeyCode::Char('d') => self.ask_discard(self.meant(), folder(cx.face)),
            KeyCode::Char('D') => self.ask_discard(every(), folder(cx.face)),
            KeyCode::Char('r') => {
                self.said.clear();
                self.read(cx);
            }
            KeyCode::Char(' ') => {
                if let Some(path) = self.all().get(self.chosen).map(|change| change.path.clone())
                    && !self.marked.remove(&path)
                {
                    self.marked.insert(path);
                }
                self.choose(self.chosen + 1);
            }
            KeyCode::Home => self.choose(0),
            KeyCode::End => self.choose(usize::MAX),
            _ => {}
        }
    }

    fn settled(&mut self, doing: Doing, settled: &ChangesSettled, folder: &str) {
        let how = if doing == Doing::Apply { "Applied" } else { "Discarded" };
        // Folders that were made for a file go with it and are no row of their own.
        let is_row = |path: &&String| self.all().iter().any(|change| change.path == **path);
        let rows = settled.paths.iter().filter(is_row).count();
        self.said = vec![(format!("{how} {}.", plural(rows as u64, "change")), Look::Good)];
        if !settled.left.is_empty() {
            self.said.push(("Left alone:".into(), Look::Warn));
        }
        for (path, why) in &settled.left {
            self.said.push((format!("  {}: {}", relative(path, folder), line(why)), Look::Bad));
        }
        self.marked.retain(|path| !settled.paths.contains(path));
    }

    fn refused(&mut self, doing: Doing, error: &ApiError) {
        let mut lines = error.message.lines();
        let first = lines.next().unwrap_or_default();
        self.said = match error.code {
            ApiErrorCode::Stale => vec![
                (line(first), Look::Bad),
                ("Discard those, apply the others one by one, or let the agent propose anew.".into(), Look::Dim),
            ],
            _ => {
                let what = if doing == Doing::Apply { "Nothing was applied" } else { "Nothing was discarded" };
                vec![(format!("{what}: {}", line(first)), Look::Bad)]
            }
        };
        let at = self.said.len().min(1);
        let rest: Vec<(String, Look)> = lines.map(|text| (format!("  {}", line(text)), Look::Bad)).collect();
        self.said.splice(at..at, rest);
    }

    fn took(&mut self, open: Vec<Change>) {
        let path = self.all().get(self.chosen).map(|change| change.path.clone());
        self.marked.retain(|path| open.iter().any(|change| change.path == *path));
        let at = path.and_then(|path| open.iter().position(|change| change.path == path));
        self.chosen = at.unwrap_or(self.chosen).min(open.len().saturating_sub(1));
        self.open = Some(open);
        self.readings += 1;
        self.unreadable = None;
    }

    fn mouse(&mut self, kind: MouseEventKind, at: Position) {
        if !self.list.contains(at) {
            match kind {
                MouseEventKind::ScrollUp => self.diff.scroll(-3),
                MouseEventKind::ScrollDown => self.diff.scroll(3),
                _ => {}
            }
            return;
        }
        match kind {
            MouseEventKind::ScrollUp => self.choose(self.chosen.saturating_sub(1)),
            MouseEventKind::ScrollDown => self.choose(self.chosen + 1),
            MouseEventKind::Down(MouseButton::Left) => {
                let row = self.top + usize::from(at.y - self.list.y);
                if row < self.all().len() {
                    self.choose(row);
                }
            }
            _ => {}
        }
    }
}

/// The folder that paths are shown from.
fn folder(face: &crate::Face) -> &str {
    face.view.as_ref().map_or(&face.folder, |view| &view.row.folder)
}

/// A path from the session's folder, in one clean line; as it is where it lies outside.
pub(super) fn relative(path: &str, folder: &str) -> String {
    let inside = path.strip_prefix(folder.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    line(inside.filter(|rest| !rest.is_empty()).unwrap_or(path))
}

impl Layer for Proposed {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        if let Some((confirm, _)) = &mut self.confirm {
            match confirm.handle(input, action) {
                Decided::Passed => {}
                Decided::Taken => return Outcome::Taken,
                Decided::No => {
                    self.confirm = None;
                    return Outcome::Taken;
                }
                Decided::Yes => {
                    let paths = self.confirm.take().map(|(_, paths)| paths).unwrap_or_default();
                    self.decide(Doing::Discard, paths, cx);
                    return Outcome::Taken;
                }
            }
        }
        match (action, input) {
            (Some(Action::Abort | Action::Changes), _) => return Outcome::Closed,
            (Some(Action::Previous), _) => self.choose(self.chosen.saturating_sub(1)),
            (Some(Action::Next), _) => self.choose(self.chosen + 1),
            (Some(Action::PageUp | Action::PageDown | Action::ToTop | Action::ToEnd), _) => {
                self.diff.handle(input, action);
            }
            (None, Input::Key(key)) => self.key(key, cx),
            (_, Input::Mouse(mouse)) => self.mouse(mouse.kind, Position::new(mouse.column, mouse.row)),
            (_, Input::News(news)) => {
                let is_about = |event: &Event| {
                    matches!(event, Event::ChangeProposed(_) | Event::ChangesApplied(_) | Event::ChangesDiscarded(_))
                };
                if news.iter().any(|envelope| is_about(&envelope.event)) {
                    self.read(cx);
                }
                return Outcome::Passed;
            }
            (_, Input::Key(_) | Input::Paste(_)) => {}
            _ => return Outcome::Passed,
        }
        Outcome::Taken
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if self.reading == Some(ticket) {
            self.reading = None;
            match answer {
                Ok(Answer::Changes(changes)) => self.took(changes.changes),
                Ok(_) => {}
                Err(error) => self.unreadable = Some(line(&error.message)),
            }
            if std::mem::take(&mut self.is_stale) {
                self.read(cx);
            }
            return Outcome::Taken;
        }
        let Some((_, doing)) = self.deciding.take_if(|(open, _)| *open == ticket) else { return Outcome::Passed };
        match answer {
            Ok(Answer::Settled(settled)) => self.settled(doing, &settled, folder(cx.face)),
            Ok(_) => {}
            Err(error) => self.refused(doing, &error),
        }
        self.read(cx);
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        self.draw_all(area, buf, sight);
        None
    }

    fn wake_at(&self, now: u64) -> Option<u64> {
        self.diff.is_waiting().then_some(now + 33)
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        if let Some((confirm, _)) = &self.confirm {
            return confirm.hint(sight);
        }
        let closes = format!("{} closes", sight.keys.hint(Action::Abort));
        if self.all().is_empty() {
            return closes;
        }
        let what = match self.marked.len() {
            0 => "this one".to_owned(),
            n => format!("the {n} marked"),
        };
        let key = |name: &str| sight.keys.inner(&format!("changes.{name}"));
        format!(
            "{} apply {what}, {} discard · {} {} all · {} marks · {closes}",
            key("apply"),
            key("discard"),
            key("apply-all"),
            key("discard-all"),
            key("mark")
        )
    }

    fn name(&self) -> &'static str {
        "changes"
    }
}

#[cfg(test)]
mod tests;
