//! Calls that need a decision: somebody at the terminal, a flag, nobody; and what is remembered.

use std::path::PathBuf;

use hames_testkit::{Gate, Provider, Script, Turn};
use serde_json::{Value, json};

use crate::kit::{Ended, User};
use crate::tty::{COLUMNS, Terminal};

/// Where the cursor stands when somebody is asked.
const PROMPT: &str = "v show all > ";
const RUN: [&str; 5] = ["run", "--mode", "build", "-s", "s"];

/// A user, a file outside the project, and a model that reads it once in every run and then repeats what it got.
fn reader() -> (User, Provider, PathBuf) {
    let place = std::sync::Arc::new(std::sync::Mutex::new(PathBuf::new()));
    let of_model = place.clone();
    let script = Script::new().respond(move |request| match last_result(request) {
        Some(result) => Turn::text(format!("got: {result}")),
        None => Turn::call("Read", json!({"path": *of_model.lock().unwrap()})),
    });
    let (user, provider) = User::with(script);
    let file = user.folder("outside").join("notes.txt");
    std::fs::write(&file, "a note from outside").unwrap();
    place.lock().unwrap().clone_from(&file);
    (user, provider, file)
}

/// The result of the last call, where it came after the last message of the user.
fn last_result(request: &hames_testkit::ChatRequest) -> Option<String> {
    let body: Value = serde_json::from_slice(&request.raw).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap().clone();
    (last["role"] == "tool").then(|| last["content"].to_string())
}

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..], more].concat()
}

fn decisions(log: &Ended) -> Vec<(String, String)> {
    let answered = |line: &Value| line["event"]["type"] == "approval.answered";
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    log.json()
        .iter()
        .filter(|line| answered(line))
        .map(|line| (text(&line["event"]["decision"]), text(&line["event"]["by"])))
        .collect()
}

fn log(user: &User, name: &str) -> Ended {
    user.ok(&["sessions", "show", name, "--json"])
}

#[test]
fn an_answer_at_the_terminal_decides_and_is_recorded() {
    for (keys, decision, reads) in [
        ("y\n", "once", true),
        ("n\n", "deny", false),
        ("s\n", "session", true),
        ("f\n", "folder", true),
        ("maybe\n\n Y \n", "once", true),
        ("\u{4}", "deny", false),
    ] {
        let (user, _provider, file) = reader();
        let mut terminal = Terminal::start(&user, &run(&["look"]));
        let shown = terminal.until(PROMPT);
        let outside = format!("{} is outside the workspace", file.display());
        let flat: String = shown.replace("\r\n", "").replace("  ┊ ", "").replace("  │ ", "");
        assert!(flat.contains("Read needs a decision") && flat.contains(&outside), "{shown}");
        terminal.types(keys);
        let (code, rest) = terminal.end();
        assert_eq!(code, 0, "{keys:?}\n{rest}");
        assert_eq!(
            rest.contains("got: \"1\\ta note from outside") || rest.contains("a note from outside"),
            reads,
            "{rest}"
        );
        if !reads {
            assert!(rest.contains("The user declined this call"), "{rest}");
        }
        assert_eq!(decisions(&log(&user, "s")), [(decision.to_owned(), "user".to_owned())], "{keys:?}");
        // Each line that is no answer brings the question back, without showing everything again.
        assert_eq!(rest.matches(PROMPT).count(), keys.matches('\n').count().saturating_sub(1), "{rest}");
    }
}

