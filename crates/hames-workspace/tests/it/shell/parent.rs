//! When the process that runs commands is killed, its reaper ends them.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::process::{Child, Stdio};
use std::task::{Context, Poll, Waker};

use hames_tools::{ShellProvider, ShellRequest};
use hames_workspace::shell::LocalShell;
use rustix::process::{Pid, Signal, kill_process};
use tokio_util::sync::CancellationToken;

use super::{LONG, marked, options, roles, running, wait_for};

/// Commands alive when their parent dies. Each makes a file `ready` when its children run.
const ALIVE: &[&str] = &[
    "touch ready; sleep 300",
    "setsid sh -c 'touch ready; sleep 300'",
    "(setsid sh -c '(setsid sleep 300 &) ; touch ready; sleep 300' &) ; sleep 300",
    "trap '' TERM HUP; touch ready; while :; do sleep 0.1; done",
    "setsid sh -c 'trap \"\" TERM; sleep 300 & touch ready; wait; sleep 300' & wait",
    "nohup setsid sleep 300 >/dev/null 2>&1 & touch ready",
    "sh -c 'touch ready; kill -STOP $$' & sleep 300",
    "touch ready; while :; do (setsid sleep 300 &) ; sleep 0.01; done",
    "sleep 300 & touch ready",
    "exec >/dev/null 2>&1; (sleep 300 | sleep 300) & touch ready; wait",
];

fn request(command: String) -> ShellRequest {
    ShellRequest {
        command,
        cwd: std::env::current_dir().unwrap(),
        timeout: LONG,
        cancel: CancellationToken::new(),
        keep_bytes: 1024,
        hardened: None,
        errors_apart: false,
    }
}

fn shell_with_reaper() -> LocalShell {
    LocalShell::new(options(&std::env::current_dir().unwrap(), Some(roles::reaper()))).unwrap()
}

/// Runs the command in the file `command`, then waits to be killed.
pub(super) async fn parent() {
    // One descriptor that children get was there before the shell, one comes later.
    let _before = rustix::io::dup(std::io::stdin()).unwrap();
    let shell = shell_with_reaper();
    let _after = rustix::io::dup(std::io::stdin()).unwrap();
    shell.run(request("echo first".to_owned()), &mut |_| {}).await.unwrap();
    let command = std::fs::read_to_string("command").unwrap();
    shell.run(request(command), &mut |_| {}).await.unwrap();
    std::future::pending::<()>().await;
}

/// Dies by SIGKILL the moment its first command is started.
pub(super) async fn parent_killed_at_once() {
    let shell = shell_with_reaper();
    let command = std::fs::read_to_string("command").unwrap();
    let mut nobody = |_: &[u8]| {};
    let mut run = pin!(shell.run(request(command), &mut nobody));
    let polled = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending));
    kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
}

fn start(role: &str, folder: &Path, command: &str) -> Child {
    std::fs::write(folder.join("command"), command).unwrap();
    roles::process(role, folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill_parent(parent: &mut Child) {
    parent.kill().unwrap();
    parent.wait().unwrap();
}

#[test]
fn nothing_outlives_a_parent_that_is_killed() {
    std::thread::scope(|scope| {
        for command in ALIVE {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut parent = start("parent", folder.path(), command);
                wait_for(command, || folder.path().join("ready").exists());
                assert!(!marked(folder.path()).is_empty(), "{command}");
                kill_parent(&mut parent);
                // The reaper carries the mark too, so this waits for its exit as well.
                wait_for(command, || marked(folder.path()).is_empty());
            });
        }
    });
}

#[test]
fn nothing_outlives_a_parent_that_is_killed_at_its_first_command() {
    for command in
        ["sleep 300", "setsid sleep 300", "setsid sleep 300 & sleep 300", "trap '' TERM; while :; do sleep 0.1; done"]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut parent = start("parent-killed-at-once", folder.path(), command);
        parent.wait().unwrap();
        wait_for(command, || marked(folder.path()).is_empty());
    }
}

