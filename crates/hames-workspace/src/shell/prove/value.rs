//! What a word can become when it is expanded, as far as that is certain beforehand.

use std::collections::HashMap;

use super::syntax::{Kind, List, Piece, Span, Word};

/// Words that one word can become before that counts as "anything".
const EXPANSION_LIMIT: usize = 256;

/// Values remembered of one variable before it counts as "anything".
const VALUES_LIMIT: usize = 8;

/// One argument.
#[derive(Clone, Debug)]
pub(super) struct Arg {
    pub(super) value: Value,
    /// Where the word stands that it comes from.
    pub(super) span: Span,
    /// Whether that word becomes exactly this argument.
    pub(super) whole: bool,
    /// The paths it can mean, if it is one.
    pub(super) paths: Vec<PathText>,
}

impl Arg {
    /// An argument that is not written anywhere: what a program like xargs adds.
    pub(super) fn added(at: usize) -> Self {
        let anything = PathText { text: String::new(), home: false, open: true };
        Self { value: Value::Any { single: false }, span: at..at, whole: false, paths: vec![anything] }
    }

    /// Its text, where it is known.
    pub(super) fn known(&self) -> Option<&str> {
        self.value.known()
    }
}

/// What is certain of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Exactly this.
    Known(String),
    /// It begins like this (never empty). With `single` it is one argument, else one or more that all begin so.
    Begins { prefix: String, single: bool },
    /// Nothing is; without `single` it may be no argument, or many.
    Any { single: bool },
}

impl Value {
    /// Its text, where it is known.
    pub(super) fn known(&self) -> Option<&str> {
        match self {
            Value::Known(text) => Some(text),
            _ => None,
        }
    }

    /// What it certainly begins with; empty where nothing is certain.
    pub(super) fn beginning(&self) -> &str {
        match self {
            Value::Known(text) | Value::Begins { prefix: text, .. } => text,
            Value::Any { .. } => "",
        }
    }

    /// Whether it is exactly one argument.
    pub(super) fn is_single(&self) -> bool {
        match self {
            Value::Known(_) => true,
            Value::Begins { single, .. } | Value::Any { single } => *single,
        }
    }

    /// Whether a program could take it for an option.
    pub(super) fn may_be_option(&self) -> bool {
        match self {
            Value::Known(text) => text.len() > 1 && text.starts_with('-'),
            Value::Begins { prefix, .. } => prefix.starts_with('-'),
            Value::Any { .. } => true,
        }
    }
}

/// A path as far as it is known: for finding out whether it leads where nothing may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathText {
    pub(super) text: String,
    /// The text is below the home folder.
    pub(super) home: bool,
    /// Something unknown follows.
    pub(super) open: bool,
}

/// What the line itself says about its variables.
#[derive(Debug, Default)]
pub(super) struct Facts {
    variables: HashMap<String, Variable>,
}

#[derive(Debug)]
struct Variable {
    /// Every value it is given, or `None` where one is unknown.
    values: Option<Vec<PathText>>,
    /// Every value is a number.
    is_number: bool,
}

impl Facts {
    /// Collects what every assignment and loop gives, in whatever order they run.
    pub(super) fn of(text: &str, list: &List) -> Self {
        let mut facts = Facts::default();
        list.each(&mut |command| match &command.kind {
            Kind::Simple(simple) => {
                for assignment in &simple.assignments {
                    facts.give(&text[assignment.name.clone()], &assignment.value);
                }
                // Whoever runs it: `builtin read x` reads, too.
                let words: Vec<String> = simple.words.iter().filter_map(Word::literal).collect();
                if words.iter().any(|word| word == "read") {
                    words.iter().for_each(|name| facts.forget(name));
                }
            }
            Kind::For { name, words, .. } => words.iter().for_each(|word| facts.give(&text[name.clone()], word)),
            _ => {}
        });
        facts
    }

    fn give(&mut self, name: &str, word: &Word) {
        let is_number = word.pieces.iter().all(|piece| match piece {
            Piece::Text(text) => text.bytes().all(|b| b.is_ascii_digit()),
            Piece::Alternatives(words) => words.iter().all(|word| word.bytes().all(|b| b.is_ascii_digit())),
            Piece::Arithmetic { .. } => true,
            _ => false,
        });
        // Looked at without what is known of other variables: the order in which they get their values is not followed.
        let values = Facts::default().paths(word);
        let closed = values.iter().all(|value| !value.open);
        let variable =
            self.variables.entry(name.to_owned()).or_insert(Variable { values: Some(Vec::new()), is_number: true });
        variable.is_number &= is_number;
        match &mut variable.values {
            Some(known) if closed && known.len() + values.len() <= VALUES_LIMIT => known.extend(values),
            known => *known = None,
        }
    }

