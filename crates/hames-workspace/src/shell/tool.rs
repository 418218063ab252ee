//! The Shell tool: a command in, what it said and how it ended out.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hames_protocol::{Declaration, Effect, Event, Label, Mode, Resource, ToolErrorClass, ToolOutputDelta, ToolSpec};
use hames_tools::{
    FileKind, FsError, Hardened, ShellEnd, ShellOutcome, ShellRequest, Surroundings, Tool, ToolCx, ToolFailure,
    ToolOutput, Whole,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::capture::HeadTail;
use super::clean::Cleaner;
use super::prove::proof_of;
use super::reach;

/// A command's time where the call names none.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// The most a call can ask for: nobody waits longer without wondering.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Bytes of a result at most; the window's share may be smaller.
const CAP_BYTES: u64 = 50 * 1024;

/// Room in a result for what is said besides the output.
const NOTES_BYTES: usize = 512;

/// Between two live pieces: nine a second, and with the last one ten.
const LIVE_SPACING: Duration = Duration::from_millis(112);

/// Bytes of a live piece at most.
const LIVE_BYTES: usize = 4096;

/// Runs a command.
pub(crate) struct Shell {
    spec: ToolSpec,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "Shell".to_owned(),
                description: include_str!("shell.md").trim_end().to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "command": {"type": "string"},
                        "timeout_ms": {"type": "integer", "minimum": 1, "description": "default 120000, at most 600000"},
                        "cwd": {"type": "string", "description": "folder"},
                        "description": {"type": "string", "description": "its purpose"},
                    },
                    "required": ["command"],
                }),
            },
        }
    }
}

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cmd", "command"),
            ("script", "command"),
            ("timeout", "timeout_ms"),
            ("workdir", "cwd"),
            ("working_directory", "cwd"),
            ("dir", "cwd"),
        ]
    }

    fn declare(&self, input: &Value) -> Declaration {
        let proof = proof_of(command(input));
        let mut resources = vec![Resource::Workspace { write: !proof.reads }];
        if let Some(cwd) = cwd(input) {
            resources.push(Resource::path(cwd.to_owned(), !proof.reads));
        }
        resources.extend(proof.commands.iter().map(|words| Resource::Command { words: words.clone() }));
        let effect = if proof.reads { Effect::Read } else { Effect::Run };
        let mut declaration = Declaration::new(effect, resources);
        declaration.timeout_ms = Some(Limit::of(input).ms);
        declaration.cap_bytes = Some(CAP_BYTES);
        declaration.reason = proof.refusal.as_ref().map(|refusal| refusal.to_string());
        declaration
    }

    fn label(&self, input: &Value) -> Label {
        Label::new(&self.spec.name, command(input).trim_start())
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let command = command(input);
        if command.trim().is_empty() {
            return Err(ToolFailure::invalid("The command is empty; give one."));
        }
        if command.contains('\0') {
            return Err(ToolFailure::invalid("The command holds a NUL byte, which no command line can; leave it out."));
        }
        let limit = Limit::of(input);
        let cwd = folder(input, cx).await?;
        let hardened = hardening(command, &cwd, cx).await?;
        let unseen = (cx.mode == Mode::Analyze).then(|| reach::unseen_proposals(cx)).flatten();
        let request = ShellRequest {
            command: command.to_owned(),
            cwd,
            timeout: Duration::from_millis(limit.ms),
            cancel: cx.cancel.clone(),
            keep_bytes: cx.cap_bytes,
            hardened,
            errors_apart: false,
        };
        let view = Mutex::new(View::new(cx.cap_bytes.saturating_sub(NOTES_BYTES).max(cx.cap_bytes / 2)));
        let outcome = run_showing(request, &view, cx).await?;
        let view = view.into_inner().unwrap_or_else(PoisonError::into_inner);
        answer(outcome, view, &limit, unseen)
    }
}

/// How a command has to be run: a proven one so that its proof holds. Fails where it may not be run at all.
pub(crate) async fn hardening(command: &str, cwd: &Path, cx: &ToolCx) -> Result<Option<Hardened>, ToolFailure> {
    let proof = proof_of(command);
    let analyzes = cx.mode == Mode::Analyze;
    if let (true, Some(refusal)) = (analyzes, &proof.refusal) {
        // The door refuses it before; this is for whoever calls the tool without one.
        return Err(ToolFailure::refused(refusal.to_string()));
    }
    reach::check(&proof.operands, cwd.to_owned(), cx).await?;
    Ok(proof.reads.then(|| Hardened {
        workspace: cx.fs.root().to_owned(),
        surroundings: if analyzes { Surroundings::Made } else { Surroundings::Kept },
        hidden: cx.fs.hidden(),
    }))
}

