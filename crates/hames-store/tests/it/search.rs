//! Search.

use std::path::Path;

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
