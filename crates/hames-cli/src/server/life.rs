//! The life of the server: one for a home, from the lock to the last event.
//!
//! It ends when it is told to (a signal, `hames server stop`), or by itself when nobody has used it for a while. In both
//! cases every run ends first and every log is whole; a second signal, or a kill, leaves that to the next who opens a
//! session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hames_agent::{Clock, SystemClock};
use hames_client::Place;
use hames_protocol::api::StopServer;
use hames_server::http::{Api, Listener, NoListener, ServerInfo, token};
use hames_server::{Counts, Hub, HubOptions};
use hames_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::HOLDER;
use super::host::Program;
use super::place::{Held, Note, Taken};
use crate::config::{IdleExit, Live};
use crate::exit::Stop;
use crate::logging;
use crate::signals::{HangUp, Signals};

/// How a server is run.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// A loopback address to listen on besides the socket.
    pub(crate) listen: Option<SocketAddr>,
    /// When it ends by itself; the configuration says where this does not.
    pub(crate) idle_exit: Option<IdleExit>,
}

impl Options {
    /// As arguments of `hames serve`.
    pub(crate) fn args(&self) -> Vec<String> {
        let mut args = Vec::new();
        if let Some(listen) = self.listen {
            args.extend(["--listen".to_owned(), listen.to_string()]);
        }
        if let Some(idle_exit) = self.idle_exit {
            args.extend(["--idle-exit".to_owned(), idle_exit.to_string()]);
        }
        args
    }
}

/// A server that answers.
#[derive(Debug)]
pub(crate) struct Up {
    /// The unix socket.
    pub(crate) socket: String,
    /// The loopback address.
    pub(crate) listen: Option<String>,
}

/// What starting one came to.
#[derive(Debug)]
pub(crate) enum Lived {
    /// It ran, and has ended.
    Ended,
    /// Another one is there.
    Another(Note),
}

/// Runs the server of a home to its end. `up` is called once, when it answers.
pub(crate) fn live(live: Live, options: &Options, up: impl FnOnce(&Up)) -> Result<Lived, Stop> {
    let place = Place::of(live.home().data());
    let note = Note { pid: std::process::id(), version: env!("CARGO_PKG_VERSION").into(), args: options.args() };
    let held = match Held::take(&place, &note)? {
        Taken::Ours(held) => held,
        Taken::Theirs(note) => return Ok(Lived::Another(note)),
    };
    // A configuration that cannot be read now may be mended by the time of the first run.
    let idle_exit = live.now().ok().and_then(|config| config.file.server.idle_exit);
    let idle_exit = options.idle_exit.or(idle_exit).unwrap_or_default();
    logging::start(live.home().logs(), live.masks().clone(), live.env().is_on("HAMES_DEBUG"));
    let signals =
        Signals::catch(HangUp::Harmless).map_err(|e| Stop::storage(format!("signals cannot be caught: {e}")))?;
    let opened = Store::open(live.home().data())?;
    opened.notices.iter().for_each(|notice| tracing::warn!(target: "hames::server", "{notice}"));
    let runtime = crate::commands::runtime()?;
    let ended = runtime.block_on(async {
        let live = Arc::new(live);
        let program = Program::new(Arc::clone(&live), opened.store.clone());
        let holder = HubOptions { holder: HOLDER.into(), ..HubOptions::default() };
        let hub = Hub::new(opened.store.clone(), Arc::new(program), holder);
        let listeners = listen(&place, options.listen).await?;
        let socket = listeners[0].place();
        let listen = listeners.get(1).map(Listener::place);
        let mut info = ServerInfo::new(env!("CARGO_PKG_VERSION"), SystemClock.now_ms());
        (info.socket, info.listen) = (socket.clone(), listen.clone());
        let api = Api::new(hub.clone(), info);
        let (closing, serving) = (CancellationToken::new(), TaskTracker::new());
        for listener in listeners {
            serving.spawn(listener.serve(api.clone(), closing.clone()));
        }
        serving.close();
        tracing::info!(target: "hames::server", pid = note.pid, %socket, listen = listen.as_deref().unwrap_or("-"), "answers");
        up(&Up { socket, listen });
        // Said in the log, if it is so.
        hub.suggests_vacuum();
        until_stopped(&hub, &signals, idle_exit).await;
        closing.cancel();
        serving.wait().await;
        Ok(())
    });
    drop(runtime);
    tracing::info!(target: "hames::server", pid = note.pid, "ended");
    drop(opened.store);
    drop(held);
    ended.map(|()| Lived::Ended)
}

