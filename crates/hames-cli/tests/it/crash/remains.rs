//! What is left outside the log: files, marks of commands, processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::log::{Open, kind};
use super::story::{Story, first_files, mark, sheet};
use crate::kit::tree;

/// How long what a dead run started may stay.
const LINGER: Duration = Duration::from_secs(5);

impl Story {
    /// Whether the child that left its command's session is alive.
    pub(super) fn nap_is_alive(&self) -> bool {
        let pid = std::fs::read_to_string(self.user.project().join("nap.pid")).unwrap_or_default();
        !pid.trim().is_empty() && is_called(&format!("/proc/{}", pid.trim()), &self.nap)
    }

    /// Waits until nothing that this user's runs started is alive.
    pub(super) fn nobody_remains(&self, since: Instant) {
        loop {
            let strays = self.strays();
            if strays.is_empty() {
                return;
            }
            assert!(since.elapsed() < LINGER, "still alive: {strays:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processes with this user's home in their environment, or with the child's argument.
    fn strays(&self) -> Vec<String> {
        let home = format!("HAMES_HOME={}", self.user.home().display());
        let mut strays = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let environ = std::fs::read(path.join("environ")).unwrap_or_default();
            let path = path.to_string_lossy();
            if environ.split(|&byte| byte == 0).any(|variable| variable == home.as_bytes())
                || is_called(&path, &self.nap)
            {
                strays.push(format!("{path} {}", command_line(&path)));
            }
        }
        strays
    }

    /// Checks every file of the project against what the log says of it: old or new, never torn, and no others. Between
    /// naming what was staged and renaming it lies a moment, so until the run is recovered one such file may be there.
    pub(super) fn files_agree_with(&self, log: &[Value]) {
        let allowed = allowed_files(log);
        let project = self.user.project();
        let mut found: BTreeMap<String, String> = tree(&project)
            .into_iter()
            .map(|(path, content)| {
                let name = path.strip_prefix(&project).unwrap().to_str().unwrap().to_owned();
                (name, String::from_utf8(content).unwrap())
            })
            .collect();
        for (name, contents) in &allowed {
            let content = found.remove(name);
            assert!(
                contents.contains(&content),
                "{name} is {:?}",
                content.map(|text| text.chars().take(80).collect::<String>())
            );
        }
        let marks = found.remove("marks").unwrap_or_default();
        found.remove("nap.pid");
        if Open::of(log).is_some_and(|open| open.calls.iter().any(|call| call.changes)) {
            found.retain(|name, _| !name.ends_with(".staged"));
        }
        assert!(found.is_empty(), "left over: {:?}", found.keys());
        marks_agree_with(&marks, log);
    }
}

fn is_called(process: &str, argument: &str) -> bool {
    command_line(process).split(' ').any(|word| word == argument)
}

fn command_line(process: &str) -> String {
    let bytes = std::fs::read(Path::new(process).join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// What each file may hold (`None`: it may be absent). A change that was announced and has no answer may have happened
/// or not; one without `file.changed` has not.
fn allowed_files(log: &[Value]) -> BTreeMap<String, Vec<Option<String>>> {
    let mut files: BTreeMap<String, Vec<Option<String>>> =
        first_files().into_iter().map(|(name, content)| (name.to_owned(), vec![Some(content)])).collect();
    let edits = log.iter().filter(|line| kind(line) == "tool.call" && line["event"]["input"]["path"].is_string());
    for call in edits.map(|line| &line["event"]) {
        let input = &call["input"];
        let content = match call["name"].as_str().unwrap() {
            "Write" => input["content"].as_str().unwrap().to_owned(),
            "StrReplace" => sheet(input["new_string"].as_str().unwrap()),
            _ => continue,
        };
        let file = files.entry(input["path"].as_str().unwrap().to_owned()).or_insert_with(|| vec![None]);
        let of_call =
            |name: &str| log.iter().any(|line| kind(line) == name && line["event"]["call_id"] == call["call_id"]);
        match (of_call("file.changed"), of_call("tool.done")) {
            (true, true) => *file = vec![Some(content)],
            (true, false) => file.push(Some(content)),
            (false, is_done) => assert!(!is_done, "a change without file.changed: {call}"),
        }
    }
    files
}

/// Every mark was made by a command that the log says had begun, and none twice; a command that ended has made its.
fn marks_agree_with(marks: &str, log: &[Value]) {
    let marks: Vec<&str> = marks.lines().collect();
    for (at, mark) in marks.iter().enumerate() {
        assert!(!marks[..at].contains(mark), "{mark} was made twice");
    }
    let mut known = Vec::new();
    for call in log.iter().filter(|line| kind(line) == "tool.call").map(|line| &line["event"]) {
        let Some(mark) = call["input"]["command"].as_str().and_then(mark) else { continue };
        let of_call =
            |name: &str| log.iter().any(|line| kind(line) == name && line["event"]["call_id"] == call["call_id"]);
        assert!(!of_call("tool.done") || marks.contains(&mark), "{mark} is missing");
        if of_call("tool.start") {
            known.push(mark);
        }
    }
    for mark in marks {
        assert!(known.contains(&mark), "{mark} was made by a command that had not begun");
    }
}
