//! Over a real folder: what terminals leave, take over and share.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use hames_protocol::SessionId;

use super::*;
use crate::{SavedDraft, SavedText};

fn text(text: &str) -> SavedText {
    SavedText { text: text.into(), pastes: Vec::new() }
}

fn spot(session: &str) -> Spot {
    Spot::Session(SessionId::from(session))
}

fn written(all: &[(Spot, &str)]) -> BTreeMap<Spot, Vec<SavedDraft>> {
    all.iter().map(|(spot, said)| (spot.clone(), vec![SavedDraft { text: text(said), attached: Vec::new() }])).collect()
}

fn said(drafts: &[SavedDraft]) -> Vec<&str> {
    drafts.iter().map(|draft| draft.text.text.as_str()).collect()
}

/// Every file below a folder, with its bits.
fn files(folder: &Path) -> Vec<(String, u32)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let info = entry.metadata().unwrap();
        all.push((entry.file_name().to_string_lossy().into_owned(), info.permissions().mode() & 0o777));
        if info.is_dir() {
            all.extend(files(&entry.path()));
        }
    }
    all
}

#[test]
fn a_terminal_that_is_gone_leaves_its_drafts_to_the_next_one_and_a_living_one_keeps_its_own() {
    let home = tempfile::tempdir().unwrap();
    let mut first = Drafts::new(home.path(), "first");
    let mut second = Drafts::new(home.path(), "second");
    first.save(&written(&[(spot("s"), "mine"), (Spot::Folder("/f".into()), "new")]), 0).unwrap();
    second.save(&written(&[(spot("s"), "theirs")]), 0).unwrap();
    assert!(second.recall(&spot("s")).unwrap().is_empty(), "the first one lives");
    // Killed: nothing of it runs any more.
    drop(first);
    assert_eq!(said(&second.recall(&spot("s")).unwrap()), ["mine"]);
    drop(second);
    // Taken over, and gone before it was written again: nothing is lost, and nothing is there twice once it is written.
    let mut third = Drafts::new(home.path(), "third");
    let mut found = third.recall(&spot("s")).unwrap();
    found.sort_by(|a, b| a.text.text.cmp(&b.text.text));
    assert_eq!(said(&found), ["mine", "theirs"]);
    third.save(&BTreeMap::new(), 0).unwrap();
    third.save(&written(&[(spot("s"), "mine\ntheirs")]), 1).unwrap();
    drop(third);
    let mut fourth = Drafts::new(home.path(), "fourth");
    assert_eq!(said(&fourth.recall(&spot("s")).unwrap()), ["mine\ntheirs"]);
    assert!(fourth.recall(&spot("other")).unwrap().is_empty());
    assert_eq!(said(&fourth.recall(&Spot::Folder("/f".into())).unwrap()), ["new"]);
    // Deleted by hand.
    fourth.save(&BTreeMap::new(), 3).unwrap();
    fourth.leave();
    let left: Vec<String> = files(home.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["drafts"]);
}

#[test]
fn only_the_owner_can_read_what_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("written");
    let (told, mut heard) = tokio::sync::mpsc::channel(8);
    let keeper = Keeper::start(folder.clone(), "t".into(), told).unwrap();
    let drafts = written(&[(spot("s"), "a secret")]);
    keeper.save(Unsaved { drafts, sent: vec![("/f".into(), text("sent"))], ..Unsaved::default() });
    keeper.recall(spot("s"), "/f".into());
    drop(keeper);
    let Some(Input::Recalled(recalled)) = heard.blocking_recv() else { panic!("no answer") };
    assert_eq!((said(&recalled.drafts), recalled.sent), (vec![], vec![text("sent")]), "its own draft it has");
    let all = files(&folder);
    assert_eq!(all.len(), 6, "{all:?}");
    for (name, bits) in all {
        assert!(bits == if ["drafts", "history"].contains(&name.as_str()) { 0o700 } else { 0o600 }, "{name} {bits:o}");
    }
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_cannot_be_kept_is_said_once_and_a_damaged_file_is_left_out() {
    let home = tempfile::tempdir().unwrap();
    let blocked = home.path().join("file");
    fs::write(&blocked, "").unwrap();
    let (told, mut heard) = tokio::sync::mpsc::channel(8);
    let keeper = Keeper::start(blocked, "t".into(), told).unwrap();
    for draft in ["a", "ab"] {
        keeper.save(Unsaved { drafts: written(&[(spot("s"), draft)]), ..Unsaved::default() });
    }
    drop(keeper);
    let Some(Input::NotKept(why)) = heard.blocking_recv() else { panic!("nothing was said") };
    assert!(why.starts_with("What you write cannot be kept in "), "{why}");
    assert!(heard.blocking_recv().is_none());
    let mut gone = Drafts::new(home.path(), "gone");
    gone.save(&written(&[(spot("s"), "x")]), 0).unwrap();
    drop(gone);
    for (name, _) in files(&home.path().join("drafts")) {
        fs::write(home.path().join("drafts").join(name), "{not json").unwrap();
    }
    assert!(Drafts::new(home.path(), "next").recall(&spot("s")).unwrap().is_empty());
}

#[test]
fn drafts_that_nobody_comes_back_to_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let mut gone = Drafts::new(home.path(), "gone");
    let names: Vec<String> = (0..250).map(|n| format!("s{n}")).collect();
    gone.save(&written(&names.iter().map(|name| (spot(name), "x")).collect::<Vec<_>>()), 0).unwrap();
    drop(gone);
    Drafts::new(home.path(), "next").recall(&spot("none")).unwrap();
    let left = files(&home.path().join("drafts")).iter().filter(|(name, _)| name.ends_with(".json")).count();
    assert_eq!(left, 200);
}

#[test]
fn a_history_is_shared_by_all_terminals_and_bounded() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = (History::new(home.path()), History::new(home.path()));
    let paste = SavedText { text: "see \u{1}".into(), pastes: vec![Arc::from("a\nb\n")] };
    one.append(&[("/f".into(), text("one")), ("/g".into(), text("elsewhere"))]).unwrap();
    two.append(&[("/f".into(), paste.clone())]).unwrap();
    assert_eq!(one.read("/f"), [text("one"), paste]);
    let many: Vec<_> = (0..1_000).map(|n| ("/f".to_owned(), text(&format!("message {n}")))).collect();
    one.append(&many).unwrap();
    let read = two.read("/f");
    assert_eq!((read.len(), read.last()), (200, Some(&text("message 999"))));
    // The file itself does not grow without end either.
    let of_folder = files(&home.path().join("history"));
    assert_eq!(of_folder.len(), 3, "{of_folder:?}");
    let size = |name: &str| fs::metadata(home.path().join("history").join(name)).unwrap().len();
    assert!(of_folder.iter().all(|(name, _)| size(name) < 30_000));
}
