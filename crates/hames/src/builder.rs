//! An agent from values, with what most callers want where they say nothing.

mod compaction;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hames_agent::{Agent, AgentParts, Compaction, RetryPolicy, system_text};
use hames_protocol::{
    ApprovalAsked, Approver, BlobStore, Decision, ErrorClass, Failure, GrantKeeper, GuardLevel, GuardSettings, Head,
    MemoryBlobs, ModelClient, NobodyAnswers, Sampling, ThinkingLevel,
};
use hames_skills::Instructions;
use hames_tools::{Door, DoorParts, FsProvider, LockTable, Policy, Secrets, ShellProvider, Tool, ToolSet};
use hames_workspace::files::{LocalFs, LocalFsOptions, Overlay};
use hames_workspace::shell::{LocalShell, LocalShellOptions};
use hames_workspace::web::WebOptions;

use crate::approve::Callback;

/// Tokens of a window up to which the lean tool set is sent: its four tools leave room to work.
const LEAN_WINDOW: u64 = 8_192;
/// The lean tool set.
const LEAN_TOOLS: [&str; 4] = ["Read", "Write", "StrReplace", "Shell"];

/// Puts an [`Agent`] together for one folder and one model.
pub struct AgentBuilder {
    folder: PathBuf,
    model: Box<dyn ModelClient>,
    tools: Option<Vec<Arc<dyn Tool>>>,
    web: WebOptions,
    instructions: Vec<Instructions>,
    denied: Vec<PathBuf>,
    files: Option<Arc<dyn FsProvider>>,
    shell: Option<Arc<dyn ShellProvider>>,
    blobs: Arc<dyn BlobStore>,
    approver: Arc<dyn Approver>,
    grants: Option<Arc<dyn GrantKeeper>>,
    policy: Policy,
    secrets: Secrets,
    locks: Arc<LockTable>,
    parallel_tools: bool,
    max_steps: Option<u32>,
    thinking: Option<ThinkingLevel>,
    sampling: Sampling,
    max_output_tokens: Option<u64>,
    retry: RetryPolicy,
    compaction: Compaction,
    /// Whether it begins by a reserve, and by which where one is given.
    reserves: Option<Option<u64>>,
    guard: GuardSettings,
}

impl AgentBuilder {
    /// An agent for a folder: the built-in tools (the lean set for small windows), blobs in memory, nobody who
    /// approves, no step limit, commands run by `/bin/sh` with an empty environment but for `PATH`.
    pub fn new(folder: impl Into<PathBuf>, model: Box<dyn ModelClient>) -> Self {
        Self {
            folder: folder.into(),
            model,
            tools: None,
            web: WebOptions::default(),
            instructions: Vec::new(),
            denied: Vec::new(),
            files: None,
            shell: None,
            blobs: Arc::new(MemoryBlobs::default()),
            approver: Arc::new(NobodyAnswers),
            grants: None,
            policy: Policy::default(),
            secrets: Secrets::default(),
            locks: Arc::new(LockTable::default()),
            parallel_tools: true,
            max_steps: None,
            thinking: None,
            sampling: Sampling::default(),
            max_output_tokens: None,
            retry: RetryPolicy::default(),
            compaction: Compaction::default(),
            reserves: None,
            guard: GuardSettings::level(GuardLevel::Off),
        }
    }

