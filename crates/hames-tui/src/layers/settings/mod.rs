//! The settings of a session: each with what it is at, where that comes from and how to give it back, and the plan of the
//! next compaction under what is being tried.
//!
//! What is turned is kept for a moment before it is sent, so that a dial that is turned far is one change. One change is on
//! its way at a time, in order. While a run goes on, everything holds from the next one on.

mod dials;
mod plan;

use hames_protocol::api::{ApiError, SessionView};
use hames_protocol::{Event, SessionId, Settings};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::context::plan_words;
use super::parts::{Edited, Field, Item, List, Look, Said, frame, line, numbers, wrapped};
use crate::prompt::paint::Line;
use crate::{Action, Answer, Cx, Effect, Face, Input, Layer, Outcome, Request, Sight, Ticket};
use dials::{Change, Dial, Known, Source};
use plan::Plan;

/// Milliseconds after the last turn of a dial before it is sent.
const QUIET: u64 = 400;

/// The settings on the screen.
#[derive(Debug, Default)]
pub(super) struct Dials {
    session: Option<SessionId>,
    list: List,
    /// What was turned and is not sent, and since when it is quiet.
    draft: Option<(Change, u64)>,
    sending: Option<(Ticket, Change)>,
    /// What the server said last, as long as it is newer than what everybody knows.
    told: Option<Box<SessionView>>,
    /// What is set for the session that is to come, until everybody knows it.
    configuration: Value,
    asked: Option<Ticket>,
    plan: Plan,
    writing: Option<(Dial, Field, String)>,
    wrong: Option<String>,
    /// It goes as soon as what is on its way is answered.
    is_leaving: bool,
}

impl Dials {
    pub(super) fn new(cx: &mut Cx<'_>) -> Self {
        let mut layer = Self { session: cx.face.session.clone(), list: List::new(), ..Self::default() };
        layer.asked = Some(cx.ask(Request::Configuration));
        layer.want_plan(cx);
        layer.refresh(cx.face);
        layer
    }

    /// The session as it is known best.
    fn view<'v>(&'v self, face: &'v Face) -> Option<&'v SessionView> {
        let known = face.view.as_ref();
        let is_newer = |told: &&SessionView| known.is_none_or(|known| told.row.last_seq > known.row.last_seq);
        self.told.as_deref().filter(is_newer).or(known)
    }

    /// What is not in force yet: what is on its way, then what was turned since.
    fn change(&self) -> Change {
        let mut change = self.sending.as_ref().map(|(_, change)| change.clone()).unwrap_or_default();
        if let Some((draft, _)) = &self.draft {
            change.then(draft.clone());
        }
        change
    }

    fn known(&self, face: &Face) -> Known {
        let change = self.change();
        let configuration = self.configuration.clone();
        match (&self.session, self.view(face)) {
            (Some(_), Some(view)) => Known {
                own: change.on(&view.settings),
                effective: self.effective(&change, view),
                window: (view.window.window > 0).then_some(view.window.window),
                configuration,
            },
            (Some(_), None) => Known { configuration, ..Known::default() },
            (None, _) => {
                let own = change.on(&face.chosen);
                let file = Settings {
                    guard: serde_json::from_value(self.configuration["guard"]["set"].clone()).ok().flatten(),
                    compaction: serde_json::from_value(self.configuration["compaction"]["value"].clone())
                        .ok()
                        .flatten(),
                    ..Settings::default()
                };
                Known { effective: file.patched(&own), own, window: None, configuration }
            }
        }
    }

    /// What would hold with a change. What is given back is the configuration's again, which only the server knows; until it
    /// has said so, nothing is claimed of it but what the session still sets.
    fn effective(&self, change: &Change, view: &SessionView) -> Settings {
        change.on(&view.effective)
    }

    fn refresh(&mut self, face: &Face) {
        let known = self.known(face);
        let next_run = face.view.as_ref().map(|view| view.next_run.as_slice()).unwrap_or_default();
        let items = Dial::all().into_iter().map(|dial| {
            let waits = next_run.iter().any(|name| name == dial.setting());
            let (from, look) = match dial.source(&known) {
                Source::Session if waits => ("next run", Look::Warn),
                Source::Session => ("session", Look::Good),
                Source::Configuration => ("configuration", Look::Dim),
                Source::Default => ("default", Look::Dim),
            };
            Item {
                id: dial.name().to_owned(),
                group: dial.group().to_owned(),
                text: dial.name().to_owned(),
                columns: vec![(dial.value(&known), Look::Text), (from.to_owned(), look)],
                also: dial.about(),
                ..Item::default()
            }
        });
        self.list.set(items.collect());
    }

    fn chosen(&self) -> Option<Dial> {
        let id = &self.list.chosen()?.id;
        Dial::all().into_iter().find(|dial| dial.name() == id)
    }

