//! Who may touch what at the same time.
//!
//! A call takes a ticket for everything it touches, all at once and in call order. It waits for the earlier tickets it
//! conflicts with and for no others: nothing overtakes, so nobody starves, and since every wait is for an earlier
//! ticket there is no circle. Two tickets conflict where one of them changes what the other touches; a folder stands
//! for everything in it, and a file has one identity under all its names.
//!
//! The table only orders. It opens nothing, and it does not know what a call does.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hames_protocol::SessionId;
use tokio::sync::oneshot;

/// Something a ticket is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A file, or a folder with all it holds.
    Path {
        /// Canonical as far as it exists.
        abs: PathBuf,
        /// Device and inode, where it exists.
        identity: Option<(u64, u64)>,
        write: bool,
    },
    /// Anything else, by name.
    Named { name: String, write: bool },
}

impl Key {
    fn conflicts(&self, other: &Key) -> bool {
        match (self, other) {
            (Key::Path { abs: a, identity: i, write: x }, Key::Path { abs: b, identity: j, write: y }) => {
                (*x || *y) && ((i.is_some() && i == j) || a.starts_with(b) || b.starts_with(a))
            }
            (Key::Named { name: a, write: x }, Key::Named { name: b, write: y }) => (*x || *y) && a == b,
            _ => false,
        }
    }
}

/// What a call needs for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The calls it was made together with.
    pub(crate) batch: u64,
    /// Nothing else of its batch may run meanwhile.
    pub(crate) alone: bool,
    pub(crate) keys: Vec<Key>,
}

impl Claim {
    fn conflicts(&self, other: &Claim) -> bool {
        (self.batch == other.batch && (self.alone || other.alone))
            || self.keys.iter().any(|key| other.keys.iter().any(|o| key.conflicts(o)))
    }
}

/// An earlier call that does not end holds what this one needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stuck;

struct Entry {
    claim: Claim,
    /// Earlier tickets it waits for.
    blockers: usize,
    /// Held by a call that was given up and still runs.
    stuck: bool,
    wake: Option<oneshot::Sender<Result<(), Stuck>>>,
}

#[derive(Default)]
struct Table {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

/// The tickets of a process. One table, shared by every door in it.
#[derive(Default)]
pub struct LockTable {
    table: Mutex<Table>,
    outputs: Mutex<HashMap<SessionId, Weak<OutputNames>>>,
}

/// The numbering of a session's kept outputs: the last number given in this process. Held from the choice of a name to
/// the record that uses it, so that a name that came to nothing is given again.
pub(crate) type OutputNames = tokio::sync::Mutex<u32>;

impl LockTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for calls that are made together.
    pub(crate) fn batch(&self) -> u64 {
        let mut table = self.table();
        table.next += 1;
        table.next
    }

    /// Takes the next ticket.
    pub(crate) fn enqueue(self: &Arc<Self>, claim: Claim) -> Ticket {
        let mut table = self.table();
        table.next += 1;
        let id = table.next;
        let (wake, granted) = oneshot::channel();
        let ahead = table.entries.values().filter(|entry| entry.claim.conflicts(&claim));
        let (blockers, stuck) = ahead.fold((0, false), |(n, stuck), entry| (n + 1, stuck || entry.stuck));
        let mut entry = Entry { claim, blockers, stuck: false, wake: Some(wake) };
        if stuck {
            entry.tell(Err(Stuck));
        } else if blockers == 0 {
            entry.tell(Ok(()));
        }
        table.entries.insert(id, entry);
        Ticket { table: self.clone(), id, granted: tokio::sync::Mutex::new(Some(granted)), waits: blockers > 0 }
    }

    fn release(&self, id: u64) {
        let mut table = self.table();
        let Some(gone) = table.entries.remove(&id) else { return };
        for (_, entry) in table.entries.range_mut(id..) {
            if entry.claim.conflicts(&gone.claim) {
                entry.blockers -= 1;
                if entry.blockers == 0 {
                    entry.tell(Ok(()));
                }
            }
        }
    }

    /// The call behind this ticket was given up while it may still be at work: who waits for it is told.
    fn give_up(&self, id: u64) {
        let mut table = self.table();
        let Some(entry) = table.entries.get_mut(&id) else { return };
        entry.stuck = true;
        let claim = entry.claim.clone();
        for (_, entry) in table.entries.range_mut(id + 1..) {
            if entry.claim.conflicts(&claim) {
                entry.tell(Err(Stuck));
            }
        }
    }

