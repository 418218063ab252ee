//! The commands that begin with a slash: one table of their names, arguments and what they do.
//!
//! A message is a command where it begins with a slash and a name of letters (`/rename better name`). Whatever else begins
//! with a slash is text: `// note`, `/usr/bin/env`, `/*`. A name that is no command is said and never sent; one space in
//! front of it makes it text.

use hames_protocol::{Mode, ThinkingLevel};

use super::fuzzy;
use crate::Action;

/// Something the app does, asked for by a command or by a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A new session, with a name where one is given.
    New(Option<String>),
    /// The picker of sessions.
    Sessions,
    /// Another name for the session.
    Rename(Option<String>),
    /// A copy of the session, up to the marked message.
    Branch(Option<String>),
    /// Everything from the marked message on goes.
    Cut,
    /// The session goes.
    Delete,
    /// The session into a file.
    Export(Option<String>),
    /// The session into another folder.
    Move(Option<String>),
    /// Another model.
    Model(Option<String>),
    /// Analyze or Build; the other one where none is given.
    Mode(Option<Mode>),
    /// How much the model thinks.
    Thinking(Option<ThinkingLevel>),
    /// What waits for a decision.
    Decide,
    /// The settings.
    Settings,
    /// The proposed changes.
    Changes,
    /// The report about the window.
    Context,
    /// Compacts now.
    Compact {
        /// Only says what that would do.
        dry_run: bool,
    },
    /// The todo list.
    Todos,
    /// The whole output of a call: the one of that name, else one that is on the screen.
    Output(Option<String>),
    /// Searches all sessions.
    Search(Option<String>),
    /// The last answer, or what is selected, into the clipboard.
    Copy,
    /// A file goes along with the message.
    Attach(String),
    /// The draft into the user's editor.
    Editor,
    /// Puts a message in at the next step.
    Steer(String),
    /// Queues a message; without one, pauses the queue or lets it go on.
    Queue(Option<String>),
    /// Stops the run.
    Stop {
        /// Background work too.
        all: bool,
    },
    /// How large the database is.
    Database,
    /// Gives unused space of the database back.
    Vacuum,
    /// The providers.
    Providers,
    /// The keys, and what they do.
    Keys,
    /// Help.
    Help,
    /// Leaves; sessions go on.
    Quit,
}

/// A row of the table.
pub(crate) struct Entry {
    /// Its name, without the slash.
    pub(crate) name: &'static str,
    /// Its arguments, for a person; empty where it takes none.
    pub(crate) arguments: &'static str,
    /// What it does.
    pub(crate) does: &'static str,
    make: fn(Option<String>) -> Result<Command, &'static str>,
}

macro_rules! commands {
    ($( $name:literal $arguments:literal $does:literal $make:expr; )*) => {
        /// Every command, in the order lists show them.
        pub(crate) const COMMANDS: &[Entry] =
            &[ $( Entry { name: $name, arguments: $arguments, does: $does, make: $make }, )* ];
    };
}

