//! Who counts which files, and how far ahead.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::Count;

/// The counts of a batch, in the order of its files.
type Counts = Vec<Option<Count>>;

/// The batches of a search: handed out in order, taken back in order.
pub(super) struct Batches {
    all: usize,
    /// Batches that may be handed out before their turn.
    ahead: usize,
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    /// The one handed out next.
    next: usize,
    /// The one whose turn it is.
    turn: usize,
    counted: BTreeMap<usize, Counts>,
    /// Threads that count.
    working: usize,
    ended: bool,
}

impl Batches {
    pub(super) fn new(all: usize, ahead: usize) -> Self {
        Self { all, ahead, now: Mutex::default(), changed: Condvar::new() }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more that counts, until what this gives is dropped.
    pub(super) fn join(&self) -> Leaves<'_> {
        self.now().working += 1;
        Leaves(self)
    }

    /// The next batch to count, once it is not too far ahead; `None` where there is none or nobody wants any more.
    pub(super) fn next(&self) -> Option<usize> {
        let may_wait = |now: &mut Now| !now.ended && now.next < self.all && now.next >= now.turn + self.ahead;
        let waited = self.changed.wait_while(self.now(), may_wait);
        let mut now = waited.unwrap_or_else(PoisonError::into_inner);
        if now.ended || now.next >= self.all {
            return None;
        }
        now.next += 1;
        Some(now.next - 1)
    }

    /// Hands in the counts of a batch.
    pub(super) fn put(&self, number: usize, counts: Counts) {
        self.now().counted.insert(number, counts);
        self.changed.notify_all();
    }

    /// The counts of the batch whose turn it is, once they are there; `None` where nobody is left to count it.
    pub(super) fn take(&self, number: usize) -> Option<Counts> {
        let mut now = self.now();
        now.turn = number;
        self.changed.notify_all();
        let is_coming = |now: &mut Now| now.working > 0 && !now.counted.contains_key(&number);
        let waited = self.changed.wait_while(now, is_coming);
        waited.unwrap_or_else(PoisonError::into_inner).counted.remove(&number)
    }
}

/// Held by a thread while it counts.
pub(super) struct Leaves<'a>(&'a Batches);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let mut now = self.0.now();
        now.working -= 1;
        // The batch of one that crashed never comes: the others must not wait for its turn to be over.
        now.ended |= std::thread::panicking();
        drop(now);
        self.0.changed.notify_all();
    }
}

/// Held by whoever goes in order: nobody counts on after that.
pub(super) struct Ends<'a>(pub(super) &'a Batches, pub(super) &'a CancellationToken);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.now().ended = true;
        self.0.changed.notify_all();
        self.1.cancel();
    }
}
