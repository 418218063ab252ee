//! Tools as the rest of Hames sees them: what is advertised, what a call declares, how a call is named.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// 1–64 of `A-Za-z0-9_-`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments; `type` is `object`.
    pub parameters: Value,
}

/// What one call does to the world. Everything else (preview, approval, overlap, caching) follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks only.
    Read,
    /// Changes files that it names.
    Edit,
    /// Runs a command that may change anything in the workspace.
    Run,
    /// Acts outside this machine or on something unknown.
    External,
    /// Changes only the session itself (its todo list, say).
    Session,
}

/// Something a call reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Resource {
    /// A file or a folder with all it contains, as the model wrote it; resolved at the door.
    Path {
        /// The path.
        path: String,
        /// Whether the call changes it.
        write: bool,
        /// The entry itself is meant: a link at the end of the path is not followed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_follow: bool,
    },
    /// The whole workspace.
    Workspace {
        /// Whether the call may change it.
        write: bool,
    },
    /// Anything else that two calls may contend for, by name.
    Named {
        /// The name.
        name: String,
        /// Whether the call changes it.
        write: bool,
    },
    /// A command that will run, as the words of one simple command. What calls contend for is in the other resources;
    /// this is what rules and grants for commands are held against. A line names every simple command in it: those of
    /// substitutions too, and one that runs another (`env`, `sudo`, `sh -c`) as itself and then as the other. What
    /// changes what a command means or does counts as one: assignments, with the command they stand before, and a
    /// redirection that writes, as `>` and the file. A line that cannot be read names none.
    Command {
        /// The program and its arguments, quotes removed. Words that are expanded stay as they are written. Empty for
        /// a command that is only known when it runs (`eval $x`, what a shell reads): no rule that allows commands then
        /// holds for the line.
        words: Vec<String>,
    },
    /// A host that is spoken to over the network.
    Host {
        /// Its name or address, lower case, without the port.
        host: String,
    },
}

impl Resource {
    /// A path that is followed to what it leads to.
    pub fn path(path: impl Into<String>, write: bool) -> Self {
        Resource::Path { path: path.into(), write, no_follow: false }
    }

    /// Whether the call changes it.
    pub fn is_written(&self) -> bool {
        match self {
            Resource::Path { write, .. } | Resource::Workspace { write } | Resource::Named { write, .. } => *write,
            Resource::Command { .. } | Resource::Host { .. } => false,
        }
    }
}

/// What a tool declares of one call. An undeclared effect is refused in Analyze and runs alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// What it does.
    pub effect: Effect,
    /// What it touches. Calls overlap only where these are disjoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The same call gives the same result while its resources do not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cacheable: bool,
    /// Milliseconds for which that holds at most; without it, for as long as the resources stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ms: Option<u64>,
    /// Asking again is its purpose, so repetition is no loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polling: bool,
    /// Milliseconds it may take; the door cancels it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Bytes its result may have in the window at most; the window's share may be smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_bytes: Option<u64>,
    /// Every change it makes goes through the filesystem it is given, to paths it names: in Analyze it runs over the
    /// proposals and touches nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preview: bool,
    /// Why a person should decide on this call wherever it acts; nothing to decide where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// Why it is not taken for a call that only reads, and what to use instead: told to the model where Analyze refuses
    /// it. A sentence or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Declaration {
    /// A declaration with only an effect and resources.
    pub fn new(effect: Effect, resources: Vec<Resource>) -> Self {
        Self {
            effect,
            resources,
            cacheable: false,
            cache_ms: None,
            polling: false,
            timeout_ms: None,
            cap_bytes: None,
            preview: false,
            ask: None,
            reason: None,
        }
    }
}

/// A call's name for people: made once, when the call is made, and read by every stub, card and summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// The tool.
    pub tool: String,
    /// What it is about: a path, a command's first line, a pattern. At most 200 characters, no control characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Its size, where one matters: `240 lines`, `+4/-2`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub size: String,
}

impl Label {
    /// A label, its target cleaned of control and bidi characters and cut to 200 characters.
    pub fn new(tool: impl Into<String>, target: &str) -> Self {
        let clean: String = target
            .lines()
            .next()
            .unwrap_or("")
            .chars()
            .map(|c| if is_unprintable(c) { '\u{fffd}' } else { c })
            .collect();
        let target = match clean.char_indices().nth(200) {
            Some((at, _)) => format!("{}…", &clean[..at]),
            None => clean,
        };
        Self { tool: tool.into(), target, size: String::new() }
    }

    /// The label with a size.
    pub fn sized(mut self, size: impl Into<String>) -> Self {
        self.size = size.into();
        self
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.tool)?;
        if !self.target.is_empty() {
            write!(f, " {}", self.target)?;
        }
        if !self.size.is_empty() {
            write!(f, " ({})", self.size)?;
        }
        Ok(())
    }
}

/// Whether a character can hide or rearrange other text on a screen: control characters, bidi controls, marks nobody
/// sees, tags. The joiners of Persian and of emoji are text.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'   // marks nobody sees
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'             // separators, bidi controls
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}') // annotations, tags
}

/// A reference to an exact output kept outside the window.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct BlobRef {
    /// Lower-case hex of the BLAKE3 hash of the content.
    pub hash: String,
    /// Bytes kept.
    pub bytes: u64,
    /// Bytes dropped from the middle because the content passed the blob limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// The session's own name for it (`out-17`), where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A change to one file, shown as a unified diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The file, relative to the workspace where it is inside.
    pub path: String,
    /// Unified diff text.
    pub text: String,
    /// Lines added.
    pub added: u32,
    /// Lines removed.
    pub removed: u32,
}

/// A file's content as a call saw or left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileHash {
    /// Canonical absolute path.
    pub path: String,
    /// Lower-case hex of the BLAKE3 hash of the whole content.
    pub hash: String,
}
