//! An apply that is killed, at every point, and finished by whoever comes next.
//!
//! The killed process is this test program itself, started again to apply the proposals through a filesystem that kills
//! its process with SIGKILL before or after its nth change. Everything else in it is real: store, lease, log, files.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hames_agent::{Nobody, Ports, Session, SystemClock};
use hames_store::Store;
use hames_testkit::{Provider, Script, Turn};
use hames_tools::{DirEntry, Expect, FileStat, FsError, FsPath, FsProvider, Staged, StagedChange};
use hames_workspace::files::{Changes, LocalFs, LocalFsOptions};
use serde_json::{Value, json};

use super::picture;
use crate::kit::User;

const HOME: &str = "HAMES_TEST_HOME";
const PROJECT: &str = "HAMES_TEST_PROJECT";
const MOMENT: &str = "HAMES_TEST_MOMENT";

/// A filesystem that ends its process. Moments are counted: two for each change, before and after it.
struct Dying {
    inner: LocalFs,
    left: Arc<AtomicUsize>,
}

struct DyingChange {
    inner: Box<dyn Staged>,
    left: Arc<AtomicUsize>,
}

fn pass(left: &AtomicUsize) {
    if left.fetch_sub(1, Ordering::SeqCst) == 0 {
        let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
        loop {
            std::thread::park();
        }
    }
}

impl Dying {
    fn watched(&self, staged: Box<dyn Staged>) -> Box<dyn Staged> {
        Box::new(DyingChange { inner: staged, left: self.left.clone() })
    }
}

impl Staged for DyingChange {
    fn change(&self) -> &StagedChange {
        self.inner.change()
    }
    fn commit(self: Box<Self>) -> Result<(), FsError> {
        pass(&self.left);
        self.inner.commit()?;
        pass(&self.left);
        Ok(())
    }
}

impl FsProvider for Dying {
    fn root(&self) -> &Path {
        self.inner.root()
    }
    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve(path)
    }
    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve_entry(path)
    }
    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError> {
        self.inner.stat(path)
    }
    fn shared_identity(&self, path: &FsPath) -> Option<(u64, u64)> {
        self.inner.shared_identity(path)
    }
    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        self.inner.open(path)
    }
    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        self.inner.list(path)
    }
    fn read_link(&self, path: &FsPath) -> Result<Vec<u8>, FsError> {
        self.inner.read_link(path)
    }
    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        self.inner.stage_write(path, content, expect, mode).map(|staged| self.watched(staged))
    }
    fn make_folder(&self, path: &FsPath) -> Result<(), FsError> {
        pass(&self.left);
        self.inner.make_folder(path)?;
        pass(&self.left);
        Ok(())
    }
    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        self.inner.stage_remove(path, expect).map(|staged| self.watched(staged))
    }
}

/// Runs in a process of its own, which the tests below start.
#[test]
#[ignore = "dies; started by the tests beside it"]
fn applies_and_dies() {
    let (home, project) = (PathBuf::from(std::env::var_os(HOME).unwrap()), std::env::var_os(PROJECT).unwrap());
    let moment: usize = std::env::var(MOMENT).unwrap().parse().unwrap();
    let store = Store::open(&home).unwrap().store;
    let info = store.last(Path::new(&project)).unwrap().unwrap();
    let _lease = store.lease(&info.id, "a test").unwrap();
    let inner = LocalFs::new(Path::new(&project), LocalFsOptions::default()).unwrap();
    let fs = Arc::new(Dying { inner, left: Arc::new(AtomicUsize::new(moment)) });
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let ports = Ports { log: store.log(), clock: Arc::new(SystemClock) };
        let session = Session::resume(ports, info.id.clone()).await.unwrap();
        let state = session.state().clone();
        let changes = Changes::new(info.id.clone(), fs, store.blobs());
        let applied = changes.apply(&state, &[], session.emit(Arc::new(Nobody)).as_ref()).await.unwrap();
        assert_eq!(applied.failed, []);
    });
}

/// Every kind of change in one step, on a tree that has something for each.
fn user() -> (User, Provider) {
    let calls = [
        ("Write", json!({"path": "a.txt", "content": "new\n"})),
        ("Write", json!({"path": "n/m/new.txt", "content": "new\n"})),
        ("Delete", json!({"path": "gone.txt"})),
        ("Delete", json!({"path": "d", "recursive": true})),
    ];
    let room = [
        ("Delete", json!({"path": "link"})),
        ("Delete", json!({"path": "plain"})),
        ("Delete", json!({"path": "script"})),
        ("Write", json!({"path": "n/empty/x", "content": "x"})),
    ];
    let taken = [
        ("Write", json!({"path": "link", "content": "a file\n"})),
        ("Write", json!({"path": "plain/x.txt", "content": "a folder\n"})),
        ("Write", json!({"path": "script", "content": "anew\n"})),
        ("Delete", json!({"path": "n/empty/x"})),
    ];
    let turn = |calls: &[(&str, Value)]| {
        calls.iter().fold(Turn::new(), |turn, (tool, input)| turn.then_call(tool, input.clone()))
    };
    let script = Script::new().turn(turn(&calls)).turn(turn(&room)).turn(turn(&taken)).respond(|_| Turn::text("ok"));
    let (user, provider) = User::with(script);
    for (name, content) in
        [("a.txt", "old\n"), ("gone.txt", "x\n"), ("d/e/x.txt", "x\n"), ("plain", "x\n"), ("script", "old\n")]
    {
        user.write(name, content);
    }
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(user.project().join("script"), std::fs::Permissions::from_mode(0o750)).unwrap();
    symlink("a.txt", user.project().join("link")).unwrap();
    user.ok(&["run", "-s", "s", "propose"]);
    assert_eq!(user.ok(&["changes", "list", "--json"]).json().len(), 11);
    (user, provider)
}

