//! One timer for the heartbeats of all streams, which runs only while somebody is attached: an idle server wakes for nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// Between two heartbeats.
pub(super) const BEAT: Duration = Duration::from_secs(15);

/// The timer. Clones are the same one.
#[derive(Clone)]
pub(super) struct Beat {
    inner: Arc<Inner>,
}

struct Inner {
    beats: watch::Sender<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listeners: usize,
    is_ticking: bool,
}

impl Default for Beat {
    fn default() -> Self {
        Self { inner: Arc::new(Inner { beats: watch::Sender::new(0), state: Mutex::default() }) }
    }
}

impl Beat {
    /// Listens from now on.
    pub(super) fn listen(&self) -> Listening {
        let mut state = self.inner.state();
        state.listeners += 1;
        if !state.is_ticking {
            state.is_ticking = true;
            tokio::spawn(tick(self.inner.clone()));
        }
        Listening { beats: self.inner.beats.subscribe(), inner: self.inner.clone() }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn tick(inner: Arc<Inner>) {
    loop {
        tokio::time::sleep(BEAT).await;
        {
            let mut state = inner.state();
            if state.listeners == 0 {
                state.is_ticking = false;
                return;
            }
        }
        inner.beats.send_modify(|beats| *beats = beats.wrapping_add(1));
    }
}

/// Somebody who listens.
pub(super) struct Listening {
    beats: watch::Receiver<u64>,
    inner: Arc<Inner>,
}

impl Listening {
    /// The next beat; dropping the future loses none.
    pub(super) async fn next(&mut self) {
        if self.beats.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.inner.state().listeners -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_who_listen_share_one_timer_and_it_ends_with_the_last_of_them() {
        let beat = Beat::default();
        let (mut first, mut second) = (beat.listen(), beat.listen());
        first.next().await;
        second.next().await;
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
        drop((first, second));
        tokio::time::sleep(BEAT * 2).await;
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
        beat.listen().next().await;
    }
}
