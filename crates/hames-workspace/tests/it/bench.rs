//! A workspace with files in it, and tools called in it one at a time.

use hames_protocol::Event;
use hames_tools::{Tool, ToolCx, ToolFailure};
use serde_json::Value;

use crate::files::kit;

/// A workspace in a temporary folder.
pub(crate) struct Bench {
    kit: kit::Bench,
    pub(crate) cx: ToolCx,
}

impl Bench {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let kit = kit::Bench::new();
        for (path, content) in files {
            kit.file(path, content);
        }
        let cx = ToolCx { cap_bytes: 30 * 1024, ..kit.cx.clone() };
        Self { kit, cx }
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        self.kit.file(path, content);
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.kit.path(name)
    }

    /// What was recorded so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.kit.recorder.events.lock().unwrap().clone()
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

/// How many cases a property is tried with.
pub(crate) fn cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}
