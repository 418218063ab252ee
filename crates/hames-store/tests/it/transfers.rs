//! Export and import: the same session elsewhere, and nothing that a file could do to this home.

use std::io::Cursor;

use hames_protocol::*;
use hames_store::{EXPORT_BLOB_BYTES, Imported};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::*;
use crate::story::*;

fn export(home: &Home, id: &SessionId, blobs: u64) -> String {
    let mut out = Vec::new();
    home.store().export_whole(id, blobs, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn import(home: &Home, text: &str) -> Result<Imported, LogError> {
    home.store().import(&mut Cursor::new(text.as_bytes()), home.path(), None, 7000, "t")
}

#[test]
fn a_session_is_the_same_elsewhere() {
    let here = Home::new();
    let story = story(&here);
    let text = export(&here, &story.id, EXPORT_BLOB_BYTES);
    assert!(text.lines().all(|line| line.len() < 120_000));
    let there = Home::new();
    let imported = import(&there, &text).unwrap();
    assert_eq!((&imported.session.id, imported.missing_outputs), (&story.id, 0));
    let (before, after) = (here.read(&story.id), there.read(&story.id));
    assert_eq!(imported.events as usize, before.len());
    assert_eq!(&after[..before.len()], before.as_slice());
    assert_eq!(items(&after), items(&before));
    assert_eq!(outputs(there.store(), &story.id), [1, 2, 3, 4]);
    let state = state(&after);
    assert_eq!((state.grants.len(), state.pending.len(), state.proposals.len()), (0, 0, 0));
    assert_eq!((state.settings.max_steps, state.todos.len()), (Some(7), 1));
    let info = there.store().session(&story.id).unwrap().unwrap();
    assert_eq!(info.folder, there.path().canonicalize().unwrap().to_str().unwrap());
    assert_eq!((info.name.as_str(), info.turns, info.folder_missing), ("the renamed story", 3, false));
    // Once more: the id is taken.
    let again = import(&there, &text).unwrap().session;
    assert_ne!(again.id, story.id);
    assert_eq!(again.name, "the renamed story (2)");
    assert_eq!(outputs(there.store(), &again.id), [1, 2, 3, 4]);
    assert_eq!(items(&there.read(&again.id)), items(&before));
    assert_eq!(there.store().search("second words", None, 9).unwrap().len(), 2);
    // What was imported is exported and imported again.
    let third = import(&Home::new(), &export(&there, &again.id, EXPORT_BLOB_BYTES)).unwrap();
    assert_eq!((third.blobs, third.missing_outputs), (imported.blobs, 0));
}

#[test]
fn blobs_are_left_out_where_they_are_not_wanted_or_do_not_fit() {
    let home = Home::new();
    let story = story(&home);
    for (room, blobs, left_out) in [(0, 0, 6), (1000, 3, 3), (150_000, 5, 1), (u64::MAX, 6, 0)] {
        let mut out = Vec::new();
        let exported = home.store().export_whole(&story.id, room, &mut out).unwrap();
        assert!(exported.blobs + exported.left_out == 6 && exported.blobs >= blobs.min(1), "{room}: {exported:?}");
        assert!(exported.left_out <= 6 && (left_out == 0) == (exported.left_out == 0), "{room}: {exported:?}");
        let imported = import(&Home::new(), &String::from_utf8(out).unwrap()).unwrap();
        assert_eq!((imported.blobs, imported.events), (exported.blobs, exported.events));
        assert_eq!(imported.missing_outputs == 0, exported.left_out == 0);
    }
}

#[test]
fn an_open_end_is_closed_and_secrets_among_settings_are_not_taken_over() {
    let created = json!({"type": "session.created", "name": "x", "folder": "/etc",
        "settings": {"max_steps": 3, "api_key": "sk-secret", "headers": {"Authorization": "Bearer sk-secret"}}});
    let line = |seq: u64, event: Value| {
        json!({"v": 1, "seq": seq, "at": 5, "session": "s", "run": "r", "turn": 1, "step": null, "agent": [], "event": event})
            .to_string()
    };
    let start = serde_json::to_value(run_start("a/b", Mode::Build)).unwrap();
    let message = serde_json::to_value(user("go")).unwrap();
    let call = serde_json::to_value(named_call("c")).unwrap();
    let text = [line(1, created), line(4, start), line(5, message), line(9, call)].join("\n");
    let home = Home::new();
    let info = import(&home, &text).unwrap().session;
    assert_ne!(info.id.as_str(), "s", "only ids of the usual form are taken over");
    let log = home.read(&info.id);
    assert!(is_whole(&log));
    assert_eq!(items(&log).len(), 3);
    assert!(!serde_json::to_string(&log).unwrap().contains("sk-secret"));
    assert_eq!(state(&log).settings, Settings { max_steps: Some(3), ..Settings::default() });
}

#[test]
fn whatever_is_wrong_is_refused_with_its_line_and_leaves_nothing() {
    let here = Home::new();
    let story = story(&here);
    let good = export(&here, &story.id, EXPORT_BLOB_BYTES);
    let lines: Vec<&str> = good.lines().collect();
    let events = here.read(&story.id).len();
    let blob = events;
    let large = lines.iter().position(|line| line.contains("\"at\":65536")).unwrap();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        lines.join("\n")
    };
    let edited = |at: usize, from: &str, to: &str| {
        assert!(lines[at].contains(from), "{from}");
        with(at, &lines[at].replacen(from, to, 1))
    };
    let without =
        |at: usize| lines.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, l)| *l).collect::<Vec<_>>().join("\n");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let stranger = format!("{{\"blob\":\"{}\",\"bytes\":1,\"at\":0,\"base64\":\"AA==\"}}", "a".repeat(64));
    let cases: Vec<(&str, String, usize)> = vec![
        ("nothing", String::new(), 0),
        ("blank lines", "\n\n \n".into(), 0),
        ("a cut line", with(4, &lines[4][..20]), 5),
        ("no JSON", with(0, "hello"), 1),
        ("a deep one", with(0, &deep), 1),
        ("a list", with(2, "[1,2]"), 3),
        ("a number", with(2, "7"), 3),
        ("no event", with(2, "{}"), 3),
        ("both", with(2, "{\"event\":{},\"blob\":\"x\"}"), 3),
        ("no first event", without(0), 1),
        ("two first events", with(1, lines[0]), 2),
        ("a seq again", with(5, lines[4]), 6),
        ("no seq", edited(5, "\"seq\":6", "\"seq\":null"), 6),
        ("a huge seq", edited(5, "\"seq\":6", "\"seq\":4294967295"), 6),
        ("a later version", edited(5, "\"v\":1", "\"v\":2"), 6),
        ("another session", edited(5, story.id.as_str(), "0197-other"), 6),
        ("a live event", edited(2, "message.user", "text.delta"), 3),
        ("fields that do not fit", edited(2, "\"parts\":[", "\"parts\":7,\"x\":["), 3),
        ("a time", edited(5, "\"at\":6", "\"at\":9007199254740993"), 6),
        ("an event behind blobs", format!("{good}{}", lines[1]), lines.len() + 1),
        ("a blob nobody names", with(blob, &stranger), blob + 1),
        ("a blob twice", format!("{good}{}", lines[blob]), lines.len() + 1),
        ("no base64", edited(blob, "\"base64\":\"", "\"base64\":\"*"), blob + 1),
        ("a piece missing", without(large), large + 1),
        ("a blob cut", lines[..large].join("\n"), large + 1),
        ("content that is not what the hash says", edited(blob, "\"base64\":\"", "\"base64\":\"AAAA"), blob + 1),
        ("a size that is none", edited(blob, "\"bytes\":", "\"bytes\":99999999999"), blob + 1),
        ("a path for a hash", edited(blob, "\"blob\":\"", "\"blob\":\"../../"), blob + 1),
    ];
    for (what, text, line) in cases {
        let home = Home::new();
        let error = import(&home, &text).unwrap_err();
        assert!(matches!(error, LogError::Invalid(_)), "{what}: {error:?}");
        let place = format!("line {line} ");
        assert!(line == 0 || error.to_string().contains(&place), "{what}: {error}, expected {place}");
        assert_eq!(home.store().list(None).unwrap(), [], "{what}");
        let rows: i64 = home.sql().query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap();
        assert_eq!((rows, files_under(&home.path().join("blobs"))), (0, 0), "{what}");
    }
}

