//! A place for layers in tests: what they may know, what they wanted done, and their screens.

use hames_protocol::api::{ApiError, SessionActivity, SessionRow, SessionView, WindowFill};
use hames_protocol::{ModelRef, Settings};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use crate::shell::Painter;
use crate::snapshot::{THEMES, rows};
use crate::{Answer, Cx, Effect, Face, Input, Keymap, Layer, Link, Outcome, Request, Sight, Theme, Ticket};

/// The Unix time in tests: milliseconds.
pub(crate) const UNIX: u64 = 1_796_000_000_000;

/// What a layer is in.
pub(crate) struct Stand {
    pub(crate) face: Face,
    pub(crate) keys: Keymap,
    pub(crate) theme: Theme,
    pub(crate) now: u64,
    pub(crate) effects: Vec<Effect>,
    tickets: u64,
}

impl Default for Stand {
    fn default() -> Self {
        let face = Face {
            folder: "/home/ada/lathe".into(),
            link: Link::Up { notice: None },
            size: (80, 24),
            is_focused: true,
            epoch: UNIX,
            ..Face::default()
        };
        Self { face, keys: Keymap::default(), theme: THEMES[0].1, now: 0, effects: Vec::new(), tickets: 0 }
    }
}

/// A key without modifiers.
pub(crate) fn key(code: KeyCode) -> Input {
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// A letter with Ctrl.
pub(crate) fn ctrl(c: char) -> Input {
    Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL))
}

/// A letter with Alt.
pub(crate) fn alt(c: char) -> Input {
    Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::ALT))
}

