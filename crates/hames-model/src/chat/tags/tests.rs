use super::*;
use proptest::prelude::*;

/// What comes out of an answer given in these pieces: text, reasoning.
fn split(pieces: &[&str], inside: bool) -> (String, String) {
    let mut splitter = Splitter::new(inside);
    let (mut text, mut reasoning) = (String::new(), String::new());
    let mut sink = |piece: Piece<'_>| match piece {
        Piece::Text(t) => text.push_str(t),
        Piece::Reasoning(r) => reasoning.push_str(r),
        Piece::WasReasoning => reasoning.push_str(&std::mem::take(&mut text)),
        Piece::WasText => text.push_str(&std::mem::take(&mut reasoning)),
    };
    for piece in pieces {
        splitter.push(piece, &mut sink);
    }
    splitter.finish(&mut sink);
    (text, reasoning.trim_end().to_owned())
}

fn chars(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
}

/// The same, however it is cut.
fn check(text: &str, expected: (&str, &str)) {
    let expected = (expected.0.to_owned(), expected.1.to_owned());
    assert_eq!(split(&[text], false), expected, "{text:?}");
    assert_eq!(split(&chars(text), false), expected, "{text:?} char by char");
    for (at, _) in text.char_indices() {
        let (a, b) = text.split_at(at);
        assert_eq!(split(&[a, b], false), expected, "{text:?} cut at {at}");
    }
}

#[test]
fn a_block_at_the_beginning_is_reasoning() {
    let cases = [
        ("<think>\nHm.\n</think>\n\nYes.", ("Yes.", "Hm.")),
        ("<think>Hm.</think>Yes.", ("Yes.", "Hm.")),
        ("\n <think>Hm.</think> Yes.", (" Yes.", "Hm.")),
        ("<thinking>\nHm.\n</thinking>\nYes.", ("Yes.", "Hm.")),
        ("<thought>\nHm.\n</thought>\nYes.", ("Yes.", "Hm.")),
        ("<reasoning>Hm.</reasoning>\n\nYes.", ("Yes.", "Hm.")),
        ("<THINK>Hm.</Think>Yes.", ("Yes.", "Hm.")),
        ("[THINK]Hm.[/THINK]Yes.", ("Yes.", "Hm.")),
        ("◁think▷Hm, 🙂.◁/think▷Ja, 台.", ("Ja, 台.", "Hm, 🙂.")),
        ("<seed:think>Hm.</seed:think>Yes.", ("Yes.", "Hm.")),
        ("<|begin_of_thought|>\nHm.\n<|end_of_thought|>\nYes.", ("Yes.", "Hm.")),
        ("<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.", ("Yes.", "Hm.")),
        ("<|channel>thought\nHm.<channel|>Yes.", ("Yes.", "Hm.")),
        ("<unused94>thought\nHm.<unused95>Yes.", ("Yes.", "Hm.")),
        ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", ("Yes.", "Hm.")),
        ("<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Yes.", ("Yes.", "Hm.")),
        ("<think>\n\n</think>\n\nYes.", ("Yes.", "")),
        ("<think></think>Yes.", ("Yes.", "")),
        // Several blocks, one behind the other.
        ("<think>A.</think>\n<think>B.</think>\nYes.", ("Yes.", "A.\n\nB.")),
        // Line ends within are kept, and so is the indentation of the answer.
        ("<think>\nA.\n\n  B.\n</think>\n\n    code\n", ("    code\n", "A.\n\n  B.")),
        ("<think>a < b && c > d</think>1 < 2", ("1 < 2", "a < b && c > d")),
        ("<think>Hm.</think>\n\n", ("", "Hm.")),
    ];
    for (text, expected) in cases {
        check(text, expected);
    }
}

#[test]
fn a_block_that_nothing_closes_stays_reasoning() {
    for (text, reasoning) in
        [("<think>Hm", "Hm"), ("<think>\nHm </thi", "Hm </thi"), ("<think>", ""), ("[THINK]Hm [/", "Hm [/")]
    {
        check(text, ("", reasoning));
    }
}

