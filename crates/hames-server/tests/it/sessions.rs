//! Sessions as things: made, listed, named, set, deleted; what runs did; files to mention.

use hames_protocol::api::*;
use hames_protocol::{Delivery, Event, Mode, Part, PinTarget, PinnedBy, Projection, RunResult, Settings};
use hames_store::VacuumThresholds;
use serde_json::json;

use crate::support::{Bed, Reply, texts, wait};

#[tokio::test]
async fn a_session_is_named_after_its_first_message_unless_somebody_named_it() {
    let bed = Bed::new().await;
    assert_eq!(bed.hub.view(&bed.id).await.unwrap().row.name, "session");
    bed.send("fix the parser\nplease", Delivery::Queue).await;
    assert_eq!(bed.quiet().await.row.name, "fix the parser");
    bed.send("something else", Delivery::Queue).await;
    assert_eq!(bed.quiet().await.row.name, "fix the parser");

    let mut other = Bed { id: bed.session(None).await, ..bed };
    other.send("Fix the parser", Delivery::Queue).await;
    assert_eq!(other.quiet().await.row.name, "Fix the parser (2)");
    other.id = other.session(None).await;
    let named = other.hub.rename(&other.id, RenameSession { name: " mine ".into() }).await.unwrap();
    assert_eq!(named.name, "mine");
    other.send("whatever", Delivery::Queue).await;
    assert_eq!(other.quiet().await.row.name, "mine");
    for (name, code) in [("fix the PARSER", ApiErrorCode::NameTaken), (" \u{202e}", ApiErrorCode::Invalid)] {
        let refused = other.hub.rename(&other.id, RenameSession { name: name.into() }).await.unwrap_err();
        assert_eq!(refused.code, code, "{name}");
    }
}

#[tokio::test]
async fn a_better_name_comes_by_itself_where_it_is_switched_on() {
    let bed = Bed::with(false, |host| host.title = Some("Parser: {message}".into())).await;
    let mut client = bed.hub.attach(&bed.id, None).await.unwrap();
    // The whole of it is told, not only the line that was the name.
    bed.send("please look\nat all of this", Delivery::Queue).await;
    let mut names = Vec::new();
    while names.len() < 2 {
        for news in client.next().await.unwrap().unwrap() {
            if let Event::SessionRenamed(renamed) = &news.envelope().event {
                names.push(renamed.name.clone());
            }
        }
    }
    assert_eq!(names, ["please look", "Parser: please look at all of this"]);
}

#[tokio::test]
async fn settings_changed_beside_a_run_take_effect_with_the_next() {
    let bed = Bed::held().await;
    bed.model.will([wait()]);
    bed.send("go", Delivery::Queue).await;
    bed.model.allow(2);
    bed.model.entered(1).await;
    let settings = Settings { mode: Some(Mode::Analyze), max_steps: Some(3), ..Settings::default() };
    let view = bed.hub.change_settings(&bed.id, ChangeSettings { settings, unset: vec![] }).await.unwrap();
    assert_eq!(view.next_run, ["mode", "max_steps"]);
    assert_eq!((view.run.unwrap().mode, view.effective.mode), (Mode::Build, Some(Mode::Analyze)));
    let unset = ChangeSettings { settings: Settings::default(), unset: vec!["max_steps".into()] };
    let view = bed.hub.change_settings(&bed.id, unset).await.unwrap();
    assert_eq!((view.next_run, view.settings.max_steps), (vec!["mode".to_owned()], None));
    let unknown = ChangeSettings { settings: Settings::default(), unset: vec!["colour".into()] };
    assert_eq!(bed.hub.change_settings(&bed.id, unknown).await.unwrap_err().code, ApiErrorCode::Invalid);
    bed.model.allow_tools(1);
    bed.model.allow(100);
    let view = bed.quiet().await;
    assert_eq!(view.next_run, [""; 0]);
    bed.send("again", Delivery::Queue).await;
    bed.quiet().await;
    let modes: Vec<Mode> = bed
        .log()
        .await
        .iter()
        .filter_map(|e| match &e.event {
            Event::RunStart(start) => Some(start.mode),
            _ => None,
        })
        .collect();
    assert_eq!(modes, [Mode::Build, Mode::Analyze]);
}

