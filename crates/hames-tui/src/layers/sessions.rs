//! The picker of sessions: those of this folder, or of all.
//!
//! It is read again every few seconds while it lies open, because others work too; what is chosen stays chosen.

use hames_protocol::RunResult;
use hames_protocol::api::{ApiError, SessionActivity, SessionRow};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::{Position, Rect};

use super::delete::Delete;
use super::new::New;
use super::parts::{Item, List, Look, Said, ago, asking, cut_to, frame, line, plural};
use super::rename::Rename;
use super::search::Search;
use super::session_menu::SessionMenu;
use crate::app::name_of;
use crate::{Action, Answer, Cx, Effect, Input, Layer, Outcome, Request, Sight, Ticket};

/// Milliseconds after which the list is read again.
const AGAIN: u64 = 3_000;
/// Rows of an area that has room for a line about the chosen session.
const ROOM_FOR_MORE: u16 = 8;

/// The sessions.
pub(super) struct Sessions {
    list: List,
    rows: Vec<SessionRow>,
    is_all: bool,
    /// What the rows are of: all, or this folder; nothing before the first answer.
    shown: Option<bool>,
    asked: Option<(Ticket, bool)>,
    due: u64,
    failure: Option<String>,
}

impl Sessions {
    pub(super) fn open(cx: &mut Cx<'_>) -> Self {
        let mut sessions = Self {
            list: List::new(),
            rows: Vec::new(),
            is_all: false,
            shown: None,
            asked: None,
            due: 0,
            failure: None,
        };
        sessions.read(cx);
        sessions
    }

    /// Asks for the rows; an older question is not waited for.
    fn read(&mut self, cx: &mut Cx<'_>) {
        let folder = (!self.is_all).then(|| cx.face.folder.clone());
        self.asked = Some((cx.ask(Request::Sessions(folder)), self.is_all));
    }

    /// Reads again when it is time, where somebody can see it.
    fn keep_up(&mut self, cx: &mut Cx<'_>) {
        if self.asked.is_none() && cx.face.is_focused {
            if cx.now >= self.due {
                self.read(cx);
            } else {
                cx.push(Effect::WakeAt(self.due));
            }
        }
    }

    fn chosen(&self) -> Option<&SessionRow> {
        let id = &self.list.chosen()?.id;
        self.rows.iter().find(|row| row.id.as_str() == id)
    }

    fn show(&mut self, cx: &Cx<'_>) {
        let unix = cx.face.epoch + cx.now;
        let is_all = self.is_all;
        let items = self.rows.iter().map(|row| item(row, is_all, unix, cx));
        self.list.set(items.collect());
        if self.shown.is_none()
            && let Some(session) = &cx.face.session
        {
            self.list.choose(session.as_str());
        }
        self.shown = Some(is_all);
    }

