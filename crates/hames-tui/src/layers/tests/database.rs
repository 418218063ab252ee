use hames_protocol::api::{DatabaseStats, Vacuumed};

use super::super::database::Database;
use super::*;

fn stats(bytes: u64, free_bytes: u64) -> Answer {
    Answer::Database(DatabaseStats {
        bytes,
        free_bytes,
        sessions: 1_204,
        events: 88_120,
        blob_bytes: 5_000_000,
        suggest_vacuum: free_bytes > 0,
    })
}

#[test]
fn it_says_how_large_the_database_is_and_what_a_vacuum_gained() {
    let mut stand = Stand::default();
    let mut database = Database::open(&mut stand.cx());
    assert!(!stand.screen(&mut database, 80, 22).contains("asking"), "not before half a second");
    stand.face.slow = Some(("asking the server", 0));
    assert!(stand.screen(&mut database, 80, 22).contains("asking the server"));
    stand.face.slow = None;
    stand.answer(&mut database, Ok(stats(400_000_000, 120_000_000)));
    let mut shown = stand.screens(&mut database);
    assert_eq!(went(&stand.give(&mut database, &key(KeyCode::Char('v')))), "taken");
    let (ticket, request) = one(&mut stand);
    assert_eq!(request, Request::Vacuum);
    stand.give(&mut database, &key(KeyCode::Char('v')));
    assert_eq!(stand.asked(), [], "once at a time");
    assert!(stand.screen(&mut database, 80, 22).contains("Making it smaller …"));
    let done = Vacuumed { before_bytes: 400_000_000, after_bytes: 280_000_000, blobs_removed: 0, duration_ms: 1_234 };
    database.answer(ticket, Ok(Answer::Vacuumed(done)), &mut stand.cx());
    stand.answer(&mut database, Ok(stats(280_000_000, 0)));
    shown.push_str("after a vacuum\n");
    shown.push_str(&stand.screens(&mut database));
    compare("layer-database", &shown);
    stand.at_every_size(&mut database);
    assert_eq!(went(&stand.give(&mut database, &key(KeyCode::Esc))), "closed");
}

#[test]
fn a_vacuum_that_is_refused_says_why_and_can_be_tried_again() {
    let mut stand = Stand::default();
    let mut database = Database::vacuum(&mut stand.cx());
    let asked = stand.asked();
    assert_eq!(asked.iter().map(|(_, r)| r.clone()).collect::<Vec<_>>(), [Request::Database, Request::Vacuum]);
    let why = "2 runs go on; wait for them, or stop them.";
    database.answer(asked[1].0, refusal(ApiErrorCode::Busy, why), &mut stand.cx());
    assert!(stand.screen(&mut database, 80, 22).contains(why));
    assert_eq!(went(&database.answer(Ticket(99), Ok(stats(1, 1)), &mut stand.cx())), "passed");
    stand.give(&mut database, &key(KeyCode::Char('v')));
    assert_eq!(one(&mut stand).1, Request::Vacuum);
}
