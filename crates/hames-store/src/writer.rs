//! The one thread of a process that writes. Work comes in through a channel; what has queued up is committed as one
//! transaction, each piece of work in a savepoint of its own, so that a refused one takes nothing else with it.
//!
//! When nothing has come for a while it does its chores (the search index, copying the write-ahead file back) in
//! small pieces, and then sleeps until there is work.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hames_protocol::{Durability, LogError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::repair::Keeper;
use crate::{open, search};

/// Pieces of work in one transaction at most.
const BATCH: usize = 64;
/// Quiet time after which chores begin: longer than the pauses inside a step.
const QUIET: Duration = Duration::from_millis(200);
/// Transactions after which a quiet moment is used to copy the write-ahead file back.
const CHECKPOINT_AFTER: u32 = 200;

/// Work for the writer.
trait Task: Send {
    /// Does it, inside a transaction. May run again where that transaction failed.
    fn run(&mut self, db: &Connection) -> Result<(), Fault>;
    /// Says how it ended.
    fn done(self: Box<Self>, outcome: Result<(), LogError>);
    fn durability(&self) -> Durability;
}

struct Work<T, W, R> {
    work: W,
    reply: R,
    value: Option<T>,
    durability: Durability,
}

impl<T, W, R> Task for Work<T, W, R>
where
    T: Send,
    W: FnMut(&Connection) -> Result<T, Fault> + Send,
    R: FnOnce(Result<T, LogError>) + Send,
{
    fn run(&mut self, db: &Connection) -> Result<(), Fault> {
        self.value = Some((self.work)(db)?);
        Ok(())
    }

    fn done(self: Box<Self>, outcome: Result<(), LogError>) {
        let value = self.value;
        (self.reply)(outcome.and_then(|()| value.ok_or_else(gone)));
    }

    fn durability(&self) -> Durability {
        self.durability
    }
}

enum Order {
    Task(Box<dyn Task>),
    /// A reader met damage while the database was at this generation.
    Repair {
        seen: u64,
        reason: String,
        reply: Box<dyn FnOnce(Result<(), LogError>) + Send>,
    },
}

/// The way to the writer. Dropping it finishes what is queued and closes the database.
#[derive(Debug)]
pub(crate) struct Writer {
    // Each sender waits for its reply, so the queue is as long as there are callers.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread over an open database.
    pub(crate) fn start(db: Connection, keeper: Keeper) -> Result<Writer, LogError> {
        let (orders, inbox) = channel();
        let service = Service { db: Some(db), keeper, inbox, full_sync: false, commits: 0, chores: false };
        let thread = std::thread::Builder::new()
            .name("hames-store".into())
            .spawn(move || service.serve())
            .map_err(|e| LogError::Io(format!("cannot start a thread for the session database: {e}")))?;
        Ok(Writer { orders: Some(orders), thread: Some(thread) })
    }