fn command(input: &Value) -> &str {
    input["command"].as_str().unwrap_or_default()
}

fn cwd(input: &Value) -> Option<&str> {
    input["cwd"].as_str().filter(|cwd| !cwd.is_empty())
}

/// A call's time limit.
struct Limit {
    ms: u64,
    /// What was asked for, where that was too much.
    asked: Option<u64>,
}

impl Limit {
    fn of(input: &Value) -> Self {
        let asked = input["timeout_ms"].as_u64().unwrap_or(DEFAULT_TIMEOUT_MS).max(1);
        Self { ms: asked.min(MAX_TIMEOUT_MS), asked: (asked > MAX_TIMEOUT_MS).then_some(asked) }
    }
}

/// Where the command runs.
async fn folder(input: &Value, cx: &ToolCx) -> Result<PathBuf, ToolFailure> {
    let Some(cwd) = cwd(input).map(str::to_owned) else {
        return Ok(cx.fs.root().to_owned());
    };
    cx.blocking(move |cx| {
        let path = cx.resolve(&cwd)?;
        match cx.fs.stat(&path)?.kind {
            FileKind::Dir => Ok(path.abs),
            FileKind::File => Err(FsError::WrongKind { path: path.shown, found: "a file", wanted: "a folder" }.into()),
            FileKind::Link | FileKind::Other => {
                Err(FsError::WrongKind { path: path.shown, found: "something else", wanted: "a folder" }.into())
            }
        }
    })
    .await
}

/// Runs it, showing what comes. The pipe is read whether or not anybody looks.
async fn run_showing(request: ShellRequest, view: &Mutex<View>, cx: &ToolCx) -> Result<ShellOutcome, ToolFailure> {
    let fresh = Notify::new();
    let mut take = |bytes: &[u8]| {
        if locked(view).push(bytes) {
            fresh.notify_one();
        }
    };
    let mut next = Instant::now() + LIVE_SPACING;
    let outcome = {
        let run = cx.shell.run(request, &mut take);
        let show = async {
            loop {
                fresh.notified().await;
                tokio::time::sleep_until(next).await;
                show_piece(view, cx);
                next = Instant::now() + LIVE_SPACING;
            }
        };
        tokio::select! {
            biased;
            outcome = run => outcome,
            () = show => return Err(ToolFailure::failed("the command was not waited for")),
        }
    };
    locked(view).finish();
    show_piece(view, cx);
    outcome.map_err(|error| ToolFailure::failed(error.to_string()))
}

fn show_piece(view: &Mutex<View>, cx: &ToolCx) {
    let piece = locked(view).take_live();
    if let Some((offset, text)) = piece {
        cx.emit.show(Event::ToolOutputDelta(ToolOutputDelta { call_id: cx.call_id.clone(), offset, text }));
    }
}

fn locked(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cleaned output: what the model gets of it, and what waits to be shown.
#[derive(Debug)]
struct View {
    cleaner: Cleaner,
    kept: HeadTail,
    /// The last bytes not shown yet.
    live: String,
    scratch: String,
}

impl View {
    fn new(keep: usize) -> Self {
        Self { cleaner: Cleaner::default(), kept: HeadTail::new(keep), live: String::new(), scratch: String::new() }
    }

    /// Takes raw bytes; `true` where they completed something to show.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.cleaner.push(bytes, &mut self.scratch);
        self.keep_scratch()
    }

    fn finish(&mut self) {
        self.cleaner.finish(&mut self.scratch);
        self.keep_scratch();
    }

    fn keep_scratch(&mut self) -> bool {
        self.kept.push(self.scratch.as_bytes());
        self.live.push_str(last_bytes(&self.scratch, LIVE_BYTES));
        let surplus = self.live.len() - last_bytes(&self.live, LIVE_BYTES).len();
        self.live.drain(..surplus);
        let fresh = !self.scratch.is_empty();
        self.scratch.clear();
        fresh
    }

    /// The next live piece and the bytes before it.
    fn take_live(&mut self) -> Option<(u64, String)> {
        let text = std::mem::take(&mut self.live);
        (!text.is_empty()).then(|| (self.kept.total() - text.len() as u64, text))
    }

    /// The text for the model, and whether that is everything.
    fn into_text(self) -> (String, bool) {
        let total = self.kept.total();
        let whole = self.kept.is_whole();
        let (head, tail) = self.kept.into_parts();
        if whole {
            let text = String::from_utf8_lossy(&head);
            return (text.trim_end_matches('\n').to_owned(), true);
        }
        let (head, tail) = (head_lines(&head), tail_lines(&tail));
        let left_out = total - (head.len() + tail.len()) as u64;
        let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let text = format!("{head}{line_end}[{left_out} bytes left out]\n{}", tail.trim_end_matches('\n'));
        (text, false)
    }
}

