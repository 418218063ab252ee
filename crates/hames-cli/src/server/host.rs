//! What the server asks of the program it is part of: agents put together from the configuration as it is now.
//!
//! Nothing is remembered from run to run but what was read and has not changed, so a key or a rule that a person changes
//! holds for the next run. What a client is told of models and providers never has a key in it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hames_agent::{Clock, SystemClock, run_note};
use hames_model::ChatModel;
use hames_protocol::api::{
    Configuration, KnownProviders, ModelRow, Models, ProviderDraft, ProviderRow, ProviderTest, Providers, RunAnswers,
    RunTerms,
};
use hames_protocol::{Approver, Failure, ModelInfo, NobodyAnswers, Settings};
use hames_server::{Host, PreparedRun, RunJob};
use hames_store::{Store, VacuumThresholds};
use hames_tools::{FsProvider, LockTable};
use hames_workspace::files::{LocalFs, LocalFsOptions};

use crate::approve::Yes;
use crate::catalog::refresh::{fetch_list, is_stale};
use crate::clock::local_date;
use crate::commands::{config as shown, models, providers};
use crate::config::{Approve, Chosen, Config, Live, Origin, Provider, shown_url};
use crate::engine::{Ground, Setup, ask_for_title, endpoint, in_force, internal, learned};
use crate::env::Env;
use crate::exit::Stop;

/// How long after the beginning of a run its provider is asked for a new list: never ahead of the run's first request.
const LIST_AFTER: Duration = Duration::from_secs(10);

/// This program, for its server.
pub(crate) struct Program {
    live: Arc<Live>,
    store: Store,
    /// One for all runs: their calls wait for each other.
    locks: Arc<LockTable>,
    /// Providers whose list is being asked for.
    asking: Arc<Mutex<HashSet<String>>>,
}

impl Program {
    pub(crate) fn new(live: Arc<Live>, store: Store) -> Program {
        Program { live, store, locks: Arc::default(), asking: Arc::default() }
    }

    fn config(&self) -> Result<Arc<Config>, Failure> {
        self.live.now().map_err(failure)
    }

    /// The configuration, with a server of this machine in it where nothing else is configured.
    async fn config_for(&self, settings: &Settings) -> Result<Arc<Config>, Failure> {
        let config = self.config()?;
        if settings.model.is_some() || !config.names_no_model() {
            return Ok(config);
        }
        let mut own = Config::load(self.live.home(), self.live.env()).map_err(failure)?;
        own.look_around().await;
        Ok(Arc::new(own))
    }

    fn chosen(&self, settings: &Settings) -> Option<Chosen> {
        self.live.now().ok()?.choose(None, Some(settings)).ok()
    }

    /// Asks for the provider's list where it has grown old; beside the run, and once at a time.
    fn refresh(&self, provider: &Provider, config: &Arc<Config>) {
        if !config.shelf.keeps() || !is_stale(provider, config.shelf.list(provider).as_ref(), SystemClock.now_ms()) {
            return;
        }
        if !locked(&self.asking).insert(provider.name.clone()) {
            return;
        }
        let (live, config, asking) = (Arc::clone(&self.live), Arc::clone(config), Arc::clone(&self.asking));
        let provider = provider.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LIST_AFTER).await;
            if let Err(failure) = fetch_list(&provider, &config, live.env()).await {
                tracing::debug!(target: "hames::catalog", provider = %provider.name, message = %failure.message, "no list");
            }
            locked(&asking).remove(&provider.name);
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failure(stop: Stop) -> Failure {
    match stop {
        Stop::Failed(failure) => *failure,
        Stop::OutputClosed => internal("the output is closed"),
    }
}

/// Who answers in a run: what its sender said, then what the configuration says, then whoever is there.
fn approver(terms: &RunTerms, config: &Config, people: Arc<dyn Approver>) -> Arc<dyn Approver> {
    match (terms.answers, config.approve()) {
        (Some(RunAnswers::Allow), _) | (None, Approve::Allow) => Arc::new(Yes),
        (Some(RunAnswers::Nobody), _) | (None, Approve::Deny) => Arc::new(NobodyAnswers),
        (None, Approve::Ask) => people,
    }
}

/// The environment of the run's commands: its sender's where that came along, else the server's own.
fn commands(given: Option<BTreeMap<String, String>>, own: &Env) -> Env {
    given.map_or_else(|| own.clone(), Env::from_vars)
}

#[async_trait]
impl Host for Program {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn born(&self, _folder: &Path, asked: &Settings) -> Settings {
        let model = asked.model.clone().or_else(|| self.chosen(asked).map(|chosen| chosen.info.model));
        Settings { model, mode: Some(asked.mode.unwrap_or_default()), ..asked.clone() }
    }

    fn effective(&self, _folder: &Path, settings: &Settings) -> Settings {
        match self.chosen(settings) {
            Some(chosen) => in_force(&chosen, settings),
            None => Settings { mode: Some(settings.mode.unwrap_or_default()), ..settings.clone() },
        }
    }

    fn model_info(&self, effective: &Settings) -> Option<ModelInfo> {
        self.chosen(effective).map(|chosen| chosen.info)
    }

