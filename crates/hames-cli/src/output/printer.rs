//! Writing to standard output and standard error without ever waiting for whoever reads it.
//!
//! What the system takes at once is written at once: waking a thread for every line costs more than the line. Anything
//! else goes to a thread of its own. Handing something over never blocks, so a reader that is slow or stuck cannot stall
//! a running command's pipes. What waits is bounded from the other side: [`Sink::room`] lets whoever makes the most of it
//! (the model's stream) wait, and live pieces are left out while there is no room. While a person is asked
//! something ([`Sink::hold`]) everything waits. A reader that went away, or a disk that is full, fires a token, once.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::descriptor::Descriptor;

/// Bytes that may wait before the model's stream is made to wait.
const ROOM_BYTES: usize = 4 * 1024 * 1024;
/// How long a reader that takes nothing is waited for once somebody asked us to end.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How often the end of the wait looks around.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// Pause before writing again to a descriptor that somebody made non-blocking.
const WOULD_BLOCK_PAUSE: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

#[derive(Debug, Default)]
struct Waiting {
    chunks: Vec<(Stream, Vec<u8>)>,
    bytes: usize,
    /// Bytes taken by the thread and not written yet.
    in_hand: usize,
    /// Bytes written so far: how the end of the wait sees progress.
    written: u64,
    /// Nothing is written while somebody has the terminal to themselves.
    held: bool,
    ended: bool,
    gone: bool,
    /// Why standard output takes nothing any more, where that is more than a reader that went away.
    failure: Option<std::io::Error>,
}

/// Where bytes go.
pub(super) trait Target: Write + Send {
    /// Whether writing so many bytes now is sure to return at once.
    fn takes_at_once(&self, bytes: usize) -> bool;
}

struct Targets {
    out: Box<dyn Target>,
    err: Box<dyn Target>,
}

impl Targets {
    fn of(&mut self, stream: Stream) -> &mut dyn Target {
        match stream {
            Stream::Out => self.out.as_mut(),
            Stream::Err => self.err.as_mut(),
        }
    }
}

impl std::fmt::Debug for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Targets").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Held while writing. Taken after `waiting` and only where nothing waits, or by the thread alone.
    targets: Mutex<Targets>,
    wake: Condvar,
    done: Condvar,
    room: tokio::sync::Notify,
    closed: AtomicBool,
    on_closed: CancellationToken,
}

impl Waiting {
    fn is_idle(&self) -> bool {
        self.chunks.is_empty() && self.in_hand == 0
    }

    /// Whether the thread has something to write. At the end nobody has the terminal to themselves any more.
    fn is_due(&self) -> bool {
        !self.chunks.is_empty() && (!self.held || self.ended)
    }
}

impl Shared {
    /// Writes what the system takes at once and gives back the rest.
    fn write_at_once<'b>(&self, waiting: &mut Waiting, stream: Stream, bytes: &'b [u8]) -> &'b [u8] {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let target = targets.of(stream);
        if !target.takes_at_once(bytes.len()) {
            return bytes;
        }
        match target.write(bytes) {
            Ok(n) => {
                waiting.written += n as u64;
                &bytes[n..]
            }
            // The thread meets it again and knows what to do.
            Err(_) => bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread and the way to end it.
#[derive(Debug)]
pub(crate) struct Printer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Where output is handed over. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Sink(Arc<Shared>);

/// Output waits as long as this lives.
#[derive(Debug)]
pub(crate) struct Hold(Arc<Shared>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.lock().held = false;
        self.0.wake.notify_one();
    }
}

impl Printer {
    /// Starts the thread. `on_closed` fires when whoever read standard output went away.
    pub(crate) fn start(on_closed: CancellationToken) -> std::io::Result<Printer> {
        // Duplicates, because the standard handles are line-buffered and locked for the whole process.
        let out = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        let err = File::from(std::io::stderr().as_fd().try_clone_to_owned()?);
        Self::over(Descriptor::new(out), Descriptor::new(err), on_closed)
    }

