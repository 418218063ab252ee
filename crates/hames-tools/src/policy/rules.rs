//! Rules as values: a verdict, and what it is about.
//!
//! Rules that deny or ask are held against commands generously, rules that allow strictly: a rule can be too careful,
//! never too trusting.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::{Thing, Touched};

/// What a rule says, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleVerdict {
    /// It needs no decision.
    Allow,
    /// A person decides.
    Ask,
    /// Never.
    Deny,
}

impl RuleVerdict {
    /// `allow`, `ask`, `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            RuleVerdict::Allow => "allow",
            RuleVerdict::Ask => "ask",
            RuleVerdict::Deny => "deny",
        }
    }
}

/// A decision made beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The decision.
    pub verdict: RuleVerdict,
    /// What it is about.
    pub about: About,
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Paths, as they are once links are followed.
    Path {
        /// Which.
        pattern: PathPattern,
        /// What is done with them; both reading and changing where absent.
        access: Option<Access>,
    },
    /// Commands that begin with these words.
    ///
    /// *Allow* wants the command's first words to be exactly these. *Ask* and *deny* also find the program under any
    /// path (`/usr/bin/git`), and skip options, with a value each, in front of a word (`git -C x push`). Where a word
    /// that counts is only known when the command runs (`git $x`), a person is asked.
    ///
    /// What a program does by itself is not seen: its aliases, scripts, makefiles, other programs it starts.
    Command(Vec<String>),
    /// Hosts.
    Host(HostPattern),
    /// Every call of the tool of this name.
    Tool(String),
    /// Every call.
    Everything,
}

/// What is done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reading. A rule that denies it or asks about it means changing too; one that allows it does not.
    Read,
    /// Changing. A rule that allows it means reading too; one that denies it or asks about it does not.
    Write,
}

impl Access {
    /// `read`, `write`.
    pub fn as_str(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
        }
    }
}

/// Why text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRule(String);

impl Rule {
    /// Whether the rule is about this thing.
    pub(super) fn covers_thing(&self, thing: &Thing<'_>, root: &Path) -> bool {
        match (&self.about, thing) {
            (About::Path { .. }, Thing::Path(t)) => self.covers_path(&t.path.abs, t.write, root),
            (About::Command(rule), Thing::Command(words)) => match self.verdict {
                RuleVerdict::Allow => !rule.is_empty() && words.starts_with(rule),
                RuleVerdict::Ask | RuleVerdict::Deny => begins_with(words, rule) == Match::Yes,
            },
            (About::Host(pattern), Thing::Host(host)) => pattern.matches(host),
            _ => false,
        }
    }

    /// Whether the rule is about reading, or changing, this path.
    pub(crate) fn covers_path(&self, abs: &Path, write: bool, root: &Path) -> bool {
        let About::Path { pattern, access } = &self.about else { return false };
        let is_meant = match (self.verdict, access) {
            (_, None) => true,
            (RuleVerdict::Allow, Some(Access::Read)) => !write,
            (RuleVerdict::Allow, Some(Access::Write)) => true,
            (RuleVerdict::Ask | RuleVerdict::Deny, Some(Access::Read)) => true,
            (RuleVerdict::Ask | RuleVerdict::Deny, Some(Access::Write)) => write,
        };
        is_meant && pattern.matches(abs, root)
    }

    /// Whether the rule is about something inside a path that is changed as a whole.
    pub(super) fn lies_below(&self, touched: &Touched, root: &Path) -> bool {
        touched.write && self.fixed_part(root).is_some_and(|fixed| fixed.starts_with(&touched.path.abs))
    }

    /// The one place that a rule keeps from being read; none where it is about changing, or about whatever a wildcard
    /// matches.
    pub(crate) fn unread_place(&self, root: &Path) -> Option<PathBuf> {
        match &self.about {
            About::Path { pattern, access } if self.restrains_paths() && *access != Some(Access::Write) => {
                pattern.rest.is_empty().then(|| pattern.fixed_part(root))
            }
            _ => None,
        }
    }

    /// Where all paths of a rule about paths lie at or below.
    pub(crate) fn fixed_part(&self, root: &Path) -> Option<PathBuf> {
        match &self.about {
            About::Path { pattern, .. } => Some(pattern.fixed_part(root)),
            _ => None,
        }
    }

    pub(super) fn is_about_tool(&self, tool: &str) -> bool {
        matches!(&self.about, About::Tool(name) if name == tool)
    }

    /// Whether the rule keeps some commands from running unasked.
    pub(super) fn restrains_commands(&self) -> bool {
        self.verdict != RuleVerdict::Allow && matches!(self.about, About::Command(_))
    }

    /// Whether it depends on what happens when a command runs if the rule is about it.
    pub(super) fn perhaps_covers(&self, words: &[String]) -> bool {
        matches!(&self.about, About::Command(rule) if begins_with(words, rule) == Match::Perhaps)
    }

    /// Whether the rule keeps some files from being used unasked.
    pub(crate) fn restrains_paths(&self) -> bool {
        self.verdict != RuleVerdict::Allow && matches!(self.about, About::Path { .. })
    }
}

/// How surely a command is one that begins with the words of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    No,
    /// It depends on what a word becomes when the command runs.
    Perhaps,
    Yes,
}

