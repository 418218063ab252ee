//! `hames run` in a session that the server holds: the same events, the same output, the same codes.

use hames_protocol::api::PausePending;
use hames_protocol::{Delivery, Mode};
use hames_testkit::{ChatRequest, Gate, Provider, Script, Turn};
use serde_json::{Value, json};

use super::{Server, client, hold, log, message, session, wait};
use crate::kit::{Ended, PATIENCE, User, body_text, signal, until};
use crate::tty::Terminal;

/// A red dot, the smallest PNG there is.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1, 8,
    2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0,
    0, 3, 1, 1, 0, 0xc9, 0xfe, 0x92, 0xef, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// What the model does in the second run: it looks, edits, runs, and is refused something.
fn work() -> Script {
    // A list without the model would be spoken of, in whichever run meets it first.
    Script::new().models(json!([{"id": "gpt-5.4"}])).respond(|request: &ChatRequest| {
        let messages = request.messages();
        let from = messages.iter().rposition(|message| message["role"] == "user").unwrap();
        let taken = messages[from..].iter().filter(|message| message["role"] == "assistant").count();
        match (messages[from].to_string().contains("second"), taken) {
            (false, _) => Turn::text("The first is done."),
            (true, 0) => Turn::new()
                .reasoning("Let me see.")
                .then_text("I look at it.")
                .then_call("Read", json!({"path": "a.txt"})),
            (true, 1) => Turn::call("Read", json!({"path": "/etc/hostname"})),
            (true, 2) => Turn::call("StrReplace", json!({"path": "a.txt", "old_string": "one", "new_string": "two"})),
            (true, 3) => Turn::call("Shell", json!({"command": "cat a.txt; exit 3"})),
            (true, _) => Turn::text("The second is done, **really**."),
        }
    })
}

/// A user with a session that has one run.
fn begun() -> (User, Provider) {
    let (user, provider) = User::with(work());
    user.write("a.txt", "one\n");
    user.write("AGENTS.md", "be kind");
    user.write("dot.png", PNG);
    user.ok(&["run", "-s", "s", "first"]);
    (user, provider)
}

/// Runs the same in its own process and through the server.
fn both(args: &[&str]) -> [(Ended, Vec<String>); 2] {
    [false, true].map(|served| {
        let (user, provider) = begun();
        let server = served.then(|| {
            let server = Server::start(&user, &[]);
            hold(&user, "s");
            server
        });
        let mut ended = user.run(&[&["run", "-s", "s", "--mode", "build"], args].concat());
        let project = user.project().display().to_string();
        ended.out = ended.out.replace(&project, "PROJECT");
        ended.err = ended.err.replace(&project, "PROJECT");
        let requests = provider.requests();
        let bodies = requests.iter().map(|request| unnamed(&body_text(request).replace(&project, "PROJECT"))).collect();
        assert_eq!(provider.violations(), []);
        drop(server);
        (ended, bodies)
    })
}

/// The body without the ids of its calls, which each provider makes anew.
fn unnamed(body: &str) -> String {
    let mut pieces = body.split("call_");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |body, piece| body + "call_" + piece.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

/// The value without what no two runs share.
fn shared(value: &Value) -> Value {
    const OWN: [&str; 15] = [
        "at",
        "seq",
        "session",
        "run",
        "call_id",
        "provider_id",
        "pending_id",
        "idempotency_id",
        "duration_ms",
        "timings",
        "request_id",
        "fingerprint",
        "hash",
        "digest",
        "blob",
    ];
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !OWN.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), shared(value)))
            .collect(),
        Value::Array(elements) => elements.iter().map(shared).collect(),
        other => other.clone(),
    }
}

