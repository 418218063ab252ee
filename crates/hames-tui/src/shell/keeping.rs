//! When what is written is kept in files: soon after a change, at most once a second, and on every way out.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::io::Io;
use crate::keep::Keeper;
use crate::{App, Input, Spot};

/// Somebody who types goes on typing for a moment.
const SOON: Duration = Duration::from_millis(300);
/// Between two times at least.
const SELDOM: Duration = Duration::from_secs(1);

/// What is known of what the files hold.
pub(super) struct Keeping {
    keeper: Option<Keeper>,
    /// What was kept last, and when.
    mark: (u64, usize, u64),
    kept_at: Option<Instant>,
    due: Option<Instant>,
}

impl Keeping {
    /// Without a folder nothing is kept.
    pub(super) fn start(folder: Option<PathBuf>, seed: String, io: &Io) -> io::Result<Self> {
        let keeper = folder.map(|folder| Keeper::start(folder, seed, io.heard_by())).transpose()?;
        Ok(Self { keeper, mark: (0, 0, 0), kept_at: None, due: None })
    }

    /// Something happened: there may be something to keep.
    pub(super) fn note(&mut self, app: &mut App, now: Instant) {
        if self.keeper.is_none() || self.due.is_some() {
            return;
        }
        let mark = app.written_mark();
        if mark != self.mark {
            let earliest = self.kept_at.map_or(now, |kept| kept + SELDOM);
            self.due = Some(earliest.max(now + SOON));
        }
    }

    /// When something is to be kept.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Keeps what is due.
    pub(super) fn tend(&mut self, app: &mut App, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.now(app);
        }
    }

    /// Keeps whatever there is.
    pub(super) fn now(&mut self, app: &mut App) {
        let Some(keeper) = &self.keeper else { return };
        keeper.save(app.unsaved());
        (self.due, self.kept_at, self.mark) = (None, Some(Instant::now()), app.written_mark());
    }

    /// Asks for what was written in a place before.
    pub(super) fn recall(&self, spot: Spot, folder: String) {
        if let Some(keeper) = &self.keeper {
            keeper.recall(spot, folder);
        }
    }

    /// Keeps everything, and returns when it is kept. Nobody hears of the files any more.
    pub(super) fn end(mut self, app: &mut App, heard: mpsc::Receiver<Input>) {
        self.now(app);
        drop(heard);
        drop(self.keeper.take());
    }
}
