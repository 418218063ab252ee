//! The guard of a run as the loop, the door and the recording of events share it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use hames_protocol::{CallId, Delta, Emit, Event, Failure, GuardSettings, LoopKind, ToolCall};
use hames_tools::{CallMemory, Recall};

use super::{Guard, StepEnded, Verdict};

/// A guard that many hold. Cloning it gives the same one.
#[derive(Clone)]
pub(crate) struct SharedGuard(Arc<Mutex<Guard>>);

impl SharedGuard {
    pub(crate) fn new(settings: &GuardSettings) -> Self {
        Self(Arc::new(Mutex::new(Guard::new(settings))))
    }

    fn guard(&self) -> MutexGuard<'_, Guard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A recorder whose events the guard takes in too, once they are recorded.
    pub(crate) fn hearing(&self, inner: Arc<dyn Emit>) -> Arc<dyn Emit> {
        if !self.guard().is_on() {
            return inner;
        }
        Arc::new(Hearing { guard: self.clone(), inner })
    }

    /// Its memory of calls for the door; `None` where it is off.
    pub(crate) fn memory(&self) -> Option<Arc<dyn CallMemory>> {
        self.guard().is_on().then(|| Arc::new(self.clone()) as Arc<dyn CallMemory>)
    }

    pub(crate) fn watch(&self, deltas: &[Delta]) -> Option<LoopKind> {
        self.guard().watch(deltas)
    }

    pub(crate) fn keeps(&self) -> Option<usize> {
        self.guard().keeps()
    }

    pub(crate) fn conclude(&self, ended: StepEnded) -> Verdict {
        self.guard().conclude(ended)
    }
}

impl CallMemory for SharedGuard {
    fn wants_print(&self, call: &CallId) -> bool {
        self.guard().wants_print(call)
    }

    fn consult(&self, call: &ToolCall, print: Option<u64>, now: Instant) -> Recall {
        self.guard().consult(call, print, now)
    }
}

struct Hearing {
    guard: SharedGuard,
    inner: Arc<dyn Emit>,
}

#[async_trait]
impl Emit for Hearing {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        // Taken in before they are handed on: whoever waits for the record may ask about them the moment it is made.
        {
            let mut guard = self.guard.guard();
            events.iter().for_each(|event| guard.apply(event));
        }
        self.inner.record(events).await
    }

    fn show(&self, event: Event) {
        self.inner.show(event);
    }

    async fn flow(&self, events: Vec<Event>) {
        self.inner.flow(events).await;
    }
}
