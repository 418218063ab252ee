//! The second line behind the proof: what is started here can write nowhere, whatever it turns out to be.
//!
//! Linux can take rights from a single thread, for good, and what the thread starts inherits what is left (Landlock). So a
//! command that is proven to only read is started from a thread of its own that has given up writing, reading the places
//! of Hames, speaking to the network, and signalling others. Where the kernel cannot do that, the proof stands alone: this
//! never refuses a command. What it cannot take away is changing times and rights of files; no program of the table does.

use std::path::PathBuf;

/// What a command may still do.
#[derive(Clone, Debug, Default)]
pub(super) struct Confinement {
    /// Places that it cannot read.
    pub(super) hidden: Vec<PathBuf>,
    /// A folder of its own for temporary files.
    pub(super) scratch: Option<PathBuf>,
}

/// Starts something from a thread with these limits.
#[cfg(target_os = "linux")]
pub(super) fn confined<T: Send>(limits: &Confinement, start: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // The proof holds without it.
            let _ = linux::give_up(limits);
            start()
        });
        match thread.join() {
            Ok(started) => started,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Starts something; this system has no such limits.
#[cfg(not(target_os = "linux"))]
pub(super) fn confined<T: Send>(_limits: &Confinement, start: impl FnOnce() -> T + Send) -> T {
    start()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetError, Scope, path_beneath_rules,
    };

    use super::Confinement;

    /// Entries beside hidden places that are looked at; with more of them only writing is given up.
    const ENTRIES_LIMIT: usize = 20_000;

    /// What is written to without changing anything.
    const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

    /// Takes the rights from this thread.
    pub(super) fn give_up(limits: &Confinement) -> Result<(), RulesetError> {
        // Later versions also know about talking to devices, which every look for a terminal does.
        let writing = AccessFs::from_write(ABI::V3);
        let readable = readable(&limits.hidden);
        let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writing)?;
        if readable.is_some() {
            rules = rules.handle_access(AccessFs::ReadFile)?;
        }
        let rules = rules.handle_access(AccessNet::from_all(ABI::V4))?.scope(Scope::from_all(ABI::V6))?;
        let mut rules =
            rules.create()?.add_rules(path_beneath_rules(SINKS, AccessFs::WriteFile | AccessFs::Truncate))?;
        if let Some(readable) = &readable {
            rules = rules.add_rules(path_beneath_rules(readable, AccessFs::ReadFile))?;
        }
        if let Some(scratch) = &limits.scratch {
            let all = if readable.is_some() { writing | AccessFs::ReadFile } else { writing };
            rules = rules.add_rules(path_beneath_rules([scratch], all))?;
        }
        rules.restrict_self().map(|_| ())
    }

    /// Everything beside the hidden places and the folders that lead to them; `None` where nothing is hidden, or too much
    /// lies beside it. Only what is there now can be read: what appears beside them while the command runs cannot.
    fn readable(hidden: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let hidden: BTreeSet<PathBuf> = hidden.iter().filter_map(|place| place.canonicalize().ok()).collect();
        if hidden.is_empty() {
            return None;
        }
        let leading: BTreeSet<&Path> = hidden.iter().flat_map(|place| place.ancestors().skip(1)).collect();
        let mut readable = Vec::new();
        for folder in &leading {
            if hidden.iter().any(|place| folder.starts_with(place)) {
                continue;
            }
            for entry in std::fs::read_dir(folder).ok()? {
                let path = entry.ok()?.path();
                if !leading.contains(path.as_path()) && !hidden.contains(&path) {
                    readable.push(path);
                }
                if readable.len() > ENTRIES_LIMIT {
                    return None;
                }
            }
        }
        Some(readable)
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, clippy::print_stdout)] // in a test a panic or a line is the report
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Whether this kernel can take rights away.
    fn is_enforced() -> bool {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        confined(&Confinement::default(), || std::fs::write(&file, "x").is_err())
    }

    #[test]
    fn what_is_started_there_writes_nothing_and_reads_no_hidden_place() {
        if !is_enforced() {
            println!("this kernel has no Landlock: nothing to see");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["hidden/secret", "beside/file", "file", "scratch/old"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "content").unwrap();
        }
        let limits = Confinement { hidden: vec![root.join("hidden")], scratch: Some(root.join("scratch")) };
        let run = |line: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", line]).current_dir(&root).stdout(Stdio::null()).stderr(Stdio::null());
            confined(&limits, move || command.status().unwrap().success())
        };
        for line in [
            "echo x > new",
            "echo x >> file",
            "mkdir new",
            "rm file",
            "mv file new",
            "ln file new",
            "ln -s file new",
            "> file",
            "rmdir beside",
            "mkfifo new",
            "cp file new",
            "truncate -s 0 file",
            "echo x > beside/new",
            "cat hidden/secret",
            "cat ./beside/../hidden/secret",
            "echo x > /tmp/hames-must-not-be",
            "cd hidden && cat secret",
        ] {
            assert!(!run(line), "{line}");
        }
        for line in [
            "cat file",
            "cat beside/file",
            "ls hidden beside",
            "echo x > /dev/null",
            "echo x > scratch/new && cat scratch/new",
            "ls /usr",
            "rm scratch/old",
            "cat < file | cat",
        ] {
            assert!(run(line), "{line}");
        }
        // This thread has lost nothing.
        std::fs::write(root.join("file"), "other").unwrap();
        assert_eq!(std::fs::read_to_string(root.join("hidden/secret")).unwrap(), "content");
    }
}