/// The socket, and the loopback address where one is wanted.
async fn listen(place: &Place, address: Option<SocketAddr>) -> Result<Vec<Listener>, Stop> {
    let failed = |error: NoListener| Stop::configuration(error.to_string());
    let mut listeners = vec![Listener::unix(place).await.map_err(failed)?];
    if let Some(address) = address {
        let file = place.token();
        let token =
            token(&file).map_err(|e| Stop::storage(format!("the token in {} cannot be used: {e}", file.display())))?;
        listeners.push(Listener::tcp(address, &token).await.map_err(failed)?);
    }
    Ok(listeners)
}

/// Returns when the server has stopped, for whatever reason.
async fn until_stopped(hub: &Hub, signals: &Signals, idle_exit: IdleExit) {
    let asked = async {
        signals.abort.cancelled().await;
        tracing::info!(target: "hames::server", "asked to end by a signal");
        stop(hub, StopServer { force: true, when_idle: false }).await;
    };
    let idle = async {
        loop {
            unused(hub.counts(), idle_exit).await;
            // Whoever came in this very moment keeps it.
            if stop(hub, StopServer { force: false, when_idle: false }).await {
                tracing::info!(target: "hames::server", "nobody uses it");
                return;
            }
        }
    };
    tokio::select! {
        () = async { asked.await; hub.stopped().await } => {}
        () = async { idle.await; hub.stopped().await } => {}
        () = hub.stopped() => {}
    }
}

async fn stop(hub: &Hub, how: StopServer) -> bool {
    match hub.stop(how).await {
        Ok(_) => true,
        Err(refused) => {
            tracing::debug!(target: "hames::server", %refused, "not stopped");
            false
        }
    }
}

/// Returns when there was neither client nor run for so long. Sleeps in between, and wakes for nothing else.
async fn unused(mut counts: watch::Receiver<Counts>, idle_exit: IdleExit) {
    let IdleExit::After(limit) = idle_exit else { return std::future::pending().await };
    // Even the shortest limit leaves time for whoever started the server to attach.
    let limit = limit.max(Duration::from_secs(1));
    loop {
        if counts.wait_for(|counts| counts.is_idle()).await.is_err() {
            return std::future::pending().await;
        }
        tokio::select! {
            () = tokio::time::sleep(limit) => return,
            // Also a run that came and went in between is use.
            changed = counts.changed() => if changed.is_err() { return std::future::pending().await },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_is_unused_when_neither_client_nor_run_was_there_for_so_long() {
        let (sender, counts) = watch::channel(Counts { clients: 1, ..Counts::default() });
        let limit = Duration::from_secs(60);
        let begun = tokio::time::Instant::now();
        let waiting = tokio::spawn(unused(counts, IdleExit::After(limit)));
        let second = Duration::from_secs(1);
        tokio::time::sleep(limit * 5).await;
        assert!(!waiting.is_finished(), "a client is there");
        sender.send_replace(Counts::default());
        tokio::time::sleep(limit - second).await;
        // A run that comes and goes begins the wait anew.
        sender.send_replace(Counts { runs: 1, ..Counts::default() });
        sender.send_replace(Counts::default());
        tokio::time::sleep(limit - second).await;
        assert!(!waiting.is_finished());
        waiting.await.unwrap();
        assert_eq!(begun.elapsed(), limit * 7 - second);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_ends_by_itself_does_not() {
        let (_sender, counts) = watch::channel(Counts::default());
        let waited = tokio::time::timeout(Duration::from_secs(90 * 86_400), unused(counts, IdleExit::Never)).await;
        assert!(waited.is_err());
    }
}
