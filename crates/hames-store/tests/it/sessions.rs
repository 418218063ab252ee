//! Sessions: names, lists, and what they cost.

use std::path::Path;

use hames_protocol::*;
use hames_store::{SessionInfo, Store};

use crate::kit::*;

fn names(sessions: &[SessionInfo]) -> Vec<&str> {
    sessions.iter().map(|s| s.name.as_str()).collect()
}

#[test]
fn a_name_is_unique_in_its_folder_without_case() {
    let groups: [&[&str]; 10] = [
        &["fix", "FIX", "Fix"],
        &["ärger", "ÄRGER", "A\u{308}RGER"],
        &["straße", "STRASSE"],
        &["ΟΔΟΣ", "οδος", "οδοσ"],
        &["ﬁle", "FILE"],
        &["  a   b ", "A B", "a\tb", "a\nb"],
        &["", "   ", "\u{200b}", "session"],
        &["ДА", "да"],
        &["日本", "日本"],
        &["x (2)", "X (2)"],
    ];
    for group in groups {
        let home = Home::new();
        let made: Vec<SessionInfo> = group.iter().map(|name| home.session(name)).collect();
        for (n, session) in made.iter().enumerate().skip(1) {
            assert!(session.name.ends_with(&format!(" ({})", n + 1)), "{group:?}: {:?}", names(&made));
        }
        let (elsewhere, _lease) =
            home.store().create(group[1], Path::new("/elsewhere"), Settings::default(), 1, "t").unwrap();
        assert!(!elsewhere.name.ends_with(')') || group[1].ends_with(')'), "{elsewhere:?}");
    }
}

#[test]
fn a_long_or_strange_name_is_made_fit_to_list() {
    let home = Home::new();
    let name = home.session(&"é".repeat(5000)).name;
    assert_eq!(name.chars().count(), 200);
    let name = home.session("a\u{1b}[31m\u{202e}b\0c\r\nd").name;
    assert_eq!(name, "a [31m b c d");
}

#[test]
fn a_list_is_kept_in_step_with_what_is_appended() {
    let mut home = Home::new();
    let settings = Settings { mode: Some(Mode::Build), ..Settings::default() };
    let (first, lease) = home.store().create("one", Path::new("/work"), settings, 500, "t").unwrap();
    drop(lease);
    assert_eq!((first.created_at, first.updated_at, first.last_seq, first.turns), (500, 500, 1, 0));
    assert_eq!((first.mode, &first.model, first.first_line.as_str()), (Some(Mode::Build), &None, ""));
    let second = home.session("two");
    let id = first.id.clone();
    home.append(&id, 2, vec![run_start("openai/gpt", Mode::Analyze), user("\n  Hello\u{7} there  \nmore")]).unwrap();
    let mut child = envelope(&id, 3000, run_start("other/model", Mode::Build));
    child.agent = vec!["explore-1".into()];
    wait(home.log().append(&id, 4, vec![child], Durability::Process)).unwrap();
    let changed = Settings { model: Some("local/q/w".parse().unwrap()), ..Settings::default() };
    home.append(
        &id,
        5,
        vec![Event::SettingsChanged(SettingsChanged { settings: changed, unset: vec![] }), user("second")],
    )
    .unwrap();
    let expected = SessionInfo {
        updated_at: 3000,
        last_seq: 6,
        turns: 1,
        model: Some("local/q/w".into()),
        mode: Some(Mode::Analyze),
        first_line: "Hello there".into(),
        ..first
    };
    assert_eq!(home.store().session(&id).unwrap(), Some(expected.clone()));
    home.reopen();
    assert_eq!(home.store().list(Some(Path::new("/work"))).unwrap(), [expected.clone(), second]);
    assert_eq!(home.store().list(Some(Path::new("/other"))).unwrap(), []);
    assert_eq!(home.store().last(Path::new("/work")).unwrap(), Some(expected));
    assert_eq!(home.store().last(Path::new("/other")).unwrap(), None);
}

