//! `hames changes`: what was proposed in Analyze, looked at and decided on, by any process.
//!
//! Looking needs nobody's leave and writes nothing. Deciding takes the session's lease, finishes an apply that was cut
//! before, and records what was decided; how the disk changes is the workspace's business.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hames_agent::{Nobody, Ports, Session, SystemClock, Watch};
use hames_protocol::api::{ApiErrorCode, ChangePathsGiven};
use hames_protocol::{ChangeKind, Emit, SessionState};
use hames_store::{Lease, SessionInfo, Store};
use hames_tools::Finished;
use hames_workspace::files::{
    ApplyError, Changes, LocalFs, LocalFsOptions, Mismatch, OpenChange, What, proposed_places, remove_staged_beside,
};
use serde_json::{Value, json};

use super::sessions::each_event;
use crate::cli::{ChangesArgs, ChangesCommand};
use crate::engine::{unfinished, with_store};
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::text::{changes as counts, count};
use crate::output::{Out, Style, clean, say};
use crate::resolve::existing;
use crate::server::server_of;

/// Written once in every log that has proposals.
const PROPOSED: &str = "change.proposed";

pub(crate) fn run(args: ChangesArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let folder = super::folder(args.dir.as_deref())?;
    with_store(&home, |store| {
        let found = match &args.session {
            Some(name) => {
                let info = existing(store, &folder, name)?;
                let state = state_of(store, &info)?;
                Some((info, state))
            }
            None => newest(store, &folder)?,
        };
        let mut command =
            Command { store, home: &home, json: args.json, out: Out::new(), style: Style::for_stdout(env) };
        let code = match found {
            Some((info, state)) if state.has_proposals() => command.carry_out(args.what, &info, &state)?,
            found => command.nothing(found.as_ref().map(|(info, _)| info), &folder)?,
        };
        command.out.finish()?;
        Ok(code)
    })
}

/// The folder's newest session with open proposals.
fn newest(store: &Store, folder: &Path) -> Result<Option<(SessionInfo, SessionState)>, Stop> {
    for info in store.with_event(folder, PROPOSED)? {
        let state = state_of(store, &info)?;
        if state.has_proposals() {
            return Ok(Some((info, state)));
        }
    }
    Ok(None)
}

/// The session as its log has it; nothing of what a death left open is closed.
fn state_of(store: &Store, info: &SessionInfo) -> Result<SessionState, Stop> {
    let mut state = SessionState::default();
    each_event(store, info, |envelope| {
        state.apply(envelope);
        Ok(())
    })?;
    Ok(state)
}

/// A session that this command may write.
struct Own {
    session: Session,
    /// Records what is decided.
    emit: Arc<dyn Emit>,
    /// What was finished of an apply that was cut.
    finished: Finished,
    /// What was open before that.
    open: Vec<OpenChange>,
    _lease: Lease,
}

struct Command<'a> {
    store: &'a Store,
    home: &'a Home,
    json: bool,
    out: Out,
    style: Style,
}

