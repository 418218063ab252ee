//! Commands run for real: what they leave, what they read, what they write and how they are ended.

mod analyze;
mod background;
mod ending;
mod input;
mod output;
mod parent;
mod roles;
mod tool;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hames_tools::{ShellEnd, ShellOutcome, ShellProvider, ShellRequest};
use hames_workspace::shell::{LocalShell, LocalShellOptions, ReaperCommand};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Long enough that nothing here ends by it.
const LONG: Duration = Duration::from_secs(60);

/// Marks every process of a test, besides what the shell itself does.
const MARK: &str = "HAMES_TEST_MARK";

/// A folder and a shell over it. What its commands leave is ended when it is dropped.
struct Bed {
    folder: TempDir,
    shell: Arc<LocalShell>,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shell = Arc::new(LocalShell::new(options(folder.path(), None)).unwrap());
        Self { folder, shell }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn request(&self, command: &str) -> ShellRequest {
        ShellRequest {
            command: command.to_owned(),
            cwd: self.path().to_owned(),
            timeout: LONG,
            cancel: CancellationToken::new(),
            keep_bytes: 64 * 1024,
            hardened: None,
            errors_apart: false,
        }
    }

    async fn run(&self, command: &str) -> ShellOutcome {
        self.shell.run(self.request(command), &mut |_| {}).await.unwrap()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // Again and again, for a test that failed may have left something that forks.
        for _ in 0..100 {
            let left = marked(self.path());
            if left.is_empty() {
                break;
            }
            for pid in left {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

fn options(folder: &Path, reaper: Option<ReaperCommand>) -> LocalShellOptions {
    let env = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
    let mut variables: Vec<_> = ["PATH", "HOME", "LANG", roles::ROLE].into_iter().filter_map(env).collect();
    variables.retain(|(name, _)| name != roles::ROLE);
    variables.push((MARK.to_owned(), folder.display().to_string()));
    if reaper.is_some() {
        variables.push((roles::ROLE.to_owned(), "reaper".to_owned()));
    }
    LocalShellOptions {
        shell: shell_path(),
        env: variables,
        reaper,
        spool_dir: folder.join("spool"),
        run_cookie: folder.file_name().unwrap().to_string_lossy().into_owned(),
    }
}

fn shell_path() -> PathBuf {
    found("bash").expect("the tests need bash in PATH")
}

/// Where a program is.
fn found(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Processes alive that carry the mark of this folder, but for this one.
fn marked(folder: &Path) -> Vec<rustix::process::Pid> {
    let mark = format!("{MARK}={}", folder.display()).into_bytes();
    processes()
        .filter(|pid| {
            std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
                .is_ok_and(|environ| environ.split(|&b| b == 0).any(|entry| entry == mark))
        })
        .collect()
}

/// Processes alive whose arguments hold a text.
fn running(text: &str) -> Vec<rustix::process::Pid> {
    processes()
        .filter(|pid| {
            std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
                .is_ok_and(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(text))
        })
        .collect()
}

/// A command found by its arguments, where its environment tells nothing.
fn unique_sleep(n: u32) -> String {
    format!("sleep 6{n}.{}", std::process::id())
}

fn processes() -> impl Iterator<Item = rustix::process::Pid> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().and_then(rustix::process::Pid::from_raw))
        .filter(|&pid| pid != rustix::process::getpid())
}

/// Waits for something that other processes bring about.
#[track_caller]
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(outcome: &ShellOutcome) -> String {
    String::from_utf8_lossy(&[&outcome.head[..], &outcome.tail[..]].concat()).into_owned()
}

fn soak() -> bool {
    std::env::var_os("HAMES_SOAK").is_some_and(|value| value == "1")
}

const SUCCESS: ShellEnd = ShellEnd::Exited(0);
