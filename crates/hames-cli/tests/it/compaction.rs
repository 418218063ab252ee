//! Long sessions through the binary: a window from the command line, what is learned of one, compaction by hand, and a
//! death in the middle of it.

use hames_testkit::{ChatRequest, Gate, Script, TooLong, Turn};
use serde_json::json;

use crate::kit::{Ended, PATIENCE, User};

/// What is asked of the author of a document, told by the absence of tools.
fn is_for_document(request: &ChatRequest) -> bool {
    request.tools().is_empty()
}

/// Says something short, and writes documents.
fn talk(request: &ChatRequest) -> Turn {
    match is_for_document(request) {
        true => Turn::text("## Facts\n- The port is 8080."),
        false => Turn::text("Noted."),
    }
}

/// A window in which six long messages are more than stays verbatim, kept by hand alone.
const SMALL: [&str; 4] = ["--compaction", "off", "--context-window", "20000"];

/// A message of about 900 tokens.
fn long(text: &str) -> String {
    format!("{text} {}", "word ".repeat(720))
}

/// A session with so many long messages behind it.
fn filled(user: &User, messages: usize, flags: &[&str]) {
    for n in 0..messages {
        let text = long(&format!("Message {n}: the port is 8080."));
        user.ok(&[&["run", "-s", "s"], flags, &[&text]].concat());
    }
}

#[test]
fn a_window_from_the_command_line_is_the_sessions_and_is_kept_to() {
    let (user, provider) = User::with(Script::new().respond(talk).window(20_000));
    let flags = ["--context-window", "20000", "--max-output-tokens", "1000"];
    filled(&user, 1, &flags);
    // Said once, it holds for the session.
    filled(&user, 17, &[]);
    for request in provider.requests() {
        assert!(request.tokens() + request.answer_limit() <= 20_000);
        assert!(request.answer_limit() <= 1_000 || is_for_document(&request));
    }
    let log = user.ok(&["sessions", "show", "s", "--json"]);
    assert!(log.types().contains(&"window.checkpoint".to_owned()), "{:?}", log.types());
    let shown = user.ok(&["sessions", "show", "s"]);
    assert!(shown.out.contains("the context begins here"), "{}", shown.out);
    assert!(shown.out.contains("Message 0") && shown.out.contains("Message 16"));
}

#[test]
fn a_window_that_a_refusal_states_is_kept_for_every_session_and_listed() {
    let script = Script::new().refuse(|request| TooLong::Sum.refusal(request, 14_000)).respond(talk);
    let (user, provider) = User::with(script);
    let run = user.ok(&["run", "--json", "-m", "openai/mock-1", "-s", "s", &long("first")]);
    assert_eq!(run.event("window.limited")["tokens"], 14_000);
    let refused = provider.requests().len();
    user.ok(&["run", "--json", "-m", "openai/mock-1", "-s", "other", &long("first")]);
    assert_eq!(provider.requests().len(), refused + 1, "the next session knows");
    let models = user.run(&["models", "--json"]);
    let model = models.json().into_iter().find(|model| model["id"] == "mock-1").unwrap();
    assert_eq!((&model["context_window"], &model["context_window_from"]), (&json!(14_000), &json!("learned")));
}

