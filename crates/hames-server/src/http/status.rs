//! Who the server is and what it is doing.

use hames_protocol::api::{API_VERSION, ApiVersion, Health, ServerStatus};

use super::App;

/// What a server says of itself.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The build.
    pub version: String,
    /// The API it speaks: always [`API_VERSION`] but in tests of the handshake.
    pub api: ApiVersion,
    /// When it started, Unix milliseconds.
    pub started_at: u64,
    /// The unix socket; empty where it has none.
    pub socket: String,
    /// The loopback address, where it listens on one.
    pub listen: Option<String>,
}

impl ServerInfo {
    /// A server without listeners: one for clients in this process.
    pub fn new(version: impl Into<String>, started_at: u64) -> Self {
        Self { version: version.into(), api: API_VERSION, started_at, socket: String::new(), listen: None }
    }
}

impl App {
    pub(super) fn health(&self) -> Health {
        Health {
            name: "hames".into(),
            version: self.info.version.clone(),
            api: self.info.api,
            pid: std::process::id(),
            started_at: self.info.started_at,
        }
    }

    pub(super) fn status(&self) -> ServerStatus {
        let counts = *self.hub.counts().borrow();
        ServerStatus {
            health: self.health(),
            clients: counts.clients,
            sessions: counts.sessions,
            runs: counts.runs,
            waiting: counts.waiting,
            memory_bytes: resident(),
            socket: self.info.socket.clone(),
            listen: self.info.listen.clone(),
            stopping: self.hub.is_stopping(),
            suggest_vacuum: self.hub.suggests_vacuum(),
        }
    }
}

/// Resident memory in bytes, where the platform says it.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
