//! Which proposals a person means by a path.

use std::path::{Component, Path, PathBuf};

use hames_protocol::SessionState;
use hames_tools::FsProvider;

/// A path at and below which nothing is proposed, as it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is proposed at {0}")]
pub struct NotProposed(pub String);

/// The absolute paths that are meant, each of which has proposals at or below it. A path is taken as it is written, then
/// with the links above it followed, then followed itself.
pub fn proposed_places(
    paths: &[impl AsRef<str>],
    fs: &dyn FsProvider,
    state: &SessionState,
) -> Result<Vec<String>, NotProposed> {
    let has_proposals = |place: &String| {
        let below = format!("{}/", place.trim_end_matches('/'));
        let is_meant = |path: &String| path == place || path.starts_with(&below);
        state.proposals.keys().chain(&state.proposed_folders).any(is_meant)
    };
    let find = |path: &str| {
        let written = written(&fs.root().join(path)).to_string_lossy().into_owned();
        let led_to = [fs.resolve_entry(path), fs.resolve(path)];
        let led_to = led_to.into_iter().flatten().map(|found| found.abs.to_string_lossy().into_owned());
        let found = std::iter::once(written).chain(led_to).find(has_proposals);
        found.ok_or_else(|| NotProposed(path.to_owned()))
    };
    paths.iter().map(|path| find(path.as_ref())).collect()
}

/// A path without `.` and `..`, going by how it is written.
fn written(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}
