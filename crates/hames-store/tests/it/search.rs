//! Search.

use std::path::Path;
use std::time::Duration;

use hames_protocol::{Durability, Settings};
use hames_store::SearchKind;

use crate::kit::*;

fn found(home: &Home, query: &str) -> Vec<(u64, SearchKind, String)> {
    let hits = home.store().search(query, None, 50).unwrap();
    hits.into_iter().map(|hit| (hit.seq, hit.kind, hit.snippet)).collect()
}

#[test]
fn words_are_found_in_messages_answers_and_labels_newest_first() {
    let home = Home::new();
    let id = home.session("one").id;
    home.append(
        &id,
        2,
        vec![user("Where is the Parser?"), answer("The parser is in src/parse.rs"), tool_done("parser")],
    )
    .unwrap();
    home.append(&id, 5, vec![call("Read", "src/parser/mod.rs")]).unwrap();
    assert_eq!(
        found(&home, "PARSER"),
        [
            (5, SearchKind::Call, "Read src/parser/mod.rs".into()),
            (3, SearchKind::Answer, "The parser is in src/parse.rs".into()),
            (2, SearchKind::User, "Where is the Parser?".into()),
        ]
    );
    assert_eq!(found(&home, "parser where").len(), 1);
    assert_eq!(found(&home, "arse.r").len(), 1);
    assert_eq!(home.store().search("parser", Some(Path::new("/elsewhere")), 9).unwrap(), []);
    assert_eq!(home.store().search("parser", Some(Path::new("/work")), 2).unwrap().len(), 2);
    assert_eq!(home.store().search("parser", None, 0).unwrap(), []);
}

#[test]
fn parts_of_words_and_scripts_without_spaces_are_found() {
    let texts = [
        ("東京都の天気を調べてください", &["天気", "東京都", "京", "調べて"][..]),
        ("修复解析器中的错误", &["解析", "错误", "修", "解析器"]),
        ("한국어 문장입니다", &["문장", "국", "한국어"]),
        ("naïve café", &["café", "ï", "CAFÉ", "fé"]),
        ("build 🙂🙃 done", &["🙂", "🙃", "🙂🙃"]),
        ("Привет, МИР", &["мир", "ПРИВЕТ", "и"]),
        ("a_b C++ x->y foo::bar", &["c++", "->", "::", "foo::bar", "a_b", "x->y"]),
        ("100% \"quoted\" it's back\\slash", &["100%", "\"quoted\"", "it's", "\\", "%"]),
    ];
    for (text, queries) in texts {
        let home = Home::new();
        let id = home.session("one").id;
        home.append(&id, 2, vec![user("something else entirely"), user(text)]).unwrap();
        for query in queries {
            assert_eq!(
                found(&home, query).iter().map(|hit| hit.0).filter(|seq| *seq == 3).count(),
                1,
                "{query:?} in {text:?}"
            );
        }
    }
}

#[test]
fn any_text_is_a_safe_query() {
    let home = Home::new();
    let id = home.session("one").id;
    home.append(&id, 2, vec![user("plain words AND nothing NEAR here OR there * \" ( )")]).unwrap();
    let long = "x ".repeat(5000);
    let wide = "y".repeat(100_000);
    let nested = "(".repeat(3000);
    let queries = [
        "",
        " ",
        "\"",
        "\"\"",
        "\"\"\"",
        "AND",
        "OR OR",
        "NOT",
        "NEAR(",
        "NEAR(a b, 3)",
        "*",
        "a*",
        "^x",
        "text:x",
        "{text}:x",
        "-x",
        "+",
        "(",
        ")",
        "'",
        "';--",
        "%",
        "_",
        "\\",
        "\0",
        "a\0b",
        "abc\0def",
        "\u{fffd}",
        "🙂",
        "\u{202e}abc",
        "col : \"x",
        &long,
        &wide,
        &nested,
        "\" OR \"1",
        "\"plain",
        "a\"b",
        "\"\"\"\" OR text MATCH \"",
        "x\ny",
        "\t",
    ];
    for query in queries {
        home.store().search(query, None, 5).unwrap_or_else(|e| panic!("{query:?}: {e}"));
        home.store().search(query, Some(Path::new("/work")), 5).unwrap();
    }
    for query in ["NEAR", "AND", "*", "(", "\"", "near here"] {
        assert_eq!(found(&home, query).len(), 1, "{query:?}");
    }
}

