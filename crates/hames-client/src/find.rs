//! Finding the server of a home, or starting one.
//!
//! Versions of the API are compared, not builds. A client that is newer than a server of the same major version uses it where
//! it is busy and says so; an idle one is asked to stop and replaced. There are never two servers for a home: the server
//! itself holds a lock, and of several clients that find none at once, one starts it and the others wait.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use hames_protocol::api::{API_VERSION, ApiErrorCode, ApiVersion, Health, StopServer};
use tokio::time::{Instant, sleep, timeout};

use crate::{Client, ClientError, Place, Socket};

/// How long a server may take to say who it is.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server that was started may take: it may have to bring a large database up to date.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take once the command that started it has ended.
const DETACHED_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle server may take to leave.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// Starts a server for the home and returns the process that does it: the server itself, or a command that ends with
/// success when the server is on its way. What it prints is for whoever made it.
pub type Starter = Arc<dyn Fn() -> io::Result<Child> + Send + Sync>;

/// Looks for the server of one home.
#[derive(Clone)]
pub struct Finder {
    place: Place,
    starter: Option<Starter>,
    /// What this client speaks.
    ours: ApiVersion,
}

/// A server that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Talks to it.
    pub client: Client,
    /// Who it is.
    pub health: Health,
    /// Whether this call started it.
    pub started: bool,
    ours: ApiVersion,
}

impl Found {
    /// What a person should know: the server is older than this program and could not be replaced now.
    pub fn note(&self) -> Option<String> {
        let (ours, theirs) = (self.ours, self.health.api);
        (theirs.minor < ours.minor).then(|| {
            format!(
                "The running server is older (Hames {}, API {}.{}; this is API {}.{}) and busy; it is replaced when it is idle.",
                self.health.version, theirs.major, theirs.minor, ours.major, ours.minor
            )
        })
    }
}

impl Finder {
    /// For the home of this place.
    pub fn new(place: Place) -> Self {
        Self { place, starter: None, ours: API_VERSION }
    }

    /// The same, able to start a server.
    pub fn starting(mut self, starter: Starter) -> Self {
        self.starter = Some(starter);
        self
    }

    /// The same, for a client that speaks another version of the API than this crate.
    pub fn speaking(mut self, api: ApiVersion) -> Self {
        self.ours = api;
        self
    }

    /// The running server; [`ClientError::Unreachable`] where there is none.
    pub async fn connect(&self) -> Result<Found, ClientError> {
        let client = Client::new(Arc::new(Socket::unix(self.place.sockets())));
        let answer = timeout(HEALTH_TIMEOUT, client.health()).await.unwrap_or_else(|_| {
            Err(ClientError::BadAnswer(format!(
                "the server at {} does not say who it is within {} s; look at `hames server status`",
                client.place(),
                HEALTH_TIMEOUT.as_secs()
            )))
        });
        // A server that dies takes the connections that stand in its queue with it: nobody is there, and nothing was asked
        // that could not be asked again.
        let health = answer.map_err(|error| match error {
            ClientError::Lost(why) => ClientError::Unreachable { place: client.place(), why },
            error => error,
        })?;
        if !self.ours.can_use(health.api) {
            return Err(ClientError::Incompatible { ours: self.ours, theirs: health.api });
        }
        Ok(Found { client, health, started: false, ours: self.ours })
    }

    /// The running server, or one that is started now. An older idle one is replaced.
    pub async fn connect_or_start(&self) -> Result<Found, ClientError> {
        match self.connect().await {
            Ok(found) if !self.is_older(&found.health) => return Ok(found),
            Ok(found) if !self.can_replace(&found).await? => return Ok(found),
            Ok(_) | Err(ClientError::Unreachable { .. }) => {}
            Err(error) => return Err(error),
        }
        self.start().await
    }

    /// Asks an older server to stop; `false` where it is busy and stays.
    async fn can_replace(&self, found: &Found) -> Result<bool, ClientError> {
        if self.starter.is_none() {
            return Ok(false);
        }
        match found.client.stop_server(&StopServer { force: false, when_idle: false }).await {
            Ok(_) => self.until_gone(found.health.pid).await,
            Err(ClientError::Refused(refusal)) if refusal.code == ApiErrorCode::Busy => Ok(false),
            Err(ClientError::Unreachable { .. } | ClientError::Lost(_)) => self.until_gone(found.health.pid).await,
            Err(error) => Err(error),
        }
    }

    fn is_older(&self, health: &Health) -> bool {
        health.api.minor < self.ours.minor
    }

    /// Waits until the server with this pid no longer answers.
    async fn until_gone(&self, pid: u32) -> Result<bool, ClientError> {
        let deadline = Instant::now() + LEAVE_TIMEOUT;
        let mut look = FIRST_LOOK;
        loop {
            match self.connect().await {
                Ok(found) if found.health.pid == pid && Instant::now() < deadline => wait(&mut look).await,
                Ok(found) => return Ok(found.health.pid != pid),
                Err(_) => return Ok(true),
            }
        }
    }

    async fn start(&self) -> Result<Found, ClientError> {
        let Some(starter) = &self.starter else {
            return self.connect().await;
        };
        let deadline = Instant::now() + START_TIMEOUT;
        let lock = self.open_start_lock()?;
        let mut look = FIRST_LOOK;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    // Somebody else starts it; it may be there before they let go.
                    match self.connect().await {
                        Err(ClientError::Unreachable { .. }) => wait(&mut look).await,
                        there => return there,
                    }
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(not_started("another program has been starting one for a minute"));
                }
                Err(TryLockError::Error(error)) => return Err(not_started(&error.to_string())),
            }
        }
        match self.connect().await {
            Err(ClientError::Unreachable { .. }) => {}
            there => return there,
        }
        let child = starter().map_err(|error| not_started(&error.to_string()))?;
        self.until_there(child, deadline).await
    }

    fn open_start_lock(&self) -> Result<File, ClientError> {
        let path = self.place.start_lock();
        self.place.prepare(&path).map_err(|error| ClientError::Place(error.to_string()))?;
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| ClientError::Place(format!("{} cannot be opened ({error})", path.display())))
    }

    async fn until_there(&self, mut child: Child, mut deadline: Instant) -> Result<Found, ClientError> {
        let mut has_ended = false;
        let mut look = FIRST_LOOK;
        loop {
            match self.connect().await {
                Ok(found) => return Ok(Found { started: true, ..found }),
                Err(ClientError::Unreachable { .. }) if Instant::now() < deadline => {}
                Err(ClientError::Unreachable { .. }) => {
                    return Err(not_started("it was started and does not answer; look at `hames server logs`"));
                }
                Err(error) => return Err(error),
            }
            if !has_ended {
                match child.try_wait() {
                    Ok(None) => {}
                    Ok(Some(status)) if status.success() => {
                        has_ended = true;
                        deadline = deadline.min(Instant::now() + DETACHED_TIMEOUT);
                    }
                    Ok(Some(status)) => {
                        return Err(not_started(&format!("it ended with {status}; look at `hames server logs`")));
                    }
                    Err(error) => return Err(not_started(&error.to_string())),
                }
            }
            wait(&mut look).await;
        }
    }
}

fn not_started(why: &str) -> ClientError {
    ClientError::NotStarted(format!("no server could be started: {why}"))
}

/// Waits a little, and a little longer each time.
async fn wait(look: &mut Duration) {
    sleep(*look).await;
    *look = (*look * 2).min(LONGEST_LOOK);
}