/// Text without its numbers: times differ.
fn unnumbered(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

#[test]
fn the_events_are_those_of_a_run_in_its_own_process() {
    let [(here, sent_here), (there, sent_there)] =
        both(&["--json", "--no-deltas", "--temperature", "0.5", "--attach", "a.txt", "dot.png", "--", "second"]);
    assert_eq!((here.code, there.code), (0, 0), "{here:?}\n{there:?}");
    let events = |ended: &Ended| ended.json().iter().map(shared).collect::<Vec<_>>();
    for (here, there) in events(&here).iter().zip(&events(&there)) {
        assert_eq!(here, there);
    }
    assert_eq!(here.types(), there.types());
    assert!(here.types().iter().any(|name| name == "settings.changed"), "{:?}", here.types());
    // What the model is asked is the same to the last byte.
    for (here, there) in sent_here.iter().zip(&sent_there) {
        let at = here.bytes().zip(there.bytes()).position(|(here, there)| here != there);
        assert!(at.is_none(), "{}\n\n{}", &here[at.unwrap()..], &there[at.unwrap()..]);
    }
    assert_eq!(sent_here.len(), sent_there.len());
}

#[test]
fn live_pieces_come_too_and_make_up_the_whole() {
    let texts = both(&["--json", "second"]).map(|(ended, _)| {
        let deltas = ended.json().into_iter().filter(|line| line["event"]["type"] == "text.delta");
        deltas.map(|line| line["event"]["text"].as_str().unwrap().to_owned()).collect::<String>()
    });
    assert_eq!(texts[0], "I look at it.The second is done, **really**.");
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn what_a_person_reads_is_the_same() {
    let [(here, _), (there, _)] = both(&["second"]);
    assert_eq!((here.code, &here.out), (there.code, &there.out));
    assert_eq!(unnumbered(&here.err), unnumbered(&there.err));
}

#[test]
fn the_flags_about_questions_hold_there_too() {
    for flag in ["allow", "deny", "ask"] {
        let [(here, _), (there, _)] = both(&["--json", "--no-deltas", "--approve", flag, "second"]);
        assert_eq!(here.types(), there.types(), "{flag}");
        let errors = |ended: &Ended| {
            let lines = ended.json().into_iter().filter(|line| line["event"]["type"] == "tool.error");
            lines.map(|line| shared(&line)).collect::<Vec<_>>()
        };
        assert_eq!(errors(&here), errors(&there), "{flag}");
        let asked = there.types().iter().any(|name| name == "approval.asked");
        assert_eq!(asked, flag == "allow");
    }
}

#[test]
fn a_question_is_answered_at_the_terminal_or_by_whoever_is_faster() {
    for (keys, decision) in [("y\n", "once"), ("n\n", "deny")] {
        let (user, _provider) = begun();
        let _server = Server::start(&user, &[]);
        hold(&user, "s");
        let mut terminal = Terminal::start(&user, &["run", "-s", "s", "--mode", "build", "second"]);
        let shown = terminal.until("v show all > ");
        assert!(shown.contains("Read needs a decision"), "{shown}");
        let listed = user.ok(&["sessions", "list"]);
        assert!(listed.out.contains("[waiting for you]"), "{listed:?}");
        terminal.types(keys);
        let (code, rest) = terminal.end();
        assert_eq!(code, 0, "{rest}");
        let answered = log(&user, "s").event("approval.answered");
        assert_eq!((&answered["decision"], &answered["by"]), (&json!(decision), &json!("user")));
    }
}

#[test]
fn control_c_ends_the_run_in_the_server() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let script = Script::new()
            .turn(Turn::text("The first is done."))
            .turn(Turn::call("Shell", json!({"command": "echo $$ > pid; sleep 600"})))
            .turn(Turn::text("never"));
        let (user, _provider) = User::with(script);
        user.ok(&["run", "-s", "s", "--mode", "build", "first"]);
        let _server = Server::start(&user, &[]);
        hold(&user, "s");
        let child = user.start(&["run", "-c", "--json", "second"]);
        let pid_file = user.project().join("pid");
        until("the command's start", || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')));
        let running = user.sessions();
        assert_eq!(running[0]["state"], "running", "{running:?}");
        signal(&child, name);
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert_eq!(ended.code, code, "{ended:?}");
        let done = ended.event("run.done");
        assert_eq!((&done["result"], &done["exit_code"]), (&json!("interrupted"), &json!(code)));
        assert_eq!(log(&user, "s").types().last().map(String::as_str), Some("run.done"));
        let command = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
        until("the command's end", || !super::is_alive(command));
    }
}

/// A session in which a run waits at a gate, and what the model is asked next.
fn busy(gate: &Gate) -> (User, Provider) {
    let first = gate.clone();
    let script = Script::new()
        .turn(Turn::text("working").gate(1, first))
        .respond(|request| Turn::text(format!("answer to {} messages", request.messages().len())));
    User::with(script)
}

/// Messages that came in so far; the first is that of the run that goes on.
fn waiting(user: &User) -> usize {
    log(user, "s").types().iter().filter(|name| *name == "pending.added").count()
}

#[test]
fn a_message_to_a_busy_session_says_what_happens_and_waits_for_its_own_run() {
    let gate = Gate::new();
    let (user, provider) = busy(&gate);
    let _server = Server::start(&user, &[]);
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Analyze).await;
        message(&client, &id, "first", Delivery::Queue).await;
    });
    assert!(provider.has_requests_within(1, PATIENCE));
    let child = user.start(&["run", "-s", "s", "second"]);
    until("the message's wait", || waiting(&user) == 2);
    gate.open();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("is busy: the message waits for the end of the run that goes on"), "{ended:?}");
    assert!(ended.out.starts_with("answer to ") && !ended.out.contains("working"), "{ended:?}");
    let runs = log(&user, "s").types().iter().filter(|name| *name == "run.start").count();
    assert_eq!((runs, provider.violations().len()), (2, 0));
}

