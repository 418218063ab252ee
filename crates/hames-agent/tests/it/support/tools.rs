//! Tools of closures, and a world for them in which nothing is.

use std::future::Future;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use hames_protocol::{Declaration, Effect, Resource, ToolSpec};
use hames_tools::{
    DirEntry, Expect, FileStat, FsError, FsPath, FsProvider, ShellError, ShellOutcome, ShellProvider, ShellRequest,
    Staged, Tool, ToolCx, ToolFailure, ToolOutput,
};
use serde_json::{Value, json};

use super::{Gate, Trace};

pub(crate) type Answer = Result<ToolOutput, ToolFailure>;
type Body = Arc<dyn Fn(Value, ToolCx) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// A tool with one effect on the path it is given. Its body leaves a mark, then does what the test says.
#[derive(Clone)]
pub(crate) struct TestTool {
    spec: ToolSpec,
    effect: Effect,
    body: Body,
    trace: Option<Trace>,
}

/// `Look` reads, `Change` edits, `Do` runs, `Post` acts outside, `Note` changes the session; all answer at once.
pub(crate) fn all() -> Vec<TestTool> {
    [
        ("Look", Effect::Read),
        ("Change", Effect::Edit),
        ("Do", Effect::Run),
        ("Post", Effect::External),
        ("Note", Effect::Session),
    ]
    .map(|(name, effect)| TestTool::new(name, effect))
    .into()
}

impl TestTool {
    pub(crate) fn new(name: &str, effect: Effect) -> Self {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        Self {
            spec: ToolSpec { name: name.into(), description: "A tool.".into(), parameters },
            effect,
            body: Arc::new(|input, _| {
                Box::pin(async move { Ok(ToolOutput::text(format!("done with {}", input["path"]))) })
            }),
            trace: None,
        }
    }
    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }
    pub(crate) fn parameters(mut self, parameters: Value) -> Self {
        self.spec.parameters = parameters;
        self
    }
    pub(crate) fn traced(mut self, trace: &Trace) -> Self {
        self.trace = Some(trace.clone());
        self
    }
    pub(crate) fn does<F>(mut self, body: impl Fn(Value, ToolCx) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.body = Arc::new(move |input, cx| Box::pin(body(input, cx)));
        self
    }
    /// Waits at a gate; stops when it is cancelled.
    pub(crate) fn gated(self, gate: &Gate) -> Self {
        let gate = gate.clone();
        self.does(move |_, cx| {
            let gate = gate.clone();
            async move {
                tokio::select! {
                    () = gate.pass() => Ok(ToolOutput::text("passed")),
                    () = cx.cancel.cancelled() => Err(ToolFailure::cancelled()),
                }
            }
        })
    }
}

#[async_trait]
impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn declare(&self, input: &Value) -> Declaration {
        let write = !matches!(self.effect, Effect::Read | Effect::Session);
        let path = input["path"].as_str().map(|path| Resource::path(path, write));
        let resources = if self.effect == Effect::Session { Vec::new() } else { path.into_iter().collect() };
        Declaration::new(self.effect, resources)
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        if let Some(trace) = &self.trace {
            trace.mark(format!("body {}", self.spec.name));
        }
        (self.body)(input.clone(), cx.clone()).await
    }
}

/// Paths are inside `/w`, and nothing is there.
pub(crate) struct StubFs;

impl FsProvider for StubFs {
    fn root(&self) -> &Path {
        Path::new("/w")
    }
    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        let abs = PathBuf::from("/w").join(path);
        Ok(FsPath { shown: path.to_owned(), inside: abs.starts_with("/w"), abs, identity: None })
    }
    fn stat(&self, _: &FsPath) -> Result<FileStat, FsError> {
        Err(FsError::Cancelled)
    }
    fn open(&self, _: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        Err(FsError::Cancelled)
    }
    fn list(&self, _: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        Err(FsError::Cancelled)
    }
    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.resolve(path)
    }
    fn stage_write(&self, _: &FsPath, _: &[u8], _: &Expect, _: Option<u32>) -> Result<Box<dyn Staged>, FsError> {
        Err(FsError::Cancelled)
    }
    fn stage_remove(&self, _: &FsPath, _: &Expect) -> Result<Box<dyn Staged>, FsError> {
        Err(FsError::Cancelled)
    }
}

pub(crate) struct NoShell;

#[async_trait]
impl ShellProvider for NoShell {
    async fn run(
        &self,
        _: ShellRequest,
        _: &mut (dyn for<'b> FnMut(&'b [u8]) + Send),
    ) -> Result<ShellOutcome, ShellError> {
        Err(ShellError("no shell".into()))
    }
}