#[test]
fn a_tag_that_is_mentioned_is_text() {
    let cases = [
        "The tag <think> opens a block and </think> closes it.",
        "Use `<think>` and `</think>`.",
        "Write:\n\n```\n<think>\nHm.\n</think>\n```\n",
        "`<think>` is first.",
        "\"<think>\" is first.",
        "Close it with </think>.",
        "End with `</think>`\nand go on.",
        "```\nHm.\n</think>\n```",
        "x.write(\"</think>\")\n",
        "<thinker>no</thinker>",
        "<thin",
        "<",
        "< think>no</think >",
        "[THINKING] no",
        "1 < 2",
        "[a, b]",
        "",
        "\n\n  ",
        "\n\nHello",
        "Opened by <think>,\nclosed by\n</think>\nalways.",
        "(</think>)\n",
    ];
    for text in cases {
        check(text, (text, ""));
    }
    // Within a block, too, the tag in quotes is spoken of.
    check("<think>It ends with `</think>`, so.</think>Yes.", ("Yes.", "It ends with `</think>`, so."));
    check("<think>\"</think>\" ends it.\n</think>\nYes.", ("Yes.", "\"</think>\" ends it."));
    // And behind one, all is answer.
    check("<think>Hm.</think>\nThe tag\n</think>\nends it.", ("The tag\n</think>\nends it.", "Hm."));
    check("<think>Hm.</think>Not <think>this</think>.", ("Not <think>this</think>.", "Hm."));
}

#[test]
fn an_answer_may_begin_inside_its_reasoning() {
    let cases = [
        ("Hm.\n</think>\n\nYes.", ("Yes.", "Hm.")),
        ("Hm, so.</think>Yes.", ("Yes.", "Hm, so.")),
        ("Is 1 < 2? It is.\n</think>\n\n# Yes", ("# Yes", "Is 1 < 2? It is.")),
        ("Hm.\n[/THINK]\nYes.", ("Yes.", "Hm.")),
        ("Hm.\n</think>\n<think>More.</think>Yes.", ("Yes.", "Hm.\n\n\nMore.")),
        ("Hm.\n</think>", ("", "Hm.")),
        ("</think>\n\nYes.", ("Yes.", "")),
        ("\n</think>Yes.", ("Yes.", "")),
        ("```\ncode\n```\nSo.\n</think>\n\nYes.", ("Yes.", "```\ncode\n```\nSo.")),
    ];
    for (text, expected) in cases {
        check(text, expected);
    }
}

#[test]
fn where_answers_are_known_to_begin_inside_they_are_taken_so_at_once() {
    for text in
        ["Hm.\n</think>\n\nYes.", "Hm.</think> Yes.", "<think>Hm.</think>\nYes.", "\n<think>\nHm.\n</think>\nYes."]
    {
        for pieces in [vec![text], chars(text)] {
            let (said, reasoning) = split(&pieces, true);
            assert_eq!((said.trim(), reasoning.as_str()), ("Yes.", "Hm."), "{text:?}");
        }
    }
    // One that was none after all is text from its first character.
    for text in ["Yes, at once.", "\n\nYes </think", "<", "Use `</think>`."] {
        for pieces in [vec![text], chars(text)] {
            assert_eq!(split(&pieces, true), (text.to_owned(), String::new()), "{text:?}");
        }
    }
}

#[test]
fn where_reasoning_comes_apart_only_what_a_template_left_over_is_taken() {
    let apart = |text: &str| {
        let mut splitter = Splitter::new(true);
        splitter.reasoning_comes_apart();
        let mut out = String::new();
        let mut sink = |piece: Piece<'_>| out.push_str(&format!("{piece:?}"));
        splitter.push(text, &mut sink);
        splitter.finish(&mut sink);
        out
    };
    assert_eq!(apart("Hm.\n</think>\nYes."), "Text(\"Hm.\\n</think>\\nYes.\")");
    assert_eq!(apart("</think>\n\nYes."), "Text(\"Yes.\")");
}

#[test]
fn nothing_is_held_that_can_be_no_tag() {
    let mut splitter = Splitter::new(false);
    for piece in ["I", " think", " 1 <", " 2", "\n", "<b>", "`", "x"] {
        let mut out = String::new();
        splitter.push(piece, &mut |p| {
            if let Piece::Text(text) = p {
                out.push_str(text);
            }
        });
        let expected = if piece == " 1 <" {
            " 1 "
        } else if piece == " 2" {
            "< 2"
        } else {
            piece
        };
        assert_eq!(out, expected);
    }
    assert!(splitter.held.is_empty());
}

