//! What a tool is, and what it is given.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hames_protocol::{
    BlobStore, CallId, Declaration, Diff, Emit, Event, Failure, FileHash, Label, Mode, Part, SessionId, SessionState,
    ToolErrorClass, ToolSpec,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{FsError, FsPath, FsProvider, ShellProvider};

/// Something a model can call.
///
/// `declare` and `label` see arguments that already fit the schema, do no I/O and cannot fail.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn spec(&self) -> &ToolSpec;

    /// Other spellings of argument names that are mended, never advertised: `(other, ours)`.
    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What this call does.
    fn declare(&self, input: &Value) -> Declaration;

    /// What this call is called.
    fn label(&self, input: &Value) -> Label {
        let _ = input;
        Label::new(&self.spec().name, "")
    }

    /// Whether it gives back parts of outputs that were kept whole. Where the window gets a part of an output, the door
    /// says where the rest is, and names this tool for it.
    fn recalls(&self) -> bool {
        false
    }

    /// What would change, for whoever has to approve it. Runs under the call's locks and has no effect.
    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        let _ = (input, cx);
        Ok(Vec::new())
    }

    /// Does it. Cancelling is by `cx.cancel`, never by dropping the future while an effect is under way.
    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure>;
}

/// A result.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// What the model gets, within `cx.cap_bytes` if the tool can page; the door cuts what is longer.
    pub text: String,
    /// The whole, where `text` is only a part of it.
    pub whole: Whole,
    /// What changed.
    pub diffs: Vec<Diff>,
    /// Contents read or left.
    pub files: Vec<FileHash>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// Images of the result, kept as blobs: they go to the model after the step's results.
    pub attachments: Vec<Part>,
    /// Whether it says what can be done or how (a skill, a contract of a tool): it leaves the window after other results.
    pub capability: bool,
}

impl ToolOutput {
    /// A result that is only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// The whole of an output of which the model gets a part.
#[derive(Debug, Default)]
pub enum Whole {
    /// The model gets everything.
    #[default]
    None,
    /// In memory.
    Bytes(Vec<u8>),
    /// In a temporary file that now belongs to the door.
    File {
        /// The file.
        path: tempfile_path::TempFile,
        /// Bytes left out of its middle.
        dropped: u64,
    },
}

/// A temporary file that is removed when dropped, without tying this crate to the crate that made it.
pub mod tempfile_path {
    use std::path::{Path, PathBuf};

    /// How the names of such files begin wherever they lie: what a killed process left is told by it from anybody
    /// else's files in the same folder.
    pub const PREFIX: &str = "hames-spool-";

    /// A path that is unlinked on drop unless it was moved away.
    #[derive(Debug)]
    pub struct TempFile(PathBuf);

