//! Writing: keys, pastes, history, lists of commands, drafts of sessions.

use hames_protocol::{Delivery, SessionId};

use super::kit::*;
use crate::prompt::{Command, Prompt, Recalled, SavedDraft, Spot};
use crate::{Answer, Effect, Input};

#[test]
fn a_pasted_newline_never_submits_and_an_enter_behind_it_does_once() {
    for (pasted, sent) in [
        ("a\nb\r\nc", "a\nb\nc"),
        ("one\rtwo\n", "one\ntwo\n"),
        ("x\u{1b}[31m\u{1b}[201~\r\ny", "x\ny"),
        ("ends with @fi", "ends with @fi"),
        ("/usr/bin/env\nis", "/usr/bin/env\nis"),
    ] {
        let mut desk = Desk::new();
        desk.paste(pasted);
        assert!(desk.sent.is_empty() && desk.commands.is_empty(), "{pasted:?}");
        assert_eq!(desk.text(), sent);
        desk.press("enter");
        assert_eq!(desk.texts(), [sent], "{pasted:?}");
        desk.press("enter");
        assert_eq!((desk.sent.len(), desk.text()), (1, String::new()));
    }
}

#[test]
fn a_large_paste_is_one_unit_and_goes_out_whole() {
    let mut desk = Desk::new();
    let long = "2026 line\r\n".repeat(500_000);
    desk.write("see ").paste(&long).press("enter");
    assert_eq!(desk.texts()[0], format!("see {}", long.replace("\r\n", "\n")));
    assert_eq!(desk.text(), "");
}

#[test]
fn typed_text_goes_out_by_the_key_that_was_pressed() {
    for (key, delivery) in [
        ("enter", Delivery::Interrupt),
        ("alt+enter", Delivery::Queue),
        ("ctrl+s", Delivery::Steer),
        ("ctrl+enter", Delivery::Steer),
    ] {
        let mut desk = Desk::new();
        desk.write("use").press("shift+enter").write("pnpm").press(key);
        assert_eq!(desk.texts(), ["use\npnpm"]);
        assert_eq!(desk.sent[0].1, delivery);
    }
    let mut desk = Desk::new();
    assert!(!desk.input(Input::Key(key("enter"))), "an empty prompt passes Enter on");
    desk.write("  ").press("enter");
    assert!(desk.sent.is_empty());
}

#[test]
fn deleted_words_and_lines_can_be_put_back() {
    let mut desk = Desk::new();
    desk.write("one two three").press("ctrl+w ctrl+w");
    assert_eq!(desk.text(), "one ");
    desk.press("ctrl+y");
    assert_eq!(desk.text(), "one two three");
    desk.press("ctrl+a ctrl+k");
    assert_eq!(desk.text(), "");
    desk.press("ctrl+y alt+y");
    assert_eq!(desk.text(), "two three");
    desk.press("alt+u ctrl+_");
    assert_eq!(desk.text(), "");
    desk.press("ctrl+shift+z");
    assert_eq!(desk.text(), "one two three");
    desk.press("home shift+right shift+right back");
    assert_eq!(desk.text(), "e two three");
    desk.press("alt+s alt+c");
    assert_eq!(desk.effects.pop(), Some(Effect::Copy("e two three".into())));
    desk.write("x");
    assert_eq!(desk.text(), "x");
}

#[test]
fn history_comes_by_folder_and_keeps_what_was_being_written() {
    let mut desk = Desk::new();
    desk.write("first").press("enter").write("second").press("enter").write("draft");
    desk.press("up");
    assert_eq!(desk.text(), "second");
    desk.write("!").press("up");
    assert_eq!(desk.text(), "first");
    desk.press("down down");
    assert_eq!(desk.text(), "draft");
    desk.press("up");
    assert_eq!(desk.text(), "second!", "what was changed on the way is kept");
    desk.press("enter");
    assert_eq!(desk.texts()[2], "second!");
    desk.view().row.folder = "/other".into();
    desk.press("up");
    assert_eq!(desk.text(), "");
    desk.view().row.folder = "/home/me/work".into();
    desk.press("up");
    assert_eq!(desk.text(), "second!");
    desk.press("ctrl+c alt+r").write("fir");
    assert!(desk.hint().contains("search: fir"), "{}", desk.hint());
    desk.press("enter");
    assert_eq!((desk.text(), desk.sent.len()), ("first".into(), 3));
}

