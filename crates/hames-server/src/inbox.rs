//! What a run may still be told: the steers and interrupts that wait for it.
//!
//! The actor puts in and takes back, the run claims. Each message is at one moment either free, being delivered, or held
//! while a person's change to it is written down, so that it never reaches the model and its author both.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_protocol::{Delivery, Inbox, Pending, PendingId};
use tokio::sync::Notify;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    Free,
    Claimed,
    Held,
}

#[derive(Debug)]
struct Slot {
    pending: Pending,
    now: Now,
}

/// The inbox of one run.
#[derive(Debug, Default)]
pub(crate) struct RunInbox {
    slots: Mutex<Vec<Slot>>,
    interrupt: Notify,
}

impl RunInbox {
    /// The inbox of a run that begins with `first`: that one is being delivered from now on.
    pub(crate) fn new(first: Option<Pending>, waiting: impl IntoIterator<Item = Pending>) -> Self {
        let first = first.into_iter().map(|pending| Slot { pending, now: Now::Claimed });
        let waiting = waiting.into_iter().map(|pending| Slot { pending, now: Now::Free });
        Self { slots: Mutex::new(first.chain(waiting).collect()), interrupt: Notify::new() }
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in.
    pub(crate) fn push(&self, pending: Pending) {
        let interrupts = pending.delivery == Delivery::Interrupt;
        self.locked().push(Slot { pending, now: Now::Free });
        if interrupts {
            self.interrupt.notify_one();
        }
    }

    /// Keeps a message from being delivered while it is changed; `false` where it is being delivered already. One that
    /// is not in the inbox cannot be delivered anyway.
    pub(crate) fn hold(&self, id: &PendingId) -> bool {
        match self.locked().iter_mut().find(|slot| &slot.pending.id == id) {
            Some(slot) if slot.now == Now::Claimed => false,
            Some(slot) => {
                slot.now = Now::Held;
                true
            }
            None => true,
        }
    }

    /// Lets go of a message that was held, changed or not.
    pub(crate) fn release(&self, id: &PendingId) {
        if let Some(slot) = self.locked().iter_mut().find(|slot| &slot.pending.id == id) {
            slot.now = Now::Free;
        }
        self.interrupt.notify_one();
    }

    /// Takes a message out.
    pub(crate) fn remove(&self, id: &PendingId) {
        self.locked().retain(|slot| &slot.pending.id != id);
    }

    /// Makes the inbox what waits now, in that order. What is being delivered stays as it is.
    pub(crate) fn arrange(&self, waiting: Vec<Pending>) {
        let mut slots = self.locked();
        let claimed: Vec<Slot> = slots.drain(..).filter(|slot| slot.now == Now::Claimed).collect();
        let is_claimed = |pending: &Pending| claimed.iter().any(|slot| slot.pending.id == pending.id);
        let free = waiting.into_iter().filter(|pending| !is_claimed(pending)).collect::<Vec<_>>();
        slots.extend(claimed);
        slots.extend(free.into_iter().map(|pending| Slot { pending, now: Now::Free }));
        drop(slots);
        self.interrupt.notify_one();
    }
}

#[async_trait]
impl Inbox for RunInbox {
    /// What is free, up to the first message that is being changed: nothing overtakes that one.
    fn waiting(&self) -> Vec<Pending> {
        let slots = self.locked();
        let reachable = slots.iter().take_while(|slot| slot.now != Now::Held);
        reachable.filter(|slot| slot.now == Now::Free).map(|slot| slot.pending.clone()).collect()
    }

    fn claim(&self, id: &PendingId) -> Option<Pending> {
        let mut slots = self.locked();
        let slot = slots.iter_mut().find(|slot| &slot.pending.id == id && slot.now == Now::Free)?;
        slot.now = Now::Claimed;
        Some(slot.pending.clone())
    }

    fn delivered(&self, id: &PendingId) {
        self.remove(id);
    }

    /// There is nothing to close: what comes after the run's last look is still waiting when it has ended, and then it
    /// starts the next run.
    fn close_if_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    async fn interrupt(&self) {
        self.interrupt.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use hames_protocol::Part;

    use super::*;

    fn steer(text: &str) -> Pending {
        Pending {
            id: PendingId::generate(),
            parts: vec![Part::text(text)],
            delivery: Delivery::Steer,
            idempotency_id: None,
        }
    }

    #[test]
    fn nobody_overtakes_a_message_that_is_being_changed() {
        let (first, second, third) = (steer("first"), steer("second"), steer("third"));
        let inbox = RunInbox::new(None, [first.clone(), second.clone(), third.clone()]);
        assert!(inbox.hold(&second.id));
        assert_eq!(inbox.waiting(), std::slice::from_ref(&first));
        assert!(!inbox.close_if_empty());
        assert!(inbox.claim(&first.id).is_some());
        inbox.delivered(&first.id);
        assert!(inbox.close_if_empty(), "what waits behind a change begins the next run");
        inbox.release(&second.id);
        assert_eq!(inbox.waiting(), [second, third]);
    }
}
