//! Colours of code.
//!
//! Grammars are loaded, and code is read by them, on a thread of its own: a frame only asks, and shows what has come back;
//! until then, code is plain. What was asked for once is kept while it is shown, line by line where code still grows.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

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
/// Codes whose colours are kept.
const MAX_LIT: usize = 64;
/// Frames for which colours are waited for; should they take longer, they come with whatever is drawn next.
const PATIENCE: u64 = 90;

struct Loaded {
    syntaxes: SyntaxSet,
    dark: Colours,
    light: Colours,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

fn loaded() -> &'static Loaded {
    LOADED.get_or_init(|| {
        let themes = two_face::theme::extra();
        Loaded {
            syntaxes: two_face::syntax::extra_newlines(),
            dark: themes.get(EmbeddedThemeName::OneHalfDark).clone(),
            light: themes.get(EmbeddedThemeName::OneHalfLight).clone(),
        }
    })
}

/// What code is known by: where it stands, as long as it may grow, or what it says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    Fence(Key, u32),
    Text(u64),
}

/// How far a grammar has read.
struct State {
    parse: ParseState,
    highlight: HighlightState,
}

type Painted = Vec<Vec<(u32, Style)>>;

/// Lines to be read, from where the state stands; without one, from the beginning.
struct Job {
    name: Name,
    generation: u64,
    lang: String,
    text: String,
    state: Option<State>,
    theme: Theme,
}

/// What was read of a job; no state where there is no such grammar.
struct Done {
    name: Name,
    generation: u64,
    lines: Painted,
    state: Option<State>,
}

struct Lit {
    lang: String,
    lines: Painted,
    /// Bytes of the code that were read, or are being read.
    read: usize,
    /// None while its lines are being read.
    state: Option<State>,
    is_away: bool,
    has_grammar: bool,
    used: u64,
}

/// Colours of code, as far as they were needed.
#[derive(Default)]
pub(crate) struct Fences {
    lit: HashMap<Name, Lit>,
    theme: Theme,
    generation: u64,
    frame: u64,
    worker: Option<(Sender<Job>, Receiver<Done>)>,
    /// Jobs that are out.
    away: usize,
    /// The frame in which something was last asked for.
    asked_at: u64,
    /// Something came back since the last frame.
    has_news: bool,
    /// Lines asked for so far, ever.
    pub(super) asked: u64,
}

impl Fences {
    /// A new frame begins: what has come back is taken in. True where something has.
    pub(crate) fn frame(&mut self, theme: Theme) -> bool {
        if self.theme != theme {
            self.lit.clear();
            self.generation += 1;
        }
        self.theme = theme;
        self.frame += 1;
        if self.lit.len() > MAX_LIT {
            let oldest = self.frame.saturating_sub(2);
            self.lit.retain(|_, lit| lit.used >= oldest || lit.is_away);
        }
        let done: Vec<Done> = self.worker.iter().flat_map(|(_, done)| done.try_iter()).collect();
        done.into_iter().for_each(|done| self.take(done));
        std::mem::take(&mut self.has_news)
    }

    /// Whether something is on its way that is worth waiting for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.has_news || (self.away > 0 && self.frame < self.asked_at + PATIENCE)
    }

    fn take(&mut self, done: Done) {
        self.away = self.away.saturating_sub(1);
        self.has_news = true;
        let Some(lit) = self.lit.get_mut(&done.name).filter(|_| done.generation == self.generation) else { return };
        lit.has_grammar = done.state.is_some();
        lit.state = done.state;
        lit.lines.extend(done.lines);
        lit.is_away = false;
    }

    /// Waits for everything that was asked for.
    #[cfg(test)]
    pub(crate) fn wait(&mut self) {
        while self.away > 0 {
            let done = self.worker.as_ref().and_then(|(_, done)| done.recv().ok());
            done.into_iter().for_each(|done| self.take(done));
        }
    }

    fn send(&mut self, job: Job) -> bool {
        if self.worker.is_none() {
            let (jobs, todo) = channel::<Job>();
            let (results, done) = channel();
            // Without the thread code stays plain, which loses nothing but colour. It ends with this end of the channel.
            let work = move || while todo.recv().is_ok_and(|job| results.send(read(job)).is_ok()) {};
            if std::thread::Builder::new().name("grammars".into()).spawn(work).is_ok() {
                self.worker = Some((jobs, done));
            }
        }
        let is_sent = self.worker.as_ref().is_some_and(|(jobs, _)| jobs.send(job).is_ok());
        self.away += usize::from(is_sent);
        self.asked_at = self.frame;
        is_sent
    }
}

/// Colours code for one piece.
pub(crate) struct Painter<'f> {
    fences: &'f mut Fences,
    base: Style,
    /// Something stayed plain that will have colours later.
    pub(crate) lacks: bool,
}

impl<'f> Painter<'f> {
    pub(crate) fn new(fences: &'f mut Fences, base: Style) -> Self {
        Self { fences, base, lacks: false }
    }

    /// Whole code, from its first line on.
    pub(super) fn paint<'t>(&mut self, lang: &str, code: &str) -> Vec<Vec<Run<'t>>> {
        let mut hasher = DefaultHasher::new();
        (lang, code).hash(&mut hasher);
        self.ask(Name::Text(hasher.finish()), lang, code, true, MAX_LINES, (code, 0))
    }

