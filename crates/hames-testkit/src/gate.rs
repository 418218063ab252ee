//! Places where a stream waits for the test, and the test for the stream.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// A value others can wait for, from async code and from plain threads.
pub(crate) struct Signal<T> {
    value: Mutex<T>,
    for_threads: Condvar,
    for_tasks: Notify,
}

impl<T> Signal<T> {
    pub(crate) fn new(value: T) -> Signal<T> {
        Signal { value: Mutex::new(value), for_threads: Condvar::new(), for_tasks: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        // Every update leaves a sound value at each step, so one that panicked midway harms nobody.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock())
    }

    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.for_threads.notify_all();
        self.for_tasks.notify_waiters();
        result
    }

    pub(crate) async fn until(&self, holds: impl Fn(&T) -> bool) {
        loop {
            // Listening starts before looking, so that a change in between is not missed.
            let mut changed = std::pin::pin!(self.for_tasks.notified());
            changed.as_mut().enable();
            if self.read(&holds) {
                return;
            }
            changed.await;
        }
    }

    /// Whether it came to hold within `limit`.
    pub(crate) fn until_blocking(&self, limit: Duration, holds: impl Fn(&T) -> bool) -> bool {
        let start = Instant::now();
        let mut value = self.lock();
        while !holds(&value) {
            let Some(left) = limit.checked_sub(start.elapsed()) else { return false };
            value = self.for_threads.wait_timeout(value, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[derive(Default)]
struct State {
    reached: bool,
    open: bool,
}

/// A place in an answer where the server stops until the test says go on.
///
/// A clone is the same gate. Once open it stays open, also for a second answer that uses it.
#[derive(Clone)]
pub struct Gate(Arc<Signal<State>>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Gate {
        Gate(Arc::new(Signal::new(State::default())))
    }

    /// Returns when the server has sent everything before the gate.
    pub async fn reached(&self) {
        self.0.until(|state| state.reached).await;
    }

    /// [`reached`](Self::reached) for plain threads: whether it happened within `limit`.
    pub fn reached_within(&self, limit: Duration) -> bool {
        self.0.until_blocking(limit, |state| state.reached)
    }

    /// Whether the server has come this far.
    pub fn is_reached(&self) -> bool {
        self.0.read(|state| state.reached)
    }

    /// Lets the server go on.
    pub fn open(&self) {
        self.0.update(|state| state.open = true);
    }

    /// The server's side: says that it is here and waits for the gate to open.
    pub(crate) async fn pass(&self) {
        self.0.update(|state| state.reached = true);
        self.0.until(|state| state.open).await;
    }
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.read(|state| f.debug_struct("Gate").field("reached", &state.reached).field("open", &state.open).finish())
    }
}
