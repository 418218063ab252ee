//! Colours of code.
//!
//! Grammars are loaded on a thread of their own when the first code is seen, so no frame waits for them; until they are
//! there, code is plain. What is coloured in one frame is bounded too: the rest follows in the next ones.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::style::{Color, Modifier, Style};
use syntect::highlighting::{FontStyle, HighlightIterator, HighlightState, Highlighter, Theme as Colours};
use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};
use two_face::theme::EmbeddedThemeName;

use super::block::Key;
use super::text::Run;
use crate::{Depth, Shade, Theme};

/// Bytes of a line that is coloured: patterns of grammars can take long on longer ones.
const MAX_LINE: usize = 400;
/// Lines of a fenced block that are coloured.
const MAX_LINES: usize = 2_000;
/// Lines that are coloured in one frame: a few milliseconds.
const LINES_A_FRAME: usize = 200;
/// Fenced blocks whose colours are kept.
const MAX_FENCES: usize = 128;

struct Loaded {
    syntaxes: SyntaxSet,
    dark: Colours,
    light: Colours,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();
static IS_LOADING: AtomicBool = AtomicBool::new(false);

fn load() -> Loaded {
    let themes = two_face::theme::extra();
    Loaded {
        syntaxes: two_face::syntax::extra_newlines(),
        dark: themes.get(EmbeddedThemeName::OneHalfDark).clone(),
        light: themes.get(EmbeddedThemeName::OneHalfLight).clone(),
    }
}

/// Loads the grammars on a thread, once.
fn begin() {
    if LOADED.get().is_none() && !IS_LOADING.swap(true, Ordering::Relaxed) {
        // Without the thread code stays plain, which loses nothing but colour.
        let _ = std::thread::Builder::new().name("grammars".into()).spawn(|| {
            LOADED.get_or_init(load);
        });
    }
}

/// Loads them here and now.
#[cfg(test)]
pub(super) fn load_now() {
    LOADED.get_or_init(load);
}

struct Lit {
    lang: String,
    parse: ParseState,
    state: HighlightState,
    lines: Vec<Vec<(u32, Style)>>,
    /// Bytes of the code that were read.
    read: usize,
}

/// Colours of fenced blocks, line by line, as far as they were needed.
#[derive(Default)]
pub(super) struct Fences {
    lit: HashMap<(Key, u32), Lit>,
    theme: Theme,
    left: usize,
    /// Lines coloured so far, ever.
    pub(super) painted: u64,
}

impl Fences {
    /// A new frame begins.
    pub(super) fn frame(&mut self, theme: Theme) {
        if self.theme != theme || self.lit.len() > MAX_FENCES {
            self.lit.clear();
        }
        self.theme = theme;
        self.left = LINES_A_FRAME;
    }
}

/// Colours code for one piece.
pub(super) struct Painter<'f> {
    fences: &'f mut Fences,
    base: Style,
    /// Something stayed plain that will have colours later.
    pub(super) lacks: bool,
}

impl<'f> Painter<'f> {
    pub(super) fn new(fences: &'f mut Fences, base: Style) -> Self {
        Self { fences, base, lacks: false }
    }

    /// Whole code, from its first line on.
    pub(super) fn paint<'t>(&mut self, lang: &str, code: &str) -> Vec<Vec<Run<'t>>> {
        let Some(mut lit) = self.begin(lang) else { return plain(code, self.base) };
        self.advance(&mut lit, code, code, usize::MAX);
        self.runs(&lit, code, 0)
    }

