use hames_protocol::api::{LogPage, SessionView};
use hames_protocol::{Delivery, Envelope, Event, Part, Pending, TextDone};

use super::super::delete::Delete;
use super::*;

fn said(seq: u64) -> Envelope {
    let event = Event::TextDone(TextDone { index: 0, text: "x".into(), cut: None });
    Envelope { seq: Some(seq), ..Envelope::detached(seq, event) }
}

fn view() -> SessionView {
    let pending =
        Pending { id: "p".into(), parts: vec![Part::text("later")], delivery: Delivery::Queue, idempotency_id: None };
    let proposals = ["a.rs", "b.rs", ODD, "d.rs", "e.rs"].map(|name| format!("/home/ada/lathe/{name}")).to_vec();
    SessionView { pending: vec![pending], proposals, ..kit::view(row("s1", "mend the lathe")) }
}

fn answer(stand: &mut Stand, layer: &mut Delete, older: bool) {
    for (ticket, request) in stand.asked() {
        let answer = match request {
            Request::View(_) => Answer::View(Box::new(view())),
            Request::Page { .. } => Answer::Page(LogPage { events: vec![said(1), said(2)], older, newer: false }),
            other => panic!("{other:?}"),
        };
        layer.answer(ticket, Ok(answer), &mut stand.cx());
    }
}

#[test]
fn it_says_what_goes_before_anything_does() {
    let mut stand = Stand::default();
    let mut layer = Delete::of(row("s1", "mend the lathe"), &mut stand.cx());
    assert!(stand.screen(&mut layer, 80, 22).contains("3 turns, up to 40 events"));
    answer(&mut stand, &mut layer, false);
    let shown = stand.screens(&mut layer);
    assert!(shown.contains("3 turns, 2 messages, 2 events."));
    compare("layer-delete", &shown);
    stand.at_every_size(&mut layer);
    let mut layer = Delete::of(row("s1", "mend the lathe"), &mut stand.cx());
    answer(&mut stand, &mut layer, true);
    assert!(stand.screen(&mut layer, 80, 22).contains("3 turns, more than 2 messages, up to 40 events."));
}

#[test]
fn only_yes_deletes_and_the_session_on_the_screen_is_left() {
    for (input, goes) in [
        (key(KeyCode::Enter), false),
        (key(KeyCode::Esc), false),
        (key(KeyCode::Char('n')), false),
        (key(KeyCode::Char('y')), true),
    ] {
        let mut stand = Stand::showing(row("s1", "mend the lathe"));
        let mut layer = Delete::of(row("s1", "mend the lathe"), &mut stand.cx());
        answer(&mut stand, &mut layer, false);
        let outcome = stand.give(&mut layer, &input);
        let asked = stand.asked();
        assert_eq!(asked.iter().any(|(_, request)| matches!(request, Request::Delete(_))), goes, "{input:?}");
        assert_eq!(went(&outcome), if goes { "taken" } else { "closed" });
        let Some((ticket, _)) = asked.first() else { continue };
        // It is asked once, however often somebody says yes.
        stand.give(&mut layer, &key(KeyCode::Char('y')));
        assert_eq!(stand.asked(), []);
        assert_eq!(went(&layer.answer(*ticket, Ok(Answer::Done), &mut stand.cx())), "closed");
        assert_eq!(stand.said(), ["\"mend the lathe\" is deleted."]);
        assert_eq!(effects(&mut stand), [Effect::Show(None)]);
    }
    // Another one goes from under the picker, and the conversation stays.
    let mut stand = Stand::showing(row("s2", "another"));
    let mut layer = Delete::of(row("s1", "mend the lathe"), &mut stand.cx());
    stand.asked();
    stand.give(&mut layer, &key(KeyCode::Char('y')));
    stand.answer(&mut layer, Ok(Answer::Done));
    assert_eq!(effects(&mut stand), []);
}

#[test]
fn a_refusal_stays_to_be_read_and_it_can_be_tried_again() {
    let mut stand = Stand::default();
    let mut layer = Delete::of(row("s1", "mend the lathe"), &mut stand.cx());
    answer(&mut stand, &mut layer, false);
    stand.give(&mut layer, &key(KeyCode::Char('y')));
    let why = "A run goes on; stop it first.";
    assert_eq!(went(&stand.answer(&mut layer, refusal(ApiErrorCode::Busy, why))), "taken");
    assert!(stand.screen(&mut layer, 80, 22).contains(why));
    stand.give(&mut layer, &key(KeyCode::Char('y')));
    assert_eq!(stand.asked().len(), 1);
}
