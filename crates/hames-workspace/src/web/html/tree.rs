//! Building a tree out of HTML under a budget.
//!
//! The rules of HTML let few bytes make much work: formatting that is left open is opened again in every paragraph, an
//! end tag is looked for in all that is open. The parser does nearly every such step through its sink, so the sink
//! counts. Where a page has more elements than a person could have meant, or costs more, feeding stops and what is there
//! is the page; where a single piece of it costs more than all honest pages do, the thread unwinds. The few steps that no
//! sink sees (attributes compared with one another) are kept few: formatting loses its attributes before the tree
//! builder has them, and a clock is looked at between two pieces.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, Instant};

use html5ever::buffer_queue::BufferQueue;
use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, ExpandedName, QualName, TokenizerResult};
use markup5ever_rcdom::{Handle, RcDom};

/// What a page may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Nodes after which no more of the page is read; at four times as many it is given up.
    pub(super) nodes: u64,
    /// Steps of the parser after which no more of the page is read; at twice as many it is given up.
    pub(super) steps: u64,
}

/// For every page. A long encyclopedia article has a fifth of these nodes and takes a tenth of these steps.
pub(super) const BUDGET: Budget = Budget { nodes: 400_000, steps: 50_000_000 };

/// Time after which no more of the page is read. Nothing honest comes near it.
const MAX_TIME: Duration = Duration::from_secs(8);

/// Bytes fed between two looks at the count.
const PIECE: usize = 8 * 1024;

/// A page as a tree.
pub(super) struct Tree {
    pub(super) document: Handle,
    /// The page has more than was read.
    pub(super) cut: bool,
}

/// Builds the tree. Unwinds, without a word, where that would take too much.
pub(super) fn parse(html: &str, budget: Budget) -> Tree {
    let counting = Counting { tree: RcDom::default(), nodes: Cell::new(0), steps: Cell::new(0), budget };
    let builder = TreeBuilder::new(counting, TreeBuilderOpts::default());
    let tokenizer = Tokenizer::new(Lean { builder, languages: Cell::new(0) }, TokenizerOpts::default());
    let input = BufferQueue::default();
    let began = Instant::now();
    let mut rest = html;
    while !rest.is_empty() && !tokenizer.sink.builder.sink.has_enough() && began.elapsed() < MAX_TIME {
        let at = (1..=rest.len().min(PIECE)).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, later) = rest.split_at(at);
        input.push_back(StrTendril::from_slice(piece));
        // A script or a stated encoding interrupts it; neither means anything here.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        rest = later;
    }
    tokenizer.end();
    Tree { document: tokenizer.sink.builder.sink.finish().document, cut: !rest.is_empty() }
}

/// Hands tokens on with what nobody reads left out.
struct Lean {
    builder: TreeBuilder<Handle, Counting>,
    /// Blocks of code so far that named their language.
    languages: Cell<usize>,
}

/// Blocks of code whose language is kept; far more than a page of documentation has.
const MAX_LANGUAGES: usize = 2_000;

/// Elements that are opened again where they were left open, but for links. The parser keeps three that are alike, and
/// any number that differ.
const FORMATTING: [&str; 13] =
    ["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];

impl TokenSink for Lean {
    type Handle = Handle;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<Handle> {
        match &mut token {
            // The language of a block of code stands in its class.
            Token::TagToken(tag) if FORMATTING.contains(&&*tag.name) => {
                let may_name = &*tag.name == "code" && self.languages.get() < MAX_LANGUAGES;
                tag.attrs.retain(|attr| may_name && &*attr.name.local == "class" && attr.value.contains("lang"));
                self.languages.set(self.languages.get() + tag.attrs.len());
            }
            Token::CommentToken(text) => *text = StrTendril::new(),
            _ => {}
        }
        self.builder.process_token(token, line)
    }
    fn end(&self) {
        self.builder.end();
    }
    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// A tree that counts what is done to it.
struct Counting {
    tree: RcDom,
    nodes: Cell<u64>,
    steps: Cell<u64>,
    budget: Budget,
}

impl Counting {
    fn step(&self, cost: u64) {
        let steps = self.steps.get() + cost;
        self.steps.set(steps);
        if steps > 2 * self.budget.steps || self.nodes.get() > 4 * self.budget.nodes {
            std::panic::resume_unwind(Box::new("the page costs too much"));
        }
    }

    fn has_enough(&self) -> bool {
        self.nodes.get() > self.budget.nodes || self.steps.get() > self.budget.steps
    }

    fn made(&self, node: Handle) -> Handle {
        self.nodes.set(self.nodes.get() + 1);
        self.step(1);
        node
    }

    /// Finding a node among the children of its parent is work, too.
    fn search(&self, node: &Handle) {
        let parent = node.parent.take();
        let siblings = parent.as_ref().and_then(|parent| parent.upgrade()).map_or(0, |p| p.children.borrow().len());
        node.parent.set(parent);
        self.step(1 + siblings as u64 / 8);
    }
}

impl TreeSink for Counting {
    type Handle = Handle;
    type Output = RcDom;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> RcDom {
        self.tree
    }
    fn parse_error(&self, _: Cow<'static, str>) {
        self.step(1);
    }
    fn get_document(&self) -> Handle {
        self.tree.get_document()
    }
    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.step(1);
        self.tree.elem_name(target)
    }
    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.made(self.tree.create_element(name, attrs, flags))
    }
    fn create_comment(&self, _: StrTendril) -> Handle {
        self.made(self.tree.create_comment(StrTendril::new()))
    }
    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        // As a comment: nobody downstream knows what to do with one.
        self.made(self.tree.create_comment(StrTendril::new()))
    }
    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.step(1);
        self.tree.append(parent, child);
    }
    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        self.search(element);
        self.tree.append_based_on_parent_node(element, previous, child);
    }
    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.tree.append_doctype_to_document(name, public_id, system_id);
    }
    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.tree.get_template_contents(target)
    }
    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        self.step(1);
        self.tree.same_node(x, y)
    }
    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }
    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        self.search(sibling);
        self.tree.append_before_sibling(sibling, child);
    }
    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.step(1);
        self.tree.add_attrs_if_missing(target, attrs);
    }
    fn remove_from_parent(&self, target: &Handle) {
        self.search(target);
        self.tree.remove_from_parent(target);
    }
    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        self.step(1 + node.children.borrow().len() as u64);
        self.tree.reparent_children(node, new_parent);
    }
    fn is_mathml_annotation_xml_integration_point(&self, handle: &Handle) -> bool {
        self.tree.is_mathml_annotation_xml_integration_point(handle)
    }
}
