//! What a call touches, resolved, and the ticket that follows from it.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hames_protocol::{Declaration, Effect, Resource};

use super::Admitted;
use crate::locks::{Claim, Key};
use crate::policy::true_effect;
use crate::{FsError, FsProvider, Touched};

/// The paths of a call, resolved; or why one of them cannot be.
pub(super) type Scope = Result<Vec<Touched>, FsError>;

/// The scopes of calls, in their order.
pub(super) async fn resolve(fs: &Arc<dyn FsProvider>, calls: &[Admitted]) -> Vec<Scope> {
    let wanted: Vec<_> = calls.iter().map(|call| call.runnable().map(paths).unwrap_or_default()).collect();
    resolve_paths(fs, wanted).await
}

/// The scope of one call, resolved anew.
pub(super) async fn resolve_one(fs: &Arc<dyn FsProvider>, declaration: &Declaration) -> Scope {
    resolve_paths(fs, vec![paths(declaration)]).await.pop().unwrap_or(Ok(Vec::new()))
}

/// A path as a call names it.
struct Named {
    path: String,
    write: bool,
    no_follow: bool,
}

fn paths(declaration: &Declaration) -> Vec<Named> {
    let path = |resource: &Resource| match resource {
        Resource::Path { path, write, no_follow } => {
            Some(Named { path: path.clone(), write: *write, no_follow: *no_follow })
        }
        _ => None,
    };
    declaration.resources.iter().filter_map(path).collect()
}

async fn resolve_paths(fs: &Arc<dyn FsProvider>, wanted: Vec<Vec<Named>>) -> Vec<Scope> {
    // A hop to another thread only where there is something to look at.
    if wanted.iter().all(Vec::is_empty) {
        return wanted.into_iter().map(|_| Ok(Vec::new())).collect();
    }
    let (fs, calls) = (fs.clone(), wanted.len());
    let all = move || {
        let one = |Named { path, write, no_follow }| {
            let path = if no_follow { fs.resolve_entry(&path) } else { fs.resolve(&path) };
            Ok(Touched { path: path?, write })
        };
        wanted.into_iter().map(|paths| paths.into_iter().map(one).collect()).collect()
    };
    tokio::task::spawn_blocking(all).await.unwrap_or_else(|crash| {
        let failed = || Err(FsError::Io { path: "the call's paths".into(), reason: crash.to_string() });
        (0..calls).map(|_| failed()).collect()
    })
}

/// Whether two resolutions of one call mean the same files. Identities may differ: an edit before it in the order
/// replaces a file by another with the same name.
pub(super) fn leads_elsewhere(before: &[Touched], now: &[Touched]) -> Option<String> {
    let moved = before.iter().zip(now).find(|(b, n)| (&b.path.abs, b.path.inside) != (&n.path.abs, n.path.inside));
    moved.map(|(before, now)| format!("{} now leads to {}", before.path.shown, now.path.abs.display()))
}

/// What the call needs for itself.
pub(super) fn claim(
    fs: &dyn FsProvider,
    declaration: &Declaration,
    touched: &[Touched],
    batch: u64,
    parallel: bool,
) -> Claim {
    let workspace = |write| Key::Path { abs: fs.root().to_path_buf(), identity: None, write };
    let mut keys: Vec<Key> = touched
        .iter()
        .map(|t| Key::Path { abs: t.path.abs.clone(), identity: t.path.identity, write: t.write })
        .collect();
    // A path that leads through a link needs the link to stay, which is known by where it is written.
    let written = paths(declaration).into_iter().map(|named| as_written(fs.root(), &named.path));
    keys.extend(written.zip(touched).filter(|(written, t)| *written != t.path.abs).map(|(abs, _)| Key::Path {
        abs,
        identity: None,
        write: false,
    }));
    keys.extend(declaration.resources.iter().filter_map(|resource| match resource {
        Resource::Workspace { write } => Some(workspace(*write)),
        Resource::Named { name, write } => Some(Key::Named { name: name.clone(), write: *write }),
        Resource::Path { .. } | Resource::Command { .. } | Resource::Host { .. } => None,
    }));
    let effect = true_effect(declaration);
    let names_nothing = declaration.resources.is_empty();
    // A command may change anything it can reach; so may an edit that does not say what.
    if effect == Effect::Run || (effect == Effect::Edit && names_nothing) {
        keys.push(workspace(true));
    }
    Claim { batch, alone: !parallel || (names_nothing && effect != Effect::Session), keys }
}

/// A path by its text alone: absolute, without `.` and `..`.
fn as_written(root: &Path, path: &str) -> PathBuf {
    let mut written = root.to_path_buf();
    for part in Path::new(path).components() {
        match part {
            Component::RootDir | Component::Prefix(_) => written = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => drop(written.pop()),
            Component::Normal(name) => written.push(name),
        }
    }
    written
}
