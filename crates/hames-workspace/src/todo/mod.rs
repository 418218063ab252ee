//! The session's todo list.

use std::sync::Arc;

use hames_tools::Tool;

/// The tools of this module.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
