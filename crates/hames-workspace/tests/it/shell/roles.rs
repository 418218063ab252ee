//! Other processes that tests need: this very binary, told by a variable what to be.

use std::path::Path;

use hames_workspace::shell::{ReaperCommand, run_reaper};

/// Names the role; absent in a normal run.
pub(super) const ROLE: &str = "HAMES_TEST_ROLE";

/// The test a process with a role runs.
const ENTRY: &str = "shell::roles::a_process_with_a_role_plays_it";

/// The command line, for a shell, of a process with this role.
pub(super) fn command_line(role: &str) -> String {
    let exe = std::env::current_exe().unwrap();
    format!("{ROLE}={role} exec '{}' --exact {ENTRY} --nocapture", exe.display())
}

/// A process with this role and a folder to work in.
pub(super) fn process(role: &str, folder: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", ENTRY, "--nocapture"]).env(ROLE, role).current_dir(folder);
    command
}

/// What becomes the reaper; the shell's environment must name the role too.
pub(super) fn reaper() -> ReaperCommand {
    ReaperCommand {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", ENTRY, "--nocapture"].map(Into::into).to_vec(),
    }
}

#[test]
fn a_process_with_a_role_plays_it() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    if role == "reaper" {
        run_reaper();
        std::process::exit(0);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "grab" => super::input::grab().await,
            "parent" => super::parent::parent().await,
            "parent-killed-at-once" => super::parent::parent_killed_at_once().await,
            "measure" => super::output::measure().await,
            _ => panic!("no such role: {role}"),
        }
    });
    std::process::exit(0);
}
