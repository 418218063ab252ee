//! The local filesystem and the tools that read and change files.
//!
//! [`LocalFs`] keeps file tools inside a root, in the kernel; the tools keep files what they are: line ends, byte order
//! mark, encoding, mode bits, final newline, links. Reading and changing text is pure (`text`, `edit`, `diff`, `page`)
//! and knows nothing of where it comes from, so the tools run on any [`FsProvider`](hames_tools::FsProvider).
//!
//! Nothing here asks or decides whether a call is allowed beyond the root and the denied places: that is the door's.

mod binary;
mod change;
mod content;
mod denied;
mod diff;
mod edit;
mod ignores;
mod image;
mod listed;
mod local;
mod nearest;
mod overlay;
pub(crate) mod page;
#[cfg(test)]
pub(crate) mod properties;
mod remove;
mod resolve;
mod rules;
mod stage;
pub(crate) mod stream;
mod suggest;
#[cfg(test)]
mod swaps;
mod sys;
mod table;
mod text;
mod tools;
mod walk;
mod write;

use std::sync::Arc;

use hames_tools::Tool;

pub use content::Content;
pub use image::{IMAGE_HEAD, Image, ImageFault, ImageKind, MAX_IMAGE_BYTES, MAX_IMAGE_SIDE};
pub use local::{LocalFs, LocalFsOptions};
pub use overlay::{
    Applied, ApplyError, Changes, Mismatch, NotProposed, OpenChange, Overlay, OverlayFs, What, proposed_places,
};
pub use stage::remove_staged_beside;
pub use table::{MemoryFs, MemoryNodes, Node, Nodes, Rows, RowsMut, TableError, TableFs};
pub(crate) use text::{Text, not_text};
pub use tools::{Delete, Edit, List, Read, StrReplace, Write};

/// The tools of this module.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Read), Arc::new(Write), Arc::new(StrReplace), Arc::new(Edit), Arc::new(Delete), Arc::new(List)]
}
