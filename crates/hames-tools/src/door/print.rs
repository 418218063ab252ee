//! A print of what a call reads: equal prints mean that nothing of it has changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;

use hames_protocol::{Declaration, Resource};

use super::Admitted;
use super::scope::Scope;
use crate::{CallMemory, FileKind, FsPath, FsProvider, Touched, WalkOptions};

/// Entries that are looked at below a folder. Where there are more, running the call again is the honest thing.
const MAX_ENTRIES: usize = 4_096;

/// The prints of calls, in their order; none where the memory wants none.
pub(super) async fn prints(
    fs: &Arc<dyn FsProvider>,
    calls: &[Admitted],
    scopes: &[Scope],
    memory: Option<&Arc<dyn CallMemory>>,
) -> Vec<Option<u64>> {
    let wanted: Vec<Option<Wanted>> =
        calls.iter().zip(scopes).map(|(call, scope)| wanted(call, scope, memory)).collect();
    let count = wanted.len();
    if wanted.iter().all(Option::is_none) {
        return vec![None; count];
    }
    let fs = fs.clone();
    let all = move || wanted.into_iter().map(|wanted| wanted.and_then(|wanted| print(fs.as_ref(), &wanted))).collect();
    tokio::task::spawn_blocking(all).await.unwrap_or_else(|_| vec![None; count])
}

/// What a call reads.
struct Wanted {
    paths: Vec<FsPath>,
    workspace: bool,
}

fn wanted(call: &Admitted, scope: &Scope, memory: Option<&Arc<dyn CallMemory>>) -> Option<Wanted> {
    let declaration: &Declaration = call.runnable()?;
    let touched: &Vec<Touched> = scope.as_ref().ok()?;
    if !memory?.wants_print(&call.event.call_id) {
        return None;
    }
    // What a command reads is not known.
    if declaration.resources.iter().any(|resource| matches!(resource, Resource::Command { .. })) {
        return None;
    }
    let workspace = declaration.resources.iter().any(|resource| matches!(resource, Resource::Workspace { .. }));
    Some(Wanted { paths: touched.iter().map(|touched| touched.path.clone()).collect(), workspace })
}

fn print(fs: &dyn FsProvider, wanted: &Wanted) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut left = MAX_ENTRIES;
    for path in &wanted.paths {
        add(fs, path, &mut hasher, &mut left)?;
    }
    if wanted.workspace {
        add(fs, &fs.resolve(".").ok()?, &mut hasher, &mut left)?;
    }
    Some(hasher.finish())
}

/// Adds a file, or a folder with all it holds but for what ignore files hide. `None` where it cannot be told whether it
/// changed: too much is in it, or its times are not known.
fn add(fs: &dyn FsProvider, path: &FsPath, hasher: &mut DefaultHasher, left: &mut usize) -> Option<()> {
    let stat = fs.stat(path).ok()?;
    if stat.modified_ns == 0 {
        return None;
    }
    (&path.abs, path.identity, stat.size, stat.mode, stat.modified_ns).hash(hasher);
    if stat.kind != FileKind::Dir {
        return Some(());
    }
    let mut is_known = true;
    fs.walk(path, &WalkOptions::default(), &mut |entry| {
        is_known = *left > 0 && (entry.modified_ns > 0 || entry.kind == FileKind::Dir);
        if !is_known {
            return ControlFlow::Break(());
        }
        *left -= 1;
        (&entry.path.abs, entry.size, entry.modified_ns).hash(hasher);
        ControlFlow::Continue(())
    })
    .ok()?;
    is_known.then_some(())
}
