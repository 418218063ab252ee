//! Whether a call may run: a pure function of rules, grants, mode and what the call declares.
//!
//! It asks nobody and looks at no file: the door resolves the paths before and asks after.
//!
//! How to think of it: a call names *things* (paths, commands, hosts) and belongs to a tool.
//!
//! 1. A rule that denies, about anything the call is or names, ends it. No grant and no other rule helps.
//! 2. The mode refuses what may change something in Analyze. No rule and no grant helps.
//! 3. For each thing the rules about it speak, and ask beats allow. Where none does, those about the tool speak, then
//!    those about everything; where none does either, what is inside the workspace is allowed and what is outside is
//!    asked about.
//! 4. A tool may ask of its own accord; only a rule that allows the tool or everything, or a grant, answers that.
//! 5. A grant answers a question about exactly what it names, whichever rule or border it came from.
//!
//! A rule about paths binds whatever names its paths or goes through the filesystem a call is given, searches included
//! (see `guard`). It does not bind what a command does once it runs: a command can read any file its user can. Whoever
//! wants that shut denies or asks about the command.

mod rules;
#[cfg(test)]
mod tests;

use std::path::Path;

use hames_protocol::{Declaration, Effect, Grant, Mode, Resource};

use crate::FsPath;
pub use rules::{About, Access, BadRule, HostPattern, PathPattern, Rule, RuleVerdict, escaped};

/// What holds for the calls of a run besides the mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What a person or an embedder decided beforehand, in any order.
    pub rules: Vec<Rule>,
    /// What a person allowed earlier, for this folder.
    pub grants: Vec<Grant>,
}

impl Policy {
    /// Asks about every call of every tool.
    pub fn ask_everything() -> Self {
        Self { rules: vec![Rule { verdict: RuleVerdict::Ask, about: About::Everything }], grants: Vec::new() }
    }
}

/// A path a call touches, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The path.
    pub path: FsPath,
    /// Whether the call changes it.
    pub write: bool,
}

/// A call as it is decided on.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// The mode of the run.
    pub mode: Mode,
    /// Whether edits only become proposals in Analyze.
    pub previews: bool,
    /// The tool's name.
    pub tool: &'a str,
    /// The folder that relative rules are relative to.
    pub root: &'a Path,
    /// What the call declares.
    pub declaration: &'a Declaration,
    /// The paths of the declaration as they resolve now.
    pub touched: &'a [Touched],
}

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow,
    /// A person decides.
    Ask(Question),
    /// Do not run it; this is what the model is told.
    Deny(String),
}

/// What a person is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Why.
    pub why: String,
    /// What would have to be granted for the same call not to be asked about again; empty where nothing narrow enough
    /// can be.
    pub grants: Vec<Grant>,
}

/// Decides on one call.
pub fn decide(rules: &[Rule], grants: &[Grant], intent: Intent<'_>) -> Verdict {
    let things: Vec<Thing<'_>> = things(&intent).collect();
    if let Some(why) = denied(rules, &intent, &things) {
        return Verdict::Deny(why);
    }
    if intent.mode == Mode::Analyze
        && let Some(refusal) = refused_in_analyze(intent.previews, intent.declaration)
    {
        return Verdict::Deny(format!("Analyze mode: nothing is modified. {refusal}"));
    }
    let mut asks = Asks::default();
    let general = general_ruling(rules, intent.tool);
    // What a command means depends on these, so that no grant for one holds without them.
    let setting: Vec<&Thing<'_>> =
        things.iter().filter(|thing| thing.sets_the_stage() && !thing.is_granted(grants)).collect();
    let is_granted =
        |thing: &Thing<'_>| thing.is_granted(grants) && (setting.is_empty() || !matches!(thing, Thing::Command(_)));
    let mut open: Vec<&Thing<'_>> = Vec::new();
    for thing in &things {
        match strongest(rules, |rule| rule.covers_thing(thing, intent.root)) {
            Some(RuleVerdict::Ask) if !is_granted(thing) => {
                asks.push(format!("a rule asks about {thing}"), thing.grant());
            }
            Some(_) => {}
            None if general == Some(RuleVerdict::Allow) || is_granted(thing) => {}
            None => open.push(thing),
        }
    }
    asks.about_the_border(&open);
    if rules.iter().any(|rule| rule.restrains_commands() && may_be_about(rule, &intent, &things)) {
        asks.once("there are rules about commands, and this line cannot be read well enough to hold them against it");
    }
    if general == Some(RuleVerdict::Ask) {
        asks.about_the_call(&intent, &things, &open, grants);
    }
    if let Some(why) = asks_itself(&intent).filter(|_| general != Some(RuleVerdict::Allow)) {
        let grant = Grant::Tool { name: intent.tool.to_owned() };
        if !grants.contains(&grant) {
            asks.push(why.to_owned(), Some(grant));
        }
    }
    if asks.grants.iter().any(|grant| matches!(grant, Grant::Command { .. })) {
        setting.iter().for_each(|thing| asks.add(thing.grant()));
    }
    asks.verdict()
}

