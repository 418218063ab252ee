//! Messages that wait: shown, withdrawn, edited, converted, moved, and what comes back of them.

use hames_protocol::api::{ApiErrorCode, EditPending};
use hames_protocol::{Delivery, Part, Pending, PendingId};

use super::kit::*;
use crate::prompt::pending::{PendingSection, no_change};
use crate::{Answer, Request, Sight};

fn edit(id: &str, change: EditPending) -> Request {
    Request::EditPending(session(), PendingId::from(id), change)
}

fn waiting() -> Vec<Pending> {
    vec![
        pending("s1", Delivery::Steer, "stop using npm"),
        pending("q1", Delivery::Queue, "then lint"),
        pending("q2", Delivery::Queue, "then test"),
    ]
}

fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.view().pending = waiting();
    desk.view().run = Some(run(Default::default(), &[]));
    desk
}

#[test]
fn keys_withdraw_convert_move_and_pause() {
    let before = |id: &str| EditPending { before: Some(PendingId::from(id)), ..no_change() };
    let deliver = |delivery| EditPending { delivery: Some(delivery), ..no_change() };
    let table = [
        ("ctrl+q delete", Some(Request::CancelPending(session(), PendingId::from("s1")))),
        ("ctrl+q down back", Some(Request::CancelPending(session(), PendingId::from("q1")))),
        ("ctrl+q q", Some(edit("s1", deliver(Delivery::Queue)))),
        ("ctrl+q down s", Some(edit("q1", deliver(Delivery::Steer)))),
        ("ctrl+q down n", Some(edit("q1", deliver(Delivery::Interrupt)))),
        ("ctrl+q s", None),
        ("ctrl+q down alt+down", Some(edit("q1", EditPending { last: true, ..no_change() }))),
        ("ctrl+q down down alt+up", Some(edit("q2", before("q1")))),
        // A queued one cannot stand before a steer.
        ("ctrl+q down alt+up", None),
        ("ctrl+q alt+up", None),
        ("ctrl+q down down alt+down", None),
        ("ctrl+q p", Some(Request::PausePending(session(), true))),
    ];
    for (keys, asked) in table {
        let mut desk = desk();
        desk.press(keys);
        let made: Vec<Request> = desk.requests().into_iter().map(|(_, request)| request).collect();
        assert_eq!(made, Vec::from_iter(asked), "{keys}");
        assert_eq!((desk.text(), desk.sent.len()), (String::new(), 0));
    }
    let mut three = desk();
    three.view().pending.push(pending("q3", Delivery::Queue, "x"));
    three.press("ctrl+q down alt+down");
    assert_eq!(three.requests()[0].1, edit("q1", before("q3")));
}

#[test]
fn a_message_is_edited_in_the_prompt_and_put_back_in_its_place() {
    let mut desk = desk();
    desk.write("half a thought").press("ctrl+q down enter");
    assert_eq!(desk.text(), "then lint");
    desk.write(" --fix").press("enter");
    let parts = Some(vec![Part::text("then lint --fix")]);
    let asked = desk.requests();
    assert_eq!(asked[0].1, edit("q1", EditPending { parts, ..no_change() }));
    assert_eq!((desk.text(), desk.sent.len()), ("half a thought".into(), 0));
    assert!(desk.answer(asked[0].0, Ok(Answer::Done)));
    assert_eq!(desk.text(), "half a thought");
}

#[test]
fn an_edit_that_comes_too_late_or_is_left_loses_nothing() {
    let mut late = desk();
    late.write("half a thought").press("ctrl+q down enter").write("!").press("enter");
    let asked = late.requests();
    late.answer(asked[0].0, refused(ApiErrorCode::NotFound, "no such message"));
    assert_eq!(late.text(), "then lint!\nhalf a thought");
    assert!(late.hint().starts_with("too late"), "{}", late.hint());

    let mut left = desk();
    left.write("half a thought").press("ctrl+q down enter").write("!").press("esc");
    assert_eq!(left.text(), "half a thought");
    left.press("ctrl+u up");
    assert_eq!(left.text(), "then lint!");

    // Delivered while it was edited: what is written is a message of its own.
    let mut gone = desk();
    gone.press("ctrl+q down enter").write("!");
    gone.view().pending.clear();
    gone.press("enter");
    assert_eq!(gone.texts(), ["then lint!"]);
}

#[test]
fn a_refused_withdrawal_is_said() {
    let mut desk = desk();
    desk.press("ctrl+q delete");
    let asked = desk.requests();
    desk.answer(asked[0].0, refused(ApiErrorCode::NotFound, "no such message"));
    assert!(desk.hint().starts_with("too late: the message was delivered already"), "{}", desk.hint());
}

#[test]
fn what_an_abort_returns_comes_back_in_order_ahead_of_what_is_written() {
    let mut desk = desk();
    desk.write("mean");
    let mut returned = vec![pending("a", Delivery::Interrupt, "first"), pending("b", Delivery::Steer, "second")];
    returned[1].parts.push(Part::text("Attached file n.md:\n```\nx\n```"));
    desk.prompt.take_back(&session(), returned);
    desk.write("while");
    assert_eq!(desk.text(), "first\nsecond\nmeanwhile");
    assert_eq!(desk.prompt.now.attachments[0].name(), "n.md");
    desk.press("enter");
    assert_eq!(desk.sent[0].0.len(), 2);
}