#[test]
fn a_message_that_waits_in_a_queue_which_is_stopped_meanwhile_says_so() {
    let gate = Gate::new();
    let (user, provider) = busy(&gate);
    let _server = Server::start(&user, &[]);
    let id = wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Analyze).await;
        message(&client, &id, "first", Delivery::Queue).await;
        id
    });
    assert!(provider.has_requests_within(1, PATIENCE));
    let child = user.start(&["run", "-s", "s", "second"]);
    until("the message's wait", || waiting(&user) == 2);
    wait(async {
        let client = client(&user).await;
        client.abort(&id, &hames_protocol::api::Abort::default()).await.unwrap();
        client.pause_pending(&id, &PausePending { paused: false }).await.unwrap();
    });
    gate.open();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("its queue stands still, so the message waits until it is resumed"), "{ended:?}");
    assert!(ended.out.starts_with("answer to "), "{ended:?}");
}

#[test]
fn a_message_that_waits_is_withdrawn_by_control_c() {
    let gate = Gate::new();
    let (user, provider) = busy(&gate);
    let _server = Server::start(&user, &[]);
    let id = wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Analyze).await;
        message(&client, &id, "first", Delivery::Queue).await;
        id
    });
    assert!(provider.has_requests_within(1, PATIENCE));
    let child = user.start(&["run", "-s", "s", "second"]);
    until("the message's wait", || waiting(&user) == 2);
    signal(&child, "INT");
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(ended.err.contains("the message is withdrawn"), "{ended:?}");
    let pending = wait(async {
        let client = client(&user).await;
        client.pause_pending(&id, &PausePending { paused: false }).await.unwrap()
    });
    assert_eq!(pending.pending, []);
    gate.open();
    until("the run's end", || log(&user, "s").types().last().is_some_and(|last| last == "run.done"));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn a_steer_and_an_interrupt_join_the_run_and_see_its_end() {
    for delivery in ["steer", "interrupt"] {
        let gate = Gate::new();
        let (user, provider) = busy(&gate);
        let _server = Server::start(&user, &[]);
        wait(async {
            let client = client(&user).await;
            let id = session(&client, &user.project(), "s", Mode::Analyze).await;
            message(&client, &id, "first", Delivery::Queue).await;
        });
        assert!(provider.has_requests_within(1, PATIENCE));
        let child = user.start(&["run", "-s", "s", "--json", "--delivery", delivery, "second"]);
        until("its delivery", || waiting(&user) == 2);
        gate.open();
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{delivery} {ended:?}");
        assert!(ended.err.contains("joins the run that goes on"), "{ended:?}");
        let types = ended.types();
        assert_eq!((types[0].as_str(), types.last().unwrap().as_str()), ("message.user", "run.done"), "{delivery}");
        let runs = log(&user, "s").types().iter().filter(|name| *name == "run.start").count();
        assert_eq!((runs, provider.violations().len()), (1, 0), "{delivery}");
    }
}

#[test]
fn commands_have_the_environment_of_who_sent_the_message_without_keys() {
    let script = Script::new()
        .turn(Turn::text("The first is done."))
        .turn(Turn::call("Shell", json!({"command": "echo mark=$MARK key=$OPENAI_API_KEY"})))
        .turn(Turn::text("done"));
    let (user, _provider) = User::with(script);
    let user = user.var("OPENAI_API_KEY", "sk-never-to-be-seen").var("MARK", "of-the-server");
    user.ok(&["run", "-s", "s", "--mode", "build", "first"]);
    let _server = Server::start(&user, &[]);
    hold(&user, "s");
    let mut command = user.command(&["run", "-c", "--json", "second"]);
    let ended = Ended::of(command.env("MARK", "of-the-client").output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    let result = ended.event("tool.done").to_string();
    assert!(result.contains("mark=of-the-client key=") && !result.contains("sk-never"), "{result}");
}

#[test]
fn a_changed_configuration_holds_for_the_next_run() {
    let (user, first) = User::saying("from the first");
    let (_, second) = User::saying("from the second");
    let config = |url: &str| {
        let provider = json!({"base_url": url, "models": [{"id": "m"}]});
        user.write_config(&json!({"model": "p/m", "providers": {"p": provider}}).to_string());
    };
    config(&first.base_url());
    user.write("AGENTS.md", "speak of apples");
    user.ok(&["run", "-s", "s", "one"]);
    let _server = Server::start(&user, &[]);
    hold(&user, "s");
    assert_eq!(user.ok(&["run", "-c", "two"]).out, "from the first\n");
    config(&second.base_url());
    user.write("AGENTS.md", "speak of pears");
    assert_eq!(user.ok(&["run", "-c", "three"]).out, "from the second\n");
    let asked = body_text(second.requests().last().unwrap());
    // The head stays as the session began with it; the run's note says what has changed.
    assert!(asked.rfind("speak of pears") > asked.rfind("speak of apples"), "{asked}");
    user.write_config("{");
    let broken = user.run(&["run", "-c", "four"]);
    assert_eq!(broken.code, 2, "{broken:?}");
}