    fn forget(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), Variable { values: None, is_number: false });
    }

    /// Whether a variable only ever holds digits, or nothing.
    pub(super) fn is_number(&self, name: &str) -> bool {
        matches!(name, "?" | "#" | "$" | "!") || self.variables.get(name).is_some_and(|variable| variable.is_number)
    }

    /// The paths a word can mean.
    pub(super) fn paths(&self, word: &Word) -> Vec<PathText> {
        let mut paths = vec![PathText { text: String::new(), home: false, open: false }];
        for piece in &word.pieces {
            let next: Vec<PathText> = match piece {
                Piece::Text(text) => vec![PathText { text: text.clone(), home: false, open: false }],
                Piece::Home => vec![PathText { text: String::new(), home: true, open: false }],
                Piece::Alternatives(words) => {
                    let one = |text: &String| match text.find(['*', '?']) {
                        Some(at) => PathText { text: text[..at].to_owned(), home: false, open: true },
                        None => PathText { text: text.clone(), home: false, open: false },
                    };
                    words.iter().map(one).collect()
                }
                Piece::Parameter { name, plain: true, .. } => match (name.as_str(), self.variables.get(name)) {
                    (_, Some(Variable { values: Some(values), .. })) => values.clone(),
                    ("HOME", None) => vec![PathText { text: String::new(), home: true, open: false }],
                    ("PWD", None) => vec![PathText { text: ".".to_owned(), home: false, open: false }],
                    _ => vec![PathText { text: String::new(), home: false, open: true }],
                },
                _ => vec![PathText { text: String::new(), home: false, open: true }],
            };
            paths = paths.iter().flat_map(|path| next.iter().map(|next| joined(path, next))).collect();
            if paths.len() > EXPANSION_LIMIT {
                return vec![PathText { text: String::new(), home: false, open: true }];
            }
        }
        paths
    }

    /// The arguments a word becomes.
    pub(super) fn args(&self, word: &Word) -> Vec<Arg> {
        let (span, paths) = (word.span.clone(), self.paths(word));
        let alternatives: Vec<Vec<Vec<Piece>>> = word
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Alternatives(texts) => Some(texts.iter().map(|text| glob_pieces(text)).collect()),
                _ => None,
            })
            .collect();
        let mut alternatives = alternatives.iter();
        let mut words: Vec<Vec<&Piece>> = vec![Vec::new()];
        for piece in &word.pieces {
            let choices = if matches!(piece, Piece::Alternatives(_)) { alternatives.next() } else { None };
            let Some(choices) = choices else {
                words.iter_mut().for_each(|word| word.push(piece));
                continue;
            };
            words = words
                .iter()
                .flat_map(|word| choices.iter().map(|choice| word.iter().copied().chain(choice).collect()))
                .collect();
            if words.len() > EXPANSION_LIMIT {
                return vec![Arg { value: Value::Any { single: false }, span, whole: false, paths }];
            }
        }
        let whole = words.len() == 1;
        let arg = |pieces: &Vec<&Piece>| Arg { value: value(pieces), span: span.clone(), whole, paths: paths.clone() };
        words.iter().map(arg).collect()
    }
}

/// A path and what follows it. Something unknown stays the end; a home folder in the middle is one too.
fn joined(path: &PathText, next: &PathText) -> PathText {
    if path.open {
        return path.clone();
    }
    if next.home && (path.home || !path.text.is_empty()) {
        return PathText { open: true, ..path.clone() };
    }
    PathText { text: format!("{}{}", path.text, next.text), home: path.home || next.home, open: next.open }
}

/// One alternative of a pair of braces: its text, and the patterns in it.
fn glob_pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if matches!(byte, b'*' | b'?') {
            pieces.push(Piece::Text(text[from..at].to_owned()));
            pieces.push(Piece::Glob);
            from = at + 1;
        }
    }
    pieces.push(Piece::Text(text[from..].to_owned()));
    pieces
}

fn value(pieces: &[&Piece]) -> Value {
    let mut prefix = String::new();
    let mut known = true;
    let mut single = true;
    for piece in pieces {
        match piece {
            Piece::Text(text) if known => prefix.push_str(text),
            Piece::Text(_) => {}
            // An absolute path, and made so that it never splits: see the environment of proven commands.
            Piece::Home => {
                if known {
                    prefix.push('/');
                }
                known = false;
            }
            Piece::Parameter { name, plain: true, quoted } if name == "HOME" || (name == "PWD" && *quoted) => {
                if known {
                    prefix.push('/');
                }
                known = false;
            }
            Piece::Parameter { name, plain: true, .. } if matches!(name.as_str(), "?" | "#" | "$") => known = false,
            Piece::Glob => {
                known = false;
                single = false;
            }
            Piece::Parameter { quoted: true, name, .. } if name != "@" => known = false,
            Piece::Substitution { quoted: true, .. } | Piece::Arithmetic { .. } => known = false,
            Piece::Process { .. } => {
                prefix.push_str("/dev/fd/");
                known = false;
            }
            // Unquoted, it may end the word and begin others.
            Piece::Parameter { .. } | Piece::Substitution { .. } | Piece::Alternatives(_) => {
                return Value::Any { single: false };
            }
        }
    }
    match (known, prefix.is_empty()) {
        (true, _) => Value::Known(prefix),
        (false, false) => Value::Begins { prefix, single },
        (false, true) => Value::Any { single },
    }
}
