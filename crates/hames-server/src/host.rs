//! The port to whoever runs the server: how an agent is put together, and what the configuration says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use hames_agent::{Agent, Clock};
use hames_protocol::api::{Configuration, KnownProviders, Models, ProviderDraft, ProviderTest, Providers, RunTerms};
use hames_protocol::{Approver, Failure, InstructionFile, ModelInfo, SessionId, SessionState, Settings};
use hames_store::VacuumThresholds;
use hames_tools::{FsProvider, ShellProvider};

/// What a run is prepared from.
pub struct RunJob {
    /// The session.
    pub session: SessionId,
    /// Its folder, canonical.
    pub folder: PathBuf,
    /// The session as it is: its own settings, open proposals, what became of earlier ones.
    pub state: SessionState,
    /// Who is asked where a call needs a decision, unless the terms or the configuration say that nobody is.
    pub approver: Arc<dyn Approver>,
    /// What the sender of its message asked for.
    pub terms: RunTerms,
}

/// A run that can begin: everything that is frozen for its life.
pub struct PreparedRun {
    /// The agent.
    pub agent: Agent,
    /// What Hames adds to the run's first message: mode, folder, date.
    pub note: Option<String>,
    /// The settings in force; the mode is among them.
    pub settings: Settings,
    /// The instruction files in the head, for the record.
    pub instructions: Vec<InstructionFile>,
    /// Whose leftovers are swept when the run is over.
    pub shell: Option<Arc<dyn ShellProvider>>,
}

/// What the server needs of the program it is part of.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Time.
    fn clock(&self) -> Arc<dyn Clock>;

    /// What a new session of this folder is born with: what was asked for, and the model and mode that the configuration
    /// says now. A model that is missing is no failure here; the first run says so.
    fn born(&self, folder: &Path, asked: &Settings) -> Settings;

    /// What the next run of a session with these settings would use: settings, configuration and defaults together.
    fn effective(&self, folder: &Path, settings: &Settings) -> Settings;

    /// What is known of the model that these effective settings name.
    fn model_info(&self, effective: &Settings) -> Option<ModelInfo>;

    /// Puts a run together. Fails where the configuration does not allow one: then nothing of the message is taken in.
    async fn prepare(&self, job: RunJob) -> Result<PreparedRun, Failure>;

    /// The session's folder as every run of it sees it, nothing laid over it.
    fn files(&self, folder: &Path) -> Result<Arc<dyn FsProvider>, Failure>;

    /// The text without the keys that are known: they go out in headers only, also not where a person pasted one.
    fn mask(&self, text: String) -> String {
        text
    }

    /// A better name for a session by its own model, where the configuration asks for one. Called once, beside the
    /// session's first run, and never waited for.
    async fn title(&self, _effective: &Settings, _first_message: &str) -> Option<String> {
        None
    }

    /// From when on making the database smaller is suggested.
    fn vacuum_thresholds(&self) -> VacuumThresholds {
        VacuumThresholds::default()
    }

    /// The models one can choose.
    async fn models(&self) -> Result<Models, Failure>;

    /// The providers, without their keys.
    async fn providers(&self) -> Result<Providers, Failure>;

    /// Writes a provider into the configuration, and leaves everything else there as it is. Its key is told to nobody.
    async fn save_provider(&self, draft: ProviderDraft) -> Result<Providers, Failure>;

    /// Well-known providers, and model servers that answer on this machine.
    async fn known_providers(&self) -> Result<KnownProviders, Failure>;

    /// Tests a provider as it would be. Writes nothing, and its key is in no word of the answer.
    async fn test_provider(&self, draft: ProviderDraft) -> Result<ProviderTest, Failure>;

    /// The configuration in force, keys left out.
    async fn configuration(&self) -> Result<Configuration, Failure>;
}
