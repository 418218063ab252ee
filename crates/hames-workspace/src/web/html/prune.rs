//! What is taken out of a tree before it becomes text, and what is mended in it: one pass, without recursion.

use std::rc::Rc;

use html5ever::tendril::StrTendril;
use markup5ever_rcdom::{Handle, Node, NodeData};
use reqwest::Url;

use super::SKIPPED;

/// Elements inside one another. Pages made by hand have a dozen, the worst page builders some sixty.
const MAX_DEPTH: usize = 128;

/// Lists, quotes and tables inside one another: each writes something in front of every line it holds.
const MAX_INDENTS: usize = 12;

/// Bytes that making links absolute may add to a page.
const MAX_ADDED: usize = 2 << 20;

/// Characters of a title.
const MAX_TITLE: usize = 300;

/// What a pass over the tree found.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    /// The first title, on one line.
    pub(super) title: String,
    /// Something lay too deep and is gone.
    pub(super) cut: bool,
}

/// Takes out what says nothing, is hidden or lies too deep, and makes links absolute.
pub(super) fn prune(document: &Handle, url: &Url) -> Pruned {
    let mut pruned = Pruned::default();
    let mut links = Links { base: base_of(document, url), room: MAX_ADDED };
    let mut open: Vec<(Handle, usize, usize)> = vec![(document.clone(), 0, 0)];
    while let Some((node, depth, indents)) = open.pop() {
        let mut children = node.children.borrow_mut();
        children.retain(|child| match &child.data {
            NodeData::Text { .. } | NodeData::Document => true,
            NodeData::Doctype { .. } | NodeData::Comment { .. } | NodeData::ProcessingInstruction { .. } => false,
            NodeData::Element { name, attrs, .. } => {
                let tag: &str = &name.local;
                if tag == "title" && pruned.title.is_empty() && depth < MAX_DEPTH {
                    pruned.title = one_line(&text_of(child));
                }
                if SKIPPED.contains(&tag) || tag == "title" || is_hidden(child) {
                    return false;
                }
                let indents = indents + usize::from(indents_lines(tag));
                if depth >= MAX_DEPTH || indents > MAX_INDENTS {
                    pruned.cut = true;
                    return false;
                }
                for attr in attrs.borrow_mut().iter_mut() {
                    if matches!(&*attr.name.local, "href" | "src") {
                        links.mend(&mut attr.value);
                    }
                }
                open.push((child.clone(), depth + 1, indents));
                true
            }
        });
    }
    pruned
}

fn indents_lines(tag: &str) -> bool {
    matches!(tag, "ul" | "ol" | "dl" | "blockquote" | "table")
}

fn attribute(node: &Node, wanted: &str) -> Option<StrTendril> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    attrs.borrow().iter().find(|attr| &*attr.name.local == wanted).map(|attr| attr.value.clone())
}

/// Whether a browser would not show it: text for nobody's eyes is text for a model's.
fn is_hidden(node: &Node) -> bool {
    let says = |name: &str, is: &dyn Fn(&str) -> bool| attribute(node, name).is_some_and(|value| is(&value));
    says("hidden", &|value| !value.eq_ignore_ascii_case("until-found"))
        || says("aria-hidden", &|value| value.eq_ignore_ascii_case("true"))
        || says("style", &|value| {
            let style: String = value.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
            style.contains("display:none") || style.contains("visibility:hidden")
        })
}

/// Whether a node has such an element right below it.
pub(super) fn has_child(node: &Handle, tag: &str) -> bool {
    let is_it = |child: &Handle| matches!(&child.data, NodeData::Element { name, .. } if &*name.local == tag);
    node.children.borrow().iter().any(is_it)
}

/// All text below a node.
pub(super) fn text_of(node: &Handle) -> String {
    let mut text = String::new();
    let mut open = vec![node.clone()];
    while let Some(node) = open.pop() {
        match &node.data {
            NodeData::Text { contents } => text.push_str(&contents.borrow()),
            NodeData::Element { name, .. } if &*name.local == "br" => text.push('\n'),
            _ => {}
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    text
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// What links of the page are relative to.
fn base_of(document: &Handle, url: &Url) -> Url {
    let mut open = vec![document.clone()];
    let mut looked_at = 0;
    while let Some(node) = open.pop() {
        looked_at += 1;
        match &node.data {
            NodeData::Element { name, .. } if &*name.local == "base" => {
                if let Some(base) = attribute(&node, "href").and_then(|href| url.join(href.trim()).ok()) {
                    return base;
                }
            }
            // It stands in the head, and the head is small.
            NodeData::Element { name, .. } if &*name.local == "body" => continue,
            _ => {}
        }
        if looked_at > 10_000 {
            break;
        }
        open.extend(node.children.borrow().iter().cloned());
    }
    url.clone()
}

struct Links {
    base: Url,
    /// Bytes that may still be added.
    room: usize,
}

impl Links {
    fn mend(&mut self, value: &mut StrTendril) {
        let written = value.trim();
        if written.starts_with('#') {
            return;
        }
        let scheme = written.split(':').next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("data") || scheme.eq_ignore_ascii_case("javascript") {
            // The data of an image is nothing to read; what it is stays.
            let kept: String = written.split([',', ';']).next().unwrap_or_default().chars().take(40).collect();
            *value = StrTendril::from_slice(&kept);
            return;
        }
        let Ok(absolute) = self.base.join(written) else { return };
        let added = absolute.as_str().len().saturating_sub(value.len());
        if added <= self.room {
            self.room -= added;
            *value = StrTendril::from_slice(absolute.as_str());
        }
    }
}

/// How large a table would become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableShape {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Bytes of text in the largest cell.
    pub(super) widest: usize,
}

impl TableShape {
    /// Of the table itself; tables inside its cells count as their text.
    pub(super) fn of(table: &Rc<Node>) -> Self {
        let mut shape = Self::default();
        let mut open: Vec<Handle> = table.children.borrow().iter().cloned().collect();
        while let Some(node) = open.pop() {
            let NodeData::Element { name, .. } = &node.data else { continue };
            match &*name.local {
                "tr" => {
                    shape.rows += 1;
                    let cells: Vec<Handle> = node.children.borrow().iter().cloned().collect();
                    shape.columns = shape.columns.max(cells.len());
                    shape.widest = cells.iter().map(size_of).fold(shape.widest, usize::max);
                }
                "caption" | "colgroup" => {}
                _ => open.extend(node.children.borrow().iter().cloned()),
            }
        }
        shape
    }
}

/// Bytes a cell becomes, about: its text, and the addresses of its links and images.
fn size_of(cell: &Handle) -> usize {
    let mut size = 0;
    let mut open = vec![cell.clone()];
    while let Some(node) = open.pop() {
        size += match &node.data {
            NodeData::Text { contents } => contents.borrow().len(),
            NodeData::Element { attrs, .. } => {
                4 + attrs
                    .borrow()
                    .iter()
                    .filter(|a| matches!(&*a.name.local, "href" | "src" | "alt" | "title"))
                    .map(|a| a.value.len())
                    .sum::<usize>()
            }
            _ => 0,
        };
        open.extend(node.children.borrow().iter().cloned());
    }
    size
}