#[test]
fn however_many_blanks_there_are_few_are_held_and_time_is_short() {
    let mut splitter = Splitter::new(false);
    let mut sink = |_: Piece<'_>| {};
    splitter.push("<think>a", &mut sink);
    for _ in 0..20_000 {
        splitter.push("\n ", &mut sink);
        assert!(splitter.held.len() <= 2 * MAX_BLANKS_BYTES);
    }
    // All in one piece, and full of what may begin a tag.
    let long = "<".repeat(200_000);
    let mut splitter = Splitter::new(false);
    splitter.push(&long, &mut sink);
    splitter.push("<think>", &mut sink);
    let mut splitter = Splitter::new(false);
    splitter.push(&format!("<think>{long}</think>"), &mut sink);
}

#[test]
fn a_joined_answer_splits_again() {
    for form in &FORMS {
        let whole = joined(form.open, "Hm.", "Yes.").unwrap();
        assert_eq!(split(&[&whole], false), ("Yes.".to_owned(), "Hm.".to_owned()), "{whole}");
    }
    assert_eq!(joined("reasoning_content", "a", "b"), None);
}

fn parts() -> impl Strategy<Value = Vec<String>> {
    let mut tags: Vec<&'static str> =
        FORMS.iter().flat_map(|f| f.close.iter().chain(f.next).chain([&f.open])).copied().collect();
    tags.extend(["\n", "\n\n", " ", "`", "```\n", "a", "B. ", "é台🙂", "<", "</", "[", "<|", "◁", "\"", "x < y", "."]);
    prop::collection::vec(
        prop_oneof![3 => prop::sample::select(tags).prop_map(str::to_owned), 1 => "[a-c<>/\\[ \n`.]{0,9}"],
        0..14,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::proptest_cases() * 4, ..ProptestConfig::default() })]

    #[test]
    fn every_cut_of_every_text_gives_the_same(
        parts in parts(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        inside in any::<bool>(),
    ) {
        let text = parts.concat();
        let whole = split(&[&text], inside);
        prop_assert_eq!(split(&chars(&text), inside), whole.clone());
        let mut at: Vec<usize> = cuts.iter().map(|c| c.index(text.len() + 1)).filter(|at| text.is_char_boundary(*at)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let pieces: Vec<&str> = at.windows(2).map(|w| &text[w[0]..w[1]]).collect();
        prop_assert_eq!(split(&pieces, inside), whole);
    }

    #[test]
    fn no_text_without_a_tag_in_its_place_is_changed(parts in parts()) {
        let text = parts.concat();
        let lower = text.to_ascii_lowercase();
        let leads = FORMS.iter().any(|f| lower.trim_start().starts_with(&f.open.to_ascii_lowercase()));
        let closes = FORMS.iter().flat_map(|f| f.close).any(|close| lower.contains(&close.to_ascii_lowercase()));
        if !leads && !closes {
            prop_assert_eq!(split(&[&text], false), (text.clone(), String::new()));
        }
        // Said first, nothing opens a block.
        let said = format!("So: {text}");
        let opens_first = FORMS.iter().filter_map(|f| lower.find(&f.open.to_ascii_lowercase())).min();
        let closes_first = FORMS.iter().flat_map(|f| f.close).filter_map(|c| lower.find(&c.to_ascii_lowercase())).min();
        if closes_first.is_none() || opens_first.is_some_and(|open| Some(open) < closes_first) {
            prop_assert_eq!(split(&chars(&said), false), (said.clone(), String::new()));
        }
    }

    #[test]
    fn nothing_is_lost_but_tags_and_line_ends(parts in parts(), inside in any::<bool>()) {
        let text = parts.concat();
        let (said, reasoning) = split(&[&text], inside);
        let mut rest = text.as_str();
        // Every character that comes out stands in what went in, in order; reasoning before text.
        for c in reasoning.chars().chain(said.chars()).filter(|c| !c.is_whitespace()) {
            let at = rest.find(c);
            prop_assert!(at.is_some(), "{c:?} of {reasoning:?} and {said:?} in {text:?}");
            rest = &rest[at.unwrap() + c.len_utf8()..];
        }
    }
}
