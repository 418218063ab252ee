//! How large the database is, and making it smaller.

use hames_protocol::api::{ApiError, DatabaseStats, Vacuumed};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};

use super::parts::{Look, Scroll, asking, dialog, frame, numbers, plural};
use crate::{Action, Answer, Cx, Input, Layer, Outcome, Request, Sight, Ticket};

/// The database.
#[derive(Default)]
pub(super) struct Database {
    stats: Option<DatabaseStats>,
    vacuumed: Option<Vacuumed>,
    failure: Option<String>,
    asked: Option<Ticket>,
    vacuum: Option<Ticket>,
    text: Scroll,
}

impl Database {
    pub(super) fn open(cx: &mut Cx<'_>) -> Self {
        Self { asked: Some(cx.ask(Request::Database)), ..Self::default() }
    }

    /// The same, with unused space given back at once.
    pub(super) fn vacuum(cx: &mut Cx<'_>) -> Self {
        let mut database = Self::open(cx);
        database.begin(cx);
        database
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        if self.vacuum.is_none() {
            self.failure = None;
            self.vacuum = Some(cx.ask(Request::Vacuum));
        }
    }

    fn lines(&self, sight: Sight<'_>) -> Vec<Vec<(String, Look)>> {
        let mut lines = Vec::new();
        let mut say = |text: String, look: Look| lines.push(vec![(text, look)]);
        if let Some(failure) = &self.failure {
            say(failure.clone(), Look::Bad);
        }
        if let Some(done) = &self.vacuumed {
            let (before, after) = (numbers::bytes(done.before_bytes), numbers::bytes(done.after_bytes));
            say(format!("{before} → {after}, in {}", numbers::seconds(done.duration_ms)), Look::Good);
        }
        if self.vacuum.is_some() {
            say("Making it smaller …".into(), Look::Warn);
        }
        let Some(stats) = &self.stats else {
            if self.failure.is_none() {
                say(asking(sight).into(), Look::Dim);
            }
            return lines;
        };
        let share = stats.free_bytes.saturating_mul(100).checked_div(stats.bytes).unwrap_or_default();
        say(format!("Database   {}", numbers::bytes(stats.bytes)), Look::Text);
        say(format!("Unused     {} ({share}%)", numbers::bytes(stats.free_bytes)), Look::Text);
        say(format!("Kept apart {}", numbers::bytes(stats.blob_bytes)), Look::Text);
        say(format!("It holds   {}, {}", plural(stats.sessions, "session"), plural(stats.events, "event")), Look::Text);
        if stats.suggest_vacuum {
            say("Making it smaller is worth its time.".into(), Look::Warn);
        }
        lines
    }
}

impl Layer for Database {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        if self.text.handle(input, action) {
            return Outcome::Taken;
        }
        match (input, action) {
            (Input::Key(_), Some(Action::Abort)) => return Outcome::Closed,
            (Input::Key(key), _) if key.code == KeyCode::Char('v') && key.modifiers.is_empty() => self.begin(cx),
            (Input::Key(_) | Input::Paste(_) | Input::Mouse(_), _) => {}
            _ => return Outcome::Passed,
        }
        Outcome::Taken
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        let is_vacuum = self.vacuum.take_if(|vacuum| *vacuum == ticket).is_some();
        if !is_vacuum && self.asked.take_if(|asked| *asked == ticket).is_none() {
            return Outcome::Passed;
        }
        match answer {
            Ok(Answer::Database(stats)) => self.stats = Some(stats),
            Ok(Answer::Vacuumed(done)) => {
                self.vacuumed = Some(done);
                self.asked = Some(cx.ask(Request::Database));
            }
            Ok(_) => {}
            Err(error) if is_vacuum => self.failure = Some(format!("It could not be made smaller: {error}")),
            Err(error) => self.failure = Some(format!("The database cannot be looked at: {error}")),
        }
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let lines = self.lines(sight);
        let inner = frame(dialog(area, (lines.len() as u16).max(5)), buf, sight, "Database");
        self.text.set(lines);
        self.text.draw(inner, buf, sight.theme);
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let leave = sight.keys.hint(Action::Abort);
        match self.vacuum {
            Some(_) => format!("{leave} closes this; it is done all the same"),
            None => format!("{} gives unused space back · {leave} closes this", sight.keys.inner("database.vacuum")),
        }
    }

    fn name(&self) -> &'static str {
        "database"
    }
}
