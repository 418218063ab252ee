//! A home, a folder and a way to run the binary in them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use hames_testkit::{Provider, Script, Turn, blocking};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine: reaching it is a failure, not a measurement.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One user: a home, a project folder, variables.
pub(crate) struct User {
    root: TempDir,
    vars: Vec<(String, String)>,
}

impl User {
    /// A user without any model.
    pub(crate) fn new() -> User {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "project", "user"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        User { root, vars: Vec::new() }
    }

    /// A user whose default model plays the script.
    pub(crate) fn with(script: Script) -> (User, Provider) {
        let provider = blocking(script).unwrap();
        let user = User::new().var("OPENAI_BASE_URL", &provider.base_url());
        (user, provider)
    }

    /// A user whose model says one thing, again and again.
    pub(crate) fn saying(text: &'static str) -> (User, Provider) {
        User::with(Script::new().respond(move |_| Turn::text(text)))
    }

    pub(crate) fn var(mut self, name: &str, value: &str) -> User {
        self.vars.push((name.into(), value.into()));
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The project folder, canonical.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project").canonicalize().unwrap()
    }

    /// Another folder of this user, made when asked for.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.canonicalize().unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn write_config(&self, text: &str) {
        std::fs::write(self.home().join("config.jsonc"), text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(args)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path().join("user"))
            .env("HAMES_HOME", self.home())
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(args).output().unwrap())
    }

    /// Runs with text on standard input.
    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &[u8]) -> Ended {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A command that refuses its input early closes the pipe; what it says is what counts.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        Ended::of(child.wait_with_output().unwrap())
    }

    /// Runs a command that must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Ended {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}\n{ended:?}");
        ended
    }

    /// The sessions of the project folder.
    pub(crate) fn sessions(&self) -> Vec<Value> {
        self.ok(&["sessions", "list", "--json"]).json()
    }
}

/// Where a copy of the command is told to those who may not enter the folder it is built in.
const BINARY: &str = "HAMES_TEST_BINARY";

fn binary() -> PathBuf {
    std::env::var_os(BINARY).map_or_else(|| env!("CARGO_BIN_EXE_hames").into(), PathBuf::from)
}

/// Runs tests of this program again as somebody who is not root, where this is root. Names are whole.
#[allow(clippy::print_stdout)] // what was not tried is said
pub(crate) fn as_another_user(tests: &[&str]) {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let scratch = tempfile::tempdir().unwrap();
    if scratch.path().metadata().unwrap().uid() != 0 {
        println!("not root: nobody else can be tried; the tests themselves ran as this user");
        return;
    }
    // Copied by another process: a descriptor of ours that a fork of another test holds would keep it from being run.
    let copy = |from: &Path, name: &str| {
        let to = scratch.path().join(name);
        assert!(Command::new("cp").arg(from).arg(&to).status().unwrap().success());
        to
    };
    let program = copy(&std::env::current_exe().unwrap(), "tests");
    let hames = copy(&binary(), "hames");
    chown(scratch.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let output = Command::new(&program)
        .arg("--exact")
        .args(tests)
        .env("TMPDIR", scratch.path())
        .env(BINARY, hames)
        .current_dir(scratch.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.contains(&format!("{} passed", tests.len())), "{text}");
}

/// What a process left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output as lines of JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }

    /// The types of the events on standard output.
    pub(crate) fn types(&self) -> Vec<String> {
        self.json().iter().map(|line| line["event"]["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The last event of that type.
    pub(crate) fn event(&self, name: &str) -> Value {
        let found = self.json().into_iter().rev().find(|line| line["event"]["type"] == name);
        found.unwrap_or_else(|| panic!("no {name} in\n{self:?}"))["event"].clone()
    }
}

/// The body of a request as text.
pub(crate) fn body_text(request: &hames_testkit::ChatRequest) -> String {
    String::from_utf8(request.raw.to_vec()).unwrap()
}

/// Sends a signal.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits for something to become true.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every file below a folder with its content.
pub(crate) fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(tree(&path));
        } else {
            out.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    out.sort();
    out
}
