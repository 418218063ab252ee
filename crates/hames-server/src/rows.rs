//! Rows of lists.

use std::path::Path;

use hames_protocol::api::{SessionActivity, SessionRow};
use hames_store::SessionInfo;

use crate::glance::Glance;

/// What a session that is open here is about. `asked` is set where a run left proposals to decide about.
pub(crate) fn activity(glance: &Glance, asked: bool) -> SessionActivity {
    match (glance.waits(), glance.is_running()) {
        (true, _) => SessionActivity::WaitingForYou,
        (false, true) => SessionActivity::Running,
        (false, false) if asked => SessionActivity::WaitingForYou,
        (false, false) => SessionActivity::Idle,
    }
}

/// A row.
pub(crate) fn row(info: SessionInfo, state: SessionActivity, pending: usize, held_by: Option<String>) -> SessionRow {
    SessionRow {
        folder_missing: !Path::new(&info.folder).is_dir(),
        id: info.id,
        name: info.name,
        folder: info.folder,
        created_at: info.created_at,
        updated_at: info.updated_at,
        last_seq: info.last_seq,
        turns: info.turns,
        model: info.model,
        mode: info.mode,
        first_line: info.first_line,
        state: if held_by.is_some() { SessionActivity::Elsewhere } else { state },
        pending: u32::try_from(pending).unwrap_or(u32::MAX),
        held_by,
    }
}
