//! From proposals to the disk, by a person's decision.
//!
//! Applying verifies every base, stages what it can beside the targets, records `changes.apply_started` with a
//! `file.changed` for each change, lets everything happen, and records `changes.applied`. Before that record anything that
//! speaks against any change refuses the whole set, and nothing was touched. After it the way is only forward: whoever
//! holds the session next [`finish`](Changes::finish)es what was cut, and leaves alone what is neither as it was nor as it
//! was meant to be.
//!
//! Selecting (`select`) and planning (`plan`) are pure; `perform` looks at the disk and changes it. Which session, and
//! that nobody else holds it, is the caller's business.

mod perform;
mod places;
mod plan;
mod select;
mod show;

use std::sync::Arc;

use hames_protocol::{
    BlobStore, ChangePaths, ChangesApplied, ChangesDiscarded, Emit, ErrorClass, Event, Failure, SessionId, SessionState,
};
use hames_tools::{Finished, FsProvider};
use tokio::runtime::Handle;

use super::content::Contents;
use perform::Disk;
pub use places::{NotProposed, proposed_places};
pub use plan::Mismatch;
use plan::Strictness;
use select::Picked;
pub use show::{OpenChange, What};

/// The proposals of a session and the disk they are for.
pub struct Changes {
    session: SessionId,
    disk: Disk,
}

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The disk is not what some of the changes were proposed against. Nothing was touched.
    #[error("{}", refused(.0))]
    Refused(Vec<Mismatch>),
    /// It could not be recorded. Nothing was touched, or what was begun will be finished by whoever holds the session next.
    #[error("{0}")]
    Failed(#[from] Failure),
}

fn refused(mismatches: &[Mismatch]) -> String {
    let changes = if mismatches.len() == 1 { "change does" } else { "changes do" };
    format!("nothing was applied: {} {changes} not fit the disk any more", mismatches.len())
}

/// What came of an apply that was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// What is on disk now, absolute paths in order.
    pub paths: Vec<String>,
    /// What failed on the way, and stays proposed.
    pub failed: Vec<Mismatch>,
}

impl Changes {
    /// Proposals of `session` whose contents are in `blobs`, for `fs`: the disk itself, nothing laid over it.
    pub fn new(session: SessionId, fs: Arc<dyn FsProvider>, blobs: Arc<dyn BlobStore>) -> Self {
        let contents = Contents { cache: Arc::default(), blobs, runtime: Handle::try_current().ok() };
        Self { session, disk: Disk { fs, contents } }
    }

    /// Applies what is at or below the places (everything where there are none), with what that needs. The proposals are
    /// those of `state`; the events go to `emit`.
    pub async fn apply(&self, state: &SessionState, places: &[String], emit: &dyn Emit) -> Result<Applied, ApplyError> {
        let picked = match places {
            [] => Picked::all(state),
            places => Picked::at(state, places).with_what_it_needs(state),
        };
        if picked.is_empty() {
            return Ok(Applied::default());
        }
        let (disk, session, paths) = (self.disk.clone(), self.session.clone(), picked.paths());
        let prepared = blocking(move || {
            let (plan, wrong) = plan::plan(&picked, &disk.look(&picked), Strictness::Fresh);
            if !wrong.is_empty() {
                return Err(ApplyError::Refused(wrong));
            }
            match disk.prepare(plan, &picked, &session) {
                (prepared, wrong) if wrong.is_empty() => Ok(prepared),
                (_, wrong) => Err(ApplyError::Refused(wrong)),
            }
        });
        let mut prepared = prepared.await??;
        let started = Event::ChangesApplyStarted(ChangePaths { paths });
        let changes = std::mem::take(&mut prepared.changes);
        emit.record(std::iter::once(started).chain(changes).collect()).await?;
        let disk = self.disk.clone();
        let performed = blocking(move || disk.perform(prepared)).await?;
        self.settle(performed, emit).await.map_err(ApplyError::from)
    }

    /// Finishes an apply that was cut, as far as `state` knows of one: each path is as it is meant to be, or is made so
    /// now, or is left alone because it is neither that nor what it was.
    pub async fn finish(&self, state: &SessionState, emit: &dyn Emit) -> Result<Finished, Failure> {
        if state.applying.is_empty() {
            return Ok(Finished::default());
        }
        let mut picked = Picked::all(state);
        picked.proposals.retain(|path, _| state.applying.contains(path));
        picked.folders.retain(|path| state.applying.contains(path));
        let (disk, session) = (self.disk.clone(), self.session.clone());
        let work = move || {
            let (plan, mut left) = plan::plan(&picked, &disk.look(&picked), Strictness::UnderWay);
            let (prepared, unstaged) = disk.prepare(plan, &picked, &session);
            // What could not be staged is tried again in its turn, and fails there for the same reason.
            drop(unstaged);
            let mut performed = disk.perform(prepared);
            left.append(&mut performed.failed);
            performed.failed = left;
            performed
        };
        let Applied { paths, failed } = self.settle(blocking(work).await?, emit).await?;
        let left = failed.into_iter().map(|left| (left.path, left.reason)).collect();
        Ok(Finished { applied: paths, left })
    }

    /// Settles what is on disk already as it is proposed, whoever made it so: it counts as applied. Changes nothing on
    /// disk. Returns the paths.
    pub async fn settle_made(&self, state: &SessionState, emit: &dyn Emit) -> Result<Vec<String>, Failure> {
        let (disk, picked) = (self.disk.clone(), Picked::all(state));
        let paths = blocking(move || plan::made(&picked, &disk.look(&picked))).await?;
        if !paths.is_empty() {
            emit.record(vec![ChangesApplied { paths: paths.clone() }.into()]).await?;
        }
        Ok(paths)
    }

    async fn settle(&self, performed: perform::Performed, emit: &dyn Emit) -> Result<Applied, Failure> {
        let (mut paths, failed) = (performed.done, performed.failed);
        paths.retain(|path| !failed.iter().any(|failed| failed.path == *path));
        paths.sort_unstable();
        paths.dedup();
        emit.record(vec![ChangesApplied { paths: paths.clone() }.into()]).await?;
        Ok(Applied { paths, failed })
    }

    /// Drops what is at or below the places (everything where there are none), with what cannot stay without it. Looks at
    /// no disk. Returns the paths.
    pub async fn discard(
        &self,
        state: &SessionState,
        places: &[String],
        emit: &dyn Emit,
    ) -> Result<Vec<String>, Failure> {
        let picked = match places {
            [] => Picked::all(state),
            places => Picked::at(state, places).with_what_needs_it(state),
        };
        let paths = picked.paths();
        if !paths.is_empty() {
            emit.record(vec![ChangesDiscarded { paths: paths.clone() }.into()]).await?;
        }
        Ok(paths)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|crash| {
        Failure::new(
            ErrorClass::Internal,
            format!("applying changes was broken off: {crash}. This is a fault of Hames, please report it"),
        )
    })
}
