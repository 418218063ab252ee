//! Frames: only what differs from the screen is written, in one piece that terminals show at once.

use std::io;

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// Begins and ends a frame for terminals that show it whole; others ignore it.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
/// Colours off, everything away, cursor hidden.
const CLEAR: &[u8] = b"\x1b[0m\x1b[2J\x1b[?25l";

/// What the screen holds.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    screen: Buffer,
    next: Buffer,
    cursor: Option<Position>,
    is_known: bool,
}

impl Painter {
    /// Nothing is known of the screen any more: the next frame is drawn whole.
    pub(crate) fn forget(&mut self) {
        self.is_known = false;
    }

    /// The bytes that make the screen what `draw` says; none where it is that already.
    pub(crate) fn frame(
        &mut self,
        (width, height): (u16, u16),
        draw: impl FnOnce(Rect, &mut Buffer) -> Option<Position>,
    ) -> io::Result<Vec<u8>> {
        let area = Rect::new(0, 0, width, height);
        self.next.resize(area);
        self.next.reset();
        let cursor = draw(area, &mut self.next).filter(|at| area.contains(*at));
        let is_whole = !self.is_known || self.screen.area != area;
        if is_whole {
            self.screen.resize(area);
            self.screen.reset();
        }
        let changes = self.screen.diff(&self.next);
        if changes.is_empty() && cursor == self.cursor && !is_whole {
            return Ok(Vec::new());
        }
        let mut bytes = BEGIN.to_vec();
        if is_whole {
            bytes.extend_from_slice(CLEAR);
            self.cursor = None;
        }
        let mut out = CrosstermBackend::new(&mut bytes);
        if !changes.is_empty() {
            if self.cursor.is_some() {
                out.hide_cursor()?;
            }
            out.draw(changes.into_iter())?;
        }
        match cursor {
            Some(at) => {
                out.set_cursor_position(at)?;
                out.show_cursor()?;
            }
            None => out.hide_cursor()?,
        }
        bytes.extend_from_slice(END);
        self.cursor = cursor;
        self.is_known = true;
        std::mem::swap(&mut self.screen, &mut self.next);
        Ok(bytes)
    }
}
