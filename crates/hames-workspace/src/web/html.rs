//! HTML as Markdown.
//!
//! A page is hostile: it may be nested without end, or written so that a correct parser does the square of the work it
//! was given. So the tree is built under a budget ([`tree`]), pruned of what says nothing and of what lies too deep
//! ([`prune`]), and only then handed to the library that writes Markdown, on a thread with a stack of its own. Where the
//! budget runs out or anything goes wrong, the caller shows the source as it is.

mod prune;
mod tree;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdown};
use reqwest::Url;

use self::tree::Budget;

/// Bytes of stack for writing Markdown, which goes down the tree by recursion. Pages in memory are only those used.
const STACK: usize = 32 << 20;

/// Elements that say nothing in text, or are the page's furniture.
const SKIPPED: [&str; 26] = [
    "script", "style", "noscript", "template", "nav", "svg", "math", "canvas", "iframe", "object", "embed", "applet",
    "audio", "video", "map", "button", "input", "select", "textarea", "datalist", "progress", "meter", "dialog",
    "link", "meta", "base",
];

/// A page as Markdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Its title on one line; empty where it has none.
    pub(super) title: String,
    /// Its content.
    pub(super) text: String,
    /// Parts were left out because they lie too deep, or there were too many.
    pub(super) cut: bool,
}

/// Turns a page into Markdown; `None` where that would take too much. Links come out absolute. Blocks.
pub(super) fn to_markdown(html: &str, url: &Url) -> Option<Page> {
    within(tree::BUDGET, html, url)
}

fn within(budget: Budget, html: &str, url: &Url) -> Option<Page> {
    std::thread::scope(|scope| {
        let work = std::thread::Builder::new().name("html".into()).stack_size(STACK);
        let writing = work.spawn_scoped(scope, || write(budget, html, url)).ok()?;
        // The thread ends by unwinding where the budget runs out.
        writing.join().ok()
    })
}

fn write(budget: Budget, html: &str, url: &Url) -> Page {
    let tree = tree::parse(html, budget);
    let pruned = prune::prune(&tree.document, url);
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED.to_vec())
        .skip_tags(vec!["title"])
        .add_handler(vec!["table"], table)
        .add_handler(vec!["pre"], preformatted)
        .build();
    let text = tidy(&converter.tree_to_markdown(&tree.document));
    Page { title: pruned.title, text, cut: pruned.cut || tree.cut }
}

/// Characters the library may write for one table. It pads every cell to the widest of its column, so a table of many
/// rows with one long cell would become huge.
const MAX_TABLE: usize = 1 << 20;

/// Tables that fit become tables; of others the cells come one below the other.
fn table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let shape = prune::TableShape::of(element.node);
    if shape.rows.saturating_mul(shape.columns).saturating_mul(shape.widest + 3) <= MAX_TABLE {
        return handlers.fallback(element);
    }
    let content = handlers.walk_children(element.node).content;
    Some(format!("\n\n{}\n\n", content.trim_matches('\n')).into())
}

/// Preformatted text without a `code` element is a block of code as well; the library would let its blanks be taken for
/// prose.
fn preformatted(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    if prune::has_child(element.node, "code") {
        return handlers.fallback(element);
    }
    let text = prune::text_of(element.node);
    let text = text.trim_matches('\n');
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    (!text.trim().is_empty()).then(|| format!("\n\n{fence}\n{text}\n{fence}\n\n").into())
}

/// The Markdown without what only costs room: padding of tables, blanks at line ends, more than one empty line.
fn tidy(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    // The backticks that opened a block of code, while in it.
    let mut fence = 0;
    let mut gap = false;
    for line in markdown.lines() {
        let bare = line.trim();
        let ticks = bare.len() - bare.trim_start_matches('`').len();
        let in_code = fence > 0;
        if in_code && ticks >= fence && ticks == bare.len() {
            fence = 0;
        } else if !in_code && ticks >= 3 {
            fence = ticks;
        }
        if bare.is_empty() && !in_code {
            gap = true;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if std::mem::take(&mut gap) { "\n\n" } else { "\n" });
        }
        gap = false;
        match in_code {
            true => out.push_str(line),
            false if bare.starts_with('|') => unpad(line, &mut out),
            // Two blanks at the end are a line break, and so is the line's end to whoever reads this.
            false => out.push_str(line.trim_end()),
        }
    }
    out
}

/// A row of a table with one blank where there were several, and short rules.
fn unpad(line: &str, out: &mut String) {
    let mut run = 0;
    let mut last = '\0';
    for c in line.trim_end().chars() {
        run = if c == last { run + 1 } else { 1 };
        last = c;
        let most = match c {
            ' ' => 1,
            '-' => 3,
            _ => usize::MAX,
        };
        if run <= most {
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests;
