//! Wires the engine: store, model, tools, door, agent. The one place that knows every crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hames::AgentBuilder;
use hames_agent::{Agent, Clock, Ports, RunControl, RunEnd, RunInput, Session, SystemClock, Watch, run_note};
use hames_model::{ChatModel, Endpoint, LearnedFile, Proxy, Secret, ThinkingDialect};
use hames_protocol::{Approver, BlobSource, Failure, InstructionFile, Mode, Part, SessionId, Settings};
use hames_skills::Instructions;
use hames_store::Store;
use hames_tools::{Finished, Policy, Rule, Secrets, ShellProvider};
use hames_workspace::files::remove_staged_beside;
use hames_workspace::shell::{LocalShell, LocalShellOptions, ReaperCommand};

use crate::attach::Attachment;
use crate::catalog::DEFAULT_OUTPUT;
use crate::clock::local_date;
use crate::config::{Chosen, Config, Provider, Thinking};
use crate::env::Env;
use crate::exit::Stop;
use crate::home::Home;
use crate::output::{clean, say};

/// The hidden name under which this program is its own reaper.
pub(crate) const REAPER: &str = "__reap";

/// Opens the sessions of this home for `work`. What was mended on the way or meanwhile is said, however the work ends.
pub(crate) fn with_store<T>(home: &Home, work: impl FnOnce(&Store) -> Result<T, Stop>) -> Result<T, Stop> {
    let tell = |notices: Vec<String>| notices.iter().for_each(|notice| say(&format!("hames: {notice}")));
    let opened = Store::open(home.data())?;
    tell(opened.notices);
    let ended = work(&opened.store);
    tell(opened.store.take_notices());
    ended
}

/// The endpoint of a provider of this configuration.
pub(crate) fn endpoint(provider: &Provider, config: &Config, env: &Env) -> Endpoint {
    let mut endpoint = Endpoint::new(provider.name.clone(), provider.base_url.clone());
    endpoint.api_key = provider.key.as_ref().map(|key| Secret::new(key.reveal()));
    endpoint.headers.clone_from(&provider.headers);
    endpoint.session_header.clone_from(&provider.session_header);
    endpoint.thinking = provider.thinking.map(|thinking| match thinking {
        Thinking::Bool => ThinkingDialect::Bool,
        Thinking::Effort => ThinkingDialect::Effort,
        Thinking::Reasoning => ThinkingDialect::Reasoning,
        Thinking::Type => ThinkingDialect::Type,
    });
    endpoint.replay_reasoning = provider.replay_reasoning;
    endpoint.thinking_tags = provider.thinking_tags.unwrap_or(endpoint.thinking_tags);
    endpoint.text_tool_calls = provider.text_tool_calls.unwrap_or(endpoint.text_tool_calls);
    let given = &provider.timeouts;
    for (limit, seconds) in [
        (&mut endpoint.timeouts.connect, given.connect_s),
        (&mut endpoint.timeouts.first_byte, given.first_byte_s),
        (&mut endpoint.timeouts.idle, given.idle_s),
    ] {
        if let Some(seconds) = seconds {
            *limit = Duration::from_secs(seconds);
        }
    }
    endpoint.proxy = env.proxy_for(&provider.base_url).map(|url| Proxy { url: url.into() });
    endpoint.remedies = config.remedies(provider);
    endpoint
}

/// What every run of this process stands on.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) env: &'a Env,
    pub(crate) home: &'a Home,
    pub(crate) config: &'a Config,
    pub(crate) store: &'a Store,
}

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) end: RunEnd,
    /// Proposals that are open, of a run that could only propose.
    pub(crate) proposals: usize,
}

/// What a run is given.
pub(crate) struct Job<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) folder: PathBuf,
    pub(crate) session: SessionId,
    pub(crate) chosen: Chosen,
    /// What the command line changes of the session's settings.
    pub(crate) patch: Settings,
    pub(crate) prompt: String,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) watch: Arc<dyn Watch>,
    pub(crate) control: RunControl,
    pub(crate) rules: Vec<Rule>,
    pub(crate) approver: Arc<dyn Approver>,
}

