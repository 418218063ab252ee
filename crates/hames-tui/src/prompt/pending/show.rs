//! How the section of messages that wait is drawn: a header with counts, a line for each message, more where one is open.

use hames_protocol::{Delivery, Pending};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{PendingSection, counts};
use crate::Theme;
use crate::prompt::attach::take_apart;
use crate::prompt::draft::grouped;
use crate::prompt::draft::wrap::Rows;
use crate::prompt::paint::Line;
use crate::prompt::text::{cells, clean, fit, floor};

/// Rows it has at most, header included.
const MAX_ROWS: usize = 9;
/// Rows an open message has at most.
const MAX_OPEN: usize = 12;
/// Bytes of a message that are looked at; a longer one says that it goes on.
const MAX_SEEN: usize = 8 * 1024;

/// One row of the section below its header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    /// Which message it belongs to.
    index: usize,
    /// What stands before the text: the arrow and how it is delivered, in the first row only.
    mark: Option<(char, &'static str)>,
    text: String,
}

fn word(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Interrupt => "now",
        Delivery::Steer => "steer",
        Delivery::Queue => "queued",
    }
}

/// Cells before the text of a message.
const MARK: usize = 11;

impl PendingSection {
    /// Rows it wants: none where nothing waits.
    pub(crate) fn height(&self, pending: &[Pending], width: usize) -> usize {
        if pending.is_empty() {
            return 0;
        }
        1 + if self.is_folded { 0 } else { self.rows(pending, width).len().min(MAX_ROWS - 1) }
    }

    /// A message's rows as they are drawn, measured in the width there is.
    fn rows(&self, pending: &[Pending], width: usize) -> Vec<Shown> {
        let room = width.saturating_sub(MARK).max(1);
        let mut rows = Vec::with_capacity(pending.len());
        for (index, message) in pending.iter().enumerate() {
            let (texts, along) = take_apart(&message.parts);
            let (text, is_cut) = seen(&texts);
            let files = match along.len() {
                0 => String::new(),
                1 => "[1 file] ".to_owned(),
                count => format!("[{count} files] "),
            };
            let line = format!("{files}{}", text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
            let has_more = is_cut || text.trim().contains('\n') || cells(&line) > room || !along.is_empty();
            let is_open = has_more && self.open.contains(&message.id);
            let arrow = match (has_more, is_open) {
                (false, _) => ' ',
                (true, false) => '▸',
                (true, true) => '▾',
            };
            let mut push = |text: String, mark| rows.push(Shown { index, mark, text });
            let mark = Some((arrow, word(message.delivery)));
            if !is_open {
                push(fit(&line, room).into_owned(), mark);
                continue;
            }
            let mut opened: Vec<String> = along.iter().map(|(name, _)| format!("[{name}]")).collect();
            let laid = Rows::new(text.trim(), &[], room);
            let lines =
                (0..laid.len()).filter_map(|row| laid.get(row)).map(|row| text.trim()[row.start..row.end].to_owned());
            opened.extend(lines.take(MAX_OPEN + 1));
            if is_cut || opened.len() > MAX_OPEN {
                opened.truncate(MAX_OPEN);
                let bytes: usize = texts.iter().map(|text| text.len()).sum();
                opened.push(format!("… {} bytes in all; Enter opens it in the prompt", grouped(bytes)));
            }
            for (row, text) in opened.into_iter().enumerate() {
                push(text, if row == 0 { mark } else { None });
            }
        }
        rows
    }

    /// Draws the section; `has_keys` where keys go to it.
    pub(crate) fn draw(
        &mut self,
        pending: &[Pending],
        paused: bool,
        has_keys: bool,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
    ) {
        if area.height == 0 || area.width == 0 || pending.is_empty() {
            return;
        }
        self.see(pending);
        let rows = if self.is_folded { Vec::new() } else { self.rows(pending, area.width as usize) };
        let room = area.height as usize - 1;
        let marked = rows.iter().position(|row| row.index == self.index).filter(|_| has_keys).unwrap_or(0);
        let last = rows.iter().rposition(|row| row.index == self.index).filter(|_| has_keys).unwrap_or(0);
        // The marked message is in sight, its first row rather than its last.
        self.top = self.top.max((last + 1).saturating_sub(room)).min(marked).min(rows.len().saturating_sub(room));
        let mut header = Line::new(area, 0);
        header.put(buf, if self.is_folded { "▸ " } else { "▾ " }, theme.dim()).put(buf, &counts(pending), theme.name());
        if paused {
            header.put(buf, " · queue paused", theme.warn());
        }
        if rows.len() > room && room > 0 {
            let shown = format!(" · rows {}–{} of {}", self.top + 1, self.top + room, rows.len());
            header.put(buf, &shown, theme.dim());
        }
        for (line, row) in rows.iter().skip(self.top).take(room).enumerate() {
            let is_marked = has_keys && row.index == self.index;
            let style = if is_marked { theme.chosen() } else { theme.text() };
            let mut out = Line::new(area, 1 + line as u16);
            if let Some((arrow, word)) = row.mark {
                out.put(buf, " ", style).put(buf, arrow.encode_utf8(&mut [0; 4]), style).put(buf, " ", style);
                let word_style =
                    if is_marked || word == "queued" { style.patch(theme.dim()) } else { style.patch(theme.warn()) };
                out.put(buf, word, if is_marked { style } else { word_style });
            } else if is_marked {
                out.put(buf, "   ", style);
            }
            while out.column() < MARK.min(area.width as usize) {
                out.put(buf, " ", style);
            }
            out.put(buf, &row.text, style);
            if is_marked {
                out.fill(buf, style);
            }
        }
    }
}

/// The beginning of a message, and whether there is more of it.
fn seen(texts: &[&str]) -> (String, bool) {
    let mut seen = String::new();
    for text in texts {
        // The boundary is sought in what is looked at only: a line may be long too.
        let ahead = (MAX_SEEN..text.len().min(MAX_SEEN + 64)).rfind(|at| text.is_char_boundary(*at));
        let end = ahead.map_or(text.len(), |ahead| floor(&text[..ahead], MAX_SEEN));
        seen.push_str(if seen.is_empty() { "" } else { "\n" });
        seen.push_str(&clean(&text[..end]));
        if end < text.len() || seen.len() > MAX_SEEN {
            return (seen, true);
        }
    }
    (seen, false)
}