fn files_under(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_under(&path) } else { 1 }).sum()
}

#[test]
fn a_line_without_end_is_not_read_to_its_end() {
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(b'x');
            self.0 += buffer.len() as u64;
            assert!(self.0 < 64 << 20, "more is read than any line may have");
            Ok(buffer.len())
        }
    }
    let home = Home::new();
    let mut endless = std::io::BufReader::new(Endless(0));
    let error = home.store().import(&mut endless, home.path(), None, 1, "t").unwrap_err();
    assert!(error.to_string().starts_with("line 1 is longer than 32 MB"), "{error}");
}

#[test]
fn a_folder_must_be_there() {
    let home = Home::new();
    for folder in ["/nowhere/at/all", "/etc/passwd"] {
        let none = home.store().import(&mut Cursor::new(b""), folder.as_ref(), None, 1, "t");
        assert!(matches!(none, Err(LogError::Invalid(_))), "{none:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_line_makes_it_panic(edits in proptest::collection::vec((0usize..4000, any::<u8>()), 1..8)) {
        let text = TEXT.get_or_init(|| {
            let home = Home::new();
            let story = story(&home);
            export(&home, &story.id, 2000)
        });
        let mut bytes = text.clone().into_bytes();
        for (at, byte) in edits {
            let at = at * bytes.len() / 4000;
            bytes[at] = byte;
        }
        let home = HOME.get_or_init(Home::new);
        if let Ok(imported) = home.store().import(&mut Cursor::new(bytes), home.path(), None, 1, "t") {
            prop_assert!(is_whole(&home.read(&imported.session.id)));
        }
    }
}

static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
static HOME: std::sync::OnceLock<Home> = std::sync::OnceLock::new();
