//! The frame around a layer, with its title; what lies below is covered.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

use super::{cut_to, line};
use crate::Sight;
use crate::prompt::paint::Line;
use crate::talk::text::columns;

/// Columns a dialog has at most: longer lines are hard to read.
const DIALOG_WIDTH: u16 = 80;

/// Draws a frame and gives the area within. An area that has no room for one is used whole.
pub(crate) fn frame(area: Rect, buf: &mut Buffer, sight: Sight<'_>, title: &str) -> Rect {
    frame_in(area, buf, sight.theme.frame(), title)
}

/// The same, in a look of its own.
pub(crate) fn frame_in(area: Rect, buf: &mut Buffer, style: Style, title: &str) -> Rect {
    let area = area.intersection(buf.area);
    Clear.render(area, buf);
    if area.width < 8 || area.height < 4 {
        return area;
    }
    let title = cut_to(&line(title), usize::from(area.width) - 4);
    let block = Block::bordered().border_style(style).title(format!(" {title} "));
    let inner = block.inner(area);
    block.render(area, buf);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// Says where one is in a text, on the lower edge of its frame; nothing where there is no frame.
pub(crate) fn foot(area: Rect, buf: &mut Buffer, sight: Sight<'_>, text: &str) {
    let area = area.intersection(buf.area);
    if area.width < 8 || area.height < 4 {
        return;
    }
    let text = format!(" {} ", cut_to(&line(text), usize::from(area.width) - 6));
    let from = usize::from(area.width).saturating_sub(columns(&text) + 2);
    let edge = Rect { y: area.bottom() - 1, height: 1, ..area };
    Line::new(edge, 0).go_to(from).put(buf, &text, sight.theme.dim());
}

/// The place of a dialog whose content has so many rows: at the bottom, where the eyes are.
pub(crate) fn dialog(area: Rect, rows: u16) -> Rect {
    let width = area.width.min(DIALOG_WIDTH);
    let height = rows.saturating_add(2).min(area.height);
    Rect { x: area.x + (area.width - width) / 2, y: area.bottom() - height, width, height }
}
