//! `hames sessions`.

use hames_protocol::{Durability, Envelope, Event, SessionId};
use hames_store::Store;
use hames_testkit::{Script, Turn};
use serde_json::json;

use crate::kit::User;

fn worked() -> (User, hames_testkit::Provider) {
    let script = Script::new()
        .turn(Turn::text("Looking.").then_call("Read", json!({"path": "a.txt"})))
        .turn(Turn::call("Write", json!({"path": "new.txt", "content": "n\n"})))
        .turn(Turn::call("StrReplace", json!({"path": "a.txt", "old_string": "old", "new_string": "new"})))
        .turn(Turn::call("Shell", json!({"command": "exit 4"})))
        .turn(Turn::text("Finished the quokka."))
        .respond(|_| Turn::text("More."));
    let (user, provider) = User::with(script);
    user.write("a.txt", "old\n");
    user.ok(&["run", "--mode", "build", "-s", "work", "rename the quokka"]);
    (user, provider)
}

#[test]
fn an_empty_home_is_friendly_everywhere() {
    let user = User::new();
    for (args, code, says) in [
        (&["sessions", "list"][..], 0, "no sessions"),
        (&["sessions", "list", "--all"], 0, "no sessions"),
        (&["sessions", "list", "--json"], 0, ""),
        (&["sessions", "search", "x"], 0, "nothing found"),
        (&["sessions", "search", "x", "--json"], 0, ""),
        (&["sessions", "show", "x"], 2, "no session \"x\""),
        (&["sessions", "rename", "x", "y"], 2, "no session \"x\""),
        (&["sessions", "delete", "x", "--yes"], 2, "no session \"x\""),
        (&["sessions", "export", "x"], 2, "no session \"x\""),
        (&["sessions", "search", " "], 2, "no words"),
    ] {
        let ended = user.run(args);
        assert_eq!(ended.code, code, "{args:?}\n{ended:?}");
        assert!(format!("{}{}", ended.out, ended.err).contains(says), "{args:?}\n{ended:?}");
    }
}

#[test]
fn list_is_this_folders_and_all_is_every_folders() {
    let (user, _provider) = User::saying("ok");
    let other = user.folder("other");
    user.ok(&["run", "here"]);
    user.ok(&["run", "-C", other.to_str().unwrap(), "there"]);
    let here = user.ok(&["sessions", "list"]).out;
    assert!(here.contains("here") && !here.contains("there"), "{here}");
    let all = user.ok(&["sessions", "list", "--all"]).out;
    assert!(all.contains("here") && all.contains("there") && all.contains(other.to_str().unwrap()), "{all}");
    let there = user.ok(&["sessions", "list", "-C", other.to_str().unwrap(), "--json"]).json();
    assert_eq!(there.len(), 1);
    assert_eq!(there[0]["name"], "there");
    for key in ["id", "folder", "created_at", "updated_at", "last_seq", "turns", "model", "mode", "first_line"] {
        assert!(!there[0][key].is_null(), "{key}");
    }
}

#[test]
fn a_list_says_how_the_last_run_of_each_session_ended_and_what_waits() {
    let script = Script::new().respond(|request| match request.last_text().as_str() {
        text if text.contains("fail") => Turn::error(401, json!({"error": {"message": "no such key"}})),
        text if text.contains("suggest") => Turn::call("Write", json!({"path": "a.txt", "content": "x"})),
        text if text.contains("endless") || text.contains("pong") => {
            Turn::call("Shell", json!({"command": "echo pong"}))
        }
        _ => Turn::text("Done."),
    });
    let (user, _provider) = User::with(script);
    user.ok(&["run", "-s", "well", "go"]);
    assert_eq!(user.run(&["run", "-s", "bad", "fail"]).code, 1);
    assert_eq!(user.run(&["run", "-s", "long", "--mode", "build", "--max-steps", "2", "endless"]).code, 3);
    user.ok(&["run", "-s", "open", "--mode", "analyze", "suggest"]);
    let listed = user.ok(&["sessions", "list"]).out;
    let json = user.ok(&["sessions", "list", "--json"]).json();
    for (name, said, result, state) in [
        ("well", "", json!("complete"), "idle"),
        ("bad", "[failed]", json!("error"), "idle"),
        ("long", "[stopped at the step limit]", json!("max_steps"), "idle"),
        ("open", "[waiting for you]", json!("complete"), "waiting_for_you"),
    ] {
        let line = listed.lines().find(|line| line.starts_with(name)).unwrap();
        let remark = line.find('[').map_or("", |at| &line[at..]);
        assert_eq!(remark, said, "{listed}");
        let session = json.iter().find(|session| session["name"] == name).unwrap();
        assert_eq!((&session["last_result"], &session["state"]), (&result, &json!(state)), "{session}");
    }
    // The next run says something else.
    user.ok(&["run", "-s", "long", "go"]);
    assert!(!user.ok(&["sessions", "list"]).out.contains("[stopped"));
}

