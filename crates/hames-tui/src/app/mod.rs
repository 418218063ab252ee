//! The app: the stack of layers over the base, and who gets what.
//!
//! A key goes to the layers from the top down, then to the base, then to what the app itself does with it. Two keys go to the
//! app first, because they must work everywhere: the one that stops and leaves, and the one that draws anew. What is known of
//! the session (`session`, `refresh`) and how it is stopped (`stop`) are files of their own.

mod act;
mod keep;
mod progress;
mod refresh;
mod session;
mod stop;

use std::collections::BTreeMap;

use hames_protocol::SessionId;
use hames_protocol::api::RunTerms;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::base::{Base, hint};
use crate::{Action, Cx, Effect, Face, Input, Keymap, Layer, Outcome, SavedFolds, Sight, Spot, Theme};
use progress::Progress;
use session::Upkeep;
use stop::Stop;

pub(crate) use act::name_of;

/// How the app begins.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The session to show: its name or id in this folder; a name that does not exist is made with the first message.
    pub session: Option<String>,
    /// Show the folder's last session instead of offering it.
    pub last: bool,
    /// Makes the ids of messages its own: no two apps may have the same.
    pub seed: String,
    /// On what terms the runs go that its messages start.
    pub terms: Option<RunTerms>,
}

/// Everything the face is, between two inputs.
pub struct App {
    face: Face,
    keys: Keymap,
    theme: Theme,
    base: Base,
    /// Whatever lies over the base.
    layers: Vec<Box<dyn Layer>>,
    next_ticket: u64,
    upkeep: Upkeep,
    stop: Stop,
    progress: Progress,
    /// The draft and the history that were looked for in files last.
    recalled: Option<(Spot, String)>,
    /// What is open and closed in the sessions that were shown.
    folds: BTreeMap<SessionId, SavedFolds>,
}

impl App {
    /// An app that begins so.
    pub fn new(face: Face, keys: Keymap, theme: Theme, start: Start) -> Self {
        Self {
            face,
            keys,
            theme,
            base: Base::default(),
            layers: Vec::new(),
            next_ticket: 0,
            upkeep: Upkeep::new(start),
            stop: Stop::default(),
            progress: Progress::default(),
            recalled: None,
            folds: BTreeMap::new(),
        }
    }

    /// Says what the Unix time is, in milliseconds, at `now` of the app's clock.
    pub fn set_time(&mut self, unix: u64, now: u64) {
        self.face.epoch = unix.saturating_sub(now);
    }

    /// Takes in what happened at `now` (milliseconds of any clock that only goes forward), and says what is to be done.
    pub fn update(&mut self, input: Input, now: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        let action = match &input {
            Input::Key(key) => {
                self.face.notice = None;
                self.keys.action(key)
            }
            _ => None,
        };
        self.note(&input, now, &mut effects);
        let is_done = match action {
            Some(Action::Interrupt) => self.interrupt(&input, now, &mut effects),
            Some(Action::Redraw) => {
                effects.push(Effect::Redraw);
                true
            }
            _ => false,
        };
        if !is_done {
            self.hand_down(&input, action, now, &mut effects);
        }
        self.want_older(now, &mut effects);
        self.want_session(&mut effects);
        self.settle(now, &mut effects);
        effects
    }

    /// What the app itself has to know of an input, whoever else takes it.
    fn note(&mut self, input: &Input, now: u64, effects: &mut Vec<Effect>) {
        match input {
            Input::Resize { width, height } => self.face.size = (*width, *height),
            Input::Focus(is_focused) => self.face.is_focused = *is_focused,
            Input::Shade(shade) => self.theme.shade = *shade,
            Input::Link(link) => self.linked(link, now, effects),
            Input::News(news) => self.heard(news, now, effects),
            Input::Resync => self.read_again(now, effects),
            Input::Gone(why) => self.lost_session(why, effects),
            Input::Reply(ticket, answer) => {
                self.progress.answered(*ticket);
                self.answered(*ticket, answer, now, effects);
            }
            Input::Recalled(recalled) => self.recall(recalled),
            Input::NotKept(why) => self.face.notice = Some(why.clone()),
            Input::Leave => effects.push(Effect::Quit),
            Input::Key(_) | Input::Paste(_) | Input::Mouse(_) | Input::Wake => {}
        }
    }