#[test]
fn a_session_is_found_by_id_by_its_beginning_and_by_name() {
    let home = Home::new();
    let one = home.session("Ärger");
    let created = |name: &str| {
        Event::SessionCreated(SessionCreated {
            name: name.into(),
            folder: "/else".into(),
            settings: Settings::default(),
        })
    };
    for (id, name) in [("abcdef12-1", "x"), ("abcdef12-2", "y"), ("00000000-3", "ärger"), ("q", "abcdef12-1")] {
        home.append(&id.into(), 1, vec![created(name)]).unwrap();
    }
    let find = |folder: Option<&str>, text: &str| {
        let mut found: Vec<String> =
            home.store().find(folder.map(Path::new), text).unwrap().into_iter().map(|s| s.id.to_string()).collect();
        found.sort();
        found
    };
    assert_eq!(find(None, one.id.as_str()), [one.id.as_str()]);
    assert_eq!(find(Some("/else"), one.id.as_str()), [one.id.as_str()]);
    assert_eq!(find(Some("/work"), "äRGER "), [one.id.as_str()]);
    assert_eq!(find(Some("/else"), "äRGER"), ["00000000-3"]);
    assert_eq!(find(None, "äRGER").len(), 2);
    assert_eq!(find(None, "ABCDEF12"), ["abcdef12-1", "abcdef12-2"]);
    assert_eq!(find(None, "abcdef12-1"), ["abcdef12-1"]);
    assert_eq!(find(None, "abcdef1"), Vec::<String>::new());
    for nonsense in ["", "%", "________", "'; drop table sessions", "../..", "\0", "x\u{1b}", "%%%%%%%%"] {
        assert_eq!(find(Some("/work"), nonsense), Vec::<String>::new(), "{nonsense:?}");
    }
}

#[test]
fn a_rename_is_an_event_and_refuses_a_taken_name() {
    let home = Home::new();
    let (one, two) = (home.session("one").id, home.session("two").id);
    let error = home.store().rename(&one, "TWO", 9000, "t").unwrap_err();
    assert!(error.to_string().contains("\"TWO\""), "{error}");
    assert_eq!(home.read(&one).len(), 1);
    let info = home.store().rename(&one, "ONE", 9000, "t").unwrap();
    assert_eq!((info.name.as_str(), info.last_seq, info.updated_at), ("ONE", 2, 9000));
    assert_eq!(home.read(&one)[1].event, Event::SessionRenamed(SessionRenamed { name: "ONE".into() }));
    let renamed = Event::SessionRenamed(SessionRenamed { name: "One".into() });
    assert!(home.append(&two, 2, vec![renamed]).is_err());
    assert_eq!(home.store().rename(&"none".into(), "x", 1, "t"), Err(LogError::NoSession("none".into())));
}

#[test]
fn a_deleted_session_leaves_nothing_and_its_neighbours_everything() {
    let home = Home::new();
    let ids: Vec<SessionId> = ["a", "b", "c"].map(|name| home.session(name).id).into();
    for id in &ids {
        home.append(id, 2, vec![user("needle"), answer("haystack")]).unwrap();
        wait(
            home.log().save_open(id, vec![OpenBlock { kind: OpenKind::Text, index: 0, name: None, text: "x".into() }]),
        )
        .unwrap();
    }
    assert_eq!(home.store().search("needle", None, 9).unwrap().len(), 3);
    home.store().delete(&ids[1], "t").unwrap();
    assert_eq!(home.store().delete(&ids[1], "t"), Err(LogError::NoSession(ids[1].clone())));
    assert_eq!(home.append(&ids[1], 4, vec![user("x")]), Err(LogError::NoSession(ids[1].clone())));
    assert_eq!(home.store().search("needle", None, 9).unwrap().len(), 2);
    assert_eq!(home.store().list(None).unwrap().len(), 2);
    for id in [&ids[0], &ids[2]] {
        assert_eq!(home.read(id).len(), 3);
        assert_eq!(wait(home.log().take_open(id)).unwrap().len(), 1);
    }
    let rows: i64 = home.sql().query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 6);
    // The next session does not get the number of the deleted one.
    let new = home.session("b");
    assert_eq!((new.name.as_str(), home.read(&new.id).len()), ("b", 1));
}

#[test]
fn no_list_touches_an_event() {
    let home = Home::new();
    let ids: Vec<SessionId> = (0..40).map(|n| home.session(&format!("s{n}")).id).collect();
    home.append(&ids[7], 2, (0..300).map(|n| tool_done(&format!("{n}").repeat(9000))).collect()).unwrap();
    // Without the table itself, whatever reads events fails.
    home.sql().execute_batch("ALTER TABLE events RENAME TO events_gone").unwrap();
    let store = home.store();
    assert_eq!(store.list(None).unwrap().len(), 40);
    assert_eq!(store.list(Some(Path::new("/work"))).unwrap()[0].id, ids[7]);
    assert_eq!(store.last(Path::new("/work")).unwrap().unwrap().id, ids[7]);
    assert_eq!(store.session(&ids[7]).unwrap().unwrap().last_seq, 301);
    assert_eq!(store.find(Some(Path::new("/work")), "S7").unwrap()[0].id, ids[7]);
    assert!(store.find(None, &ids[7].as_str()[..13]).unwrap().iter().any(|s| s.id == ids[7]));
    drop(store.lease(&ids[7], "t").unwrap());
}