    pub(crate) fn output_names(&self, session: &SessionId) -> Arc<OutputNames> {
        let mut all = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = all.get(session).and_then(Weak::upgrade) {
            return names;
        }
        all.retain(|_, names| names.strong_count() > 0);
        let names = Arc::new(OutputNames::default());
        all.insert(session.clone(), Arc::downgrade(&names));
        names
    }
}

impl std::fmt::Debug for LockTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockTable").field("tickets", &self.table().entries.len()).finish()
    }
}

impl Entry {
    fn tell(&mut self, what: Result<(), Stuck>) {
        if let Some(wake) = self.wake.take() {
            // Nobody listens where the call was cancelled meanwhile; its ticket is about to be dropped.
            let _ = wake.send(what);
        }
    }
}

/// A place in the order. Dropping it lets the next ones go on.
pub(crate) struct Ticket {
    table: Arc<LockTable>,
    id: u64,
    granted: tokio::sync::Mutex<Option<oneshot::Receiver<Result<(), Stuck>>>>,
    waits: bool,
}

impl Ticket {
    /// Returns when everything is free. Cancel-safe; the place in the order is kept.
    pub(crate) async fn granted(&self) -> Result<(), Stuck> {
        let mut granted = self.granted.lock().await;
        let answer = match granted.as_mut() {
            Some(receiver) => receiver.await.unwrap_or(Err(Stuck)),
            None => return Ok(()),
        };
        if answer.is_ok() {
            *granted = None;
        }
        answer
    }

    /// Whether others were ahead when it was taken.
    pub(crate) fn had_to_wait(&self) -> bool {
        self.waits
    }