#[test]
fn a_snippet_is_one_short_line_around_the_match() {
    let home = Home::new();
    let id = home.session("one").id;
    let text =
        format!("{}\n\tthe \u{1b}[31mneedle\u{202e} is here {}", "İß before ".repeat(100), "after ".repeat(10_000));
    home.append(&id, 2, vec![answer(&text)]).unwrap();
    let (_, _, snippet) = &found(&home, "needle")[0];
    assert!(snippet.contains("needle") && snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
    assert!(snippet.chars().count() <= 142 && !snippet.contains(['\n', '\u{1b}', '\u{202e}']), "{snippet}");
}

#[test]
fn what_was_indexed_long_ago_and_what_was_just_said_are_both_found() {
    let mut home = Home::new();
    let (one, two) = (home.session("one").id, home.session("two").id);
    home.append(&one, 2, (0..1000).map(|n| user(&format!("message <{n}>"))).collect()).unwrap();
    home.append(&two, 2, vec![user("message <77> of two")]).unwrap();
    assert_eq!(found(&home, "<77>").len(), 2);
    home.append(&one, 1002, vec![user("<77> again")]).unwrap();
    home.reopen();
    assert_eq!(found(&home, "<77>").len(), 3);
    home.reopen();
    home.store().delete(&one, "t").unwrap();
    assert_eq!(found(&home, "<77>").len(), 1);
}

#[test]
fn hits_come_newest_first_whatever_session_said_them_and_when_it_was_indexed() {
    let home = Home::new();
    let ids = ["a", "b", "c"].map(|name| home.session(name).id);
    let say = |session: usize, seq: u64, at: u64| {
        let said = envelope(&ids[session], at, user(&format!("the quokka at {at}")));
        wait(home.log().append(&ids[session], seq, vec![said], Durability::Process)).unwrap();
    };
    say(2, 2, 5_000);
    say(0, 2, 9_000);
    assert_eq!(found(&home, "quokka").len(), 2);
    say(1, 2, 7_000);
    say(1, 3, 7_000);
    say(2, 3, 1_000);
    say(0, 3, u64::MAX >> 12);
    let times: Vec<u64> = home.store().search("quokka", None, 9).unwrap().iter().map(|hit| hit.at).collect();
    assert_eq!(times[1..], [9_000, 7_000, 7_000, 5_000, 1_000]);
    let two = home.store().search("the quokka", None, 2).unwrap();
    assert_eq!(two.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn a_folder_is_searched_without_the_hits_of_others_and_with_those_of_copies() {
    let mut home = Home::new();
    let day = 24 * 60 * 60 * 1000;
    let mut made = Vec::new();
    for n in 0..12_u64 {
        let folder = format!("/none/{}", n % 3);
        let store = home.store();
        let (info, _lease) =
            store.create("s", Path::new(&folder), Settings::default(), (n + 1) * 10 * day, "t").unwrap();
        let said = (0..40).map(|m| envelope(&info.id, (n + 1) * 10 * day + m, user("a common word"))).collect();
        wait(home.log().append(&info.id, 2, said, Durability::Process)).unwrap();
        made.push(info.id);
    }
    let in_folder = |home: &Home, n: usize| {
        let hits = home.store().search("common", Some(Path::new(&format!("/none/{n}"))), 999).unwrap();
        assert!(hits.is_sorted_by(|a, b| a.at >= b.at));
        assert!(hits.iter().all(|hit| hit.session.folder == format!("/none/{n}")));
        hits.len()
    };
    assert_eq!([0, 1, 2].map(|n| in_folder(&home, n)), [160; 3]);
    // A copy was said long before it was made.
    let (_copy, _lease) = home.store().branch(&made[0], None, None, 900 * day, "t").unwrap();
    assert_eq!([0, 1, 2].map(|n| in_folder(&home, n)), [200, 160, 160]);
    home.reopen();
    assert_eq!(in_folder(&home, 0), 200);
}

#[test]
fn what_was_searched_for_is_marked_in_the_snippet() {
    let home = Home::new();
    let id = home.session("one").id;
    let cases = [
        ("The needle, NEEDLES and a needle", "needle", vec!["needle", "NEEDLE", "needle"]),
        ("İstanbul and ISTANBUL", "stanbul", vec!["stanbul", "STANBUL"]),
        ("abcabcabc", "abc", vec!["abcabcabc"]),
        ("overlaps", "over verl laps", vec!["overl", "aps"]),
        ("東京都の天気", "天気 京", vec!["京", "天気"]),
    ];
    for (n, (text, query, marked)) in cases.into_iter().enumerate() {
        home.append(&id, n as u64 + 2, vec![user(text)]).unwrap();
        let hit = &home.store().search(query, None, 1).unwrap()[0];
        let found: Vec<&str> =
            hit.highlights.iter().map(|(from, to)| &hit.snippet[*from as usize..*to as usize]).collect();
        assert_eq!(found.concat(), marked.concat(), "{text} {query}");
    }
}

#[test]
fn a_search_that_may_not_index_says_that_it_is_behind() {
    let home = Home::new();
    let id = home.session("one").id;
    home.append(&id, 2, (0..1000).map(|n| user(&format!("word {n}"))).collect()).unwrap();
    let searched = home.store().search_within("word", None, 9, Duration::ZERO).unwrap();
    assert!(searched.is_behind);
    let searched = home.store().search_within("word", None, 9, Duration::MAX).unwrap();
    assert_eq!((searched.hits.len(), searched.is_behind, searched.since), (9, false, None));
}

#[test]
fn a_search_without_time_for_everything_says_since_when_it_has_looked() {
    let home = Home::new();
    let id = home.session("one").id;
    let said = (0..3000_u64).map(|n| envelope(&id, 10_000 + n, user(if n == 5 { "q7 天" } else { "words" }))).collect();
    wait(home.log().append(&id, 2, said, Durability::Process)).unwrap();
    for query in ["q7", "q", "天", "q7 天", "words"] {
        for folder in [None, Some(Path::new("/work"))] {
            let whole = home.store().search_within(query, folder, 9999, Duration::MAX).unwrap();
            assert_eq!((whole.hits.len(), whole.since), (if query == "words" { 2999 } else { 1 }, None), "{query}");
            let none = home.store().search_within(query, folder, 9, Duration::ZERO).unwrap();
            assert_eq!((none.hits.len(), none.since), (0, Some(13_000)), "{query}: not even the newest was looked at");
        }
    }
    // Where the hits are enough, or nothing can be one, nothing is left out.
    for (query, limit) in [("", 9), ("words", 0), ("nobody", 9)] {
        let none = home.store().search_within(query, None, limit, Duration::ZERO).unwrap();
        assert_eq!((none.hits.len(), none.since), (0, None), "{query}");
    }
}
