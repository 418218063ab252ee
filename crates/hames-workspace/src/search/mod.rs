//! Finding files by name ([`Glob`]) and by content ([`Grep`]).
//!
//! Both walk through the filesystem port, so what a walk shows (ignore files, proposals, borders) is what they search;
//! no external program is ever started and a pattern is only ever a pattern. Results stand in the order of their
//! paths, so the same question gives the same answer and pages join up without gap or overlap.

mod ahead;
mod args;
mod find;
mod glob;
mod grep;
mod hits;
mod lines;
mod needle;
mod page;
mod pattern;
mod stream;

use std::sync::Arc;

use hames_tools::Tool;

pub use glob::Glob;
pub use grep::Grep;
pub(crate) use lines::{Line, Lines, lines};
pub(crate) use stream::StreamSearch;

/// The tools of this module.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Glob::new()), Arc::new(Grep::new())]
}

/// Bytes a result may have in the window at most; the window's share may be smaller.
const RESULT_CAP: usize = 30 * 1024;

/// Results of one page where the call names no limit: enough to answer most questions, little enough to be read.
const DEFAULT_LIMIT: usize = 200;
