//! Where a command that only reads may look, and what it cannot see.
//!
//! The proof names everything that could be a path; here the filesystem is asked about each. What is not known before the
//! command runs (lines of a file handed to another program, say) cannot be asked about: known keys in results are masked
//! at the door all the same.

use std::path::{Path, PathBuf};

use hames_protocol::Mode;
use hames_tools::{FsError, ToolCx, ToolFailure};

use super::hardened::located;
use super::prove::Operand;

/// Files of another process that tell what it was given.
const TELLING: [&str; 7] = ["environ", "mem", "maps", "smaps", "map_files", "auxv", "pagemap"];

/// Devices that reading does nothing to.
const HARMLESS_DEVICES: [&str; 8] = ["null", "zero", "full", "random", "urandom", "stdin", "fd", "pts"];

/// Proposals that are named; more are counted.
const NAMED_LIMIT: usize = 3;

/// Refuses operands that lead where no tool may look. In Build, where a command can do as it likes, it is only held to the
/// rules of the user, as far as they are about what it names.
pub(super) async fn check(operands: &[Operand], cwd: PathBuf, cx: &ToolCx) -> Result<(), ToolFailure> {
    let home = cx.shell.home();
    let asker = Asker { analyzes: cx.mode == Mode::Analyze, is_ruled: cx.fs.is_ruled(), has_home: home.is_some() };
    let operands: Vec<Operand> = operands.iter().filter(|operand| asker.asks_about(operand)).cloned().collect();
    if operands.is_empty() {
        return Ok(());
    }
    cx.blocking(move |cx| operands.iter().try_for_each(|operand| check_one(operand, &cwd, home.as_deref(), &cx))).await
}

/// What decides which operands the filesystem is asked about.
struct Asker {
    analyzes: bool,
    /// A rule keeps some path from the call.
    is_ruled: bool,
    has_home: bool,
}

impl Asker {
    /// Whether anything could be said against an operand. What cannot be refused is not looked at: in Build a rule or a
    /// place below it can be in the way, and nothing else.
    fn asks_about(&self, operand: &Operand) -> bool {
        let names_home = operand.path.home || operand.folder.home;
        self.analyzes || self.is_ruled || operand.deep || (names_home && !self.has_home)
    }
}

fn check_one(operand: &Operand, cwd: &Path, home: Option<&Path>, cx: &ToolCx) -> Result<(), ToolFailure> {
    let home = match home {
        Some(home) => home,
        None if operand.path.home || operand.folder.home => {
            return Err(ToolFailure::refused(
                "The command was not run: there is no home folder for ~ here. Write the path out.",
            ));
        }
        None => Path::new("/"),
    };
    let path = located(&located(cwd, &operand.folder, home), &operand.path, home);
    let text = path.to_string_lossy();
    let analyzes = cx.mode == Mode::Analyze;
    if analyzes && (text.contains("/proc/self") || text.contains("/proc/thread-self")) {
        return Err(refused(&text, "it means another process here than in the command"));
    }
    let resolved = match cx.fs.resolve(&text) {
        Ok(resolved) => resolved,
        Err(error @ FsError::Denied { .. }) if analyzes => return Err(error.into()),
        // What cannot be resolved cannot be read either.
        Err(_) => return Ok(()),
    };
    if let Err(error @ FsError::Ruled { .. }) = cx.fs.stat(&resolved) {
        return Err(error.into());
    }
    if operand.deep && (analyzes || resolved.inside) && cx.fs.hides(&resolved) {
        return Err(refused(&resolved.shown, "a place below it is kept from tools"));
    }
    if !analyzes {
        return Ok(());
    }
    if let Ok(below) = resolved.abs.strip_prefix("/proc") {
        let tells = below.components().any(|part| TELLING.iter().any(|telling| part.as_os_str() == *telling));
        if tells || (operand.deep && below.as_os_str().is_empty()) {
            return Err(refused(&resolved.shown, "it tells what other programs were given"));
        }
    }
    if let Ok(below) = resolved.abs.strip_prefix("/dev")
        && let Some(device) = below.components().next()
        && !HARMLESS_DEVICES.iter().any(|harmless| device.as_os_str() == *harmless)
        && resolved.abs.exists()
    {
        return Err(refused(&resolved.shown, "reading a device may change it"));
    }
    Ok(())
}

fn refused(path: &str, why: &str) -> ToolFailure {
    ToolFailure::refused(format!("The command was not run because of {path}: {why}. Name what you need below it."))
}

/// Says which proposals a command does not see; nothing where there are none.
pub(super) fn unseen_proposals(cx: &ToolCx) -> Option<String> {
    let state = cx.state();
    let count = state.proposals.len();
    if count == 0 {
        return None;
    }
    let root = cx.fs.root();
    let shown =
        |path: &String| Path::new(path).strip_prefix(root).map_or(path.clone(), |path| path.display().to_string());
    let named: Vec<String> = state.proposals.keys().take(NAMED_LIMIT).map(shown).collect();
    let more = if count > NAMED_LIMIT { format!(" and {} more", count - NAMED_LIMIT) } else { String::new() };
    Some(format!(
        "commands see the disk, without your proposals for {}{more}; Read, Grep, Glob and List see them",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::prove::prove;
    use super::*;

    #[test]
    fn in_build_only_what_could_be_refused_is_asked_about() {
        let asked = |line: &str, analyzes, is_ruled, has_home| {
            let asker = Asker { analyzes, is_ruled, has_home };
            let proof = prove(line);
            assert!(proof.reads && !proof.operands.is_empty(), "{line}: {:?}", proof.refusal);
            proof.operands.iter().filter(|operand| asker.asks_about(operand)).count()
        };
        for line in ["cat a.txt", "head -n 3 sub/../b.txt", "cat ~/notes.txt", "wc -l < a.txt"] {
            assert_eq!(asked(line, false, false, true), 0, "{line}");
            for (analyzes, is_ruled) in [(true, false), (false, true)] {
                assert!(asked(line, analyzes, is_ruled, true) > 0, "{line}");
            }
        }
        assert!(asked("cat ~/notes.txt", false, false, false) > 0, "there is no home to read in");
        // A hidden place may lie below.
        for line in ["grep -rn x sub", "find . -name a"] {
            assert!(asked(line, false, false, true) > 0, "{line}");
        }
    }
}
