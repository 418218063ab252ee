//! What keys and commands mean everywhere.

use hames_protocol::api::{Abort, AbortScope};
use hames_protocol::{Delivery, Mode, Part, SessionId, Settings};

use super::App;
use crate::prompt::Command;
use crate::shell::MAX_COPY;
use crate::talk::numbers;
use crate::{Action, Cx, Effect, Request, layers};

impl App {
    /// Does what a key asks for.
    pub(super) fn act(&mut self, action: Action, now: u64, effects: &mut Vec<Effect>) {
        match action {
            Action::Abort => self.escape(now, effects),
            Action::Leave => effects.push(Effect::Quit),
            Action::Suspend => effects.push(Effect::Suspend),
            Action::Redraw => effects.push(Effect::Redraw),
            Action::Mouse => effects.push(Effect::Mouse(!self.face.has_mouse)),
            other => {
                if let Some(command) = Command::of(other) {
                    self.command(command, now, effects);
                }
            }
        }
    }

    /// Does what was asked for by name.
    pub(super) fn command(&mut self, command: Command, now: u64, effects: &mut Vec<Effect>) {
        match command {
            Command::New(name) => self.new_session(name, now, effects),
            Command::Quit => effects.push(Effect::Quit),
            Command::Mode(mode) => {
                let other = if self.face.next_mode() == Mode::Build { Mode::Analyze } else { Mode::Build };
                self.set_mode(mode.unwrap_or(other), effects);
            }
            Command::Thinking(Some(level)) => {
                let change = Settings { thinking_level: Some(level), ..Settings::default() };
                self.set(change, Vec::new(), effects);
            }
            Command::Model(Some(model)) => match model.parse() {
                Ok(model) => {
                    let change = Settings { model: Some(model), ..Settings::default() };
                    self.set(change, Vec::new(), effects);
                }
                Err(_) => self.face.notice = Some("a model is written as PROVIDER/MODEL".into()),
            },
            Command::Decide => self.decide(effects),
            Command::Stop { all: false } => self.stop_run(now, effects),
            Command::Stop { all: true } => self.abort(Abort { scope: AbortScope::All, exit_code: None }, effects),
            Command::Steer(text) => self.send(vec![Part::text(text)], Delivery::Steer, None, effects),
            Command::Queue(Some(text)) => self.send(vec![Part::text(text)], Delivery::Queue, None, effects),
            Command::Queue(None) => self.with_session("a queue", effects, |app, session| {
                let is_paused = app.face.view.as_ref().is_some_and(|view| view.paused);
                app.face.notice = Some(match is_paused {
                    true => "The queue goes on.".into(),
                    false => "The queue is paused: what is queued waits until /queue lets it go on.".into(),
                });
                ("The queue could not be changed", Request::PausePending(session, !is_paused))
            }),
            Command::Compact { dry_run: false } => self.with_session("a window", effects, |_, session| {
                ("The window could not be compacted", Request::Compact(session))
            }),
            Command::Copy => match self.base.talk().last_answer() {
                Some(text) => effects.push(Effect::Copy(text)),
                None => self.face.notice = Some("There is nothing to copy yet.".into()),
            },
            Command::Output(name) => {
                let (outputs, at) = self.base.talk().outputs();
                let Self { face, keys, layers, next_ticket, .. } = self;
                let mut cx = Cx { face, keys, now, effects, next_ticket };
                if let Some(layer) = layers::output(name, outputs, at, &mut cx) {
                    layers.push(layer);
                }
            }
            other => {
                let marked = self.base.talk().selected();
                let Self { face, keys, layers, next_ticket, .. } = self;
                let mut cx = Cx { face, keys, now, effects, next_ticket };
                if let Some(layer) = layers::open(&other, marked, &mut cx) {
                    layers.push(layer);
                }
            }
        }
    }

    /// Asks for something of the session that is shown.
    fn with_session(
        &mut self,
        what: &str,
        effects: &mut Vec<Effect>,
        request: impl FnOnce(&mut Self, SessionId) -> (&'static str, Request),
    ) {
        match self.face.session.clone() {
            Some(session) => {
                let (failed, request) = request(self, session);
                self.try_to(failed, request, effects);
            }
            None => self.face.notice = Some(format!("There is no session yet that could have {what}.")),
        }
    }

    /// Changes settings, of the session or of the one that is to come.
    pub(super) fn set(&mut self, change: Settings, unset: Vec<String>, effects: &mut Vec<Effect>) {
        match self.face.session.clone() {
            Some(session) => {
                if self.face.is_busy() {
                    self.face.notice = Some("From the next run on.".into());
                }
                let request = Request::ChangeSettings(session, Box::new(change), unset);
                self.try_to("The settings could not be changed", request, effects);
            }
            None => self.face.chosen = self.face.chosen.without(&unset).patched(&change),
        }
    }

    /// Another mode: of the next run, where one goes on.
    pub(super) fn set_mode(&mut self, mode: Mode, effects: &mut Vec<Effect>) {
        let name = name_of(mode);
        let change = Settings { mode: Some(mode), ..Settings::default() };
        let Some(session) = self.face.session.clone() else {
            self.face.chosen = self.face.chosen.patched(&change);
            self.face.notice = Some(format!("The session will begin in {name}."));
            return;
        };
        self.face.notice = Some(match &self.face.view {
            Some(view) if view.run.as_ref().is_some_and(|run| run.mode != mode) => {
                format!("{name} from the next run on; the one that goes on keeps {}.", name_of(self.face.mode()))
            }
            _ => format!("{name} from now on."),
        });
        if let Some(view) = &mut self.face.view {
            view.effective.mode = Some(mode);
        }
        self.try_to(
            "The mode could not be changed",
            Request::ChangeSettings(session, Box::new(change), vec![]),
            effects,
        );
    }
}

/// What is said of a copy.
pub(super) fn of_copy(text: &str) -> String {
    match numbers::count(text.chars().count() as u64) {
        _ if text.len() > MAX_COPY => format!(
            "Copied the first {} of {}: terminals take no more at once.",
            numbers::bytes(MAX_COPY as u64),
            numbers::bytes(text.len() as u64)
        ),
        one if one == "1" => "Copied 1 character.".into(),
        characters => format!("Copied {characters} characters."),
    }
}

/// What is said when the mouse changes hands.
pub(super) fn of_mouse(is_ours: bool, key: String) -> String {
    if is_ours {
        "The mouse is ours again: a drag selects and copies, the wheel scrolls.".into()
    } else {
        format!("The mouse is the terminal's: it selects by itself. {key} takes it back.")
    }
}

/// As it is shown.
pub(crate) fn name_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Build => "Build",
        Mode::Analyze => "Analyze",
    }
}

impl App {
    /// Says something in the hint line, until the next key.
    pub(crate) fn notice(&mut self, text: &str) {
        self.face.notice = Some(text.to_owned());
    }
}