    fn over(
        out: impl Target + 'static,
        err: impl Target + 'static,
        on_closed: CancellationToken,
    ) -> std::io::Result<Printer> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            targets: Mutex::new(Targets { out: Box::new(out), err: Box::new(err) }),
            wake: Condvar::new(),
            done: Condvar::new(),
            room: tokio::sync::Notify::new(),
            closed: AtomicBool::new(false),
            on_closed,
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("printer".into()).spawn(move || print_all(&of_thread))?;
        Ok(Printer { shared, thread: Some(thread) })
    }

    /// A place to hand output over.
    pub(crate) fn sink(&self) -> Sink {
        Sink(Arc::clone(&self.shared))
    }

    /// Waits until everything is written. Once `hurry` fires, a reader that takes nothing any more is given up on.
    ///
    /// An error is what standard output failed with, a full disk for one; a reader that went away is none.
    pub(crate) fn finish(mut self, hurry: &CancellationToken) -> std::io::Result<()> {
        let mut waiting = self.shared.lock();
        waiting.ended = true;
        self.shared.wake.notify_one();
        let mut progress = (waiting.written, Instant::now());
        while !waiting.gone {
            waiting = self.shared.done.wait_timeout(waiting, LOOK_AROUND).unwrap_or_else(PoisonError::into_inner).0;
            if waiting.written != progress.0 || !hurry.is_cancelled() {
                progress = (waiting.written, Instant::now());
            } else if progress.1.elapsed() > LAST_PATIENCE {
                return Ok(());
            }
        }
        let failure = waiting.failure.take();
        drop(waiting);
        if let Some(thread) = self.thread.take() {
            // It has nothing left to do; a panic in it was already shown by the runtime.
            let _ = thread.join();
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Sink {
    /// Hands over bytes for standard output.
    pub(crate) fn out(&self, bytes: &[u8]) {
        if !self.is_closed() {
            self.push(Stream::Out, bytes);
        }
    }

    /// Hands over bytes for standard error.
    pub(crate) fn err(&self, bytes: &[u8]) {
        self.push(Stream::Err, bytes);
    }

    /// Whether whoever read standard output went away.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// Whether more waits than should.
    pub(crate) fn is_full(&self) -> bool {
        let waiting = self.0.lock();
        waiting.bytes + waiting.in_hand > ROOM_BYTES
    }

    /// Returns when there is room.
    pub(crate) async fn room(&self) {
        loop {
            let notified = self.0.room.notified();
            tokio::pin!(notified);
            // Listening begins before looking, or room made in between would go unnoticed.
            notified.as_mut().enable();
            if !self.is_full() {
                return;
            }
            notified.await;
        }
    }

    /// Returns when everything handed over so far is written; from then on what is handed over waits until the hold is
    /// dropped.
    pub(crate) async fn hold(&self) -> Hold {
        loop {
            let notified = self.0.room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let mut waiting = self.0.lock();
                if waiting.is_idle() || waiting.gone {
                    waiting.held = true;
                    return Hold(Arc::clone(&self.0));
                }
            }
            notified.await;
        }
    }

    fn push(&self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut waiting = self.0.lock();
        if waiting.gone {
            return;
        }
        let rest = match waiting.is_idle() && !waiting.held {
            true => self.0.write_at_once(&mut waiting, stream, bytes),
            false => bytes,
        };
        let bytes = match rest {
            [] => return,
            rest => rest,
        };
        waiting.bytes += bytes.len();
        match waiting.chunks.last_mut() {
            Some((last, chunk)) if *last == stream => chunk.extend_from_slice(bytes),
            _ => waiting.chunks.push((stream, bytes.to_vec())),
        }
        drop(waiting);
        self.0.wake.notify_one();
    }
}

fn print_all(shared: &Shared) {
    while let Some(chunks) = take(shared) {
        let mut targets = shared.targets.lock().unwrap_or_else(PoisonError::into_inner);
        for (stream, bytes) in chunks {
            if stream == Stream::Out && shared.closed.load(Ordering::Relaxed) {
                continue;
            }
            let written = write_all(shared, targets.of(stream), &bytes);
            // Nobody is left to be told about a broken standard error.
            if let (Err(error), Stream::Out) = (written, stream) {
                shared.lock().failure = (error.kind() != ErrorKind::BrokenPipe).then_some(error);
                shared.closed.store(true, Ordering::Relaxed);
                shared.on_closed.cancel();
            }
        }
        drop(targets);
        shared.lock().in_hand = 0;
        shared.room.notify_waiters();
    }
    shared.lock().gone = true;
    shared.done.notify_all();
}

/// Everything that waits, as soon as there is something; `None` at the end.
fn take(shared: &Shared) -> Option<Vec<(Stream, Vec<u8>)>> {
    let mut waiting = shared.lock();
    while !waiting.is_due() {
        if waiting.ended {
            return None;
        }
        waiting = shared.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
    waiting.in_hand = std::mem::take(&mut waiting.bytes);
    Some(std::mem::take(&mut waiting.chunks))
}

fn write_all(shared: &Shared, target: &mut dyn Target, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match target.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                shared.lock().written += n as u64;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(WOULD_BLOCK_PAUSE),
            Err(e) => return Err(e),
        }
    }
    target.flush()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A writer that takes a byte for every permit it gets.
    struct Gated {
        permits: mpsc::Receiver<usize>,
        seen: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let n = self.permits.recv().map_err(|_| ErrorKind::BrokenPipe)?.min(bytes.len());
            self.seen.lock().unwrap().extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Target for Gated {
        fn takes_at_once(&self, _bytes: usize) -> bool {
            false
        }
    }

    impl Target for Kept {
        /// Now and then, so that both ways are taken.
        fn takes_at_once(&self, bytes: usize) -> bool {
            !bytes.is_multiple_of(3)
        }
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everything_handed_over_is_written_in_order() {
        let (out, err) = (Kept::default(), Kept::default());
        let printer = Printer::over(out.clone(), err.clone(), CancellationToken::new()).unwrap();
        let sink = printer.sink();
        for n in 0..1000 {
            sink.out(format!("{n}\n").as_bytes());
            sink.err(b".");
        }
        printer.finish(&CancellationToken::new()).unwrap();
        let expected: String = (0..1000).map(|n| format!("{n}\n")).collect();
        assert_eq!(String::from_utf8(out.0.lock().unwrap().clone()).unwrap(), expected);
        assert_eq!(err.0.lock().unwrap().len(), 1000);
    }

    #[tokio::test]
    async fn a_stuck_reader_blocks_nobody_and_room_comes_back_when_it_reads() {
        let (permit, permits) = mpsc::channel();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let out = Gated { permits, seen: Arc::clone(&seen) };
        let printer = Printer::over(out, Kept::default(), CancellationToken::new()).unwrap();
        let sink = printer.sink();
        sink.room().await;
        sink.out(&vec![b'x'; ROOM_BYTES + 1]);
        sink.out(b"more");
        assert!(sink.is_full());
        let waiter = sink.clone();
        let room = tokio::spawn(async move { waiter.room().await });
        for _ in 0..8 {
            permit.send(usize::MAX).unwrap();
        }
        room.await.unwrap();
        printer.finish(&CancellationToken::new()).unwrap();
        assert_eq!(seen.lock().unwrap().len(), ROOM_BYTES + 5);
    }

    #[tokio::test]
    async fn a_hold_begins_when_everything_is_written_and_keeps_back_what_comes_after() {
        let (out, err) = (Kept::default(), Kept::default());
        let printer = Printer::over(out.clone(), err.clone(), CancellationToken::new()).unwrap();
        let sink = printer.sink();
        for n in 0..100 {
            sink.out(format!("{n}.").as_bytes());
        }
        let hold = sink.hold().await;
        let before: String = (0..100).map(|n| format!("{n}.")).collect();
        let seen = || String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert_eq!(seen(), before);
        sink.err(b"note");
        sink.out(b"after");
        std::thread::yield_now();
        assert_eq!((seen(), err.0.lock().unwrap().len()), (before.clone(), 0));
        drop(hold);
        // The next hold begins when what waited is written.
        drop(sink.hold().await);
        assert_eq!((seen(), err.0.lock().unwrap().as_slice()), (before.clone() + "after", &b"note"[..]));
        let _held_for_ever = sink.hold().await;
        sink.out(b"!");
        printer.finish(&CancellationToken::new()).unwrap();
        assert_eq!(seen(), before + "after!", "the end waits for no hold");
    }

    #[test]
    fn a_reader_that_went_away_fires_once_and_room_is_free_again() {
        let (permit, permits) = mpsc::channel();
        drop(permit);
        let closed = CancellationToken::new();
        let out = Gated { permits, seen: Arc::default() };
        let err = Kept::default();
        let printer = Printer::over(out, err.clone(), closed.clone()).unwrap();
        let sink = printer.sink();
        sink.out(&vec![b'x'; ROOM_BYTES * 2]);
        sink.err(b"still here");
        printer.finish(&CancellationToken::new()).unwrap();
        assert!(closed.is_cancelled() && sink.is_closed());
        assert!(!sink.is_full());
        assert_eq!(err.0.lock().unwrap().as_slice(), b"still here");
    }

    #[test]
    fn a_reader_that_takes_nothing_is_given_up_on_once_somebody_asked_to_end() {
        let (permit, permits) = mpsc::channel();
        let out = Gated { permits, seen: Arc::default() };
        let printer = Printer::over(out, Kept::default(), CancellationToken::new()).unwrap();
        printer.sink().out(b"never read");
        let hurry = CancellationToken::new();
        hurry.cancel();
        printer.finish(&hurry).unwrap();
        drop(permit);
    }
}