#[test]
fn what_was_typed_before_the_question_stood_is_no_answer() {
    let gate = Gate::new();
    let (user, provider) = User::with(
        Script::new()
            .turn(Turn::call("Read", json!({"path": "/etc/hostname"})).gate_head(gate.clone()))
            .turn(Turn::text("so be it")),
    );
    let mut terminal = Terminal::start(&user, &run(&["look"]));
    assert!(provider.has_requests_within(1, crate::kit::PATIENCE));
    terminal.types("y\ny\n");
    // The terminal has taken the keys in when it has shown them.
    terminal.until("y\r\ny\r\n");
    gate.open();
    terminal.until(PROMPT);
    terminal.types("n\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, 0, "{rest}");
    assert_eq!(decisions(&log(&user, "s")), [("deny".to_owned(), "user".to_owned())]);
}

#[test]
fn ctrl_c_at_the_question_ends_the_run() {
    let (user, _provider, _) = reader();
    let mut terminal = Terminal::start(&user, &run(&["look"]));
    terminal.until(PROMPT);
    terminal.types("\u{3}");
    let (code, rest) = terminal.end();
    assert_eq!(code, 130, "{rest}");
    assert!(rest.contains("interrupted"), "{rest}");
    let log = log(&user, "s");
    assert_eq!(log.event("run.done")["result"], "interrupted");
    assert_eq!(log.event("tool.error")["class"], "not_run");
    assert_eq!(decisions(&log), []);
}

#[test]
fn parallel_calls_ask_one_after_the_other_and_output_waits_meanwhile() {
    let calls = Turn::text("I look at three.")
        .then_call("Read", json!({"path": "/etc/hostname"}))
        .then_call("Read", json!({"path": "inside.txt"}))
        .then_call("Read", json!({"path": "/etc/passwd"}));
    let (user, _provider) = User::with(Script::new().turn(calls).turn(Turn::text("done")));
    user.write("inside.txt", "x");
    let mut terminal = Terminal::start(&user, &run(&["look"]));
    let first = terminal.until(PROMPT);
    assert!(first.contains("I look at three.\r\n") && first.contains("/etc/hostname is outside"), "{first}");
    terminal.types("n\n");
    let second = terminal.until(PROMPT);
    assert!(second.contains("/etc/passwd is outside"), "{second}");
    terminal.types("y\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, 0, "{rest}");
    for shown in [&first, &second] {
        // Between a question and its answer stands nothing but the question.
        let question = shown.split_once("needs a decision").unwrap().1;
        assert!(!question.contains(" ms"), "{question}");
    }
    let all = format!("{first}{second}{rest}");
    assert!(all.contains("Read inside.txt ·") && all.contains("done\r\n"), "{all}");
    let answers = decisions(&log(&user, "s"));
    assert_eq!(answers.iter().map(|answer| answer.0.as_str()).collect::<Vec<_>>(), ["deny", "once"]);
}

#[test]
fn what_is_shown_is_what_runs() {
    let blanks = " ".repeat(400);
    let commands = [
        "echo ok && touch evil \u{1b}[24D\u{1b}[K && echo ok".to_owned(),
        "rm -rf x\recho ok".to_owned(),
        "rm -rf x\u{8}\u{8}\u{8}\u{8}".to_owned(),
        "echo \u{202e}txt.exe; rm -rf x".to_owned(),
        format!("echo ok{blanks}; rm -rf x"),
        format!("echo ok\n{}; rm -rf x", "\n".repeat(20)),
        "echo \u{9b}2J\u{1b}]0;title\u{7}".to_owned(),
        "echo \u{200b}\u{2066}x\u{2069}\u{feff}".to_owned(),
    ];
    let turns = commands.iter().map(|command| Turn::call("Shell", json!({"command": command})));
    let (user, _provider) = User::with(Script::new().turns(turns).turn(Turn::text("done")));
    user.write_config(r#"{"policy": {"rules": [{"verdict": "ask", "tool": "Shell"}]}}"#);
    let mut terminal = Terminal::start(&user, &run(&["go"]));
    for command in &commands {
        let shown = terminal.until(PROMPT);
        let question = shown.split_once("needs a decision").unwrap().1;
        let is_plain = |c: char| c == '\r' || c == '\n' || !hames_protocol::is_unprintable(c);
        assert!(question.chars().all(is_plain), "{question:?}");
        assert!(question.lines().all(|line| line.chars().count() <= usize::from(COLUMNS)), "{question}");
        assert_eq!(unescaped(&command_of(question)), *command);
        terminal.types("n\n");
    }
    let (code, rest) = terminal.end();
    assert_eq!(code, 0, "{rest}");
    assert!(!user.project().join("evil").exists());
}

/// The command as a person reads it.
fn command_of(question: &str) -> String {
    let lines: Vec<&str> = question.split("\r\n").collect();
    let at = lines.iter().position(|line| line.trim_start().starts_with("command")).unwrap();
    if let Some(beside) = lines[at].trim_start().strip_prefix("command  ") {
        return beside.to_owned();
    }
    let mut out: Vec<String> = Vec::new();
    for line in &lines[at + 1..] {
        match (line.strip_prefix("  │ ").or(line.strip_prefix("  │")), line.strip_prefix("  ┊ "), out.last_mut())
        {
            (Some(new), ..) => out.push(new.to_owned()),
            (_, Some(more), Some(last)) => last.push_str(more),
            _ => break,
        }
    }
    out.join("\n")
}

/// Escapes read as what they stand for.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let code = |digits: &str| char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap();
        let (read, used) = match rest {
            _ if rest.starts_with("\\r") => ('\r', 2),
            _ if rest.starts_with("\\x") => (code(&rest[2..4]), 4),
            _ if rest.starts_with("\\u{") => {
                let end = rest.find('}').unwrap();
                (code(&rest[3..end]), end + 1)
            }
            _ => (c, c.len_utf8()),
        };
        out.push(read);
        rest = &rest[used..];
    }
    out
}

#[test]
fn everything_is_shown_when_asked_for() {
    let content: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    let write = Turn::call("Write", json!({"path": "big.txt", "content": content}));
    let (user, _provider) = User::with(Script::new().turn(write).turn(Turn::text("done")));
    user.write_config(r#"{"policy": {"rules": [{"verdict": "ask", "path": "*.txt", "access": "write"}]}}"#);
    let mut terminal = Terminal::start(&user, &run(&["go"]));
    let short = terminal.until(PROMPT);
    assert!(short.contains("170 lines are not shown here") && !short.contains("line 100\r\n"), "{short}");
    assert!(short.contains("big.txt  +200 −0") && short.contains("v shows all of it"), "{short}");
    terminal.types("v\n");
    let whole = terminal.until(PROMPT);
    (1..=200).for_each(|n| assert!(whole.contains(&format!("│ line {n}\r\n")), "{n}\n{whole}"));
    assert!(whole.contains("│ +line 100\r\n") && !whole.contains("not shown"), "{whole}");
    terminal.types("y\n");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(std::fs::read_to_string(user.project().join("big.txt")).unwrap(), content);
}

#[test]
fn a_grant_for_the_session_holds_after_a_restart_and_in_no_other_session() {
    let (user, _provider, _) = reader();
    let mut terminal = Terminal::start(&user, &run(&["look"]));
    assert!(terminal.until(PROMPT).contains("s and f allow from then on"));
    terminal.types("s\n");
    assert_eq!(terminal.end().0, 0);
    // Nobody could answer here, and nobody is asked.
    let again = user.ok(&run(&["look again"]));
    assert!(again.out.contains("a note from outside"), "{again:?}");
    let other = user.ok(&["run", "--mode", "build", "-s", "other", "look"]);
    assert!(other.out.contains("nobody can answer here"), "{other:?}");
    assert_eq!(user.ok(&["grants", "list"]).out, "nothing is granted here; --all shows every folder\n");
}

#[test]
fn a_grant_for_the_folder_holds_there_until_it_is_taken_back() {
    let (user, _provider, file) = reader();
    let mut terminal = Terminal::start(&user, &run(&["look"]));
    terminal.until(PROMPT);
    terminal.types("f\n");
    assert_eq!(terminal.end().0, 0);
    let other = user.ok(&["run", "-s", "other", "look"]);
    assert!(other.out.contains("a note from outside"), "{other:?}");
    let elsewhere = user.folder("elsewhere").display().to_string();
    let there = user.ok(&["run", "-C", &elsewhere, "look"]);
    assert!(there.out.contains("nobody can answer here"), "{there:?}");

    let listed = user.ok(&["grants", "list"]).out;
    assert!(listed.starts_with("  1  ") && listed.contains(&format!("reading {} and", file.display())), "{listed}");
    assert_eq!(
        user.ok(&["grants", "list", "-C", &elsewhere]).out,
        "nothing is granted here; --all shows every folder\n"
    );
    let all = user.ok(&["grants", "list", "--all", "--json", "-C", &elsewhere]).json();
    assert_eq!((&all[0]["number"], &all[0]["grant"]["type"]), (&json!(1), &json!("path")));
    assert_eq!(user.run(&["grants", "remove", "2"]).code, 2);
    assert_eq!(user.run(&["grants", "remove"]).code, 2);
    assert!(user.ok(&["grants", "remove", "1"]).out.starts_with("no longer granted: reading "));
    let after = user.ok(&["run", "-s", "other", "look"]);
    assert!(after.out.contains("nobody can answer here"), "{after:?}");
}

#[test]
fn a_whole_folder_is_deleted_only_when_somebody_says_so() {
    let script = Script::new()
        .turn(Turn::call("Delete", json!({"path": "old", "recursive": true})))
        .turn(Turn::call("Delete", json!({"path": "older", "recursive": true})))
        .turn(Turn::text("done"))
        .turn(Turn::call("Delete", json!({"path": "last", "recursive": true})))
        .turn(Turn::text("done"));
    let (user, _provider) = User::with(script);
    ["old/a", "older/b", "last/c"].iter().for_each(|name| drop(user.write(name, "x")));
    let mut terminal = Terminal::start(&user, &run(&["tidy up"]));
    let shown = terminal.until(PROMPT);
    assert!(shown.contains("deletes a folder") && shown.contains("every call of Delete"), "{shown}");
    terminal.types("s\n");
    let (code, rest) = terminal.end();
    assert!(code == 0 && !rest.contains(PROMPT), "the second is granted: {rest}");
    assert!(!user.project().join("old").exists() && !user.project().join("older").exists());
    // Another session was granted nothing.
    user.ok(&["run", "--mode", "build", "-s", "other", "tidy up"]);
    assert!(user.project().join("last/c").exists());
}

#[test]
fn a_rule_that_denies_beats_grants_and_flags() {
    let (user, _provider, file) = reader();
    let mut terminal = Terminal::start(&user, &run(&["look"]));
    terminal.until(PROMPT);
    terminal.types("f\n");
    assert_eq!(terminal.end().0, 0);
    user.write_config(&format!(
        r#"{{"policy": {{"rules": [{{"verdict": "deny", "path": {:?}}}]}}}}"#,
        file.parent().unwrap()
    ));
    for more in [&["look"][..], &["--approve", "allow", "look"], &["--approve", "ask", "look"]] {
        let ended = user.ok(&run(more));
        assert!(ended.out.contains("a rule forbids it"), "{ended:?}");
    }
    let terminal = Terminal::start(&user, &run(&["look"]));
    let (code, shown) = terminal.end();
    assert!(code == 0 && shown.contains("a rule forbids it") && !shown.contains(PROMPT), "{shown}");
}

#[test]
fn where_nobody_can_answer_the_answer_is_no_with_the_reason() {
    let (user, _provider, file) = reader();
    let refused = |ended: &Ended, how: &str| {
        assert_eq!(ended.code, 0, "{how} {ended:?}");
        let log = log(&user, "s");
        let error = &log.event("tool.error");
        assert_eq!(error["class"], "refused", "{how}");
        let text = error["error"].as_str().unwrap();
        assert!(
            text.contains(&format!("{} is outside", file.display())) && text.contains("nobody can answer"),
            "{text}"
        );
        assert_eq!(decisions(&log), [], "{how}");
    };
    refused(&user.run(&run(&["look"])), "no terminal");
    refused(&user.run(&run(&["--json", "look"])), "for a program");
    refused(&user.run_with_stdin(&run(&["-"]), b"look"), "prompt from standard input");
    refused(&user.run(&run(&["--approve", "deny", "look"])), "told to say no");
    // Also at a terminal, where events are printed or a flag says no.
    for more in [&["--json", "look"][..], &["--approve", "deny", "look"]] {
        let (code, shown) = Terminal::start(&user, &run(more)).end();
        assert!(code == 0 && !shown.contains(PROMPT) && shown.contains("nobody can answer"), "{shown}");
    }
    user.write_config(r#"{"approve": "deny"}"#);
    let (code, shown) = Terminal::start(&user, &run(&["look"])).end();
    assert!(code == 0 && !shown.contains(PROMPT), "{shown}");
}

#[test]
fn the_flag_says_yes_each_time_and_remembers_nothing() {
    let (user, _provider, _) = reader();
    let allowed = user.ok(&run(&["--approve", "allow", "look"]));
    assert!(allowed.out.contains("a note from outside"), "{allowed:?}");
    assert!(allowed.err.contains("allowed by --approve"), "{allowed:?}");
    assert_eq!(decisions(&log(&user, "s")), [("once".to_owned(), "flag".to_owned())]);
    let shown = user.ok(&["sessions", "show", "s"]).out;
    assert!(shown.contains("[allowed once by flag] Read "), "{shown}");
    assert!(user.ok(&run(&["look"])).out.contains("nobody can answer"));
    user.write_config(r#"{"approve": "allow"}"#);
    assert!(user.ok(&run(&["look"])).out.contains("a note from outside"));
    assert!(user.ok(&run(&["--approve", "deny", "look"])).out.contains("nobody can answer"));
    let wrong = user.run(&run(&["--approve", "yes", "look"]));
    assert!(wrong.code == 2 && wrong.err.contains("ask, allow or deny"), "{wrong:?}");
}

#[test]
fn rules_come_from_the_users_file_and_are_shown() {
    let (user, provider, file) = reader();
    // A repository makes no rules and answers nothing.
    for name in ["config.jsonc", ".hames/config.jsonc", "hames/config.jsonc"] {
        user.write(name, r#"{"approve": "allow", "policy": {"rules": [{"verdict": "allow", "any": true}]}}"#);
    }
    assert!(user.ok(&run(&["look"])).out.contains("nobody can answer"));
    let rule = |verdict: &str| format!("{{\"verdict\": {verdict:?}, \"path\": {file:?}, \"access\": \"read\"}}");
    user.write_config(&format!("{{\n  \"approve\": \"ask\",\n  \"policy\": {{\"rules\": [{}]}}\n}}", rule("allow")));
    assert!(user.ok(&run(&["look"])).out.contains("a note from outside"));
    let shown = user.ok(&["config", "show"]).out;
    let config = user.home().join("config.jsonc").display().to_string();
    assert!(shown.contains(&format!("approve      ask  ({config}:2)")), "{shown}");
    assert!(shown.contains(&format!("  allow  read path {}  ({config}:3)", file.display())), "{shown}");
    let json = user.ok(&["config", "show", "--json"]).json().remove(0);
    assert_eq!(json["approve"]["value"], "ask");
    assert!(json["rules"][0]["rule"].as_str().unwrap().starts_with("allow  read path "), "{json}");
    // A rule that is not understood stops everything before a model is asked.
    let before = provider.requests().len();
    user.write_config(r#"{"policy": {"rules": [{"verdict": "deny", "pathh": "x"}]}}"#);
    let ended = user.run(&run(&["look"]));
    assert!(ended.code == 2 && ended.err.contains("policy.rules[0].pathh is not known"), "{ended:?}");
    assert_eq!(provider.requests().len(), before);
}

#[test]
fn what_a_rule_keeps_is_kept_from_searches_too() {
    let script = Script::new()
        .turn(Turn::call("Grep", json!({"pattern": "needle"})))
        .turn(Turn::call("Glob", json!({"pattern": "**/*"})))
        .turn(Turn::call("List", json!({"path": "."})))
        .turn(Turn::call("Read", json!({"path": "keys/a.txt"})))
        .turn(Turn::call("Shell", json!({"command": "cat keys/a.txt"})))
        .turn(Turn::call("Shell", json!({"command": "cat sub/.env"})))
        .turn(Turn::call("Shell", json!({"command": "grep -rn needle ."})))
        .turn(Turn::call("Shell", json!({"command": "cat open.txt"})))
        .turn(Turn::text("done"));
    let (user, provider) = User::with(script);
    for name in ["open.txt", "keys/a.txt", "sub/.env"] {
        user.write(name, format!("needle in {name}"));
    }
    user.write_config(
        r#"{"policy": {"rules": [{"verdict": "deny", "path": "keys"}, {"verdict": "ask", "path": "**/.env"}]}}"#,
    );
    user.ok(&["run", "look"]);
    let last = crate::kit::body_text(provider.requests().last().unwrap());
    assert!(last.contains("needle in open.txt"), "{last}");
    assert!(!last.contains("needle in keys") && !last.contains("needle in sub"), "{last}");
    assert!(last.contains("keys/a.txt may not be used by tools: a rule forbids it"), "{last}");
    for refused in ["keys/a.txt", "sub/.env"] {
        assert!(last.contains(&format!("{refused} may not be used by this call")), "{last}");
    }
    assert!(last.contains("a place below it is kept from tools"), "{last}");
}

/// The user's rules: every command is asked about but these.
const ONLY_GIT_LOG: &str = r#"{"policy": {"rules": [
    {"verdict": "ask", "tool": "Shell"},
    {"verdict": "allow", "command": "git log"},
    {"verdict": "deny", "command": "git push"}
]}}"#;

/// A user with a repository of one commit, and the result of each of these commands in Build, nobody answering.
fn results_of(config: &str, lines: &[String]) -> (User, Vec<String>) {
    let turns = lines.iter().map(|line| Turn::call("Shell", json!({"command": line})));
    let (user, provider) = User::with(Script::new().turns(turns).turn(Turn::text("done")));
    let git = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first";
    let made = std::process::Command::new("sh").args(["-c", git]).current_dir(user.project()).status().unwrap();
    assert!(made.success());
    user.write_config(config);
    // One refusal after the other is what is asked for here, and what the guard ends.
    user.ok(&run(&["--guard", "off", "go"]));
    let last: Value = serde_json::from_slice(&provider.requests().last().unwrap().raw).unwrap();
    let results = last["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    let results: Vec<String> = results.map(|message| message["content"].to_string()).collect();
    assert_eq!(results.len(), lines.len(), "each has a result");
    (user, results)
}

#[test]
fn a_rule_that_allows_a_command_allows_no_line_that_does_more() {
    let more: Vec<String> = [
        "git log -1; touch a",
        "git log -1 && touch b",
        "git log -1 & touch c",
        "git log -1\ntouch d",
        "git log -1 || touch e; touch e",
        "git log $(touch f)",
        "git log `touch g`",
        "git log <(touch h)",
        "git log -1 | tee i",
        "git log -1 > j",
        "git log -1 &> k",
        "(git log -1; touch l)",
        "if git log -1; then touch m; fi",
        "X=1 git log -1; >n",
        "GIT_PAGER='touch o' git log -1",
        "env git log -1",
        "/usr/bin/git log -1",
        "git -C . log -1",
        "git -c alias.x=log x",
        "cd . && git log -1",
        "for i in 1; do git log -1; done",
        "git log -1; $(echo touch p)",
        "git log -1 $((1",
        "eval git log -1",
        "touch q #git log",
        "git() { touch r; }; git log",
    ]
    .map(str::to_owned)
    .to_vec();
    let allowed = ["git log -1", "git log -1 --format=%s; git log -1", "git  'log' -1 2>/dev/null"].map(str::to_owned);
    let (user, results) = results_of(ONLY_GIT_LOG, &[&more[..], &allowed].concat());
    for (line, result) in more.iter().zip(&results) {
        assert!(result.contains("nobody can answer here"), "{line}\n{result}");
    }
    for (line, result) in allowed.iter().zip(&results[more.len()..]) {
        assert!(result.contains("first"), "{line}\n{result}");
    }
    let left: Vec<_> = std::fs::read_dir(user.project()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".git"], "a command had an effect");
}

#[test]
fn a_command_that_a_rule_denies_is_found_in_other_clothes() {
    let config = r#"{"approve": "allow", "policy": {"rules": [{"verdict": "deny", "command": "touch"}]}}"#;
    let denied: Vec<String> = [
        "touch a",
        "/usr/bin/touch a",
        "../../../usr/bin/touch a",
        "'to'uch a",
        "to\\uch a",
        "env touch a",
        "X=1 touch a",
        "timeout 5 touch a",
        "nice -n 3 touch a",
        "nohup touch a",
        "command touch a",
        "echo a | xargs touch",
        "find . -maxdepth 0 -exec touch a ';'",
        "sh -c 'touch a'",
        "bash -euo pipefail -c 'touch a'",
        "sh -c \"sh -c 'touch a'\"",
        "eval touch a",
        "ls; touch a",
        "ls $(touch a)",
        "ls <(touch a)",
        "f() { touch a; }; f",
        "{ touch a; }",
        "! touch a",
        "time touch a",
        "touch a &",
        "cat <<E\n$(touch a)\nE",
    ]
    .map(str::to_owned)
    .to_vec();
    let (user, results) = results_of(config, &denied);
    for (line, result) in denied.iter().zip(&results) {
        assert!(result.contains("a rule forbids it"), "{line}\n{result}");
    }
    assert!(!user.project().join("a").exists());
    // Where it cannot be told, a person is asked, who is not there.
    let config = r#"{"policy": {"rules": [{"verdict": "deny", "command": "touch"}]}}"#;
    let unclear: Vec<String> = [
        "x=touch; $x a",
        "$(echo touch) a",
        "eval \"$(echo touch a)\"",
        "echo touch a | sh",
        "sh <<< 'touch a'",
        "/usr/bin/touc[h] a",
        "/usr/bin/tou?h a",
        "{touch,a}",
        "sh -c \"$(echo touch a)\"",
        ". <(echo touch a)",
        "env -S 'touch a'",
        "coproc touch a",
        "select x in 1; do touch a; done",
    ]
    .map(str::to_owned)
    .to_vec();
    let (user, results) = results_of(config, &unclear);
    for (line, result) in unclear.iter().zip(&results) {
        let is_kept = result.contains("nobody can answer here") || result.contains("a rule forbids it");
        assert!(is_kept, "{line}\n{result}");
    }
    assert!(!user.project().join("a").exists());
}

#[test]
fn a_command_is_granted_word_for_word() {
    let answered = |line: &str| Turn::call("Shell", json!({"command": line}));
    let lines = ["echo one", "echo one; echo one", "echo one two", "cd / && echo one", "echo one > x"];
    let script = Script::new().turns(lines.iter().map(|line| answered(line))).turn(Turn::text("done"));
    let (user, provider) = User::with(script);
    user.write_config(r#"{"policy": {"rules": [{"verdict": "ask", "tool": "Shell"}]}}"#);
    let mut terminal = Terminal::start(&user, &run(&["go"]));
    assert!(terminal.until(PROMPT).contains("running exactly: echo one\r\n"));
    terminal.types("f\n");
    // The second line is granted, the others are not.
    for line in &lines[2..] {
        let shown = terminal.until(PROMPT);
        assert!(shown.contains(&format!("command  {line}\r\n")), "{shown}");
        terminal.types("n\n");
    }
    assert_eq!(terminal.end().0, 0);
    let last: Value = serde_json::from_slice(&provider.requests().last().unwrap().raw).unwrap();
    assert!(last["messages"].to_string().contains("one\\none"), "{last}");
    assert!(!user.project().join("x").exists());
    let listed = user.ok(&["grants", "list"]).out;
    assert!(listed.lines().count() == 1 && listed.ends_with("running exactly: echo one\n"), "{listed}");
}
