//! Plain mode: lines in, lines out.

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
