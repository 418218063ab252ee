//! The status line: what is shown, where, in which mode, by which model, how full, what waits, how the server is reached.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use unicode_width::UnicodeWidthStr;

use crate::app::name_of;
use crate::talk::numbers;
use crate::talk::text::cut_to;
use crate::{Link, Sight};
use hames_protocol::{Delivery, Mode};

/// Cells of a name or of what is being done: a longer one would push everything else away.
const MAX_NAME: usize = 28;
/// Between two things.
const GAP: &str = " · ";

/// A piece of the line, and how much it is missed: the least missed go first where there is no room.
struct Piece {
    text: String,
    style: Style,
    rank: u8,
}

/// Draws the line into its area; what has no room is left out, the mode last of all.
pub(crate) fn draw(area: Rect, buf: &mut Buffer, sight: Sight<'_>) {
    if area.is_empty() {
        return;
    }
    let mut pieces = pieces(sight);
    while width(&pieces) > usize::from(area.width) && pieces.len() > 1 {
        let least = pieces.iter().enumerate().max_by_key(|(_, piece)| piece.rank).map_or(0, |(at, _)| at);
        pieces.remove(least);
    }
    let mut spans = Vec::new();
    for (at, piece) in pieces.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(GAP, sight.theme.dim()));
        }
        spans.push(Span::styled(piece.text, piece.style));
    }
    Line::from(spans).render(area, buf);
}

fn width(pieces: &[Piece]) -> usize {
    let texts: usize = pieces.iter().map(|piece| piece.text.width()).sum();
    texts + GAP.width() * pieces.len().saturating_sub(1)
}

fn pieces(sight: Sight<'_>) -> Vec<Piece> {
    let (face, theme) = (sight.face, sight.theme);
    let mut out = Vec::new();
    let mut add = |rank: u8, style: Style, text: String| {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        if !text.is_empty() {
            out.push(Piece { text, style, rank });
        }
    };
    let (mode, next) = (face.mode(), face.next_mode());
    let style = if mode == Mode::Build { theme.build() } else { theme.analyze() };
    add(0, style, if mode == Mode::Build { format!(" {} ", name_of(mode)) } else { name_of(mode).into() });
    if next != mode {
        add(2, theme.warn(), format!("then {}", name_of(next)));
    }
    match &face.link {
        Link::Connecting => add(1, theme.warn(), "connecting".into()),
        Link::Lost(_) => add(1, theme.bad(), "no server".into()),
        Link::Stopped => add(1, theme.warn(), "server stopped".into()),
        Link::Up { .. } => {}
    }
    if let Some((what, since)) = face.slow {
        add(2, theme.warn(), format!("{what} {} s", sight.now.saturating_sub(since) / 1_000));
    }
    let Some(view) = &face.view else {
        let name = if face.session.is_some() { "" } else { "new session" };
        add(5, theme.name(), name.into());
        add(8, theme.dim(), folder(&face.folder));
        if let Some(model) = &face.chosen.model {
            add(4, theme.dim(), model.to_string());
        }
        return out;
    };
    if let Some(run) = &view.run {
        let going = sight.unix().saturating_sub(run.started_at);
        add(2, theme.name(), format!("{} {}", cut_to(&run.doing, MAX_NAME), numbers::elapsed(going)));
    }
    let counts = counts(view.pending.iter().map(|pending| pending.delivery), view.paused);
    add(3, theme.warn(), counts);
    if !view.proposals.is_empty() {
        add(4, theme.warn(), plural(view.proposals.len(), "change proposed", "changes proposed"));
    }
    add(5, theme.name(), cut_to(&view.row.name, MAX_NAME));
    add(8, theme.dim(), cut_to(&folder(&view.row.folder), MAX_NAME));
    if view.row.folder_missing {
        add(3, theme.bad(), "folder is gone".into());
    }
    let model = view.run.as_ref().map(|run| run.model.to_string());
    let model = model.or_else(|| view.effective.model.as_ref().map(ToString::to_string));
    add(6, theme.dim(), model.map_or_else(|| "no model".into(), |model| cut_to(&model, MAX_NAME)));
    if let Some(percent) = view.window.used.saturating_mul(100).checked_div(view.window.usable) {
        let style = if percent >= 80 { theme.warn() } else { theme.dim() };
        add(7, style, format!("{percent}% of {}", short(view.window.window)));
    }
    if let Some(by) = &view.row.held_by {
        add(2, theme.warn(), format!("run by {by}"));
    }
    out
}

fn counts(deliveries: impl Iterator<Item = Delivery>, paused: bool) -> String {
    let (mut queued, mut soon) = (0, 0);
    for delivery in deliveries {
        if delivery == Delivery::Queue {
            queued += 1;
        } else {
            soon += 1;
        }
    }
    let mut all = Vec::new();
    if soon > 0 {
        all.push(format!("{soon} joining"));
    }
    if queued > 0 {
        all.push(format!("{queued} queued{}", if paused { ", paused" } else { "" }));
    }
    all.join(", ")
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The last folder of a path.
fn folder(path: &str) -> String {
    path.rsplit('/').find(|name| !name.is_empty()).unwrap_or("/").to_owned()
}

/// Tokens, in thousands or millions.
fn short(tokens: u64) -> String {
    match tokens {
        0..=9_999 => tokens.to_string(),
        10_000..=999_999 => format!("{}k", tokens / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}
