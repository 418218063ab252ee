//! Finding the server of a home, and starting one.

use std::process::{Command, Stdio};
use std::sync::Arc;

use hames_client::{Client, ClientError, Finder, Place, Starter};
use hames_protocol::SessionId;
use hames_store::Store;

use super::HOLDER;
use crate::engine::myself;
use crate::exit::Stop;
use crate::home::Home;

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
