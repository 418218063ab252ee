//! Walking a tree and keeping what a pattern fits.

use std::ops::ControlFlow;
use std::path::Path;

use hames_tools::{FileKind, FsError, FsPath, ToolCx, ToolFailure, WalkEntry, WalkOptions};

use super::pattern::Filter;

/// Entries one search looks at: a guard for memory and time in trees nobody meant to search.
const MAX_ENTRIES: usize = 500_000;

/// Something found.
pub(super) struct Found {
    pub(super) path: FsPath,
    pub(super) size: u64,
}

/// What a walk gave.
#[derive(Default)]
pub(super) struct Finding {
    /// What fits, by path.
    pub(super) found: Vec<Found>,
    /// Things of the other kind that fit: folders where files were wanted and the other way round.
    pub(super) others: usize,
    /// Nothing below the start was visible, so the walk went on without ignore files: whoever names an ignored folder
    /// means it.
    pub(super) ignored_start: bool,
    /// The walk ended at [`MAX_ENTRIES`].
    pub(super) cut: bool,
}

/// Which kind of thing is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// Regular files, to be opened.
    Files,
    /// Everything with a name but folders.
    Names,
    /// Folders.
    Dirs,
}

impl Want {
    fn takes(self, kind: FileKind) -> bool {
        match self {
            Want::Files => kind == FileKind::File,
            Want::Names => kind != FileKind::Dir,
            Want::Dirs => kind == FileKind::Dir,
        }
    }
}

/// What to look for.
pub(super) struct Search<'a> {
    pub(super) want: Want,
    /// Look at what ignore files hide, too.
    pub(super) no_ignore: bool,
    /// Folders deeper than this hold nothing that fits.
    pub(super) max_depth: Option<usize>,
    /// The reading of the pattern that a path relative to the start fits; smaller is more literal.
    pub(super) reading_of: &'a dyn Fn(&str) -> Option<usize>,
}

/// Where a search by content starts, and the files it looks into: a file that is named, whatever filter and ignore files
/// say, or what fits below a folder.
pub(super) fn searched(
    cx: &ToolCx,
    path: &str,
    filter: &Filter,
    no_ignore: bool,
) -> Result<(FsPath, Finding), ToolFailure> {
    let (from, kind, size) = start(cx, path)?;
    let finding = if kind == FileKind::Dir {
        let reading_of = |path: &str| filter.reading_of(path);
        find(cx, &from, &Search { want: Want::Files, no_ignore, max_depth: None, reading_of: &reading_of })?
    } else {
        Finding { found: vec![Found { path: from.clone(), size }], ..Finding::default() }
    };
    Ok((from, finding))
}

/// Everything below `from` that fits; of several readings only what fits the most literal one.
pub(super) fn find(cx: &ToolCx, from: &FsPath, search: &Search<'_>) -> Result<Finding, ToolFailure> {
    let (mut finding, visible) = walk(cx, from, search, search.no_ignore)?;
    if visible == 0 && !search.no_ignore && from.abs != cx.fs.root() {
        let (again, visible) = walk(cx, from, search, true)?;
        finding = Finding { ignored_start: visible > 0, ..again };
    }
    finding.found.sort_by(|a, b| a.path.shown.cmp(&b.path.shown));
    Ok(finding)
}

fn walk(cx: &ToolCx, from: &FsPath, search: &Search<'_>, no_ignore: bool) -> Result<(Finding, usize), ToolFailure> {
    let options = WalkOptions { no_ignore, max_depth: search.max_depth };
    let mut finding = Finding::default();
    let mut best = usize::MAX;
    let mut visited = 0;
    let mut visit = |entry: WalkEntry| {
        if cx.cancel.is_cancelled() {
            return ControlFlow::Break(());
        }
        let Some(relative) = relative(&entry.path, from) else { return ControlFlow::Continue(()) };
        visited += 1;
        if visited > MAX_ENTRIES {
            finding.cut = true;
            return ControlFlow::Break(());
        }
        let Some(reading) = (search.reading_of)(&relative) else { return ControlFlow::Continue(()) };
        if !search.want.takes(entry.kind) {
            finding.others += 1;
            return ControlFlow::Continue(());
        }
        if reading < best {
            best = reading;
            finding.found.clear();
        }
        if reading == best {
            finding.found.push(Found { path: entry.path, size: entry.size });
        }
        ControlFlow::Continue(())
    };
    let walked = cx.fs.walk(from, &options, &mut visit);
    if cx.cancel.is_cancelled() {
        return Err(ToolFailure::cancelled());
    }
    walked?;
    Ok((finding, visited))
}

/// A path below `from` as patterns see it; `None` for `from` itself.
fn relative(path: &FsPath, from: &FsPath) -> Option<String> {
    if path.shown == from.shown {
        return None;
    }
    // What is shown is where the walk found it; a link that was followed has its target's absolute path.
    let below = match from.shown.trim_end_matches('/') {
        "." => Some(path.shown.as_str()),
        folder => path.shown.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
    };
    below.map(str::to_owned).or_else(|| path.abs.strip_prefix(&from.abs).ok().map(slashed))
}

/// A relative path with `/` between its components.
pub(super) fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// Resolves the path a search starts at and says what kind of thing it is.
pub(super) fn start(cx: &ToolCx, path: &str) -> Result<(FsPath, FileKind, u64), ToolFailure> {
    let from = cx.resolve(path)?;
    match cx.fs.stat(&from) {
        Ok(stat) => Ok((from, stat.kind, stat.size)),
        Err(error @ FsError::NotFound { .. }) if path.contains(['*', '?']) => {
            let error = ToolFailure::from(error);
            Err(ToolFailure {
                text: format!("{}; path takes no wildcards, put them into the glob", error.text),
                ..error
            })
        }
        Err(error) => Err(error.into()),
    }
}
