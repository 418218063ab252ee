//! The hub: every operation of the API, without a wire.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hames_protocol::api::*;
use hames_protocol::{CallId, Pending, PendingId, RunId, SessionId};
use hames_store::Store;
use tokio::sync::watch;

use crate::{Host, Subscription};

/// What can be set of a hub.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// What this process calls itself where somebody else wants a session it holds.
    pub holder: String,
    /// How long a session stays open that nobody watches and in which nothing happens.
    pub close_after: Duration,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self { holder: "hames server".into(), close_after: Duration::from_secs(60) }
    }
}

/// What goes on in a hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Subscriptions.
    pub clients: u32,
    /// Sessions that are open.
    pub sessions: u32,
    /// Runs that go on, those that wait for a person among them.
    pub runs: u32,
    /// Runs that wait for a person.
    pub waiting: u32,
}

impl Counts {
    /// Whether nobody watches and nothing runs.
    pub fn is_idle(self) -> bool {
        self.clients == 0 && self.runs == 0
    }
}

/// All sessions of a home, for clients. Clones are the same hub.
#[derive(Clone)]
pub struct Hub {
    store: Store,
    host: Arc<dyn Host>,
    options: HubOptions,
    counts: Arc<watch::Sender<Counts>>,
}

type Answer<T> = Result<T, ApiError>;

pub(crate) fn unbuilt() -> ApiError {
    ApiError::new(ApiErrorCode::Internal, "This operation of the server is being built.")
}

impl Hub {
    /// A hub over a store.
    pub fn new(store: Store, host: Arc<dyn Host>, options: HubOptions) -> Self {
        Self { store, host, options, counts: Arc::new(watch::Sender::new(Counts::default())) }
    }

    /// The store it stands on.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The host it was given.
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// What goes on now, and a notice whenever that changes.
    pub fn counts(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    /// Whether nobody watches and nothing runs.
    pub fn is_idle(&self) -> bool {
        self.counts.borrow().is_idle()
    }

    /// Whether a stop was asked for.
    pub fn is_stopping(&self) -> bool {
        false
    }

    /// Asks for the stop of the server. Returns once it is decided; [`stopped`](Self::stopped) says when it is done.
    pub async fn stop(&self, _how: StopServer) -> Answer<()> {
        Err(unbuilt())
    }

    /// Returns when a stop that was asked for is done: no run goes on, every session is closed.
    pub async fn stopped(&self) {
        std::future::pending::<()>().await;
    }

    /// The sessions of a folder, or all, the newest first.
    pub async fn sessions(&self, _folder: Option<&Path>) -> Answer<Sessions> {
        Err(unbuilt())
    }

    /// Makes a session.
    pub async fn create(&self, _new: CreateSession) -> Answer<SessionView> {
        let _ = &self.options;
        Err(unbuilt())
    }

    /// Everything of a session but the conversation.
    pub async fn view(&self, _id: &SessionId) -> Answer<SessionView> {
        Err(unbuilt())
    }

    /// Renames a session.
    pub async fn rename(&self, _id: &SessionId, _to: RenameSession) -> Answer<SessionRow> {
        Err(unbuilt())
    }

    /// Changes settings; a run that goes on keeps its own.
    pub async fn change_settings(&self, _id: &SessionId, _change: ChangeSettings) -> Answer<SessionView> {
        Err(unbuilt())
    }

    /// Deletes a session.
    pub async fn delete(&self, _id: &SessionId) -> Answer<()> {
        Err(unbuilt())
    }

    /// A new session with a copy of what this one says, up to an event.
    pub async fn branch(&self, _id: &SessionId, _at: BranchSession) -> Answer<SessionRow> {
        Err(unbuilt())
    }

    /// Removes the tail of a session.
    pub async fn cut(&self, _id: &SessionId, _at: CutSession) -> Answer<SessionCutDone> {
        Err(unbuilt())
    }

    /// Puts a session into another folder.
    pub async fn move_to(&self, _id: &SessionId, _to: MoveSession) -> Answer<SessionRow> {
        Err(unbuilt())
    }

    /// Writes all events of a session as lines of JSON, on a thread that may block, and gives their number.
    pub async fn export<W: Write + Send + 'static>(&self, _id: &SessionId, _out: W) -> Answer<u64> {
        Err(unbuilt())
    }