#[test]
fn the_tail_of_a_big_session_is_read_by_key() {
    let home = Home::new();
    let plan = "EXPLAIN QUERY PLAN SELECT body FROM events WHERE key > 1 AND key <= 2 ORDER BY key LIMIT 3";
    let detail: String = home.sql().query_row(plan, [], |row| row.get(3)).unwrap();
    assert!(detail.contains("INTEGER PRIMARY KEY") && !detail.contains("SCAN"), "{detail}");
}

#[test]
fn the_home_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("deep/home");
    let store = Store::open(&path).unwrap().store;
    let (session, _lease) = store.create("s", Path::new("/w"), Settings::default(), 1, "t").unwrap();
    wait(store.blobs().put(&session.id, "big", BlobSource::Bytes(vec![7; 100_000]))).unwrap();
    let mut seen = 0;
    let mut waiting = vec![path];
    while let Some(path) = waiting.pop() {
        let meta = std::fs::metadata(&path).unwrap();
        let mode = meta.permissions().mode() & 0o777;
        assert_eq!(mode, if meta.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if meta.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    assert!(seen >= 9, "home, database, -wal, -shm, blobs, a folder, a blob, locks, their files");
}

#[test]
fn the_report_counts_what_is_there() {
    let home = Home::new();
    let id = home.session("one").id;
    home.append(&id, 2, vec![user("a"), user("b")]).unwrap();
    wait(home.store().blobs().put(&id, "", BlobSource::Bytes(vec![1; 10]))).unwrap();
    wait(home.store().blobs().put(&id, "x", BlobSource::Bytes(vec![1; 100_000]))).unwrap();
    let report = home.store().check().unwrap();
    assert_eq!((report.sessions, report.events, report.blob_bytes), (1, 3, 100_010));
    assert_eq!((report.schema_version, &report.integrity), (6, &Ok(())));
    assert!(report.database_bytes >= 4096);
}

#[test]
fn a_session_moves_to_another_folder_and_gets_a_name_there() {
    let home = Home::new();
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("new/deep")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    std::os::unix::fs::symlink(root.join("new"), root.join("link")).unwrap();
    let (there, _other) = home.store().create("Parser", &root.join("new"), Settings::default(), 1, "t").unwrap();
    let old = root.join("old");
    let (session, lease) = home.store().create("parser", &old, Settings::default(), 1, "t").unwrap();
    assert_eq!((session.folder_missing, there.folder_missing), (true, false));
    for nowhere in [root.join("gone"), root.join("file")] {
        let error = home.store().move_to(&lease, &nowhere, 2).unwrap_err();
        assert!(matches!(&error, LogError::Invalid(text) if text.contains(nowhere.to_str().unwrap())), "{error}");
    }
    // However the folder is written.
    let moved = home.store().move_to(&lease, &root.join("new/deep/../../link/."), 3000).unwrap();
    assert_eq!((moved.folder.as_str(), moved.name.as_str()), (root.join("new").to_str().unwrap(), "parser (2)"));
    assert!(!moved.folder_missing);
    let log = home.read(&session.id);
    let types: Vec<&str> = log.iter().map(|e| e.event.type_name()).collect();
    assert_eq!(types, ["session.created", "session.moved", "session.renamed"]);
    assert_eq!(home.store().move_to(&lease, &root.join("link"), 4000).unwrap(), moved, "it is there already");
    for folder in ["link", "new/", "new/deep/.."] {
        assert_eq!(home.store().list(Some(&root.join(folder))).unwrap().len(), 2, "{folder}");
        assert_eq!(home.store().find(Some(&root.join(folder)), "parser (2)").unwrap().len(), 1);
    }
    assert_eq!(home.store().list(Some(&old)).unwrap(), []);
    std::fs::remove_dir_all(root.join("new")).unwrap();
    assert!(home.store().list(None).unwrap().iter().all(|info| info.folder_missing));
    assert!(home.store().search("parser", None, 9).is_ok());
    let back = home.store().move_to(&lease, &root, 5000).unwrap();
    assert!(!back.folder_missing && home.store().session(&session.id).unwrap() == Some(back));
}
