//! Operations on one session, and on their list.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use hames_agent::{Ports, Session};
use hames_protocol::api::*;
use hames_protocol::closing::INTERRUPTED_CODE;
use hames_protocol::{BlobSource, CallId, Part, Pending, PendingId, RunId, SessionId};
use hames_store::{EXPORT_BLOB_BYTES, PageAt};
use tokio::sync::oneshot;

use super::{Hub, named_holder};
use crate::actor::{Look, seen};
use crate::attachments::{Attachment, examine};
use crate::ledger::Ledgers as LedgerFold;
use crate::refusal::{Answer, blocking, failed, refuse, refused};
use crate::{Subscription, names, rows, view};

/// Events a page has at most.
const MAX_PAGE: usize = 1_000;
/// Events read at once for a fold.
const FOLD_PAGE: usize = 1_000;
/// What a process can exit with; 0 would say that nothing was stopped.
const EXIT_CODES: RangeInclusive<i32> = 1..=255;

/// Hands a method of the actor to it.
macro_rules! in_session {
    ($hub:expr, $id:expr, |$actor:ident| $work:expr) => {
        $hub.inner.in_session($id, move |$actor| Box::pin(async move { $work.await })).await
    };
}

impl Hub {
    /// The sessions of a folder, or all, the newest first.
    pub async fn sessions(&self, folder: Option<&Path>) -> Answer<Sessions> {
        let (store, folder) = (self.inner.store.clone(), folder.map(canonical));
        let (infos, used) = blocking(move || (store.list(folder.as_deref()), store.in_use())).await?;
        let (infos, used) = (infos.map_err(refused)?, used.unwrap_or_default());
        let me = std::process::id();
        let elsewhere: HashMap<SessionId, String> = used
            .into_iter()
            .filter(|used| used.pid != me)
            .map(|used| (used.session.clone(), named_holder(&used)))
            .collect();
        let open: HashMap<_, _> = self.inner.open_sessions().into_iter().collect();
        let rows = move || {
            let row = |info: hames_store::SessionInfo| {
                let held_by = elsewhere.get(&info.id).cloned();
                let activity = match open.get(&info.id) {
                    Some(channel) => channel.glance(|glance| rows::activity(Some(glance), &info)),
                    None => rows::activity(None, &info),
                };
                rows::row(info, activity, held_by)
            };
            infos.into_iter().map(row).collect()
        };
        Ok(Sessions { sessions: blocking(rows).await? })
    }

    /// Makes a session.
    pub async fn create(&self, new: CreateSession) -> Answer<SessionView> {
        if self.inner.is_stopping() {
            return Err(super::stopping());
        }
        let folder = existing_folder(&new.folder).await?;
        let name = match new.name.as_deref().map(str::trim) {
            None => names::UNNAMED.to_owned(),
            Some(name) if names::named(name).is_some() => name.to_owned(),
            Some(_) => return Err(refuse(ApiErrorCode::Invalid, "The name is empty. Leave it out, or give one.")),
        };
        let settings = self.inner.host.born(&folder, &new.settings);
        let (store, now, holder) =
            (self.inner.store.clone(), self.inner.host.clock().now_ms(), self.inner.options.holder.clone());
        let made = blocking(move || store.create(&name, &folder, settings, now, &holder)).await?;
        let (info, lease) = made.map_err(refused)?;
        // The actor takes it again.
        drop(lease);
        self.view(&info.id).await
    }

    /// Everything of a session but the conversation.
    pub async fn view(&self, id: &SessionId) -> Answer<SessionView> {
        match self.inner.outline(id).await? {
            Some((mut info, state)) => {
                info.undecided = state.undecided.is_some();
                let activity = rows::activity(None, &info);
                let row = rows::row(info, activity, None);
                Ok(view::of(self.inner.host.as_ref(), state, row, None, Vec::new()))
            }
            None => in_session!(self, id, |actor| actor.view()),
        }
    }

    /// Renames a session.
    pub async fn rename(&self, id: &SessionId, to: RenameSession) -> Answer<SessionRow> {
        in_session!(self, id, |actor| actor.rename(to))
    }

    /// Changes settings; a run that goes on keeps its own.
    pub async fn change_settings(&self, id: &SessionId, change: ChangeSettings) -> Answer<SessionView> {
        in_session!(self, id, |actor| actor.change_settings(change))
    }

    /// Deletes a session.
    pub async fn delete(&self, id: &SessionId) -> Answer<()> {
        in_session!(self, id, |actor| actor.delete())
    }

    /// A new session with a copy of what this one says, up to an event.
    pub async fn branch(&self, id: &SessionId, at: BranchSession) -> Answer<SessionRow> {
        in_session!(self, id, |actor| actor.branch(at))
    }

