//! What these tests share: a store in a temporary home, and short ways to make events.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hames_protocol::*;
use hames_store::{Lease, SessionInfo, Store};
use tempfile::TempDir;

/// A store in a home of its own.
pub(crate) struct Home {
    pub(crate) dir: TempDir,
    pub(crate) store: Option<Store>,
}

impl Home {
    pub(crate) fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        let opened = Store::open(dir.path()).unwrap();
        assert_eq!(opened.notices, Vec::<String>::new());
        Home { dir, store: Some(opened.store) }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.path().join("hames.db")
    }

    /// Closes the store in good order.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }

    /// Opens it again; gives the notices.
    pub(crate) fn reopen(&mut self) -> Vec<String> {
        self.close();
        let opened = Store::open(self.path()).unwrap();
        self.store = Some(opened.store);
        opened.notices
    }

    pub(crate) fn session(&self, name: &str) -> SessionInfo {
        self.held(name).0
    }

    pub(crate) fn held(&self, name: &str) -> (SessionInfo, Lease) {
        self.store().create(name, Path::new("/work"), Settings::default(), 1000, "a test").unwrap()
    }

    pub(crate) fn log(&self) -> Arc<dyn EventLog> {
        self.store().log()
    }

    pub(crate) fn append(&self, id: &SessionId, next: u64, events: Vec<Event>) -> Result<Vec<Envelope>, LogError> {
        append(self.store(), id, next, events)
    }

    pub(crate) fn read(&self, id: &SessionId) -> Vec<Envelope> {
        wait(self.log().read(id, 0, usize::MAX)).unwrap()
    }

    /// A second connection, as another program would have it.
    pub(crate) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.database()).unwrap()
    }
}

pub(crate) fn append(store: &Store, id: &SessionId, next: u64, events: Vec<Event>) -> Result<Vec<Envelope>, LogError> {
    let envelopes = events.into_iter().zip(next..).map(|(event, seq)| envelope(id, 1000 + seq, event)).collect();
    wait(store.log().append(id, next, envelopes, Durability::Process))
}

pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(crate) fn envelope(id: &SessionId, at: u64, event: Event) -> Envelope {
    Envelope { session: Some(id.clone()), ..Envelope::detached(at, event) }
}

pub(crate) fn user(text: &str) -> Event {
    Event::MessageUser(MessageUser {
        parts: vec![Part::text(text)],
        delivery: None,
        pending_id: None,
        idempotency_id: None,
        note: None,
    })
}

pub(crate) fn answer(text: &str) -> Event {
    Event::TextDone(TextDone { index: 0, text: text.into(), cut: None })
}

pub(crate) fn run_start(model: &str, mode: Mode) -> Event {
    Event::RunStart(RunStart {
        mode,
        parallel: false,
        model: model.parse().unwrap(),
        settings: Settings::default(),
        tools: vec![],
        instructions: vec![],
        skills: vec![],
    })
}

pub(crate) fn call(tool: &str, target: &str) -> Event {
    Event::ToolCall(ToolCall {
        call_id: "c".into(),
        provider_id: String::new(),
        name: tool.into(),
        arguments: "{}".into(),
        input: None,
        label: Label::new(tool, target),
        declaration: None,
        extra: None,
    })
}

pub(crate) fn tool_done(output: &str) -> Event {
    Event::ToolDone(ToolDone {
        call_id: "c".into(),
        name: "Shell".into(),
        output: output.into(),
        blob: None,
        diffs: vec![],
        files: vec![],
        exit_code: None,
        attachments: vec![],
        duration_ms: 1,
        served_from: None,
        capability: false,
    })
}

pub(crate) fn step_done() -> Event {
    Event::step_done_for_tests("stop")
}

pub(crate) fn run_done() -> Event {
    Event::RunDone(RunDone { result: RunResult::Complete, exit_code: 0 })
}

pub(crate) fn texts(envelopes: &[Envelope]) -> Vec<String> {
    envelopes
        .iter()
        .map(|e| match &e.event {
            Event::MessageUser(m) => match &m.parts[0] {
                Part::Text { text } => text.clone(),
                other => format!("{other:?}"),
            },
            Event::TextDone(t) => t.text.clone(),
            other => other.type_name().to_owned(),
        })
        .collect()
}

/// Starts this test binary again as a helper: only the test named `helper` runs, with `task` in its environment.
pub(crate) fn helper(helper: &str, home: &Path, task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", helper, "--nocapture", "--ignored", "--test-threads=1"])
        .env("HAMES_STORE_HELPER_HOME", home)
        .env("HAMES_STORE_HELPER_TASK", task)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

/// Home and task of a helper; `None` where the test was started by hand.
pub(crate) fn helper_task() -> Option<(std::path::PathBuf, String)> {
    Some((std::env::var_os("HAMES_STORE_HELPER_HOME")?.into(), std::env::var("HAMES_STORE_HELPER_TASK").ok()?))
}

/// Waits until a helper has printed the line.
pub(crate) fn wait_for_line(child: &mut Child, line: &str) {
    use std::io::BufRead;
    let out = std::io::BufReader::new(child.stdout.as_mut().unwrap());
    assert!(out.lines().any(|found| found.unwrap().contains(line)), "the helper ended without saying {line}");
}
