//! A run as JSON lines: the envelopes exactly as the log has them, one a line, each batch written at once.

use std::io::Write;

use hames_agent::{Clock, SystemClock};
use hames_protocol::{Envelope, Event, Failure, RunDone, RunResult};

use super::printer::Sink;
use crate::exit::Stop;

/// Renders batches of envelopes.
#[derive(Debug)]
pub(crate) struct JsonLines {
    sink: Sink,
    deltas: bool,
    buffer: Vec<u8>,
}

/// Whether live pieces are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deltas {
    Shown,
    LeftOut,
}

impl JsonLines {
    pub(crate) fn new(sink: Sink, deltas: Deltas) -> Self {
        Self { sink, deltas: deltas == Deltas::Shown, buffer: Vec::new() }
    }

    /// Prints a batch.
    pub(crate) fn see(&mut self, batch: &[Envelope]) {
        self.buffer.clear();
        for envelope in batch {
            if self.deltas || envelope.event.is_durable() {
                line(envelope, &mut self.buffer);
            }
        }
        self.sink.out(&self.buffer);
    }
}

fn line(envelope: &Envelope, out: &mut Vec<u8>) {
    let start = out.len();
    match serde_json::to_writer(&mut *out, envelope) {
        Ok(()) => out.push(b'\n'),
        // Only a map with keys that are no strings cannot be written, and an envelope has none.
        Err(_) => out.truncate(start),
    }
}

/// What is printed where no run came to be: the failure and the end, without session and run.
fn failed_before_a_run(at: u64, failure: &Failure, exit_code: u8) -> Vec<u8> {
    let end = RunDone { result: RunResult::Error, exit_code: i32::from(exit_code) };
    let mut out = Vec::new();
    line(&Envelope::detached(at, Event::Error(failure.clone())), &mut out);
    line(&Envelope::detached(at, Event::RunDone(end)), &mut out);
    out
}

/// Prints the end of a command that came to no run. Nobody is told where standard output is closed.
pub(crate) fn print_failure(stop: &Stop) {
    if let Stop::Failed(failure) = stop {
        let lines = failed_before_a_run(SystemClock.now_ms(), failure, stop.code());
        let _ = std::io::stdout().write_all(&lines);
    }
}

#[cfg(test)]
mod tests {
    use hames_protocol::ErrorClass;

    use super::*;

    #[test]
    fn a_failure_before_a_run_is_an_error_and_a_run_done_without_session() {
        let bytes = failed_before_a_run(7, &Failure::new(ErrorClass::Usage, "no"), 2);
        let lines: Vec<serde_json::Value> =
            String::from_utf8(bytes).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        for line in &lines {
            for null in ["seq", "session", "run", "turn", "step"] {
                assert_eq!(line[null], serde_json::Value::Null, "{null}");
            }
            assert_eq!((line["v"].as_u64(), line["at"].as_u64()), (Some(1), Some(7)));
        }
        assert_eq!(lines[0]["event"]["type"], "error");
        assert_eq!(lines[0]["event"]["class"], "usage");
        assert_eq!(lines[1]["event"]["type"], "run.done");
        assert_eq!(lines[1]["event"]["exit_code"], 2);
        assert_eq!(lines[1]["event"]["result"], "error");
    }
}