    /// Removes the tail of a session.
    pub async fn cut(&self, id: &SessionId, at: CutSession) -> Answer<SessionCutDone> {
        in_session!(self, id, |actor| actor.cut(at))
    }

    /// Puts a session into another folder.
    pub async fn move_to(&self, id: &SessionId, to: MoveSession) -> Answer<SessionRow> {
        let folder = existing_folder(&to.folder).await?;
        in_session!(self, id, |actor| actor.move_to(folder))
    }

    /// Writes all events of a session as lines of JSON, on a thread that may block, and gives their number.
    pub async fn export<W: Write + Send + 'static>(&self, id: &SessionId, mut out: W) -> Answer<u64> {
        let (store, id) = (self.inner.store.clone(), id.clone());
        self.inner.known(&id).await?;
        let written = blocking(move || store.export_whole(&id, EXPORT_BLOB_BYTES, &mut out)).await?.map_err(refused)?;
        Ok(written.events)
    }

    /// Takes in an exported session as a new one of this folder, read on a thread that may block.
    pub async fn import<R: BufRead + Send + 'static>(&self, folder: &Path, mut lines: R) -> Answer<Imported> {
        let folder = existing_folder(&folder.to_string_lossy()).await?;
        let (store, holder) = (self.inner.store.clone(), self.inner.options.holder.clone());
        let now = self.inner.host.clock().now_ms();
        let imported = blocking(move || store.import(&mut lines, &folder, None, now, &holder)).await?;
        let imported = imported.map_err(refused)?;
        let session = rows::row(imported.session, SessionActivity::Idle, None);
        Ok(Imported { session, events: imported.events })
    }

    /// A page of the log: the `limit` events before `before` or after `after`; without both, the last ones.
    pub async fn log(&self, id: &SessionId, before: Option<u64>, after: Option<u64>, limit: usize) -> Answer<LogPage> {
        let at = match (before, after) {
            (Some(before), None) => PageAt::Before(before),
            (None, Some(after)) => PageAt::After(after),
            (None, None) => PageAt::End,
            (Some(_), Some(_)) => {
                return Err(refuse(ApiErrorCode::Invalid, "Give one of before and after, not both."));
            }
        };
        let (store, id) = (self.inner.store.clone(), id.clone());
        let limit = limit.clamp(1, MAX_PAGE);
        let page = blocking(move || store.page(&id, at, limit)).await?.map_err(refused)?;
        let (first, last) = (page.events.first().and_then(|e| e.seq), page.events.last().and_then(|e| e.seq));
        let (older, newer) = match at {
            PageAt::After(after) => (after > 0, page.has_more),
            PageAt::Before(_) => (page.has_more, last.or(before).is_some_and(|seq| seq < page.last_seq)),
            PageAt::End => (page.has_more, false),
        };
        Ok(LogPage { older: older && first.is_none_or(|seq| seq > 1), newer, events: page.events })
    }

    /// Watches a session: the events of its log after `after` (none: only what happens from now on), the open step so
    /// far, then what happens.
    pub async fn attach(&self, id: &SessionId, after: Option<u64>) -> Answer<Subscription> {
        let channel = self.inner.channel(id).await?;
        let head = channel.last_seq();
        let cursor = after.unwrap_or(head);
        let subscription =
            Subscription::new(channel, self.inner.store.clone(), std::sync::Arc::clone(&self.inner.counts), cursor);
        if cursor > head {
            let text =
                format!("The session has events up to {head}; {cursor} is not one of them. Attach from the start.");
            return Err(refuse(ApiErrorCode::Resync, text));
        }
        Ok(subscription)
    }

    /// Takes in a message. It is safe when this returns.
    pub async fn send(&self, id: &SessionId, message: SendMessage) -> Answer<Sent> {
        in_session!(self, id, |actor| actor.send(message))
    }

    /// What waits.
    pub async fn pending(&self, id: &SessionId) -> Answer<PendingList> {
        match self.inner.outline(id).await? {
            Some((_, state)) => Ok(view::listed(&state)),
            None => in_session!(self, id, |actor| actor.pending()),
        }
    }

    /// Changes, converts or moves a waiting message.
    pub async fn edit_pending(&self, id: &SessionId, pending: &PendingId, edit: EditPending) -> Answer<PendingList> {
        let pending = pending.clone();
        in_session!(self, id, |actor| actor.edit_pending(&pending, edit))
    }

    /// Withdraws a waiting message and gives it back.
    pub async fn cancel_pending(&self, id: &SessionId, pending: &PendingId) -> Answer<Pending> {
        let pending = pending.clone();
        in_session!(self, id, |actor| actor.cancel_pending(&pending))
    }

    /// Stops the queue, or lets it go on.
    pub async fn pause(&self, id: &SessionId, pause: PausePending) -> Answer<PendingList> {
        in_session!(self, id, |actor| actor.pause(pause))
    }

    /// Ends what goes on. Returns when it has ended.
    pub async fn abort(&self, id: &SessionId, abort: Abort) -> Answer<Aborted> {
        let code = abort.exit_code.unwrap_or(INTERRUPTED_CODE);
        if !EXIT_CODES.contains(&code) {
            let why = format!("{code} is no exit code of a run that was stopped. Give one from 1 to 255, or none.");
            return Err(refuse(ApiErrorCode::Invalid, why));
        }
        let ended = in_session!(self, id, |actor| actor.abort(code))?;
        let gone = || refuse(ApiErrorCode::Internal, "The session was closed before its run had ended.");
        ended.await.unwrap_or_else(|_| Err(gone()))
    }

    /// What waits for a person.
    pub async fn waiting(&self, id: &SessionId) -> Answer<Waiting> {
        match self.inner.outline(id).await? {
            Some((_, state)) => {
                Ok(Waiting { approvals: Vec::new(), questions: Vec::new(), proposals: view::asked(&state) })
            }
            None => in_session!(self, id, |actor| actor.waiting()),
        }
    }

    /// Answers an approval. The first answer holds. Returns when it is in the log.
    pub async fn answer_approval(&self, id: &SessionId, call: &CallId, answer: AnswerApproval) -> Answer<()> {
        let call = call.clone();
        held(in_session!(self, id, |actor| actor.answer_approval(&call, answer))?).await
    }

    /// Answers a question of a tool. The first answer holds. Returns when it is in the log.
    pub async fn answer_question(&self, id: &SessionId, call: &CallId, answer: AnswerQuestion) -> Answer<()> {
        let call = call.clone();
        held(in_session!(self, id, |actor| actor.answer_question(&call, answer))?).await
    }

    /// Decides about the proposals a run left.
    pub async fn decide_proposals(&self, id: &SessionId, decide: DecideProposals) -> Answer<SessionView> {
        in_session!(self, id, |actor| actor.decide_proposals(decide))
    }

    /// The open proposals.
    pub async fn changes(&self, id: &SessionId) -> Answer<Changes> {
        in_session!(self, id, |actor| actor.changes())
    }

    /// Makes proposed changes.
    pub async fn apply_changes(&self, id: &SessionId, paths: ChangePathsGiven) -> Answer<ChangesSettled> {
        in_session!(self, id, |actor| actor.apply_changes(paths))
    }

    /// Drops proposed changes.
    pub async fn discard_changes(&self, id: &SessionId, paths: ChangePathsGiven) -> Answer<ChangesSettled> {
        in_session!(self, id, |actor| actor.discard_changes(paths))
    }

    /// The window of the next request, and what a compaction would do now.
    pub async fn context(&self, id: &SessionId) -> Answer<SessionContext> {
        self.preview_context(id, ChangeSettings::default()).await
    }

    /// The same as it would be if the settings were changed so. Nothing is set.
    pub async fn preview_context(&self, id: &SessionId, draft: ChangeSettings) -> Answer<SessionContext> {
        match in_session!(self, id, |actor| actor.context(draft))? {
            Look::Seen(context) => Ok(*context),
            Look::FromTheLog(mut agent) => {
                let ports = Ports { log: self.inner.store.log(), clock: self.inner.host.clock() };
                let session = Session::look(ports, id.clone()).await.map_err(failed)?;
                Ok(seen(&session, &mut agent).await)
            }
        }
    }

    /// Makes the window of a session smaller. Returns when it is done.
    pub async fn compact(&self, id: &SessionId) -> Answer<SessionCompacted> {
        let done = in_session!(self, id, |actor| actor.compact())?;
        let gone = || refuse(ApiErrorCode::Internal, "The session was closed before its compaction had ended.");
        done.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Keeps something in the window of a session whatever leaves it.
    pub async fn add_pin(&self, id: &SessionId, pin: AddPin) -> Answer<PinPlaced> {
        in_session!(self, id, |actor| actor.add_pin(pin))
    }

    /// Takes a pin away.
    pub async fn remove_pin(&self, id: &SessionId, pin: u64) -> Answer<()> {
        in_session!(self, id, |actor| actor.remove_pin(pin))
    }

    /// What each run did, without its calls, the newest first.
    pub async fn ledgers(&self, id: &SessionId) -> Answer<Ledgers> {
        Ok(Ledgers { runs: self.fold_ledgers(id, false).await?.newest_first() })
    }

    /// Everything a run did.
    pub async fn ledger(&self, id: &SessionId, run: &RunId) -> Answer<Ledger> {
        let ledgers = self.fold_ledgers(id, true).await?.newest_first();
        let found = ledgers.into_iter().find(|ledger| &ledger.run == run);
        found.ok_or_else(|| refuse(ApiErrorCode::NotFound, format!("The session has no run {run}.")))
    }

    async fn fold_ledgers(&self, id: &SessionId, with_calls: bool) -> Answer<LedgerFold> {
        let (store, id) = (self.inner.store.clone(), id.clone());
        let fold = move || {
            let (mut fold, mut after) = (LedgerFold::new(with_calls), 0);
            loop {
                let page = store.page(&id, PageAt::After(after), FOLD_PAGE)?;
                page.events.iter().for_each(|envelope| fold.apply(envelope));
                match page.events.last().and_then(|envelope| envelope.seq) {
                    Some(seq) if page.has_more => after = seq,
                    _ => return Ok(fold),
                }
            }
        };
        blocking(fold).await?.map_err(refused)
    }

    /// Files of the session's folder that a mention may mean, the best match first.
    pub async fn files(&self, id: &SessionId, query: &str, limit: usize) -> Answer<Files> {
        let folder = self.folder(id).await?;
        let files = self.inner.host.files(&folder).map_err(failed)?;
        let (inner, query) = (std::sync::Arc::clone(&self.inner), query.to_owned());
        let found = blocking(move || inner.mentions.find(files.as_ref(), &query, limit.max(1))).await?;
        found.map_err(|error| refuse(ApiErrorCode::Invalid, format!("The folder cannot be read: {error}.")))
    }

    async fn folder(&self, id: &SessionId) -> Answer<PathBuf> {
        let (store, wanted) = (self.inner.store.clone(), id.clone());
        let info = blocking(move || store.session(&wanted)).await?.map_err(refused)?;
        let gone = || refused(hames_protocol::LogError::NoSession(id.clone()));
        Ok(info.ok_or_else(gone)?.folder.into())
    }

    /// Makes a file into parts of a message.
    pub async fn attachment(&self, id: &SessionId, name: &str, bytes: Vec<u8>) -> Answer<Attached> {
        self.inner.known(id).await?;
        let name = name.to_owned();
        let parts = match blocking(move || examine(&name, bytes)).await?? {
            Attachment::Text(text) => vec![Part::text(self.inner.host.mask(text))],
            Attachment::Image { line, name, media_type, bytes } => {
                let blob = self.inner.store.blobs().put(id, "", BlobSource::Bytes(bytes)).await.map_err(refused)?;
                let image = Part::Image { blob, media_type: media_type.to_owned(), name: Some(name) };
                vec![Part::text(line), image]
            }
        };
        Ok(Attached { parts })
    }

    /// Bytes of what a session kept, by its name (`out-17`) or its hash.
    pub async fn blob(&self, id: &SessionId, name: &str, offset: u64, limit: u64) -> Answer<Vec<u8>> {
        self.inner.known(id).await?;
        let blobs = self.inner.store.blobs();
        let hash = match blobs.named(id, name).await.map_err(refused)? {
            Some(blob) => blob.hash,
            None if name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()) => name.to_owned(),
            None => return Err(refuse(ApiErrorCode::NotFound, format!("The session kept nothing as {name}."))),
        };
        blobs.get(&hash, offset, limit).await.map_err(|error| match error {
            hames_protocol::LogError::Damaged(why) => refuse(ApiErrorCode::NotFound, why),
            other => refused(other),
        })
    }
}

/// Waits until an answer is in the log.
async fn held(recorded: oneshot::Receiver<bool>) -> Answer<()> {
    match recorded.await {
        Ok(true) => Ok(()),
        _ => Err(refuse(ApiErrorCode::Stale, "The call ended before the answer could hold.")),
    }
}

/// A folder as the store names it; what does not exist stays as it is written.
pub(super) fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

async fn existing_folder(folder: &str) -> Answer<PathBuf> {
    let path = PathBuf::from(folder);
    let invalid = |why: &str| refuse(ApiErrorCode::Invalid, format!("{folder} cannot be a session's folder: {why}."));
    if !path.is_absolute() {
        return Err(invalid("it is not absolute"));
    }
    match blocking(move || path.canonicalize().map(|path| (path.is_dir(), path))).await? {
        Ok((true, path)) => Ok(path),
        Ok((false, _)) => Err(invalid("it is not a folder")),
        Err(error) => Err(invalid(&error.to_string())),
    }
}
