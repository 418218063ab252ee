//! The second reading: an independent grammar has to see the same commands with the same words.
//!
//! Where two readers that share no code agree on what is a command and where its words begin and end, bash very likely
//! reads it so too. Where they do not, nobody says who is right: the line is refused.

use std::cell::RefCell;
use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::Refusal;
use super::syntax::{Kind, List, Simple};

/// Looks at the clock of the grammar before it gives a text up: its work on hostile texts is bounded by this.
const PROGRESS_LIMIT: usize = 2_000;

/// Commands that the grammar gives a form of their own, so that only their places can be compared.
const WITHOUT_WORDS: [&str; 8] = ["[", "export", "declare", "typeset", "readonly", "local", "unset", "unsetenv"];

/// What may stand in a tree. Everything else is refused, also what later grammars may bring.
const KNOWN: [&str; 54] = [
    "ansi_c_string",
    "arithmetic_expansion",
    "binary_expression",
    "brace_expression",
    "case_item",
    "case_statement",
    "command",
    "command_name",
    "command_substitution",
    "comment",
    "compound_statement",
    "concatenation",
    "declaration_command",
    "do_group",
    "elif_clause",
    "else_clause",
    "expansion",
    "extglob_pattern",
    "file_descriptor",
    "file_redirect",
    "for_statement",
    "function_definition",
    "heredoc_body",
    "heredoc_content",
    "heredoc_end",
    "heredoc_redirect",
    "heredoc_start",
    "herestring_redirect",
    "if_statement",
    "list",
    "negated_command",
    "number",
    "parenthesized_expression",
    "pipeline",
    "process_substitution",
    "program",
    "raw_string",
    "redirected_statement",
    "regex",
    "simple_expansion",
    "special_variable_name",
    "string",
    "string_content",
    "subshell",
    "ternary_expression",
    "test_command",
    "test_operator",
    "unary_expression",
    "unset_command",
    "variable_assignment",
    "variable_assignments",
    "variable_name",
    "while_statement",
    "word",
];

thread_local! {
    /// Making a parser costs more than most texts do.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// A command as both readers see it: where it begins, and where its words are.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    start: usize,
    /// `None` where the grammar gives it another form.
    words: Option<Vec<(usize, usize)>>,
}

/// Refuses a text whose commands the grammar sees differently.
pub(super) fn agree(text: &str, list: &List) -> Result<(), Refusal> {
    let Some(tree) = parse(text) else {
        return Err(Refusal::new("", "the line could not be read a second time", "Write it in a simpler way."));
    };
    let theirs = collect(tree.root_node())?;
    let ours = see(text, list);
    match ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs) {
        None if ours.len() == theirs.len() => Ok(()),
        differing => {
            let start = differing.map_or(0, |(ours, theirs)| ours.start.min(theirs.start));
            let part = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            Err(Refusal::new(part, "it can be read in two ways", "Quote it, or write it in a simpler way."))
        }
    }
}

fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *slot = Some(parser);
        }
        let parser = slot.as_mut()?;
        let mut looks = 0;
        let mut progress = |_: &ParseState| {
            looks += 1;
            if looks > PROGRESS_LIMIT { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let bytes = text.as_bytes();
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
        if tree.is_none() {
            parser.reset();
        }
        tree
    })
}

/// The commands of a tree, in the order in which they begin.
fn collect(root: Node<'_>) -> Result<Vec<Seen>, Refusal> {
    let odd = || {
        Refusal::new("", "the line does not follow bash's grammar as it is known here", "Write it in a simpler way.")
    };
    if root.has_error() {
        return Err(odd());
    }
    let mut seen = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.is_missing() || (node.is_named() && !KNOWN.contains(&node.kind())) {
            return Err(odd());
        }
        match node.kind() {
            "command" => seen.push(command(node)),
            "test_command" | "declaration_command" | "unset_command" if node.is_named() => {
                seen.push(Seen { start: node.start_byte(), words: None });
            }
            _ => {}
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                seen.sort_unstable();
                return Ok(seen);
            }
        }
    }
}

fn command(node: Node<'_>) -> Seen {
    let mut cursor = node.walk();
    let mut words = Vec::new();
    if cursor.goto_first_child() {
        loop {
            if matches!(cursor.field_name(), Some("name" | "argument")) {
                let word = cursor.node();
                words.push((word.start_byte(), word.end_byte()));
            }
            if !cursor.goto_next_sibling() {
                break;
            }
        }
    }
    Seen { start: words.first().map_or(node.start_byte(), |word| word.0), words: Some(words) }
}

/// The commands of our own reading, in the order in which they begin.
fn see(text: &str, list: &List) -> Vec<Seen> {
    let mut seen = Vec::new();
    list.each(&mut |command| match &command.kind {
        Kind::Simple(Simple { words, .. }) => {
            if let Some(first) = words.first() {
                let name = text.get(first.span.clone()).unwrap_or_default();
                let places = || words.iter().map(|word| (word.span.start, word.span.end)).collect();
                let words = (!WITHOUT_WORDS.contains(&name)).then(places);
                seen.push(Seen { start: first.span.start, words });
            }
        }
        Kind::Condition { span, .. } => seen.push(Seen { start: span.start, words: None }),
        _ => {}
    });
    seen.sort_unstable();
    seen
}
