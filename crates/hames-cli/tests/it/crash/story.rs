//! A run that does everything a death can interrupt: it thinks, speaks, reads, edits, and runs commands, one of which
//! leaves a child behind that would live for minutes.
//!
//! The model plays it anew for each prompt, whatever was said before. Each command writes a mark of its own, so that
//! one that ran twice is seen.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hames_testkit::{ChatRequest, Provider, Script, Turn};
use serde_json::json;

use crate::kit::User;

/// The prompt after which the model only looks around and ends.
pub(super) const ENDING: &str = "bring it to its end";
/// The long answer, long enough that the open step is kept while it streams.
const LONG: usize = 24 * 1024;
/// Lines of a file: more than one write of the system takes to be torn visibly.
const LINES: usize = 1500;
/// Between pieces of an answer, so that a death can fall between them.
const PAUSE: Duration = Duration::from_millis(1);

/// A user, a model, and the one child to look for.
pub(super) struct Story {
    pub(super) user: User,
    pub(super) provider: Provider,
    /// The argument of the child's `sleep`, which no other process has.
    pub(super) nap: String,
}

impl Story {
    pub(super) fn begin() -> Story {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nap = format!("300.{}{:05}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let script = Script::new().respond({
            let nap = nap.clone();
            move |request| next(request, &nap)
        });
        let provider = hames_testkit::blocking(script).unwrap();
        let user = with_wide_window(&provider.base_url());
        for (name, content) in first_files() {
            user.write(name, content);
        }
        Story { user, provider, nap }
    }
}

/// A user whose model has room for as many runs as there may be: these tests are not about windows.
pub(super) fn with_wide_window(base_url: &str) -> User {
    let user = User::new();
    let models = json!([{"id": "m", "context_window": 2_000_000}]);
    let config = json!({"model": "wide/m", "providers": {"wide": {"base_url": base_url, "models": models}}});
    user.write_config(&config.to_string());
    user
}

/// The files there are before anything happens.
pub(super) fn first_files() -> [(&'static str, String); 3] {
    [("big.txt", sheet("version 0")), ("toggle.txt", sheet("state off")), ("note.txt", "a note\n".into())]
}

/// A file of one line again and again: what is torn is neither this nor another one.
pub(super) fn sheet(line: &str) -> String {
    format!("{line}\n").repeat(LINES)
}

/// What the long answer says.
pub(super) fn long_text() -> String {
    let mut text: String = (0..).map(|n| format!("word{n} ")).take(LONG / 7).collect();
    text.truncate(LONG);
    text.trim_end().to_owned()
}

/// What is thought before it: enough for many pieces, and never the same twice, which the guard would cut.
fn thoughts() -> String {
    (0..60).map(|n| format!("part{n} decides what becomes of part{}. ", n * 7 + 1)).collect()
}

/// The mark a command leaves.
pub(super) fn mark(command: &str) -> Option<&str> {
    command.strip_prefix("echo ")?.split_once(" >> marks").map(|(mark, _)| mark)
}

fn next(request: &ChatRequest, nap: &str) -> Turn {
    let messages = request.messages();
    let prompt = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let taken = messages[prompt..].iter().filter(|message| message["role"] == "assistant").count();
    let n = request.n;
    if messages[prompt].to_string().contains(ENDING) {
        return match taken {
            0 => read("big.txt").then_call("Read", json!({"path": "toggle.txt"})),
            1 => shell(&format!("echo m{n} >> marks; cat marks")),
            2 => Turn::call("Write", json!({"path": "last.txt", "content": "the end\n"})),
            _ => Turn::text("It is done."),
        };
    }
    match taken {
        0 => Turn::new()
            .reasoning(thoughts())
            .then_text(long_text())
            .then_call("Read", json!({"path": "big.txt"}))
            .then_call("Read", json!({"path": "toggle.txt"}))
            .then_call("Grep", json!({"pattern": "version", "mode": "count"}))
            .chunk_chars(192)
            .delay_per_chunk(PAUSE),
        1 => Turn::text("I will rewrite it.")
            .then_call("Write", json!({"path": "big.txt", "content": sheet(&format!("version {n}"))}))
            .chunk_chars(384)
            .delay_per_chunk(PAUSE),
        2 => shell(&format!("echo m{n} >> marks; setsid sleep {nap} >/dev/null 2>&1 & echo $! > nap.pid")),
        3 => shell(&format!("echo m{n} >> marks; sleep 0.3; echo over")),
        4 => toggle(request)
            .then_call("Write", json!({"path": format!("new-{n}.txt"), "content": sheet("new")}))
            .then_call("Read", json!({"path": "note.txt"}))
            .then_call("Shell", json!({"command": format!("echo m{n} >> marks; exit 3")})),
        5 => shell(&format!("echo m{n} >> marks; seq 1 20000")),
        _ => Turn::text("So far everything went as it should, and there is more to do.").delay_per_chunk(PAUSE),
    }
}

fn read(path: &str) -> Turn {
    Turn::call("Read", json!({"path": path}))
}

fn shell(command: &str) -> Turn {
    Turn::call("Shell", json!({"command": command}))
}

/// Turns the state that was read last into the other one.
fn toggle(request: &ChatRequest) -> Turn {
    let results = request.tool_results();
    let is_on = results
        .iter()
        .rev()
        .find(|(_, text)| text.contains("state o"))
        .is_some_and(|(_, text)| text.contains("state on"));
    let (old, new) = if is_on { ("state on", "state off") } else { ("state off", "state on") };
    Turn::call("StrReplace", json!({"path": "toggle.txt", "old_string": old, "new_string": new, "replace_all": true}))
}
