//! What one run of a session is made of, put together from values: the same for `hames run` and for the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hames::AgentBuilder;
use hames_agent::{Agent, Clock, Compaction, SystemClock};
use hames_model::{ChatModel, LearnedStore};
use hames_protocol::{Approver, Failure, InstructionFile, ModelClient, ModelRef, SessionId, Settings};
use hames_skills::Instructions;
use hames_tools::{LockTable, Policy, Rule, Secrets, ShellProvider};
use hames_workspace::shell::{LocalShell, LocalShellOptions, ReaperCommand};

use super::{Ground, REAPER, endpoint, internal, learned};
use crate::catalog::DEFAULT_OUTPUT;
use crate::config::Chosen;
use crate::env::Env;
use crate::exit::Stop;
use crate::output::text::count;

/// What a run of a session is put together from.
pub(crate) struct Setup<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) folder: &'a Path,
    pub(crate) session: &'a SessionId,
    pub(crate) chosen: &'a Chosen,
    /// The configuration's rules, as they hold in the folder.
    pub(crate) rules: Vec<Rule>,
    pub(crate) approver: Arc<dyn Approver>,
    /// The environment of the run's commands; variables that may hold keys are left out.
    pub(crate) commands: &'a Env,
    /// One for all runs of the process: their calls wait for each other.
    pub(crate) locks: Arc<LockTable>,
}

/// A run's parts, ready.
pub(crate) struct Outfit {
    pub(crate) agent: Agent,
    /// Swept when the run is over.
    pub(crate) shell: Arc<dyn ShellProvider>,
    /// The instruction files in the head, for the record.
    pub(crate) instructions: Vec<InstructionFile>,
}

impl Setup<'_> {
    /// Reads the instruction files and puts the agent together.
    pub(crate) fn make(self, in_force: &Settings) -> Result<Outfit, Failure> {
        let instructions = hames_skills::load_instructions(self.folder);
        let shell: Arc<dyn ShellProvider> = Arc::new(self.shell()?);
        let recorded = instructions.iter().map(recorded).collect();
        let agent = self.agent(Arc::clone(&shell), instructions, in_force)?;
        Ok(Outfit { agent, shell, instructions: recorded })
    }

    /// The shell of the run. What it keeps on disk lies beside the blobs, so that a long output is moved and not copied.
    fn shell(&self) -> Result<LocalShell, Failure> {
        let options = LocalShellOptions {
            shell: self.commands.find_program("bash").unwrap_or_else(|| "/bin/sh".into()),
            env: self.commands.without(&self.ground.config.key_vars()),
            reaper: myself().map(|program| ReaperCommand { program, args: vec![REAPER.into()] }),
            spool_dir: self.ground.home.data().join("spool"),
            run_cookie: format!("{}-{}", std::process::id(), self.session),
        };
        LocalShell::new(options).map_err(internal)
    }

    fn agent(
        self,
        shell: Arc<dyn ShellProvider>,
        instructions: Vec<Instructions>,
        settings: &Settings,
    ) -> Result<Agent, Failure> {
        let Ground { env, home, config, store } = self.ground;
        let blobs = store.blobs();
        let endpoint = endpoint(&self.chosen.provider, config, env);
        let lessons: Arc<dyn LearnedStore> = learned(home);
        let mut model =
            ChatModel::new(endpoint, self.chosen.info.clone(), Arc::clone(&blobs))?.learning_in(Arc::clone(&lessons));
        if let Some(tokens) = settings.context_window {
            model = model.with_window(tokens);
        }
        let wanted = settings.compaction.clone().unwrap_or_default();
        let author = match &wanted.summary_model {
            Some(author) => Some(self.author(author, lessons)?),
            None => None,
        };
        let grants = store.grants(Some(self.folder))?.into_iter().map(|kept| kept.grant).collect();
        AgentBuilder::new(self.folder, Box::new(model))
            .instructions(instructions)
            .deny(home.private())
            .policy(Policy { rules: self.rules, grants })
            .grants(store.grant_keeper(self.folder, || SystemClock.now_ms()))
            .approver(self.approver)
            .web(config.file.web.options())
            .shell(shell)
            .locks(self.locks)
            .blobs(blobs)
            .secrets(Secrets::new(config.secrets()))
            .max_steps(settings.max_steps)
            .sampling(settings.sampling())
            .thinking(settings.thinking_level)
            .max_output_tokens(settings.max_output_tokens)
            .guard(settings.guard.clone().unwrap_or_default())
            .compaction(Compaction::of(&wanted))
            .summary_model(author)
            .build()
    }
}

impl Setup<'_> {
    /// The model that writes documents, where it is another than the run's.
    fn author(&self, model: &ModelRef, lessons: Arc<dyn LearnedStore>) -> Result<Box<dyn ModelClient>, Failure> {
        let Ground { env, config, store, .. } = self.ground;
        let chosen = config.choose(Some(model), None).map_err(|stop| match stop {
            Stop::Failed(failure) => *failure,
            Stop::OutputClosed => internal("the output is closed"),
        })?;
        let endpoint = endpoint(&chosen.provider, config, env);
        Ok(Box::new(ChatModel::new(endpoint, chosen.info, store.blobs())?.learning_in(lessons)))
    }
}

/// What holds for a run from its beginning to its end: the session's settings, and for what they leave open those of the
/// model it runs with. They are never the session's own, so that the next model does not inherit them.
pub(crate) fn in_force(chosen: &Chosen, session: &Settings) -> Settings {
    let sampling = session.sampling().or(chosen.sampling);
    Settings {
        model: Some(chosen.info.model.clone()),
        mode: Some(session.mode.unwrap_or_default()),
        thinking_level: session.thinking_level.or(chosen.thinking_level),
        sampler: sampling.sampler,
        presence_penalty: sampling.presence_penalty,
        frequency_penalty: sampling.frequency_penalty,
        guard: Some(chosen.guard.patched(&session.guard.clone().unwrap_or_default())),
        compaction: Some(chosen.compaction.patched(&session.compaction.clone().unwrap_or_default())),
        max_output_tokens: session.max_output_tokens.or(chosen.provider.max_tokens).or(Some(DEFAULT_OUTPUT)),
        ..session.clone()
    }
}

/// What is said where somebody set a limit for answers that would leave no window.
pub(crate) fn whole_window_for_answers(chosen: &Chosen, session: &Settings) -> Option<String> {
    let output = session.max_output_tokens.or(chosen.provider.max_tokens)?;
    let window = session.context_window.unwrap_or(chosen.info.context_window);
    (output >= window).then(|| {
        format!(
            "answers may have {} tokens, and the whole window has {}; a quarter of the window is kept for them, so set a \
             lower limit (--max-output-tokens, or max_tokens of the provider)",
            count(output),
            count(window)
        )
    })
}

fn recorded(file: &hames_skills::Instructions) -> InstructionFile {
    InstructionFile { path: shown(&file.path), hash: file.hash.clone(), bytes: file.bytes, dropped: file.dropped }
}

/// This very program, also where its file was replaced since it was started.
pub(crate) fn myself() -> Option<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Some(running) } else { std::env::current_exe().ok() }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
