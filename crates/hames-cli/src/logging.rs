//! The log file: one line for every step, a little more for what went wrong. With `HAMES_DEBUG=1` also the request
//! bodies. Known keys are masked in every line.
//!
//! Nothing is opened before the first line, so a command that logs nothing costs nothing. A log that cannot be written
//! is no reason to stop: it is for looking into trouble, not part of the work.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hames_agent::{Clock, SystemClock};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::clock::utc_stamp;
use crate::config::Masks;
use crate::home::create_private;

/// Bytes after which a file is put aside.
const MAX_FILE_BYTES: u64 = 5 * 1024 * 1024;
/// Files kept: the one being written and the ones put aside.
const MAX_FILES: u32 = 3;
/// Bytes of one line: a request body may be large, and a log of one body is no log.
const MAX_LINE_BYTES: usize = 1024 * 1024;
/// Only our own crates are heard.
const OURS: &str = "hames";

/// Starts logging for the process.
pub(crate) fn start(folder: PathBuf, masks: Masks, debug: bool) {
    let log =
        Log { level: if debug { Level::DEBUG } else { Level::INFO }, file: Mutex::new(Rotating::new(folder)), masks };
    // Fails only where logging was started before, and then it is running.
    let _ = tracing::subscriber::set_global_default(log);
}

struct Log {
    level: Level,
    file: Mutex<Rotating>,
    masks: Masks,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level && metadata.target().starts_with(OURS) && !metadata.is_span()
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level.into())
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line =
            format!("{} {} {}", utc_stamp(SystemClock.now_ms()), event.metadata().level(), event.metadata().target());
        event.record(&mut Fields(&mut line));
        let masked = self.masks.mask(&line);
        let mut end = masked.len().min(MAX_LINE_BYTES);
        while !masked.is_char_boundary(end) {
            end -= 1;
        }
        let mut out = masked[..end].replace(['\n', '\r'], " ");
        out.push('\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write(out.as_bytes());
    }
}

struct Fields<'l>(&'l mut String);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value}"),
            name => write!(self.0, " {name}={value}"),
        };
    }
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A file that is put aside when it is full. Several processes may write it: each line is one append.
#[derive(Debug)]
struct Rotating {
    folder: PathBuf,
    file: Option<(File, u64)>,
}

impl Rotating {
    fn new(folder: PathBuf) -> Self {
        Self { folder, file: None }
    }

    fn write(&mut self, line: &[u8]) {
        if self.file.as_ref().is_some_and(|(_, size)| size + line.len() as u64 > MAX_FILE_BYTES) {
            self.file = None;
        }
        if self.file.is_none() {
            self.file = open(&self.folder);
        }
        if let Some((file, size)) = &mut self.file {
            match file.write_all(line) {
                Ok(()) => *size += line.len() as u64,
                Err(_) => self.file = None,
            }
        }
    }
}

fn open(folder: &Path) -> Option<(File, u64)> {
    create_private(folder).ok()?;
    let path = folder.join("hames.log");
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() + MAX_LINE_BYTES as u64 > MAX_FILE_BYTES) {
        put_aside(folder);
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).ok()?;
    let size = file.metadata().ok()?.len();
    Some((file, size))
}

/// Renames `hames.log` to `hames.log.1` and so on; the oldest goes.
fn put_aside(folder: &Path) {
    let name = |n: u32| folder.join(if n == 0 { "hames.log".into() } else { format!("hames.log.{n}") });
    for n in (0..MAX_FILES - 1).rev() {
        // A file that is not there has nothing to be put aside.
        let _ = std::fs::rename(name(n), name(n + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_the_newest_lines_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("logs");
        let mut log = Rotating::new(folder.clone());
        let filler = vec![b'.'; 300_000];
        for n in 0..100 {
            log.write(format!("{n} {}\n", String::from_utf8_lossy(&filler)).as_bytes());
        }
        let sizes: Vec<u64> = ["hames.log", "hames.log.1", "hames.log.2"]
            .iter()
            .map(|name| std::fs::metadata(folder.join(name)).unwrap().len())
            .collect();
        assert!(sizes.iter().all(|size| *size <= MAX_FILE_BYTES), "{sizes:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
        assert!(std::fs::read_to_string(folder.join("hames.log")).unwrap().contains("99 ..."));
    }

    #[test]
    fn lines_of_ours_are_written_with_keys_masked() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log {
            level: Level::INFO,
            file: Mutex::new(Rotating::new(dir.path().into())),
            masks: Masks::of(vec!["sk-secret-secret".into()]),
        };
        tracing::subscriber::with_default(log, || {
            tracing::info!(target: "hames::step", number = 3, key = "sk-secret-secret", "done\nwith it");
            tracing::debug!(target: "hames::model", "only when asked for");
            tracing::info!(target: "hyper", "not ours");
        });
        let text = std::fs::read_to_string(dir.path().join("hames.log")).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("INFO hames::step done with it number=3"), "{text}");
        assert!(!text.contains("sk-secret"), "{text}");
    }
}