impl Job<'_> {
    /// Runs to the end. `Err` only where it came to no run.
    pub(crate) async fn run(self) -> Result<Ended, Failure> {
        let ports = Ports { log: self.ground.store.log(), clock: Arc::new(SystemClock) };
        let mut session = Session::resume(ports, self.session.clone()).await?;
        session.cut_changes().iter().for_each(|file| remove_staged_beside(file));
        session.change_settings(&self.patch, Arc::clone(&self.watch)).await?;
        let settings = self.in_force(&session.state().settings);
        let instructions = hames_skills::load_instructions(&self.folder);
        let shell: Arc<dyn ShellProvider> = Arc::new(self.shell()?);
        let recorded = instructions.iter().map(recorded).collect();
        let mut agent = self.agent(Arc::clone(&shell), instructions, &settings)?;
        unfinished(&session.finish_changes(&mut agent, &self.watch).await?);
        let mode = settings.mode.unwrap_or_default();
        let input = RunInput {
            parts: self.parts().await?,
            note: Some(run_note(mode, &local_date(SystemClock.now_ms()), &session.state())),
            idempotency_id: None,
            mode,
            settings,
            instructions: recorded,
        };
        let end = session.run(&mut agent, input, &self.control, Arc::clone(&self.watch)).await;
        shell.sweep().await;
        let proposals = if mode == Mode::Analyze { session.state().open_changes().count() } else { 0 };
        Ok(Ended { end, proposals })
    }

    /// What holds for this run from its beginning to its end: the session's settings, and for what they leave open those
    /// of the model it runs with. They are never the session's own, so that the next model does not inherit them.
    fn in_force(&self, session: &Settings) -> Settings {
        let sampling = session.sampling().or(self.chosen.sampling);
        Settings {
            model: Some(self.chosen.info.model.clone()),
            mode: Some(session.mode.unwrap_or_default()),
            thinking_level: session.thinking_level.or(self.chosen.thinking_level),
            sampler: sampling.sampler,
            presence_penalty: sampling.presence_penalty,
            frequency_penalty: sampling.frequency_penalty,
            max_output_tokens: session.max_output_tokens.or(self.chosen.provider.max_tokens).or(Some(DEFAULT_OUTPUT)),
            ..session.clone()
        }
    }

    /// The shell of the run. What it keeps on disk lies beside the blobs, so that a long output is moved and not copied.
    fn shell(&self) -> Result<LocalShell, Failure> {
        let options = LocalShellOptions {
            shell: self.ground.env.find_program("bash").unwrap_or_else(|| "/bin/sh".into()),
            env: self.ground.env.without(&self.ground.config.key_vars()),
            reaper: myself().map(|program| ReaperCommand { program, args: vec![REAPER.into()] }),
            spool_dir: self.ground.home.data().join("spool"),
            run_cookie: format!("{}-{}", std::process::id(), self.session),
        };
        LocalShell::new(options).map_err(internal)
    }

    fn agent(
        &self,
        shell: Arc<dyn ShellProvider>,
        instructions: Vec<Instructions>,
        settings: &Settings,
    ) -> Result<Agent, Failure> {
        let blobs = self.ground.store.blobs();
        let endpoint = endpoint(&self.chosen.provider, self.ground.config, self.ground.env);
        let model = ChatModel::new(endpoint, self.chosen.info.clone(), Arc::clone(&blobs))?
            .learning_in(learned(self.ground.home));
        AgentBuilder::new(&self.folder, Box::new(model))
            .instructions(instructions)
            .deny(self.ground.home.private())
            .policy(self.policy()?)
            .grants(self.ground.store.grant_keeper(&self.folder, || SystemClock.now_ms()))
            .approver(Arc::clone(&self.approver))
            .web(self.ground.config.file.web.options())
            .shell(shell)
            .blobs(blobs)
            .secrets(Secrets::new(self.ground.config.secrets()))
            .max_steps(settings.max_steps)
            .sampling(settings.sampling())
            .thinking(settings.thinking_level)
            .max_output_tokens(settings.max_output_tokens)
            .build()
    }

    fn policy(&self) -> Result<Policy, Failure> {
        let kept = self.ground.store.grants(Some(&self.folder))?;
        Ok(Policy { rules: self.rules.clone(), grants: kept.into_iter().map(|kept| kept.grant).collect() })
    }

    /// The message: the prompt, then what is attached. Images are kept as blobs of the session.
    async fn parts(&self) -> Result<Vec<Part>, Failure> {
        let mut parts = vec![Part::text(self.prompt.clone())];
        for attachment in &self.attachments {
            match attachment {
                Attachment::Text(text) => parts.push(Part::text(text.clone())),
                Attachment::Image { line, name, media_type, bytes } => {
                    let source = BlobSource::Bytes(bytes.clone());
                    let blob = self.ground.store.blobs().put(&self.session, "", source).await?;
                    parts.push(Part::text(line.clone()));
                    parts.push(Part::Image { blob, media_type: (*media_type).into(), name: Some(name.clone()) });
                }
            }
        }
        Ok(parts)
    }
}

/// What models refused before, kept in the home.
pub(crate) fn learned(home: &Home) -> Arc<LearnedFile> {
    let now = Arc::new(|| SystemClock.now_ms() / 1_000);
    let (learned, notice) = LearnedFile::open(home.learned(), now);
    notice.iter().for_each(|notice| say(&format!("hames: {notice}")));
    Arc::new(learned)
}

/// Says what an apply that was cut left undone.
pub(crate) fn unfinished(finished: &Finished) {
    for (path, reason) in &finished.left {
        say(&format!(
            "hames: applying changes was cut, and {} was left alone: {}; it stays proposed",
            clean::line(path),
            clean::line(reason)
        ));
    }
}

fn recorded(file: &hames_skills::Instructions) -> InstructionFile {
    InstructionFile { path: shown(&file.path), hash: file.hash.clone(), bytes: file.bytes, dropped: file.dropped }
}

/// This very program, also where its file was replaced since it was started.
fn myself() -> Option<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Some(running) } else { std::env::current_exe().ok() }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn internal(error: impl std::fmt::Display) -> Failure {
    Failure::new(hames_protocol::ErrorClass::Internal, error.to_string())
}
