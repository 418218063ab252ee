//! Files in a SQLite database, and every filesystem under the tools with the library's names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hames_protocol::{
    ApprovalAsked, Approver, Decision, Emit, Envelope, Event, Failure, MemoryBlobs, Mode, RawCall, SessionId,
    SessionState,
};
use hames_store::open_files;
use hames_tools::{
    Door, DoorParts, Expect, FileKind, FsProvider, LockTable, Policy, RunCx, Secrets, ToolSet, WalkOptions,
};
use hames_workspace::files::{LocalFs, LocalFsOptions, MemoryFs};
use hames_workspace::shell::{Reply, ScriptedShell};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What a recorder would do: keeps events and folds them at once.
#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<Event>>,
    state: Arc<Mutex<SessionState>>,
}

#[async_trait]
impl Emit for Recorder {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        for event in events {
            let envelope: Envelope = serde_json::from_value(json!({
                "v": 1, "seq": null, "at": 0, "session": "s", "run": null, "turn": null, "step": null, "agent": [],
                "event": event,
            }))
            .unwrap();
            self.state.lock().unwrap().apply(&envelope);
            self.events.lock().unwrap().push(event);
        }
        Ok(())
    }
    fn show(&self, _event: Event) {}
}

struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn decide(&self, _: &ApprovalAsked) -> Option<(Decision, String)> {
        Some((Decision::Once, "test".into()))
    }
}

fn shell() -> ScriptedShell {
    ScriptedShell::new()
        .on("echo hi", Reply::ok("hi\n"))
        .on("make", Reply { stdout: b"step 1\n".to_vec(), ..Reply::failed(2, "make: *** boom\n") })
        .on("colour", Reply::ok("\u{1b}[32mgreen\u{1b}[0m 10%\r100%\n"))
        .on("yes", Reply::ok("y\n".repeat(60_000)))
        .on("scream", Reply::failed(1, "e".repeat(30_000)))
        .on("sleep 9", Reply::ok("begun\n").hanging())
}

/// Every filesystem with these files in it.
fn filesystems(files: &BTreeMap<String, String>) -> Vec<(&'static str, Arc<dyn FsProvider>, tempfile::TempDir)> {
    let local = tempfile::tempdir().unwrap();
    let sqlite = tempfile::tempdir().unwrap();
    let all: Vec<(&'static str, Arc<dyn FsProvider>, tempfile::TempDir)> = vec![
        ("local", Arc::new(LocalFs::new(local.path(), LocalFsOptions::default()).unwrap()), local),
        ("memory", Arc::new(MemoryFs::default()), tempfile::tempdir().unwrap()),
        ("sqlite", Arc::new(open_files(&sqlite.path().join("files.db")).unwrap()), sqlite),
    ];
    for (_, fs, _) in &all {
        for (path, content) in files {
            write(fs.as_ref(), path, content.as_bytes());
        }
    }
    all
}

fn write(fs: &dyn FsProvider, path: &str, content: &[u8]) {
    fs.write(&fs.resolve(path).unwrap(), content, &Expect::Absent, &mut |_| Ok(())).unwrap();
}

