//! An answer that may turn out to be a refusal: some endpoints refuse with status 200 and say so inside the stream.
//!
//! The first piece of a real answer shows that the request was accepted, and what was learned for it is kept. A stream
//! that fails before any piece is read like a refusal with a status: where there is something to learn, its failure is
//! one that may be tried again at once, and the next request is written accordingly. Nothing is learned from a stream
//! that has shown anything.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hames_protocol::{Completion, Delta, ModelStream};
use tokio::task::{JoinHandle, spawn_blocking};

use super::stream::ChatStream;
use crate::learned::{Keep, Learning};

pub(crate) struct LearningStream {
    inner: Box<ChatStream>,
    learning: Arc<Mutex<Learning>>,
    has_shown: bool,
    /// Lessons being kept, and the pieces that wait for it.
    keeping: Option<JoinHandle<()>>,
    waiting: Option<Vec<Delta>>,
}

impl LearningStream {
    pub(crate) fn new(inner: ChatStream, learning: Arc<Mutex<Learning>>) -> Self {
        Self { inner: Box::new(inner), learning, has_shown: false, keeping: None, waiting: None }
    }

    fn accepted(&self) -> Option<Keep> {
        self.learning.lock().unwrap_or_else(PoisonError::into_inner).accepted()
    }
}

#[async_trait]
impl ModelStream for LearningStream {
    async fn next(&mut self) -> Option<Vec<Delta>> {
        if self.waiting.is_none() {
            self.waiting = Some(self.inner.next().await?);
            if !std::mem::replace(&mut self.has_shown, true) {
                self.keeping = self.accepted().map(spawn_blocking);
            }
        }
        if let Some(keeping) = &mut self.keeping {
            let _ = keeping.await;
            self.keeping = None;
        }
        self.waiting.take()
    }

    fn finish(self: Box<Self>) -> Completion {
        let Self { inner, learning, has_shown, .. } = *self;
        let mut completion = inner.finish();
        if has_shown {
            return completion;
        }
        let mut learning = learning.lock().unwrap_or_else(PoisonError::into_inner);
        let keep = match &mut completion.failure {
            None if completion.finish_reason.is_some() => learning.accepted(),
            None => None,
            Some(failure) => {
                if learning.refused(failure) {
                    failure.retryable = true;
                    failure.retry_after_ms = Some(0);
                    None
                } else {
                    learning.moved_on(failure)
                }
            }
        };
        if let Some(keep) = keep {
            spawn_blocking(keep);
        }
        completion
    }
}
