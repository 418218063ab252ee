//! Pages of a session's log, from either end: what a face shows first is read without what came before it.
//!
//! A page is bounded in events and in bytes, and costs the same however long the session is.

use hames_protocol::{Envelope, LogError, SessionId};
use rusqlite::Connection;

use crate::Store;
use crate::fault::Fault;
use crate::row::{self, SEQ_MAX, key, uint};
use crate::sessions;

/// Bytes of event bodies after which a page ends, however few events it has by then.
const PAGE_BYTES: u64 = 2 << 20;

/// Where a page lies in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAt {
    /// At the end: the newest events.
    End,
    /// Right before this seq.
    Before(u64),
    /// Right after this seq.
    After(u64),
}

/// Some events that follow one another in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The events, oldest first. After a cut their seqs have gaps.
    pub events: Vec<Envelope>,
    /// Whether the log goes on in the direction that was read: newer ones for [`PageAt::After`], older ones otherwise.
    pub has_more: bool,
    /// Seq of the session's last event, as the page was read.
    pub last_seq: u64,
}

impl Store {
    /// Up to `limit` events at a place of a session's log; fewer where they are large, one at least where there is any.
    /// An event that cannot be read comes as damaged, with its seq.
    pub fn page(&self, id: &SessionId, at: PageAt, limit: usize) -> Result<Page, LogError> {
        self.inner.read(|db| read(db, id, at, limit))
    }

    /// Seq of a session's last event: the cheapest question there is about a session.
    pub fn last_seq(&self, id: &SessionId) -> Result<u64, LogError> {
        self.inner.read(|db| match sessions::position(db, id)? {
            Some((_, last)) => Ok(last),
            None => Err(LogError::NoSession(id.clone()).into()),
        })
    }
}

fn read(db: &Connection, id: &SessionId, at: PageAt, limit: usize) -> Result<Page, Fault> {
    // One transaction: the events and the last seq belong together.
    let tx = db.unchecked_transaction()?;
    let Some((number, last_seq)) = sessions::position(&tx, id)? else {
        return Err(LogError::NoSession(id.clone()).into());
    };
    let (from, to, order) = match at {
        PageAt::End => (0, SEQ_MAX, "DESC"),
        PageAt::Before(seq) => (0, seq.saturating_sub(1), "DESC"),
        PageAt::After(seq) => (seq, SEQ_MAX, "ASC"),
    };
    let mut statement = tx.prepare_cached(&format!(
        "SELECT {}, length(body) FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key {order}",
        row::COLUMNS
    ))?;
    let mut rows = statement.query((key(number, from), key(number, to)))?;
    let (mut events, mut bytes, mut has_more) = (Vec::new(), 0, false);
    while let Some(row) = rows.next()? {
        bytes += uint(row, 8);
        if events.len() >= limit || (bytes > PAGE_BYTES && !events.is_empty()) {
            has_more = true;
            break;
        }
        events.push(row::decode(row, id)?);
    }
    if order == "DESC" {
        events.reverse();
    }
    Ok(Page { events, has_more, last_seq })
}