    /// Has `work` done in a transaction.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, LogError> {
        let (sender, receiver) = oneshot::channel();
        let reply = move |outcome| drop(sender.send(outcome));
        self.send(Order::Task(Box::new(Work { work, reply, value: None, durability })))?;
        receiver.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Has `work` done in a transaction, blocking the thread.
    pub(crate) fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, LogError> {
        let (sender, receiver) = sync_channel(1);
        let reply = move |outcome| drop(sender.send(outcome));
        self.send(Order::Task(Box::new(Work { work, reply, value: None, durability: Durability::Process })))?;
        receiver.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Has the database repaired, unless that happened since generation `seen`. Blocks the thread.
    pub(crate) fn repair_blocking(&self, seen: u64, reason: String) -> Result<(), LogError> {
        let (sender, receiver) = sync_channel(1);
        let reply = Box::new(move |outcome| drop(sender.send(outcome)));
        self.send(Order::Repair { seen, reason, reply })?;
        receiver.recv().unwrap_or_else(|_| Err(gone()))
    }

    fn send(&self, order: Order) -> Result<(), LogError> {
        self.orders.as_ref().ok_or_else(gone)?.send(order).map_err(|_| gone())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

fn gone() -> LogError {
    LogError::Io("the session database was closed; start hames again".into())
}

struct Service {
    /// Absent after a repair that failed.
    db: Option<Connection>,
    keeper: Keeper,
    inbox: Receiver<Order>,
    full_sync: bool,
    /// Transactions since the write-ahead file was last copied back.
    commits: u32,
    chores: bool,
}

impl Service {
    fn serve(mut self) {
        while let Some(order) = self.next() {
            match order {
                Order::Repair { seen, reason, reply } => {
                    let outcome = if self.keeper.readers().generation() > seen { Ok(()) } else { self.repair(&reason) };
                    reply(outcome);
                }
                Order::Task(task) => self.commit_with_what_waits(task),
            }
        }
        self.keeper.close(self.db);
    }

    /// The next order; does chores while there is none, and gives `None` when there will be no more.
    fn next(&mut self) -> Option<Order> {
        while self.chores {
            match self.inbox.recv_timeout(QUIET) {
                Ok(order) => return Some(order),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            while self.chores {
                self.chores = self.chore();
                match self.inbox.try_recv() {
                    Ok(order) => return Some(order),
                    Err(TryRecvError::Disconnected) => return None,
                    Err(TryRecvError::Empty) => {}
                }
            }
        }
        self.inbox.recv().ok()
    }

    /// Does one small chore; `true` while there may be more. What fails is left for another time.
    fn chore(&mut self) -> bool {
        let Some(db) = &self.db else { return false };
        let indexed = in_transaction(db, search::index_some);
        if let Ok(true) = indexed {
            return true;
        }
        if self.commits >= CHECKPOINT_AFTER {
            self.commits = 0;
            let _ = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
        false
    }

    fn commit_with_what_waits(&mut self, first: Box<dyn Task>) {
        let mut batch = vec![first];
        let mut other = None;
        while batch.len() < BATCH {
            match self.inbox.try_recv() {
                Ok(Order::Task(task)) => batch.push(task),
                Ok(order) => {
                    other = Some(order);
                    break;
                }
                Err(_) => break,
            }
        }
        self.commit(batch);
        self.chores = true;
        if let Some(Order::Repair { seen, reason, reply }) = other {
            let outcome = if self.keeper.readers().generation() > seen { Ok(()) } else { self.repair(&reason) };
            reply(outcome);
        }
    }

    /// Commits a batch and answers everybody in it.
    fn commit(&mut self, mut batch: Vec<Box<dyn Task>>) {
        match self.attempt(&mut batch) {
            Ok(outcomes) => batch.into_iter().zip(outcomes).for_each(|(task, outcome)| task.done(outcome)),
            Err(fault) if fault.is_damage() => self.repair_and_commit(batch, fault),
            // One of them broke the transaction of all: each gets one of its own.
            Err(fault) if batch.len() > 1 && !fault.is_general() => {
                batch.into_iter().for_each(|task| self.commit(vec![task]));
            }
            Err(fault) => self.refuse(batch, fault),
        }
    }

    fn repair_and_commit(&mut self, mut batch: Vec<Box<dyn Task>>, fault: Fault) {
        if let Err(error) = self.repair(&open::plain_reason(fault)) {
            return batch.into_iter().for_each(|task| task.done(Err(error.clone())));
        }
        match self.attempt(&mut batch) {
            Ok(outcomes) => batch.into_iter().zip(outcomes).for_each(|(task, outcome)| task.done(outcome)),
            Err(fault) => self.refuse(batch, fault),
        }
    }

    fn refuse(&self, batch: Vec<Box<dyn Task>>, fault: Fault) {
        let error = fault.explain(&self.keeper.database());
        batch.into_iter().for_each(|task| task.done(Err(error.clone())));
    }

    /// Tries the batch as one transaction. An error means that nothing of it was written.
    fn attempt(&mut self, batch: &mut [Box<dyn Task>]) -> Result<Vec<Result<(), LogError>>, Fault> {
        let full_sync = batch.iter().any(|task| task.durability() == Durability::Power);
        let Some(db) = &self.db else { return Err(gone().into()) };
        if full_sync != self.full_sync {
            // With FULL a commit in WAL mode returns when the write-ahead file is on the disk.
            db.execute_batch(if full_sync { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" })?;
            self.full_sync = full_sync;
        }
        let outcomes = in_transaction(db, |db| match batch {
            [task] => run_alone(task.as_mut(), db),
            batch => batch.iter_mut().map(|task| run_among_others(task.as_mut(), db)).collect(),
        });
        self.commits += 1;
        match outcomes {
            Err(Fault::Refused(error)) => Ok(vec![Err(error)]),
            other => other,
        }
    }

    fn repair(&mut self, reason: &str) -> Result<(), LogError> {
        let db = self.keeper.repair(self.db.take(), reason);
        self.full_sync = false;
        match db {
            (Some(db), outcome) => {
                self.db = Some(db);
                outcome
            }
            (None, outcome) => outcome,
        }
    }
}

fn run_alone(task: &mut dyn Task, db: &Connection) -> Result<Vec<Result<(), LogError>>, Fault> {
    // A refusal becomes an error here, so that the transaction is rolled back.
    task.run(db).map(|()| vec![Ok(())])
}

fn run_among_others(task: &mut dyn Task, db: &Connection) -> Result<Result<(), LogError>, Fault> {
    execute(db, "SAVEPOINT task")?;
    match task.run(db) {
        Ok(()) => {
            execute(db, "RELEASE task")?;
            Ok(Ok(()))
        }
        Err(Fault::Refused(error)) => {
            execute(db, "ROLLBACK TO task")?;
            execute(db, "RELEASE task")?;
            Ok(Err(error))
        }
        Err(fault) => Err(fault),
    }
}

fn in_transaction<T>(db: &Connection, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
    execute(db, "BEGIN IMMEDIATE")?;
    let outcome = work(db).and_then(|value| {
        execute(db, "COMMIT")?;
        Ok(value)
    });
    // Some failures end the transaction by themselves.
    if outcome.is_err() && !db.is_autocommit() {
        execute(db, "ROLLBACK")?;
    }
    outcome
}

fn execute(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([])?;
    Ok(())
}