#[test]
fn compacting_by_hand_shows_its_plan_first_and_changes_nothing_else() {
    let (user, provider) = User::with(Script::new().respond(talk));
    filled(&user, 6, &SMALL);
    let before = user.ok(&["sessions", "show", "s", "--json"]).out;
    let plan = user.ok(&["compact", "s", "--dry-run", "--json"]).json().remove(0);
    assert_eq!(plan["plan"]["stage"], "summary", "{plan}");
    let report = user.ok(&["context", "s", "--json"]).json().remove(0);
    assert!(report["items"].as_array().unwrap().len() >= 12 && report["opening"].is_null(), "{report}");
    assert!(user.ok(&["context", "s"]).out.contains("usable tokens"));
    assert_eq!(user.ok(&["sessions", "show", "s", "--json"]).out, before);
    let asked = provider.requests().len();
    let done = user.ok(&["compact", "s", "--json"]).json().remove(0);
    assert_eq!(done["compacted"], true, "{done}");
    assert!(done["tokens_after"].as_u64().unwrap() < done["tokens_before"].as_u64().unwrap());
    assert_eq!(provider.requests().len(), asked + 1);
    // Everything said is still there, and the next request opens with the document.
    let shown = user.ok(&["sessions", "show", "s"]).out;
    assert!((0..6).all(|n| shown.contains(&format!("Message {n}:"))), "{shown}");
    assert!(!user.ok(&["context", "s", "--json"]).json()[0]["opening"].is_null());
    user.ok(&["run", "-s", "s", "and now?"]);
    let last = provider.requests().last().unwrap().clone();
    assert!(last.messages()[1].to_string().contains("The port is 8080."), "{}", last.messages()[1]);
    let again = user.ok(&["compact", "s"]);
    assert!(again.out.contains("nothing would be gained") || again.out.contains("is compacted"), "{}", again.out);
    assert_eq!(user.run(&["compact", "nobody"]).code, 2);
}

#[test]
fn a_death_in_the_middle_of_a_compaction_leaves_the_session_as_it_was() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::new().respond(move |request| match is_for_document(request) {
        true => talk(request).gate_head(held.clone()),
        false => talk(request),
    });
    let (user, provider) = User::with(script);
    filled(&user, 6, &SMALL);
    let mut child = user.start(&["compact", "s"]);
    assert!(provider.has_requests_within(7, PATIENCE));
    child.kill().unwrap();
    child.wait().unwrap();
    gate.open();
    let log = user.ok(&["sessions", "show", "s", "--json"]);
    assert!(!log.types().iter().any(|kind| kind == "window.checkpoint" || kind == "compaction.done"));
    // It goes on, and compacting again is no different.
    let run = user.ok(&["run", "--json", "-s", "s", "and now?"]);
    assert_eq!(run.event("run.done")["result"], "complete");
    let last = provider.requests().last().unwrap().clone();
    assert!((0..6).all(|n| last.messages().iter().any(|m| m.to_string().contains(&format!("Message {n}:")))));
    let done = user.ok(&["compact", "s", "--json"]).json().remove(0);
    assert_eq!(done["compacted"], true, "{done}");
}

#[test]
fn an_interrupt_stops_a_compaction_and_nothing_has_changed() {
    let script = Script::new().respond(|request| match is_for_document(request) {
        true => talk(request).gate_head(Gate::new()),
        false => talk(request),
    });
    let (user, provider) = User::with(script);
    filled(&user, 6, &SMALL);
    let child = user.start(&["compact", "s"]);
    assert!(provider.has_requests_within(7, PATIENCE));
    crate::kit::signal(&child, "INT");
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{ended:?}");
    let log = user.ok(&["sessions", "show", "s", "--json"]);
    assert!(!log.types().iter().any(|kind| kind == "window.checkpoint"));
}

#[test]
fn analyze_the_todo_list_and_the_window_survive_a_compaction() {
    let todos = json!({"todos": [
        {"content": "read the parser", "status": "completed"},
        {"content": "write the test", "status": "in_progress"},
        {"content": "mend the parser", "status": "pending"},
        {"content": "tell the user", "status": "pending"},
    ]});
    let script = Script::new().turn(Turn::call("TodoWrite", todos)).turn(Turn::text("Planned.")).respond(talk);
    let (user, provider) = User::with(script);
    user.ok(&[&["run", "-s", "s"], &SMALL[..], &["plan it"]].concat());
    filled(&user, 6, &[]);
    user.ok(&["compact", "s"]);
    user.ok(&["run", "-s", "s", "go on"]);
    let request = provider.requests().last().unwrap().clone();
    let opening = request.messages()[1].to_string();
    for open in ["write the test", "mend the parser", "tell the user"] {
        assert!(opening.contains(open), "{opening}");
    }
    assert!(!opening.contains("read the parser"));
    // Still Analyze: a write is only proposed.
    let note = request.last_text();
    assert!(note.contains("Mode: Analyze"), "{note}");
}