    fn change_by(&mut self, change: Option<Change>, cx: &mut Cx<'_>) {
        let Some(change) = change else { return };
        self.wrong = None;
        match &mut self.draft {
            Some((draft, at)) => {
                draft.then(change);
                *at = cx.now;
            }
            None => self.draft = Some((change, cx.now)),
        }
        if self.session.is_none() {
            // There is nobody to ask: it is kept for the session that is to come.
            self.hand_over(cx);
        } else {
            cx.push(Effect::WakeAt(cx.now + QUIET));
        }
        self.want_plan(cx);
        self.refresh(cx.face);
    }

    fn want_plan(&mut self, cx: &mut Cx<'_>) {
        if let Some(session) = self.session.clone() {
            let change = self.change();
            self.plan.want(&session, &change, cx);
        }
    }

    /// Sends what was turned, where nothing is on its way and it has been quiet for a while.
    fn send(&mut self, is_due: bool, cx: &mut Cx<'_>) {
        let Some(session) = self.session.clone() else { return };
        if self.sending.is_some() {
            return;
        }
        let Some((change, _)) = self.draft.take_if(|(_, at)| is_due || cx.now >= *at + QUIET) else { return };
        let request = Request::ChangeSettings(session, Box::new(change.settings.clone()), change.unset.clone());
        self.sending = Some((cx.ask(request), change));
    }

    /// Lets the app set what is left.
    fn hand_over(&mut self, cx: &mut Cx<'_>) {
        if let Some((change, _)) = self.draft.take() {
            cx.push(Effect::Set(Box::new(change.settings), change.unset));
        }
    }

    /// Closes, once nothing is on its way that what is left could overtake.
    fn leave(&mut self, cx: &mut Cx<'_>) -> Outcome {
        if self.sending.is_some() && self.draft.is_some() && !self.is_leaving {
            self.is_leaving = true;
            return Outcome::Taken;
        }
        self.hand_over(cx);
        Outcome::Closed
    }

    fn begin_writing(&mut self, cx: &Cx<'_>) {
        let Some(dial) = self.chosen() else { return };
        let known = self.known(cx.face);
        let now = if dial.source(&known) == Source::Session { dial.value(&known) } else { String::new() };
        self.writing = Some((dial, Field::new(now.trim_end_matches('%')), String::new()));
    }

    fn write(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        let known = self.known(cx.face);
        let Some((dial, field, wrong)) = &mut self.writing else { return Outcome::Passed };
        match action {
            Some(Action::Abort) => self.writing = None,
            Some(Action::Submit) => match dial.written(&known, field.text()) {
                Ok(change) => {
                    self.writing = None;
                    self.change_by(Some(change), cx);
                }
                Err(why) => *wrong = why,
            },
            _ => match field.handle(input, action) {
                Edited::Changed => wrong.clear(),
                Edited::Passed if !matches!(input, Input::Key(_) | Input::Mouse(_)) => return Outcome::Passed,
                _ => {}
            },
        }
        Outcome::Taken
    }

    fn answered(&mut self, answer: Result<Answer, ApiError>, change: Change, cx: &mut Cx<'_>) -> Outcome {
        match answer {
            Ok(Answer::View(view)) => self.told = Some(view),
            Ok(_) => {}
            Err(error) => {
                let name = change.unset.first().cloned().unwrap_or_else(|| "it".into());
                self.wrong = Some(format!("Not changed ({}): {}", line(&name), line(&error.message)));
                if self.is_leaving {
                    cx.say(format!("The settings could not be changed: {}", line(&error.message)));
                }
            }
        }
        if self.is_leaving {
            self.hand_over(cx);
            return Outcome::Closed;
        }
        self.plan.spoil();
        self.send(false, cx);
        self.want_plan(cx);
        self.refresh(cx.face);
        Outcome::Taken
    }

    /// What is said about the chosen dial.
    fn words(&self, sight: Sight<'_>) -> Vec<(String, Look)> {
        let Some(dial) = self.chosen() else { return Vec::new() };
        let known = self.known(sight.face);
        let mut out = Vec::new();
        if let Some(wrong) = &self.wrong {
            out.push((wrong.clone(), Look::Bad));
        }
        out.push((dial.about(), Look::Text));
        let from = match dial.source(&known) {
            Source::Session => "The session sets it; Delete gives it back to the configuration.",
            Source::Configuration => "The configuration sets it; what you change here is this session's alone.",
            Source::Default => "Nobody sets it; what you change here is this session's alone.",
        };
        out.push((from.to_owned(), Look::Dim));
        if dial.is_of_plan() && self.session.is_some() {
            out.extend(self.plan_words());
        }
        out
    }

    fn plan_words(&self) -> Vec<(String, Look)> {
        match self.plan.of(&self.change()) {
            None => vec![("Plan: asking the server …".into(), Look::Dim)],
            Some(Err(error)) => vec![(format!("Plan: {}", line(&error.message)), Look::Warn)],
            Some(Ok(told)) => {
                let (next, budget) = (&told.next, &told.report.budget);
                let mut out = vec![(
                    format!(
                        "Plan: {} of {} usable tokens now; compacted at {}; it can land at {}% to {}%.",
                        numbers::count(next.fill),
                        numbers::count(budget.usable),
                        numbers::count(next.trigger),
                        next.floor_percent,
                        next.ceiling_percent
                    ),
                    Look::Name,
                )];
                match plan_words(next) {
                    Some(words) => out.extend(words.into_iter().take(2)),
                    None => out.push(("Nothing would be gained now.".into(), Look::Dim)),
                }
                out
            }
        }
    }
}