commands! {
    "new" "[NAME]" "a new session in this folder" |name| Ok(Command::New(name));
    "sessions" "" "choose a session" |_| Ok(Command::Sessions);
    "rename" "[NAME]" "another name for this session" |name| Ok(Command::Rename(name));
    "branch" "[NAME]" "a copy of this session, up to the marked message" |name| Ok(Command::Branch(name));
    "cut" "" "remove the marked message and everything behind it" |_| Ok(Command::Cut);
    "delete" "" "delete this session" |_| Ok(Command::Delete);
    "export" "[FILE]" "write this session into a file" |file| Ok(Command::Export(file));
    "move" "[FOLDER]" "move this session to another folder" |folder| Ok(Command::Move(folder));
    "model" "[MODEL]" "choose a model" |model| Ok(Command::Model(model));
    "mode" "[analyze|build]" "Analyze or Build, from the next run on" |mode| match mode.map(|m| m.parse::<Mode>()) {
        None => Ok(Command::Mode(None)),
        Some(Ok(mode)) => Ok(Command::Mode(Some(mode))),
        Some(Err(_)) => Err("the modes are analyze and build"),
    };
    "thinking" "[off|low|medium|high]" "how much the model thinks" |level| match level.map(|l| l.parse::<ThinkingLevel>()) {
        None => Ok(Command::Thinking(None)),
        Some(Ok(level)) => Ok(Command::Thinking(Some(level))),
        Some(Err(_)) => Err("the levels are off, low, medium and high"),
    };
    "decide" "" "what waits for your decision" |_| Ok(Command::Decide);
    "settings" "" "settings of this session" |_| Ok(Command::Settings);
    "changes" "" "proposed changes: look, apply, discard" |_| Ok(Command::Changes);
    "context" "" "what the model is sent, and what it weighs" |_| Ok(Command::Context);
    "compact" "[--dry-run]" "compact the window now" |how| match how.as_deref() {
        None => Ok(Command::Compact { dry_run: false }),
        Some("--dry-run") => Ok(Command::Compact { dry_run: true }),
        Some(_) => Err("/compact takes nothing but --dry-run"),
    };
    "todos" "" "the todo list" |_| Ok(Command::Todos);
    "output" "[NAME]" "the whole output of a call" |name| Ok(Command::Output(name));
    "search" "[WORDS]" "search all sessions" |words| Ok(Command::Search(words));
    "copy" "" "copy the selection, else the last answer" |_| Ok(Command::Copy);
    "attach" "FILE" "let a file or an image go along with the message" |file| file.map(Command::Attach).ok_or("which file? /attach FILE");
    "editor" "" "write the message in your editor" |_| Ok(Command::Editor);
    "steer" "TEXT" "put a message in at the agent's next step" |text| text.map(Command::Steer).ok_or("what should the agent hear? /steer TEXT");
    "queue" "[TEXT]" "queue a message; alone: pause the queue, or let it go on" |text| Ok(Command::Queue(text));
    "stop" "[--all]" "stop the run; with --all background work too" |what| match what.as_deref() {
        None => Ok(Command::Stop { all: false }),
        Some("--all") => Ok(Command::Stop { all: true }),
        Some(_) => Err("/stop takes nothing but --all"),
    };
    "database" "" "how large the database is" |_| Ok(Command::Database);
    "vacuum" "" "give unused space of the database back" |_| Ok(Command::Vacuum);
    "providers" "" "set up providers, and test them" |_| Ok(Command::Providers);
    "keys" "" "the keys" |_| Ok(Command::Keys);
    "help" "" "commands and keys" |_| Ok(Command::Help);
    "quit" "" "leave; sessions go on" |_| Ok(Command::Quit);
}

/// What a message that is about to be sent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// Text for the model.
    Text,
    /// A command.
    Command(Command),
    /// No such command.
    Unknown {
        /// What was written.
        name: String,
        /// The nearest there is.
        near: Option<&'static str>,
    },
    /// A command with arguments it does not take; what to write instead.
    Wrong(String),
}

/// The name and what stands behind it, where a text has the form of a command.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(end);
    let is_name = name.chars().all(|c| c.is_alphabetic() || c == '-' || c == '_');
    (is_name && !name.starts_with('-')).then_some((name, behind.trim()))
}

/// The command of a name.
pub(crate) fn entry(name: &str) -> Option<&'static Entry> {
    COMMANDS.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
}