#[test]
fn ctrl_c_empties_the_prompt_only_where_nothing_runs_and_loses_nothing() {
    let mut desk = Desk::new();
    desk.view().run = Some(run(Default::default(), &[]));
    desk.write("important");
    assert!(!desk.input(Input::Key(key("ctrl+c"))));
    assert_eq!(desk.text(), "important");
    desk.view().run = None;
    assert!(desk.input(Input::Key(key("ctrl+c"))));
    assert_eq!(desk.text(), "");
    assert!(!desk.input(Input::Key(key("ctrl+c"))));
    assert!(!desk.input(Input::Key(key("ctrl+d"))));
    desk.press("up");
    assert_eq!(desk.text(), "important");
}

#[test]
fn commands_run_are_completed_or_said_and_never_sent() {
    let mut desk = Desk::new();
    desk.write("/comp").press("enter");
    assert_eq!(desk.commands, [Command::Compact { dry_run: false }]);
    desk.write("/ren").press("tab").write("better name").press("enter");
    assert_eq!(desk.commands[1], Command::Rename(Some("better name".into())));
    desk.write("/stop --all").press("enter");
    assert_eq!(desk.commands[2], Command::Stop { all: true });
    desk.write("/stee").press("enter");
    assert_eq!(desk.text(), "/steer ", "a command that needs text waits for it");
    desk.write("use pnpm").press("enter");
    assert_eq!((desk.texts(), desk.sent[0].1), (vec!["use pnpm".into()], Delivery::Steer));
    for text in ["/xyzzy do", "/usr", "/todos are stale"] {
        desk.write(text).press("esc enter");
        assert_eq!((desk.text(), desk.sent.len(), desk.commands.len()), (text.into(), 1, 3));
        assert!(desk.hint().contains("a space in front sends it as text"), "{}", desk.hint());
        desk.press("home").write(" ").press("enter");
        assert_eq!(desk.sent.len(), 2);
        desk.sent.pop();
    }
    desk.write("/sesions").press("esc enter");
    assert!(desk.hint().contains("there is no command /sesions; did you mean /sessions?"), "{}", desk.hint());
    desk.press("ctrl+u").write("// note").press("enter").write("/usr/bin is empty").press("enter");
    assert_eq!(desk.texts()[1..], ["// note", "/usr/bin is empty"]);
    assert_eq!(desk.commands.len(), 3);
}

#[test]
fn arrows_choose_in_the_list_of_commands_and_esc_closes_it_for_good() {
    let mut desk = Desk::new();
    desk.write("/mo").press("down down enter");
    assert_eq!(desk.commands, [Command::Mode(None)]);
    desk.write("/mo").press("esc").write("d");
    assert!(desk.prompt.menu.is_none(), "a list that was closed stays closed");
    desk.press("ctrl+u").write("/mo");
    assert!(desk.prompt.menu.is_some());
    desk.press("up enter");
    assert_eq!(desk.commands.len(), 2);
}

#[test]
fn a_question_mark_alone_asks_for_the_keys() {
    let mut desk = Desk::new();
    desk.write("?");
    assert_eq!((desk.commands.as_slice(), desk.text()), ([Command::Keys].as_slice(), String::new()));
    desk.write("really?").press("enter");
    desk.write(" ?").press("enter");
    assert_eq!(desk.texts(), ["really?", " ?"]);
}

#[test]
fn the_queue_is_paused_and_resumed_by_a_command() {
    let mut desk = Desk::new();
    desk.view().paused = true;
    desk.write("/queue").press("enter");
    let asked = desk.requests();
    assert_eq!(asked[0].1, crate::Request::PausePending(session(), false));
    desk.write("/queue then lint").press("enter");
    assert_eq!((desk.texts(), desk.sent[0].1), (vec!["then lint".into()], Delivery::Queue));
}

#[test]
fn the_editor_gets_the_whole_text_and_what_it_gives_back_is_the_draft() {
    let mut desk = Desk::new();
    let log = "log\n".repeat(40);
    desk.write("see ").paste(&log).press("ctrl+e");
    let Some(Effect::Edit(ticket, text)) = desk.effects.pop() else { panic!() };
    assert_eq!(text, format!("see {log}"));
    desk.press("enter");
    assert!(desk.sent.is_empty(), "while the editor has it nothing is sent");
    assert!(desk.answer(ticket, Ok(Answer::Edited(Some(format!("look at {log}"))))));
    assert_eq!((desk.text(), desk.prompt.now.draft.piece().chips().len()), (format!("look at {log}"), 1));
    desk.press("alt+u");
    assert_eq!(desk.text(), format!("see {log}"));
    desk.press("ctrl+e");
    let Some(Effect::Edit(ticket, _)) = desk.effects.pop() else { panic!() };
    desk.answer(ticket, Ok(Answer::Edited(None)));
    desk.press("enter");
    assert_eq!(desk.texts(), [format!("see {log}")]);
}

