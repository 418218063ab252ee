//! Signals that end a run: the first asks it to end, the second ends the process at once.
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

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on.
    pub(crate) fn catch() -> std::io::Result<Signals> {
        let (reader, writer) = std::io::pipe()?;
        sys::catch_signals(writer.into(), &[sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP])?;
        let signals = Signals { abort: CancellationToken::new(), code: Arc::default(), first: Arc::default() };
        let of_thread = signals.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || of_thread.wait(reader))?;
        Ok(signals)
    }

    fn wait(&self, mut reader: PipeReader) {
        let mut number = [0];
        while reader.read_exact(&mut number).is_ok() {
            let number = i32::from(number[0]);
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
