//! What is known of a session is kept true by its events where they say it, and read again where they do not.

use hames_protocol::api::{OpenRun, SessionView};
use hames_protocol::{Delivery, Envelope, Event, Pending, Settings};

/// Takes an event into the view; `true` where the view has to be read again to be right.
pub(super) fn fold(view: &mut SessionView, envelope: &Envelope) -> bool {
    if let Some(seq) = envelope.seq {
        if seq <= view.row.last_seq {
            return false;
        }
        view.row.last_seq = seq;
    }
    if !envelope.agent.is_empty() {
        return false;
    }
    match &envelope.event {
        Event::RunStart(start) => {
            if let Some(run) = &envelope.run {
                view.run = Some(OpenRun {
                    run: run.clone(),
                    turn: envelope.turn.unwrap_or_default(),
                    mode: start.mode,
                    model: start.model.clone(),
                    step: 0,
                    started_at: envelope.at,
                    doing: "thinking".into(),
                    finishing: Vec::new(),
                });
            }
            view.next_run.clear();
            true
        }
        Event::RunDone(_) => {
            view.run = None;
            true
        }
        Event::StepStart(_) => {
            doing(view, "thinking".into());
            if let (Some(run), Some(step)) = (&mut view.run, envelope.step) {
                run.step = step;
            }
            false
        }
        Event::TextDelta(_) => {
            doing(view, "answering".into());
            false
        }
        Event::ToolStart(start) => {
            doing(view, start.name.clone());
            false
        }
        Event::ApprovalAsked(_) | Event::QuestionAsked(_) => {
            doing(view, "waiting for you".into());
            false
        }
        Event::PendingAdded(pending) => {
            if view.pending.iter().all(|other| other.id != pending.id) {
                // What joins the run is delivered ahead of the queue.
                let is_queued = |other: &Pending| other.delivery == Delivery::Queue;
                let first = view.pending.iter().position(is_queued).filter(|_| !is_queued(pending));
                view.pending.insert(first.unwrap_or(view.pending.len()), pending.clone());
            }
            false
        }
        Event::PendingCancelled(cancelled) => {
            view.pending.retain(|pending| pending.id != cancelled.id);
            false
        }
        Event::PendingPaused(paused) => {
            view.paused = paused.paused;
            false
        }
        Event::MessageUser(message) => {
            if let Some(id) = &message.pending_id {
                view.pending.retain(|pending| pending.id != *id);
            }
            false
        }
        Event::TodoUpdated(updated) => {
            view.todos.clone_from(&updated.todos);
            false
        }
        Event::SessionRenamed(renamed) => {
            view.row.name.clone_from(&renamed.name);
            false
        }
        Event::SettingsChanged(changed) => {
            view.settings = view.settings.without(&changed.unset).patched(&changed.settings);
            if changed.settings != Settings::default() {
                view.effective = view.effective.patched(&changed.settings);
            }
            true
        }
        // The fill of the window, the order of what waits, the proposals: the server computes them.
        Event::StepDone(_)
        | Event::PendingEdited(_)
        | Event::ChangeProposed(_)
        | Event::ChangesApplied(_)
        | Event::ChangesDiscarded(_)
        | Event::CompactionDone(_)
        | Event::SessionCut(_)
        | Event::SessionMoved(_)
        | Event::Unknown(_) => true,
        _ => false,
    }
}

fn doing(view: &mut SessionView, what: String) {
    if let Some(run) = &mut view.run {
        run.doing = what;
    }
}