/// The files of a filesystem, by path from the root.
fn contents(fs: &dyn FsProvider) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let options = WalkOptions { no_ignore: true, max_depth: None };
    fs.walk(&fs.resolve(".").unwrap(), &options, &mut |entry| {
        if entry.kind == FileKind::File {
            let content = fs.read(&entry.path, 1 << 20).unwrap();
            found.insert(entry.path.shown, String::from_utf8_lossy(&content).into_owned());
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// What the door answers to one call after the other.
async fn answers(fs: &Arc<dyn FsProvider>, calls: &[(String, Value)]) -> Vec<Value> {
    let recorder = Arc::new(Recorder::default());
    let door = Door::new(DoorParts {
        tools: ToolSet::new(hames_workspace::library::tools()).unwrap(),
        policy: Policy::default(),
        fs: fs.clone(),
        preview: None,
        shell: Arc::new(shell()),
        blobs: Arc::new(MemoryBlobs::default()),
        approver: Arc::new(Yes),
        grants: None,
        secrets: Secrets::default(),
        locks: Arc::new(LockTable::new()),
        window_tokens: 128_000,
        parallel_tools: true,
    });
    let mut all = Vec::new();
    for (tool, input) in calls {
        let cx = RunCx {
            session: SessionId::from("s"),
            mode: Mode::Build,
            emit: recorder.clone(),
            state: recorder.state.clone(),
            abort: CancellationToken::new(),
            interrupt: CancellationToken::new(),
        };
        let raw = RawCall { id: "x".into(), name: tool.clone(), arguments: input.to_string(), extra: None };
        door.run(vec![door.admit(raw)], cx).await.unwrap();
        all.push(match recorder.events.lock().unwrap().last().unwrap() {
            Event::ToolDone(done) => {
                serde_json::from_str(&done.output).unwrap_or_else(|e| panic!("{e}: {}", done.output))
            }
            Event::ToolError(error) => json!({"failed": error.error}),
            other => panic!("{other:?}"),
        });
    }
    all
}

/// One line of the vectors: files, calls, what they answer, and what is there afterwards.
#[derive(serde::Deserialize)]
struct Vector {
    name: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    calls: Vec<(String, Value)>,
    answers: Vec<Value>,
    /// Only what is listed is compared; `null` says that nothing is there.
    #[serde(default)]
    after: BTreeMap<String, Option<String>>,
}

/// A line of `x*N` stands for N times x, so that vectors about long files stay short.
fn spelled_out(text: &str) -> String {
    match text.strip_prefix("repeat:").and_then(|rest| rest.split_once(':')) {
        Some((times, what)) => {
            (1..=times.parse::<usize>().unwrap()).map(|n| what.replace("{n}", &n.to_string())).collect()
        }
        None => text.to_owned(),
    }
}

#[tokio::test]
async fn the_nine_tools_answer_the_same_on_every_filesystem() {
    let vectors = include_str!("../library.jsonl").lines().filter(|line| !line.trim().is_empty());
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in vectors {
        let vector: Vector = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let files = vector.files.iter().map(|(path, content)| (path.clone(), spelled_out(content))).collect();
        for (kind, fs, _scratch) in filesystems(&files) {
            let root = fs.root().to_string_lossy().into_owned();
            let given: Vec<Value> = answers(&fs, &vector.calls).await;
            let given: Vec<Value> = serde_json::from_str(&json!(given).to_string().replace(&root, "ROOT")).unwrap();
            if given != vector.answers {
                wrong.push(format!("{} on {kind}: {}", vector.name, json!(given)));
            }
            let there = contents(fs.as_ref());
            for (path, content) in &vector.after {
                let content = content.as_deref().map(spelled_out);
                if there.get(path) != content.as_ref() {
                    wrong.push(format!("{} on {kind}: {path} is {:?}", vector.name, there.get(path)));
                }
            }
        }
        count += vector.calls.len();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 60, "{count} calls");
}

#[test]
fn files_in_a_database_survive_closing_it_and_keep_apart_from_other_databases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("files.db");
    write(&open_files(&path).unwrap(), "a/b/c.txt", b"one\r\ntwo\0");
    let again = open_files(&path).unwrap();
    let file = again.resolve("a/b/c.txt").unwrap();
    assert_eq!(again.read(&file, 100).unwrap(), b"one\r\ntwo\0");
    let stat = again.stat(&file).unwrap();
    assert_eq!((stat.kind, stat.size, stat.mode), (FileKind::File, 9, 0o644));
    assert!(stat.modified_ns > 1_000_000_000_000_000_000);

    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let refused = open_files(&other).unwrap_err().to_string();
    assert!(refused.contains("a database of something else"), "{refused}");
    std::fs::write(&other, "no database at all, but long enough to be read as the header of one".repeat(20)).unwrap();
    let refused = open_files(&other).unwrap_err().to_string();
    assert!(refused.contains("this is no database"), "{refused}");
    assert!(open_files(Path::new("/nowhere/at/all.db")).is_err());
}

#[test]
fn a_change_happens_only_to_what_was_staged_against() {
    for (kind, fs, _scratch) in filesystems(&[("f".into(), "1".into()), ("d/x".into(), "x".into())].into()) {
        let file = fs.resolve("f").unwrap();
        let hash = |text: &str| Expect::Hash(blake3::hash(text.as_bytes()).to_hex().to_string());
        let first = fs.stage_write(&file, b"2", &hash("1"), None).unwrap();
        let second = fs.stage_remove(&file, &hash("1")).unwrap();
        first.commit().unwrap();
        assert!(second.commit().is_err(), "{kind}");
        assert_eq!(fs.read(&file, 10).unwrap(), b"2", "{kind}");
        assert!(fs.stage_write(&file, b"3", &Expect::Absent, None).is_err(), "{kind}");
        let folder = fs.resolve("d").unwrap();
        assert!(fs.stage_write(&folder, b"", &Expect::Absent, None).is_err(), "{kind}");
        assert!(fs.resolve("f/below").is_err(), "{kind}");
        assert!(fs.stage_remove(&folder, &Expect::Dir).unwrap().commit().is_err(), "{kind}: it is not empty");
        fs.stage_remove(&fs.resolve("d/x").unwrap(), &hash("x")).unwrap().commit().unwrap();
        fs.stage_remove(&folder, &Expect::Dir).unwrap().commit().unwrap();
        assert!(fs.stat(&folder).is_err(), "{kind}");
    }
}

#[tokio::test]
async fn a_scripted_shell_ends_with_its_limit_or_its_cancel() {
    use hames_tools::{ShellEnd, ShellProvider, ShellRequest};
    let cancelled = ShellRequest::new("sleep 9", "/", Duration::from_secs(3600));
    cancelled.cancel.cancel();
    let outcome = shell().run(cancelled, &mut |_| ()).await.unwrap();
    assert_eq!((outcome.end, outcome.head.as_slice()), (ShellEnd::Cancelled, &b"begun\n"[..]));
    let outcome = shell().run(ShellRequest::new("sleep 9", "/", Duration::ZERO), &mut |_| ()).await.unwrap();
    assert_eq!(outcome.end, ShellEnd::TimedOut);
    let outcome = shell().run(ShellRequest::new("nope x", "/", Duration::ZERO), &mut |_| ()).await.unwrap();
    assert_eq!((outcome.end, outcome.head), (ShellEnd::Exited(127), b"nope: command not found\n".to_vec()));
}
