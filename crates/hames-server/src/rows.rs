//! Rows of lists.

use std::path::Path;

use hames_protocol::api::{SessionActivity, SessionRow};
use hames_store::SessionInfo;

use crate::glance::Glance;

/// What a session is about: what goes on in it where it is open here, else what its row says.
pub(crate) fn activity(glance: Option<&Glance>, info: &SessionInfo) -> SessionActivity {
    match glance {
        Some(glance) if glance.waits() => SessionActivity::WaitingForYou,
        Some(glance) if glance.is_running() => SessionActivity::Running,
        _ if info.undecided => SessionActivity::WaitingForYou,
        _ => SessionActivity::Idle,
    }
}

/// A row.
pub(crate) fn row(info: SessionInfo, state: SessionActivity, held_by: Option<String>) -> SessionRow {
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
        last_result: info.last_result,
        pending: info.pending,
        held_by,
    }
}