    /// These tools instead of the built-in ones.
    pub fn tools(mut self, tools: Vec<Arc<dyn Tool>>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// What fetching pages may do beyond the public internet; for the built-in tools.
    pub fn web(mut self, web: WebOptions) -> Self {
        self.web = web;
        self
    }

    /// What the project tells its agent, outermost first.
    pub fn instructions(mut self, instructions: Vec<Instructions>) -> Self {
        self.instructions = instructions;
        self
    }

    /// Places no file tool reaches, even approved.
    pub fn deny(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.denied.extend(places);
        self
    }

    /// Files from somewhere else than the folder: memory, a database, a provider of your own. It says itself what cannot be
    /// reached; commands do not see it unless the [`shell`](Self::shell) that is given along does.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use hames::AgentBuilder;
    /// # use hames::agent::{Nobody, Ports, RunControl, RunInput, Session, SystemClock};
    /// # use hames::model::{ScriptedModel, ScriptedTurn};
    /// # use hames::protocol::{MemoryLog, Mode, Part, SessionCreated, SessionId, Settings};
    /// use hames::tools::FsProvider;
    /// use hames::workspace::{files::MemoryFs, library, shell::{Reply, ScriptedShell}};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let model = ScriptedModel::new([
    /// #     ScriptedTurn::calls(&[("writeFile", r#"{"filePath":"notes.txt","content":"hello"}"#)]),
    /// #     ScriptedTurn::calls(&[("bash", r#"{"command":"make check"}"#)]),
    /// #     ScriptedTurn::text("Done."),
    /// # ]);
    /// let files = MemoryFs::default();
    /// let shell = Arc::new(ScriptedShell::new().on("make check", Reply::ok("3 passed\n")));
    /// let mut agent = AgentBuilder::new("/workspace", Box::new(model))
    ///     .files(Arc::new(files.clone()))
    ///     .shell(shell.clone())
    ///     .tools(library::tools())
    ///     .build()?;
    /// # let ports = Ports { log: Arc::new(MemoryLog::default()), clock: Arc::new(SystemClock) };
    /// # let created = SessionCreated { name: "s".into(), folder: "/workspace".into(), settings: Settings::default() };
    /// # let mut session = Session::create(ports, SessionId::generate(), created).await?;
    /// # let input = RunInput { parts: vec![Part::text("Go.")], mode: Mode::Build, ..RunInput::default() };
    /// # session.run(&mut agent, input, &RunControl::default(), Arc::new(Nobody)).await;
    /// assert_eq!(files.read(&files.resolve("notes.txt")?, 100)?, b"hello");
    /// assert_eq!(shell.commands(), ["make check"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn files(mut self, files: Arc<dyn FsProvider>) -> Self {
        self.files = Some(files);
        self
    }

    /// Where commands run.
    pub fn shell(mut self, shell: Arc<dyn ShellProvider>) -> Self {
        self.shell = Some(shell);
        self
    }

    /// Where whole outputs and before-images are kept.
    pub fn blobs(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.blobs = blobs;
        self
    }

    /// Who is asked where a call needs a decision.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// A function that is asked where a call needs a decision: [`approver`](Self::approver) for everybody who has a
    /// closure. It gets the tool's name, the call's id and input, the reason, and the diff of an edit, and answers with a
    /// [`Decision`] or a `bool`. Only one question stands at a time.
    ///
    /// What needs a decision is for the [`policy`](Self::policy) to say; under [`Policy::ask_everything`] every call does.
    /// A question that is not answered before the run ends is dropped, future and all. A call that was declined gets an
    /// answer that says so, and the model goes on.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use hames::agent::{Nobody, Ports, RunControl, RunInput, Session, SystemClock};
    /// # use hames::model::{ScriptedModel, ScriptedTurn};
    /// # use hames::protocol::{MemoryLog, Mode, Part, SessionCreated, SessionId, Settings};
    /// use hames::AgentBuilder;
    /// use hames::tools::Policy;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::write(folder.path().join("notes.txt"), "hello")?;
    /// # let model = ScriptedModel::new([
    /// #     ScriptedTurn::calls(&[("Read", r#"{"path":"notes.txt"}"#)]),
    /// #     ScriptedTurn::calls(&[("Write", r#"{"path":"notes.txt","content":"x"}"#)]),
    /// #     ScriptedTurn::text("It was not to be written."),
    /// # ]);
    /// # let asked = Arc::new(Mutex::new(Vec::new()));
    /// # let seen = Arc::clone(&asked);
    /// # async fn ask_somebody(question: &str) -> bool {
    /// #     question.contains("rm")
    /// # }
    /// let mut agent = AgentBuilder::new(folder.path(), Box::new(model))
    ///     .policy(Policy::ask_everything())
    ///     .approve(move |call| {
    /// #       seen.lock().unwrap().push(call.name.clone());
    ///         async move {
    ///             // Reads pass; somebody decides on the rest.
    ///             match call.name.as_str() {
    ///                 "Read" | "Grep" | "Glob" | "List" => true,
    ///                 _ => ask_somebody(&format!("{} {}: {}?", call.name, call.input, call.reason)).await,
    ///             }
    ///         }
    ///     })
    ///     .build()?;
    /// # let ports = Ports { log: Arc::new(MemoryLog::default()), clock: Arc::new(SystemClock) };
    /// # let folder_name = folder.path().display().to_string();
    /// # let created = SessionCreated { name: "s".into(), folder: folder_name, settings: Settings::default() };
    /// # let mut session = Session::create(ports, SessionId::generate(), created).await?;
    /// # let input = RunInput { parts: vec![Part::text("Go.")], mode: Mode::Build, ..RunInput::default() };
    /// # session.run(&mut agent, input, &RunControl::default(), Arc::new(Nobody)).await;
    /// # assert_eq!(*asked.lock().unwrap(), ["Read", "Write"]);
    /// # assert_eq!(std::fs::read_to_string(folder.path().join("notes.txt"))?, "hello");
    /// # Ok(())
    /// # }
    /// ```
    pub fn approve<F, Answer, D>(self, answer: F) -> Self
    where
        F: Fn(ApprovalAsked) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = D> + Send + 'static,
        D: Into<Decision>,
    {
        self.approver(Arc::new(Callback(answer)))
    }