/// At most the last `limit` bytes, from a character's beginning.
fn last_bytes(text: &str, limit: usize) -> &str {
    let from = text.len().saturating_sub(limit);
    let from = (from..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    &text[from..]
}

/// The beginning of a text, up to its last whole line where that costs little, else to its last whole character.
fn head_lines(bytes: &[u8]) -> &str {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    match text.rfind('\n') {
        Some(end) if end >= text.len() / 4 * 3 => &text[..=end],
        _ => text,
    }
}

/// The end of a text, from its first whole line where that costs little, else from its first whole character.
fn tail_lines(bytes: &[u8]) -> &str {
    let is_inside = |b: &u8| b & 0xc0 == 0x80;
    let from = bytes.iter().position(|b| !is_inside(b)).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[from..]).unwrap_or_default();
    match text.find('\n') {
        Some(end) if end < text.len() / 4 => &text[end + 1..],
        _ => text,
    }
}

/// What the model gets.
fn answer(outcome: ShellOutcome, view: View, limit: &Limit, unseen: Option<String>) -> Result<ToolOutput, ToolFailure> {
    let ShellOutcome { end, head, total, spool, left_running, .. } = outcome;
    let (mut text, is_all) = view.into_text();
    let mut notes: Vec<Cow<'static, str>> = Vec::new();
    let whole = match spool {
        _ if is_all => Whole::None,
        Some((path, dropped)) => Whole::File { path, dropped },
        None if total == head.len() as u64 => Whole::Bytes(head),
        None => {
            notes.push("the whole output could not be kept: its temporary file could not be written".into());
            Whole::None
        }
    };
    if let Some(asked) = limit.asked {
        notes.push(format!("timeout_ms {asked} is over the limit; {MAX_TIMEOUT_MS} was used").into());
    }
    notes.extend(unseen.map(Cow::from));
    notes.extend(end_notes(end, left_running, limit));
    for note in notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&note);
    }
    match end {
        ShellEnd::Exited(code) => Ok(ToolOutput { text, whole, exit_code: Some(code), ..ToolOutput::default() }),
        ShellEnd::Signalled(signal) => {
            Ok(ToolOutput { text, whole, exit_code: Some(128 + signal), ..ToolOutput::default() })
        }
        ShellEnd::TimedOut => Err(ToolFailure { class: ToolErrorClass::Timeout, text, whole }),
        ShellEnd::Cancelled => Err(ToolFailure { class: ToolErrorClass::Cancelled, text, whole }),
    }
}

/// How it ended, unless it simply succeeded.
fn end_notes(end: ShellEnd, left_running: bool, limit: &Limit) -> Vec<Cow<'static, str>> {
    let children = if left_running { "but some of its children could not be ended" } else { "with all its children" };
    let (by_itself, last) = match end {
        ShellEnd::Exited(0) => (true, None),
        ShellEnd::Exited(code) => (true, Some(format!("exit code {code}"))),
        ShellEnd::Signalled(signal) => (true, Some(format!("ended by {}", signal_name(signal)))),
        ShellEnd::TimedOut => (false, Some(format!("killed after {}, {children}", seconds(limit.ms)))),
        ShellEnd::Cancelled => (false, Some(format!("cancelled: killed, {children}"))),
    };
    let running = (by_itself && left_running)
        .then_some("a child is still running in the background; it is ended when this run ends".into());
    running.into_iter().chain(last.map(Cow::from)).collect()
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

