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
    Door, DoorParts, Expect, FileKind, FsProvider, LockTable, Policy, RunCx, Secrets, Tool, ToolSet, WalkOptions,
};
use hames_workspace::files::{LocalFs, LocalFsOptions, MemoryFs, Overlay};
use hames_workspace::shell::{Reply, ScriptedShell};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What a recorder would do: keeps events and folds them at once.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) state: Arc<Mutex<SessionState>>,
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

pub(crate) struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn decide(&self, _: &ApprovalAsked) -> Option<(Decision, String)> {
        Some((Decision::Once, "test".into()))
    }
}

pub(crate) fn shell() -> ScriptedShell {
    ScriptedShell::new()
        .on("echo hi", Reply::ok("hi\n"))
        .on("make", Reply { stdout: b"step 1\n".to_vec(), ..Reply::failed(2, "make: *** boom\n") })
        .on("colour", Reply::ok("\u{1b}[32mgreen\u{1b}[0m 10%\r100%\n"))
        .on("yes", Reply::ok("y\n".repeat(60_000)))
        .on("scream", Reply::failed(1, "e".repeat(30_000)))
        .on("sleep 9", Reply::ok("begun\n").hanging())
}

/// Every filesystem with these files in it.
pub(crate) fn filesystems(
    files: &BTreeMap<String, String>,
) -> Vec<(&'static str, Arc<dyn FsProvider>, tempfile::TempDir)> {
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
pub(crate) fn contents(fs: &dyn FsProvider) -> BTreeMap<String, String> {
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

/// The text of a result, or of why there is none.
type Answer = Result<String, String>;

/// What the door answers to one call after the other.
async fn answers(fs: &Arc<dyn FsProvider>, calls: &[(String, Value)]) -> Vec<Value> {
    let given = through_the_door(fs, hames_workspace::library::tools(), Mode::Build, calls).await;
    let read = |answer: Answer| match answer {
        Ok(text) => serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")),
        Err(error) => json!({"failed": error}),
    };
    given.into_iter().map(read).collect()
}

/// The same for any tools, as text; in Analyze over the proposals of the calls before.
async fn through_the_door(
    fs: &Arc<dyn FsProvider>,
    tools: Vec<Arc<dyn Tool>>,
    mode: Mode,
    calls: &[(String, Value)],
) -> Vec<Answer> {
    let recorder = Arc::new(Recorder::default());
    let door = Door::new(DoorParts {
        tools: ToolSet::new(tools).unwrap(),
        policy: Policy::default(),
        fs: fs.clone(),
        preview: Some(Arc::new(Overlay::default())),
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
            mode,
            emit: recorder.clone(),
            state: recorder.state.clone(),
            abort: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            memory: None,
            pins: hames_tools::PinRoom::default(),
        };
        let raw = RawCall { id: "x".into(), name: tool.clone(), arguments: input.to_string(), extra: None };
        door.run(vec![door.admit(raw)], cx).await.unwrap();
        all.push(match recorder.events.lock().unwrap().last().unwrap() {
            Event::ToolDone(done) => Ok(done.output.clone()),
            Event::ToolError(error) => Err(error.error.clone()),
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

/// `repeat:N:text` stands for N times the text, `{n}` in it counting, so that vectors about long files stay short.
fn spelled_out(text: &str) -> String {
    match text.strip_prefix("repeat:").and_then(|rest| rest.split_once(':')) {
        Some((times, what)) => {
            (1..=times.parse::<usize>().unwrap()).map(|n| what.replace("{n}", &n.to_string())).collect()
        }
        None => text.to_owned(),
    }
}

/// A long text by its ends and its length, so that vectors about long answers stay short.
fn shortened(answer: Value) -> Value {
    match answer {
        Value::String(text) if text.len() > 400 => {
            let chars: Vec<char> = text.chars().collect();
            let part = |range: std::ops::Range<usize>| chars[range].iter().collect::<String>();
            let (head, tail) = (part(0..60), part(chars.len() - 120..chars.len()));
            json!(format!("{head} […{} chars…] {tail}", chars.len()))
        }
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, shortened(value))).collect())
        }
        other => other,
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
            let given: Vec<Value> = given.into_iter().map(shortened).collect();
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
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 60, "{count} vectors");
}

/// The built-in tools on every filesystem, for real and over proposals: the same words, and in Analyze nothing changes.
#[tokio::test]
async fn the_built_in_tools_say_the_same_on_every_filesystem() {
    let files: BTreeMap<String, String> = [
        (".gitignore", "out/\n"),
        ("out/hidden.rs", "fn needle() {}\n"),
        ("src/main.rs", "fn main() {\n    needle();\n}\n"),
        ("src/lib/a b.rs", "// needle\r\nfn a() {}\r\n"),
        ("漢字.md", "# 漢字\n"),
    ]
    .map(|(path, content)| (path.to_owned(), content.to_owned()))
    .into();
    let calls: Vec<(String, Value)> = [
        ("Read", json!({"path": "src/main.rs"})),
        ("Read", json!({"path": "src/lib/a\u{a0}b.rs"})),
        ("Read", json!({"path": "src/man.rs"})),
        ("Read", json!({"path": "src"})),
        ("List", json!({})),
        ("List", json!({"path": "src", "recursive": true})),
        ("Glob", json!({"pattern": "**/*.rs"})),
        ("Grep", json!({"pattern": "needle"})),
        ("Grep", json!({"pattern": "needle", "context": 1, "glob": "*.rs", "path": "src"})),
        ("Grep", json!({"pattern": "needle", "mode": "count", "no_ignore": true})),
        ("Write", json!({"path": "new/deep/file.txt", "content": "one\ntwo\n"})),
        ("StrReplace", json!({"path": "new/deep/file.txt", "old_string": "two", "new_string": "2"})),
        ("StrReplace", json!({"path": "src/lib/a b.rs", "old_string": "// needle\nfn", "new_string": "// pin\nfn"})),
        (
            "Edit",
            json!({"path": "src/main.rs", "edits": [
                {"old_string": "needle", "new_string": "pin"}, {"old_string": "main", "new_string": "start"},
            ]}),
        ),
        ("Edit", json!({"path": "src/main.rs", "edits": [{"old_string": "nowhere", "new_string": "x"}]})),
        ("Read", json!({"path": "src/main.rs"})),
        ("Grep", json!({"pattern": "pin|needle|2"})),
        ("Glob", json!({"pattern": "new/**"})),
        ("Delete", json!({"path": "漢字.md"})),
        ("Delete", json!({"path": "src"})),
        ("Delete", json!({"path": "src", "recursive": true})),
        ("Write", json!({"path": "src", "content": "a file now\n"})),
        ("List", json!({"recursive": true})),
        ("Read", json!({"path": "src/main.rs"})),
    ]
    .map(|(tool, input)| (tool.to_owned(), input))
    .into();
    for mode in [Mode::Build, Mode::Analyze] {
        let mut first: Option<(Vec<Answer>, BTreeMap<String, String>)> = None;
        for (kind, fs, _scratch) in filesystems(&files) {
            let given = through_the_door(&fs, hames_workspace::tools(), mode, &calls).await;
            let there = contents(fs.as_ref());
            if mode == Mode::Analyze {
                assert_eq!(there, files, "{kind}");
            } else {
                let names: Vec<_> = there.keys().collect();
                assert_eq!(names, [".gitignore", "new/deep/file.txt", "out/hidden.rs", "src"], "{kind}");
            }
            let Some((wanted, tree)) = &first else {
                first = Some((given, there));
                continue;
            };
            for (call, (given, wanted)) in calls.iter().zip(given.iter().zip(wanted)) {
                assert_eq!(given, wanted, "{kind}, {mode}: {call:?}");
            }
            assert_eq!(&there, tree, "{kind}, {mode}");
        }
    }
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