/// Applies in a process that dies at that moment; says whether it did.
fn dies_at(user: &User, moment: usize) -> bool {
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "changes::cut::applies_and_dies"])
        .env(HOME, user.home())
        .env(PROJECT, user.project())
        .env(MOMENT, moment.to_string())
        .output()
        .unwrap();
    let died = ended.status.signal() == Some(9);
    assert!(died || ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    died
}

fn log_types(user: &User) -> Vec<String> {
    user.ok(&["sessions", "show", "s", "--json"]).types()
}

#[test]
fn an_apply_that_was_killed_is_finished_forward_from_every_point() {
    let (whole, _provider) = user();
    let before = picture(&whole.project(), false);
    whole.ok(&["changes", "apply"]);
    let after = picture(&whole.project(), false);
    let finishers: [&[&str]; 4] = [
        &["changes", "apply"],
        &["run", "-c", "go on"],
        &["changes", "discard"],
        &["run", "-c", "--mode", "build", "x"],
    ];
    let mut moment = 0;
    let (mut untouched, mut between) = (0, 0);
    loop {
        let (user, _provider) = user();
        if !dies_at(&user, moment) {
            assert_eq!(picture(&user.project(), false), after);
            break;
        }
        let types = log_types(&user);
        assert_eq!(types.last().unwrap(), "file.changed", "dies before it says that it is done");
        let cut = picture(&user.project(), false);
        // Folders of what was staged may be there; all else is as it was, or as it is meant to be.
        let stray = cut.iter().filter(|(path, line)| before.get(*path) != Some(line) && after.get(*path) != Some(line));
        assert_eq!(stray.collect::<Vec<_>>(), Vec::<(&PathBuf, &String)>::new(), "at {moment}");
        untouched += usize::from(moment == 0);
        between += usize::from(cut != before && cut != after);
        let list = user.ok(&["changes", "list"]).out;
        assert!(list.contains("applying was cut"), "{list}");
        assert_eq!(picture(&user.project(), false), cut, "looking finishes nothing");
        let finished = user.ok(finishers[moment % finishers.len()]);
        assert_eq!(picture(&user.project(), false), after, "killed at {moment}: {finished:?}");
        assert!(!finished.err.contains("left alone"), "{finished:?}");
        let types = log_types(&user);
        let count = |name: &str| types.iter().filter(|found| *found == name).count();
        assert_eq!((count("changes.apply_started"), count("changes.applied"), count("changes.discarded")), (1, 1, 0));
        assert!(user.ok(&["changes", "list"]).out.starts_with("nothing is proposed"));
        moment += 1;
    }
    assert!(untouched == 1 && between >= 15 && moment >= 20, "{moment} moments, {between} of them in between");
}

#[test]
fn what_somebody_else_changed_in_a_cut_apply_is_left_alone_and_named() {
    let (user, _provider) = user();
    // After the first two changes: the new content of a.txt and the new file.
    assert!(dies_at(&user, 4));
    user.write("gone.txt", "somebody's\n");
    user.write("d/e/more.txt", "somebody's\n");
    let finished = user.run(&["changes", "apply"]);
    assert_eq!(finished.code, 3, "{finished:?}");
    assert!(!finished.err.contains("nothing was applied"), "{finished:?}");
    for path in
        ["gone.txt: its content has changed since", "d/e: the folder holds more.txt, which is not to be removed"]
    {
        let (path, reason) = path.split_once(": ").unwrap();
        let said = format!("{} was left alone: {reason}", user.project().join(path).display());
        assert!(finished.err.contains(&said), "{finished:?}");
    }
    let read = |name: &str| std::fs::read_to_string(user.project().join(name)).unwrap();
    assert_eq!((read("gone.txt"), read("d/e/more.txt")), ("somebody's\n".into(), "somebody's\n".into()));
    assert_eq!(
        (read("a.txt"), read("link"), read("plain/x.txt")),
        ("new\n".into(), "a file\n".into(), "a folder\n".into())
    );
    let left = user.ok(&["changes", "list", "--json"]).json();
    let left: Vec<&str> = left.iter().map(|line| line["shown"].as_str().unwrap()).collect();
    assert_eq!(left, ["d", "d/e", "gone.txt"]);
}
