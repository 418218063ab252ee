//! Becoming a process of its own: no terminal, no folder, no descriptor of whoever started it.
//!
//! The starter waits until the server answers, or says why it does not; so whoever starts one knows at once. What stays of
//! the starter is its environment and its umask: commands of the agent make files as the person's own commands do.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hames_protocol::{ErrorClass, Failure};

use crate::exit::Stop;
use crate::home::create_private;
use crate::sys::{self, Side};

/// Bytes of a report: a failure in words.
const MAX_REPORT: u64 = 64 * 1024;

/// What the detached process tells its starter.
#[derive(Debug)]
pub(crate) enum Report {
    /// It answers, or another one does: what to tell whoever asked.
    Ready(String),
    /// It does not, and why.
    Failed(Stop),
}

/// Where the detached process tells it. Dropping it without a word tells that it died.
#[derive(Debug)]
pub(crate) struct Teller(PipeWriter);

impl Teller {
    /// Tells it. A starter that went away needs no telling.
    pub(crate) fn tell(mut self, report: &Report) {
        let line = match report {
            Report::Ready(said) => format!("ready\n{said}"),
            Report::Failed(Stop::Failed(failure)) => match serde_json::to_string(failure) {
                Ok(text) => format!("failed\n{text}"),
                Err(_) => "failed\n".into(),
            },
            Report::Failed(Stop::OutputClosed) => "failed\n".into(),
        };
        let _ = self.0.write_all(line.as_bytes());
    }
}

/// The two processes after a detaching.
pub(crate) enum Detached {
    /// The starter, with what it was told.
    Starter(Report),
    /// The new process.
    Server(Teller),
}

/// Detaches. Only while this process has one thread and no file of its own open.
pub(crate) fn detach(logs: &Path) -> Result<Detached, Stop> {
    let failed = |what: &str, e: io::Error| Stop::storage(format!("the server cannot be started: {what}: {e}"));
    sys::close_inherited();
    let (reader, writer) = io::pipe().map_err(|e| failed("no pipe", e))?;
    match sys::detach().map_err(|e| failed("no process", e))? {
        Side::Starter => {
            drop(writer);
            Ok(Detached::Starter(heard(reader, logs)))
        }
        Side::Detached => {
            drop(reader);
            settle(logs);
            Ok(Detached::Server(Teller(writer)))
        }
    }
}

/// Reads the report. The pipe's end without one is the server's death.
fn heard(reader: PipeReader, logs: &Path) -> Report {
    let mut text = String::new();
    // What cannot be read is no report.
    let _ = reader.take(MAX_REPORT).read_to_string(&mut text);
    let died = || {
        Report::Failed(Stop::from(Failure::new(
            ErrorClass::Internal,
            format!("the server ended while it started; {} may say why", logs.join("hames.log").display()),
        )))
    };
    match text.split_once('\n') {
        Some(("ready", said)) => Report::Ready(said.to_owned()),
        Some(("failed", failure)) => {
            serde_json::from_str::<Failure>(failure).map_or_else(|_| died(), |failure| Report::Failed(failure.into()))
        }
        _ => died(),
    }
}

/// Leaves the starter's folder and terminal. What fails here costs nothing but a held folder or a lost last word.
fn settle(logs: &Path) {
    let _ = std::env::set_current_dir("/");
    let nothing = || File::options().read(true).write(true).open("/dev/null");
    if let Ok(nothing) = nothing() {
        let _ = sys::put_behind(nothing.as_fd(), 0);
    }
    let log = create_private(logs)
        .and_then(|()| OpenOptions::new().append(true).create(true).mode(0o600).open(logs.join("hames.log")));
    if let Ok(log) = log.or_else(|_| nothing()) {
        for standard in [1, 2] {
            let _ = sys::put_behind(log.as_fd(), standard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_and_a_death_too() {
        let hear = |report: Option<Report>| {
            let (reader, writer) = io::pipe().unwrap();
            let teller = Teller(writer);
            match &report {
                Some(report) => teller.tell(report),
                None => drop(teller),
            }
            match heard(reader, Path::new("/logs")) {
                Report::Ready(said) => Ok(said),
                Report::Failed(Stop::Failed(failure)) => Err((failure.class, failure.message)),
                Report::Failed(Stop::OutputClosed) => unreachable!("nobody reads"),
            }
        };
        assert_eq!(hear(Some(Report::Ready("it runs\nhere".into()))), Ok("it runs\nhere".into()));
        let failed = hear(Some(Report::Failed(Stop::usage("no\nsuch folder"))));
        assert_eq!(failed, Err((ErrorClass::Usage, "no\nsuch folder".into())));
        let (class, message) = hear(None).unwrap_err();
        assert!(class == ErrorClass::Internal && message.contains("/logs/hames.log"), "{message}");
    }
}
