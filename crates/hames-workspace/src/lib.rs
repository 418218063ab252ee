//! Filesystems, the shell, and the built-in tools over them.
//!
//! Each module holds a port's real implementation and the tools that stand on it: [`files`], [`search`], [`shell`],
//! [`recall`], [`web`], [`mod@todo`]. Tools reach the world only through their [`ToolCx`](hames_tools::ToolCx), so every one of them runs on any
//! filesystem.

pub mod files;
pub mod library;
pub mod recall;
pub mod search;
pub mod shell;
pub mod todo;
pub mod web;

use std::sync::Arc;

use hames_tools::Tool;

/// The built-in tools, in the order they are advertised.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    tools_with(web::WebOptions::default())
}

/// The same, with what an embedder decides about fetching.
pub fn tools_with(web: web::WebOptions) -> Vec<Arc<dyn Tool>> {
    let mut all = files::tools();
    all.extend(search::tools());
    all.extend(shell::tools());
    all.push(Arc::new(recall::Recall));
    all.push(Arc::new(web::WebFetch::new(web)));
    all.extend(todo::tools());
    all
}
