//! Files: mentions, attachments, paths that are dropped.

use hames_protocol::Part;
use hames_protocol::api::{ApiErrorCode, Attached};

use super::kit::*;
use crate::{Answer, Effect, Input, Request, Ticket};

fn query(request: &Request) -> &str {
    match request {
        Request::Files(_, query) => query,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mention_asks_at_once_then_when_typing_pauses_and_drops_stale_answers() {
    let mut desk = Desk::new();
    desk.write("see @");
    let first = desk.requests();
    assert_eq!(first.iter().map(|(_, r)| query(r)).collect::<Vec<_>>(), [""]);
    desk.write("ma");
    assert!(desk.requests().is_empty(), "typing is not over");
    assert!(desk.effects.iter().any(|effect| matches!(effect, Effect::WakeAt(at) if *at > 1_000)));
    desk.now += 30;
    desk.input(Input::Wake);
    assert!(desk.requests().is_empty());
    desk.now += 100;
    desk.input(Input::Wake);
    let second = desk.requests();
    assert_eq!(query(&second[0].1), "ma");
    assert!(!desk.files(first[0].0, &["old.rs"]), "the answer to an earlier question is nobody's");
    assert!(desk.hint().contains("begins") || desk.prompt.menu.as_ref().unwrap().is_empty());
    assert!(desk.files(second[0].0, &["src/main.rs", "Makefile"]));
    desk.press("down tab");
    assert_eq!(desk.text(), "see @Makefile ");
    desk.press("enter");
    assert_eq!(desk.texts(), ["see @Makefile "]);
}

#[test]
fn names_with_spaces_are_quoted_and_folders_are_gone_into() {
    let mut desk = Desk::new();
    desk.write("@");
    let asked = desk.requests();
    desk.files(asked[0].0, &["my dir/"]);
    desk.press("enter");
    assert_eq!(desk.text(), "@\"my dir/");
    desk.now += 100;
    desk.input(Input::Wake);
    let asked = desk.requests();
    assert_eq!(query(&asked[0].1), "my dir/");
    desk.files(asked[0].0, &["my dir/a b.md"]);
    desk.press("enter");
    assert_eq!(desk.text(), "@\"my dir/a b.md\" ");
    assert!(desk.prompt.menu.is_none());
}

#[test]
fn enter_sends_where_the_name_is_written_whole_or_nothing_is_found() {
    let mut desk = Desk::new();
    desk.write("@");
    let asked = desk.requests();
    desk.files(asked[0].0, &["a.rs"]);
    desk.write("a.rs").press("enter");
    assert_eq!(desk.texts(), ["@a.rs"]);
    desk.write("ask @nobody").press("enter");
    assert_eq!(desk.texts()[1], "ask @nobody");
    desk.write("me@host").press("enter");
    assert_eq!(desk.texts()[2], "me@host");
}

#[test]
fn a_refused_search_for_files_is_said_and_costs_nothing() {
    let mut desk = Desk::new();
    desk.write("@");
    let asked = desk.requests();
    desk.answer(asked[0].0, refused(ApiErrorCode::NotFound, "the folder is gone"));
    assert!(desk.hint().contains("the folder is gone"));
    assert_eq!(desk.text(), "@");
}

fn image() -> Vec<Part> {
    vec![Part::text("Attached file a.png: not shown, because it is a picture of ours.")]
}

/// The ticket under which a path is read.
fn reading(desk: &mut Desk) -> (Ticket, String) {
    let found = desk.effects.iter().find_map(|effect| match effect {
        Effect::ReadFile(ticket, path) => Some((*ticket, path.clone())),
        _ => None,
    });
    desk.effects.clear();
    found.unwrap()
}

#[test]
fn a_dropped_path_offers_itself_and_goes_along_once_uploaded() {
    let mut desk = Desk::new();
    desk.write("what is this? ").paste("'/home/me/a b.png' ");
    assert!(desk.hint().starts_with("Tab attaches a b.png instead"), "{}", desk.hint());
    desk.press("tab");
    assert_eq!(desk.text(), "what is this? ");
    let (ticket, path) = reading(&mut desk);
    assert_eq!(path, "/home/me/a b.png");
    assert!(desk.answer(ticket, Ok(Answer::Read { name: String::new(), bytes: vec![1, 2] })));
    let asked = desk.requests();
    assert_eq!(asked[0].1, Request::Attach { session: session(), name: "a b.png".into(), bytes: vec![1, 2] });
    desk.press("enter");
    assert!(desk.sent.is_empty());
    assert!(desk.hint().starts_with("it is sent once a b.png is uploaded"), "{}", desk.hint());
    assert!(desk.answer(asked[0].0, Ok(Answer::Attached(Attached { parts: image() }))));
    assert_eq!(desk.sent[0].0, [vec![Part::text("what is this? ")], image()].concat());
    assert!(desk.prompt.now.attachments.is_empty());
}

#[test]
fn a_file_is_attached_by_name_too() {
    for (named, read) in [
        ("notes.md", "/home/me/work/notes.md"),
        ("\"my notes.md\"", "/home/me/work/my notes.md"),
        ("/tmp/a\\ b.png", "/tmp/a b.png"),
        ("~/x.png", "~/x.png"),
        ("/etc", "/etc"),
    ] {
        let mut desk = Desk::new();
        desk.write(&format!("/attach {named}")).press("enter");
        assert_eq!((reading(&mut desk).1.as_str(), desk.text()), (read, String::new()), "{named}");
    }
    let mut desk = Desk::new();
    desk.paste("");
    assert!(matches!(desk.effects.pop(), Some(Effect::PasteImage(_))), "an empty paste is a clipboard with an image");
}

#[test]
fn an_offer_is_only_an_offer() {
    let mut desk = Desk::new();
    desk.paste("/home/me/a.png").write(" is missing").press("tab enter");
    assert_eq!(desk.texts(), ["/home/me/a.png is missing"]);
    desk.paste("/home/me/a.png").press("enter");
    assert_eq!(desk.texts()[1], "/home/me/a.png");
    desk.paste("/home/me/a.png").press("esc");
    assert!(!desk.hint().contains("Tab"), "{}", desk.hint());
}

#[test]
fn an_image_that_is_not_in_the_clipboard_stands_in_nobodys_way() {
    let why = "no program here gives the clipboard's image; install wl-clipboard, xclip or pngpaste";
    let mut desk = Desk::new();
    desk.paste("");
    let Some(Effect::PasteImage(ticket)) = desk.effects.pop() else { panic!() };
    desk.write("look").press("enter");
    desk.answer(ticket, refused(ApiErrorCode::Unknown, why));
    assert!(desk.effects.contains(&Effect::Say(format!("Not attached, clipboard image: {why}"))));
    assert_eq!((desk.sent.len(), desk.text()), (0, "look".into()), "it was to go along, so it is not sent without it");
    assert!(desk.prompt.now.attachments.is_empty() && desk.hint().contains("not sent"), "{}", desk.hint());
    desk.press("enter");
    assert_eq!(desk.texts(), ["look"]);
}

#[test]
fn what_fails_is_said_stays_and_is_tried_again() {
    let mut desk = Desk::new();
    desk.paste("/tmp/shot.png").press("tab");
    let (ticket, _) = reading(&mut desk);
    desk.write("look").press("enter");
    desk.answer(ticket, refused(ApiErrorCode::Invalid, "it is no file"));
    assert!(desk.sent.is_empty());
    assert!(desk.effects.contains(&Effect::Say("Not attached, shot.png: it is no file".into())));
    assert!(desk.hint().contains("not sent · shot.png: it is no file · Enter tries again"), "{}", desk.hint());
    desk.press("enter");
    let (ticket, _) = reading(&mut desk);
    desk.answer(ticket, Ok(Answer::Read { name: "shot.png".into(), bytes: vec![7] }));
    let asked = desk.requests();
    desk.answer(asked[0].0, refused(ApiErrorCode::TooLarge, "8 MB are possible"));
    assert!(desk.hint().contains("shot.png: 8 MB are possible"), "{}", desk.hint());
    assert_eq!(desk.text(), "look");
    // The bytes are kept: trying again does not read them again.
    desk.press("enter");
    let asked = desk.requests();
    assert!(matches!(&asked[0].1, Request::Attach { bytes, .. } if bytes == &[7]));
    desk.answer(asked[0].0, Ok(Answer::Attached(Attached { parts: image() })));
    assert_eq!(desk.sent.len(), 1);
}

#[test]
fn attachments_are_taken_off_by_keys() {
    let mut desk = Desk::new();
    desk.paste("/a/1.png /a/2.png /a/3.png").press("tab").write("x").press("home left");
    assert!(desk.hint().starts_with("Del takes it off"), "{}", desk.hint());
    desk.press("left delete");
    let names = |desk: &Desk| desk.prompt.now.attachments.iter().map(|a| a.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&desk), ["1.png", "3.png"]);
    desk.press("back");
    assert_eq!(names(&desk), ["1.png"]);
    desk.press("esc back back");
    assert_eq!(names(&desk), Vec::<String>::new());
    assert_eq!(desk.press("right back").text(), "");
    desk.paste(&"/a/b.png ".repeat(10)).press("tab").paste("/a/c.png").press("tab");
    assert_eq!((names(&desk).len(), desk.text()), (10, "/a/c.png".into()));
    assert!(desk.hint().contains("10 files can go along"), "{}", desk.hint());
}

#[test]
fn files_wait_for_a_session_to_keep_them() {
    let mut desk = Desk::new();
    (desk.face.session, desk.face.view) = (None, None);
    desk.paste("/a/b.png").press("tab");
    let (ticket, _) = reading(&mut desk);
    desk.answer(ticket, Ok(Answer::Read { name: "b.png".into(), bytes: vec![1] }));
    assert!(desk.requests().is_empty() && desk.prompt.wants_session());
    desk.face.session = Some(session());
    desk.input(Input::Wake);
    assert!(matches!(desk.requests()[0].1, Request::Attach { .. }));
    assert!(!desk.prompt.wants_session());
}

#[test]
fn an_upload_ends_where_it_was_begun_though_another_session_is_shown() {
    let mut desk = Desk::new();
    desk.paste("/a/b.png").press("tab");
    let (ticket, _) = reading(&mut desk);
    desk.write("first");
    desk.face.session = Some("s2".into());
    desk.write("second");
    desk.answer(ticket, Ok(Answer::Read { name: "b.png".into(), bytes: vec![1] }));
    let asked = desk.requests();
    assert!(matches!(&asked[0].1, Request::Attach { session: to, .. } if *to == session()));
    desk.answer(asked[0].0, Ok(Answer::Attached(Attached { parts: image() })));
    desk.press("enter");
    assert_eq!(desk.sent[0].0.len(), 1);
    desk.face.session = Some(session());
    desk.press("enter");
    assert_eq!(desk.sent[1].0, [vec![Part::text("first")], image()].concat());
}
