//! Finding the server of a home, and starting one.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hames_client::{Client, ClientError, Finder, Place, Starter};
use hames_protocol::SessionId;
use hames_protocol::api::{ApiErrorCode, StopServer};
use hames_store::Store;
use tokio::time::Instant;

use super::{HOLDER, holder};
use crate::engine::myself;
use crate::exit::Stop;
use crate::home::Home;

/// Between two looks whether a server that is stopping is gone.
const LOOK: Duration = Duration::from_millis(20);
/// How long a server may take to end its runs and leave.
const LEAVE_LIMIT: Duration = Duration::from_secs(30);

/// Looks for the server of this home; starts none.
pub(crate) fn finder(home: &Home) -> Finder {
    Finder::new(Place::of(home.data()))
}

/// Whether the local server holds the session.
pub(crate) fn holds(store: &Store, session: &SessionId) -> Result<bool, Stop> {
    Ok(store.in_use()?.iter().any(|held| held.session == *session && held.holder == HOLDER))
}

/// The server, where it holds the session: what a command changes of it goes there. `None` where it does not, or has just
/// gone, and the command takes the session itself.
pub(crate) async fn server_of(store: &Store, home: &Home, session: &SessionId) -> Result<Option<Client>, Stop> {
    if !holds(store, session)? {
        return Ok(None);
    }
    match finder(home).connect().await {
        Ok(found) => Ok(Some(found.client)),
        Err(ClientError::Unreachable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Has the server leave, where nothing runs in it: a database that has to be upgraded or repaired is nobody else's
/// meanwhile. Whether it did; an error says what runs.
pub(crate) fn gives_way(home: &Home) -> Result<bool, Stop> {
    crate::commands::runtime()?.block_on(async {
        let Ok(found) = finder(home).connect().await else { return Ok(false) };
        let pid = found.health.pid;
        match found.client.stop_server(&StopServer { force: false, when_idle: false }).await {
            Ok(_) => until_gone(home, pid, false).await.map(|()| true),
            Err(ClientError::Refused(refusal)) if refusal.code == ApiErrorCode::Busy => Err(Stop::storage(format!(
                "the session database has to be upgraded or repaired, and the server (process {pid}) uses it: {} \
                 `hames server stop --when-idle` waits",
                refusal.message
            ))),
            Err(_) => Ok(false),
        }
    })
}

/// Waits until the server with this pid has let go of the home; for ever where it waits for its runs.
pub(crate) async fn until_gone(home: &Home, pid: u32, for_ever: bool) -> Result<(), Stop> {
    let place = Place::of(home.data());
    let begun = Instant::now();
    // Its lock goes last, so that the next one finds the way free.
    while holder(&place).is_some_and(|note| note.pid == pid) {
        if begun.elapsed() > LEAVE_LIMIT && !for_ever {
            return Err(Stop::storage(format!(
                "the server does not end (process {pid}); `kill {pid}` asks it again, a second one ends it at once"
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Starts a server as `hames serve` does: the command ends when the server answers, and says what is wrong where it does
/// not. It inherits this process's environment and nothing else.
pub(crate) fn starter(args: &[String]) -> Starter {
    start_with(args.to_vec(), Stdio::inherit)
}

/// The same, for a face that has the terminal for itself: what is wrong is in the server's log.
pub(crate) fn quiet_starter() -> Starter {
    start_with(Vec::new(), Stdio::null)
}

fn start_with(args: Vec<String>, errors: fn() -> Stdio) -> Starter {
    Arc::new(move || {
        let program = myself().ok_or_else(|| std::io::Error::other("this program cannot be found"))?;
        Command::new(program)
            .arg("serve")
            .args(&args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors())
            .spawn()
    })
}
