use hames_protocol::RunResult;
use hames_protocol::api::{SessionActivity, SessionRow, Sessions as Rows};
use ratatui::crossterm::event::{KeyEvent, KeyModifiers};

use super::super::sessions::Sessions;
use super::kit::{UNIX, alt};
use super::*;

fn rows() -> Vec<SessionRow> {
    let mut rows = vec![
        SessionRow {
            state: SessionActivity::Running,
            updated_at: UNIX - 5_000,
            pending: 2,
            ..row("s1", "mend the lathe")
        },
        SessionRow {
            state: SessionActivity::WaitingForYou,
            updated_at: UNIX - 120_000,
            ..row("s2", "write the manual")
        },
        SessionRow {
            state: SessionActivity::Elsewhere,
            held_by: Some("hames run (7)".into()),
            first_line: "look at the gears".into(),
            ..row("s3", "gears")
        },
        SessionRow { turns: 1, last_result: Some(RunResult::Complete), ..row("s4", ODD) },
        SessionRow { last_result: Some(RunResult::Error), ..row("s8", "oil the bearings") },
        SessionRow { last_result: Some(RunResult::MaxSteps), ..row("s9", "true the chuck") },
    ];
    rows.push(SessionRow {
        updated_at: UNIX - 40 * 86_400_000,
        turns: 1_204,
        ..row("s5", "an old one with a name that is much too long for a small screen")
    });
    rows
}

fn everywhere() -> Vec<SessionRow> {
    let elsewhere = |id: &str, folder: &str, gone| SessionRow {
        folder: folder.into(),
        folder_missing: gone,
        ..row(id, &format!("work in {folder}"))
    };
    let mut all = rows();
    all.insert(1, elsewhere("s6", "/srv/bench", false));
    all.push(elsewhere("s7", "/tmp/gone-for-good", true));
    all
}

fn answer(rows: Vec<SessionRow>) -> Result<Answer, ApiError> {
    Ok(Answer::Sessions(Rows { sessions: rows }))
}

fn open(stand: &mut Stand) -> Sessions {
    let mut layer = Sessions::open(&mut stand.cx());
    stand.answer(&mut layer, answer(rows()));
    layer
}

#[test]
fn screens_of_this_folder_and_of_all() {
    let mut stand = Stand::showing(row("s2", "write the manual"));
    let mut layer = open(&mut stand);
    let mut shown = stand.screens(&mut layer);
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Tab))), "taken");
    assert_eq!(one(&mut stand).1, Request::Sessions(None));
    stand.give(&mut layer, &key(KeyCode::Tab));
    let (late, _) = one(&mut stand);
    stand.give(&mut layer, &key(KeyCode::Tab));
    let (ticket, _) = one(&mut stand);
    assert_eq!(went(&layer.answer(late, answer(vec![]), &mut stand.cx())), "passed", "it is outdated");
    layer.answer(ticket, answer(everywhere()), &mut stand.cx());
    shown.push_str("all folders\n");
    shown.push_str(&stand.screens(&mut layer));
    compare("layer-sessions", &shown);
    stand.at_every_size(&mut layer);
}

#[test]
fn enter_opens_what_is_chosen_and_the_one_on_the_screen_is_chosen_first() {
    let mut stand = Stand::showing(row("s2", "write the manual"));
    let mut layer = open(&mut stand);
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "closed");
    assert_eq!(effects(&mut stand), [], "it is on the screen");
    let mut layer = open(&mut stand);
    stand.type_text(&mut layer, "gea");
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "closed");
    assert_eq!(effects(&mut stand), [Effect::Show(Some("s3".into()))]);
}