#[tokio::test]
async fn a_run_that_goes_on_is_shown_with_what_it_does() {
    let bed = Bed::held().await;
    bed.model.will([Reply::call("Work", &json!({}))]);
    bed.send("go", Delivery::Queue).await;
    bed.model.reached(1).await;
    let run = bed.hub.view(&bed.id).await.unwrap().run.unwrap();
    assert_eq!((run.turn, run.step, run.doing.as_str()), (1, 1, "thinking"));
    bed.model.allow(2);
    bed.model.entered(1).await;
    let run = bed.hub.view(&bed.id).await.unwrap().run.unwrap();
    assert!(run.doing.contains("Work"), "{run:?}");
    assert_eq!(run.finishing.len(), 1, "an interrupt waits for it");
    let row = bed.hub.sessions(None).await.unwrap().sessions.remove(0);
    assert_eq!((row.state, row.pending), (SessionActivity::Running, 0));
    bed.model.allow_tools(1);
    bed.model.allow(100);
    let view = bed.quiet().await;
    assert_eq!((view.run, view.window.used, view.window.window), (None, 110, 128_000));
    assert_eq!(view.window.usable, 128_000 - 8_192);
}

#[tokio::test]
async fn runs_have_ledgers() {
    let bed = Bed::new().await;
    bed.model.will([
        Reply::call("Write", &json!({"path": "a.txt", "content": "x\n"})),
        Reply::call("Read", &json!({"path": "missing.txt"})),
        Reply::text("Done."),
        Reply::failed(),
    ]);
    bed.send("go", Delivery::Queue).await;
    bed.quiet().await;
    bed.send("again", Delivery::Queue).await;
    bed.quiet().await;
    let runs = bed.hub.ledgers(&bed.id).await.unwrap().runs;
    let results: Vec<_> = runs.iter().map(|run| (run.turn, run.result, run.calls.len())).collect();
    assert_eq!(results, [(2, Some(RunResult::Error), 0), (1, Some(RunResult::Complete), 0)]);
    let run = bed.hub.ledger(&bed.id, &runs[1].run).await.unwrap();
    let calls: Vec<_> = run.calls.iter().map(|call| (call.name.as_str(), call.outcome.as_str(), call.step)).collect();
    assert_eq!(calls, [("Write", "done", 1), ("Read", "failed", 2)]);
    assert_eq!((run.steps, run.usage.input, run.files.len()), (3, Some(300), 1));
    assert!(run.ended_at.unwrap() > run.started_at);
    assert_eq!(bed.hub.ledger(&bed.id, &"none".into()).await.unwrap_err().code, ApiErrorCode::NotFound);
}

#[tokio::test]
async fn pages_of_the_log_are_read_from_either_end() {
    let bed = Bed::new().await;
    bed.send("go", Delivery::Queue).await;
    let last = bed.quiet().await.row.last_seq;
    for (before, after, limit, seqs, older, newer) in [
        (None, None, 3, last - 2..=last, true, false),
        (Some(4), None, 2, 2..=3, true, true),
        (Some(3), None, 9, 1..=2, false, true),
        (None, Some(0), 2, 1..=2, false, true),
        (None, Some(last - 1), 9, last..=last, true, false),
    ] {
        let page = bed.hub.log(&bed.id, before, after, limit).await.unwrap();
        let found: Vec<u64> = page.events.iter().filter_map(|e| e.seq).collect();
        assert_eq!((found, page.older, page.newer), (seqs.collect(), older, newer), "{before:?} {after:?}");
    }
    assert_eq!(bed.hub.log(&bed.id, Some(1), Some(1), 1).await.unwrap_err().code, ApiErrorCode::Invalid);
}

