//! The Shell tool as the model and a watching person meet it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hames_protocol::{CallId, Emit, Event, Failure, MemoryBlobs, Mode, SessionId, ToolErrorClass};
use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput, Whole};
use hames_workspace::files::{LocalFs, LocalFsOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Bed, marked};

/// Live pieces, and when they came.
#[derive(Default)]
struct Seen(Mutex<Vec<(Instant, u64, String)>>);

#[async_trait]
impl Emit for Seen {
    async fn record(&self, _: Vec<Event>) -> Result<(), Failure> {
        Ok(())
    }
    fn show(&self, event: Event) {
        if let Event::ToolOutputDelta(delta) = event {
            self.0.lock().unwrap().push((Instant::now(), delta.offset, delta.text));
        }
    }
}

/// What a call gets, with the usual cap.
pub(super) fn cx(bed: &Bed) -> ToolCx {
    seeing_cx(bed).0
}

fn seeing_cx(bed: &Bed) -> (ToolCx, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let cx = ToolCx {
        session: SessionId::from("session"),
        call_id: CallId::from("call"),
        mode: Mode::Build,
        fs: Arc::new(LocalFs::new(bed.path(), LocalFsOptions::default()).unwrap()),
        shell: bed.shell.clone(),
        blobs: Arc::new(MemoryBlobs::default()),
        emit: seen.clone(),
        cancel: CancellationToken::new(),
        cap_bytes: 50 * 1024,
        state: Arc::default(),
        approved: Vec::new(),
        hosts: hames_tools::HostRules::default(),
        pins: hames_tools::PinRoom::default(),
        asks: Default::default(),
    };
    (cx, seen)
}

fn shell_tool() -> Arc<dyn Tool> {
    hames_workspace::shell::tools().remove(0)
}

pub(super) async fn run(cx: &ToolCx, input: Value) -> Result<ToolOutput, ToolFailure> {
    shell_tool().run(&input, cx).await
}

async fn text_of(command: &str) -> (String, String) {
    let bed = Bed::new();
    let (cx, seen) = seeing_cx(&bed);
    let text = run(&cx, json!({ "command": command })).await.unwrap().text;
    let live = seen.0.lock().unwrap().iter().map(|(_, _, text)| text.as_str()).collect();
    (text, live)
}

#[tokio::test]
async fn progress_bars_and_terminal_codes_do_not_reach_anybody() {
    for (command, expected) in [
        (r"printf '\033[32mP 10%%\rP 50%%\rP 100%%\033[0m\nDone\033]0;title\007\033[2J\n'", "P 100%\nDone"),
        (r"for i in 1 2 3; do printf '\r%s/3' $i; sleep 0.15; done; echo", "3/3"),
        (r"for i in 10 55 100; do printf '%s%%\r' $i; done; printf '\nfinished\n'", "100%\nfinished"),
        (r"printf 'one\r\ntwo\r\n'", "one\ntwo"),
        (r"printf 'working |\b/\b-\bdone\n'", "working done"),
        (r"printf '\033]8;;https://example.org\033\\link\033]8;;\033\\\n'", "link"),
        (r"printf '\033[?25l\033[1;31mred\033[m\033[?25h\n'", "red"),
        (r"printf 'fetching\r\033[Kready\n'", "ready"),
        (r"printf 'a\0b\001c\177d\n'", "abcd"),
        (r"printf '\033P1;2|data\033\\text\n'", "text"),
        (r"printf 'a\tb\n\n\nc'", "a\tb\n\n\nc"),
        (r"printf '\302\233'; sleep 0.2; printf '31mred\n'", "red"),
        (r"printf '\342\202'; sleep 0.2; printf '\254\377\n'", "€\u{fffd}"),
    ] {
        let (text, live) = text_of(command).await;
        assert_eq!(text, expected, "{command}");
        assert_eq!(live.trim_end_matches('\n'), expected, "live: {command}");
    }
}

#[tokio::test]
async fn the_last_line_says_how_it_ended() {
    for (command, expected, code) in [
        ("echo fine", "fine", 0),
        ("true", "", 0),
        ("echo", "", 0),
        ("echo wrong; false", "wrong\nexit code 1", 1),
        ("exit 3", "exit code 3", 3),
        ("kill -9 $$", "ended by SIGKILL", 137),
        ("echo bye; kill -TERM $$", "bye\nended by SIGTERM", 143),
        ("no-such-program 2>/dev/null", "exit code 127", 127),
        ("sleep 600 & echo up", "up\na child is still running in the background; it is ended when this run ends", 0),
    ] {
        let bed = Bed::new();
        let output = run(&cx(&bed), json!({ "command": command })).await.unwrap();
        assert_eq!((output.text.as_str(), output.exit_code), (expected, Some(code)), "{command}");
        assert!(matches!(output.whole, Whole::None), "{command}");
    }
}