    /// Where grants for the folder are kept; those of earlier runs are given in [`policy`](Self::policy).
    pub fn grants(mut self, keeper: Arc<dyn GrantKeeper>) -> Self {
        self.grants = Some(keeper);
        self
    }

    /// Rules, and what was granted for the folder.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Values no result may carry.
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Locks shared with the other agents of the process.
    pub fn locks(mut self, locks: Arc<LockTable>) -> Self {
        self.locks = locks;
        self
    }

    /// The calls of a step one after the other, in order, whatever they touch.
    pub fn one_call_at_a_time(mut self) -> Self {
        self.parallel_tools = false;
        self
    }

    /// Steps a run may take.
    pub fn max_steps(mut self, steps: impl Into<Option<u32>>) -> Self {
        self.max_steps = steps.into();
        self
    }

    /// How much the model should think.
    pub fn thinking(mut self, level: impl Into<Option<ThinkingLevel>>) -> Self {
        self.thinking = level.into();
        self
    }

    /// How words are picked.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Tokens one answer may have.
    pub fn max_output_tokens(mut self, tokens: impl Into<Option<u64>>) -> Self {
        self.max_output_tokens = tokens.into();
        self
    }

    /// When a failed request is tried again.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// When a run goes round in circles, what is done about it. Off unless it is said here: the
    /// [default](GuardSettings::default) is medium.
    pub fn guard(mut self, guard: GuardSettings) -> Self {
        self.guard = guard;
        self
    }

    /// The agent. Fails where the folder cannot be used or two tools share a name.
    pub fn build(mut self) -> Result<Agent, Failure> {
        let compaction = self.settled_compaction();
        let known = self.model.info().context_window;
        let window_tokens = compaction.context_window.map_or(known, |most| most.min(known));
        let tools = match self.tools {
            Some(tools) => ToolSet::new(tools),
            None => built_in(window_tokens, self.web),
        };
        let fs: Arc<dyn FsProvider> = match self.files {
            Some(files) => files,
            None => {
                let options = LocalFsOptions { denied: self.denied };
                Arc::new(LocalFs::new(&self.folder, options).map_err(configuration)?)
            }
        };
        let shell = match self.shell {
            Some(shell) => shell,
            None => Arc::new(plain_shell()?),
        };
        let system = system_text(self.instructions.iter().map(|file| (text(&file.path), file.text.as_str())));
        // An instruction file is content like any other: a key in it goes nowhere.
        let system = self.secrets.mask(&system).into_owned();
        let door = Arc::new(Door::new(DoorParts {
            tools: tools.map_err(configuration)?,
            policy: self.policy,
            fs,
            preview: Some(Arc::new(Overlay::default())),
            shell,
            blobs: self.blobs,
            approver: self.approver,
            grants: self.grants,
            secrets: self.secrets,
            locks: self.locks,
            window_tokens,
            parallel_tools: self.parallel_tools,
        }));
        Ok(Agent::new(AgentParts {
            model: self.model,
            head: Arc::new(Head { tools: door.specs(), system }),
            door,
            max_steps: self.max_steps,
            thinking: self.thinking,
            sampling: self.sampling,
            max_output_tokens: self.max_output_tokens,
            retry: self.retry,
            guard: self.guard,
        })
        .compacting(compaction))
    }
}

fn built_in(window_tokens: u64, web: WebOptions) -> Result<ToolSet, hames_tools::ToolSetError> {
    let all = ToolSet::new(hames_workspace::tools_with(web))?;
    if window_tokens <= LEAN_WINDOW { all.select(&LEAN_TOOLS) } else { Ok(all) }
}

fn plain_shell() -> Result<LocalShell, Failure> {
    LocalShell::new(LocalShellOptions {
        shell: "/bin/sh".into(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        reaper: None,
        // Not the temporary folder of the environment: the library reads none.
        spool_dir: "/tmp".into(),
        run_cookie: hames_protocol::RunId::generate().to_string(),
    })
    .map_err(configuration)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or("?")
}

fn configuration(error: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorClass::Configuration, error.to_string())
}