#[tokio::test]
async fn files_are_found_for_mentions_as_ignore_files_allow() {
    let bed = Bed::new().await;
    let folder = bed.folder.path();
    std::fs::create_dir_all(folder.join("src/deep")).unwrap();
    std::fs::create_dir_all(folder.join("target")).unwrap();
    for file in ["src/main.rs", "src/deep/parser.rs", "target/parser.o", "README.md", "para.txt"] {
        std::fs::write(folder.join(file), "x").unwrap();
    }
    std::fs::write(folder.join(".gitignore"), "target\n").unwrap();
    let found = |query: &str, limit| {
        let query = query.to_owned();
        let bed = &bed;
        async move { bed.hub.files(&bed.id, &query, limit).await.unwrap() }
    };
    assert_eq!(found("parser", 9).await.files, ["src/deep/parser.rs"]);
    assert_eq!(found("srcmain", 9).await.files, ["src/main.rs"]);
    assert!(found("deep", 9).await.files.contains(&"src/deep/".to_owned()));
    let top = found("", 2).await;
    assert_eq!((top.files.len(), top.more), (2, true));
    assert!(found("", 9).await.files.contains(&"src/".to_owned()));
}

#[tokio::test]
async fn an_attachment_becomes_parts_that_a_message_takes() {
    let bed = Bed::new().await;
    let text = bed.hub.attachment(&bed.id, "notes.txt", b"hello".to_vec()).await.unwrap();
    assert_eq!(text.parts, [Part::text("Attached file notes.txt:\n```\nhello\n```")]);
    let image = tiny_png();
    let attached = bed.hub.attachment(&bed.id, "dot.png", image.clone()).await.unwrap();
    let Part::Image { blob, media_type, .. } = &attached.parts[1] else { panic!("{attached:?}") };
    assert_eq!(media_type, "image/png");
    assert_eq!(bed.hub.blob(&bed.id, &blob.hash, 0, 1_000).await.unwrap(), image);
    assert_eq!(bed.hub.blob(&bed.id, "out-1", 0, 9).await.unwrap_err().code, ApiErrorCode::NotFound);
    let send = SendMessage { parts: attached.parts, delivery: Delivery::Queue, idempotency_id: None, terms: None };
    bed.hub.send(&bed.id, send).await.unwrap();
    bed.quiet().await;
}

