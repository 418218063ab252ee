use hames_protocol::api::{SearchResult, SearchResults};

use super::super::search::Search;
use super::kit::UNIX;
use super::*;

fn hit(session: &str, seq: u64, kind: &str, text: &str, found: &str) -> SearchResult {
    let at = text.find(found).unwrap() as u32;
    let mut session = row(session, &format!("session {session}"));
    session.folder_missing = session.id.as_str() == "s2";
    SearchResult {
        session,
        seq,
        at: UNIX - seq * 60_000,
        kind: kind.into(),
        text: text.into(),
        highlights: vec![(at, at + found.len() as u32)],
    }
}

fn results() -> SearchResults {
    let long = format!("{} the lathe stopped {ODD}", "a long story that goes on ".repeat(8));
    SearchResults {
        results: vec![
            hit("s1", 40, "user", "why does the lathe hum?", "lathe"),
            hit("s2", 7, "assistant", &long, "lathe"),
            hit("s1", 12, "tool", "Read lathe.toml", "lathe"),
        ],
        since: None,
        behind: false,
    }
}

#[test]
fn hits_stand_under_their_sessions_with_what_was_found_in_sight() {
    let mut stand = Stand::default();
    Search::open("lathe", &mut stand.cx());
    assert_eq!(one(&mut stand).1, Request::Search("lathe".into(), None));
    let mut search = Search::open("lathe", &mut stand.cx());
    stand.answer(&mut search, Ok(Answer::Search(results())));
    compare("layer-search", &stand.screens(&mut search));
    stand.at_every_size(&mut search);
    let shown = stand.screen(&mut search, 40, 13);
    assert!(shown.matches("lathe").count() >= 3, "{shown}");
}

#[test]
fn enter_opens_the_session_at_the_hit() {
    let mut stand = Stand::default();
    let mut search = Search::open("lathe", &mut stand.cx());
    stand.answer(&mut search, Ok(Answer::Search(results())));
    // Both hits of the first session stand before the one of the second.
    for down in 0..3 {
        let mut at = Search::open("lathe", &mut stand.cx());
        stand.answer(&mut at, Ok(Answer::Search(results())));
        for _ in 0..down {
            stand.give(&mut at, &key(KeyCode::Down));
        }
        assert_eq!(went(&stand.give(&mut at, &key(KeyCode::Enter))), "closed");
        let (session, seq) = [("s1", 40), ("s1", 12), ("s2", 7)][down];
        assert_eq!(effects(&mut stand), [Effect::ShowAt { session: session.into(), seq, words: "lathe".into() }]);
    }
}

#[test]
fn one_question_is_on_its_way_and_the_last_words_are_asked_next() {
    let mut stand = Stand::default();
    let mut search = Search::open("", &mut stand.cx());
    assert_eq!(stand.asked(), [], "nothing is looked for");
    assert!(stand.screen(&mut search, 80, 22).contains("Write words"));
    stand.type_text(&mut search, "lat");
    let (first, request) = one(&mut stand);
    assert_eq!(request, Request::Search("l".into(), None));
    search.answer(first, Ok(Answer::Search(results())), &mut stand.cx());
    assert_eq!(one(&mut stand).1, Request::Search("lat".into(), None));
    // Esc while it is on its way; a late answer finds nobody.
    assert_eq!(went(&search.answer(first, Ok(Answer::Search(results())), &mut stand.cx())), "passed");
}

#[test]
fn the_folder_alone_is_searched_after_tab_and_an_empty_answer_says_what_to_do() {
    let mut stand = Stand::default();
    let mut search = Search::open("xyzzy", &mut stand.cx());
    let none = || Ok(Answer::Search(SearchResults { results: vec![], since: None, behind: false }));
    stand.answer(&mut search, none());
    assert!(stand.screen(&mut search, 80, 22).contains("Fewer or shorter words find more."));
    stand.give(&mut search, &key(KeyCode::Tab));
    let (ticket, request) = one(&mut stand);
    assert_eq!(request, Request::Search("xyzzy".into(), Some("/home/ada/lathe".into())));
    search.answer(ticket, none(), &mut stand.cx());
    assert!(stand.screen(&mut search, 80, 22).contains("Tab searches all of them."));
    for _ in 0..5 {
        stand.give(&mut search, &key(KeyCode::Backspace));
    }
    assert!(stand.screen(&mut search, 80, 22).contains("Write words"));
}

#[test]
fn a_search_that_was_cut_short_or_is_behind_or_refused_says_so() {
    let mut stand = Stand::default();
    for (answer, says) in [
        (Ok(SearchResults { since: Some(UNIX - 86_400_000), ..results() }), "since 1 d ago was looked at"),
        (Ok(SearchResults { behind: true, ..results() }), "cannot be found yet"),
        (Err(ApiError::new(ApiErrorCode::Invalid, "A word is too short.")), "A word is too short."),
    ] {
        let mut search = Search::open("lathe", &mut stand.cx());
        stand.answer(&mut search, answer.map(Answer::Search));
        let shown = stand.screen(&mut search, 80, 22);
        assert!(shown.contains(says), "{shown}");
        assert_eq!(stand.asked(), []);
    }
}
