//! Signals that end a run, or the server: the first asks it to end, the second ends the process at once.
//!
//! A thread of its own does the waiting, so that it works whatever the rest of the process is doing. The children die
//! with us in every case: the reaper sees our end.

use std::io::{PipeReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio_util::sync::CancellationToken;

use crate::sys;

/// What came in so far.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    /// Fires with the first signal.
    pub(crate) abort: CancellationToken,
    /// What the process exits with once `abort` fired.
    pub(crate) code: Arc<AtomicI32>,
    first: Arc<AtomicI32>,
}

/// What a hang-up means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HangUp {
    /// Whoever watched is gone: the same as being asked to end.
    Ends,
    /// Nothing: nobody watches a server.
    Harmless,
}

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on. One that is harmless is caught all the same: ignored, it would be
    /// ignored by every command too.
    pub(crate) fn catch(hang_up: HangUp) -> std::io::Result<Signals> {
        let (reader, writer) = std::io::pipe()?;
        sys::catch_signals(writer.into(), &[sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP])?;
        let signals = Signals { abort: CancellationToken::new(), code: Arc::default(), first: Arc::default() };
        let of_thread = signals.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || of_thread.wait(reader, hang_up))?;
        Ok(signals)
    }

    fn wait(&self, mut reader: PipeReader, hang_up: HangUp) {
        let mut number = [0];
        while reader.read_exact(&mut number).is_ok() {
            let number = i32::from(number[0]);
            if number == sys::HANG_UP && hang_up == HangUp::Harmless {
                continue;
            }
            if self.first.swap(number, Ordering::SeqCst) != 0 {
                sys::leave_now(exit_code(number));
            }
            self.code.store(exit_code(number), Ordering::SeqCst);
            self.abort.cancel();
        }
    }

    /// Whether a signal came.
    pub(crate) fn came(&self) -> bool {
        self.first.load(Ordering::SeqCst) != 0
    }
}

/// 128 and the number, as shells say it.
fn exit_code(number: i32) -> i32 {
    128 + number
}