/// One transparent dot.
fn tiny_png() -> Vec<u8> {
    let hex = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001\
               e221bc330000000049454e44ae426082";
    let hex: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    hex.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[tokio::test]
async fn a_deleted_session_is_gone_for_everybody() {
    let bed = Bed::new().await;
    let mut client = bed.hub.attach(&bed.id, Some(0)).await.unwrap();
    client.next().await.unwrap().unwrap();
    let (deleted, told) = tokio::join!(bed.hub.delete(&bed.id), client.next());
    deleted.unwrap();
    assert_eq!(told.unwrap().unwrap_err().code, ApiErrorCode::NotFound);
    for refused in [
        bed.hub.view(&bed.id).await.err().unwrap(),
        bed.hub.pending(&bed.id).await.err().unwrap(),
        bed.hub.attach(&bed.id, None).await.err().unwrap(),
        bed.hub.delete(&bed.id).await.unwrap_err(),
    ] {
        assert_eq!(refused.code, ApiErrorCode::NotFound);
    }
    assert_eq!(bed.hub.sessions(None).await.unwrap().sessions, []);
    assert_eq!(bed.hub.counts().borrow().sessions, 0);
}

#[tokio::test]
async fn a_session_can_be_cut_branched_moved_exported_and_imported_when_nothing_runs() {
    let bed = Bed::held().await;
    bed.model.allow(100);
    bed.send("first", Delivery::Queue).await;
    bed.quiet().await;
    bed.send("second", Delivery::Queue).await;
    let view = bed.quiet().await;
    let log = bed.log().await;
    let second = log.iter().rev().find(|e| matches!(e.event, Event::MessageUser(_))).and_then(|e| e.seq).unwrap();
    let mut client = bed.hub.attach(&bed.id, None).await.unwrap();
    let branch = BranchSession { up_to_seq: None, name: None };
    let copy = bed.hub.branch(&bed.id, branch).await.unwrap();
    assert_eq!((copy.name.as_str(), copy.turns), ("first (2)", 2));
    let cut = bed.hub.cut(&bed.id, CutSession { from_seq: second }).await.unwrap();
    assert!(cut.seq > view.row.last_seq && cut.removed > 1);
    let told = client.next().await.unwrap().unwrap();
    assert!(matches!(told[0].envelope().event, Event::SessionCut(_)), "whoever watches sees it");
    assert_eq!(bed.said().await, ["first"]);
    assert!(bed.send("third", Delivery::Queue).await.starts_run);
    bed.quiet().await;
    assert_eq!(bed.model.heard().last().unwrap(), &["first", "third"]);
    let other = tempfile::tempdir().unwrap();
    let folder = other.path().to_str().unwrap().to_owned();
    let moved = bed.hub.move_to(&bed.id, MoveSession { folder: folder.clone() }).await.unwrap();
    assert_eq!(std::path::PathBuf::from(&moved.folder), other.path().canonicalize().unwrap());

    let file = tempfile::NamedTempFile::new().unwrap();
    let events = bed.hub.export(&bed.id, file.reopen().unwrap()).await.unwrap();
    let lines = std::io::BufReader::new(file.reopen().unwrap());
    let imported = bed.hub.import(bed.folder.path(), lines).await.unwrap();
    assert_eq!((imported.events, imported.session.turns), (events, 2));
    assert_eq!(bed.hub.view(&imported.session.id).await.unwrap().row.name, "first");
    let nonsense = bed.hub.import(bed.folder.path(), &b"no session"[..]).await.unwrap_err();
    assert_eq!(nonsense.code, ApiErrorCode::Invalid);
    let stats = bed.hub.database().await.unwrap();
    assert_eq!(stats.sessions, 3);
    assert!(bed.hub.vacuum().await.unwrap().after_bytes > 0);
    assert_eq!(bed.hub.search("third", None, 9).await.unwrap().results.len(), 2);
}

#[tokio::test]
async fn a_smaller_database_is_suggested_after_a_cut_and_a_delete_until_it_is_made() {
    let worth_it = VacuumThresholds { free_percent: 0, free_bytes: 100_000 };
    let bed = Bed::with(false, |host| host.vacuum = worth_it).await;
    assert!(!bed.hub.suggests_vacuum() && !bed.hub.database().await.unwrap().suggest_vacuum);
    let long = "many words ".repeat(40_000);
    for deleted in [false, true] {
        bed.send("short", Delivery::Queue).await;
        bed.quiet().await;
        bed.send(&long, Delivery::Queue).await;
        bed.quiet().await;
        assert!(!bed.hub.suggests_vacuum());
        if deleted {
            bed.hub.delete(&bed.id).await.unwrap();
        } else {
            let log = bed.log().await;
            let last = log.iter().rev().find(|e| matches!(e.event, Event::MessageUser(_))).and_then(|e| e.seq).unwrap();
            assert!(bed.hub.cut(&bed.id, CutSession { from_seq: last }).await.unwrap().suggest_vacuum);
        }
        assert!(bed.hub.suggests_vacuum() && bed.hub.database().await.unwrap().suggest_vacuum);
        bed.hub.vacuum().await.unwrap();
        assert!(!bed.hub.suggests_vacuum());
    }
}

#[tokio::test]
async fn what_needs_a_session_to_itself_is_busy_beside_a_run() {
    let bed = Bed::held().await;
    bed.send("go", Delivery::Queue).await;
    bed.model.reached(1).await;
    let folder = bed.folder.path().to_str().unwrap().to_owned();
    for refused in [
        bed.hub.cut(&bed.id, CutSession { from_seq: 2 }).await.err().unwrap(),
        bed.hub.branch(&bed.id, BranchSession { up_to_seq: None, name: None }).await.err().unwrap(),
        bed.hub.move_to(&bed.id, MoveSession { folder }).await.err().unwrap(),
        bed.hub.vacuum().await.err().unwrap(),
    ] {
        assert_eq!(refused.code, ApiErrorCode::Busy);
    }
}

#[tokio::test]
async fn a_folder_that_is_none_makes_no_session() {
    let bed = Bed::new().await;
    for folder in ["relative", "/no/such/folder", "/etc/hostname"] {
        let new = CreateSession { folder: folder.into(), name: None, settings: Settings::default() };
        assert_eq!(bed.hub.create(new).await.err().unwrap().code, ApiErrorCode::Invalid, "{folder}");
    }
}

#[tokio::test]
async fn a_list_says_what_waits_in_a_session_that_is_not_open() {
    let mut bed = Bed::held().await;
    bed.model.will([wait()]);
    bed.send("go", Delivery::Queue).await;
    bed.model.allow(2);
    bed.model.entered(1).await;
    for (text, delivery) in [("b", Delivery::Queue), ("c", Delivery::Steer), ("d", Delivery::Queue)] {
        bed.send(text, delivery).await;
    }
    let row = async |bed: &Bed| bed.hub.sessions(None).await.unwrap().sessions.remove(0);
    let busy = row(&bed).await;
    assert_eq!((busy.state, busy.pending), (SessionActivity::Running, 3));
    bed.restart().await;
    let rests = row(&bed).await;
    assert_eq!((rests.state, rests.pending), (SessionActivity::Idle, 3));
    let view = bed.hub.view(&bed.id).await.unwrap();
    assert_eq!((texts(&view.pending), view.paused), (vec!["c".to_owned(), "b".into(), "d".into()], true));
    assert_eq!(bed.hub.pending(&bed.id).await.unwrap().pending, view.pending);
    assert_eq!(bed.hub.counts().borrow().sessions, 0, "looking opens nothing");
    let of_the_actor = bed.hub.rename(&bed.id, RenameSession { name: view.row.name.clone() }).await.unwrap();
    assert_eq!(of_the_actor, view.row);
    assert_eq!(bed.hub.view(&bed.id).await.unwrap(), view, "whoever answers says the same");
}

#[tokio::test]
async fn a_window_is_told_at_any_time_and_made_smaller_but_not_beside_a_run() {
    let bed = Bed::held().await;
    bed.model.allow(1_000);
    assert!(!bed.hub.compact(&bed.id).await.unwrap().compacted, "there is nothing yet");
    for n in 0..12 {
        bed.send(&format!("{n}: {}", "many words of no weight ".repeat(800)), Delivery::Queue).await;
        bed.quiet().await;
    }
    let before = bed.hub.context(&bed.id).await.unwrap();
    assert_eq!((before.report.budget.window, before.report.sent.items), (128_000, 24));
    assert_ne!(before.next.stage, "nothing");
    let view = bed.hub.view(&bed.id).await.unwrap();
    assert_eq!((view.window.used, view.window.window), (110, 128_000), "as the provider counted");
    assert_eq!(view.window.usable, before.report.budget.usable);

    let done = bed.hub.compact(&bed.id).await.unwrap();
    let (tokens_before, tokens_after) = (done.tokens_before.unwrap(), done.tokens_after.unwrap());
    assert!(done.compacted && tokens_after < tokens_before / 2, "{done:?}");
    assert!(bed.types().await.contains(&"window.checkpoint".to_owned()));
    assert_eq!(bed.hub.view(&bed.id).await.unwrap().window.used, tokens_after);
    let after = bed.hub.context(&bed.id).await.unwrap().report;
    assert!(after.opening.is_some() && after.budget.fill < before.report.budget.fill / 2);

    bed.model.will([wait()]);
    bed.send("go", Delivery::Queue).await;
    bed.model.entered(1).await;
    assert_eq!(bed.hub.compact(&bed.id).await.unwrap_err().code, ApiErrorCode::Busy);
    let meanwhile = bed.hub.context(&bed.id).await.unwrap().report;
    let said = |label: &str| meanwhile.items.iter().any(|item| item.label.starts_with(label));
    assert!(said("go") && said("0: many words"), "what goes on, and what is no longer sent");
    assert_eq!(meanwhile.opening, after.opening);
    bed.model.allow_tools(1);
    bed.quiet().await;
}

#[tokio::test]
async fn settings_that_are_only_tried_show_what_a_compaction_would_do_with_them_and_set_nothing() {
    let bed = Bed::held().await;
    bed.model.allow(1_000);
    for n in 0..20 {
        bed.send(&format!("{n}: {}", "many words of no weight ".repeat(400)), Delivery::Queue).await;
        bed.quiet().await;
    }
    let seq = bed.hub.view(&bed.id).await.unwrap().row.last_seq;
    let draft = |json: serde_json::Value| serde_json::from_value::<ChangeSettings>(json).unwrap();
    let tried = async |json| bed.hub.preview_context(&bed.id, draft(json)).await.unwrap();
    let as_set = bed.hub.context(&bed.id).await.unwrap();
    assert_eq!(tried(json!({})).await, as_set);

    let half = tried(json!({"settings": {"compaction": {"trigger": 40}}})).await;
    assert_eq!(half.next.trigger, as_set.next.trigger / 2);
    assert_eq!((as_set.next.ceiling_percent, half.next.ceiling_percent), (79, 39));

    let bare = tried(json!({"settings": {"compaction": {"landing": 0}}})).await;
    let much = tried(json!({"settings": {"compaction": {"landing": 20}}})).await;
    assert!(bare.next.kept < as_set.next.kept && as_set.next.kept < much.next.kept);
    assert!(bare.next.leaving > as_set.next.leaving && as_set.next.leaving > much.next.leaving);

    let rolled = tried(json!({"settings": {"compaction": {"strategy": "deterministic"}}})).await;
    assert_eq!((as_set.next.stage.as_str(), rolled.next.stage.as_str()), ("summary", "rolled"));
    assert_eq!(rolled.report.strategy, "deterministic");

    let small = tried(json!({"settings": {"context_window": 32_000}})).await;
    assert_eq!((small.report.budget.window, as_set.report.budget.window), (32_000, 128_000));
    assert!(small.next.trigger < as_set.next.trigger / 3);

    // What the session has itself can be taken away in the draft.
    let own = draft(json!({"settings": {"compaction": {"trigger": 50}}}));
    bed.hub.change_settings(&bed.id, own).await.unwrap();
    assert_eq!(tried(json!({"unset": ["compaction"]})).await, as_set);
    let unknown = bed.hub.preview_context(&bed.id, draft(json!({"unset": ["colour"]}))).await.unwrap_err();
    assert_eq!((unknown.code, unknown.message.contains("\"colour\"")), (ApiErrorCode::Invalid, true));

    let view = bed.hub.view(&bed.id).await.unwrap();
    assert_eq!(view.row.last_seq, seq + 1, "only the change itself was recorded");
    assert_eq!(view.settings.context_window, None);

    // A run goes on: what is tried is still told, from the log.
    bed.model.will([wait()]);
    bed.send("go", Delivery::Queue).await;
    bed.model.entered(1).await;
    let meanwhile = tried(json!({"settings": {"compaction": {"strategy": "deterministic", "trigger": 60}}})).await;
    assert_eq!((meanwhile.next.stage.as_str(), meanwhile.next.ceiling_percent), ("rolled", 59));
    bed.model.allow_tools(1);
    bed.quiet().await;
}

#[tokio::test]
async fn what_is_pinned_stays_through_a_compaction_until_it_is_taken_away() {
    let bed = Bed::held().await;
    bed.model.allow(1_000);
    let text = |text: &str| AddPin { target: PinTarget::Text { text: text.into() } };
    let placed = bed.hub.add_pin(&bed.id, text("the port is 8080")).await.unwrap();
    for n in 0..12 {
        bed.send(&format!("{n}: {}", "many words of no weight ".repeat(800)), Delivery::Queue).await;
        bed.quiet().await;
    }
    assert!(bed.hub.compact(&bed.id).await.unwrap().compacted);
    let report = bed.hub.context(&bed.id).await.unwrap().report;
    assert_eq!(report.pins.iter().map(|pin| (pin.pin, pin.by)).collect::<Vec<_>>(), [(placed.pin, PinnedBy::User)]);
    assert_ne!(report.pins[0].projection, Projection::Omitted);

    let too_much = bed.hub.add_pin(&bed.id, text(&"word ".repeat(40_000))).await.unwrap_err();
    assert_eq!(too_much.code, ApiErrorCode::Invalid, "{too_much:?}");
    bed.hub.remove_pin(&bed.id, placed.pin).await.unwrap();
    assert!(bed.hub.context(&bed.id).await.unwrap().report.pins.is_empty());
    assert_eq!(bed.hub.remove_pin(&bed.id, placed.pin).await.unwrap_err().code, ApiErrorCode::NotFound);

    bed.model.will([wait()]);
    bed.send("go", Delivery::Queue).await;
    bed.model.entered(1).await;
    assert_eq!(bed.hub.add_pin(&bed.id, text("x")).await.unwrap_err().code, ApiErrorCode::Busy);
    bed.model.allow_tools(1);
    bed.quiet().await;
}
