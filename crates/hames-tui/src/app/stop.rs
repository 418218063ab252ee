//! Stopping: once what runs in front, a second time everything; and leaving, which takes two.

use hames_protocol::Event;
use hames_protocol::api::{Abort, AbortScope};

use super::App;
use crate::{Action, Cx, Effect, Input, Sight};

/// How long the second key means more than the first.
const SECOND: u64 = 4_000;
const LEAVES: u64 = 2_000;

/// What was pressed before.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// When the run was asked to stop.
    asked_at: Option<u64>,
    is_stopping: bool,
    /// When the key that leaves the second time was pressed.
    armed_at: Option<u64>,
}

impl Stop {
    pub(super) fn forget(&mut self) {
        *self = Stop::default();
    }

    /// The run is over.
    pub(super) fn stopped(&mut self) {
        self.is_stopping = false;
    }

    pub(super) fn heard(&mut self, event: &Event) {
        if matches!(event, Event::RunStart(_)) {
            self.asked_at = None;
        }
        if matches!(event, Event::RunStart(_) | Event::RunDone(_)) {
            self.is_stopping = false;
        }
    }

    fn means_all(&self, now: u64) -> bool {
        self.asked_at.is_some_and(|at| now.saturating_sub(at) < SECOND)
    }

    fn means_leaving(&self, now: u64) -> bool {
        self.armed_at.is_some_and(|at| now.saturating_sub(at) < LEAVES)
    }

    /// When a hint of it goes.
    pub(super) fn due(&self, now: u64) -> Option<u64> {
        let all = self.asked_at.map(|at| at + SECOND);
        let leaves = self.armed_at.map(|at| at + LEAVES);
        all.into_iter().chain(leaves).filter(|at| *at > now).min()
    }

    pub(super) fn hint(&self, sight: Sight<'_>) -> Option<String> {
        let key = |action| sight.keys.hint(action);
        if self.means_leaving(sight.now) {
            return Some(format!("{} again leaves; sessions go on", key(Action::Interrupt)));
        }
        let all = self.means_all(sight.now).then(|| format!("{} again stops background work too", key(Action::Abort)));
        match (self.is_stopping, all) {
            (true, Some(all)) => Some(format!("stopping · {all}")),
            (true, None) => Some("stopping".into()),
            (false, all) => all,
        }
    }
}

impl App {
    /// The key that stops.
    pub(super) fn escape(&mut self, now: u64, effects: &mut Vec<Effect>) {
        if self.stop.means_all(now) {
            self.stop.asked_at = None;
            self.face.notice = Some("Background work is stopped too.".into());
            self.abort(Abort { scope: AbortScope::All, exit_code: None }, effects);
        } else if self.face.is_busy() {
            self.stop_run(now, effects);
        }
    }

    /// Stops what runs in front.
    pub(super) fn stop_run(&mut self, now: u64, effects: &mut Vec<Effect>) {
        self.stop.asked_at = Some(now);
        self.stop.is_stopping = true;
        self.abort(Abort { scope: AbortScope::Foreground, exit_code: None }, effects);
    }

    /// The key that stops what there is to stop, and leaves the second time. Whatever is on the screen, it is heard.
    pub(super) fn interrupt(&mut self, input: &Input, now: u64, effects: &mut Vec<Effect>) -> bool {
        if self.stop.means_leaving(now) {
            effects.push(Effect::Quit);
            return true;
        }
        self.stop.armed_at = Some(now);
        if self.face.is_busy() && !self.stop.is_stopping {
            self.stop_run(now, effects);
        } else if !self.layers.is_empty() {
            drop(self.layers.pop());
        } else {
            let Self { face, keys, base, next_ticket, .. } = self;
            let mut cx = Cx { face, keys, now, effects, next_ticket };
            base.handle(input, Some(Action::Interrupt), &mut cx);
        }
        true
    }
}
