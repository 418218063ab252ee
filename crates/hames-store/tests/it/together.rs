//! Calls of one answer on the same files, for real and as proposals, on every filesystem: they come one after the other,
//! and none is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use hames_protocol::{CallId, Event, MemoryBlobs, Mode, RawCall, SessionId};
use hames_tools::{Door, DoorParts, FsProvider, LockTable, Policy, Preview, RunCx, Secrets, ToolSet};
use hames_workspace::files::{Overlay, tools};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::files::{Recorder, Yes, contents, filesystems, shell};

/// Runs of every case: what is lost by chance must not go unseen.
fn runs() -> usize {
    if std::env::var_os("HAMES_SOAK").is_some() { 100 } else { 4 }
}

type Call = (&'static str, Value);

fn replace(path: &str, old: &str, new: &str) -> Call {
    ("StrReplace", json!({"path": path, "old_string": old, "new_string": new}))
}

fn write(path: &str) -> Call {
    ("Write", json!({"path": path, "content": "written"}))
}

fn delete(path: &str) -> Call {
    ("Delete", json!({"path": path, "recursive": true}))
}

fn numbers() -> String {
    (1..=100).map(|n| format!("line {n}.\n")).collect()
}

/// Takes calls through one door together; says which were done, and gives the files as the session sees them then.
async fn run(fs: &Arc<dyn FsProvider>, mode: Mode, calls: &[Call]) -> (Vec<bool>, BTreeMap<String, String>) {
    let recorder = Arc::new(Recorder::default());
    let blobs = Arc::new(MemoryBlobs::default());
    let preview = Overlay::default();
    let seen = match mode {
        Mode::Analyze => preview.over(fs.clone(), recorder.state.clone(), blobs.clone()),
        Mode::Build => fs.clone(),
    };
    let door = Door::new(DoorParts {
        tools: ToolSet::new(tools()).unwrap(),
        policy: Policy::default(),
        fs: fs.clone(),
        preview: Some(Arc::new(preview)),
        shell: Arc::new(shell()),
        blobs,
        approver: Arc::new(Yes),
        grants: None,
        secrets: Secrets::default(),
        locks: Arc::new(LockTable::new()),
        window_tokens: 128_000,
        parallel_tools: true,
    });
    let admitted: Vec<_> = calls
        .iter()
        .map(|(name, input)| {
            let (name, arguments) = ((*name).to_owned(), input.to_string());
            door.admit(RawCall { id: String::new(), name, arguments, extra: None })
        })
        .collect();
    let ids: Vec<_> = admitted.iter().map(|call| call.event.call_id.clone()).collect();
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
    door.run(admitted, cx).await.unwrap();
    let done = {
        let events = recorder.events.lock().unwrap();
        let was_done =
            |id: &CallId| events.iter().any(|event| matches!(event, Event::ToolDone(done) if done.call_id == *id));
        ids.iter().map(was_done).collect()
    };
    let files = tokio::task::spawn_blocking(move || contents(seen.as_ref())).await.unwrap();
    (done, files)
}

/// Calls, which of them are done, and the files that are there then.
struct Case {
    calls: Vec<Call>,
    done: Vec<bool>,
    files: BTreeMap<String, String>,
}

fn case(calls: Vec<Call>, done: &[bool], files: &[(&str, &str)]) -> Case {
    let files = files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect();
    Case { calls, done: done.to_vec(), files }
}

/// What is tried, for a filesystem with this root.
fn cases(root: &str) -> Vec<Case> {
    let edited = numbers().replace("line 50.", "FIFTY").replace("line 75.", "SEVENTY-FIVE").replace("line 1.", "ONE");
    let kept = [("d/f", "one"), ("n.txt", edited.as_str())];
    // Two edits of one file, by one name and by two.
    let absolute = format!("{root}/n.txt");
    let names = [("n.txt", "n.txt"), ("./n.txt", "d/../n.txt"), (absolute.as_str(), "n.txt")];
    let mut cases: Vec<Case> = names
        .into_iter()
        .map(|(first, second)| {
            let calls = vec![
                replace(first, "line 50.", "FIFTY"),
                replace(second, "line 75.", "SEVENTY-FIVE"),
                ("Edit", json!({"path": first, "edits": [{"old_string": "line 1.", "new_string": "ONE"}]})),
            ];
            case(calls, &[true; 3], &kept)
        })
        .collect();
    // Many, each of which needs the one before it.
    let chain =
        (0..30).map(|n| replace("d/f", &["one".into(), format!("<{n}>")][usize::from(n > 0)], &format!("<{}>", n + 1)));
    let numbers = numbers();
    cases.push(case(chain.collect(), &[true; 30], &[("d/f", "<30>"), ("n.txt", &numbers)]));
    // A file and its folder.
    let n = ("n.txt", numbers.as_str());
    cases.extend([
        case(vec![replace("d/f", "one", "two"), delete("d")], &[true, true], &[n]),
        case(vec![delete("d"), replace("d/f", "one", "two")], &[true, false], &[n]),
        case(vec![delete("d"), write("d/f")], &[true, true], &[("d/f", "written"), n]),
        case(vec![write("d/sub/new"), delete("d"), write("d/last")], &[true; 3], &[("d/last", "written"), n]),
        case(vec![write("d/a/1"), write("d/a/2"), delete("./d/../d/a")], &[true; 3], &[("d/f", "one"), n]),
        case(vec![delete("d"), write("d"), delete("d"), write("d/x")], &[true; 4], &[("d/x", "written"), n]),
    ]);
    cases
}

#[tokio::test]
async fn parallel_edits_of_one_file_of_its_names_and_of_its_folder_come_one_after_the_other() {
    let files: BTreeMap<_, _> = [("n.txt".to_owned(), numbers()), ("d/f".to_owned(), "one".to_owned())].into();
    for _ in 0..runs() {
        for mode in [Mode::Build, Mode::Analyze] {
            for number in 0..cases("").len() {
                for (kind, fs, _scratch) in filesystems(&files) {
                    let case = cases(&fs.root().to_string_lossy()).swap_remove(number);
                    let (done, there) = run(&fs, mode, &case.calls).await;
                    assert_eq!(done, case.done, "{kind} {mode:?}: {:?}", case.calls);
                    assert_eq!(there, case.files, "{kind} {mode:?}: {:?}", case.calls);
                    if mode == Mode::Analyze {
                        assert_eq!(contents(fs.as_ref()), files, "{kind}: nothing is modified");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn proposals_for_one_file_under_its_links_become_one() {
    for (first, second) in [("link", "n.txt"), ("n.txt", "hard"), ("hard", "link"), ("through/n.txt", "link")] {
        for _ in 0..runs() {
            let (_, fs, folder) = filesystems(&[("n.txt".to_owned(), numbers())].into()).swap_remove(0);
            let at = |name: &str| folder.path().join(name);
            std::os::unix::fs::symlink("n.txt", at("link")).unwrap();
            std::os::unix::fs::symlink(".", at("through")).unwrap();
            if [first, second].contains(&"hard") {
                std::fs::hard_link(at("n.txt"), at("hard")).unwrap();
            }
            let calls = [replace(first, "line 50.", "FIFTY"), replace(second, "line 75.", "SEVENTY-FIVE")];
            let (done, there) = run(&fs, Mode::Analyze, &calls).await;
            let both = numbers().replace("line 50.", "FIFTY").replace("line 75.", "SEVENTY-FIVE");
            assert_eq!(done, [true, true], "{first}, {second}");
            let of_it = there.iter().filter(|(path, _)| !path.contains('/'));
            for (name, text) in of_it {
                assert!(*text == both, "{first}, {second}: both changes are seen under {name}");
            }
        }
    }
}