/// Reads a message.
pub(crate) fn parse(text: &str) -> Parsed {
    let Some((name, behind)) = split(text) else { return Parsed::Text };
    let Some(entry) = entry(name) else {
        return Parsed::Unknown { name: name.to_owned(), near: nearest(name) };
    };
    if entry.arguments.is_empty() && !behind.is_empty() {
        return Parsed::Wrong(format!("/{} takes nothing behind it", entry.name));
    }
    match (entry.make)((!behind.is_empty()).then(|| behind.to_owned())) {
        Ok(command) => Parsed::Command(command),
        Err(why) => Parsed::Wrong(why.to_owned()),
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    if lower.is_empty() {
        return None;
    }
    let begins = COMMANDS.iter().map(|entry| entry.name).find(|known| known.starts_with(&lower));
    let (distance, near) = COMMANDS.iter().map(|entry| (strsim::osa_distance(entry.name, &lower), entry.name)).min()?;
    begins.or((distance <= 2).then_some(near))
}

/// Commands that match what is written of a name, the best first, with the matching bytes.
pub(crate) fn filter(query: &str) -> Vec<(&'static Entry, Vec<usize>)> {
    let mut found: Vec<_> =
        COMMANDS.iter().filter_map(|entry| fuzzy::find(query, entry.name).map(|m| (entry, m))).collect();
    if !query.is_empty() {
        let rank = |entry: &Entry| entry.name != query;
        found.sort_by_key(|(entry, found)| (rank(entry), !entry.name.starts_with(query), -found.score));
    }
    found.into_iter().map(|(entry, found)| (entry, found.at)).collect()
}

impl Command {
    /// What a key asks for, where that is a command too.
    pub(crate) fn of(action: Action) -> Option<Self> {
        Some(match action {
            Action::Help => Command::Help,
            Action::Sessions => Command::Sessions,
            Action::New => Command::New(None),
            Action::Models => Command::Model(None),
            Action::Mode => Command::Mode(None),
            Action::Decide => Command::Decide,
            Action::Settings => Command::Settings,
            Action::Changes => Command::Changes,
            Action::Context => Command::Context,
            Action::Todos => Command::Todos,
            Action::Output => Command::Output(None),
            Action::Search => Command::Search(None),
            Action::Copy => Command::Copy,
            Action::Editor => Command::Editor,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_command_text_or_a_mistake_that_is_said() {
        let unknown = |name: &str, near| Parsed::Unknown { name: name.into(), near };
        for (text, parsed) in [
            ("/new", Parsed::Command(Command::New(None))),
            ("/new  a name ", Parsed::Command(Command::New(Some("a name".into())))),
            ("/Help", Parsed::Command(Command::Help)),
            ("/mode build", Parsed::Command(Command::Mode(Some(Mode::Build)))),
            ("/mode loud", Parsed::Wrong("the modes are analyze and build".into())),
            ("/thinking high", Parsed::Command(Command::Thinking(Some(ThinkingLevel::High)))),
            ("/stop --all", Parsed::Command(Command::Stop { all: true })),
            ("/stop everything", Parsed::Wrong("/stop takes nothing but --all".into())),
            ("/compact --dry-run", Parsed::Command(Command::Compact { dry_run: true })),
            ("/steer", Parsed::Wrong("what should the agent hear? /steer TEXT".into())),
            ("/steer use\npnpm", Parsed::Command(Command::Steer("use\npnpm".into()))),
            ("/queue", Parsed::Command(Command::Queue(None))),
            ("/todos are stale", Parsed::Wrong("/todos takes nothing behind it".into())),
            ("/sesions", unknown("sesions", Some("sessions"))),
            ("/comp", unknown("comp", Some("compact"))),
            ("/xyzzy", unknown("xyzzy", None)),
            ("/usr", unknown("usr", None)),
            ("/", unknown("", None)),
            ("// a note", Parsed::Text),
            ("//", Parsed::Text),
            ("/usr/bin/env is missing", Parsed::Text),
            ("/* a comment */", Parsed::Text),
            ("/1", Parsed::Text),
            (" /help", Parsed::Text),
            ("see /help", Parsed::Text),
            ("", Parsed::Text),
        ] {
            assert_eq!(parse(text), parsed, "{text:?}");
        }
    }

    #[test]
    fn every_command_is_found_by_its_name_and_says_what_it_does() {
        for entry in COMMANDS {
            assert_eq!(filter(entry.name)[0].0.name, entry.name);
            assert!(!entry.does.is_empty());
            let given = if entry.arguments.starts_with('[') || entry.arguments.is_empty() { "" } else { " x" };
            assert!(matches!(parse(&format!("/{}{given}", entry.name)), Parsed::Command(_)), "{}", entry.name);
        }
        assert_eq!(filter("").len(), COMMANDS.len());
        assert_eq!(
            filter("mo").iter().map(|(entry, _)| entry.name).take(3).collect::<Vec<_>>(),
            ["move", "model", "mode"]
        );
    }

    #[test]
    fn keys_and_commands_are_one_list() {
        assert_eq!(Command::of(Action::Models), Some(Command::Model(None)));
        assert_eq!(Command::of(Action::Submit), None);
    }
}
