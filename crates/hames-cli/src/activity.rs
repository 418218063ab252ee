//! What each session is about now: whether it runs, waits for a person, and who holds it. Lease notes say who; where that
//! is the local server, it is asked for the rest.

use std::collections::HashMap;
use std::time::Duration;

use hames_protocol::SessionId;
use hames_protocol::api::SessionActivity;
use hames_store::Store;

use crate::exit::Stop;
use crate::home::Home;
use crate::server::{HOLDER, finder};

/// How long the server is waited for: a list that is nearly right at once is better than a whole one late.
const PATIENCE: Duration = Duration::from_secs(1);

/// One session's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) state: SessionActivity,
    /// Who holds it, as they call themselves, and their process.
    pub(crate) holder: String,
}

impl Activity {
    /// A word or two for people; `None` where nothing goes on.
    pub(crate) fn text(&self) -> Option<String> {
        match self.state {
            SessionActivity::Idle | SessionActivity::Unknown => None,
            SessionActivity::Running => Some("running".into()),
            SessionActivity::WaitingForYou => Some("waiting for you".into()),
            SessionActivity::Elsewhere => Some(format!("held by {}", self.holder)),
        }
    }
}

/// The sessions that somebody holds. In all others nothing goes on; what their rows say is what they are about.
pub(crate) fn of_sessions(store: &Store, home: &Home) -> Result<HashMap<SessionId, Activity>, Stop> {
    let held = store.in_use()?;
    let mut all: HashMap<SessionId, Activity> = held
        .iter()
        .map(|held| {
            let state = if held.holder == HOLDER { SessionActivity::Idle } else { SessionActivity::Elsewhere };
            let holder = format!("{} (process {})", held.holder, held.pid);
            (held.session.clone(), Activity { state, holder })
        })
        .collect();
    if held.iter().any(|held| held.holder == HOLDER) {
        let runtime = crate::commands::runtime()?;
        let asked = async { finder(home).connect().await?.client.sessions(None).await };
        // A server that is just leaving has nothing that goes on.
        if let Ok(Ok(listed)) = runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await }) {
            for row in listed.sessions {
                if let Some(activity) = all.get_mut(&row.id).filter(|known| known.state == SessionActivity::Idle) {
                    activity.state = row.state;
                }
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_on_is_said() {
        for (state, text) in [
            (SessionActivity::Idle, None),
            (SessionActivity::Unknown, None),
            (SessionActivity::Running, Some("running")),
            (SessionActivity::WaitingForYou, Some("waiting for you")),
            (SessionActivity::Elsewhere, Some("held by hames run (process 7)")),
        ] {
            let activity = Activity { state, holder: "hames run (process 7)".into() };
            assert_eq!(activity.text().as_deref(), text);
        }
    }
}
