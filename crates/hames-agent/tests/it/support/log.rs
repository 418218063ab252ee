//! A log that a test can read, hold and break.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{Durability, Envelope, EventLog, LogError, MemoryLog, OpenBlock, SessionId};

use super::Trace;

#[derive(Clone)]
pub(crate) struct TestLog {
    inner: Arc<MemoryLog>,
    copy: Arc<Mutex<Vec<Envelope>>>,
    appends: Arc<AtomicUsize>,
    fails_at: Arc<Mutex<Option<usize>>>,
    loses_pieces: Arc<AtomicBool>,
    durable: Arc<Mutex<Vec<(String, Durability)>>>,
    saved: Arc<Mutex<Vec<OpenBlock>>>,
    trace: Trace,
}

impl TestLog {
    pub(crate) fn new(trace: &Trace) -> Self {
        Self {
            inner: Arc::default(),
            copy: Arc::default(),
            appends: Arc::default(),
            fails_at: Arc::default(),
            loses_pieces: Arc::default(),
            durable: Arc::default(),
            saved: Arc::default(),
            trace: trace.clone(),
        }
    }
    pub(crate) fn events(&self) -> Vec<Envelope> {
        self.copy.lock().unwrap().clone()
    }
    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }
    /// The append with this number, from 0, fails; those after it would succeed.
    pub(crate) fn fail_at(&self, append: usize) {
        *self.fails_at.lock().unwrap() = Some(append);
    }
    /// Whether pieces of the open step cannot be kept.
    pub(crate) fn lose_pieces(&self, lose: bool) {
        self.loses_pieces.store(lose, Ordering::SeqCst);
    }
    /// Every piece of an open step that was kept, as it came.
    pub(crate) fn saved(&self) -> Vec<OpenBlock> {
        self.saved.lock().unwrap().clone()
    }
    /// How safe each event was to be.
    pub(crate) fn durable(&self) -> Vec<(String, Durability)> {
        self.durable.lock().unwrap().clone()
    }
    /// Puts events in as somebody else would.
    pub(crate) async fn put(&self, session: &SessionId, events: Vec<Envelope>) {
        let next = self.events().len() as u64 + 1;
        self.append(session, next, events, Durability::Process).await.unwrap();
    }
}

#[async_trait]
impl EventLog for TestLog {
    async fn append(
        &self,
        session: &SessionId,
        expected_next_seq: u64,
        events: Vec<Envelope>,
        durability: Durability,
    ) -> Result<Vec<Envelope>, LogError> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst);
        if *self.fails_at.lock().unwrap() == Some(number) {
            self.trace.mark("log fails");
            return Err(LogError::NoSpace("/data".into()));
        }
        // A real log takes a while.
        tokio::task::yield_now().await;
        let events = self.inner.append(session, expected_next_seq, events, durability).await?;
        for envelope in &events {
            self.trace.mark(format!("log {}", envelope.event.type_name()));
            self.durable.lock().unwrap().push((envelope.event.type_name().to_owned(), durability));
        }
        self.copy.lock().unwrap().extend(events.iter().cloned());
        Ok(events)
    }

    async fn settle(&self) -> Result<(), LogError> {
        self.trace.mark("log settled");
        Ok(())
    }

    async fn read(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Envelope>, LogError> {
        self.inner.read(session, after, limit).await
    }

    async fn save_open(&self, session: &SessionId, pieces: Vec<OpenBlock>) -> Result<(), LogError> {
        if self.loses_pieces.load(Ordering::SeqCst) {
            return Err(LogError::NoSpace("/data".into()));
        }
        self.saved.lock().unwrap().extend(pieces.iter().cloned());
        self.inner.save_open(session, pieces).await
    }

    async fn take_open(&self, session: &SessionId) -> Result<Vec<OpenBlock>, LogError> {
        self.inner.take_open(session).await
    }
}