impl Command<'_> {
    fn nothing(&mut self, session: Option<&SessionInfo>, folder: &Path) -> Result<u8, Stop> {
        if !self.json {
            let place = match session {
                Some(info) => format!("session \"{}\"", clean::line(&info.name)),
                None => clean::line(&folder.display().to_string()),
            };
            self.out.line(format!("nothing is proposed in {place}"))?;
        }
        Ok(exit::COMPLETE)
    }

    fn carry_out(&mut self, what: ChangesCommand, info: &SessionInfo, state: &SessionState) -> Result<u8, Stop> {
        let runtime = super::runtime()?;
        let disk = self.disk(info)?;
        let (ChangesCommand::List { paths }
        | ChangesCommand::Show { paths }
        | ChangesCommand::Apply { paths }
        | ChangesCommand::Discard { paths }) = &what;
        let places = places(paths, &disk, state)?;
        runtime.block_on(async {
            let changes = Changes::new(info.id.clone(), disk, self.store.blobs());
            match what {
                ChangesCommand::List { .. } => self.list(&changes, info, state, &places).await,
                ChangesCommand::Show { .. } => self.show(&changes, info, state, &places).await,
                ChangesCommand::Apply { .. } => self.apply(&changes, info, state, &places).await,
                ChangesCommand::Discard { .. } => self.discard(&changes, info, state, &places).await,
            }
        })
    }

    /// The session's folder, as every run of it sees it.
    fn disk(&self, info: &SessionInfo) -> Result<Arc<LocalFs>, Stop> {
        let options = LocalFsOptions { denied: self.home.private() };
        let fs = LocalFs::new(Path::new(&info.folder), options).map_err(|error| {
            Stop::usage(format!("the session's folder cannot be used: {}", clean::line(&error.to_string())))
        })?;
        Ok(Arc::new(fs))
    }

    async fn list(
        &mut self,
        changes: &Changes,
        info: &SessionInfo,
        state: &SessionState,
        places: &[String],
    ) -> Result<u8, Stop> {
        let open = changes.open(state, places).await?;
        if self.json {
            open.iter().try_for_each(|change| self.out.json(&as_json(info, change)))?;
            return Ok(exit::COMPLETE);
        }
        self.head(info, state, open.len())?;
        let width = open.iter().map(|change| name(change).chars().count()).max().unwrap_or(0).min(60);
        for change in &open {
            let line = format!("  {:<7} {:<width$}  {}", verb(change), name(change), size(change));
            self.out.line(line.trim_end())?;
            self.mismatch(change)?;
        }
        Ok(exit::COMPLETE)
    }

    async fn show(
        &mut self,
        changes: &Changes,
        info: &SessionInfo,
        state: &SessionState,
        places: &[String],
    ) -> Result<u8, Stop> {
        let open = changes.open(state, places).await?;
        if self.json {
            for change in &open {
                let mut object = as_json(info, change);
                object["diff"] = change.diff.as_ref().map_or(Value::Null, |diff| diff.text.as_str().into());
                self.out.json(&object)?;
            }
            return Ok(exit::COMPLETE);
        }
        self.head(info, state, open.len())?;
        for change in &open {
            self.out.line("")?;
            let head = format!("{} {}  {}", verb(change), name(change), size(change));
            self.out.line(self.style.bold(head.trim_end()))?;
            self.mismatch(change)?;
            for line in change.diff.iter().map(|diff| clean::block(&diff.text)).collect::<String>().lines() {
                self.out.line(self.style.diff_line(line))?;
            }
        }
        Ok(exit::COMPLETE)
    }

    fn head(&mut self, info: &SessionInfo, state: &SessionState, shown: usize) -> Result<(), Stop> {
        let all = state.open_changes().count();
        let of = if shown < all { format!("{} of ", count(shown as u64)) } else { String::new() };
        let changes = if all == 1 { "change" } else { "changes" };
        let head = format!("session \"{}\": {of}{} proposed {changes}", clean::line(&info.name), count(all as u64));
        self.out.line(self.style.bold(&head))?;
        if !state.applying.is_empty() {
            let note = "applying was cut; `hames changes apply` or the session's next run finishes it";
            self.out.line(self.style.yellow(note))?;
        }
        Ok(())
    }

    fn mismatch(&mut self, change: &OpenChange) -> Result<(), Stop> {
        let Some(reason) = &change.mismatch else { return Ok(()) };
        self.out.line(self.style.yellow(&format!("          cannot be applied: {}", clean::line(reason))))
    }

    async fn apply(
        &mut self,
        changes: &Changes,
        info: &SessionInfo,
        state: &SessionState,
        places: &[String],
    ) -> Result<u8, Stop> {
        if let Some(client) = server_of(self.store, self.home, &info.id).await? {
            let open = changes.open(state, &[]).await?;
            let wanted = ChangePathsGiven { paths: places.to_vec() };
            let done = match client.apply_changes(&info.id, &wanted).await {
                Ok(done) => done,
                // What does not fit the disk is seen here as well as there, and said in the same words.
                Err(error) if error.code() == Some(ApiErrorCode::Stale) => {
                    let wrong =
                        changes.open(state, places).await?.into_iter().filter_map(|change| {
                            Some(Mismatch { path: change.path.clone(), reason: change.mismatch? })
                        });
                    let wrong: Vec<_> = wrong.collect();
                    return if wrong.is_empty() { Err(error.into()) } else { self.refused(info, &wrong) };
                }
                Err(error) => return Err(error.into()),
            };
            let left = done.left.into_iter().map(|(path, reason)| Mismatch { path, reason }).collect::<Vec<_>>();
            self.settled(info, "applied", &done.paths, &open)?;
            return self.left_alone(info, &left);
        }
        let Own { session, emit, finished, mut open, _lease } = self.own(changes, info, "hames changes apply").await?;
        if !finished.left.is_empty() {
            // What is left does not fit, and would only be refused.
            self.settled(info, "applied", &finished.applied, &open)?;
            return Ok(exit::STOPPED);
        }
        let state = session.state().clone();
        open.append(&mut changes.open(&state, places).await?);
        let mut applied = match changes.apply(&state, places, emit.as_ref()).await {
            Ok(applied) => applied,
            Err(ApplyError::Failed(failure)) => return Err(failure.into()),
            Err(ApplyError::Refused(mismatches)) => return self.refused(info, &mismatches),
        };
        let mut done = finished.applied;
        done.append(&mut applied.paths);
        self.settled(info, "applied", &done, &open)?;
        self.left_alone(info, &applied.failed)
    }

    /// Says what could not be changed, and finds the exit code.
    fn left_alone(&mut self, info: &SessionInfo, failed: &[Mismatch]) -> Result<u8, Stop> {
        for left in failed {
            if self.json {
                self.out.json(&left_json(info, left))?;
            } else {
                say(&format!("hames: {} was not changed: {}", clean::line(&left.path), clean::line(&left.reason)));
            }
        }
        Ok(if failed.is_empty() { exit::COMPLETE } else { exit::STOPPED })
    }

    /// Says what does not fit. Nothing was done.
    fn refused(&mut self, info: &SessionInfo, mismatches: &[Mismatch]) -> Result<u8, Stop> {
        if self.json {
            mismatches.iter().try_for_each(|mismatch| self.out.json(&left_json(info, mismatch)))?;
        }
        let mut said = format!(
            "hames: nothing was applied, because {} not fit the disk any more:",
            if mismatches.len() == 1 { "one change does" } else { "some changes do" }
        );
        for mismatch in mismatches {
            said.push_str(&format!("\n  {}: {}", clean::line(&mismatch.path), clean::line(&mismatch.reason)));
        }
        said.push_str("\nTake those files back, apply the others by name, or let the session propose anew.");
        say(&said);
        Ok(exit::STOPPED)
    }

    async fn discard(
        &mut self,
        changes: &Changes,
        info: &SessionInfo,
        state: &SessionState,
        places: &[String],
    ) -> Result<u8, Stop> {
        if let Some(client) = server_of(self.store, self.home, &info.id).await? {
            let open = changes.open(state, &[]).await?;
            let done = client.discard_changes(&info.id, &ChangePathsGiven { paths: places.to_vec() }).await?;
            self.settled(info, "discarded", &done.paths, &open)?;
            return Ok(exit::COMPLETE);
        }
        let Own { session, emit, _lease, .. } = self.own(changes, info, "hames changes discard").await?;
        let state = session.state().clone();
        let open = changes.open(&state, &[]).await?;
        let discarded = changes.discard(&state, places, emit.as_ref()).await?;
        self.settled(info, "discarded", &discarded, &open)?;
        Ok(exit::COMPLETE)
    }

    /// The session, for whoever writes it: what a death left is closed and finished.
    async fn own(&self, changes: &Changes, info: &SessionInfo, holder: &str) -> Result<Own, Stop> {
        let _lease = self.store.lease(&info.id, holder)?;
        let ports = Ports { log: self.store.log(), clock: Arc::new(SystemClock) };
        let session = Session::resume(ports, info.id.clone()).await?;
        session.cut_changes().iter().for_each(|file| remove_staged_beside(file));
        let emit = session.emit(Arc::new(Nobody) as Arc<dyn Watch>);
        let state = session.state().clone();
        let (mut finished, mut open) = (Finished::default(), Vec::new());
        if !state.applying.is_empty() {
            open = changes.open(&state, &[]).await?;
            finished = changes.finish(&state, emit.as_ref()).await?;
            unfinished(&finished);
        }
        Ok(Own { session, emit, finished, open, _lease })
    }

    /// Says what was decided.
    fn settled(&mut self, info: &SessionInfo, how: &str, paths: &[String], open: &[OpenChange]) -> Result<(), Stop> {
        let of = |path: &String| open.iter().find(|change| change.path == *path);
        let changes: Vec<&OpenChange> = paths.iter().filter_map(of).collect();
        if self.json {
            for change in changes {
                let mut object = as_json(info, change);
                object["outcome"] = how.into();
                self.out.json(&object)?;
            }
            return Ok(());
        }
        for change in &changes {
            self.out.line(format!("  {:<7} {}", verb(change), name(change)))?;
        }
        let what = if changes.len() == 1 { "change" } else { "changes" };
        self.out.line(format!(
            "{how} {} {what} of session \"{}\"",
            count(changes.len() as u64),
            clean::line(&info.name)
        ))
    }
}

