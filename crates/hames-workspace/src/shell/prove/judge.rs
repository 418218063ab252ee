//! Goes through everything a line would run, in order, and stops at the first part that is not known to only read.

use super::programs::{Call, assign, wrappers};
use super::readers::{self, Deep, Operands, Rule};
use super::syntax::{Assignment, Command, Kind, List, Operator, Piece, Pipeline, Redirect, Simple, Span, Word};
use super::value::{Arg, Facts, PathText};
use super::{GitCall, Location, Operand, Refusal};

/// Folders a line can be in at some point at most.
const FOLDERS_LIMIT: usize = 8;

/// Operands of a line at most.
const OPERANDS_LIMIT: usize = 512;

/// Commands that run commands at most, one in the other.
const WRAPPERS_LIMIT: usize = 8;

pub(super) type Judged = Result<(), Refusal>;

/// Who looks a name up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The shell: builtins first, then programs.
    Shell,
    /// A program that runs another: programs only.
    Program,
}

/// What was found out about a line that only reads.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) operands: Vec<Operand>,
    pub(super) programs: Vec<String>,
    pub(super) git: Vec<GitCall>,
}

/// The state of going through a line.
pub(super) struct Judge<'a> {
    pub(super) text: &'a str,
    pub(super) facts: Facts,
    pub(super) verdict: Verdict,
    /// Every folder that commands can be in here, relative to where the line runs.
    folders: Vec<PathText>,
    /// Loops around this place whose body could change the folder again and again.
    loops: usize,
    wrappers: usize,
}

/// Looks at everything that would run.
pub(super) fn judge(text: &str, list: &List) -> Result<Verdict, Refusal> {
    let here = PathText { text: String::new(), home: false, open: false };
    let mut judge = Judge {
        text,
        facts: Facts::of(text, list),
        verdict: Verdict::default(),
        folders: vec![here],
        loops: 0,
        wrappers: 0,
    };
    judge.list(list)?;
    Ok(judge.verdict)
}

