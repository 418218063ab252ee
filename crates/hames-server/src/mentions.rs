//! Paths for the completion of a mention: the session's folder, walked by the rules of its ignore files and kept for a
//! moment, because one types letter by letter.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hames_protocol::api::Files;
use hames_tools::{FileKind, FsError, FsProvider, WalkOptions};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

/// Paths of one folder that are looked at. A larger tree is completed from its beginning.
const MAX_PATHS: usize = 100_000;
/// How long a walk takes at most.
const WALK_LIMIT: Duration = Duration::from_secs(2);
/// How long a walk is good for.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// Folders whose walk is kept.
const KEPT: usize = 4;

struct Walk {
    paths: Vec<String>,
    /// Whether the walk was broken off.
    is_part: bool,
    at: Instant,
}

/// Walks that are kept.
#[derive(Default)]
pub(crate) struct Mentions(Mutex<HashMap<String, Arc<Walk>>>);

impl Mentions {
    /// The best matches; without a query what lies in the folder itself. Blocks.
    pub(crate) fn find(&self, files: &dyn FsProvider, query: &str, limit: usize) -> Result<Files, FsError> {
        let walk = self.walk(files)?;
        if query.trim().is_empty() {
            let top = walk.paths.iter().filter(|path| !path.trim_end_matches('/').contains('/'));
            let mut top: Vec<String> = top.cloned().collect();
            top.sort_unstable();
            let more = top.len() > limit || walk.is_part;
            top.truncate(limit);
            return Ok(Files { files: top, more });
        }
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
        let mut found = pattern.match_list(walk.paths.iter(), &mut matcher);
        // Of equal matches the shorter path is the likelier one.
        found.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.len().cmp(&b.len())).then(a.cmp(b)));
        let more = found.len() > limit || walk.is_part;
        Ok(Files { files: found.into_iter().take(limit).map(|(path, _)| path.clone()).collect(), more })
    }

    fn walk(&self, files: &dyn FsProvider) -> Result<Arc<Walk>, FsError> {
        let root = files.root().to_string_lossy().into_owned();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, walk| walk.at.elapsed() < KEPT_FOR);
        if let Some(walk) = kept.get(&root) {
            return Ok(Arc::clone(walk));
        }
        drop(kept);
        let walk = Arc::new(walk(files)?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(root, Arc::clone(&walk));
        Ok(walk)
    }
}

fn walk(files: &dyn FsProvider) -> Result<Walk, FsError> {
    let begun = Instant::now();
    let (mut paths, mut is_part) = (Vec::new(), false);
    let root = files.resolve(".")?;
    files.walk(&root, &WalkOptions::default(), &mut |entry| {
        let path = &entry.path.shown;
        if !path.is_empty() && path != "." {
            paths.push(if entry.kind == FileKind::Dir { format!("{path}/") } else { path.clone() });
        }
        is_part = paths.len() >= MAX_PATHS || begun.elapsed() > WALK_LIMIT;
        if is_part { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(Walk { paths, is_part, at: Instant::now() })
}
