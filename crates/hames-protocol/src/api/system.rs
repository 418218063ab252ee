//! The server itself, its database, its models and providers.

use serde_json::Value;

use super::{ModelRow, api};

api! {
    /// Major and minor.
    #[derive(Copy, Eq)]
    ApiVersion {
        /// Another one does not talk.
        major: u16,
        /// A higher one only adds.
        minor: u16,
    }
}

impl ApiVersion {
    /// Whether a client of this version can use a server of that one.
    pub fn can_use(self, server: ApiVersion) -> bool {
        self.major == server.major
    }
}

api! {
    /// `GET /v1/health`: says nothing private. Over TCP it needs the token like everything else.
    Health {
        /// Always `hames`.
        name: String,
        /// The build.
        version: String,
        /// What it speaks.
        api: ApiVersion,
        /// The process.
        pid: u32,
        /// When it started.
        started_at: u64,
    }
}
api! {
    /// `GET /v1/server`.
    ServerStatus {
        /// As everybody may see it.
        health: Health,
        /// Clients that are attached.
        clients: u32,
        /// Sessions that are open.
        sessions: u32,
        /// Runs that go on.
        runs: u32,
        /// Runs that wait for a person.
        waiting: u32,
        /// Resident memory in bytes, where the platform says it.
        #[serde(default, skip_serializing_if = "Option::is_none")] memory_bytes: Option<u64>,
        /// The unix socket.
        socket: String,
        /// The loopback address, where it listens on one.
        #[serde(default, skip_serializing_if = "Option::is_none")] listen: Option<String>,
        /// Whether a stop was asked for and it only waits for its runs.
        #[serde(default)] stopping: bool,
        /// Whether making the database smaller is worth its time: true after much was cut or deleted.
        #[serde(default)] suggest_vacuum: bool,
    }
}
api! {
    /// `POST /v1/server/stop`.
    #[derive(Eq)]
    StopServer {
        /// Ends runs that go on; without it the answer is 409 `busy` while there are any.
        #[serde(default)] force: bool,
        /// Stops once nothing runs any more, instead of refusing.
        #[serde(default)] when_idle: bool,
    }
}
api! {
    /// `GET /v1/models`.
    Models {
        /// By provider, then by id.
        models: Vec<ModelRow>,
        /// The one a new session gets.
        #[serde(default, skip_serializing_if = "Option::is_none")] default: Option<String>,
    }
}
api! {
    /// A provider, without its key.
    ProviderRow {
        /// Its name in the configuration.
        name: String,
        /// Where it is.
        base_url: String,
        /// Whether it has a key, and how that is given (`config`, `$OPENAI_API_KEY`, `none`).
        key: String,
        /// The dialect of thinking, where one is set.
        #[serde(default, skip_serializing_if = "Option::is_none")] thinking: Option<String>,
    }
}
api! {
    /// `GET /v1/providers`.
    Providers {
        /// In the order of the configuration.
        providers: Vec<ProviderRow>,
    }
}
api! {
    /// `GET /v1/settings`: the configuration in force, keys left out, each value with its source.
    Configuration {
        /// As `hames config show --json` prints it.
        config: Value,
    }
}
api! {
    /// `GET /v1/db`.
    #[derive(Eq)]
    DatabaseStats {
        /// Bytes of the database file.
        bytes: u64,
        /// Bytes of free pages in it.
        free_bytes: u64,
        /// Sessions.
        sessions: u64,
        /// Events.
        events: u64,
        /// Bytes of blobs beside it.
        blob_bytes: u64,
        /// Whether a vacuum is worth its time.
        suggest_vacuum: bool,
    }
}
api! {
    /// What `POST /v1/db/vacuum` did. 409 `busy` while anything runs.
    #[derive(Eq)]
    Vacuumed {
        /// Bytes of the file before.
        before_bytes: u64,
        /// Bytes of the file after.
        after_bytes: u64,
        /// Blobs that no session names any more and that were removed.
        #[serde(default)] blobs_removed: u64,
        /// Milliseconds it took.
        duration_ms: u64,
    }
}