/// The effect as it must be taken: a call that changes a path or the workspace is no read, whatever it says.
pub fn true_effect(declaration: &Declaration) -> Effect {
    let writes = declaration
        .resources
        .iter()
        .any(|r| matches!(r, Resource::Path { .. } | Resource::Workspace { .. }) && r.is_written());
    match declaration.effect {
        Effect::Read | Effect::Session if writes => Effect::Edit,
        effect => effect,
    }
}

/// Something a call names that a rule or a grant can be about.
#[derive(Clone, Copy, Debug)]
enum Thing<'a> {
    Path(&'a Touched),
    Command(&'a [String]),
    Host(&'a str),
}

fn things<'a>(intent: &Intent<'a>) -> impl Iterator<Item = Thing<'a>> {
    let named = intent.declaration.resources.iter().filter_map(|resource| match resource {
        Resource::Command { words } if !words.is_empty() => Some(Thing::Command(words)),
        Resource::Host { host } => Some(Thing::Host(host)),
        Resource::Command { .. } | Resource::Path { .. } | Resource::Workspace { .. } | Resource::Named { .. } => None,
    });
    intent.touched.iter().map(Thing::Path).chain(named)
}

/// Commands that change what later ones of the same line mean: the folder, names, variables.
const STAGE: [&str; 26] = [
    ".",
    "alias",
    "cd",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "umask",
    "unalias",
    "unset",
];

impl Thing<'_> {
    /// What allows exactly this from now on. Nothing does for a command whose words stand for others, and for a path
    /// that no text can name.
    fn grant(&self) -> Option<Grant> {
        match self {
            Thing::Path(t) => t.path.abs.to_str().map(|path| Grant::Path { path: path.to_owned(), write: t.write }),
            Thing::Command(words) if words.iter().any(|word| word.contains(['$', '`'])) => None,
            Thing::Command(words) => Some(Grant::Command { words: words.to_vec() }),
            Thing::Host(host) => Some(Grant::Host { host: rules::plain_host(host) }),
        }
    }

    /// Whether what comes after it in a line means something else because of it. An assignment does, too.
    fn sets_the_stage(&self) -> bool {
        let Thing::Command([first, ..]) = self else { return false };
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_+[]".contains(c))
        });
        is_assignment || STAGE.contains(&first.as_str())
    }

    fn is_granted(&self, grants: &[Grant]) -> bool {
        grants.iter().any(|grant| match (self, grant) {
            (Thing::Path(t), Grant::Path { path, write }) => t.path.abs.starts_with(path) && (*write || !t.write),
            (Thing::Command(words), Grant::Command { words: granted }) => !words.is_empty() && words == granted,
            (Thing::Host(host), Grant::Host { host: granted }) => rules::plain_host(host) == *granted,
            _ => false,
        })
    }
}