/// The absolute paths that a person means.
fn places(paths: &[PathBuf], fs: &LocalFs, state: &SessionState) -> Result<Vec<String>, Stop> {
    let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
    proposed_places(&paths, fs, state)
        .map_err(|why| Stop::usage(format!("{}; `hames changes list` shows what is", clean::line(&why.to_string()))))
}

fn verb(change: &OpenChange) -> &'static str {
    match change.what {
        What::Create => "create",
        What::Edit => "edit",
        What::Replace => "replace",
        What::Remove => "remove",
    }
}

fn name(change: &OpenChange) -> String {
    let is_folder = change.kind == ChangeKind::Dir && change.what != What::Replace;
    format!("{}{}", clean::line(&change.shown), if is_folder { "/" } else { "" })
}

/// Lines added and removed, or sizes where the content is no text.
fn size(change: &OpenChange) -> String {
    if let Some(diff) = &change.diff {
        return counts(std::slice::from_ref(diff));
    }
    match (change.bytes_now, change.bytes) {
        (None, None) => String::new(),
        (Some(now), None) => format!("binary, {} bytes", count(now)),
        (None, Some(new)) => format!("binary, {} bytes", count(new)),
        (Some(now), Some(new)) => format!("binary, {} → {} bytes", count(now), count(new)),
    }
}

fn as_json(info: &SessionInfo, change: &OpenChange) -> Value {
    json!({
        "session": info.id.as_str(),
        "path": change.path,
        "shown": change.shown,
        "change": verb(change),
        "kind": change.kind,
        "bytes": change.bytes,
        "bytes_now": change.bytes_now,
        "added": change.diff.as_ref().map(|diff| diff.added),
        "removed": change.diff.as_ref().map(|diff| diff.removed),
        "call_id": change.call_id.as_str(),
        "at": change.at,
        "mismatch": change.mismatch,
    })
}

fn left_json(info: &SessionInfo, left: &Mismatch) -> Value {
    json!({"session": info.id.as_str(), "path": left.path, "outcome": "refused", "mismatch": left.reason})
}
