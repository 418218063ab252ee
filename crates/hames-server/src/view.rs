//! A session as clients see it, made of its state.

use hames_context::Budget;
use hames_protocol::api::{OpenRun, PendingList, ProposalsAsked, SessionRow, SessionView, WindowFill};
use hames_protocol::{Delivery, Pending, SessionState, Settings};

use crate::Host;

/// Everything but the conversation. `next_run` names the settings that differ from those of the run that goes on.
pub(crate) fn of(
    host: &dyn Host,
    state: SessionState,
    row: SessionRow,
    run: Option<OpenRun>,
    next_run: Vec<String>,
) -> SessionView {
    let effective = host.effective(state.folder.as_ref(), &state.settings);
    let PendingList { pending, paused } = listed(&state);
    SessionView {
        window: window(host, &state, &effective),
        row,
        effective,
        run,
        next_run,
        pending,
        paused,
        proposals: state.open_changes().map(str::to_owned).collect(),
        settings: state.settings,
        todos: state.todos,
    }
}

fn window(host: &dyn Host, state: &SessionState, effective: &Settings) -> WindowFill {
    let info = host.model_info(effective);
    let stated = effective.context_window.or(info.as_ref().map(|info| info.context_window)).unwrap_or_default();
    let model = effective.model.as_ref().or(info.as_ref().map(|info| &info.model));
    let limit = model.and_then(|model| state.limits.get(&model.to_string())).copied();
    let window = limit.map_or(stated, |limit| limit.min(stated));
    let wanted_output = effective.max_output_tokens.or(info.map(|info| info.max_output_tokens)).unwrap_or_default();
    let usable = Budget { window, wanted_output }.usable();
    WindowFill { used: state.fill.unwrap_or_default(), usable, window }
}

/// Steers and interrupts that wait.
pub(crate) fn is_for_a_run(pending: &Pending) -> bool {
    pending.delivery != Delivery::Queue
}

/// What waits, in the order of delivery.
pub(crate) fn listed(state: &SessionState) -> PendingList {
    let (mut pending, queued): (Vec<_>, Vec<_>) = state.pending.iter().cloned().partition(is_for_a_run);
    pending.extend(queued);
    PendingList { pending, paused: state.paused }
}

/// What a person is asked about the proposals of the last run.
pub(crate) fn asked(state: &SessionState) -> Option<ProposalsAsked> {
    let run = state.undecided.clone()?;
    Some(ProposalsAsked { run, paths: state.open_changes().map(str::to_owned).collect() })
}
