use super::super::branch::{Branch, UpTo};
use super::super::export::Export;
use super::super::new::New;
use super::super::relocate::Relocate;
use super::super::rename::Rename;
use super::*;
use hames_protocol::SessionId;
use hames_protocol::api::BranchSession;

fn s1() -> SessionId {
    "s1".into()
}

fn clear(stand: &mut Stand, layer: &mut dyn Layer) {
    stand.give(layer, &ctrl('u'));
}

#[test]
fn screens() {
    let mut stand = Stand::default();
    let mut gone = row("s1", ODD);
    gone.folder_missing = true;
    let up_to = UpTo {
        seq: Some(4),
        says: "Copied is everything up to and with the answer \"Done.\": 4 messages.".into(),
        draft: None,
    };
    let mut layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Rename::form(&row("s1", "mend the lathe"))),
        Box::new(New::form("/home/ada/lathe", "", vec![])),
        Box::new(Relocate::form(&gone)),
        Box::new(Export::form(&gone)),
        Box::new(Branch::form(&row("s1", "mend the lathe"), "", up_to)),
    ];
    for layer in &mut layers {
        let name = layer.name();
        compare(&format!("layer-{name}"), &stand.screens(layer.as_mut()));
        stand.at_every_size(layer.as_mut());
    }
}

#[test]
fn a_name_is_given_refused_and_mended() {
    let mut stand = Stand::default();
    let mut layer = Rename::form(&row("s1", "mend the lathe"));
    clear(&mut stand, &mut layer);
    stand.give(&mut layer, &key(KeyCode::Enter));
    assert_eq!(stand.asked(), []);
    assert!(stand.screen(&mut layer, 80, 22).contains("A session has a name."));
    stand.type_text(&mut layer, " gears ");
    assert!(!stand.screen(&mut layer, 80, 22).contains("A session has a name."));
    stand.give(&mut layer, &key(KeyCode::Enter));
    stand.type_text(&mut layer, "typed while it waits");
    let (ticket, request) = one(&mut stand);
    assert_eq!(request, Request::Rename(s1(), "gears".into()));
    layer.answer(ticket, refusal(ApiErrorCode::NameTaken, "The name is taken in this folder."), &mut stand.cx());
    let shown = stand.screen(&mut layer, 80, 22);
    assert!(shown.contains("The name is taken in this folder.") && shown.contains("›  gears"), "{shown}");
    stand.type_text(&mut layer, "2");
    stand.give(&mut layer, &key(KeyCode::Enter));
    assert_eq!(went(&stand.answer(&mut layer, Ok(Answer::Row(row("s1", "gears 2"))))), "closed");
    assert_eq!(stand.said(), ["It is called \"gears 2\" from now on."]);
}

#[test]
fn a_line_that_a_command_gave_is_done_at_once_and_stays_to_be_mended() {
    let mut stand = Stand::default();
    let mut layer = Rename::form(&row("s1", "mend the lathe")).given(" gears ", &mut stand.cx()).unwrap();
    let (ticket, request) = one(&mut stand);
    assert_eq!(request, Request::Rename(s1(), "gears".into()));
    layer.answer(ticket, refusal(ApiErrorCode::NameTaken, "there is one already"), &mut stand.cx());
    let shown = stand.screen(&mut layer, 80, 22);
    assert!(shown.contains("›  gears") && shown.contains("Not done: there is one already"), "{shown}");
    assert!(Rename::form(&row("s1", "x")).given("x", &mut stand.cx()).is_none(), "nothing to do");
}

#[test]
fn the_same_name_or_folder_asks_nothing() {
    let mut stand = Stand::default();
    assert_eq!(went(&stand.give(&mut Rename::form(&row("s1", "x")), &key(KeyCode::Enter))), "closed");
    assert_eq!(went(&stand.give(&mut Relocate::form(&row("s1", "x")), &key(KeyCode::Enter))), "closed");
    assert_eq!(stand.asked(), []);
}

