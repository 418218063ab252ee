//! The ports: what the engine needs of the world, in the words of this crate.

use std::path::PathBuf;

use async_trait::async_trait;

use crate::{
    ApprovalAsked, BlobRef, Decision, Envelope, ErrorClass, Event, Failure, Grant, OpenBlock, Pending, PendingId,
    QuestionAsked, SessionId,
};

/// How safe an append must be before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives the death of the process.
    Process,
    /// Survives the death of the process, and soon the loss of power: [`EventLog::settle`] waits for that.
    PowerSoon,
    /// Survives the loss of power. Where making sure of that fails, the append fails, and what it appended is in the log.
    Power,
}

/// Why the log or the blob store could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Somebody else appended first.
    #[error(
        "another process wrote to session {session} meanwhile (expected event {expected}, found {found}); open it again"
    )]
    Conflict {
        /// The session.
        session: SessionId,
        /// The seq the caller wanted to write.
        expected: u64,
        /// The seq that is next.
        found: u64,
    },
    /// The session does not exist.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// What was asked for cannot be had: the session is in use, or the name is taken. Nothing is broken.
    #[error("{0}")]
    Busy(String),
    /// What was asked for makes no sense here: no such message to cut from, a file that is no session. Nothing is broken.
    #[error("{0}")]
    Invalid(String),
    /// Another process has the database or the blobs to itself for too long.
    #[error("{0}")]
    Locked(String),
    /// The disk is full.
    #[error("the disk that holds {0} is full; free some space and run the command again")]
    NoSpace(String),
    /// The place cannot be written.
    #[error("{0} cannot be written; check its permissions or set HAMES_HOME to another folder")]
    ReadOnly(String),
    /// The database was made by a newer version.
    #[error("{0}")]
    Newer(String),
    /// Content is missing or unreadable.
    #[error("{0}")]
    Damaged(String),
    /// Anything else.
    #[error("{0}")]
    Io(String),
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        Failure::new(ErrorClass::Storage, error.to_string())
    }
}

/// The append-only log of sessions.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends events, giving them the seqs from `expected_next_seq` on, all or none. Returns them with their seqs.
    /// Fails with [`LogError::Conflict`] where the next seq is another. An append that holds a `step.done` or a
    /// `run.done` also drops what [`save_open`](Self::save_open) kept.
    async fn append(
        &self,
        session: &SessionId,
        expected_next_seq: u64,
        events: Vec<Envelope>,
        durability: Durability,
    ) -> Result<Vec<Envelope>, LogError>;

    /// Returns when everything appended with [`Durability::PowerSoon`] survives the loss of power.
    async fn settle(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Up to `limit` events after seq `after`, in order. An unreadable one comes as [`Event::Unknown`] with its seq.
    async fn read(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Envelope>, LogError>;

    /// Keeps pieces of the open step beside the log; each block's `text` is only what was added.
    async fn save_open(&self, session: &SessionId, pieces: Vec<OpenBlock>) -> Result<(), LogError>;

    /// What was kept of the open step, pieces joined, in order of first appearance. It goes with the append that closes
    /// the step and not before: whoever dies in between leaves it to the next.
    async fn take_open(&self, session: &SessionId) -> Result<Vec<OpenBlock>, LogError>;
}

/// Where a blob's bytes come from.
#[derive(Debug)]
pub enum BlobSource {
    /// From memory.
    Bytes(Vec<u8>),
    /// From a file that may be moved away; `dropped` bytes were left out of its middle.
    File {
        /// The file.
        path: PathBuf,
        /// Bytes left out.
        dropped: u64,
    },
}

/// Exact outputs kept outside the window.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Keeps a blob under the session's own `name`, which may be empty for content that nobody recalls by name.
    async fn put(&self, session: &SessionId, name: &str, source: BlobSource) -> Result<BlobRef, LogError>;
    /// Up to `limit` bytes from `offset` of a blob.
    async fn get(&self, hash: &str, offset: u64, limit: u64) -> Result<Vec<u8>, LogError>;
    /// The blob a session kept under `name`; names of other sessions are not found.
    async fn named(&self, session: &SessionId, name: &str) -> Result<Option<BlobRef>, LogError>;
}

/// Messages that arrive while a run goes on.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Interrupts and steers that wait, in order. They stay until [`delivered`](Self::delivered).
    fn waiting(&self) -> Vec<Pending>;
    /// Takes one of them for delivery, as it is at this moment; `None` where it was withdrawn meanwhile. From here on it
    /// cannot be changed or withdrawn any more.
    fn claim(&self, id: &PendingId) -> Option<Pending> {
        self.waiting().into_iter().find(|pending| &pending.id == id)
    }
    /// The message is in the transcript now.
    fn delivered(&self, id: &PendingId);
    /// Closes the inbox if neither interrupt nor steer waits, so that a later message starts a new run; `false` where one
    /// waits. Queued messages are not for this run and do not count.
    fn close_if_empty(&self) -> bool;
    /// Returns when a message wants to interrupt the step.
    async fn interrupt(&self);
}

/// Somebody who can be asked.
#[async_trait]
pub trait Approver: Send + Sync {
    /// The decision and who made it, or `None` where nobody can answer: then the answer is no.
    async fn decide(&self, asked: &ApprovalAsked) -> Option<(Decision, String)>;
    /// The answer to a tool's question and who gave it, or `None` where nobody answers it. As made by default nobody
    /// does: who decides about calls need not be somebody who can be asked anything else.
    async fn answer(&self, _asked: &QuestionAsked) -> Option<(String, String)> {
        None
    }
    /// Whether there is anybody at all. Where there is not, nothing is asked and nothing of it is recorded.
    fn can_answer(&self) -> bool {
        true
    }
}

/// Where what a person allowed for a folder is kept from run to run. One value is for one folder.
#[async_trait]
pub trait GrantKeeper: Send + Sync {
    /// Keeps these grants; one that is kept already is not doubled.
    async fn keep(&self, grants: &[Grant]) -> Result<(), LogError>;
}

/// Where a task of a run puts its events.
#[async_trait]
pub trait Emit: Send + Sync {
    /// Hands over durable events and returns when they are recorded: the barrier before any next effect.
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure>;
    /// Hands over a live event; dropped without harm where nobody can take it now. Never blocks: tools call it while
    /// they read a child's pipe.
    fn show(&self, event: Event);
    /// Hands over live events in order and waits until there is room for them: for a model's stream, whose every
    /// piece a person wants to see.
    async fn flow(&self, events: Vec<Event>) {
        for event in events {
            self.show(event);
        }
    }
}