#[test]
fn a_child_that_cleared_its_environment_is_ended_by_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let sleep = super::unique_sleep(3);
    let mut parent = start("parent", folder.path(), &format!("env -i {sleep} & touch ready; wait"));
    wait_for("both run", || folder.path().join("ready").exists() && !running(&sleep).is_empty());
    kill_parent(&mut parent);
    wait_for("all are ended", || marked(folder.path()).is_empty());
    // What was killed may stay in the process table for a moment after its killer has gone.
    wait_for("the child without an environment is ended", || running(&sleep).is_empty());
}

#[test]
fn the_reaper_holds_nothing_of_its_parent_and_ignores_its_signals() {
    let folder = tempfile::tempdir().unwrap();
    let mut parent = start("parent", folder.path(), "setsid sleep 300 & touch ready; wait");
    wait_for("it is up", || folder.path().join("ready").exists());
    let reaper = || {
        marked(folder.path()).into_iter().find(|pid| running(roles::reaper().args[1].to_str().unwrap()).contains(pid))
    };
    wait_for("the reaper is up", || reaper().is_some_and(|pid| descriptors(pid).len() == 3));
    let pid = reaper().unwrap();

    let descriptors = descriptors(pid);
    assert!(descriptors[0].1.starts_with("socket:"), "{descriptors:?}");
    assert_eq!([&descriptors[1].1, &descriptors[2].1], ["/dev/null", "/dev/null"]);
    let proc = format!("/proc/{}", pid.as_raw_nonzero());
    assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid);
    assert_eq!(std::fs::read_link(format!("{proc}/cwd")).unwrap(), Path::new("/"));

    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        kill_process(pid, signal).unwrap();
    }
    kill_parent(&mut parent);
    wait_for("all are ended", || marked(folder.path()).is_empty());
}

fn descriptors(pid: Pid) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    let mut all: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.parse().ok()?;
            Some((number, std::fs::read_link(&path).ok()?.display().to_string()))
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_reaper_told_goodbye_goes_and_the_next_command_has_another() {
    let folder = tempfile::tempdir().unwrap();
    let shell = LocalShell::new(options(folder.path(), Some(roles::reaper()))).unwrap();
    for _ in 0..2 {
        let mut request = request("echo hi".to_owned());
        request.cwd = folder.path().to_owned();
        shell.run(request, &mut |_| {}).await.unwrap();
        assert_eq!(marked(folder.path()).len(), 1, "the reaper");
        shell.sweep().await;
        assert_eq!(marked(folder.path()), []);
    }
}

#[tokio::test]
async fn a_shell_dropped_without_a_sweep_leaves_its_children_to_the_reaper() {
    let folder = tempfile::tempdir().unwrap();
    let shell = LocalShell::new(options(folder.path(), Some(roles::reaper()))).unwrap();
    let mut request = request("setsid sleep 300 & echo hi".to_owned());
    request.cwd = folder.path().to_owned();
    shell.run(request, &mut |_| {}).await.unwrap();
    drop(shell);
    wait_for("all are ended", || marked(folder.path()).is_empty());
}

#[tokio::test]
async fn a_reaper_that_was_killed_is_replaced_and_one_that_cannot_start_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shell = LocalShell::new(options(folder.path(), Some(roles::reaper()))).unwrap();
    let run = async || {
        let mut request = request("echo hi".to_owned());
        request.cwd = folder.path().to_owned();
        shell.run(request, &mut |_| {}).await.unwrap().end
    };
    assert_eq!(run().await, super::SUCCESS);
    for pid in marked(folder.path()) {
        kill_process(pid, Signal::KILL).unwrap();
    }
    wait_for("the reaper is gone", || marked(folder.path()).is_empty());
    assert_eq!(run().await, super::SUCCESS);
    assert_eq!(run().await, super::SUCCESS);
    assert_eq!(marked(folder.path()).len(), 1, "the new reaper");
    shell.sweep().await;

    let mut without = options(folder.path(), Some(roles::reaper()));
    without.reaper.as_mut().unwrap().program = "/nonexistent/reaper".into();
    let shell = LocalShell::new(without).unwrap();
    let mut request = request("echo hi".to_owned());
    request.cwd = folder.path().to_owned();
    assert_eq!(shell.run(request, &mut |_| {}).await.unwrap().end, super::SUCCESS);
}