    /// Lines of a fenced block that begins in `text` at `fence`; `code` are its lines from the ordinal `line` on.
    pub(super) fn paint_lines<'t>(
        &mut self,
        key: &Key,
        text: &str,
        fence: u32,
        line: u32,
        code: &str,
    ) -> Vec<Vec<Run<'t>>> {
        let whole = &text[fence as usize..];
        let Some((info, body)) = whole.split_once('\n') else { return plain(code, self.base) };
        let lang = info.trim_start_matches([' ', '`', '~']).split([' ', ',', '{']).next().unwrap_or("");
        let name = (key.clone(), fence);
        let known = self.fences.lit.remove(&name).filter(|lit| lit.lang == lang);
        let Some(mut lit) = known.or_else(|| self.begin(lang)) else { return plain(code, self.base) };
        let end = (code.as_ptr() as usize).saturating_sub(body.as_ptr() as usize) + code.len();
        let needed = line as usize + super::split::count(code);
        self.advance(&mut lit, body, body.get(..end).unwrap_or(body), needed);
        let runs = self.runs(&lit, code, line as usize);
        self.fences.lit.insert(name, lit);
        runs
    }

    fn begin(&mut self, lang: &str) -> Option<Lit> {
        if self.fences.theme.depth == Depth::None || lang.is_empty() {
            return None;
        }
        let Some(loaded) = LOADED.get() else {
            begin();
            self.lacks = true;
            return None;
        };
        let syntax = loaded.syntaxes.find_syntax_by_token(lang).filter(|syntax| syntax.name != "Plain Text")?;
        Some(Lit {
            lang: lang.to_owned(),
            parse: ParseState::new(syntax),
            state: HighlightState::new(&Highlighter::new(self.colours(loaded)), ScopeStack::new()),
            lines: Vec::new(),
            read: 0,
        })
    }

    fn colours<'l>(&self, loaded: &'l Loaded) -> &'l Colours {
        if self.fences.theme.shade == Shade::Dark { &loaded.dark } else { &loaded.light }
    }

    /// Colours lines up to an ordinal, as far as they are whole and the frame's share goes. The last line of code that
    /// still grows is coloured once it has ended.
    fn advance(&mut self, lit: &mut Lit, body: &str, upto: &str, needed: usize) {
        let Some(loaded) = LOADED.get() else { return };
        let colours = self.colours(loaded);
        let highlighter = Highlighter::new(colours);
        let plain = colours.settings.foreground;
        while lit.read < upto.len() && lit.lines.len() < needed.min(MAX_LINES) {
            let rest = &body[lit.read..];
            let len = rest.find('\n').map_or(rest.len(), |at| at + 1);
            if self.fences.left == 0 {
                self.lacks = true;
                return;
            }
            let is_growing = !rest[..len].ends_with('\n') && needed != usize::MAX;
            if is_growing {
                return;
            }
            self.fences.left -= 1;
            self.fences.painted += 1;
            let line = &rest[..len];
            let mut styles = Vec::new();
            if len <= MAX_LINE
                && let Ok(ops) = lit.parse.parse_line(line, &loaded.syntaxes)
            {
                for (style, text) in HighlightIterator::new(&mut lit.state, &ops, line, &highlighter) {
                    styles.push((text.len() as u32, self.style(style, plain)));
                }
            }
            lit.lines.push(styles);
            lit.read += len;
        }
    }

    fn style(&self, style: syntect::highlighting::Style, plain: Option<syntect::highlighting::Color>) -> Style {
        let mut out = self.base;
        let c = style.foreground;
        if plain != Some(c) {
            out = out.fg(match self.fences.theme.depth {
                Depth::True => Color::Rgb(c.r, c.g, c.b),
                _ => nearest(c.r, c.g, c.b),
            });
        }
        for (font, modifier) in [(FontStyle::BOLD, Modifier::BOLD), (FontStyle::ITALIC, Modifier::ITALIC)] {
            if style.font_style.contains(font) {
                out = out.add_modifier(modifier);
            }
        }
        out
    }

    fn runs<'t>(&self, lit: &Lit, code: &str, first: usize) -> Vec<Vec<Run<'t>>> {
        let lines = code.strip_suffix('\n').unwrap_or(code).split('\n').enumerate();
        let painted = lines.map(|(at, line)| {
            let mut runs = Vec::new();
            let mut from = 0;
            for (len, style) in lit.lines.get(first + at).map(Vec::as_slice).unwrap_or_default() {
                let to = (from + *len as usize).min(line.len());
                if let Some(text) = line.get(from..to).filter(|text| !text.is_empty()) {
                    runs.push(Run::new(text.to_owned(), *style));
                }
                from = to;
            }
            if let Some(rest) = line.get(from..).filter(|rest| !rest.is_empty()) {
                runs.push(Run::new(rest.to_owned(), self.base));
            }
            runs
        });
        painted.collect()
    }
}

fn plain<'t>(code: &str, base: Style) -> Vec<Vec<Run<'t>>> {
    let lines = code.strip_suffix('\n').unwrap_or(code).split('\n');
    lines.map(|line| vec![Run::new(line.to_owned(), base)]).collect()
}

/// The colour of sixteen that says the same by its hue; greys are the terminal's own.
fn nearest(r: u8, g: u8, b: u8) -> Color {
    let (high, low) = (r.max(g).max(b), r.min(g).min(b));
    if high - low < 40 {
        return if high < 170 { Color::DarkGray } else { Color::Reset };
    }
    let middle = low + (high - low) / 2;
    match (r > middle, g > middle, b > middle) {
        (true, true, false) => Color::Yellow,
        (true, false, true) => Color::Magenta,
        (false, true, true) => Color::Cyan,
        (true, ..) => Color::Red,
        (_, true, _) => Color::Green,
        _ => Color::Blue,
    }
}