impl Layer for Dials {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        match input {
            Input::Wake => {
                self.send(false, cx);
                if let Some((_, at)) = &self.draft {
                    cx.push(Effect::WakeAt(at + QUIET));
                }
                return Outcome::Passed;
            }
            Input::News(news) => {
                let is_about = |event: &Event| {
                    matches!(
                        event,
                        Event::SettingsChanged(_) | Event::StepDone(_) | Event::RunDone(_) | Event::CompactionDone(_)
                    )
                };
                if news.iter().any(|envelope| envelope.agent.is_empty() && is_about(&envelope.event)) {
                    self.plan.spoil();
                    self.want_plan(cx);
                }
                return Outcome::Passed;
            }
            _ => {}
        }
        if self.writing.is_some() {
            return self.write(input, action, cx);
        }
        let known = self.known(cx.face);
        let code = if let Input::Key(key) = input { Some(key.code) } else { None };
        match (action, code) {
            (Some(Action::Abort | Action::Settings), _) => return self.leave(cx),
            (None, Some(KeyCode::Left | KeyCode::Right)) => {
                let change = self.chosen().and_then(|dial| dial.turned(&known, code == Some(KeyCode::Right)));
                self.change_by(change, cx);
            }
            (None, Some(KeyCode::Delete)) => {
                let change = self.chosen().and_then(|dial| dial.given_back(&known));
                self.change_by(change, cx);
            }
            _ => match self.list.handle(input, action) {
                Said::Picked(_) => self.begin_writing(cx),
                Said::Passed if !matches!(input, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) => {
                    return Outcome::Passed;
                }
                Said::Passed | Said::Taken | Said::Query => self.wrong = None,
            },
        }
        Outcome::Taken
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if let Some((_, change)) = self.sending.take_if(|(sent, _)| *sent == ticket) {
            return self.answered(answer, change, cx);
        }
        if self.plan.answer(ticket, &answer) {
            self.want_plan(cx);
            return Outcome::Taken;
        }
        if self.asked == Some(ticket) {
            self.asked = None;
            if let Ok(Answer::Configuration(configuration)) = answer {
                self.configuration = configuration.config;
                self.refresh(cx.face);
            }
            return Outcome::Taken;
        }
        Outcome::Passed
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        self.refresh(sight.face);
        let title = match (&self.session, sight.face.is_busy()) {
            (None, _) => "Settings of the session that your first message makes",
            (_, true) => "Settings · they hold from the next run on",
            _ => "Settings",
        };
        let inner = frame(area, buf, sight, title);
        let words = self.words(sight);
        let rows: Vec<(String, Look)> = words
            .into_iter()
            .flat_map(|(text, look)| wrapped(&text, inner.width).into_iter().map(move |row| (row, look)))
            .collect();
        let wanted = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let height = wanted.min(inner.height / 2).min(inner.height.saturating_sub(4));
        let list = Rect { height: inner.height - height, ..inner };
        let below = Rect { y: list.bottom(), height, ..inner };
        for (at, (text, look)) in rows.iter().enumerate().take(height.into()) {
            Line::new(below, at as u16).put(buf, text, look.style(sight.theme));
        }
        let cursor = self.list.draw(list, buf, "", sight);
        let Some((dial, field, wrong)) = &self.writing else { return cursor };
        let width = super::parts::dialog(area, 0).width.saturating_sub(4);
        let said: Vec<(String, Look)> = [(wrong.clone(), Look::Bad), (dial.about(), Look::Dim)]
            .into_iter()
            .filter(|(text, _)| !text.is_empty())
            .flat_map(|(text, look)| wrapped(&text, width).into_iter().map(move |row| (row, look)))
            .collect();
        let place = super::parts::dialog(area, said.len() as u16 + 1);
        let inner = frame(place, buf, sight, dial.name());
        for (at, (text, look)) in said.iter().enumerate() {
            Line::new(inner, at as u16 + 1).put(buf, text, look.style(sight.theme));
        }
        field.draw(Rect { height: inner.height.min(1), ..inner }, buf, "› ", sight)
    }

    fn takes_text(&self) -> bool {
        self.writing.is_some()
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let closes = sight.keys.hint(Action::Abort);
        if self.is_leaving {
            return format!("sending the last change … · {closes} once more leaves");
        }
        match self.writing {
            Some(_) => format!("Enter sets it, empty gives it back · {closes} leaves it"),
            None => {
                let unset = sight.keys.inner("settings.unset");
                format!("← → turn · Enter writes · {unset} gives back · {closes} closes")
            }
        }
    }

    fn name(&self) -> &'static str {
        "settings"
    }
}

#[cfg(test)]
mod tests;