#[test]
fn the_list_is_read_again_while_it_is_open_and_keeps_the_choice() {
    let mut stand = Stand::default();
    let mut layer = open(&mut stand);
    stand.give(&mut layer, &key(KeyCode::Down));
    stand.give(&mut layer, &key(KeyCode::Down));
    assert!(stand.effects.contains(&Effect::WakeAt(3_000)));
    stand.effects.clear();
    stand.now = 3_000;
    stand.give(&mut layer, &Input::Wake);
    let (ticket, _) = one(&mut stand);
    let mut other = rows();
    other.insert(0, row("s0", "a newer one"));
    layer.answer(ticket, answer(other), &mut stand.cx());
    assert!(stand.screen(&mut layer, 80, 22).contains("› ◌ gears"));
    // Nobody looks: nothing is asked.
    stand.effects.clear();
    stand.now = 60_000;
    stand.face.is_focused = false;
    stand.give(&mut layer, &Input::Wake);
    assert_eq!(stand.effects, []);
    stand.face.is_focused = true;
    stand.give(&mut layer, &Input::Focus(true));
    assert_eq!(stand.asked().len(), 1);
}

#[test]
fn what_no_session_is_called_begins_a_new_one_of_that_name() {
    let mut stand = Stand::default();
    let mut layer = open(&mut stand);
    stand.give(&mut layer, &Input::Paste("polish\nthe bed".into()));
    assert!(stand.screen(&mut layer, 80, 22).contains("Enter begins one of this name"));
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "closed");
    assert_eq!(effects(&mut stand), [Effect::New(Some("polish the bed".into()))]);
}

#[test]
fn keys_open_what_can_be_done_with_the_chosen_session() {
    let alt_enter = Input::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
    for (input, opens) in [
        (key(KeyCode::F(2)), "rename"),
        (key(KeyCode::Delete), "delete"),
        (alt_enter, "session-menu"),
        (alt('n'), "new"),
        (ctrl('r'), "search"),
        (key(KeyCode::Esc), "closed"),
    ] {
        let mut stand = Stand::default();
        let mut layer = open(&mut stand);
        assert_eq!(went(&stand.give(&mut layer, &input)), opens);
    }
    // Without a chosen session nothing happens to any.
    let mut stand = Stand::default();
    let mut layer = open(&mut stand);
    stand.type_text(&mut layer, "xyzzy");
    for input in [key(KeyCode::F(2)), key(KeyCode::Delete)] {
        assert!(["taken", "passed"].contains(&went(&stand.give(&mut layer, &input))));
    }
    assert_eq!(effects(&mut stand), []);
}

#[test]
fn no_session_and_no_answer_say_what_to_do_next() {
    let mut stand = Stand::default();
    let mut layer = Sessions::open(&mut stand.cx());
    stand.answer(&mut layer, answer(vec![]));
    assert!(stand.screen(&mut layer, 80, 22).contains("This folder has no session yet: your first message makes one."));
    stand.give(&mut layer, &key(KeyCode::Tab));
    stand.answer(&mut layer, refusal(ApiErrorCode::Storage, "The disk is full."));
    assert!(stand.screen(&mut layer, 80, 22).contains("The sessions cannot be read: The disk is full. Esc goes back."));
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "taken");
}

#[test]
fn every_entry_of_the_menu_opens_its_layer_for_the_session() {
    use super::super::session_menu::SessionMenu;
    for (down, opens) in ["rename", "branch", "cut", "move", "export", "delete"].into_iter().enumerate() {
        let mut stand = Stand::default();
        let mut menu = SessionMenu::of(row("s3", "gears"));
        for _ in 0..=down {
            stand.give(&mut menu, &key(KeyCode::Down));
        }
        assert_eq!(went(&stand.give(&mut menu, &key(KeyCode::Enter))), opens);
    }
    let mut stand = Stand::default();
    let mut menu = SessionMenu::of(row("s3", ODD));
    compare("layer-session-menu", &stand.screens(&mut menu));
    stand.at_every_size(&mut menu);
    assert_eq!(went(&stand.give(&mut menu, &key(KeyCode::Enter))), "closed");
    assert_eq!(effects(&mut stand), [Effect::Show(Some("s3".into()))]);
}