#[test]
fn a_folder_is_written_from_home_or_from_here() {
    let mut stand = Stand::default();
    stand.face.home = Some("/home/ada".into());
    for (written, asked) in
        [("~/bench", "/home/ada/bench"), ("../mill", "/home/ada/lathe/../mill"), ("/srv/漢字", "/srv/漢字")]
    {
        let mut layer = Relocate::form(&row("s1", "x"));
        clear(&mut stand, &mut layer);
        stand.give(&mut layer, &Input::Paste(written.into()));
        stand.give(&mut layer, &key(KeyCode::Enter));
        let (ticket, request) = one(&mut stand);
        assert_eq!(request, Request::Move(s1(), asked.into()));
        let why = format!("{asked} is no folder. Make it, or give another one.");
        layer.answer(ticket, refusal(ApiErrorCode::Invalid, &why), &mut stand.cx());
        assert!(stand.screen(&mut layer, 120, 22).contains("is no folder. Make it"));
    }
}

#[test]
fn an_export_says_where_it_is() {
    let mut stand = Stand::default();
    let mut layer = Export::form(&row("s1", "mend the lathe"));
    stand.give(&mut layer, &key(KeyCode::Enter));
    let [Effect::SaveExport(ticket, session, path)] = &effects(&mut stand)[..] else { panic!() };
    assert_eq!((session, path.as_str()), (&s1(), "mend-the-lathe.jsonl"));
    assert!(stand.screen(&mut layer, 80, 22).contains("writing …"));
    let why = "/home/ada/lathe/mend-the-lathe.jsonl cannot be written: File exists";
    layer.answer(*ticket, refusal(ApiErrorCode::Unknown, why), &mut stand.cx());
    assert!(stand.screen(&mut layer, 80, 22).contains("Not done: /home/ada/lathe/mend-the-lathe.jsonl"));
    stand.give(&mut layer, &key(KeyCode::Enter));
    let [Effect::SaveExport(again, ..)] = &effects(&mut stand)[..] else { panic!() };
    assert_eq!(
        went(&layer.answer(*ticket, Ok(Answer::Saved("old".into())), &mut stand.cx())),
        "passed",
        "it is outdated"
    );
    assert_eq!(went(&layer.answer(*again, Ok(Answer::Saved("/x/y.jsonl".into())), &mut stand.cx())), "closed");
    assert_eq!(stand.said(), ["Written to /x/y.jsonl"]);
}

#[test]
fn a_new_session_has_a_name_nobody_has_or_none() {
    let mut stand = Stand::default();
    let mut layer = New::form("/home/ada/lathe", "", vec!["Gears".into()]);
    stand.type_text(&mut layer, "gEARS");
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "taken");
    assert!(stand.screen(&mut layer, 80, 22).contains("There is a session \"Gears\" in this folder already."));
    stand.type_text(&mut layer, "!");
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "closed");
    let mut empty = New::form("/home/ada/lathe", "", vec![]);
    assert_eq!(went(&stand.give(&mut empty, &key(KeyCode::Enter))), "closed");
    assert_eq!(effects(&mut stand), [Effect::New(Some("gEARS!".into())), Effect::New(None)]);
}

#[test]
fn a_copy_is_shown_and_what_it_ends_before_is_in_its_prompt() {
    let mut stand = Stand::default();
    let up_to = UpTo { seq: Some(4), says: "up to here".into(), draft: Some("try again".into()) };
    let mut layer = Branch::form(&row("s1", "mend the lathe"), "a copy", up_to);
    stand.give(&mut layer, &key(KeyCode::Enter));
    let (ticket, request) = one(&mut stand);
    let branch = BranchSession { up_to_seq: Some(4), name: Some("a copy".into()) };
    assert_eq!(request, Request::Branch(s1(), branch));
    layer.answer(ticket, Ok(Answer::Row(row("s9", "a copy"))), &mut stand.cx());
    assert_eq!(effects(&mut stand), [Effect::Show(Some("s9".into())), Effect::Draft("s9".into(), "try again".into())]);
}