    /// See [`LockTable::give_up`].
    pub(crate) fn give_up(&self) {
        self.table.give_up(self.id);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.table.release(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    fn path(abs: &str, write: bool) -> Key {
        Key::Path { abs: abs.into(), identity: None, write }
    }
    fn inode(abs: &str, ino: u64, write: bool) -> Key {
        Key::Path { abs: abs.into(), identity: Some((1, ino)), write }
    }
    fn named(name: &str, write: bool) -> Key {
        Key::Named { name: name.into(), write }
    }
    fn claim(batch: u64, keys: Vec<Key>) -> Claim {
        Claim { batch, alone: false, keys }
    }

    fn state(ticket: &Ticket) -> Poll<Result<(), Stuck>> {
        let mut granted = std::pin::pin!(ticket.granted());
        granted.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }
    fn runs(ticket: &Ticket) -> bool {
        state(ticket) == Poll::Ready(Ok(()))
    }

    #[test]
    fn keys_conflict_where_one_changes_what_the_other_touches() {
        for (a, b, wanted) in [
            (path("/w/a", true), path("/w/a", true), true),
            (path("/w/a", true), path("/w/a", false), true),
            (path("/w/a", false), path("/w/a", false), false),
            (path("/w/a", true), path("/w/b", true), false),
            (path("/w/a", true), path("/w/ab", true), false),
            (path("/w", true), path("/w/a/b", false), true),
            (path("/w", false), path("/w/a/b", true), true),
            (path("/w", false), path("/w/a/b", false), false),
            (inode("/w/a", 7, true), inode("/w/link", 7, true), true),
            (inode("/w/a", 7, false), inode("/w/link", 7, false), false),
            (inode("/w/a", 7, true), inode("/w/b", 8, true), false),
            (inode("/w/a", 7, true), path("/w/a", true), true),
            (named("todos", true), named("todos", false), true),
            (named("todos", false), named("todos", false), false),
            (named("todos", true), named("port", true), false),
            (named("/w/a", true), path("/w/a", true), false),
        ] {
            assert_eq!(a.conflicts(&b), wanted, "{a:?} {b:?}");
            assert_eq!(b.conflicts(&a), wanted, "{b:?} {a:?}");
        }
    }

    #[test]
    fn a_later_reader_does_not_overtake_a_waiting_writer() {
        let table = Arc::new(LockTable::new());
        let reader = table.enqueue(claim(1, vec![path("/w/a", false)]));
        let writer = table.enqueue(claim(1, vec![path("/w/a", true)]));
        let late = table.enqueue(claim(2, vec![path("/w/a", false)]));
        let other = table.enqueue(claim(2, vec![path("/w/b", true)]));
        assert!(runs(&reader) && !runs(&writer) && !runs(&late) && runs(&other));
        drop(reader);
        assert!(runs(&writer) && !runs(&late));
        drop(writer);
        assert!(runs(&late));
    }

    #[test]
    fn all_keys_are_taken_at_once() {
        let table = Arc::new(LockTable::new());
        let a = table.enqueue(claim(1, vec![path("/w/a", true)]));
        let both = table.enqueue(claim(1, vec![path("/w/a", true), path("/w/b", true)]));
        let b = table.enqueue(claim(1, vec![path("/w/b", true), path("/w/a", true)]));
        assert!(runs(&a) && !runs(&both) && !runs(&b));
        drop(a);
        assert!(runs(&both) && !runs(&b));
        drop(both);
        assert!(runs(&b));
    }

    #[test]
    fn alone_means_alone_in_its_batch_only() {
        let table = Arc::new(LockTable::new());
        let first = table.enqueue(claim(1, vec![path("/w/a", false)]));
        let alone = table.enqueue(Claim { batch: 1, alone: true, keys: vec![] });
        let last = table.enqueue(claim(1, vec![path("/w/b", false)]));
        let elsewhere = table.enqueue(claim(2, vec![path("/w/b", false)]));
        assert!(runs(&first) && !runs(&alone) && !runs(&last) && runs(&elsewhere));
        drop(first);
        assert!(runs(&alone) && !runs(&last));
        drop(alone);
        assert!(runs(&last));
    }

    #[test]
    fn a_cancelled_waiter_frees_those_behind_it() {
        let table = Arc::new(LockTable::new());
        let reader = table.enqueue(claim(1, vec![path("/w/a", false)]));
        let writer = table.enqueue(claim(1, vec![path("/w/a", true)]));
        let late = table.enqueue(claim(1, vec![path("/w/a", false)]));
        assert!(!runs(&late));
        drop(writer);
        assert!(runs(&late));
        drop(reader);
    }

    #[test]
    fn who_needs_what_a_given_up_call_holds_is_told_and_not_kept_waiting() {
        let table = Arc::new(LockTable::new());
        let hung = table.enqueue(claim(1, vec![path("/w/a", true)]));
        let waiting = table.enqueue(claim(1, vec![path("/w/a", true)]));
        let behind = table.enqueue(claim(1, vec![path("/w/a", false)]));
        let free = table.enqueue(claim(1, vec![path("/w/b", true)]));
        assert!(runs(&hung));
        hung.give_up();
        let later = table.enqueue(claim(2, vec![path("/w", false)]));
        for ticket in [&waiting, &behind, &later] {
            assert_eq!(state(ticket), Poll::Ready(Err(Stuck)));
        }
        assert!(runs(&free));
        drop((waiting, behind, later, hung));
        assert!(runs(&table.enqueue(claim(3, vec![path("/w/a", true)]))));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Enqueue(Claim),
        Drop(usize),
    }

    fn keys() -> impl Strategy<Value = Key> {
        let paths = prop::sample::select(vec!["/w", "/w/a", "/w/a/x", "/w/b", "/o"]);
        prop_oneof![
            3 => (paths, prop::option::of((Just(1u64), 1u64..4)), any::<bool>())
                .prop_map(|(abs, identity, write)| Key::Path { abs: abs.into(), identity, write }),
            1 => (prop::sample::select(vec!["t", "u"]), any::<bool>()).prop_map(|(name, write)| named(name, write)),
        ]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let claim = (1u64..3, prop::bool::weighted(0.15), prop::collection::vec(keys(), 0..4))
            .prop_map(|(batch, alone, keys)| Step::Enqueue(Claim { batch, alone, keys }));
        prop::collection::vec(prop_oneof![3 => claim, 2 => any::<usize>().prop_map(Step::Drop)], 1..80)
    }

    proptest! {
        #![proptest_config(crate::testing::cases())]
        /// The rule itself, checked after every step: a ticket runs exactly when no earlier living one conflicts.
        #[test]
        fn a_ticket_runs_exactly_when_nothing_ahead_conflicts(steps in steps()) {
            let table = Arc::new(LockTable::new());
            let mut living: Vec<(Claim, Ticket)> = Vec::new();
            let check = |living: &[(Claim, Ticket)]| {
                for (at, (claim, ticket)) in living.iter().enumerate() {
                    let free = !living[..at].iter().any(|(ahead, _)| ahead.conflicts(claim));
                    prop_assert_eq!(runs(ticket), free);
                }
                Ok(())
            };
            for step in steps {
                match step {
                    Step::Enqueue(claim) => living.push((claim.clone(), table.enqueue(claim))),
                    Step::Drop(which) if !living.is_empty() => drop(living.remove(which % living.len())),
                    Step::Drop(_) => {}
                }
                check(&living)?;
            }
            // Whatever the order, the first living one can always go on: no deadlock, no starvation.
            while !living.is_empty() {
                prop_assert!(runs(&living[0].1));
                living.remove(0);
                check(&living)?;
            }
            prop_assert!(table.table().entries.is_empty());
        }
    }
}