/// The mouse at a cell.
pub(crate) fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Input {
    Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

/// A click at a cell.
pub(crate) fn click(column: u16, row: u16) -> Input {
    mouse(MouseEventKind::Down(MouseButton::Left), column, row)
}

/// A session of a list.
pub(crate) fn row(id: &str, name: &str) -> SessionRow {
    SessionRow {
        id: id.into(),
        name: name.into(),
        folder: "/home/ada/lathe".into(),
        folder_missing: false,
        created_at: UNIX - 7_200_000,
        updated_at: UNIX - 3_600_000,
        last_seq: 40,
        turns: 3,
        model: Some("shop/small".into()),
        mode: None,
        first_line: "mend the lathe".into(),
        state: SessionActivity::Idle,
        last_result: None,
        pending: 0,
        held_by: None,
    }
}

/// What is known of a session.
pub(crate) fn view(row: SessionRow) -> SessionView {
    let model: Option<ModelRef> = "shop/small".parse().ok();
    SessionView {
        row,
        settings: Settings::default(),
        effective: Settings { model, ..Settings::default() },
        run: None,
        next_run: vec![],
        pending: vec![],
        paused: false,
        todos: vec![],
        proposals: vec![],
        window: WindowFill { used: 30_000, usable: 100_000, window: 128_000 },
    }
}

/// What a terminal shows of it: exactly what was drawn, and the cursor where it was put.
fn in_a_terminal(buf: &Buffer, cursor: Option<Position>) -> String {
    let area = buf.area;
    let frame = Painter::default().frame((area.width, area.height), |_, out| {
        out.merge(buf);
        cursor
    });
    let mut emulator = vt100::Parser::new(area.height, area.width, 0);
    emulator.process(&frame.unwrap());
    let screen = emulator.screen();
    let shown: Vec<String> = screen.rows(0, area.width).map(|row| format!("|{}\n", row.trim_end())).collect();
    let shown = shown.concat();
    // This emulator draws a joined character as its parts.
    let is_plain = |row: &&str| !row.contains('\u{200d}');
    let drawn = rows(buf, area, false);
    assert!(shown.lines().zip(drawn.lines()).filter(|(_, row)| is_plain(row)).all(|(a, b)| a == b), "{shown}\n{drawn}");
    assert_eq!(screen.hide_cursor(), cursor.is_none());
    if let Some(at) = cursor {
        assert_eq!(screen.cursor_position(), (at.y, at.x));
    }
    shown
}

impl Stand {
    /// With a session on the screen.
    pub(crate) fn showing(row: SessionRow) -> Self {
        let mut stand = Self::default();
        stand.face.session = Some(row.id.clone());
        stand.face.view = Some(view(row));
        stand
    }

    pub(crate) fn cx(&mut self) -> Cx<'_> {
        let Self { face, keys, now, effects, tickets, .. } = self;
        Cx { face, keys, now: *now, effects, next_ticket: tickets }
    }

    pub(crate) fn sight(&self) -> Sight<'_> {
        Sight { face: &self.face, keys: &self.keys, theme: &self.theme, now: self.now }
    }

    /// Gives a layer an input, with the action the key has.
    pub(crate) fn give(&mut self, layer: &mut dyn Layer, input: &Input) -> Outcome {
        let action = match input {
            Input::Key(key) => self.keys.action(key),
            _ => None,
        };
        layer.handle(input, action, &mut self.cx())
    }

    /// Types into a layer.
    pub(crate) fn type_text(&mut self, layer: &mut dyn Layer, text: &str) {
        for c in text.chars() {
            self.give(layer, &key(KeyCode::Char(c)));
        }
    }

    /// What was asked of the server, and forgotten.
    pub(crate) fn asked(&mut self) -> Vec<(Ticket, Request)> {
        let (asked, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.effects).into_iter().partition(|effect| matches!(effect, Effect::Ask(..)));
        self.effects = rest;
        asked.into_iter().filter_map(|e| if let Effect::Ask(t, r) = e { Some((t, *r)) } else { None }).collect()
    }

    /// Answers the one thing that was asked.
    pub(crate) fn answer(&mut self, layer: &mut dyn Layer, answer: Result<Answer, ApiError>) -> Outcome {
        let asked = self.asked();
        let [(ticket, _)] = &asked[..] else { panic!("not one thing was asked: {asked:?}") };
        layer.answer(*ticket, answer, &mut self.cx())
    }

    /// What was said in the hint line, and forgotten.
    pub(crate) fn said(&mut self) -> Vec<String> {
        let said =
            self.effects.iter().filter_map(|e| if let Effect::Say(text) = e { Some(text.clone()) } else { None });
        let said = said.collect();
        self.effects.retain(|effect| !matches!(effect, Effect::Say(_)));
        said
    }

    /// A layer's screen, as text.
    pub(crate) fn screen(&self, layer: &mut dyn Layer, width: u16, height: u16) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        layer.draw(area, &mut buf, self.sight());
        rows(&buf, area, false)
    }

    /// A layer at every size that screens are kept for, in dark and light, with its hint.
    pub(crate) fn screens(&mut self, layer: &mut dyn Layer) -> String {
        let mut out = String::new();
        for (width, height) in [(80, 24), (40, 15), (120, 40)] {
            // The hint line and the status line are not the layer's.
            let area = Rect::new(0, 0, width, height - 2);
            let mut words = Vec::new();
            for (name, theme) in &THEMES[..2] {
                self.theme = *theme;
                let mut buf = Buffer::empty(area);
                let cursor = layer.draw(area, &mut buf, self.sight());
                words.push(in_a_terminal(&buf, cursor));
                // In light it has the same words in other colours; those are kept once.
                if height == 24 || *name == "dark" {
                    let cursor = cursor.map_or("none".to_owned(), |at| format!("{},{}", at.x, at.y));
                    out.push_str(&format!("{name}, {width}x{height}, cursor {cursor}\n"));
                    out.push_str(&rows(&buf, area, height == 24));
                    out.push_str(&format!("{}\n\n", layer.hint(self.sight())));
                }
            }
            assert_eq!(words[0], words[1], "{}: light and dark say the same at {width}x{height}", layer.name());
        }
        self.theme = THEMES[0].1;
        out
    }

    /// Draws a layer at every small size: nothing panics, whatever there is room for.
    pub(crate) fn at_every_size(&mut self, layer: &mut dyn Layer) {
        for width in (0..24).chain([31, 40, 59]) {
            for height in (0..12).chain([17]) {
                self.screen(layer, width, height);
            }
        }
    }
}