    /// Lines of a fenced block that begins in `text` at `fence`; `code` are its bytes from `from` on, which begin with the
    /// line of that ordinal.
    pub(super) fn paint_lines<'t>(
        &mut self,
        key: &Key,
        text: &str,
        fence: u32,
        line: u32,
        range: std::ops::Range<usize>,
    ) -> Vec<Vec<Run<'t>>> {
        let code = &text[range.clone()];
        let whole = text.get(fence as usize..range.end).unwrap_or("");
        let Some((info, body)) = whole.split_once('\n') else { return plain(code, self.base) };
        let lang = info.trim_start_matches([' ', '`', '~']).split([' ', ',', '{']).next().unwrap_or("");
        let needed = line as usize + super::split::count(code);
        self.ask(Name::Fence(key.clone(), fence), lang, body, false, needed, (code, line as usize))
    }

    /// The colours there are, and a job for those that lack. The last line of code that may still grow waits for its end.
    fn ask<'t>(
        &mut self,
        name: Name,
        lang: &str,
        body: &str,
        is_whole: bool,
        needed: usize,
        (code, first): (&str, usize),
    ) -> Vec<Vec<Run<'t>>> {
        if self.fences.theme.depth == Depth::None || lang.is_empty() {
            return plain(code, self.base);
        }
        let frame = self.fences.frame;
        let fresh = |lang: &str| Lit {
            lang: lang.to_owned(),
            lines: Vec::new(),
            read: 0,
            state: None,
            is_away: false,
            has_grammar: true,
            used: frame,
        };
        // What is away comes back to the same name: nothing else may take its place meanwhile.
        if self.fences.lit.get(&name).is_some_and(|lit| lit.is_away && lit.lang != lang) {
            return plain(code, self.base);
        }
        let known = self.fences.lit.remove(&name).filter(|lit| lit.lang == lang && lit.read <= body.len());
        let mut lit = known.unwrap_or_else(|| fresh(lang));
        lit.used = frame;
        if lit.has_grammar && !lit.is_away && lit.lines.len() < needed.min(MAX_LINES) {
            let rest = &body[lit.read..];
            let end = if is_whole { rest.len() } else { rest.rfind('\n').map_or(0, |at| at + 1) };
            let lines = needed.min(MAX_LINES) - lit.lines.len();
            let end = rest[..end].match_indices('\n').nth(lines - 1).map_or(end, |(at, _)| at + 1);
            if end > 0 {
                self.fences.asked += super::split::count(&rest[..end]) as u64;
                let job = Job {
                    name: name.clone(),
                    generation: self.fences.generation,
                    lang: lang.to_owned(),
                    text: rest[..end].to_owned(),
                    state: lit.state.take(),
                    theme: self.fences.theme,
                };
                lit.read += end;
                lit.is_away = self.fences.send(job);
                lit.has_grammar = lit.is_away;
            }
        }
        self.lacks |= lit.is_away;
        let runs = self.runs(&lit, code, first);
        self.fences.lit.insert(name, lit);
        runs
    }

    fn runs<'t>(&self, lit: &Lit, code: &str, first: usize) -> Vec<Vec<Run<'t>>> {
        let lines = code.strip_suffix('\n').unwrap_or(code).split('\n').enumerate();
        let painted = lines.map(|(at, line)| {
            let mut runs = Vec::new();
            let mut from = 0;
            for (len, style) in lit.lines.get(first + at).map(Vec::as_slice).unwrap_or_default() {
                let to = (from + *len as usize).min(line.len());
                if let Some(text) = line.get(from..to).filter(|text| !text.is_empty()) {
                    runs.push(Run::new(text.to_owned(), self.base.patch(*style)));
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

/// Reads a job's lines by their grammar.
fn read(job: Job) -> Done {
    let Job { name, generation, lang, text, state, theme } = job;
    let loaded = loaded();
    let colours = if theme.shade == Shade::Dark { &loaded.dark } else { &loaded.light };
    let highlighter = Highlighter::new(colours);
    let begin = || {
        let syntax = loaded.syntaxes.find_syntax_by_token(&lang).filter(|syntax| syntax.name != "Plain Text")?;
        let highlight = HighlightState::new(&highlighter, ScopeStack::new());
        Some(State { parse: ParseState::new(syntax), highlight })
    };
    let mut lines = Vec::new();
    let mut state = state.or_else(begin);
    if let Some(state) = &mut state {
        for line in text.split_inclusive('\n') {
            let mut styles = Vec::new();
            if line.len() <= MAX_LINE
                && let Ok(ops) = state.parse.parse_line(line, &loaded.syntaxes)
            {
                for (style, text) in HighlightIterator::new(&mut state.highlight, &ops, line, &highlighter) {
                    styles.push((text.len() as u32, style_of(style, colours.settings.foreground, theme.depth)));
                }
            }
            lines.push(styles);
        }
    }
    Done { name, generation, lines, state }
}

fn style_of(style: syntect::highlighting::Style, plain: Option<syntect::highlighting::Color>, depth: Depth) -> Style {
    let mut out = Style::new();
    let c = style.foreground;
    if plain != Some(c) {
        out = out.fg(if depth == Depth::True { Color::Rgb(c.r, c.g, c.b) } else { nearest(c.r, c.g, c.b) });
    }
    for (font, modifier) in [(FontStyle::BOLD, Modifier::BOLD), (FontStyle::ITALIC, Modifier::ITALIC)] {
        if style.font_style.contains(font) {
            out = out.add_modifier(modifier);
        }
    }
    out
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
