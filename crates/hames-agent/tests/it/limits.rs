//! What is refused before it is sent, and where a run stops by itself.

use std::sync::Arc;

use hames_agent::{Nobody, RunControl, RunInput};
use hames_protocol::{Envelope, ErrorClass, Event, Item, Part, RunResult, TextDone};
use serde_json::json;

use crate::support::{Reply, Setup, ended, hames, sound};

#[tokio::test]
async fn a_run_stops_at_its_step_limit() {
    for max in 0..6u32 {
        let mut setup = Setup::new(std::iter::repeat_n(Reply::call("Look", json!({"path": "a"})), 20));
        setup.max_steps = Some(max);
        let mut hames = setup.build().await;
        ended(&hames.run("go").await, RunResult::MaxSteps, 3);
        assert_eq!(hames.model.asked().len(), max as usize);
        assert_eq!(hames.trace.count("body Look"), max as usize);
        // The limit is the run's, not the session's.
        hames.renew();
        ended(&hames.run("again").await, RunResult::MaxSteps, 3);
        assert_eq!(hames.model.asked().len(), 2 * max as usize);
    }
}

#[tokio::test]
async fn an_answer_at_the_step_limit_is_an_answer() {
    let mut setup = Setup::new([Reply::call("Look", json!({"path": "a"})), Reply::text("Done.")]);
    setup.max_steps = Some(2);
    ended(&setup.build().await.run("go").await, RunResult::Complete, 0);
}

#[tokio::test]
async fn a_head_larger_than_the_window_is_refused_in_words_that_help() {
    for (window, system) in [(2_000, 20_000), (8_000, 40_000), (1_000, 3_600)] {
        let mut setup = Setup::new([]);
        (setup.window, setup.system) = (window, "word ".repeat(system / 5));
        let mut hames = setup.build().await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Error, 1);
        let failure = end.failure.unwrap();
        assert_eq!(failure.class, ErrorClass::ContextOverflow);
        for word in ["instruction files", "larger window", &window.to_string(), "test/script"] {
            assert!(failure.message.contains(word), "{}", failure.message);
        }
        assert_eq!(hames.model.asked().len(), 0);
        assert!(!hames.types().contains(&"step.start".to_owned()));
    }
}

#[tokio::test]
async fn a_message_larger_than_the_window_is_sent_in_part() {
    let mut setup = Setup::new([Reply::text("Done.")]);
    setup.window = 8_000;
    let mut hames = setup.build().await;
    ended(&hames.run(&format!("first {}last", "word ".repeat(10_000))).await, RunResult::Complete, 0);
    let Item::User(sent) = hames.model.asked()[0].items[0].as_ref().clone() else { panic!() };
    let Part::Text { text } = &sent.parts[0] else { panic!() };
    assert!(text.starts_with("first") && text.trim_end().ends_with("last") && text.len() < 16_000, "{}", text.len());
    assert!(hames.types().contains(&"window.externalised".to_owned()));
}

#[tokio::test]
async fn the_answer_is_given_the_room_that_is_left() {
    let mut setup = Setup::new([Reply::text("a").no_usage(), Reply::text("b").no_usage()]);
    setup.window = 8_000;
    let mut hames = setup.build().await;
    for _ in 0..2 {
        hames.run(&"word ".repeat(1_520)).await;
        hames.renew();
    }
    let asked: Vec<u64> = hames.model.asked().iter().map(|a| a.options.max_output_tokens.unwrap()).collect();
    assert_eq!(asked[0], 4_096);
    assert!(asked[1] < 3_900 && asked[1] >= 256, "{asked:?}");
    assert!(hames.model.asked().iter().all(|a| a.options.session.as_deref() == Some("s-1")));
}

#[tokio::test]
async fn a_message_that_says_nothing_begins_no_run() {
    for parts in [vec![], vec![Part::text("")], vec![Part::text(" \n\t")], vec![Part::text(""), Part::text(" ")]] {
        for note in [None, Some("[note]".to_owned())] {
            let mut hames = hames([Reply::text("Here.")]).await;
            let input = RunInput { parts: parts.clone(), note, ..RunInput::default() };
            let seen = Arc::new(hames.seen.clone());
            let end = hames.session.run(&mut hames.agent, input, &RunControl::default(), seen).await;
            ended(&end, RunResult::Error, 2);
            assert_eq!(end.failure.unwrap().class, ErrorClass::Usage);
            assert_eq!(hames.log.events().len(), 1);
            assert!(matches!(hames.seen.all().last().unwrap().event, Event::RunDone(_)));
            // And the session is as good as before: what was seen then is no part of it.
            let input = RunInput { parts: vec![Part::text("go")], ..RunInput::default() };
            let end = hames.session.run(&mut hames.agent, input, &RunControl::default(), Arc::new(Nobody)).await;
            ended(&end, RunResult::Complete, 0);
            sound::log(&hames.log.events());
        }
    }
}

#[tokio::test]
async fn a_conversation_that_breaks_a_rule_is_refused_by_name_and_nothing_is_sent() {
    let created = hames([]).await.log.events();
    let event = |event: Event| Envelope { session: Some("s-1".into()), ..Envelope::detached(1, event) };
    let says = |text: &str| event(Event::TextDone(TextDone { index: 0, text: text.into(), cut: None }));
    let done = || event(Event::step_done_for_tests("stop"));
    let call = |id: &str| {
        event(Event::ToolCall(hames_protocol::ToolCall {
            call_id: id.into(),
            provider_id: String::new(),
            name: "Look".into(),
            arguments: "{}".into(),
            input: None,
            label: hames_protocol::Label::default(),
            declaration: None,
            extra: None,
        }))
    };
    let cases = [
        vec![says("I was here first."), done()],
        vec![call("a"), done()],
        vec![says("One."), done(), says("Two."), done()],
    ];
    for events in cases {
        let log: Vec<Envelope> = created.iter().cloned().chain(events).collect();
        let mut hames = Setup::new([Reply::text("unasked")]).build_from(&log, &[]).await;
        let end = hames.run_unchecked("go").await;
        ended(&end, RunResult::Error, 1);
        let failure = end.failure.unwrap();
        assert_eq!(failure.class, ErrorClass::WireRule);
        for words in ["message 1 cannot be sent", "must open with a user message", "start a new session"] {
            assert!(failure.message.contains(words), "{}", failure.message);
        }
        assert_eq!(hames.trace.count("sent"), 0);
        assert_eq!(hames.types().join(" "), "run.start message.user error done turn.done run.done");
    }
}
