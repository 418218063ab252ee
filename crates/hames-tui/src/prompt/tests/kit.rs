//! A desk to write at: a prompt, what it knows, and what it wanted done.

use hames_protocol::api::{
    ApiError, ApiErrorCode, Files, OpenRun, SessionActivity, SessionRow, SessionView, WindowFill,
};
use hames_protocol::{Delivery, Mode, ModelRef, Part, Pending, PendingId, RunId, SessionId, Settings};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

use super::super::{Command, Kept, Prompt, PromptOutcome};
use crate::snapshot::rows;
pub(super) use crate::snapshot::{THEMES, compare};
use crate::{Answer, Cx, Effect, Face, Input, Keymap, Link, Request, Sight, Theme, Ticket};

pub(super) struct Desk {
    pub(super) prompt: Prompt,
    pub(super) face: Face,
    pub(super) keys: Keymap,
    pub(super) theme: Theme,
    pub(super) now: u64,
    pub(super) effects: Vec<Effect>,
    pub(super) sent: Vec<(Vec<Part>, Delivery)>,
    pub(super) drafts: Vec<Kept>,
    pub(super) commands: Vec<Command>,
    tickets: u64,
}

pub(super) fn session() -> SessionId {
    SessionId::from("s1")
}

pub(super) fn view() -> SessionView {
    let row = SessionRow {
        id: session(),
        name: "parser".into(),
        folder: "/home/me/work".into(),
        folder_missing: false,
        created_at: 0,
        updated_at: 0,
        last_seq: 9,
        turns: 1,
        model: None,
        mode: None,
        first_line: String::new(),
        state: SessionActivity::Idle,
        last_result: None,
        pending: 0,
        held_by: None,
    };
    SessionView {
        row,
        settings: Settings::default(),
        effective: Settings::default(),
        run: None,
        next_run: Vec::new(),
        pending: Vec::new(),
        paused: false,
        todos: Vec::new(),
        proposals: Vec::new(),
        window: WindowFill { used: 0, usable: 1, window: 1 },
    }
}

pub(super) fn run(mode: Mode, finishing: &[&str]) -> OpenRun {
    OpenRun {
        run: RunId::from("r1"),
        turn: 2,
        mode,
        model: "local/small".parse::<ModelRef>().unwrap(),
        step: 1,
        started_at: 0,
        doing: "thinking".into(),
        finishing: finishing.iter().map(|text| (*text).to_owned()).collect(),
    }
}

pub(super) fn pending(id: &str, delivery: Delivery, text: &str) -> Pending {
    Pending { id: PendingId::from(id), parts: vec![Part::text(text)], delivery, idempotency_id: None }
}

pub(super) fn refused(code: ApiErrorCode, message: &str) -> Result<Answer, ApiError> {
    Err(ApiError::new(code, message))
}