#[test]
fn show_is_a_readable_transcript() {
    let (user, _provider) = worked();
    let shown = user.ok(&["sessions", "show", "work"]).out;
    for part in [
        "session \"work\"",
        "run 1 · build",
        "> rename the quokka",
        "Looking.",
        "Read a.txt",
        "StrReplace a.txt",
        "+1/−1",
        "-old",
        "+new",
        "Shell exit 4",
        "exit 4",
        "Finished the quokka.",
        "complete",
    ] {
        assert!(shown.contains(part), "lacks {part}\n{shown}");
    }
}

#[test]
fn runs_show_the_ledger_of_each_run() {
    let (user, _provider) = worked();
    user.ok(&["run", "-c", "and more"]);
    let text = user.ok(&["sessions", "show", "work", "--runs"]).out;
    for part in
        ["run 1 · build", "run 2 · build", "read ", "edit ", "run ", "new.txt created", "a.txt changed", "exit 4"]
    {
        assert!(text.contains(part), "lacks {part}\n{text}");
    }
    let ledgers = user.ok(&["sessions", "show", "work", "--runs", "--json"]).json();
    assert_eq!(ledgers.len(), 2);
    let first = &ledgers[0];
    assert_eq!((first["turn"].as_u64(), first["result"].as_str()), (Some(1), Some("complete")));
    let calls: Vec<(&str, &str, &str)> = first["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["effect"].as_str().unwrap(), c["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(
        calls,
        [("Read", "read", "done"), ("Write", "edit", "done"), ("StrReplace", "edit", "done"), ("Shell", "run", "done")]
    );
    assert_eq!(first["steps"].as_array().unwrap().len(), 5);
    assert!(first["usage"]["input"].as_u64().unwrap() > 0);
    let files = first["files"].as_object().unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(files[user.project().join("new.txt").to_str().unwrap()], "created");
}

#[test]
fn search_finds_what_was_said_and_where() {
    let (user, _provider) = worked();
    let hits = user.ok(&["sessions", "search", "quokka", "--json"]).json();
    assert!(hits.len() >= 2, "{hits:?}");
    assert!(hits.iter().all(|hit| hit["name"] == "work" && hit["seq"].is_u64() && hit["snippet"].is_string()));
    assert!(user.ok(&["sessions", "search", "quokka"]).out.contains("quokka"));
    let other = user.folder("other");
    let place = ["-C", other.to_str().unwrap()];
    assert_eq!(user.ok(&["sessions", "search", "quokka", "--json", place[0], place[1]]).out, "");
    assert!(!user.ok(&["sessions", "search", "quokka", "--all", "--json", place[0], place[1]]).json().is_empty());
}

#[test]
fn rename_and_delete_change_what_is_listed() {
    let (user, _provider) = worked();
    user.ok(&["run", "-s", "other", "x"]);
    let renamed = user.ok(&["sessions", "rename", "work", "Better name", "--json"]).json();
    assert_eq!(renamed[0]["name"], "Better name");
    assert_eq!(user.run(&["sessions", "show", "work"]).code, 2);
    let taken = user.run(&["sessions", "rename", "other", "BETTER NAME"]);
    assert_eq!(taken.code, 2, "{taken:?}");
    for bad in ["", " ", "a\nb", "0198e0b6-1c2d-7000-8000-00000000000a"] {
        assert_eq!(user.run(&["sessions", "rename", "other", bad]).code, 2, "{bad:?}");
    }
    let unasked = user.run(&["sessions", "delete", "better name"]);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(unasked.err.contains("--yes"), "{unasked:?}");
    user.ok(&["sessions", "delete", "better name", "--yes"]);
    let names: Vec<String> = user.sessions().iter().map(|s| s["name"].as_str().unwrap().into()).collect();
    assert_eq!(names, ["other"]);
}

#[test]
fn a_damaged_event_is_shown_in_its_place_and_the_session_goes_on() {
    let (user, _provider) = worked();
    let id: SessionId = user.sessions().iter().find(|s| s["name"] == "work").unwrap()["id"].as_str().unwrap().into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let damaged =
        [json!({"type": "damaged"}), json!({"type": "message.user"}), json!({"type": "tool.done", "output": 5})];
    let mut places = Vec::new();
    for body in damaged {
        let log = Store::open(&user.home()).unwrap().store.log();
        let next = user.ok(&["sessions", "show", "work", "--json"]).out.lines().count() as u64 + 1;
        let mut envelope = Envelope::detached(0, Event::Unknown(body));
        envelope.session = Some(id.clone());
        runtime.block_on(log.append(&id, next, vec![envelope], Durability::Process)).unwrap();
        drop(log);
        places.push(next);
        user.ok(&["run", "-s", "work", "go on"]);
    }
    let shown = user.ok(&["sessions", "show", "work"]).out;
    for seq in places {
        assert!(shown.contains(&format!("[event {seq} of this session is damaged")), "{seq}\n{shown}");
    }
    assert_eq!(shown.matches("> go on").count(), 3, "{shown}");
}

#[test]
fn a_database_that_is_repaired_by_a_command_is_not_repaired_in_silence() {
    const PAGE: usize = 4096;
    for command in
        [&["sessions", "show", "first"][..], &["sessions", "export", "first"], &["run", "-s", "first", "go on"]]
    {
        let (user, _provider) = User::saying("ok");
        let prompt = |word: &str| format!("begin {}{word}", "and so on ".repeat(300));
        user.ok(&["run", "-s", "first", &prompt("EARLY")]);
        for _ in 0..4 {
            user.ok(&["run", "-s", "second", &prompt("LATE")]);
        }
        // The leaves that hold the first session: too deep inside to be met when the database is opened.
        let path = user.home().join("hames.db");
        let mut bytes = std::fs::read(&path).unwrap();
        for page in bytes.chunks_mut(PAGE).skip(1).filter(|page| page[0] == 0x0d) {
            if page.windows(5).any(|word| word == b"EARLY") {
                page[1..].fill(0xff);
            }
        }
        std::fs::write(&path, bytes).unwrap();
        let ended = user.run(command);
        assert_eq!(ended.err.matches("It was moved to").count(), 1, "{command:?}\n{ended:?}");
    }
}

#[test]
fn export_is_the_log_and_then_its_outputs_on_stdout_or_in_a_file() {
    let (user, _provider) = worked();
    let shown = user.ok(&["sessions", "show", "work", "--json"]).out;
    assert_eq!(user.ok(&["sessions", "export", "work", "--no-blobs"]).out, shown);
    let whole = user.ok(&["sessions", "export", "work"]).out;
    let blobs = whole.strip_prefix(&shown).unwrap();
    assert!(blobs.starts_with("{\"blob\":\"") && blobs.lines().count() == 1, "what a.txt was before: {blobs}");
    let target = user.folder("out").join("log.jsonl");
    assert_eq!(user.ok(&["sessions", "export", "work", "-o", target.to_str().unwrap()]).out, "");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), whole);
    let nowhere = user.run(&["sessions", "export", "work", "-o", "missing/log.jsonl"]);
    assert_eq!(nowhere.code, 2, "{nowhere:?}");
}

