//! Answers at a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::output::printer::Printer;

/// Where the process at the other terminal writes what it was told.
const TOLD: &str = "HAMES_TEST_TOLD";

#[test]
fn only_clear_words_are_answers() {
    use Decision::*;
    for (line, lasting, answer) in [
        ("y\n", true, Answer::Decision(Once)),
        (" YES \r\n", true, Answer::Decision(Once)),
        ("s", true, Answer::Decision(Session)),
        ("folder", true, Answer::Decision(Folder)),
        ("N", true, Answer::Decision(Deny)),
        ("no", false, Answer::Decision(Deny)),
        ("v", false, Answer::ShowAll),
        ("s", false, Answer::Odd),
        ("f", false, Answer::Odd),
        ("", true, Answer::Odd),
        ("yy", true, Answer::Odd),
        ("yes please", true, Answer::Odd),
        ("\u{1b}[A", true, Answer::Odd),
        ("y\ny\n", true, Answer::Odd),
    ] {
        assert_eq!(Answer::of(line, lasting), answer, "{line:?}");
    }
}

#[test]
fn a_line_answers_by_number_by_words_or_with_its_own() {
    let colours = ["red", "dark blue", "3"];
    for (line, choices, answer) in [
        ("2\n", &colours[..], Some("dark blue")),
        ("red\n", &colours, Some("red")),
        (" DARK blue \r\n", &colours, Some("DARK blue")),
        ("3", &colours, Some("3")),
        ("4", &colours, Some("4")),
        ("0", &colours, Some("0")),
        ("2", &[], Some("2")),
        ("neither of them\n", &colours, Some("neither of them")),
        ("\n", &colours, None),
        (" \t", &[], None),
        ("1", &[" "], None),
    ] {
        let choices: Vec<String> = choices.iter().map(|choice| (*choice).to_owned()).collect();
        assert_eq!(meant(line, &choices).as_deref(), answer, "{line:?} of {choices:?}");
    }
}

/// A terminal: the side of who types, and the other side for a process, as often as it wants it.
fn terminal() -> (File, impl Fn() -> Stdio) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let no_ctty = rustix::fs::OFlags::NOCTTY.bits() as i32;
    let other = move || OpenOptions::new().read(true).write(true).custom_flags(no_ctty).open(&path).unwrap().into();
    (File::from(master), other)
}

#[test]
fn a_tools_question_is_answered_at_the_terminal() {
    for (keys, told) in [
        ("2\n", "dark blue (user)"),
        ("\n \n green \n", "green (user)"),
        // The end of input is no answer.
        ("\u{4}", "nobody"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("told");
        let (mut keyboard, screen) = terminal();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "approve::terminal::tests::helper_asks", "--ignored", "--nocapture"])
            .env(TOLD, &file)
            .stdin(screen())
            .stdout(screen())
            .stderr(screen())
            .spawn()
            .unwrap();
        let (mut seen, mut bytes) = (String::new(), [0; 4096]);
        while !seen.ends_with("your own words > ") {
            let count = keyboard.read(&mut bytes).unwrap();
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(seen.contains("Which colour?") && seen.contains("2        dark blue"), "{seen}");
        keyboard.write_all(keys.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{seen}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), told, "{keys:?}");
    }
}

#[test]
#[ignore = "a process started by the test above"]
fn helper_asks() {
    let Some(file) = std::env::var_os(TOLD) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let printer = Printer::start(CancellationToken::new()).unwrap();
    let asked = QuestionAsked {
        call_id: "c".into(),
        text: "Which colour?".into(),
        choices: vec!["red".into(), "dark blue".into()],
        digest: "d".into(),
    };
    let answer = runtime.block_on(Terminal::new(printer.sink(), Style::default()).answer(&asked));
    let told = answer.map_or_else(|| "nobody".into(), |(text, by)| format!("{text} ({by})"));
    std::fs::write(file, told).unwrap();
    printer.finish(&CancellationToken::new()).unwrap();
}
