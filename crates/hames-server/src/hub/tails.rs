//! Sessions that other processes write and somebody watches here: one look for all of them.
//!
//! While there are any, one task asks the store what moved; while nobody commits that is a look at shared memory. It ends
//! with the last of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hames_protocol::SessionId;
use tokio::sync::Notify;

use super::Inner;
use crate::refusal::blocking;

/// How often it is asked what moved.
const LOOK_EVERY: Duration = Duration::from_millis(100);

struct Followed {
    seq: u64,
    moved: Arc<Notify>,
}

#[derive(Default)]
struct State {
    followed: HashMap<SessionId, Followed>,
    /// Whether the task lives.
    looks: bool,
}

/// The sessions that are followed.
#[derive(Default)]
pub(crate) struct Tails {
    state: Mutex<State>,
}

/// A session being followed; dropping it ends that.
pub(crate) struct Following {
    inner: Weak<Inner>,
    session: SessionId,
    /// Told when the log has gone on.
    pub(crate) moved: Arc<Notify>,
}

impl Following {
    /// Follows a session of which everything up to `seq` is known.
    pub(crate) fn of(inner: &Arc<Inner>, session: &SessionId, seq: u64) -> Following {
        let moved = Arc::new(Notify::new());
        let mut state = inner.tails.locked();
        state.followed.insert(session.clone(), Followed { seq, moved: Arc::clone(&moved) });
        if !std::mem::replace(&mut state.looks, true) {
            tokio::spawn(look(Arc::downgrade(inner)));
        }
        Following { inner: Arc::downgrade(inner), session: session.clone(), moved }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.tails.locked().followed.remove(&self.session);
        }
    }
}

impl Tails {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is followed, and up to where; `None` ends the task.
    fn known(&self) -> Option<Vec<(SessionId, u64)>> {
        let mut state = self.locked();
        state.looks = !state.followed.is_empty();
        state.looks.then(|| state.followed.iter().map(|(id, followed)| (id.clone(), followed.seq)).collect())
    }

    fn moved(&self, session: &SessionId, last_seq: Option<u64>) {
        if let Some(followed) = self.locked().followed.get_mut(session) {
            followed.seq = last_seq.unwrap_or(followed.seq);
            followed.moved.notify_one();
        }
    }
}

async fn look(inner: Weak<Inner>) {
    let Some(mut tail) = inner.upgrade().map(|inner| inner.store.tail()) else { return };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(inner) = inner.upgrade() else { return };
        let Some(known) = inner.tails.known() else { return };
        let looked = blocking(move || {
            let moved = tail.poll(&known);
            (tail, moved)
        });
        let Ok((back, moved)) = looked.await else { return };
        tail = back;
        match moved {
            Ok(moved) => moved.iter().for_each(|moved| inner.tails.moved(&moved.session, moved.last_seq)),
            Err(error) => tracing::debug!(target: "hames::server", %error, "not followed"),
        }
    }
}
