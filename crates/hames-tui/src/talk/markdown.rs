//! Markdown as rows.

use std::borrow::Cow;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

use super::code::Painter;
use super::table::{self, Table};
use super::text::{Deco, Run, Sheet, Wrap};
use crate::Theme;

/// Something that stands before all rows of what it holds; its first row has another sign than the rest.
struct Level {
    first: Deco,
    rest: Deco,
    is_used: bool,
}

/// Lays out Markdown.
pub(super) fn lay(sheet: &mut Sheet, source: &str, base: Style, theme: Theme, painter: &mut Painter<'_>) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        sheet,
        theme,
        painter,
        base,
        levels: Vec::new(),
        runs: Vec::new(),
        styles: Vec::new(),
        lists: Vec::new(),
        links: Vec::new(),
        table: None,
        code: None,
        wants_gap: false,
    };
    for event in Parser::new_ext(source, options) {
        writer.event(event);
    }
    writer.flush();
}

struct Writer<'s, 'p, 'c> {
    sheet: &'s mut Sheet,
    theme: Theme,
    painter: &'p mut Painter<'c>,
    base: Style,
    levels: Vec<Level>,
    runs: Vec<Run<'s>>,
    styles: Vec<Style>,
    /// The next number of each list that is open; none for bullets.
    lists: Vec<Option<u64>>,
    /// Where each link leads, and where its text began.
    links: Vec<(String, usize)>,
    table: Option<Table<'s>>,
    code: Option<(String, String)>,
    wants_gap: bool,
}

impl<'s> Writer<'s, '_, '_> {
    fn event(&mut self, event: Event<'s>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.say(text.into_string()),
            },
            Event::Code(text) => {
                let style = self.style().patch(self.theme.warn());
                self.runs.push(Run::new(text.into_string(), style));
            }
            Event::Html(text) | Event::InlineHtml(text) => self.say(text.into_string()),
            Event::SoftBreak => self.say(" "),
            Event::HardBreak => self.say("\n"),
            Event::Rule => {
                self.gap();
                let (first, rest) = self.decos();
                let used: usize = rest.iter().map(|(text, _)| super::text::columns(text)).sum();
                let rule = "─".repeat(self.sheet.width.saturating_sub(used));
                self.sheet.flow(&first, &rest, &[Run::new(rule, self.theme.frame())], Wrap::Cut);
                self.wants_gap = true;
            }
            Event::TaskListMarker(is_done) => self.say(if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.say(format!("[^{name}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.say(text.into_string()),
        }
    }

    fn start(&mut self, tag: Tag<'s>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.gap();
                let mut style = self.style().add_modifier(Modifier::BOLD);
                if level <= HeadingLevel::H2 {
                    style = style.add_modifier(Modifier::UNDERLINED);
                }
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.gap();
                let bar = ("│ ".to_owned(), self.theme.frame());
                self.levels.push(Level { first: bar.clone(), rest: bar, is_used: false });
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                let lang = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or("").to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((lang, String::new()));
            }
            Tag::HtmlBlock | Tag::Paragraph => self.gap(),
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.styles.push(self.style().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(self.style().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.styles.push(self.style().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } => {
                self.styles.push(self.style().add_modifier(Modifier::UNDERLINED));
                self.links.push((dest_url.into_string(), self.runs.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.say("[image: ");
                self.links.push((dest_url.into_string(), self.runs.len()));
            }
            Tag::Table(aligned) => {
                self.gap();
                self.table = Some(Table::new(aligned));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.wants_gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.wants_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.levels.pop();
                self.wants_gap = true;
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.wants_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                if self.levels.last().is_some_and(|level| !level.is_used) {
                    let (first, rest) = self.decos();
                    self.sheet.flow(&first, &rest, &[], Wrap::Words);
                }
                self.levels.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link => {
                self.styles.pop();
                self.link_end("");
            }
            TagEnd::Image => self.link_end("]"),
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::TableCell => {
                let runs = std::mem::take(&mut self.runs);
                if let Some(table) = &mut self.table {
                    table.cell(runs);
                }
            }
            TagEnd::Table => {
                let (first, rest) = self.decos();
                if let Some(table) = self.table.take() {
                    table::lay(self.sheet, table, &first, &rest, self.theme);
                }
                self.wants_gap = true;
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        // Items of a list whose items hold paragraphs stand apart, as they were written.
        self.gap();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", number.saturating_sub(1))
            }
            _ => "• ".to_owned(),
        };
        let rest = " ".repeat(super::text::columns(&mark));
        let style = self.theme.dim();
        self.levels.push(Level { first: (mark, style), rest: (rest, style), is_used: false });
    }

    fn link_end(&mut self, close: &str) {
        let Some((url, from)) = self.links.pop() else { return };
        let text: String = self.runs[from.min(self.runs.len())..].iter().map(|run| run.text.as_ref()).collect();
        self.say(close.to_owned());
        if !url.is_empty() && text != url && format!("mailto:{text}") != url {
            self.runs.push(Run::new(format!(" ({url})"), self.theme.dim()));
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.base)
    }

    fn say(&mut self, text: impl Into<Cow<'s, str>>) {
        let style = self.style();
        self.runs.push(Run::new(text, style));
    }

    /// An empty row before the next block, where something stands before it.
    fn gap(&mut self) {
        self.flush();
        if std::mem::take(&mut self.wants_gap) && !self.sheet.rows.is_empty() {
            let rest: Vec<Deco> = self.levels.iter().filter(|l| l.is_used).map(|level| level.rest.clone()).collect();
            self.sheet.blank(&rest);
        }
    }

    /// What stands before the first row that follows, and before the others.
    fn decos(&mut self) -> (Vec<Deco>, Vec<Deco>) {
        let first =
            self.levels.iter().map(|level| if level.is_used { level.rest.clone() } else { level.first.clone() });
        let first = first.collect();
        self.levels.iter_mut().for_each(|level| level.is_used = true);
        (first, self.levels.iter().map(|level| level.rest.clone()).collect())
    }

    fn flush(&mut self) {
        if self.table.is_some() || self.runs.iter().all(|run| run.text.is_empty()) {
            return;
        }
        let runs = std::mem::take(&mut self.runs);
        let (first, rest) = self.decos();
        self.sheet.flow(&first, &rest, &runs, Wrap::Words);
    }

    fn code_block(&mut self) {
        let Some((lang, code)) = self.code.take() else { return };
        let (mut first, mut rest) = self.decos();
        first.push(("  ".to_owned(), self.base));
        rest.push(("  ".to_owned(), self.base));
        let mut before = first;
        for runs in self.painter.paint(&lang, code.trim_end_matches('\n')) {
            self.sheet.flow(&before, &rest, &runs, Wrap::Anywhere);
            before.clone_from(&rest);
        }
        self.wants_gap = true;
    }
}

/// How a column is aligned.
pub(super) fn is_right(aligned: Alignment) -> bool {
    aligned == Alignment::Right
}