    /// Keys that do something with the list or with the chosen session.
    fn key(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Option<Outcome> {
        let Input::Key(key) = input else { return None };
        let chosen = self.chosen().cloned();
        let is_bare = key.modifiers.is_empty();
        let layer: Box<dyn Layer> = match (key.code, action) {
            (_, Some(Action::Abort)) => return Some(Outcome::Closed),
            (_, Some(Action::Sessions)) | (KeyCode::Tab, _) if is_bare || action == Some(Action::Sessions) => {
                self.is_all = !self.is_all;
                self.read(cx);
                return Some(Outcome::Taken);
            }
            (_, Some(Action::Search)) => Box::new(Search::open(self.list.query(), cx)),
            (KeyCode::Char('n'), _) if key.modifiers == KeyModifiers::ALT => {
                let here = self.rows.iter().filter(|row| row.folder == cx.face.folder);
                let taken = here.map(|row| row.name.clone()).collect();
                Box::new(New::form(&cx.face.folder, self.list.query(), taken))
            }
            (_, Some(Action::Queue)) => Box::new(SessionMenu::of(chosen?)),
            (KeyCode::F(2), _) => Box::new(Rename::form(&chosen?)),
            (KeyCode::Delete, None) if is_bare => Box::new(Delete::of(chosen?, cx)),
            // What no session is called is the name of a new one.
            (_, Some(Action::Submit)) if chosen.is_none() && self.shown.is_some() => {
                let name = self.list.query().trim().to_owned();
                if name.is_empty() {
                    return Some(Outcome::Taken);
                }
                cx.push(Effect::New(Some(name)));
                return Some(Outcome::Closed);
            }
            _ => return None,
        };
        Some(Outcome::Opened(layer))
    }

    /// What is said where there is no row.
    fn empty(&self, sight: Sight<'_>) -> String {
        match (&self.failure, self.shown) {
            (Some(failure), _) => format!("{failure} Esc goes back."),
            (None, None) => asking(sight).into(),
            (None, Some(true)) => "There is no session yet. Esc goes back; your first message makes one.".into(),
            (None, Some(false)) => {
                "This folder has no session yet: your first message makes one. Tab shows those of all folders.".into()
            }
        }
    }

    /// More about the chosen one.
    fn about(&self, sight: Sight<'_>) -> Option<String> {
        let row = self.chosen()?;
        let mut about = vec![line(&row.folder)];
        if row.folder_missing {
            about[0].push_str(" (gone)");
        }
        about.extend(row.model.as_ref().map(|model| line(model)));
        about.extend(row.mode.map(|mode| name_of(mode).to_owned()));
        about.push(format!("made {}", ago(row.created_at, sight.unix())));
        Some(about.join(" · "))
    }
}

/// A row of the list.
fn item(row: &SessionRow, is_all: bool, unix: u64, cx: &Cx<'_>) -> Item {
    let (mark, doing) = match row.state {
        SessionActivity::Running => (("●", Look::Good), "running".to_owned()),
        SessionActivity::WaitingForYou => (("!", Look::Warn), "waits for you".into()),
        SessionActivity::Elsewhere => {
            let by = row.held_by.as_deref().unwrap_or("another program");
            (("◌", Look::Warn), format!("run by {by}"))
        }
        SessionActivity::Idle if row.folder_missing => (("×", Look::Bad), "its folder is gone".into()),
        SessionActivity::Idle | SessionActivity::Unknown => match row.last_result {
            Some(RunResult::Error) => (("✗", Look::Bad), "its last run failed".into()),
            ended => (("", Look::Text), ended.and_then(RunResult::remark).unwrap_or_default().to_owned()),
        },
    };
    let is_shown = cx.face.session.as_ref() == Some(&row.id);
    let mut about: Vec<String> = Vec::new();
    about.extend(is_shown.then(|| "on the screen".to_owned()));
    about.extend(Some(doing).filter(|doing| !doing.is_empty()));
    about.extend((row.pending > 0).then(|| format!("{} waiting", plural(row.pending.into(), "message"))));
    about.extend((row.first_line != row.name && !row.first_line.is_empty()).then(|| row.first_line.clone()));
    let folder = row.folder.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/").to_owned();
    let place = match (row.folder_missing, row.folder == cx.face.folder) {
        (true, _) => (format!("{folder} (gone)"), Look::Bad),
        (false, true) => ("this folder".into(), Look::Text),
        (false, false) => (folder, Look::Dim),
    };
    let last = match (is_all, row.folder_missing) {
        (true, _) => (cut_to(&place.0, 24), place.1),
        (false, true) => ("folder is gone".into(), Look::Bad),
        (false, false) => (plural(row.turns.into(), "turn"), Look::Dim),
    };
    Item {
        id: row.id.as_str().to_owned(),
        mark,
        text: row.name.clone(),
        about: about.join(" · "),
        columns: vec![(ago(row.updated_at, unix), Look::Dim), last],
        also: format!("{} {}", row.folder, row.model.as_deref().unwrap_or_default()),
        ..Item::default()
    }
}

impl Layer for Sessions {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        self.keep_up(cx);
        if let Some(outcome) = self.key(input, action, cx) {
            return outcome;
        }
        match self.list.handle(input, action) {
            Said::Passed => Outcome::Passed,
            Said::Taken | Said::Query => Outcome::Taken,
            Said::Picked(id) => {
                if cx.face.session.as_ref().is_none_or(|session| session.as_str() != id) {
                    cx.push(Effect::Show(Some(id.into())));
                }
                Outcome::Closed
            }
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        let Some((_, is_all)) = self.asked.take_if(|(asked, _)| *asked == ticket) else { return Outcome::Passed };
        self.due = cx.now + AGAIN;
        match answer {
            Ok(Answer::Sessions(sessions)) if is_all == self.is_all => {
                self.failure = None;
                self.rows = sessions.sessions;
                self.show(cx);
            }
            Ok(_) => {}
            Err(error) => self.failure = Some(format!("The sessions cannot be read: {error}")),
        }
        self.keep_up(cx);
        Outcome::Taken
    }

    fn uncovered(&mut self, cx: &mut Cx<'_>) {
        self.read(cx);
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        // The rows are those of before until the others are there.
        let title =
            if self.shown.unwrap_or(self.is_all) { "Sessions of all folders" } else { "Sessions of this folder" };
        let inner = frame(area, buf, sight, title);
        let more = self.about(sight).filter(|_| inner.height >= ROOM_FOR_MORE);
        let rows = Rect { height: inner.height - u16::from(more.is_some()), ..inner };
        if let (Some(more), Some(last)) = (more, inner.rows().next_back()) {
            buf.set_stringn(last.x, last.y, cut_to(&more, last.width.into()), last.width.into(), sight.theme.dim());
        }
        let is_new = self.list.chosen().is_none() && !self.list.query().trim().is_empty();
        let empty = match (is_new, self.shown) {
            (true, Some(_)) => "No session is called like this; Enter begins one of this name.".to_owned(),
            _ => self.empty(sight),
        };
        self.list.draw_or(rows, buf, &empty, sight)
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let key = |action| sight.keys.hint(action);
        let inner = |name: &str| sight.keys.inner(&format!("sessions.{name}"));
        let other = if self.is_all { "this folder" } else { "all folders" };
        format!(
            "{} opens · {} {other} · {} more · {} search · {} renames · {} deletes · {} new",
            key(Action::Submit),
            inner("all"),
            key(Action::Queue),
            key(Action::Search),
            inner("rename"),
            inner("delete"),
            inner("new")
        )
    }

    fn name(&self) -> &'static str {
        "sessions"
    }
}
