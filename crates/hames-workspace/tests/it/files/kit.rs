//! A folder with a filesystem over it, and everything a tool is given.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{
    BlobStore, CallId, Emit, Envelope, Event, Failure, FileChanged, MemoryBlobs, Mode, SessionId, SessionState,
};
use hames_tools::{
    Expect, FsProvider, ShellError, ShellOutcome, ShellProvider, ShellRequest, Tool, ToolCx, ToolFailure, ToolOutput,
};
use hames_workspace::files::{LocalFs, LocalFsOptions, tools};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What a recorder would do: keeps events and folds them into the state at once.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) events: Mutex<Vec<Event>>,
    state: Arc<Mutex<SessionState>>,
    refuse: Mutex<bool>,
    /// Hears of every event just before it is kept; refuses it by saying no.
    before: Mutex<Option<Listener>>,
}

type Listener = Box<dyn FnMut(&Event) -> bool + Send>;

#[async_trait]
impl Emit for Recorder {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        if *self.refuse.lock().unwrap() {
            return Err(Failure::new(hames_protocol::ErrorClass::Storage, "the log is full"));
        }
        for event in events {
            let mut before = self.before.lock().unwrap();
            if before.as_mut().is_some_and(|before| !before(&event)) {
                return Err(Failure::new(hames_protocol::ErrorClass::Storage, "the log is full"));
            }
            let mut state = self.state.lock().unwrap();
            state.apply(&envelope(event.clone()));
            self.events.lock().unwrap().push(event);
        }
        Ok(())
    }
    fn show(&self, _event: Event) {}
}

/// What lies in a folder, with everything below it, sorted; folders end in a slash.
pub(crate) fn tree(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).unwrap().map(Result::unwrap) {
            let name = entry.path().strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                found.push(name + "/");
            } else {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

fn envelope(event: Event) -> Envelope {
    serde_json::from_value(serde_json::json!({
        "v": 1, "seq": null, "at": 0, "session": "s", "run": null, "turn": null, "step": null, "agent": [],
        "event": event,
    }))
    .unwrap()
}

struct NoShell;

#[async_trait]
impl ShellProvider for NoShell {
    async fn run(
        &self,
        _request: ShellRequest,
        _output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError> {
        Err(ShellError("there is no shell here".into()))
    }
}

/// A workspace `w` in a scratch folder, with room beside it.
pub(crate) struct Bench {
    pub(crate) scratch: Arc<TempDir>,
    pub(crate) fs: Arc<LocalFs>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) blobs: Arc<MemoryBlobs>,
    pub(crate) cx: ToolCx,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_home("home")
    }

    /// One with Hames's own folder at this place beside the workspace, or in it.
    pub(crate) fn with_home(home: &str) -> Self {
        let scratch = Arc::new(tempfile::tempdir().unwrap());
        std::fs::create_dir(scratch.path().join("w")).unwrap();
        let denied = vec![scratch.path().join(home)];
        let fs = Arc::new(LocalFs::new(&scratch.path().join("w"), LocalFsOptions { denied }).unwrap());
        Self::over(scratch, fs)
    }

    /// The same files for another session, which knows nothing of them yet.
    pub(crate) fn another_session(&self) -> Self {
        Self::over(self.scratch.clone(), self.fs.clone())
    }

    fn over(scratch: Arc<TempDir>, fs: Arc<LocalFs>) -> Self {
        let recorder = Arc::new(Recorder::default());
        let blobs = Arc::new(MemoryBlobs::default());
        let cx = ToolCx {
            session: SessionId::from("s"),
            call_id: CallId::from("c"),
            mode: Mode::Build,
            fs: fs.clone(),
            shell: Arc::new(NoShell),
            blobs: blobs.clone(),
            emit: recorder.clone(),
            cancel: CancellationToken::new(),
            cap_bytes: 50_000,
            state: recorder.state.clone(),
            approved: Vec::new(),
            hosts: hames_tools::HostRules::default(),
            pins: hames_tools::PinRoom::default(),
            asks: Default::default(),
        };
        Self { scratch, fs, recorder, blobs, cx }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join("w").join(name)
    }

    /// A path beside the workspace.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Makes a file in the workspace, with its folders.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        put(&self.path(name), content)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Names in the workspace's root, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.fs.root()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs a tool; what it leaves is known afterwards, as the door would have it.
    pub(crate) async fn run(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolFailure> {
        let output = tool_named(tool).run(&input, &self.cx).await?;
        let mut state = self.cx.state();
        for file in &output.files {
            state.files.insert(file.path.clone(), file.hash.clone());
        }
        drop(state);
        Ok(output)
    }

    /// The text of a result, or of a failure.
    pub(crate) async fn said(&self, tool: &str, input: Value) -> String {
        match self.run(tool, input).await {
            Ok(output) => output.text,
            Err(failure) => failure.text,
        }
    }

    /// The text of a result that has to be one.
    pub(crate) async fn ok(&self, tool: &str, input: Value) -> ToolOutput {
        match self.run(tool, input.clone()).await {
            Ok(output) => output,
            Err(failure) => panic!("{tool} {input} failed: {}", failure.text),
        }
    }

    /// The text of a failure that has to be one.
    pub(crate) async fn refused(&self, tool: &str, input: Value) -> String {
        match self.run(tool, input.clone()).await {
            Ok(output) => panic!("{tool} {input} was not refused: {}", output.text),
            Err(failure) => failure.text,
        }
    }

    pub(crate) fn refuse_records(&self) {
        *self.recorder.refuse.lock().unwrap() = true;
    }

    /// Calls this before every event that is recorded; what it says no to is not.
    pub(crate) fn before_records(&self, listener: impl FnMut(&Event) -> bool + Send + 'static) {
        *self.recorder.before.lock().unwrap() = Some(Box::new(listener));
    }

    pub(crate) fn changes(&self) -> Vec<FileChanged> {
        let events = self.recorder.events.lock().unwrap();
        events
            .iter()
            .filter_map(|event| match event {
                Event::FileChanged(changed) => Some(changed.clone()),
                _ => None,
            })
            .collect()
    }

    pub(crate) async fn blob(&self, hash: &str) -> Vec<u8> {
        self.blobs.get(hash, 0, u64::MAX).await.unwrap()
    }
}

pub(crate) fn tool_named(name: &str) -> Arc<dyn Tool> {
    tools().into_iter().find(|tool| tool.spec().name == name).unwrap()
}

pub(crate) fn put(path: &Path, content: impl AsRef<[u8]>) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
    path.to_owned()
}

/// What is expected of a file with this content.
pub(crate) fn hash(content: &[u8]) -> Expect {
    Expect::Hash(blake3::hash(content).to_hex().to_string())
}

/// Whether this process may do whatever it likes with files, so that rights cannot be tested in it.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