/// Whether a command is one that begins with the words of a rule: the program under any path, options in front of each
/// further word skipped, each with a value that may or may not be its own.
fn begins_with(words: &[String], rule: &[String]) -> Match {
    let (Some(program), Some(wanted)) = (words.first(), rule.first()) else { return Match::No };
    if is_expanded(program) {
        return Match::Perhaps;
    }
    let is_program = program == wanted || (!wanted.contains('/') && program.rsplit('/').next() == Some(wanted));
    if !is_program {
        return Match::No;
    }
    let mut perhaps = false;
    // The places behind the words found so far.
    let mut places = vec![1];
    for wanted in &rule[1..] {
        let mut next = Vec::new();
        for place in places {
            let mut value_may_follow = false;
            for (at, word) in words.iter().enumerate().skip(place) {
                if word == wanted && !next.contains(&(at + 1)) {
                    next.push(at + 1);
                }
                perhaps |= is_expanded(word);
                let is_option = word.starts_with('-');
                if !is_option && !value_may_follow {
                    break;
                }
                value_may_follow = is_option;
            }
        }
        places = next;
    }
    match (places.is_empty(), perhaps) {
        (false, _) => Match::Yes,
        (true, true) => Match::Perhaps,
        (true, false) => Match::No,
    }
}

/// Whether a word, as a tool gives it, may become another or several ones when it runs. A quoted one is taken for such,
/// too: its quotes are gone.
fn is_expanded(word: &str) -> bool {
    word.contains(['$', '`', '*', '?', '[', '{'])
}

/// Characters that mean something in a pattern.
const WILDCARDS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Which paths a rule is about: the one it names with everything below it.
///
/// Absolute, or relative to the workspace. `*` and `?` stand for characters within one name, `**` for any number of
/// names, `[…]` and `{…}` for one of several; `\` takes the next character literally. `**/.env` is every `.env`.
#[derive(Clone)]
pub struct PathPattern {
    text: String,
    /// The names before the first that holds a wildcard.
    fixed: PathBuf,
    /// The names from there on.
    rest: String,
    set: GlobSet,
}

impl PathPattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, BadRule> {
        let bad = |why: &str| Err(BadRule(format!("{text:?} is no path or pattern of paths: {why}")));
        if text.is_empty() {
            return bad("it is empty");
        }
        if Path::new(text).components().any(|part| part == Component::ParentDir) {
            return bad("it holds `..`, and links make that ambiguous");
        }
        let is_absolute = text.starts_with('/');
        let plain: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let mut set = GlobSetBuilder::new();
        let joined = plain.join("/");
        let forms = match joined.as_str() {
            // The root, or the workspace, with everything in it.
            "" => vec!["**".to_owned()],
            _ => vec![joined.clone(), format!("{joined}/**")],
        };
        for form in forms {
            match GlobBuilder::new(&form).literal_separator(true).backslash_escape(true).build() {
                Ok(glob) => set.add(glob),
                Err(error) => return bad(&error.kind().to_string()),
            };
        }
        let Ok(set) = set.build() else { return bad("it is too large") };
        let is_fixed = |part: &&str| !part.contains(WILDCARDS);
        let (fixed, rest) = plain.split_at(plain.iter().take_while(|part| is_fixed(part)).count());
        let root = if is_absolute { "/" } else { "" };
        let fixed = fixed.iter().fold(PathBuf::from(root), |path, part| path.join(part));
        Ok(Self { text: text.to_owned(), fixed, rest: rest.join("/"), set })
    }

    /// The same pattern with this absolute path in place of its names without wildcards. `None` where it is not UTF-8.
    pub fn moved_to(&self, place: &Path) -> Option<Self> {
        Self::new(&format!("{}/{}", escaped(place.to_str()?), self.rest)).ok()
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether an absolute path without links is meant. `root` is the workspace.
    pub fn matches(&self, abs: &Path, root: &Path) -> bool {
        let within = if self.is_absolute() { abs.strip_prefix("/") } else { abs.strip_prefix(root) };
        within.is_ok_and(|path| self.set.is_match(path))
    }

    /// The path up to the first name with a wildcard, absolute.
    pub fn fixed_part(&self, root: &Path) -> PathBuf {
        root.join(&self.fixed)
    }

    fn is_absolute(&self) -> bool {
        self.text.starts_with('/')
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathPattern {}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathPattern").field(&self.text).finish()
    }
}

/// A path so that a pattern takes each of its characters literally.
pub fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if WILDCARDS.contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Which hosts a rule is about: one by its name or address, or with `*.` everything below a name, but not the name
/// itself; `*` is every host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, BadRule> {
        let host = plain_host(text);
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "/*?@#".contains(c));
        if !is_name && text.trim() != "*" {
            return Err(BadRule(format!(
                "{text:?} is no host: it should be like example.com, *.example.com, 10.0.0.1"
            )));
        }
        let has_port = name.rsplit_once(':').is_some_and(|(before, _)| !before.contains(':'));
        if has_port {
            return Err(BadRule(format!("{text:?} names a port; a rule is about a host, whatever the port")));
        }
        Ok(Self(host))
    }

    /// In lower case, as it is compared.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this host is meant.
    pub fn matches(&self, host: &str) -> bool {
        let host = plain_host(host);
        match self.0.strip_prefix('*') {
            Some("") => true,
            Some(tail) => host.len() > tail.len() && host.ends_with(tail),
            None => host == self.0,
        }
    }
}

/// A host in the one form it is compared in: lower case, without the brackets of an address and the dot of the root.
pub(super) fn plain_host(host: &str) -> String {
    let host = host.trim();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_lowercase()
}
