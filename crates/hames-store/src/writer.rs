//! The one connection of a process that writes.
//!
//! Whoever has work while the connection is free does it at once on its own thread: a commit takes less time than
//! waking another thread twice, and a run has four of them in every step. Whoever comes while it is in use queues up;
//! what has queued up is committed by the writer's thread as one transaction, each piece of work in a savepoint of its
//! own, so that a refused one takes nothing else with it.
//!
//! No commit waits for the disk. Whoever has to outlive the loss of power waits for the syncer, after its commit and
//! outside of the writer.
//!
//! When nothing has come for a while the thread does the chores (the search index, copying the write-ahead file back)
//! in small pieces, and then sleeps until there is work.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hames_protocol::{Durability, LogError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::repair::Keeper;
use crate::syncer::{Pending, Syncer};
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
    /// Says how it ended, and what is still on its way to the disk.
    fn done(self: Box<Self>, outcome: Result<(), LogError>, sync: Option<Pending>);
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
    R: FnOnce(Result<T, LogError>, Option<Pending>) + Send,
{
    fn run(&mut self, db: &Connection) -> Result<(), Fault> {
        self.value = Some((self.work)(db)?);
        Ok(())
    }

    fn done(self: Box<Self>, outcome: Result<(), LogError>, sync: Option<Pending>) {
        let value = self.value;
        (self.reply)(outcome.and_then(|()| value.ok_or_else(gone)), sync);
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
    /// Something was written, so there may be chores.
    Chores,
}

/// The way to the writer. Dropping it finishes what is queued and closes the database.
#[derive(Debug)]
pub(crate) struct Writer {
    // Each sender waits for its reply, so the queue is as long as there are callers.
    orders: Option<Sender<Order>>,
    service: Arc<Mutex<Service>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread over an open database.
    pub(crate) fn start(db: Connection, keeper: Keeper) -> Result<Writer, LogError> {
        let (orders, inbox) = channel();
        let syncer = Syncer::new(&keeper.database());
        let service = Service { db: Some(db), keeper, syncer, commits: 0, last: Instant::now(), chores: false };
        let service = Arc::new(Mutex::new(service));
        let shared = Arc::clone(&service);
        let thread = std::thread::Builder::new()
            .name("hames-store".into())
            .spawn(move || serve(&shared, &inbox))
            .map_err(|e| LogError::Io(format!("cannot start a thread for the session database: {e}")))?;
        Ok(Writer { orders: Some(orders), service, thread: Some(thread) })
    }

    /// Has `work` done in a transaction: here where the connection is free, else by the thread. With
    /// [`Durability::Power`] it returns when that is on the disk; where that failed, it is done all the same.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, LogError> {
        let (sender, receiver) = oneshot::channel();
        let reply = move |outcome, sync| drop(sender.send((outcome, sync)));
        self.commit(Box::new(Work { work, reply, value: None, durability }))?;
        let (outcome, sync) = receiver.await.unwrap_or_else(|_| (Err(gone()), None));
        let value = outcome?;
        if let Some(sync) = sync.filter(|_| durability == Durability::Power) {
            sync.done().await?;
        }
        Ok(value)
    }

    fn commit(&self, task: Box<dyn Task>) -> Result<(), LogError> {
        let mut service = match self.service.try_lock() {
            Ok(service) => service,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.send(Order::Task(task)),
        };
        service.commit(vec![task]);
        let has_chores = std::mem::replace(&mut service.chores, true);
        drop(service);
        if has_chores { Ok(()) } else { self.send(Order::Chores) }
    }

    /// Has `work` done in a transaction, blocking the thread.
    pub(crate) fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, LogError> {
        let (sender, receiver) = sync_channel(1);
        let reply = move |outcome, _| drop(sender.send(outcome));
        self.commit(Box::new(Work { work, reply, value: None, durability: Durability::Process }))?;
        receiver.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Does `work`, which cannot be part of a transaction. Everybody else waits meanwhile.
    pub(crate) fn outside_a_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, LogError> {
        let service = locked(&self.service);
        let Some(db) = &service.db else { return Err(gone()) };
        work(db).map_err(|fault| fault.explain(&service.keeper.database()))
    }

    /// Has the database repaired, unless that happened since generation `seen`. Blocks the thread.
    pub(crate) fn repair_blocking(&self, seen: u64, reason: String) -> Result<(), LogError> {
        let (sender, receiver) = sync_channel(1);
        let reply = Box::new(move |outcome| drop(sender.send(outcome)));
        self.send(Order::Repair { seen, reason, reply })?;
        receiver.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// What is still on its way to the disk.
    pub(crate) fn pending_syncs(&self) -> Pending {
        locked(&self.service).syncer.pending()
    }

    /// Syncs in another way from now on.
    #[cfg(test)]
    pub(crate) fn sync_by(&self, sync: Arc<dyn Fn() -> Result<(), LogError> + Send + Sync>) {
        locked(&self.service).syncer = Syncer::by(sync);
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

/// Serves orders until there can be no more, then closes the database.
fn serve(shared: &Mutex<Service>, inbox: &Receiver<Order>) {
    while let Some(order) = next_order(shared, inbox) {
        let mut service = locked(shared);
        match order {
            Order::Repair { seen, reason, reply } => reply(service.repair_since(seen, &reason)),
            Order::Task(task) => service.commit_with_what_waits(task, inbox),
            Order::Chores => {}
        }
    }
    locked(shared).close();
}

/// The next order; does chores while there is none, and gives `None` when there will be no more.
fn next_order(shared: &Mutex<Service>, inbox: &Receiver<Order>) -> Option<Order> {
    while locked(shared).chores {
        match inbox.recv_timeout(QUIET) {
            Ok(order) => return Some(order),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        // The connection is free between two chores, and work goes first.
        while locked(shared).chore() {
            if let Ok(order) = inbox.try_recv() {
                return Some(order);
            }
        }
    }
    inbox.recv().ok()
}

fn locked(shared: &Mutex<Service>) -> MutexGuard<'_, Service> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Service {
    /// Absent after a repair that failed.
    db: Option<Connection>,
    keeper: Keeper,
    syncer: Syncer,
    /// Transactions since the write-ahead file was last copied back.
    commits: u32,
    /// When something was last written.
    last: Instant,
    /// Whether the thread knows that there may be chores.
    chores: bool,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl Service {
    fn close(&mut self) {
        let db = self.db.take();
        self.keeper.close(db);
    }

    /// Does one small chore where it is quiet; `true` while there may be more. What fails is left for another time.
    fn chore(&mut self) -> bool {
        if self.last.elapsed() < QUIET {
            return false;
        }
        if let Some(db) = &self.db {
            if let Ok(true) = in_transaction(db, search::index_some) {
                return true;
            }
            if self.commits >= CHECKPOINT_AFTER {
                self.commits = 0;
                let _ = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            }
        }
        self.chores = false;
        false
    }

    fn commit_with_what_waits(&mut self, first: Box<dyn Task>, inbox: &Receiver<Order>) {
        let mut batch = vec![first];
        let mut repair = None;
        while batch.len() < BATCH {
            match inbox.try_recv() {
                Ok(Order::Task(task)) => batch.push(task),
                Ok(Order::Chores) => {}
                Ok(Order::Repair { seen, reason, reply }) => {
                    repair = Some((seen, reason, reply));
                    break;
                }
                Err(_) => break,
            }
        }
        self.commit(batch);
        self.chores = true;
        if let Some((seen, reason, reply)) = repair {
            reply(self.repair_since(seen, &reason));
        }
    }

    fn repair_since(&mut self, seen: u64, reason: &str) -> Result<(), LogError> {
        if self.keeper.readers().generation() > seen { Ok(()) } else { self.repair(reason) }
    }

    /// Commits a batch and answers everybody in it.
    fn commit(&mut self, mut batch: Vec<Box<dyn Task>>) {
        match self.attempt(&mut batch) {
            Ok(outcomes) => self.answer(batch, outcomes),
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
            return batch.into_iter().for_each(|task| task.done(Err(error.clone()), None));
        }
        match self.attempt(&mut batch) {
            Ok(outcomes) => self.answer(batch, outcomes),
            Err(fault) => self.refuse(batch, fault),
        }
    }

    fn refuse(&self, batch: Vec<Box<dyn Task>>, fault: Fault) {
        let error = fault.explain(&self.keeper.database());
        batch.into_iter().for_each(|task| task.done(Err(error.clone()), None));
    }

    /// Says how a batch that was committed ended, once the sync that covers it has begun.
    fn answer(&mut self, batch: Vec<Box<dyn Task>>, outcomes: Vec<Result<(), LogError>>) {
        let mut committed = batch.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok());
        let sync = committed.any(|(task, _)| task.durability() > Durability::Process).then(|| {
            self.syncer.begin();
            self.syncer.pending()
        });
        batch.into_iter().zip(outcomes).for_each(|(task, outcome)| task.done(outcome, sync.clone()));
    }

    /// Tries the batch as one transaction. An error means that nothing of it was written.
    fn attempt(&mut self, batch: &mut [Box<dyn Task>]) -> Result<Vec<Result<(), LogError>>, Fault> {
        let Some(db) = &self.db else { return Err(gone().into()) };
        let outcomes = in_transaction(db, |db| match batch {
            [task] => run_alone(task.as_mut(), db),
            batch => batch.iter_mut().map(|task| run_among_others(task.as_mut(), db)).collect(),
        });
        self.commits += 1;
        self.last = Instant::now();
        match outcomes {
            Err(Fault::Refused(error)) => Ok(vec![Err(error)]),
            other => other,
        }
    }

    fn repair(&mut self, reason: &str) -> Result<(), LogError> {
        let db = self.keeper.repair(self.db.take(), reason);
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