    /// From the top layer down to the base, and then to what keys mean everywhere.
    fn hand_down(&mut self, input: &Input, action: Option<Action>, now: u64, effects: &mut Vec<Effect>) {
        // What everybody has to hear, nobody can keep.
        let is_for_all = matches!(input, Input::News(_) | Input::Resize { .. } | Input::Focus(_) | Input::Wake);
        let mut at = self.layers.len();
        while at > 0 {
            at -= 1;
            let Self { face, keys, layers, next_ticket, .. } = self;
            let layer = &mut layers[at];
            let mut cx = Cx { face, keys, now, effects, next_ticket };
            let outcome = match input {
                Input::Reply(ticket, answer) => layer.answer(*ticket, answer.clone(), &mut cx),
                Input::Key(key) if !layer.takes_text() => match keys.turned(layer.name(), key) {
                    Some(turned) => layer.handle(&Input::Key(turned), keys.action(&turned), &mut cx),
                    None => layer.handle(input, action, &mut cx),
                },
                _ => layer.handle(input, action, &mut cx),
            };
            let goes_on = match outcome {
                Outcome::Passed => true,
                Outcome::Taken => false,
                Outcome::Opened(layer) => {
                    self.layers.push(layer);
                    false
                }
                Outcome::Became(layer) => {
                    self.layers[at] = layer;
                    false
                }
                Outcome::Closed => {
                    self.close(at, now, effects);
                    false
                }
                Outcome::ClosedFor(action) => {
                    self.close(at, now, effects);
                    self.act(action, now, effects);
                    false
                }
            };
            if !goes_on && !is_for_all {
                return;
            }
        }
        let is_taken = self.give_to_base(input, action, now, effects);
        if let (false, Some(action)) = (is_taken, action) {
            self.act(action, now, effects);
        }
    }

    /// Takes a layer away, and tells the one below it.
    fn close(&mut self, at: usize, now: u64, effects: &mut Vec<Effect>) {
        drop(self.layers.remove(at));
        if at > 0 && at == self.layers.len() {
            let Self { face, keys, layers, next_ticket, .. } = self;
            layers[at - 1].uncovered(&mut Cx { face, keys, now, effects, next_ticket });
        }
    }

    /// The app does some effects itself; the rest is for the shell.
    fn settle(&mut self, now: u64, effects: &mut Vec<Effect>) {
        let mut wake = None;
        let mut out = Vec::with_capacity(effects.len());
        // What is done here may have effects of its own.
        while !effects.is_empty() {
            for effect in std::mem::take(effects) {
                match effect {
                    Effect::Show(session) => self.show(session, now, effects),
                    Effect::ShowAt { session, seq, words } => self.show_at(session, seq, &words, now, effects),
                    Effect::Set(change, unset) => self.set(*change, unset, effects),
                    Effect::New(name) => self.new_session(name, now, effects),
                    Effect::Draft(session, text) => self.draft(&session, text),
                    Effect::Say(text) => self.face.notice = Some(text),
                    Effect::WakeAt(at) => wake = Some(wake.map_or(at, |other: u64| other.min(at))),
                    Effect::Mouse(is_on) => {
                        self.face.has_mouse = is_on;
                        self.face.notice = Some(act::of_mouse(is_on, self.keys.hint(Action::Mouse)));
                        out.push(Effect::Mouse(is_on));
                    }
                    Effect::Copy(text) => {
                        self.face.notice = Some(act::of_copy(&text));
                        out.push(Effect::Copy(text));
                    }
                    other => {
                        self.progress.begun(&other, now);
                        out.push(other);
                    }
                }
            }
        }
        self.want_written(&mut out);
        self.face.slow = self.progress.slow(now);
        let due = [self.progress.due(now), self.stop.due(now), self.clock_due(now), self.goes_on(now), wake];
        out.extend(due.into_iter().flatten().min().map(Effect::WakeAt));
        *effects = out;
    }

    /// While a run goes on its time is shown, in seconds.
    fn clock_due(&self, now: u64) -> Option<u64> {
        let run = self.face.view.as_ref()?.run.as_ref()?;
        let going = (self.face.epoch + now).saturating_sub(run.started_at);
        Some(now + 1_000 - going % 1_000)
    }

    /// Draws the whole screen; says where the cursor stands.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, now: u64) -> Option<Position> {
        let sight = Sight { face: &self.face, keys: &self.keys, theme: &self.theme, now };
        let mut cursor = self.base.draw(area, buf, sight);
        let stopping = self.stop.hint(sight);
        let Some(top) = self.layers.last() else {
            self.base.draw_hint(buf, sight, stopping.as_deref());
            return cursor;
        };
        let room = hint::rows(&top.hint(sight), area.width).len();
        let above = Base::above(area, room);
        for layer in &mut self.layers {
            cursor = layer.draw(above, buf, sight);
        }
        // A layer may know only now where one is in it.
        let says = self.layers.last().map(|layer| hint::rows(&layer.hint(sight), area.width)).unwrap_or_default();
        self.base.draw_layer_hint(area, buf, sight, &says[..says.len().min(room)]);
        cursor
    }

    /// When a frame that was drawn at `now` wants another one, though nothing comes.
    pub fn goes_on(&mut self, now: u64) -> Option<u64> {
        let layer = self.layers.last().and_then(|layer| layer.wake_at(now));
        self.base.talk().wake_at(now).into_iter().chain(layer).min()
    }

    /// What lies on top, for tests and for plain mode.
    pub fn top(&self) -> &'static str {
        self.layers.last().map_or("base", |layer| layer.name())
    }
}

#[cfg(test)]
mod tests;