/// A signal's name; its number where the name differs between systems.
fn signal_name(signal: i32) -> Cow<'static, str> {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}").into(),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_is_terse() {
        let spec = Shell::new().spec;
        let size = serde_json::to_string(&spec).unwrap().len();
        assert!(size <= 560, "{size} characters");
    }

    #[test]
    fn a_limit_is_named_capped_or_the_usual_one() {
        for (input, ms, asked) in [
            (json!({}), 120_000, None),
            (json!({"timeout_ms": 2_000}), 2_000, None),
            (json!({"timeout_ms": 600_000}), 600_000, None),
            (json!({"timeout_ms": 600_001}), 600_000, Some(600_001)),
            (json!({"timeout_ms": u64::MAX}), 600_000, Some(u64::MAX)),
            (json!({"timeout_ms": 0}), 1, None),
            (json!({"timeout_ms": -5}), 120_000, None),
            (json!({"timeout_ms": "soon"}), 120_000, None),
        ] {
            let limit = Limit::of(&input);
            assert_eq!((limit.ms, limit.asked), (ms, asked), "{input}");
        }
    }

    fn command_words(words: &[&str]) -> Resource {
        Resource::Command { words: words.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn a_call_declares_the_workspace_its_folder_and_its_commands() {
        let shell = Shell::new();
        let plain = shell.declare(&json!({"command": "cargo build && ls"}));
        assert_eq!(plain.effect, Effect::Run);
        assert_eq!(
            plain.resources,
            [Resource::Workspace { write: true }, command_words(&["cargo", "build"]), command_words(&["ls"])]
        );
        assert_eq!(plain.cap_bytes, Some(CAP_BYTES));
        assert_eq!(plain.timeout_ms, Some(DEFAULT_TIMEOUT_MS));
        assert!(!plain.cacheable && !plain.polling && plain.reason.is_some());
        let elsewhere = shell.declare(&json!({"command": "make", "cwd": "../other"}));
        assert_eq!(elsewhere.resources[1], Resource::path("../other".to_owned(), true));
    }

    #[test]
    fn a_command_that_is_proven_declares_a_read() {
        let declaration = Shell::new().declare(&json!({"command": "grep -n x \"$f\" | head", "cwd": "sub"}));
        assert_eq!((declaration.effect, declaration.reason), (Effect::Read, None));
        assert_eq!(
            declaration.resources,
            [
                Resource::Workspace { write: false },
                Resource::path("sub", false),
                command_words(&["grep", "-n", "x", "\"$f\""]),
                command_words(&["head"]),
            ]
        );
    }

    #[test]
    fn a_label_is_the_first_line() {
        let label = Shell::new().label(&json!({"command": "\n  make test\nmake run"}));
        assert_eq!(label.to_string(), "Shell make test");
    }

    fn view_of(pieces: &[&str], keep: usize) -> View {
        let mut view = View::new(keep);
        for piece in pieces {
            view.push(piece.as_bytes());
        }
        view.finish();
        view
    }

    #[test]
    fn a_long_output_keeps_both_ends_and_counts_the_rest() {
        for (input, keep) in [
            ("line\n".repeat(1000), 100),
            ("x".repeat(5000), 100),
            ("日本語".repeat(500), 101),
            (format!("{}\n{}", "a".repeat(300), "b".repeat(300)), 64),
            ("\n".repeat(900), 40),
            ("é\n".repeat(900), 33),
            ("word ".repeat(900), 1),
            ("word ".repeat(900), 0),
        ] {
            let (text, is_all) = view_of(&[&input], keep).into_text();
            assert!(!is_all);
            let (head, rest) = text.split_once('[').unwrap();
            let (count, tail) = rest.split_once(" bytes left out]\n").unwrap();
            let count: usize = count.parse().unwrap();
            let head = if input.starts_with(head) { head } else { head.trim_end_matches('\n') };
            assert!(input.starts_with(head) && input.trim_end_matches('\n').ends_with(tail), "{text}");
            let trimmed = input.len() - input.trim_end_matches('\n').len();
            let shown = head.len() + tail.len();
            assert!(shown <= keep, "{shown} over {keep}");
            assert!((shown + count..=shown + count + trimmed).contains(&input.len()), "{shown} + {count}");
        }
    }

    #[test]
    fn live_pieces_are_small_and_say_what_was_skipped() {
        let mut view = View::new(100);
        assert!(view.push(b"one\ntwo"));
        assert_eq!(view.take_live(), Some((0, "one\n".to_owned())));
        assert!(!view.push(b" and a half"));
        assert_eq!(view.take_live(), None);
        assert!(view.push("\n日本語\n".repeat(2000).as_bytes()));
        let (offset, text) = view.take_live().unwrap();
        assert!(text.len() <= LIVE_BYTES && offset > 15);
        assert_eq!(offset + text.len() as u64, view.kept.total());
        view.push(b"end");
        view.finish();
        assert_eq!(view.take_live().unwrap().1, "end");
    }

    #[test]
    fn ends_are_named() {
        let limit = Limit { ms: 2500, asked: None };
        for (end, left, expected) in [
            (ShellEnd::Exited(0), false, &[][..]),
            (ShellEnd::Exited(3), false, &["exit code 3"]),
            (ShellEnd::Signalled(9), false, &["ended by SIGKILL"]),
            (ShellEnd::Signalled(60), false, &["ended by signal 60"]),
            (ShellEnd::TimedOut, false, &["killed after 2500 ms, with all its children"]),
            (ShellEnd::TimedOut, true, &["killed after 2500 ms, but some of its children could not be ended"]),
            (ShellEnd::Cancelled, false, &["cancelled: killed, with all its children"]),
            (
                ShellEnd::Exited(1),
                true,
                &["a child is still running in the background; it is ended when this run ends", "exit code 1"],
            ),
        ] {
            assert_eq!(end_notes(end, left, &limit), expected);
        }
    }
}
