//! The server, its database, its configuration.

use hames_protocol::api::{
    Configuration, DatabaseStats, Health, KnownProviders, Models, ProviderDraft, ProviderTest, Providers, ServerStatus,
    StopServer, Vacuumed,
};

use super::Client;
use crate::ClientError;

impl Client {
    /// Who answers, and what it speaks.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get(&["health"]).receive().await
    }

    /// What the server is doing.
    pub async fn status(&self) -> Result<ServerStatus, ClientError> {
        self.get(&["server"]).receive().await
    }

    /// Asks the server to stop. It answers first, then lets its clients go.
    pub async fn stop_server(&self, stop: &StopServer) -> Result<ServerStatus, ClientError> {
        self.post(&["server", "stop"]).json(stop).receive().await
    }

    /// The models one can choose.
    pub async fn models(&self) -> Result<Models, ClientError> {
        self.get(&["models"]).receive().await
    }

    /// The providers of the configuration.
    pub async fn providers(&self) -> Result<Providers, ClientError> {
        self.get(&["providers"]).receive().await
    }

    /// Writes a provider into the configuration.
    pub async fn save_provider(&self, draft: &ProviderDraft) -> Result<Providers, ClientError> {
        self.post(&["providers"]).json(draft).receive().await
    }

    /// Well-known providers, and model servers on the server's machine.
    pub async fn known_providers(&self) -> Result<KnownProviders, ClientError> {
        self.get(&["providers", "known"]).receive().await
    }

    /// Tests a provider as it would be; writes nothing.
    pub async fn test_provider(&self, draft: &ProviderDraft) -> Result<ProviderTest, ClientError> {
        self.post(&["providers", "test"]).patient().json(draft).receive().await
    }

    /// The configuration in force.
    pub async fn settings(&self) -> Result<Configuration, ClientError> {
        self.get(&["settings"]).receive().await
    }

    /// How large the database is.
    pub async fn database(&self) -> Result<DatabaseStats, ClientError> {
        self.get(&["db"]).receive().await
    }

    /// Makes the database smaller. Not while anything runs.
    pub async fn vacuum(&self) -> Result<Vacuumed, ClientError> {
        self.post(&["db", "vacuum"]).patient().receive().await
    }
}