impl Judge<'_> {
    pub(super) fn part(&self, span: &Span) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    fn refuse(&self, span: &Span, why: impl Into<String>, instead: &str) -> Judged {
        Err(Refusal::new(self.part(span), why, instead))
    }

    fn list(&mut self, list: &List) -> Judged {
        list.items.iter().try_for_each(|pipeline| self.pipeline(pipeline))
    }

    /// A list whose changes of folder end with it.
    fn enclosed(&mut self, list: &List) -> Judged {
        let (folders, loops) = (self.folders.clone(), std::mem::take(&mut self.loops));
        let judged = self.list(list);
        (self.folders, self.loops) = (folders, loops);
        judged
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Judged {
        if let Some(sign) = &pipeline.background {
            return self.refuse(sign, "a command in the background goes on after its result", "Leave the & out.");
        }
        if let [command] = &pipeline.commands[..] {
            return self.command(command);
        }
        for command in &pipeline.commands {
            let (folders, loops) = (self.folders.clone(), std::mem::take(&mut self.loops));
            let judged = self.command(command);
            (self.folders, self.loops) = (folders, loops);
            judged?;
        }
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Judged {
        command.redirects.iter().try_for_each(|redirect| self.redirect(redirect))?;
        match &command.kind {
            Kind::Simple(simple) => self.simple(simple),
            Kind::Subshell(list) => self.enclosed(list),
            Kind::Group(list) => self.list(list),
            Kind::If(lists) => lists.iter().try_for_each(|list| self.list(list)),
            Kind::Loop { condition, body } => self.looped(|judge| {
                judge.list(condition)?;
                judge.list(body)
            }),
            Kind::For { name, words, body } => {
                self.variable(name)?;
                words.iter().try_for_each(|word| self.word(word))?;
                self.looped(|judge| judge.list(body))
            }
            Kind::Case { subject, arms } => {
                self.word(subject)?;
                arms.iter().try_for_each(|(patterns, list)| {
                    patterns.iter().try_for_each(|word| self.word(word))?;
                    self.list(list)
                })
            }
            Kind::Condition { words, span } => self.condition(words, span),
            Kind::Function { name, .. } => {
                self.refuse(name, "a function gives a name another meaning", "Write the commands out.")
            }
        }
    }

    fn looped(&mut self, judge: impl FnOnce(&mut Self) -> Judged) -> Judged {
        self.loops += 1;
        let judged = judge(self);
        self.loops -= 1;
        judged
    }

    /// The name of a variable that is given a value.
    fn variable(&self, name: &Span) -> Judged {
        match assign::is_plain(self.part(name)) {
            true => Ok(()),
            false => self.refuse(
                name,
                "this variable means something to the shell or to programs",
                "Use another name, in lower case.",
            ),
        }
    }

    /// What happens when a word is expanded.
    pub(super) fn word(&mut self, word: &Word) -> Judged {
        for piece in &word.pieces {
            match piece {
                Piece::Substitution { list, .. } | Piece::Process { list, write: false } => self.enclosed(list)?,
                Piece::Process { write: true, .. } => {
                    return self.refuse(&word.span, "it writes into a command", "Use a pipe.");
                }
                Piece::Arithmetic { text, span, .. } => self.arithmetic(text, span)?,
                _ => {}
            }
        }
        self.mention(word)
    }

    /// Notes what a word could name, wherever it stands: it may be handed on to something that reads.
    fn mention(&mut self, word: &Word) -> Judged {
        for path in self.facts.paths(word) {
            let parts = path.text.split_ascii_whitespace().filter(|part| part.contains('/') && *part != path.text);
            for part in parts {
                self.note(&PathText { text: part.to_owned(), home: false, open: false }, false)?;
            }
            self.note(&path, false)?;
        }
        Ok(())
    }

    /// Arithmetic evaluates what its variables hold, commands in it included.
    fn arithmetic(&self, text: &str, span: &Span) -> Judged {
        let bytes = text.as_bytes();
        let assigns = text.contains("++")
            || text.contains("--")
            || (0..bytes.len()).any(|at| {
                let (before, after) = (at.checked_sub(1).map(|at| bytes[at]), bytes.get(at + 1));
                let shifts = at >= 2 && matches!(&bytes[at - 2..at], b"<<" | b">>");
                let compares = after == Some(&b'=')
                    || matches!(before, Some(b'=' | b'!'))
                    || (matches!(before, Some(b'<' | b'>')) && !shifts);
                bytes[at] == b'=' && !compares
            });
        if assigns {
            return self.refuse(span, "arithmetic that assigns is not followed", "Use name=$((…)).");
        }
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_number = |word: &str| word.is_empty() || word.bytes().all(|b| b.is_ascii_digit());
        match words.into_iter().find(|word| !is_number(word) && !self.facts.is_number(word)) {
            None => Ok(()),
            Some(name) => self.refuse(
                span,
                format!("{name} may hold anything, and arithmetic runs commands that stand in a value"),
                "Use numbers and variables that only ever get numbers.",
            ),
        }
    }

    fn redirect(&mut self, redirect: &Redirect) -> Judged {
        self.word(&redirect.target)?;
        let span = &redirect.span;
        if redirect.descriptor.is_some_and(|descriptor| descriptor > 2) {
            return self.refuse(span, "only descriptors 0, 1 and 2 are followed", "Use these.");
        }
        let target = redirect.target.literal();
        match redirect.operator {
            Operator::HereDocument | Operator::HereString => Ok(()),
            Operator::Write if target.as_deref() == Some("/dev/null") => Ok(()),
            Operator::Write => self.refuse(
                span,
                "it writes into a file",
                "Leave it out: the output comes back anyway. To change a file use Write, or Build mode.",
            ),
            Operator::Duplicate => {
                let known = matches!(target.as_deref(), Some("1" | "2" | "-")) && !self.part(span).contains('<');
                match known {
                    true => Ok(()),
                    false => self.refuse(span, "it may write into a file", "Use 2>&1, or leave it out."),
                }
            }
            Operator::Read => self.read_from(redirect),
        }
    }

    fn read_from(&mut self, redirect: &Redirect) -> Judged {
        let args = self.facts.args(&redirect.target);
        let [arg] = &args[..] else {
            return self.refuse(&redirect.span, "it names several files", "Name one.");
        };
        let beginning = arg.value.beginning();
        let is_open = arg.known().is_none();
        // The shell itself connects to hosts under these names.
        let network = |path: &str| path.starts_with("/dev/tcp") || path.starts_with("/dev/udp");
        let could_be_network = is_open
            && !matches!(redirect.target.pieces[..], [Piece::Process { .. } | Piece::Home, ..])
            && (beginning.is_empty() || "/dev/tcp".starts_with(beginning) || beginning.starts_with("/dev"));
        if network(beginning) || could_be_network {
            let why = "it may read from the network or from a file that is not known beforehand";
            return self.refuse(&redirect.span, why, "Name the file, or put ./ before its name.");
        }
        self.operand(arg, false)
    }

    fn simple(&mut self, simple: &Simple) -> Judged {
        simple.assignments.iter().try_for_each(|assignment| self.word(&assignment.value))?;
        simple.words.iter().try_for_each(|word| self.word(word))?;
        let args: Vec<Arg> = simple.words.iter().flat_map(|word| self.facts.args(word)).collect();
        match simple.words.is_empty() {
            true => simple.assignments.iter().try_for_each(|assignment| self.assigned(assignment)),
            false => {
                let for_read = args.first().and_then(Arg::known) == Some("read");
                simple.assignments.iter().try_for_each(|assignment| self.lent(assignment, for_read))?;
                self.run(&args, By::Shell, &simple.span)
            }
        }
    }

    /// A variable of this line alone.
    fn assigned(&mut self, assignment: &Assignment) -> Judged {
        self.variable(&assignment.name)?;
        // What it holds may be used as a path later on.
        self.facts.args(&assignment.value).iter().try_for_each(|arg| self.operand(arg, false))
    }

    /// A variable for one command.
    fn lent(&self, assignment: &Assignment, for_read: bool) -> Judged {
        let name = self.part(&assignment.name);
        let span = assignment.name.start..assignment.value.span.end;
        let value = assignment.value.literal();
        match value {
            Some(value) if assign::is_harmless(name, &value) || (for_read && name == "IFS") => Ok(()),
            _ => self.refuse(
                &span,
                format!("{name} can change what a program does or which one is run"),
                "Leave it out; LC_ALL, LANG, TZ, COLUMNS and NO_COLOR can be set.",
            ),
        }
    }

    /// A command with its arguments, the name among them.
    pub(super) fn run(&mut self, args: &[Arg], by: By, span: &Span) -> Judged {
        let Some((program, rest)) = args.split_first() else {
            return self.refuse(span, "its program is not known beforehand", "Name the program.");
        };
        let Some(written) = program.known().filter(|name| !name.is_empty()) else {
            return self.refuse(&program.span, "this program is not known beforehand", "Name the program.");
        };
        if self.wrappers >= WRAPPERS_LIMIT {
            return self.refuse(span, "too many commands run one another", "Run the last one directly.");
        }
        let (name, by) = match written.rsplit_once('/') {
            None => (written, by),
            Some(("/bin" | "/usr/bin", name)) => (name, By::Program),
            Some(_) => {
                let why = "a program outside /bin and /usr/bin is not known to only read";
                return self.refuse(
                    &program.span,
                    why,
                    "Use one that is installed, by its name; others run in Build mode.",
                );
            }
        };
        let Some(row) = readers::row(name) else {
            return Err(unknown(name));
        };
        if by == By::Program && row.shell_only {
            return self.refuse(span, format!("{name} is part of the shell and no program"), "Run it directly.");
        }
        self.verdict.programs.push(written.to_owned());
        let call = Call { name, args: rest, span: span.clone(), program };
        self.wrappers += 1;
        let judged = self.follow(&row.rule, &call);
        self.wrappers -= 1;
        judged?;
        let deep = is_deep(row.deep, rest);
        if deep && names_no_place(row.deep, rest) {
            self.note(&PathText { text: ".".to_owned(), home: false, open: false }, true)?;
        }
        rest.iter().try_for_each(|arg| self.operand(arg, deep))
    }

    fn follow(&mut self, rule: &Rule, call: &Call<'_>) -> Judged {
        match rule {
            Rule::Any => Ok(()),
            Rule::Exactly(allowed) => match call.args {
                [only] if only.known().is_some_and(|only| allowed.contains(&only)) => Ok(()),
                _ => {
                    let allowed = allowed.join(" or ");
                    let why = format!(
                        "{} runs whatever it is given; only {} {allowed} is known to only read",
                        call.name, call.name
                    );
                    self.refuse(&call.span, why, "Look with Read, Grep or Glob; run it in Build mode.")
                }
            },
            Rule::Refused { why, instead } => self.refuse(&call.span, *why, instead),
            Rule::Special(special) => special(self, call),
            Rule::Wrapper(wrapper) => wrappers::wrapper(self, call, wrapper),
            Rule::Options(options, operands, needed) => {
                let parsed = options.parse(call.name, call.args)?;
                if !needed.is_empty() && !parsed.has(needed) {
                    let why = format!("{} changes files unless {} is given", call.name, needed.join(" or "));
                    return self.refuse(&call.span, why, "Give that option.");
                }
                let many = parsed.operands.iter().any(|operand| !operand.value.is_single());
                let (fits, why) = match operands {
                    Operands::Any => (true, ""),
                    Operands::AtMost(most) => (
                        parsed.operands.len() <= *most && !many,
                        "with more operands it writes into the last or sets something",
                    ),
                    Operands::Format => (
                        parsed.operands.len() <= 1
                            && parsed
                                .operands
                                .iter()
                                .all(|arg| arg.value.beginning().starts_with('+') && arg.value.is_single()),
                        "an operand that is no format sets the clock",
                    ),
                    Operands::Of(characters) => (
                        parsed.operands.iter().all(|operand| {
                            operand.known().is_some_and(|word| word.chars().all(|c| characters.contains(c)))
                        }),
                        "this operand is an option that is not known to only read",
                    ),
                    Operands::Known => (
                        parsed
                            .operands
                            .iter()
                            .all(|operand| operand.known().is_some_and(|name| !name.starts_with('@'))),
                        "the names of its files have to be known, and not name more options",
                    ),
                };
                if fits { Ok(()) } else { self.refuse(&call.span, why, "Leave the others out, or write them out.") }
            }
        }
    }

    /// Goes to a folder, as far as the commands behind it are concerned.
    pub(super) fn change_folder(&mut self, target: &[PathText], span: &Span) -> Judged {
        if self.loops > 0 {
            let why = "in a loop, the folder it leads to is not known";
            return self.refuse(span, why, "Put it into ( … ), or before the loop.");
        }
        let mut folders = self.folders.clone();
        for place in target {
            for folder in &self.folders {
                for reached in within(folder, place) {
                    if !folders.contains(&reached) {
                        folders.push(reached);
                    }
                }
            }
        }
        if folders.len() > FOLDERS_LIMIT || target.iter().any(|place| place.open) {
            return self.refuse(span, "where it leads is not known beforehand", "Use one cd with a plain path.");
        }
        self.folders = folders;
        Ok(())
    }

    /// Notes git at work in one of the folders reached from here by `-C`.
    pub(super) fn git(&mut self, below: &[PathText], options_at: usize, insert: Option<(usize, &'static str)>) {
        let place = |path: &PathText| Location { text: path.text.clone(), home: path.home };
        let folders = self.folders.iter().flat_map(|folder| below.iter().map(move |path| (place(folder), place(path))));
        self.verdict.git.push(GitCall { folders: folders.collect(), options_at, insert });
    }

    /// Notes that an argument may be read as a path, or parts of it.
    fn operand(&mut self, arg: &Arg, deep: bool) -> Judged {
        for path in &arg.paths {
            self.note(path, deep)?;
            if path.home {
                continue;
            }
            // Values attached to options, and assignments.
            let attached = path.text.split_once('=').map(|(_, value)| value);
            let clustered = path.text.strip_prefix('-').and_then(|letters| letters.get(1..));
            for text in [attached, clustered].into_iter().flatten() {
                self.note(&PathText { text: text.to_owned(), home: false, open: path.open }, deep)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, path: &PathText, deep: bool) -> Judged {
        if self.verdict.operands.len() >= OPERANDS_LIMIT {
            return Err(Refusal::new("", "the line has too many operands to look at", "Use several short commands."));
        }
        let is_open = path.open;
        let text = match path.text.rfind('/') {
            _ if !is_open => path.text.clone(),
            Some(at) => path.text[..=at].to_owned(),
            None => String::new(),
        };
        for folder in &self.folders {
            let operand = Operand {
                folder: Location { text: folder.text.clone(), home: folder.home },
                path: Location { text: text.clone(), home: path.home },
                deep: deep || is_open,
            };
            if !self.verdict.operands.contains(&operand) {
                self.verdict.operands.push(operand);
            }
        }
        Ok(())
    }
}

/// A folder reached from another one. The shell takes `..` out of the text, the system follows links first.
fn within(folder: &PathText, place: &PathText) -> Vec<PathText> {
    if place.home || place.text.starts_with('/') {
        return vec![place.clone()];
    }
    let physical = PathText { text: format!("{}/{}", folder.text, place.text), ..folder.clone() };
    let physical = if folder.text.is_empty() && !folder.home { place.clone() } else { physical };
    if !place.text.split('/').any(|part| part == "..") {
        return vec![physical];
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in physical.text.split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => {
                parts.pop();
            }
            "." => {}
            part => parts.push(part),
        }
    }
    let logical = PathText { text: parts.join("/"), ..physical.clone() };
    vec![physical, logical]
}

/// Whether a command reads what lies below its operands.
fn is_deep(deep: Deep, args: &[Arg]) -> bool {
    // For git, which then compares or searches folders that are no repository.
    if args.iter().any(|arg| arg.known() == Some("--no-index")) {
        return true;
    }
    match deep {
        Deep::Never => false,
        Deep::Always(_) => true,
        Deep::With(letters, _) => args.iter().any(|arg| {
            let text = arg.value.beginning();
            arg.known().is_none() && arg.value.may_be_option()
                || text.starts_with("--") && (text.contains("rec") || text.contains("directories"))
                || text.starts_with('-') && !text.starts_with("--") && text.contains(|c| letters.contains(c))
        }),
    }
}

/// Whether a command that goes through folders may begin where it stands.
fn names_no_place(deep: Deep, args: &[Arg]) -> bool {
    let needed = match deep {
        Deep::Always(needed) | Deep::With(_, needed) => needed,
        Deep::Never => 0,
    };
    args.iter().filter(|arg| !arg.value.may_be_option()).count() < needed
        || args.iter().any(|arg| arg.value.beginning().starts_with("-e") || arg.value.beginning().starts_with("--reg"))
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(
        name,
        "this program is not among those that are known to only read",
        "Look with Read, Grep, Glob or List; run it in Build mode.",
    )
}
