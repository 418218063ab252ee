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
/// A key of a provider on its way to the configuration. It is shown nowhere: not in debug output, not in refusals.
#[derive(Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct ApiKey(pub String);

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl<'de> serde::Deserialize<'de> for ApiKey {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // What is no text may hold a key all the same.
        let text = Value::deserialize(from).ok().and_then(|value| value.as_str().map(str::to_owned));
        text.map(ApiKey).ok_or_else(|| serde::de::Error::custom("a key is a text"))
    }
}

api! {
    /// A provider as somebody wants it. What is absent stays as the file has it, or is what is known under that name.
    #[derive(Default, Eq)]
    ProviderDraft {
        /// Its name: no blanks, no slashes.
        name: String,
        /// Where it is, with or without `/v1`.
        #[serde(default, skip_serializing_if = "Option::is_none")] base_url: Option<String>,
        /// Its key, for the file.
        #[serde(default, skip_serializing_if = "Option::is_none")] api_key: Option<ApiKey>,
        /// The environment variable its key is taken from, instead.
        #[serde(default, skip_serializing_if = "Option::is_none")] api_key_env: Option<String>,
        /// The id of the model that is to be the default one.
        #[serde(default, skip_serializing_if = "Option::is_none")] model: Option<String>,
    }
}
api! {
    /// What `POST /v1/providers/test` found: one step after the other, until one fails.
    #[derive(Eq)]
    ProviderTest {
        /// Whether it answered.
        ok: bool,
        /// The steps.
        checks: Vec<ProviderCheck>,
        /// Ids of the models it lists.
        #[serde(default)] models: Vec<String>,
        /// The model that was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")] model: Option<String>,
    }
}
api! {
    /// A step of a test.
    #[derive(Eq)]
    ProviderCheck {
        /// `key`, `address`, `models`, `model`, `answer` and the like.
        name: String,
        /// How it went.
        state: CheckState,
        /// What was found.
        what: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")] remedy: Option<String>,
    }
}
/// How a step of a test went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Well.
    Ok,
    /// It works, but somebody should know.
    Note,
    /// Not at all.
    Failed,
    /// In a way this version does not know, of a newer server.
    #[serde(other)]
    Unknown,
}
api! {
    /// `GET /v1/providers/known`: what can be set up without knowing an address.
    #[derive(Eq)]
    KnownProviders {
        /// Model servers that answer on this machine.
        local: Vec<LocalServer>,
        /// Well-known providers.
        known: Vec<KnownProvider>,
    }
}
api! {
    /// A model server on this machine.
    #[derive(Eq)]
    LocalServer {
        /// A name for it.
        name: String,
        /// What it calls itself.
        title: String,
        /// Where it is.
        base_url: String,
        /// Ids of its models.
        models: Vec<String>,
    }
}
api! {
    /// A well-known provider.
    #[derive(Eq)]
    KnownProvider {
        /// Its name.
        name: String,
        /// What people call it.
        title: String,
        /// Where it is.
        base_url: String,
        /// The variable its key is taken from; absent for a server of one's own, which needs none.
        #[serde(default, skip_serializing_if = "Option::is_none")] key_env: Option<String>,
        /// Whether the server's environment has that key.
        #[serde(default)] has_key: bool,
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