#[tokio::test]
async fn a_time_limit_is_a_failure_with_the_output_so_far() {
    let bed = Bed::new();
    let input = json!({"command": "echo begun; sleep 300", "timeout_ms": 1500});
    let failure = run(&cx(&bed), input).await.unwrap_err();
    assert_eq!(failure.class, ToolErrorClass::Timeout);
    assert_eq!(failure.text, "begun\nkilled after 1500 ms, with all its children");
    assert_eq!(marked(bed.path()), []);

    let input = json!({"command": "yes", "timeout_ms": 1500});
    let failure = run(&cx(&bed), input).await.unwrap_err();
    assert!(failure.text.contains(" bytes left out]\n") && failure.text.len() <= 50 * 1024);
    assert!(matches!(failure.whole, Whole::File { .. }));
}

#[tokio::test]
async fn a_cancel_is_a_failure_with_the_output_so_far() {
    let bed = Bed::new();
    let cx = cx(&bed);
    let cancel = cx.cancel.clone();
    let ready = bed.path().join("ready");
    let stop = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(run(&cx, json!({"command": "echo begun; touch ready; sleep 300"})), stop);
    let failure = result.unwrap_err();
    assert_eq!(failure.class, ToolErrorClass::Cancelled);
    assert_eq!(failure.text, "begun\ncancelled: killed, with all its children");
    assert_eq!(marked(bed.path()), []);
}

#[tokio::test]
async fn a_limit_over_the_limit_is_said() {
    let bed = Bed::new();
    let output = run(&cx(&bed), json!({"command": "echo hi; exit 2", "timeout_ms": 900_000})).await.unwrap();
    assert_eq!(output.text, "hi\ntimeout_ms 900000 is over the limit; 600000 was used\nexit code 2");
}

#[tokio::test]
async fn what_is_no_command_is_invalid() {
    let bed = Bed::new();
    for command in ["", " ", "\n\t\n", "echo a\0b"] {
        let failure = run(&cx(&bed), json!({ "command": command })).await.unwrap_err();
        assert_eq!(failure.class, ToolErrorClass::Invalid, "{command:?}");
    }
}

#[tokio::test]
async fn a_folder_is_taken_inside_the_workspace_only() {
    let bed = Bed::new();
    std::fs::create_dir(bed.path().join("sub")).unwrap();
    std::fs::write(bed.path().join("file"), "").unwrap();
    let cx = cx(&bed);
    let here = cx.fs.root().display().to_string();
    for (cwd, expected) in [("sub", format!("{here}/sub")), ("", here.clone()), (".", here.clone()), ("sub/..", here)] {
        let output = run(&cx, json!({"command": "pwd -P", "cwd": cwd})).await.unwrap();
        assert_eq!(output.text, expected, "{cwd}");
    }
    for (cwd, class) in [
        ("..", ToolErrorClass::Refused),
        ("/", ToolErrorClass::Refused),
        ("missing", ToolErrorClass::Failed),
        ("file", ToolErrorClass::Failed),
    ] {
        let failure = run(&cx, json!({"command": "pwd", "cwd": cwd})).await.unwrap_err();
        assert_eq!(failure.class, class, "{cwd}: {}", failure.text);
    }
}

#[tokio::test]
async fn a_long_output_is_cut_in_its_middle_and_kept_whole() {
    let bed = Bed::new();
    let mut cx = cx(&bed);
    for (cap, command) in [
        (50 * 1024, "seq 1 100000"),
        (4096, "seq 1 100000"),
        (600, "seq 1 1000"),
        (100, "seq 1 1000"),
        (4096, "head -c 100000 /dev/zero | tr '\\0' x"),
    ] {
        cx.cap_bytes = cap;
        let output = run(&cx, json!({ "command": command })).await.unwrap();
        assert!(output.text.len() <= cap + 40, "{} over {cap}", output.text.len());
        let (head, rest) = output.text.split_once('[').unwrap();
        let (count, tail) = rest.split_once(" bytes left out]\n").unwrap();
        let Whole::File { path, dropped: 0 } = &output.whole else {
            panic!("{:?}", output.whole);
        };
        let whole = std::fs::read_to_string(path.path()).unwrap();
        let left_out = whole.len() - head.trim_end_matches('\n').len() - tail.len();
        // The line ends at both edges are shown or left out.
        assert!((left_out - 2..=left_out).contains(&count.parse().unwrap()), "{count} of {left_out}");
        assert!(whole.starts_with(head.trim_end_matches('\n')) && whole.trim_end().ends_with(tail), "{cap}");
    }
}

#[tokio::test]
async fn output_is_shown_while_it_comes_but_not_too_often() {
    let bed = Bed::new();
    let (cx, seen) = seeing_cx(&bed);
    let command = "for i in $(seq 1 100); do seq 1 2000; sleep 0.01; done";
    let start = Instant::now();
    run(&cx, json!({ "command": command })).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let seen = seen.0.lock().unwrap();
    assert!(seen.len() >= 5, "{} pieces in {seconds} s", seen.len());
    for (at, _, text) in seen.iter() {
        assert!(text.len() <= 4096);
        let within = seen.iter().filter(|(other, ..)| other >= at && *other < *at + Duration::from_secs(1)).count();
        assert!(within <= 10, "{within} in a second");
    }
    for pair in seen.windows(2) {
        assert!(pair[1].1 >= pair[0].1 + pair[0].2.len() as u64, "offsets go back");
    }
    assert!(seen.iter().any(|(_, offset, _)| *offset > 10_000), "skipped bytes leave a gap");
}