#[test]
fn every_session_has_its_own_draft_and_all_come_back_after_the_end() {
    let mut desk = Desk::new();
    let log = "log\n".repeat(40);
    desk.write("for one ").paste(&log);
    desk.face.session = Some(SessionId::from("s2"));
    desk.write("for two");
    assert_eq!(desk.text(), "for two");
    desk.face.session = Some(session());
    desk.press("end");
    assert_eq!(desk.text(), format!("for one {log}"));
    desk.press("enter").write("next");
    let unsaved = desk.prompt.unsaved("/home/me/work");
    assert_eq!(desk.prompt.unsaved("/home/me/work").sent, [], "what was sent is given once");
    desk.prompt = Prompt::default();
    desk.write("typed ");
    let sent: Vec<_> = unsaved.sent.into_iter().map(|(_, text)| text).collect();
    for (spot, drafts) in unsaved.drafts {
        // As a file would keep it.
        let text = serde_json::to_string(&drafts).unwrap();
        let drafts = serde_json::from_str(&text).unwrap();
        let (sent, folds) = (sent.clone(), Default::default());
        desk.prompt.recall(&Recalled { spot, folder: "/home/me/work".into(), drafts, sent, folds });
    }
    assert_eq!(desk.press("end").text(), "next\ntyped ", "what was typed meanwhile goes on behind it");
    desk.press("up up up");
    assert_eq!(desk.text(), format!("for one {log}"));
    desk.face.session = Some(SessionId::from("s2"));
    assert_eq!(desk.press("end").text(), "for two");
    // A file that somebody changed is text, whatever it holds.
    let odd: Vec<SavedDraft> =
        serde_json::from_str(r#"[{"text":{"text":"\u0001 x \u001b[31m","pastes":[]}}]"#).unwrap();
    let spot = Spot::Folder("/home/me/work".into());
    let folds = Default::default();
    desk.prompt.recall(&Recalled { spot, folder: "/home/me/work".into(), drafts: odd, sent, folds });
    desk.face.session = None;
    assert_eq!(desk.press("end").text(), " x ");
}

#[test]
fn what_has_to_be_kept_changes_its_mark() {
    let mut desk = Desk::new();
    let log = "log\n".repeat(40);
    let mut marks = vec![desk.prompt.mark()];
    let mut see = |desk: &Desk| {
        let mark = desk.prompt.mark();
        assert_ne!(marks.last(), Some(&mark));
        marks.push(mark);
    };
    see(desk.write("a"));
    see(desk.paste(&log));
    see(desk.press("back").paste(&log));
    see(desk.press("enter"));
    desk.face.session = Some(SessionId::from("s2"));
    see(desk.write("b"));
    let mark = desk.prompt.mark();
    desk.press("left right");
    assert_eq!(desk.prompt.mark(), mark, "a cursor is nothing to keep");
}

#[test]
fn a_draft_goes_along_into_the_session_that_is_made_for_it() {
    let mut desk = Desk::new();
    desk.face.session = None;
    desk.face.view = None;
    desk.write("begin");
    desk.face.session = Some(SessionId::from("new"));
    assert_eq!(desk.press("end").text(), "begin");
}

#[test]
fn what_could_not_be_sent_comes_back_ahead_of_what_was_written_since() {
    let mut desk = Desk::new();
    desk.write("first").press("enter").write("then");
    let draft = desk.drafts.pop().unwrap();
    desk.prompt.give_back(Some(session()), draft);
    assert_eq!(desk.text(), "first\nthen");
    desk.write("!");
    assert_eq!(desk.text(), "first\nthen!");
}

#[test]
fn without_the_server_a_message_waits_for_it_and_can_be_held_back() {
    let mut desk = Desk::new();
    desk.face.link = crate::Link::Connecting;
    desk.write("hello").press("enter");
    assert!(desk.sent.is_empty() && desk.hint().starts_with("it is sent once the server is there"), "{}", desk.hint());
    desk.face.link = crate::Link::Up { notice: None };
    desk.input(Input::Link(desk.face.link.clone()));
    assert_eq!(desk.texts(), ["hello"]);
    desk.face.link = crate::Link::Lost("gone".into());
    desk.write("again").press("enter esc");
    desk.face.link = crate::Link::Up { notice: None };
    desk.input(Input::Link(desk.face.link.clone()));
    assert_eq!((desk.sent.len(), desk.text()), (1, "again".into()));
    desk.face.link = crate::Link::Lost("gone".into());
    desk.press("enter").write("!");
    assert!(desk.hint().contains("you went on writing"), "{}", desk.hint());
}