    impl TempFile {
        /// Takes ownership of the file at `path`.
        pub fn adopt(path: PathBuf) -> Self {
            Self(path)
        }
        /// Where it is.
        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for TempFile {
        fn drop(&mut self) {
            // Gone already means moved into the blob store, which is the good case.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// Why a call gave no result: `text` is what the model reads, so it says what to do instead.
#[derive(Debug)]
pub struct ToolFailure {
    /// The kind.
    pub class: ToolErrorClass,
    /// What happened and what to do instead.
    pub text: String,
    /// The whole output so far, where there is more than `text` shows.
    pub whole: Whole,
}

impl ToolFailure {
    /// A plain failure.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { class: ToolErrorClass::Failed, text: text.into(), whole: Whole::None }
    }
    /// Arguments that cannot be used.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { class: ToolErrorClass::Invalid, text: text.into(), whole: Whole::None }
    }
    /// Refused.
    pub fn refused(text: impl Into<String>) -> Self {
        Self { class: ToolErrorClass::Refused, text: text.into(), whole: Whole::None }
    }
    /// Stopped by a person or the caller.
    pub fn cancelled() -> Self {
        Self { class: ToolErrorClass::Cancelled, text: "Cancelled.".into(), whole: Whole::None }
    }
}

impl From<FsError> for ToolFailure {
    fn from(error: FsError) -> Self {
        let class = match error {
            FsError::Outside { .. } | FsError::Denied { .. } | FsError::Ruled { .. } => ToolErrorClass::Refused,
            _ => ToolErrorClass::Failed,
        };
        Self { class, text: error.to_string(), whole: Whole::None }
    }
}

impl From<Failure> for ToolFailure {
    fn from(failure: Failure) -> Self {
        Self::failed(failure.message)
    }
}

/// What one call is given.
#[derive(Clone)]
pub struct ToolCx {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call_id: CallId,
    /// The run's mode.
    pub mode: Mode,
    /// Files.
    pub fs: Arc<dyn FsProvider>,
    /// Commands.
    pub shell: Arc<dyn ShellProvider>,
    /// Blobs (before-images, whole outputs).
    pub blobs: Arc<dyn BlobStore>,
    /// Where events go.
    pub emit: Arc<dyn Emit>,
    /// Fires on abort, on interrupt where the call may be cut, and at the time limit.
    pub cancel: CancellationToken,
    /// Bytes the result may have in the window.
    pub cap_bytes: usize,
    /// The fold of the session so far (todos, hashes of files read). Kept current by the run.
    pub state: Arc<Mutex<SessionState>>,
    /// Canonical paths outside the workspace that were approved for this call.
    pub approved: Vec<PathBuf>,
    /// What the rules say of hosts that the call comes to only while it runs.
    pub hosts: HostRules,
    /// What may be pinned.
    pub pins: PinRoom,
    /// Whom a tool may ask something while it runs.
    pub asks: Questions,
}

/// Somebody who can be asked something by a tool that runs.
#[async_trait]
pub trait Ask: Send + Sync {
    /// Asks, and waits for the answer; `None` where nobody answers. Without `choices` any text is an answer.
    async fn ask(&self, text: &str, choices: &[String]) -> Result<Option<String>, Failure>;
}

/// Whom a tool may ask something. As made by default there is nobody.
#[derive(Clone, Default)]
pub struct Questions(Option<Arc<dyn Ask>>);

impl Questions {
    /// Questions that go to this one.
    pub fn new(ask: impl Ask + 'static) -> Self {
        Self(Some(Arc::new(ask)))
    }
}

/// Whether texts may stay in the window whatever leaves it. As made by default none may: nobody watches over their room.
#[derive(Clone, Default)]
pub struct PinRoom(Option<Arc<PinCheck>>);

type PinCheck = dyn Fn(&[String]) -> Result<(), String> + Send + Sync;

impl PinRoom {
    /// A check that is given all texts which the model would have pinned, and answers with the reason where they may not be.
    pub fn new(check: impl Fn(&[String]) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Whether the model may have these texts pinned and no others; else why not.
    pub fn check(&self, texts: &[String]) -> Result<(), String> {
        match &self.0 {
            Some(check) => check(texts),
            None => Err("nothing can be pinned here; keep it in the todo list".to_owned()),
        }
    }
}

/// What the rules say of hosts that a call did not name beforehand: where a redirect leads, say. As made by default
/// there are no rules.
#[derive(Clone, Default)]
pub struct HostRules(Option<Arc<HostRule>>);

type HostRule = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl HostRules {
    /// Rules that answer with the reason where a host may not be spoken to without being asked for by itself.
    pub fn new(rules: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(rules)))
    }
}

impl ToolCx {
    /// The session's state, for a moment; never across an await.
    pub fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves a path the model wrote, and refuses one outside the workspace that was not approved for this call.
    pub fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        self.within(self.fs.resolve(path)?)
    }

    /// The same for the entry itself: a link at the end of the path is not followed.
    pub fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.within(self.fs.resolve_entry(path)?)
    }

    fn within(&self, resolved: FsPath) -> Result<FsPath, FsError> {
        if resolved.inside || self.approved.iter().any(|p| resolved.abs.starts_with(p)) {
            return Ok(resolved);
        }
        Err(FsError::Outside { path: resolved.shown, target: resolved.abs })
    }

    /// Whether a host that the call did not name may be spoken to; else why not.
    pub fn may_reach(&self, host: &str) -> Result<(), String> {
        self.hosts.0.as_ref().map_or(Ok(()), |rules| rules(host))
    }

    /// Asks a person something in the middle of the call and waits, as long as it takes, for the answer; `None` where
    /// nobody can answer, with which a tool has to get along. The choices are shown, and a person may say something
    /// else. Fails where the call is to end meanwhile. A tool that asks declares no time limit, and an effect other than
    /// [`Read`](hames_protocol::Effect::Read) where a message that comes in between should not take the question away.
    pub async fn ask(&self, text: &str, choices: &[String]) -> Result<Option<String>, ToolFailure> {
        let Some(asks) = &self.asks.0 else { return Ok(None) };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ToolFailure::cancelled()),
            answer = asks.ask(text, choices) => Ok(answer?),
        }
    }

    /// Runs blocking work off the async threads.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(ToolCx) -> Result<T, ToolFailure> + Send + 'static,
    ) -> Result<T, ToolFailure> {
        let cx = self.clone();
        match tokio::task::spawn_blocking(move || work(cx)).await {
            Ok(result) => result,
            Err(error) => Err(ToolFailure::failed(format!(
                "the tool crashed: {error}; this is a fault of Hames, please report it"
            ))),
        }
    }

    /// Records durable events from blocking work: the same barrier as [`Emit::record`].
    pub fn record_blocking(&self, events: Vec<Event>) -> Result<(), Failure> {
        tokio::runtime::Handle::current().block_on(self.emit.record(events))
    }

    /// Keeps a blob from blocking work.
    pub fn put_blocking(
        &self,
        name: &str,
        source: hames_protocol::BlobSource,
    ) -> Result<hames_protocol::BlobRef, Failure> {
        Ok(tokio::runtime::Handle::current().block_on(self.blobs.put(&self.session, name, source))?)
    }
}