    async fn prepare(&self, job: RunJob) -> Result<PreparedRun, Failure> {
        let config = self.config_for(&job.state.settings).await?;
        let chosen = config.choose(None, Some(&job.state.settings)).map_err(failure)?;
        let settings = in_force(&chosen, &job.state.settings);
        let commands = commands(job.terms.environment.clone(), self.live.env());
        let setup = Setup {
            ground: Ground { env: self.live.env(), home: self.live.home(), config: &config, store: &self.store },
            folder: &job.folder,
            session: &job.session,
            chosen: &chosen,
            rules: config.file.rules_in(&job.folder, self.live.env()).map_err(failure)?,
            approver: approver(&job.terms, &config, job.approver),
            commands: &commands,
            locks: Arc::clone(&self.locks),
        };
        let outfit = setup.make(&settings)?;
        self.refresh(&chosen.provider, &config);
        let mode = settings.mode.unwrap_or_default();
        Ok(PreparedRun {
            agent: outfit.agent,
            note: Some(run_note(mode, &local_date(SystemClock.now_ms()), &job.state)),
            settings,
            instructions: outfit.instructions,
            shell: Some(outfit.shell),
        })
    }

    fn files(&self, folder: &Path) -> Result<Arc<dyn FsProvider>, Failure> {
        let options = LocalFsOptions { denied: self.live.home().private() };
        let files = LocalFs::new(folder, options).map_err(|error| {
            failure(Stop::usage(format!("the folder {} cannot be used: {error}", folder.display())))
        })?;
        Ok(Arc::new(files))
    }

    fn vacuum_thresholds(&self) -> VacuumThresholds {
        self.live.now().map(|config| config.file.vacuum).unwrap_or_default()
    }

    fn mask(&self, text: String) -> String {
        // What is known of before stays masked, also while the file cannot be read.
        drop(self.live.now());
        self.live.masks().mask(&text).into_owned()
    }

    async fn title(&self, effective: &Settings, first_message: &str) -> Option<String> {
        let config = self.config().ok().filter(|config| config.file.titles)?;
        let chosen = config.choose(None, Some(effective)).ok()?;
        let endpoint = endpoint(&chosen.provider, &config, self.live.env());
        let mut model = ChatModel::new(endpoint, chosen.info, self.store.blobs()).ok()?;
        model = model.learning_in(learned(self.live.home()));
        ask_for_title(&mut model, first_message).await
    }

    async fn models(&self) -> Result<Models, Failure> {
        let config = self.config()?;
        let rows = models::rows(&config, self.live.env(), self.live.home()).await;
        let models = rows.into_iter().map(|row| ModelRow {
            context_window: row.facts["context_window"].as_u64(),
            max_output_tokens: row.facts["max_output"].as_u64(),
            model: row.model,
            facts: row.facts,
        });
        let default = config.choose(None, None).ok().map(|chosen| chosen.info.model.to_string());
        Ok(Models { models: models.collect(), default })
    }

    async fn providers(&self) -> Result<Providers, Failure> {
        let config = self.config()?;
        let providers = config.providers.iter().map(|provider| ProviderRow {
            name: provider.name.clone(),
            base_url: shown_url(&provider.base_url),
            key: match (provider.key.as_ref().map(|key| &key.origin), &provider.missing_key_var) {
                (Some(Origin::Env(var)), _) => format!("${var}"),
                (Some(_), _) => "config".into(),
                (None, Some(var)) => format!("${var} (not set)"),
                (None, None) => "none".into(),
            },
            thinking: provider.thinking.map(|thinking| thinking.name().to_owned()),
        });
        Ok(Providers { providers: providers.collect() })
    }

    async fn save_provider(&self, draft: ProviderDraft) -> Result<Providers, Failure> {
        let live = Arc::clone(&self.live);
        // A key is known to be one before anything can say it.
        live.masks().add(draft.api_key.iter().map(|key| key.0.clone()).collect());
        let saved = tokio::task::spawn_blocking(move || providers::save(&draft, live.home())).await;
        saved
            .map_err(|error| internal(format!("the configuration could not be written: {error}")))?
            .map_err(failure)?;
        self.providers().await
    }

    async fn known_providers(&self) -> Result<KnownProviders, Failure> {
        let config = self.config()?;
        Ok(providers::known(&config, self.live.env()).await)
    }

    async fn test_provider(&self, draft: ProviderDraft) -> Result<ProviderTest, Failure> {
        self.live.masks().add(draft.api_key.iter().map(|key| key.0.clone()).collect());
        providers::test(&draft, self.live.home(), self.live.env()).await.map_err(failure)
    }

    async fn configuration(&self) -> Result<Configuration, Failure> {
        let config = self.config()?;
        Ok(Configuration { config: shown::as_json(&config, self.live.home()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct People;

    #[async_trait]
    impl Approver for People {
        async fn decide(&self, _: &hames_protocol::ApprovalAsked) -> Option<(hames_protocol::Decision, String)> {
            None
        }
    }

    #[test]
    fn only_a_run_that_may_wait_has_people_to_ask() {
        use RunAnswers::{Allow, Nobody};
        for (answers, file, can_be_asked) in [
            (None, "{}", true),
            (None, r#"{"approve": "deny"}"#, false),
            (Some(Nobody), r#"{"approve": "allow"}"#, false),
            (Some(Nobody), "{}", false),
            (Some(Allow), r#"{"approve": "deny"}"#, true),
        ] {
            let file = crate::config::FileConfig::parse(Path::new("/h/config.jsonc"), file).unwrap();
            let config = Config::from_file(file, &Env::default()).unwrap();
            let terms = RunTerms { answers, environment: None };
            let approver = approver(&terms, &config, Arc::new(People));
            assert_eq!(approver.can_answer(), can_be_asked, "{answers:?}");
        }
    }
}
