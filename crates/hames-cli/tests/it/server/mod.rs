//! The local server as a process: its life, what `hames run` shows of it, and its deaths.

mod ages;
mod cuts;
mod death;
mod deciding;
mod join;
mod life;
mod load;
mod providers;
mod proxy;
mod reconnect;
mod through;
mod titles;

use std::path::Path;

use hames_client::{Client, Finder, News, Place};
use hames_protocol::api::{CreateSession, SendMessage, Sent};
use hames_protocol::{Delivery, Mode, Part, SessionId, Settings};

use crate::kit::{Ended, PATIENCE, User, until};

/// A server of this user, ended with the test.
pub(super) struct Server<'u> {
    user: &'u User,
    pub(super) pid: u32,
}

impl Server<'_> {
    /// Starts one in the background, as a person does.
    pub(super) fn start<'u>(user: &'u User, args: &[&str]) -> Server<'u> {
        user.ok(&[&["serve"], args].concat());
        Server { user, pid: pid_of(user) }
    }

    /// Kills it; returns when it is gone.
    pub(super) fn kill(&self) {
        send(self.pid, "KILL");
        until("the server's death", || !is_alive(self.pid));
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let ended = self.user.run(&["server", "stop", "--now"]);
        if ended.code != 0 || is_alive(pid_in_lock(self.user)) {
            send(pid_in_lock(self.user), "KILL");
        }
    }
}

/// Sends a signal to a process, which may be gone.
pub(super) fn send(pid: u32, name: &str) {
    if pid > 1 {
        let _ = std::process::Command::new("kill")
            .args([&format!("-{name}"), &pid.to_string()])
            .stderr(std::process::Stdio::null())
            .status();
    }
}

pub(super) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// The process that says it is the server.
pub(super) fn pid_of(user: &User) -> u32 {
    let status = &user.ok(&["server", "status", "--json"]).json()[0];
    u32::try_from(status["health"]["pid"].as_u64().unwrap()).unwrap()
}

fn pid_in_lock(user: &User) -> u32 {
    let note = std::fs::read_to_string(user.home().join("run/server.lock")).unwrap_or_default();
    let note: serde_json::Value = serde_json::from_str(&note).unwrap_or_default();
    note["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

/// Runs something that waits, in the time of a test.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("it takes for ever") })
}

pub(super) fn finder(user: &User) -> Finder {
    Finder::new(Place::of(&user.home()))
}

pub(super) async fn client(user: &User) -> Client {
    finder(user).connect().await.unwrap().client
}

/// A session that the server holds.
pub(super) async fn session(client: &Client, folder: &Path, name: &str, mode: Mode) -> SessionId {
    let settings = Settings { mode: Some(mode), ..Settings::default() };
    let folder = folder.to_str().unwrap().to_owned();
    let made = client.create_session(&CreateSession { folder, name: Some(name.into()), settings }).await.unwrap();
    made.row.id
}

/// Sends a message as a face does.
pub(super) async fn message(client: &Client, id: &SessionId, text: &str, delivery: Delivery) -> Sent {
    let message = SendMessage { parts: vec![Part::text(text)], delivery, idempotency_id: None, terms: None };
    client.send(id, &message).await.unwrap()
}

/// The log of a session.
pub(super) fn log(user: &User, name: &str) -> Ended {
    user.ok(&["sessions", "show", name, "--json"])
}

/// Makes the server hold the session: somebody looks at it.
pub(super) fn hold(user: &User, name: &str) {
    let sessions = user.sessions();
    let id = sessions.iter().find(|session| session["name"] == name).unwrap()["id"].as_str().unwrap().to_owned();
    wait(async {
        let mut news = client(user).await.events(&id.as_str().into(), 0);
        while news.next().await.unwrap() != News::Connected {}
    });
    until("the server's hold", || {
        let sessions = user.sessions();
        let session = sessions.iter().find(|session| session["name"] == name).unwrap();
        session["held_by"].as_str().is_some_and(|by| by.starts_with("hames server"))
    });
}