#[test]
fn a_name_that_two_folders_have_is_asked_for_by_id() {
    let (user, _provider) = User::saying("ok");
    let (a, b) = (user.folder("a"), user.folder("b"));
    for folder in [&a, &b] {
        user.ok(&["run", "-C", folder.to_str().unwrap(), "-s", "same", "x"]);
    }
    let ended = user.run(&["sessions", "show", "same"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains(a.to_str().unwrap()) && ended.err.contains(b.to_str().unwrap()), "{}", ended.err);
    user.ok(&["sessions", "show", "same", "-C", a.to_str().unwrap()]);
}

#[test]
fn a_reader_that_stops_reading_ends_the_command_quietly() {
    let (user, _provider) = worked();
    for args in [&["sessions", "show", "work"][..], &["sessions", "show", "work", "--json"], &["sessions", "list"]] {
        let mut child = user.start(args);
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{args:?}");
    }
}

#[test]
fn a_session_is_branched_cut_moved_exported_and_imported_and_goes_on_each_time() {
    let (user, _provider) = worked();
    user.ok(&["run", "-c", "and a wombat"]);
    let hit = user.ok(&["sessions", "search", "wombat", "--json"]).json();
    let seq = hit.iter().find(|hit| hit["kind"] == "user").unwrap()["seq"].to_string();
    let first = user.ok(&["sessions", "search", "rename the quokka", "--json"]).json()[0]["seq"].to_string();

    let branch = user.ok(&["sessions", "branch", "work", "--at", &seq, "--name", "copy", "--json"]).json();
    assert_eq!((branch[0]["name"].as_str(), branch[0]["turns"].as_u64()), (Some("copy"), Some(2)));
    assert!(user.ok(&["sessions", "branch", "work"]).out.contains("\"work (2)\" begins as a copy of \"work\""));

    // Nobody is at the terminal to be asked.
    let refused = user.run(&["sessions", "cut", "work", "--from", &seq]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--yes"), "{refused:?}");
    let wrong = user.run(&["sessions", "cut", "work", "--from", "1", "-y"]);
    assert!(wrong.code == 2 && wrong.err.contains("no message of the user"), "{wrong:?}");
    let cut = user.ok(&["sessions", "cut", "work", "--from", &seq, "-y", "--json"]).json();
    assert!(
        cut[0]["removed"].as_u64().unwrap() > 3
            && cut[0]["from_seq"].as_u64().unwrap() + 1 == seq.parse::<u64>().unwrap()
    );
    assert!(!user.ok(&["sessions", "show", "work"]).out.contains("wombat"));

    let file = user.project().join("work.jsonl");
    user.ok(&["sessions", "export", "work", "-o", file.to_str().unwrap()]);
    let other = user.folder("other");
    let there = other.to_str().unwrap();
    assert!(
        user.ok(&["sessions", "import", "-C", there, file.to_str().unwrap()]).out.contains("\"work\" was imported")
    );
    let again = user.ok(&["sessions", "import", file.to_str().unwrap(), "--name", "from a file", "--json"]).json();
    assert_eq!(again[0]["name"], "from a file");
    std::fs::write(&file, "{\"v\":1}\n").unwrap();
    let bad = user.run(&["sessions", "import", file.to_str().unwrap()]);
    assert!(bad.code == 2 && bad.err.contains("line 1 "), "{bad:?}");
    let moved = user.ok(&["sessions", "move", "copy", there, "--json"]).json();
    assert_eq!((moved[0]["folder"].as_str(), moved[0]["folder_missing"].as_bool()), (Some(there), Some(false)));

    // A provider that refuses what breaks a rule takes each of them.
    for (folder, name) in
        [(None, "work"), (None, "work (2)"), (None, "from a file"), (Some(there), "copy"), (Some(there), "work")]
    {
        let place: Vec<&str> = folder.map_or(vec![], |folder| vec!["-C", folder]);
        let ended = user.ok(&[&["run", "-s", name, "go on"], place.as_slice()].concat());
        assert!(ended.out.contains("More."), "{name}: {ended:?}");
        assert!(user.ok(&[&["sessions", "show", name], place.as_slice()].concat()).out.contains("go on"));
    }
    // From the very first message on nothing but the cut is left, and it still goes on.
    user.ok(&["sessions", "cut", "work", "--from", &first, "-y"]);
    user.ok(&["run", "-s", "work", "afresh"]);
    let ledgers = user.ok(&["sessions", "show", "work", "--runs", "--json"]).json();
    assert_eq!(ledgers.len(), 1);
    std::fs::remove_dir_all(&other).unwrap();
    assert!(user.ok(&["sessions", "list", "--all"]).out.contains("(gone)"));
}

#[test]
fn the_database_says_what_it_takes_and_is_made_smaller() {
    let (user, _provider) = worked();
    let stats = user.ok(&["db", "stats", "--json"]).json();
    assert_eq!((stats[0]["sessions"].as_u64(), stats[0]["suggest_vacuum"].as_bool()), (Some(1), Some(false)));
    assert!(user.ok(&["db", "stats"]).out.contains("1 with "));
    let done = user.ok(&["db", "vacuum", "--json"]).json();
    let after = user.ok(&["db", "stats", "--json"]).json();
    assert_eq!((&done[0]["after_bytes"], &after[0]["free_bytes"]), (&after[0]["bytes"], &0.into()));
    assert!(user.ok(&["db", "vacuum"]).out.contains(" before, "));
    let store = Store::open(&user.home()).unwrap().store;
    let id: SessionId = user.ok(&["sessions", "list", "--json"]).json()[0]["id"].as_str().unwrap().into();
    let _lease = store.lease(&id, "a test").unwrap();
    let busy = user.run(&["db", "vacuum"]);
    assert!(busy.code == 2 && busy.err.contains("in use by a test"), "{busy:?}");
}
