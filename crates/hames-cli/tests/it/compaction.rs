//! Long sessions through the binary: a window from the command line, what is learned of one, compaction by hand, and a
//! death in the middle of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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
    let set = user.ok(&["sessions", "set", "s", "--json"]).json().remove(0);
    assert_eq!(set["effective"]["context_window"], 14_000, "what it turned out to be");
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

#[test]
fn what_the_model_pins_stays_through_masks_and_checkpoints_and_is_bounded() {
    let calls = Mutex::new(0usize);
    let script = Script::new()
        .turn(Turn::call("TodoWrite", json!({"pins": ["the port is 8080"]})))
        .turn(Turn::call("TodoWrite", json!({"pins": ["the port is 8080", "x".repeat(20_000)]})))
        .turn(Turn::text("Pinned."))
        .window(20_000)
        .respond(move |request| {
            if is_for_document(request) {
                return Turn::text("## Facts\n- files were read");
            }
            let mut calls = calls.lock().unwrap();
            *calls += 1;
            match *calls % 8 {
                0 => Turn::text("Read."),
                at => Turn::call("Read", json!({"path": "long.txt", "offset": at * 50, "limit": 200 + *calls})),
            }
        });
    let (user, provider) = User::with(script);
    user.write("long.txt", "a line of a long file\n".repeat(2_000));
    user.ok(&["run", "-s", "s", "--context-window", "20000", "--max-output-tokens", "1000", "pin the port"]);
    let refusal = provider.requests()[2].tool_results().pop().unwrap().1;
    assert!(refusal.contains("15% of the usable window"), "{refusal}");
    for _ in 0..4 {
        user.ok(&["run", "-s", "s", "read on"]);
    }
    user.ok(&["compact", "s"]);
    user.ok(&["run", "-s", "s", "read on"]);
    let log = user.ok(&["sessions", "show", "s", "--json"]);
    for kind in ["pin.added", "window.masked", "window.checkpoint"] {
        assert!(log.types().contains(&kind.to_owned()), "{kind}: {:?}", log.types());
    }
    assert_eq!(log.event("pin.added")["by"], "model");
    let conversation = provider.requests().into_iter().filter(|request| !is_for_document(request)).skip(1);
    for request in conversation {
        let shown = request.messages().iter().filter(|message| message.to_string().contains("inned")).count();
        assert!(shown > 0 && request.messages().iter().any(|m| m.to_string().contains("the port is 8080")));
    }
    let report = user.ok(&["context", "s"]).out;
    assert!(report.contains("by the model") && report.contains("the port is 8080"), "{report}");
}

#[test]
fn a_person_pins_by_text_or_event_and_takes_it_back() {
    let (user, provider) = User::with(Script::new().respond(talk));
    filled(&user, 6, &SMALL);
    let report = |args: &[&str]| user.ok(&[&["context", "s", "--json"], args].concat()).json().remove(0);
    let pinned = report(&["--pin", "never force-push"]);
    let pin = pinned["pins"][0]["pin"].to_string();
    let said = pinned["items"][2]["event"].to_string();
    assert_eq!(report(&["--pin-event", &said])["pins"].as_array().unwrap().len(), 2);
    let too_much = user.run(&["context", "s", "--pin", &"long ".repeat(5_000)]);
    assert!(too_much.code == 2 && too_much.err.contains("pins may have"), "{too_much:?}");
    user.ok(&["compact", "s"]);
    user.ok(&["run", "-s", "s", "go on"]);
    let last = provider.requests().last().unwrap().clone();
    assert!(last.messages()[1].to_string().contains("[Pinned]\\nMessage 1: the port"), "{}", last.messages()[1]);
    assert!(last.messages().iter().any(|message| message.to_string().contains("never force-push")));
    assert_eq!(report(&["--unpin", &pin])["pins"].as_array().unwrap().len(), 1);
    let unknown = user.run(&["context", "s", "--unpin", &pin]);
    assert!(unknown.code == 2 && unknown.err.contains(&format!("There is no pin {pin}")), "{unknown:?}");
}

