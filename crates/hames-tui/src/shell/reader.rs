//! Reads the terminal on a thread of its own, which sleeps in the kernel until something comes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::decode::{Decoder, Token};

/// How long a lone escape waits for what may belong to it.
const ESCAPE_WAIT: Duration = Duration::from_millis(25);
/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Bytes of one burst; more is another one.
const MAX_BURST: usize = 8 * 1024 * 1024;
/// Bursts that wait to be taken; the terminal waits beyond them.
const WAITING: usize = 16;

/// What was read.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Everything that was there to be read at once.
    Burst(Vec<Token>),
    /// The terminal is gone.
    Gone,
}

/// The thread; dropping it ends the reading at once.
pub(crate) struct Reader {
    heard: Option<mpsc::Receiver<Heard>>,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Reads a terminal from now on. What a reader before this one had begun to read is lost with it.
    pub(crate) fn start(terminal: OwnedFd) -> io::Result<Reader> {
        let (heard_by, heard) = mpsc::channel(WAITING);
        let (stopped, stop) = io::pipe()?;
        let stopped = OwnedFd::from(stopped);
        let thread = std::thread::Builder::new().name("keys".into()).spawn(move || {
            let mut reading = Reading { terminal, stopped, decoder: Decoder::default() };
            while let Some(burst) = reading.burst() {
                if !burst.is_empty() && heard_by.blocking_send(Heard::Burst(burst)).is_err() {
                    return;
                }
            }
            // Nobody may be there to hear it.
            let _ = heard_by.blocking_send(Heard::Gone);
        })?;
        Ok(Reader { heard: Some(heard), stop: Some(stop.into()), thread: Some(thread) })
    }

    /// The next thing; dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Heard {
        match &mut self.heard {
            Some(heard) => heard.recv().await.unwrap_or(Heard::Gone),
            None => Heard::Gone,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // In this order: a thread that waits to be heard must not be waited for.
        drop(self.heard.take());
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reading {
    terminal: OwnedFd,
    stopped: OwnedFd,
    decoder: Decoder,
}

enum Ready {
    Bytes,
    Late,
    Stopped,
}

impl Reading {
    /// Waits for something and takes all of it; `None` when there is nothing more to come.
    fn burst(&mut self) -> Option<Vec<Token>> {
        let (mut tokens, mut bytes, mut size) = (Vec::new(), vec![0; READ], 0);
        match self.wait(None) {
            Ready::Bytes => {}
            Ready::Late | Ready::Stopped => return None,
        }
        loop {
            let read = match rustix::io::read(self.terminal.as_fd(), &mut bytes) {
                Ok(0) => return None,
                Ok(read) => read,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => 0,
                Err(_) => return None,
            };
            size += read;
            self.decoder.feed(&bytes[..read], &mut tokens);
            let wait = if self.decoder.is_waiting() { ESCAPE_WAIT } else { Duration::ZERO };
            match self.wait(Some(wait)) {
                Ready::Bytes if size < MAX_BURST => {}
                Ready::Bytes => return Some(tokens),
                Ready::Late => {
                    self.decoder.settle(&mut tokens);
                    return Some(tokens);
                }
                Ready::Stopped => return None,
            }
        }
    }

    fn wait(&self, limit: Option<Duration>) -> Ready {
        let until = limit.map(|limit| Instant::now() + limit);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec { tv_sec: 0, tv_nsec: left.as_nanos().min(999_999_999) as _ });
            let mut both = [readable(self.terminal.as_fd()), readable(self.stopped.as_fd())];
            match poll(&mut both, left.as_ref()) {
                Ok(0) => return Ready::Late,
                Ok(_) if !both[1].revents().is_empty() => return Ready::Stopped,
                Ok(_) => return Ready::Bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Ready::Stopped,
            }
        }
    }
}

fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(fd, PollFlags::IN)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn what_is_there_at_once_is_one_burst_and_the_end_is_said() {
        let (read, mut write) = io::pipe().unwrap();
        let mut reader = Reader::start(read.into()).unwrap();
        write.write_all(b"ab\x1b[A").unwrap();
        let Heard::Burst(tokens) = reader.next().await else { panic!("gone") };
        assert_eq!(tokens.len(), 3);
        write.write_all(b"\x1b").unwrap();
        assert!(matches!(reader.next().await, Heard::Burst(tokens) if tokens.len() == 1));
        drop(write);
        assert!(matches!(reader.next().await, Heard::Gone));
    }

    #[test]
    fn dropping_it_ends_the_thread_although_nothing_comes() {
        let (read, write) = io::pipe().unwrap();
        drop(Reader::start(read.into()).unwrap());
        drop(write);
    }
}