impl std::fmt::Display for Thing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Thing::Path(t) if t.write => write!(f, "changes of {}", t.path.shown),
            Thing::Path(t) => f.write_str(&t.path.shown),
            Thing::Command(words) => write!(f, "the command `{}`", shown_words(words)),
            Thing::Host(host) => write!(f, "the host {host}"),
        }
    }
}

/// Characters of a command that are repeated in a reason.
const SHOWN_COMMAND: usize = 120;

fn shown_words(words: &[String]) -> String {
    let is_plain = |word: &str| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "'\"`\\".contains(c));
    let words: Vec<String> =
        words.iter().map(|word| if is_plain(word) { word.clone() } else { format!("{word:?}") }).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN_COMMAND) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// What the rules say that match: deny beats ask beats allow.
fn strongest(rules: &[Rule], matches: impl Fn(&Rule) -> bool) -> Option<RuleVerdict> {
    rules.iter().filter(|rule| matches(rule)).map(|rule| rule.verdict).max()
}

/// What the rules say of the call as such: those about its tool first, then those about everything.
fn general_ruling(rules: &[Rule], tool: &str) -> Option<RuleVerdict> {
    strongest(rules, |rule| rule.is_about_tool(tool))
        .or_else(|| strongest(rules, |rule| rule.about == About::Everything))
}

fn denied(rules: &[Rule], intent: &Intent<'_>, things: &[Thing<'_>]) -> Option<String> {
    let denying: Vec<&Rule> = rules.iter().filter(|rule| rule.verdict == RuleVerdict::Deny).collect();
    let of_thing = |thing: &&Thing<'_>| denying.iter().any(|rule| rule.covers_thing(thing, intent.root));
    if let Some(thing) = things.iter().find(of_thing) {
        return Some(match thing {
            Thing::Path(t) if t.write => {
                format!("{} may not be changed: a rule forbids it. Do without it.", t.path.shown)
            }
            Thing::Path(t) => format!("{} may not be used by tools: a rule forbids it. Do without it.", t.path.shown),
            Thing::Command(words) => {
                format!("`{}` may not be run: a rule forbids it, in whatever form. Do without it.", shown_words(words))
            }
            Thing::Host(host) => format!("The host {host} may not be spoken to: a rule forbids it. Do without it."),
        });
    }
    // A folder that is changed as a whole is changed with all it holds. A command only says where it starts.
    if true_effect(intent.declaration) == Effect::Edit {
        let within = |t: &&Touched| denying.iter().any(|rule| rule.lies_below(t, intent.root));
        if let Some(t) = intent.touched.iter().find(within) {
            return Some(format!(
                "{} may not be changed as a whole: a rule forbids changes of something in it. Name what you need.",
                t.path.shown
            ));
        }
    }
    let general = denying.iter().any(|rule| rule.is_about_tool(intent.tool) || rule.about == About::Everything);
    general.then(|| format!("{} may not be used: a rule forbids it. Do without it.", intent.tool))
}

fn refused_in_analyze(previews: bool, declaration: &Declaration) -> Option<&str> {
    let refusal = match true_effect(declaration) {
        Effect::Read | Effect::Session => return None,
        Effect::Edit if previews && can_preview(declaration) => return None,
        Effect::Edit => Some(
            "This change was not made. Describe it in your answer; it can be made once the user switches to Build mode.",
        ),
        Effect::Run => Some(
            "This command was not run. Look with the tools that only read, and name the command in your answer for Build \
             mode.",
        ),
        Effect::External => Some(
            "This call was not made, because it may have an effect outside this session. Do without it, or say in your \
             answer why it is needed in Build mode.",
        ),
    };
    declaration.reason.as_deref().or(refusal)
}

/// Whether all that the call changes are paths it names, through the filesystem it is given.
fn can_preview(declaration: &Declaration) -> bool {
    let mut written = declaration.resources.iter().filter(|r| r.is_written()).peekable();
    declaration.preview && written.peek().is_some() && written.all(|r| matches!(r, Resource::Path { .. }))
}

