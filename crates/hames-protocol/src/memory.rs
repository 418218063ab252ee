//! In-memory implementations of the ports: the default of the library, and what tests stand on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::{
    ApprovalAsked, Approver, BlobRef, BlobSource, BlobStore, Decision, Delivery, Durability, Envelope, Event, EventLog,
    Grant, GrantKeeper, Inbox, LogError, OpenBlock, Pending, PendingId, SessionId,
};

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A log that lives as long as the value.
#[derive(Debug, Default)]
pub struct MemoryLog {
    sessions: Mutex<HashMap<SessionId, Vec<Envelope>>>,
    open: Mutex<HashMap<SessionId, Vec<OpenBlock>>>,
}

/// Joins a piece to the block it continues, or begins a new one.
pub fn join_open(blocks: &mut Vec<OpenBlock>, piece: OpenBlock) {
    match blocks.iter_mut().find(|b| b.kind == piece.kind && b.index == piece.index) {
        Some(block) => {
            block.text.push_str(&piece.text);
            if block.name.is_none() {
                block.name = piece.name;
            }
        }
        None => blocks.push(piece),
    }
}

#[async_trait]
impl EventLog for MemoryLog {
    async fn append(
        &self,
        session: &SessionId,
        expected_next_seq: u64,
        mut events: Vec<Envelope>,
        _durability: Durability,
    ) -> Result<Vec<Envelope>, LogError> {
        let mut sessions = locked(&self.sessions);
        let found = sessions.get(session).map_or(0, Vec::len) as u64 + 1;
        if found != expected_next_seq {
            return Err(LogError::Conflict { session: session.clone(), expected: expected_next_seq, found });
        }
        for (seq, envelope) in (found..).zip(&mut events) {
            envelope.seq = Some(seq);
        }
        // Neither a conflict nor an empty append makes a session exist.
        if !events.is_empty() {
            sessions.entry(session.clone()).or_default().extend(events.iter().cloned());
        }
        if events.iter().any(|e| matches!(e.event, Event::StepDone(_) | Event::RunDone(_))) {
            locked(&self.open).remove(session);
        }
        Ok(events)
    }

    async fn read(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Envelope>, LogError> {
        let sessions = locked(&self.sessions);
        let log = sessions.get(session).ok_or_else(|| LogError::NoSession(session.clone()))?;
        Ok(log.iter().skip(usize::try_from(after).unwrap_or(usize::MAX)).take(limit).cloned().collect())
    }

    async fn save_open(&self, session: &SessionId, pieces: Vec<OpenBlock>) -> Result<(), LogError> {
        let mut open = locked(&self.open);
        let blocks = open.entry(session.clone()).or_default();
        for piece in pieces {
            join_open(blocks, piece);
        }
        Ok(())
    }

    async fn take_open(&self, session: &SessionId) -> Result<Vec<OpenBlock>, LogError> {
        Ok(locked(&self.open).get(session).cloned().unwrap_or_default())
    }
}

/// Blobs that live as long as the value.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<HashMap<String, Vec<u8>>>,
    names: Mutex<HashMap<(SessionId, String), BlobRef>>,
}

#[async_trait]
impl BlobStore for MemoryBlobs {
    async fn put(&self, session: &SessionId, name: &str, source: BlobSource) -> Result<BlobRef, LogError> {
        let (bytes, dropped) = match source {
            BlobSource::Bytes(bytes) => (bytes, 0),
            BlobSource::File { path, dropped } => {
                let bytes =
                    std::fs::read(&path).map_err(|e| LogError::Io(format!("cannot read {}: {e}", path.display())))?;
                (bytes, dropped)
            }
        };
        let blob = BlobRef {
            hash: blake3::hash(&bytes).to_hex().to_string(),
            bytes: bytes.len() as u64,
            dropped,
            name: (!name.is_empty()).then(|| name.to_owned()),
        };
        locked(&self.blobs).insert(blob.hash.clone(), bytes);
        if !name.is_empty() {
            locked(&self.names).insert((session.clone(), name.to_owned()), blob.clone());
        }
        Ok(blob)
    }

    async fn get(&self, hash: &str, offset: u64, limit: u64) -> Result<Vec<u8>, LogError> {
        let blobs = locked(&self.blobs);
        let bytes = blobs.get(hash).ok_or_else(|| LogError::Damaged(format!("there is no blob {hash}")))?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = from.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).min(bytes.len());
        Ok(bytes[from..to].to_vec())
    }

    async fn named(&self, session: &SessionId, name: &str) -> Result<Option<BlobRef>, LogError> {
        Ok(locked(&self.names).get(&(session.clone(), name.to_owned())).cloned())
    }
}

#[derive(Debug, Default)]
struct InboxState {
    waiting: Vec<Pending>,
    closed: bool,
}

/// An inbox fed from the same process.
#[derive(Debug, Default)]
pub struct MemoryInbox {
    state: Mutex<InboxState>,
    interrupted: Notify,
}

impl MemoryInbox {
    /// Puts a message in. Gives it back where it has to start a new run: the run has closed its inbox, or the message
    /// is to be queued.
    pub fn push(&self, pending: Pending) -> Result<(), Pending> {
        let mut state = locked(&self.state);
        if state.closed || pending.delivery == Delivery::Queue {
            return Err(pending);
        }
        let interrupt = pending.delivery == Delivery::Interrupt;
        state.waiting.push(pending);
        drop(state);
        if interrupt {
            self.interrupted.notify_one();
        }
        Ok(())
    }

    /// Closes the inbox, whatever the run came to, and gives back what it did not take: messages that came too late for
    /// a run that failed or was stopped.
    pub fn close(&self) -> Vec<Pending> {
        let mut state = locked(&self.state);
        state.closed = true;
        std::mem::take(&mut state.waiting)
    }
}

#[async_trait]
impl Inbox for MemoryInbox {
    fn waiting(&self) -> Vec<Pending> {
        locked(&self.state).waiting.clone()
    }

    fn delivered(&self, id: &PendingId) {
        locked(&self.state).waiting.retain(|p| &p.id != id);
    }

    fn close_if_empty(&self) -> bool {
        let mut state = locked(&self.state);
        state.closed |= state.waiting.is_empty();
        state.closed
    }

    async fn interrupt(&self) {
        self.interrupted.notified().await;
    }
}

/// Nobody to ask: everything that needs a decision is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyAnswers;

#[async_trait]
impl Approver for NobodyAnswers {
    async fn decide(&self, _asked: &ApprovalAsked) -> Option<(Decision, String)> {
        None
    }
    fn can_answer(&self) -> bool {
        false
    }
}

/// Grants that live as long as the value.
#[derive(Debug, Default)]
pub struct MemoryGrants(Mutex<Vec<Grant>>);

impl MemoryGrants {
    /// What is kept, oldest first.
    pub fn all(&self) -> Vec<Grant> {
        locked(&self.0).clone()
    }
}

#[async_trait]
impl GrantKeeper for MemoryGrants {
    async fn keep(&self, grants: &[Grant]) -> Result<(), LogError> {
        let mut kept = locked(&self.0);
        for grant in grants {
            if !kept.contains(grant) {
                kept.push(grant.clone());
            }
        }
        Ok(())
    }
}
