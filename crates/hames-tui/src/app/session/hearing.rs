//! Events of the session that is shown: to the conversation, to what is known of it, and to whoever does not look.

use hames_protocol::{Envelope, Event, Mode, RunResult};

use crate::app::{App, refresh};
use crate::{Effect, layers};

/// A run that took this long is worth a notice when nobody looks.
const LONG_RUN: u64 = 10_000;

impl App {
    /// Events of the session that is shown.
    pub(in crate::app) fn heard(&mut self, news: &[Envelope], now: u64, effects: &mut Vec<Effect>) {
        let session = self.face.session.clone();
        // What is still on its way of another one is not for this screen.
        let ours = |envelope: &&Envelope| envelope.session.is_none() || envelope.session == session;
        let news: Vec<Envelope> = news.iter().filter(ours).cloned().collect();
        let (mut is_stale, mut asks) = (false, false);
        let is_asking = layers::asks(&self.layers);
        for envelope in &news {
            self.stop.heard(&envelope.event);
            self.notify(envelope, effects);
            asks |= match &envelope.event {
                Event::ApprovalAsked(_) | Event::QuestionAsked(_) => true,
                Event::RunDone(_) => is_asking || self.face.mode() == Mode::Analyze,
                // Another client may have decided.
                Event::ApprovalAnswered(_)
                | Event::QuestionAnswered(_)
                | Event::ChangesApplied(_)
                | Event::ChangesDiscarded(_)
                | Event::SessionCut(_) => is_asking,
                _ => false,
            };
            if let Some(view) = &mut self.face.view {
                is_stale |= refresh::fold(view, envelope);
            }
        }
        self.base.talk().apply(&news);
        if is_stale {
            self.look(now, effects);
        }
        if asks {
            self.look_for_questions(effects);
        }
    }

    /// Says what ended, or waits, while nobody looks.
    fn notify(&self, envelope: &Envelope, effects: &mut Vec<Effect>) {
        if self.face.is_focused || !envelope.agent.is_empty() {
            return;
        }
        let Some(view) = &self.face.view else { return };
        let Some(run) = &view.run else { return };
        let what = match &envelope.event {
            Event::RunDone(_) if envelope.at.saturating_sub(run.started_at) < LONG_RUN => return,
            Event::RunDone(done) => match done.result {
                RunResult::Complete => "is done",
                RunResult::Interrupted => return,
                _ => "has stopped",
            },
            Event::ApprovalAsked(_) => "asks whether a call may run",
            Event::QuestionAsked(_) => "has a question",
            _ => return,
        };
        effects.push(Effect::Notify(format!("{} {what}", view.row.name)));
    }
}