#[test]
fn the_beginning_of_a_session_stays_when_its_instructions_change_and_the_note_tells_it() {
    let (user, provider) = User::with(Script::new().respond(talk));
    user.write("AGENTS.md", "Use tabs, always.\n");
    user.ok(&["run", "-s", "s", "first"]);
    let head = user.ok(&["context", "s", "--json"]).json()[0]["budget"]["head"].clone();
    user.write("AGENTS.md", format!("Use four spaces now.\n{}", "And some more of it.\n".repeat(400)));
    // Whoever looks counts with what is sent.
    assert_eq!(user.ok(&["context", "s", "--json"]).json()[0]["budget"]["head"], head);
    user.ok(&["run", "-s", "s", "second"]);
    user.write("AGENTS.md", "Use two spaces.\n");
    user.ok(&["run", "-s", "s", "third"]);
    let requests = provider.requests();
    assert!(requests[1..].iter().all(|request| request.prefix.unwrap().is_kept()), "{:?}", requests[1].prefix);
    assert!(requests.iter().all(|request| request.messages()[0].to_string().contains("Use tabs, always.")));
    let note = requests[1].last_text();
    assert!(note.contains("Instruction files have changed") && note.contains("AGENTS.md"), "{note}");
    assert!(requests[2].last_text().contains("Use two spaces."), "{}", requests[2].last_text());
    // What begins anew begins with what holds.
    filled(&user, 6, &SMALL);
    user.ok(&["compact", "s"]);
    user.ok(&["run", "-s", "s", "and now"]);
    let system = provider.requests().last().unwrap().messages()[0].to_string();
    assert!(system.contains("Use two spaces.") && !system.contains("Use tabs"), "{system}");
}

#[test]
fn after_a_compaction_a_file_read_before_can_be_written_and_in_analyze_is_only_proposed() {
    for (mode, lands) in [("build", true), ("analyze", false)] {
        let write = json!({"path": "a.txt", "content": "new\n"});
        let step = Mutex::new(0usize);
        let script = Script::new().respond(move |request| {
            if is_for_document(request) {
                return talk(request);
            }
            let mut step = step.lock().unwrap();
            *step += 1;
            match (*step, request.last_role()) {
                (1, _) => Turn::call("Read", json!({"path": "a.txt"})),
                (_, "user") if request.last_text().contains("write it") => Turn::call("Write", write.clone()),
                _ => Turn::text("Noted."),
            }
        });
        let (user, provider) = User::with(script);
        let file = user.write("a.txt", "old\n");
        user.ok(&[&["run", "-s", "s", "--mode", mode], &SMALL[..], &["read it"]].concat());
        filled(&user, 6, &[]);
        user.ok(&["compact", "s"]);
        user.ok(&["run", "-s", "s", "write it"]);
        let result = provider.requests().last().unwrap().tool_results().pop().unwrap().1;
        assert!(!result.contains("read it first") && !result.to_lowercase().contains("refused"), "{result}");
        let content = std::fs::read_to_string(&file).unwrap();
        assert_eq!(content, if lands { "new\n" } else { "old\n" }, "{mode}: {result}");
    }
}

