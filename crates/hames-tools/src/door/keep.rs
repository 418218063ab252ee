//! Texts that are kept whole under a name of their own, beside the outputs of calls and in the same order of names.

use std::sync::{Arc, Mutex, PoisonError};

use hames_protocol::{BlobRef, BlobSource, BlobStore, SessionId, SessionState};

use super::Door;

impl Door {
    /// Keeps texts, each under the session's next name. What cannot be kept is `None`: what is said of it then has no
    /// name. Whoever asked records the names at once, so that no later output takes one of them.
    pub async fn keep(
        &self,
        session: &SessionId,
        state: &Arc<Mutex<SessionState>>,
        texts: Vec<String>,
    ) -> Vec<Option<BlobRef>> {
        let names = self.parts.locks.output_names(session);
        let mut last = names.lock().await;
        let mut kept = Vec::with_capacity(texts.len());
        for text in texts {
            let so_far = state.lock().unwrap_or_else(PoisonError::into_inner).blobs;
            let number = so_far.max(*last) + 1;
            let source = BlobSource::Bytes(text.into_bytes());
            let blob = self.parts.blobs.put(session, &format!("out-{number}"), source).await.ok();
            if blob.is_some() {
                *last = number;
            }
            kept.push(blob);
        }
        kept
    }

    /// The tool that shows kept texts, where the model has one.
    pub fn recaller(&self) -> Option<&str> {
        self.parts.tools.recaller()
    }

    /// Where whole texts are.
    pub fn blobs(&self) -> &Arc<dyn BlobStore> {
        &self.parts.blobs
    }
}
