//! Plain mode: lines in, lines out.

use hames_testkit::{Script, Turn};
use serde_json::json;

use super::Ends;
use crate::kit::User;
use crate::tty::Terminal;

#[test]
fn lines_of_a_pipe_are_messages_and_it_ends_when_all_is_said() {
    let (user, provider) = User::saying("a plain answer");
    let _ends = Ends(&user);
    let ended = user.run_with_stdin(&["--plain", "-s", "piped"], b"first\nsecond\n");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!ended.out.contains('\u{1b}'), "{ended:?}");
    for (text, times) in [("You: first", 1), ("You: second", 1), ("a plain answer", 2), ("-- done", 2)] {
        assert_eq!(ended.out.matches(text).count(), times, "{text}: {ended:?}");
    }
    assert_eq!(provider.requests().len(), 2);
    let again = user.run_with_stdin(&["--plain", "-c"], b"");
    assert!(again.out.contains("session piped") && again.out.matches("a plain answer").count() == 2, "{again:?}");
}

#[test]
fn without_terminal_and_input_it_says_what_to_do() {
    let user = User::new();
    let _ends = Ends(&user);
    let ended = user.run(&[]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains("hames run") && ended.err.contains("--plain"), "{ended:?}");
}

#[test]
fn a_call_is_shown_whole_in_lines_before_it_is_decided_about() {
    let user = User::new();
    let file = user.folder("outside").join("notes.txt");
    let path = file.clone();
    let provider = hames_testkit::blocking(Script::new().respond(move |request| match request.last_role() {
        "tool" => Turn::text("that was it"),
        _ => Turn::call("Write", json!({"path": path, "content": "one\n\u{1b}[8mtwo\n"})),
    }));
    let provider = provider.unwrap();
    let user = user.var("OPENAI_BASE_URL", &provider.base_url());
    let _ends = Ends(&user);
    let mut terminal = Terminal::start(&user, &[]);
    terminal.until("a new session");
    terminal.types("/mode build\n");
    terminal.until("Build from the next run on");
    terminal.types("write it\n");
    let asked = terminal.until("they are written out.");
    assert!(asked.contains("  content: one") && asked.contains("  \\e[8mtwo"), "{asked}");
    assert!(!asked.contains('\u{1b}'), "{asked}");
    terminal.types("maybe\n");
    terminal.until("a call waits: answer yes, no");
    assert!(!file.exists());
    terminal.types("yes\n");
    terminal.until("that was it");
    assert!(file.exists());
    terminal.types("/quit\n");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_terminal_that_can_do_no_more_gets_lines() {
    let (user, _provider) = User::saying("spoken");
    let _ends = Ends(&user);
    let mut terminal = Terminal::start(&user, &[]);
    terminal.until("a new session");
    terminal.types("hello\n");
    terminal.until("spoken");
    terminal.types("/quit\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, 0, "{rest}");
    assert!(!rest.contains('\u{1b}'));
}