    /// Takes in an exported session as a new one of this folder, read on a thread that may block.
    pub async fn import<R: BufRead + Send + 'static>(&self, _folder: &Path, _lines: R) -> Answer<Imported> {
        Err(unbuilt())
    }

    /// A page of the log: the `limit` events before `before` or after `after`; without both, the last ones.
    pub async fn log(
        &self,
        _id: &SessionId,
        _before: Option<u64>,
        _after: Option<u64>,
        _limit: usize,
    ) -> Answer<LogPage> {
        Err(unbuilt())
    }

    /// Watches a session: the events of its log after `after` (none: only what happens from now on), the open step so
    /// far, then what happens.
    pub async fn attach(&self, _id: &SessionId, _after: Option<u64>) -> Answer<Subscription> {
        Err(unbuilt())
    }

    /// Takes in a message. It is safe when this returns.
    pub async fn send(&self, _id: &SessionId, _message: SendMessage) -> Answer<Sent> {
        Err(unbuilt())
    }

    /// What waits.
    pub async fn pending(&self, _id: &SessionId) -> Answer<PendingList> {
        Err(unbuilt())
    }

    /// Changes, converts or moves a waiting message.
    pub async fn edit_pending(&self, _id: &SessionId, _pending: &PendingId, _edit: EditPending) -> Answer<PendingList> {
        Err(unbuilt())
    }

    /// Withdraws a waiting message and gives it back.
    pub async fn cancel_pending(&self, _id: &SessionId, _pending: &PendingId) -> Answer<Pending> {
        Err(unbuilt())
    }

    /// Stops the queue, or lets it go on.
    pub async fn pause(&self, _id: &SessionId, _pause: PausePending) -> Answer<PendingList> {
        Err(unbuilt())
    }

    /// Ends what goes on. Returns when it has ended.
    pub async fn abort(&self, _id: &SessionId, _abort: Abort) -> Answer<Aborted> {
        Err(unbuilt())
    }

    /// What waits for a person.
    pub async fn waiting(&self, _id: &SessionId) -> Answer<Waiting> {
        Err(unbuilt())
    }

    /// Answers an approval. The first answer holds.
    pub async fn answer_approval(&self, _id: &SessionId, _call: &CallId, _answer: AnswerApproval) -> Answer<()> {
        Err(unbuilt())
    }

    /// Answers a question of the agent. The first answer holds.
    pub async fn answer_question(&self, _id: &SessionId, _call: &CallId, _answer: AnswerQuestion) -> Answer<()> {
        Err(unbuilt())
    }

    /// Decides about the proposals a run left.
    pub async fn decide_proposals(&self, _id: &SessionId, _decide: DecideProposals) -> Answer<SessionView> {
        Err(unbuilt())
    }

    /// The open proposals.
    pub async fn changes(&self, _id: &SessionId) -> Answer<Changes> {
        Err(unbuilt())
    }

    /// Makes proposed changes.
    pub async fn apply_changes(&self, _id: &SessionId, _paths: ChangePathsGiven) -> Answer<ChangesSettled> {
        Err(unbuilt())
    }

    /// Drops proposed changes.
    pub async fn discard_changes(&self, _id: &SessionId, _paths: ChangePathsGiven) -> Answer<ChangesSettled> {
        Err(unbuilt())
    }

    /// What each run did, without its calls.
    pub async fn ledgers(&self, _id: &SessionId) -> Answer<Ledgers> {
        Err(unbuilt())
    }

    /// Everything a run did.
    pub async fn ledger(&self, _id: &SessionId, _run: &RunId) -> Answer<Ledger> {
        Err(unbuilt())
    }

    /// Files of the session's folder that a mention may mean, the best match first.
    pub async fn files(&self, _id: &SessionId, _query: &str, _limit: usize) -> Answer<Files> {
        Err(unbuilt())
    }

    /// Keeps a file to be sent with a message.
    pub async fn attachment(&self, _id: &SessionId, _name: &str, _bytes: Vec<u8>) -> Answer<Attached> {
        Err(unbuilt())
    }

    /// Bytes of a blob that a session refers to: an image, a whole output.
    pub async fn blob(&self, _id: &SessionId, _hash: &str, _offset: u64, _limit: u64) -> Answer<Vec<u8>> {
        Err(unbuilt())
    }

    /// Where all words occur in messages, answers and labels of calls, the newest first.
    pub async fn search(&self, _query: &str, _folder: Option<&Path>, _limit: usize) -> Answer<SearchResults> {
        Err(unbuilt())
    }

    /// The models one can choose.
    pub async fn models(&self) -> Answer<Models> {
        Err(unbuilt())
    }

    /// The providers, without their keys.
    pub async fn providers(&self) -> Answer<Providers> {
        Err(unbuilt())
    }

    /// The configuration in force, keys left out.
    pub async fn configuration(&self) -> Answer<Configuration> {
        Err(unbuilt())
    }

    /// How large the database is.
    pub async fn database(&self) -> Answer<DatabaseStats> {
        Err(unbuilt())
    }

    /// Gives unused space of the database back. Busy while anything runs.
    pub async fn vacuum(&self) -> Answer<Vacuumed> {
        Err(unbuilt())
    }
}
