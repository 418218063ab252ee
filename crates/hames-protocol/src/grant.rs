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
    /// The command of exactly these words: parsed words, never a beginning of the line, because what was allowed as
    /// `rm -r build` was not allowed as `rm -r build src`.
    Command {
        /// The program and its arguments, quotes removed.
        words: Vec<String>,
    },
    /// A host.
    Host {
        /// Its name, lower case.
        host: String,
    },
    /// Calls of this tool, where the tool itself asks for a decision or a call names nothing that could be granted.
    Tool {
        /// The tool's name.
        name: String,
    },
}
