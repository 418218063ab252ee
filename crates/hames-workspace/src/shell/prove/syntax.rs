//! What a command line is made of, once it is read: the part of bash's grammar that is understood here.
//!
//! Everything keeps its place in the text, so that a refusal can show it and a second reading can be held against it.

use std::ops::Range;

/// A part of the text, in bytes.
pub(super) type Span = Range<usize>;

/// Commands one after another, whatever joins them.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) items: Vec<Pipeline>,
}

/// Commands of which each reads what the one before it writes; often just one.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Command>,
    /// Where the `&` stands that sends it to the background.
    pub(super) background: Option<Span>,
}

/// A command with its redirections.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Simple(Simple),
    Subshell(List),
    Group(List),
    /// Conditions and bodies in the order they are written: any of them may run.
    If(Vec<List>),
    /// `while` and `until`.
    Loop {
        condition: List,
        body: List,
    },
    For {
        name: Span,
        words: Vec<Word>,
        body: List,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, List)>,
    },
    /// `[[ … ]]`: what stands between the brackets.
    Condition {
        words: Vec<Word>,
        span: Span,
    },
    /// The name's place; the body is read all the same.
    Function {
        name: Span,
        body: List,
    },
}

/// A program or builtin with its arguments.
#[derive(Debug)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: Span,
    pub(super) value: Word,
}

#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) operator: Operator,
    /// The descriptor before the operator, where one is written.
    pub(super) descriptor: Option<u32>,
    /// The file, descriptor or text; for a here-document its body.
    pub(super) target: Word,
    pub(super) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `<`
    Read,
    /// `<<` and `<<-`
    HereDocument,
    /// `<<<`
    HereString,
    /// `>`, `>>`, `>|`, `<>`, `&>`, `&>>`
    Write,
    /// `>&` and `<&`
    Duplicate,
}

/// One word before expansion.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    pub(super) span: Span,
}

/// A part of a word. `quoted` parts neither split nor match file names.
#[derive(Debug)]
pub(super) enum Piece {
    /// Taken as it stands, quotes removed.
    Text(String),
    /// `~` at the beginning: the home folder.
    Home,
    /// `*`, `?` or `[`, unquoted.
    Glob,
    /// `{a,b}` or `{1..3}`: what it stands for.
    Alternatives(Vec<String>),
    /// `$name`, `${name…}` and special parameters. `plain` where the value is used as it is.
    Parameter { name: String, plain: bool, quoted: bool },
    /// `$(…)` and backquotes.
    Substitution { list: List, quoted: bool },
    /// `$((…))`: its text.
    Arithmetic { text: String, span: Span },
    /// `<(…)`, and `>(…)` where `write`.
    Process { list: List, write: bool },
}

impl List {
    /// Shows every command, also those inside others and inside words; outer ones first.
    pub(super) fn each<'a>(&'a self, see: &mut dyn FnMut(&'a Command)) {
        for command in self.items.iter().flat_map(|pipeline| &pipeline.commands) {
            see(command);
            command.inner_lists(&mut |list| list.each(see));
            command.each_word(&mut |word| word.inner_lists(&mut |list| list.each(see)));
        }
    }
}

impl Command {
    /// The lists a compound command is made of.
    fn inner_lists<'a>(&'a self, see: &mut dyn FnMut(&'a List)) {
        match &self.kind {
            Kind::Simple(_) | Kind::Condition { .. } => {}
            Kind::Subshell(list) | Kind::Group(list) | Kind::Function { body: list, .. } => see(list),
            Kind::If(lists) => lists.iter().for_each(see),
            Kind::Loop { condition, body } => {
                see(condition);
                see(body);
            }
            Kind::For { body, .. } => see(body),
            Kind::Case { arms, .. } => arms.iter().for_each(|(_, list)| see(list)),
        }
    }

    /// The words of its own, targets of redirections included.
    pub(super) fn each_word<'a>(&'a self, see: &mut dyn FnMut(&'a Word)) {
        match &self.kind {
            Kind::Simple(simple) => {
                simple.assignments.iter().for_each(|assignment| see(&assignment.value));
                simple.words.iter().for_each(&mut *see);
            }
            Kind::For { words, .. } | Kind::Condition { words, .. } => words.iter().for_each(&mut *see),
            Kind::Case { subject, arms } => {
                see(subject);
                arms.iter().flat_map(|(patterns, _)| patterns).for_each(&mut *see);
            }
            Kind::Subshell(_) | Kind::Group(_) | Kind::If(_) | Kind::Loop { .. } | Kind::Function { .. } => {}
        }
        self.redirects.iter().for_each(|redirect| see(&redirect.target));
    }
}

impl Word {
    /// The commands inside it.
    pub(super) fn inner_lists<'a>(&'a self, see: &mut dyn FnMut(&'a List)) {
        for piece in &self.pieces {
            if let Piece::Substitution { list, .. } | Piece::Process { list, .. } = piece {
                see(list);
            }
        }
    }

    /// Its text, where nothing in it is expanded.
    pub(super) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                _ => return None,
            }
        }
        Some(text)
    }
}