/// `ctrl+w`, `shift+left`, `x`.
pub(super) fn key(name: &str) -> KeyEvent {
    let mut modifiers = KeyModifiers::NONE;
    let mut rest = name;
    for (prefix, modifier) in
        [("ctrl+", KeyModifiers::CONTROL), ("alt+", KeyModifiers::ALT), ("shift+", KeyModifiers::SHIFT)]
    {
        if let Some(after) = rest.strip_prefix(prefix) {
            modifiers |= modifier;
            rest = after;
        }
    }
    let code = match rest {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "back" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

impl Desk {
    /// At a session where nothing runs.
    pub(super) fn new() -> Self {
        let face = Face {
            folder: "/home/me/work".into(),
            session: Some(session()),
            view: Some(view()),
            link: Link::Up { notice: None },
            size: (80, 24),
            is_focused: true,
            ..Face::default()
        };
        Self {
            prompt: Prompt::default(),
            face,
            keys: Keymap::default(),
            theme: Theme::default(),
            now: 1_000,
            effects: Vec::new(),
            sent: Vec::new(),
            drafts: Vec::new(),
            commands: Vec::new(),
            tickets: 0,
        }
    }

    pub(super) fn view(&mut self) -> &mut SessionView {
        self.face.view.as_mut().unwrap()
    }

    fn took(&mut self, outcome: PromptOutcome) -> bool {
        match outcome {
            PromptOutcome::Taken => return true,
            PromptOutcome::Passed => return false,
            PromptOutcome::Submit { parts, delivery, draft } => {
                self.sent.push((parts, delivery));
                self.drafts.push(*draft);
            }
            PromptOutcome::Command(command) => self.commands.push(command),
        }
        true
    }

    /// Gives the prompt an input as the app would; says whether it was taken.
    pub(super) fn input(&mut self, input: Input) -> bool {
        let action = match &input {
            Input::Key(key) => self.keys.action(key),
            _ => None,
        };
        let mut cx = Cx {
            face: &self.face,
            keys: &self.keys,
            now: self.now,
            effects: &mut self.effects,
            next_ticket: &mut self.tickets,
        };
        let outcome = self.prompt.handle(&input, action, &mut cx);
        self.took(outcome)
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>) -> bool {
        let mut cx = Cx {
            face: &self.face,
            keys: &self.keys,
            now: self.now,
            effects: &mut self.effects,
            next_ticket: &mut self.tickets,
        };
        let outcome = self.prompt.answer(ticket, &answer, &mut cx);
        self.took(outcome)
    }

    pub(super) fn press(&mut self, names: &str) -> &mut Self {
        for name in names.split(' ') {
            self.input(Input::Key(key(name)));
        }
        self
    }

    pub(super) fn write(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.input(Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
        self
    }

    pub(super) fn paste(&mut self, text: &str) -> &mut Self {
        self.input(Input::Paste(text.to_owned()));
        self
    }

    /// Everything that is written, pastes in full.
    pub(super) fn text(&self) -> String {
        self.prompt.now.draft.piece().whole()
    }

    /// What was sent as text, one message each.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |parts: &Vec<Part>| match parts.first() {
            Some(Part::Text { text }) => text.clone(),
            _ => String::new(),
        };
        self.sent.iter().map(|(parts, _)| text(parts)).collect()
    }

    /// Requests that were made, with their tickets, and forgotten.
    pub(super) fn requests(&mut self) -> Vec<(Ticket, Request)> {
        let (asked, rest) = std::mem::take(&mut self.effects).into_iter().partition(|e| matches!(e, Effect::Ask(..)));
        self.effects = rest;
        let asked: Vec<Effect> = asked;
        asked.into_iter().filter_map(|e| if let Effect::Ask(t, r) = e { Some((t, *r)) } else { None }).collect()
    }

    pub(super) fn files(&mut self, ticket: Ticket, names: &[&str]) -> bool {
        let files = names.iter().map(|name| (*name).to_owned()).collect();
        self.answer(ticket, Ok(Answer::Files(Files { files, more: false })))
    }

    /// The hint line, its parts joined.
    pub(super) fn hint(&self) -> String {
        self.prompt.hints(Sight { face: &self.face, keys: &self.keys, theme: &self.theme, now: self.now }).join(" · ")
    }

    /// The prompt on a screen of a size: its rows, the cursor, and, where asked, what each cell looks like.
    pub(super) fn screen(&mut self, width: u16, height: u16, styles: bool) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let sight = Sight { face: &self.face, keys: &self.keys, theme: &self.theme, now: self.now };
        let wanted = self.prompt.height(width, (height / 2).max(1).min(height), sight);
        let place = Rect::new(0, height - wanted.min(height), width, wanted);
        let cursor = self.prompt.draw(place, &mut buf, sight);
        let cursor = cursor.map_or("none".to_owned(), |at| format!("{},{}", at.x, at.y - place.y));
        let mut out = format!("{width}x{height}: {wanted} rows, cursor {cursor}\n");
        out.push_str(&rows(&buf, place, styles));
        out
    }
}