#[test]
fn what_returns_while_it_is_edited_comes_back_as_what_it_has_become() {
    let mut desk = desk();
    desk.write("draft").press("ctrl+q enter").write("!");
    assert_eq!(desk.text(), "stop using npm!");
    desk.prompt.take_back(&session(), vec![pending("x", Delivery::Interrupt, "now"), waiting().remove(0)]);
    assert_eq!(desk.text(), "now\nstop using npm!\ndraft");
    // Another one that is edited stays in the prompt; what returns waits behind it.
    let mut other = self::desk();
    other.write("draft").press("ctrl+q down enter");
    other.prompt.take_back(&session(), vec![pending("x", Delivery::Interrupt, "now")]);
    assert_eq!(other.text(), "then lint");
    other.press("enter");
    assert_eq!(other.text(), "now\ndraft");
}

#[test]
fn the_mark_follows_its_message_and_letters_go_on_in_the_prompt() {
    let mut desk = desk();
    desk.press("ctrl+q down");
    desk.view().pending.remove(0);
    desk.press("delete");
    assert_eq!(desk.requests()[0].1, Request::CancelPending(session(), PendingId::from("q1")));
    desk.write("xyz");
    assert_eq!(desk.text(), "xyz");
    desk.press("ctrl+q down down");
    desk.write("!");
    assert_eq!(desk.text(), "xyz!", "below the last one is the prompt");
    desk.view().pending.clear();
    desk.press("ctrl+q");
    assert!(desk.hint().starts_with("no message waits"), "{}", desk.hint());
}

#[test]
fn what_comes_back_of_another_session_waits_there() {
    let mut desk = desk();
    desk.write("one").press("ctrl+q down enter").write("!").press("enter");
    let asked = desk.requests();
    desk.face.session = Some("s2".into());
    desk.write("two");
    desk.prompt
        .take_back(&session(), vec![pending("a", Delivery::Steer, "first"), pending("b", Delivery::Steer, "second")]);
    desk.answer(asked[0].0, refused(ApiErrorCode::NotFound, "no such message"));
    assert_eq!(desk.text(), "two");
    desk.face.session = Some(session());
    assert_eq!(desk.press("end").text(), "then lint!\nfirst\nsecond\none");
}

/// Rows of the section in a width.
fn rows(section: &mut PendingSection, pending: &[Pending], width: u16) -> Vec<String> {
    let desk = Desk::new();
    let sight = Sight { face: &desk.face, keys: &desk.keys, theme: &desk.theme, now: 0 };
    let height = section.height(pending, width as usize) as u16;
    let area = ratatui::layout::Rect::new(0, 0, width, height);
    let mut buf = ratatui::buffer::Buffer::empty(area);
    section.draw(pending, false, false, area, &mut buf, sight.theme);
    let row = |y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect()
}

#[test]
fn a_fold_is_offered_only_where_there_is_more_to_see_in_this_width() {
    let mut section = PendingSection::default();
    let pending = [pending("a", Delivery::Queue, "a short line of words"), pending("b", Delivery::Steer, "two\nlines")];
    assert_eq!(
        rows(&mut section, &pending, 60),
        ["▾ Steer 1 · Queued 1", "   queued  a short line of words", " ▸ steer   two"]
    );
    assert_eq!(
        rows(&mut section, &pending, 24),
        ["▾ Steer 1 · Queued 1", " ▸ queued  a short line…", " ▸ steer   two"]
    );
}

#[test]
fn the_section_is_bounded_folds_and_opens_again_for_a_new_message() {
    let mut section = PendingSection::default();
    let mut many: Vec<Pending> =
        (0..40).map(|n| pending(&format!("p{n}"), Delivery::Queue, &format!("message {n}"))).collect();
    assert_eq!(rows(&mut section, &many, 60).len(), 9);
    assert_eq!(rows(&mut section, &many, 60)[0], "▾ Queued 40 · rows 1–8 of 40");
    let mut desk = Desk::new();
    desk.view().pending.clone_from(&many);
    desk.press("ctrl+q").press(&["down"; 20].join(" "));
    assert!(desk.screen(60, 24, false).contains("› ") || desk.screen(60, 40, false).contains("message 20"));
    desk.press("left");
    assert!(desk.screen(60, 24, false).contains("▸ Queued 40\n"), "{}", desk.screen(60, 24, false));
    many.push(pending("new", Delivery::Steer, "new"));
    desk.view().pending = many;
    assert!(desk.screen(60, 24, false).contains("▾ Steer 1 · Queued 40"));
}

#[test]
fn a_message_of_megabytes_is_shown_in_a_few_rows() {
    let mut desk = Desk::new();
    desk.view().pending = vec![pending("p", Delivery::Queue, &"漢字 x\n".repeat(700_000))];
    desk.press("ctrl+q right");
    let screen = desk.screen(60, 40, false);
    assert!(screen.contains("bytes in all") || screen.contains("rows 1–"), "{screen}");
    desk.press("enter enter");
    let asked = desk.requests();
    assert!(matches!(&asked[0].1, Request::EditPending(_, _, EditPending { parts: Some(_), .. })));
}