#[test]
fn a_window_that_a_person_sets_counts_again_until_the_provider_says_otherwise() {
    let real = Arc::new(AtomicU64::new(14_000));
    let limit = Arc::clone(&real);
    let script =
        Script::new().refuse(move |request| TooLong::Sum.refusal(request, limit.load(Ordering::SeqCst))).respond(talk);
    let (user, provider) = User::with(script);
    let effective = |args: &[&str]| -> u64 {
        let set = user.ok(&[&["sessions", "set", "s", "--json"], args].concat()).json().remove(0);
        set["effective"]["context_window"].as_u64().unwrap()
    };
    let learned = || -> bool {
        let models = user.run(&["models", "--json"]).json();
        models.into_iter().find(|model| model["id"] == "mock-1").unwrap()["context_window_from"] == "learned"
    };
    user.ok(&["run", "-m", "openai/mock-1", "-s", "s", "first"]);
    assert_eq!((effective(&[]), learned()), (14_000, true));
    // The server is started again with more; nothing tells, so what was learned is kept to.
    real.store(40_000, Ordering::SeqCst);
    user.ok(&["run", "-s", "s", "second"]);
    let last = provider.requests().last().unwrap().clone();
    assert!(last.tokens() + last.answer_limit() <= 14_000);
    // Whoever knows says so.
    assert_eq!(effective(&["--context-window", "40000"]), 40_000);
    let asked = provider.requests().len();
    for n in 0..2 {
        user.ok(&["run", "-s", "s", &format!("{n} {}", "word ".repeat(8_000))]);
    }
    assert_eq!(provider.requests().len(), asked + 2, "nothing was refused");
    assert!(provider.requests().last().unwrap().tokens() > 14_000);
    // What was answered shows that the lesson is none, for every session.
    assert!(!learned());
    user.ok(&["run", "-m", "openai/mock-1", "-s", "other", "hello"]);
    let other = provider.requests().last().unwrap().clone();
    assert!(other.tokens() + other.answer_limit() > 14_000);
    // It was too much after all: one request more, and it is known again.
    real.store(20_000, Ordering::SeqCst);
    user.ok(&["run", "-s", "s", "go on"]);
    assert_eq!(effective(&[]), 20_000);
}

#[test]
fn a_limit_that_leaves_no_window_is_warned_of_at_the_start() {
    let (user, _provider) = User::saying("Hello.");
    for (window, output, warned) in [(32_768, 32_768, true), (32_768, 40_000, true), (32_768, 4_096, false)] {
        user.write_config(&format!(
            r#"{{"providers": {{"local": {{"base_url": "http://127.0.0.1:9/v1",
                "models": [{{"id": "m", "context_window": {window}, "max_output": {output}}}]}}}}}}"#
        ));
        let run = user.run(&["run", "-m", "local/m", "hello"]);
        assert_eq!(run.err.contains("as large as its window"), warned, "{window} {output}: {}", run.err);
    }
    // Wherever it is set.
    let warns = |ended: &Ended| ended.err.contains("a quarter of the window is kept for them");
    let config = |provider: &str, model: &str| {
        user.write_config(&format!(
            r#"{{"providers": {{"local": {{"base_url": "http://127.0.0.1:9/v1", {provider}
                "models": [{{"id": "m", {model}}}]}}}}}}"#
        ));
    };
    for (provider, model, flags, warned) in [
        ("", r#""context_window": 8000"#, &["--max-output-tokens", "9000"] as &[&str], true),
        ("", r#""context_window": 8000"#, &["--max-output-tokens", "7999"], false),
        ("", r#""context_window": 8000"#, &[], false),
        ("", r#""context_window": 80000"#, &["--context-window", "4000", "--max-output-tokens", "4000"], true),
        (r#""max_tokens": 16000,"#, r#""context_window": 8000"#, &[], true),
        (r#""max_tokens": 16000,"#, r#""context_window": 32000"#, &[], false),
        (r#""max_tokens": 16000,"#, r#""images": false"#, &[], false),
    ] {
        config(provider, model);
        let run = user.run(&[&["run", "-m", "local/m"], flags, &["hello"]].concat());
        assert_eq!(warns(&run), warned, "{provider} {model} {flags:?}: {}", run.err);
    }
    // No window is none.
    for window in ["0", "-1", "\"many\"", "1.5"] {
        config("", &format!(r#""context_window": {window}"#));
        let run = user.run(&["run", "-m", "local/m", "hello"]);
        assert!(run.code == 2 && run.err.contains("a whole number above 0"), "{window}: {run:?}");
    }
    config("", r#""context_window": null"#);
    assert_eq!(user.run(&["run", "-m", "local/m", "hello"]).code, 2);
}
