//! What a person allowed for more than once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that is allowed from now on: for a session or for a folder. A denial beats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Grant {
    /// A path outside the workspace, canonical, with everything below it.
    Path {
        /// The path.
        path: String,
        /// Whether it may be changed too.
        write: bool,
    },
    /// Commands that begin with these words: parsed words, never a text prefix of the line.
    Command {
        /// The words.
        words: Vec<String>,
    },
    /// A host.
    Host {
        /// Its name, lower case.
        host: String,
    },
    /// Calls of this tool that ask for a decision of their own accord.
    Tool {
        /// The tool's name.
        name: String,
    },
}
