//! A workspace on disk and everything a tool needs to be called in it.

#![allow(clippy::unwrap_used)] // helpers of tests fail like tests

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{Emit, Envelope, Event, Failure, MemoryBlobs, Mode, SessionState};
use hames_tools::{ShellError, ShellOutcome, ShellProvider, ShellRequest, Tool, ToolCx, ToolFailure};
use hames_workspace::files::{LocalFs, LocalFsOptions};
use serde_json::Value;
use tempfile::TempDir;

/// Records events and keeps the state current, as a run does.
#[derive(Default)]
pub(crate) struct Log {
    state: Arc<Mutex<SessionState>>,
    pub(crate) events: Mutex<Vec<Event>>,
}

#[async_trait]
impl Emit for Log {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        for event in &events {
            self.state.lock().unwrap().apply(&Envelope::detached(0, event.clone()));
        }
        self.events.lock().unwrap().extend(events);
        Ok(())
    }

    fn show(&self, _event: Event) {}
}

/// A shell that no test here may need.
struct NoShell;

#[async_trait]
impl ShellProvider for NoShell {
    async fn run(
        &self,
        _request: ShellRequest,
        _output: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError> {
        Err(ShellError("no command may be run here".into()))
    }
}

/// A workspace in a temporary folder.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    pub(crate) cx: ToolCx,
    pub(crate) log: Arc<Log>,
}

impl Bench {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            write(&folder.path().join(path), content.as_bytes());
        }
        let log = Arc::new(Log::default());
        let cx = ToolCx {
            session: "session".into(),
            call_id: "call".into(),
            mode: Mode::Analyze,
            fs: Arc::new(LocalFs::new(folder.path(), LocalFsOptions::default()).unwrap()),
            shell: Arc::new(NoShell),
            blobs: Arc::new(MemoryBlobs::default()),
            emit: log.clone(),
            cancel: Default::default(),
            cap_bytes: 30 * 1024,
            state: log.state.clone(),
            approved: Vec::new(),
        };
        Self { folder, cx, log }
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        write(&self.folder.path().join(path), content);
    }

    pub(crate) fn run(&self, tool: &dyn Tool, input: Value) -> Result<String, ToolFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(tool.run(&input, &self.cx)).map(|output| output.text)
    }

    /// Runs a call that has to succeed.
    pub(crate) fn text(&self, tool: &dyn Tool, input: Value) -> String {
        self.run(tool, input.clone()).unwrap_or_else(|failure| panic!("{input}: {failure:?}"))
    }
}

fn write(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// How many cases a property is tried with.
pub(crate) fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}