/// Why the tool asks, where it does. A proposal in Analyze has no effect yet, so nothing is asked about it there; a
/// person decides when it is applied.
fn asks_itself<'a>(intent: &Intent<'a>) -> Option<&'a str> {
    let only_proposed = intent.mode == Mode::Analyze && true_effect(intent.declaration) == Effect::Edit;
    intent.declaration.ask.as_deref().filter(|_| !only_proposed)
}

/// Whether it cannot be told if a rule about commands is about a command of the call.
fn may_be_about(rule: &Rule, intent: &Intent<'_>, things: &[Thing<'_>]) -> bool {
    let perhaps = |thing: &Thing<'_>| matches!(thing, Thing::Command(words) if rule.perhaps_covers(words));
    is_unread_command(intent) || things.iter().any(perhaps)
}

/// A line that is not known to the last command: no rule about commands can be held against all of it.
fn is_unread_command(intent: &Intent<'_>) -> bool {
    let mut commands = intent.declaration.resources.iter().filter_map(|resource| match resource {
        Resource::Command { words } => Some(words),
        _ => None,
    });
    match commands.next() {
        Some(first) => first.is_empty() || commands.any(Vec::is_empty),
        None => intent.declaration.effect == Effect::Run,
    }
}

/// What has to be asked about a call.
#[derive(Debug, Default)]
struct Asks {
    reasons: Vec<String>,
    grants: Vec<Grant>,
    /// Something of it can only be answered for this once.
    only_once: bool,
}

impl Asks {
    fn push(&mut self, why: String, grant: Option<Grant>) {
        self.reasons.push(why);
        self.add(grant);
    }

    fn add(&mut self, grant: Option<Grant>) {
        match grant {
            Some(grant) if self.grants.contains(&grant) => {}
            Some(grant) => self.grants.push(grant),
            None => self.only_once = true,
        }
    }

    fn once(&mut self, why: &str) {
        self.reasons.push(why.to_owned());
        self.only_once = true;
    }

    /// Paths outside the workspace, in one reason.
    fn about_the_border(&mut self, open: &[&Thing<'_>]) {
        let is_outside = |thing: &&&Thing<'_>| matches!(thing, Thing::Path(t) if !t.path.inside);
        let outside: Vec<&&Thing<'_>> = open.iter().filter(is_outside).collect();
        let shown: Vec<String> = outside
            .iter()
            .filter_map(|thing| match thing {
                Thing::Path(t) => Some(t.path.abs.display().to_string()),
                _ => None,
            })
            .collect();
        if shown.is_empty() {
            return;
        }
        let is = if shown.len() == 1 { "is" } else { "are" };
        self.reasons.push(format!("{} {is} outside the workspace", shown.join(", ")));
        outside.iter().for_each(|thing| self.add(thing.grant()));
    }

    /// The rules ask about the call as such: settled only by what settles everything it names.
    fn about_the_call(&mut self, intent: &Intent<'_>, things: &[Thing<'_>], open: &[&Thing<'_>], grants: &[Grant]) {
        let why = || format!("a rule asks about every call of {}", intent.tool);
        if is_unread_command(intent) {
            return self.once(&why());
        }
        if things.is_empty() {
            let grant = Grant::Tool { name: intent.tool.to_owned() };
            if !grants.contains(&grant) {
                self.push(why(), Some(grant));
            }
            return;
        }
        if !open.is_empty() {
            self.reasons.push(why());
            open.iter().for_each(|thing| self.add(thing.grant()));
        }
    }

    fn verdict(self) -> Verdict {
        if self.reasons.is_empty() {
            return Verdict::Allow;
        }
        let grants = if self.only_once { Vec::new() } else { self.grants };
        Verdict::Ask(Question { why: self.reasons.join("; "), grants })
    }
}
