//! A session that another process writes: read here, followed while somebody watches, and taken once it is free.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hames_protocol::api::ApiError;
use hames_protocol::{Envelope, Event, LogError, SessionId, SessionState};
use hames_store::{PageAt, Store};
use tokio::sync::Notify;

use super::{Actor, PAGE};
use crate::hub::Following;
use crate::refusal::{Answer, blocking, refused};

/// How often the lease of a session is tried that another process holds, while somebody watches it here.
const LEASE_EVERY: Duration = Duration::from_secs(1);

/// A session another process writes.
pub(super) struct Foreign {
    pub(super) state: SessionState,
    /// Why it cannot be written here.
    pub(super) why: ApiError,
    /// When its lease is tried again.
    try_at: Instant,
    /// While somebody watches.
    following: Option<Following>,
}

impl Foreign {
    /// Takes in what was not yet.
    pub(super) fn take_in(&mut self, news: &[Envelope]) {
        let known = self.state.seq;
        news.iter().filter(|envelope| envelope.seq.is_some_and(|seq| seq > known)).for_each(|e| self.state.apply(e));
    }
}

impl Actor {
    /// Reads a session that another process writes, without a word in its log.
    pub(super) async fn watch_foreign(&mut self, why: ApiError) -> Answer<()> {
        let try_at = Instant::now() + LEASE_EVERY;
        match &mut self.foreign {
            Some(foreign) => (foreign.why, foreign.try_at) = (why, try_at),
            None => {
                let (store, id) = (self.hub.store.clone(), self.id.clone());
                let state = blocking(move || store.outline(&id)).await?.map_err(refused)?;
                let state = state.ok_or_else(|| refused(LogError::NoSession(self.id.clone())))?;
                self.recall().await?;
                self.foreign = Some(Foreign { state, why, try_at, following: None });
            }
        }
        self.tail().await;
        Ok(())
    }

    /// Looks what another process has written meanwhile.
    pub(super) async fn tail(&mut self) {
        let Ok(news) = self.publish_log().await else { return };
        let Some(foreign) = &mut self.foreign else { return };
        foreign.take_in(&news);
        if news.iter().any(|e| matches!(e.event, Event::RunDone(_))) {
            // Its process may be done with it.
            foreign.try_at = Instant::now();
        }
    }

    /// Takes a session that another process held, where it does no more.
    pub(super) async fn try_again(&mut self) {
        if let Some(foreign) = &mut self.foreign {
            foreign.try_at = Instant::now() + LEASE_EVERY;
        }
        let _ = self.open().await;
    }

    /// Takes in what came of the run that goes on there before anybody looked, so that what it does is known here too.
    async fn recall(&self) -> Answer<()> {
        let (store, id, known) = (self.hub.store.clone(), self.id.clone(), self.channel.last_seq());
        let open = blocking(move || open_run(&store, &id, known)).await?.map_err(refused)?;
        self.channel.recall(&open);
        Ok(())
    }

    /// Follows a session that another process writes, for as long as somebody watches it. Gives what tells of news, and when
    /// the lease is tried.
    pub(super) fn followed(&mut self, is_watched: bool) -> Option<(Arc<Notify>, Instant)> {
        let foreign = self.foreign.as_mut()?;
        if !is_watched {
            foreign.following = None;
            return None;
        }
        let (hub, id, seq) = (&self.hub, &self.id, self.channel.last_seq());
        let following = foreign.following.get_or_insert_with(|| Following::of(hub, id, seq));
        Some((Arc::clone(&following.moved), foreign.try_at))
    }
}

/// The events of the run that was open behind the event `last`, up to that one; none where no run was.
fn open_run(store: &Store, id: &SessionId, last: u64) -> Result<Vec<Envelope>, LogError> {
    let (mut before, mut backwards) = (last + 1, Vec::new());
    loop {
        let page = store.page(id, PageAt::Before(before), PAGE)?;
        before = page.events.first().and_then(|envelope| envelope.seq).unwrap_or_default();
        for envelope in page.events.into_iter().rev() {
            let of_run = envelope.agent.is_empty();
            match &envelope.event {
                Event::RunDone(_) if of_run => return Ok(Vec::new()),
                Event::RunStart(_) if of_run => {
                    backwards.push(envelope);
                    backwards.reverse();
                    return Ok(backwards);
                }
                _ => backwards.push(envelope),
            }
        }
        if !page.has_more {
            return Ok(Vec::new());
        }
    }
}
