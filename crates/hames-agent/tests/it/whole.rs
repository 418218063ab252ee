//! When an answer is whole, and what becomes of one that is not.

use hames_protocol::{Cost, Cut, ErrorClass, Event, Failure, Item, Price, Rates, RunResult, ToolErrorClass};
use serde_json::json;

use crate::support::{Hames, Reply, Setup, ended, hames};

/// What a step that is not whole comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comes {
    /// Whole: calls run.
    Runs,
    /// The output limit.
    Limit,
    /// The run fails with this class.
    Fails(ErrorClass),
}

fn table() -> Vec<(Option<&'static str>, bool, bool, Comes)> {
    use Comes::{Fails, Limit, Runs};
    let mut rows = Vec::new();
    for (done, usage) in [(false, false), (false, true), (true, false), (true, true)] {
        for reason in ["stop", "tool_calls", "function_call", "end_turn", "STOP", "eos", "unheard_of"] {
            rows.push((Some(reason), done, usage, Runs));
        }
        rows.push((Some("length"), done, usage, Limit));
        rows.push((Some("content_filter"), done, usage, Fails(ErrorClass::ContentFilter)));
        rows.push((Some("error"), done, usage, Fails(ErrorClass::ServerError)));
        for none in [None, Some("")] {
            rows.push((none, done, usage, if done && usage { Runs } else { Fails(ErrorClass::StreamIncomplete) }));
        }
    }
    rows
}

fn ending(reply: Reply, reason: Option<&str>, done: bool, usage: bool) -> Reply {
    let reply = reply.finish(reason);
    let reply = if done { reply } else { reply.no_done() };
    if usage { reply } else { reply.no_usage() }
}

fn is_whole(hames: &Hames) -> Vec<bool> {
    hames.find(|event| if let Event::StepDone(done) = event { Some(done.whole) } else { None })
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_text_ends_the_run_as_its_end_says() {
    for (reason, done, usage, comes) in table() {
        let mut hames = hames([ending(Reply::text("Hi."), reason, done, usage)]).await;
        let end = hames.run("go").await;
        let row = (reason, done, usage);
        match comes {
            Comes::Runs => ended(&end, RunResult::Complete, 0),
            Comes::Limit => ended(&end, RunResult::Stopped, 3),
            Comes::Fails(class) => {
                ended(&end, RunResult::Error, 1);
                assert_eq!(end.failure.as_ref().map(|f| f.class), Some(class), "{row:?}");
            }
        }
        assert_eq!(is_whole(&hames), [comes == Comes::Runs], "{row:?}");
        // What was seen is kept, and nothing is asked again.
        assert_eq!(hames.texts(), ["Hi."], "{row:?}");
        assert_eq!(hames.model.asked().len(), 1, "{row:?}");
        let cuts = hames.find(|event| if let Event::TextDone(text) = event { Some(text.cut) } else { None });
        let cut = match comes {
            Comes::Runs => None,
            Comes::Limit => Some(Cut::Limit),
            Comes::Fails(_) => Some(Cut::Stream),
        };
        assert_eq!(cuts, [cut], "{row:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_run_exactly_where_the_answer_is_whole_whatever_the_reason_is_called() {
    for (reason, done, usage, comes) in table() {
        let reply = Reply::text("Look:").then_call("Look", json!({"path": "a"}));
        let mut hames = hames([ending(reply, reason, done, usage), Reply::text("Done.")]).await;
        let end = hames.run("go").await;
        let row = (reason, done, usage);
        let ran = hames.trace.count("body Look");
        let errors = hames.errors();
        match comes {
            Comes::Runs => {
                ended(&end, RunResult::Complete, 0);
                assert_eq!((ran, errors.len(), hames.model.asked().len()), (1, 0, 2), "{row:?}");
                let last = hames.model.asked().pop().unwrap().items;
                assert!(matches!(last[2].as_ref(), Item::Tool(tool) if tool.text.contains("done with")), "{row:?}");
            }
            Comes::Limit => {
                ended(&end, RunResult::Complete, 0);
                assert_eq!((ran, errors.len(), hames.model.asked().len()), (0, 1, 2), "{row:?}");
            }
            Comes::Fails(class) => {
                ended(&end, RunResult::Error, 1);
                assert_eq!(end.failure.as_ref().map(|f| f.class), Some(class), "{row:?}");
                assert_eq!((ran, errors.len(), hames.model.asked().len()), (0, 1, 1), "{row:?}");
            }
        }
        assert!(errors.iter().all(|(class, _)| *class == ToolErrorClass::NotRun), "{row:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_says_it_is_complete_costs_a_few_requests_and_is_an_error() {
    let visible = [
        Reply::text("hi"),
        Reply::text("hi").then_text(" there"),
        Reply::new().reasoning("Hm"),
        Reply::new().reasoning("Hm").then_text("x"),
        Reply::call("Look", json!({"path": "a"})),
        Reply::new().raw_call("Look", &["{\"pa"]),
        Reply::new().raw_call("", &[]),
        Reply::text(" "),
    ];
    let invisible = [
        Reply::new(),
        Reply::new().ending(|end| end.request_id = Some("r".into())),
        Reply::new().ending(|end| end.native_finish_reason = Some("stop".into())),
    ];
    let ends: [fn(Reply) -> Reply; 3] = [
        |reply| reply.finish(None).no_usage(),
        |reply| reply.finish(None).no_done(),
        |reply| reply.finish(Some("")).no_usage().no_done(),
    ];
    for (reply, requests) in visible.iter().map(|r| (r, 1)).chain(invisible.iter().map(|r| (r, 4))) {
        for end in ends {
            // Served for every request, as a broken server would.
            let mut hames = hames(std::iter::repeat_n(end(reply.clone()), 50)).await;
            let run = hames.run("go").await;
            ended(&run, RunResult::Error, 1);
            assert_eq!(run.failure.as_ref().map(|f| f.class), Some(ErrorClass::StreamIncomplete));
            assert_eq!(hames.model.asked().len(), requests);
            assert_eq!(hames.types().iter().filter(|t| *t == "error").count(), 1);
            // The next run fares no worse.
            hames.renew();
            ended(&hames.run("again").await, RunResult::Error, 1);
            assert_eq!(hames.model.asked().len(), 2 * requests);
        }
    }
}

#[tokio::test]
async fn calls_under_the_reason_stop_are_run_and_their_results_are_sent() {
    let one = || Reply::call("Look", json!({"path": "a"}));
    let replies = [
        one(),
        one().no_usage(),
        one().no_done(),
        Reply::text("I look.").then_call("Look", json!({"path": "a"})),
        Reply::new().reasoning("Hm.").then_call("Look", json!({"path": "a"})),
        one().then_call("Change", json!({"path": "b"})),
        Reply::new().raw_call("Look", &["{\"path\"", ":\"a\"}"]),
        one().then_text("That was it."),
        Reply::new().raw_call("look", &["{\"path\": ", "\"a\"}"]),
    ];
    for reason in ["stop", "STOP", "end_turn", "complete"] {
        for reply in &replies {
            let mut hames = hames([reply.clone().finish(Some(reason)), Reply::text("Done.")]).await;
            ended(&hames.run("go").await, RunResult::Complete, 0);
            let asked = hames.model.asked();
            assert_eq!(asked.len(), 2);
            let results = asked[1].items.iter().filter(|item| matches!(item.as_ref(), Item::Tool(_))).count();
            assert_eq!(results, hames.types().iter().filter(|t| *t == "tool.call").count());
            assert!(hames.trace.count("body Look") == 1);
        }
    }
}

fn limited() -> Vec<Reply> {
    let cut = |pieces: &[&str]| Reply::new().raw_call("Change", pieces);
    let whole = json!({"path": "big.md"});
    [
        cut(&["{\"path\":\"big.md\",\"content\":\"line1\\nli"]),
        cut(&["{\"path\":\"big.md\"}"]),
        cut(&["{\"path\":\"big"]),
        cut(&[]),
        cut(&["{"]),
        Reply::text("I write.").raw_call("Change", &["{\"path\":"]),
        Reply::call("Change", whole.clone()).raw_call("Change", &["{\"pa"]),
        Reply::call("Look", whole.clone()).then_call("Change", whole.clone()),
        Reply::new().reasoning("Hm").then_call("Do", whole),
        Reply::new().raw_call("Nothing", &["{}"]),
    ]
    .map(|reply| reply.finish(Some("length")))
    .into()
}

#[tokio::test]
async fn at_the_output_limit_no_call_runs_and_the_model_is_asked_for_smaller_pieces() {
    for reply in limited() {
        let mut hames = hames([reply, Reply::text("Done.")]).await;
        ended(&hames.run("go").await, RunResult::Complete, 0);
        assert!(!hames.types().contains(&"tool.start".to_owned()));
        assert!(!hames.trace.all().iter().any(|mark| mark.starts_with("body")));
        let calls = hames.types().iter().filter(|t| *t == "tool.call").count();
        let errors = hames.errors();
        assert_eq!(errors.len(), calls);
        for (class, text) in errors {
            assert_eq!(class, ToolErrorClass::NotRun);
            assert!(text.contains("output limit") && text.contains("smaller pieces"), "{text}");
        }
        assert_eq!(is_whole(&hames), [false, true]);
    }
}

#[tokio::test]
async fn the_output_limit_again_and_again_stops_the_run() {
    for reply in limited() {
        let mut hames = hames(std::iter::repeat_n(reply, 50)).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Stopped, 3);
        assert_eq!(end.reason.as_deref(), Some("output_limit"));
        assert_eq!(hames.model.asked().len(), 3);
    }
}

#[tokio::test]
async fn a_whole_step_between_lets_the_model_try_again() {
    let good = || Reply::call("Look", json!({"path": "a"}));
    let bad = || limited().remove(0);
    let mut hames = hames([bad(), bad(), good(), bad(), bad(), good(), Reply::text("Done.")]).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
}

#[tokio::test]
async fn the_output_limit_without_a_call_ends_the_run_and_keeps_the_text() {
    for reply in [Reply::text("Half a sen"), Reply::new().reasoning("Only thoughts"), Reply::new()] {
        let mut hames = hames([reply.finish(Some("length"))]).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Stopped, 3);
        assert_eq!((end.reason.as_deref(), hames.model.asked().len()), (Some("output_limit"), 1));
    }
}

#[tokio::test]
async fn a_filtered_answer_is_a_failure_that_is_not_tried_again() {
    let replies = [
        Reply::new(),
        Reply::text("So far"),
        Reply::new().reasoning("Hm"),
        Reply::call("Look", json!({"path": "a"})),
        Reply::text("So far").then_call("Look", json!({"path": "a"})),
    ];
    for reply in replies {
        let mut hames = hames([reply.finish(Some("content_filter"))]).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Error, 1);
        assert_eq!(end.reason.as_deref(), Some("content_filter"));
        assert_eq!((hames.model.asked().len(), hames.trace.count("body Look")), (1, 0));
        hames.renew();
        hames.model.push(Reply::text("Better."));
        ended(&hames.run("again").await, RunResult::Complete, 0);
    }
}

#[tokio::test]
async fn a_refusal_is_kept_as_text_where_there_is_no_other() {
    for (text, refusal, kept) in [
        ("", "I will not.", "I will not."),
        ("\n", "I will not.", "I will not."),
        ("Sorry.", "I will not.", "Sorry."),
        ("Sorry.", "", "Sorry."),
    ] {
        let reply = if text.is_empty() { Reply::new() } else { Reply::text(text) };
        let mut hames = hames([reply.ending(|end| end.refusal = Some(refusal.into()))]).await;
        ended(&hames.run("go").await, RunResult::Complete, 0);
        assert_eq!(hames.texts(), [kept]);
    }
}

#[tokio::test]
async fn an_empty_answer_stops_the_run_and_the_session_goes_on() {
    let empty =
        [Reply::new(), Reply::text(" \n"), Reply::new().reasoning("Hm."), Reply::new().reasoning("a").then_text("\n")];
    for reply in empty {
        let mut hames = hames([reply, Reply::text("Here.")]).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Stopped, 3);
        assert_eq!(end.reason.as_deref(), Some("empty_answer"));
        hames.renew();
        ended(&hames.run("again").await, RunResult::Complete, 0);
        // What said nothing is not sent.
        let sent = hames.model.asked().pop().unwrap().items;
        assert!(sent.iter().all(|item| matches!(item.as_ref(), Item::User(_))), "{sent:?}");
    }
}

#[tokio::test]
async fn only_the_block_that_was_being_streamed_is_cut() {
    let look = || json!({"path": "a"});
    let cases: Vec<(Reply, Option<Cut>, Option<Cut>)> = vec![
        (Reply::new().reasoning("Hm"), Some(Cut::Limit), None),
        (Reply::new().reasoning("Hm").then_text("So"), None, Some(Cut::Limit)),
        (Reply::new().reasoning("Hm").then_text("So").then_call("Look", look()), None, None),
        (Reply::new().reasoning("Hm").then_call("Look", look()), None, None),
        (Reply::text("So").then_call("Look", look()), None, None),
        (Reply::text("So"), None, Some(Cut::Limit)),
        (Reply::text("So").reasoning("Hm"), Some(Cut::Limit), None),
    ];
    for (reply, reasoning, text) in cases {
        let mut hames = hames([reply.finish(Some("length")), Reply::text("Done.")]).await;
        hames.run("go").await;
        let cuts = hames.find(|event| match event {
            Event::ReasoningDone(done) => Some((done.cut, None)),
            Event::TextDone(done) if done.text != "Done." => Some((None, done.cut)),
            _ => None,
        });
        assert_eq!(cuts.iter().find_map(|c| c.0), reasoning);
        assert_eq!(cuts.iter().find_map(|c| c.1), text);
    }
}

#[tokio::test]
async fn an_ordinal_beyond_all_measure_costs_no_memory() {
    let delta = |call| hames_protocol::Delta::ToolInput { call, name: None, text: "{}".into() };
    let mut hames =
        hames([Reply::text("Hi.").delta(delta(u32::MAX)).delta(delta(u32::MAX - 1)).finish(Some("stop"))]).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
}

#[tokio::test]
async fn one_piece_of_many_megabytes_is_an_answer_like_any_other() {
    let text = "x".repeat(8 << 20);
    let mut hames = Setup { window: 100_000_000, ..Setup::new([Reply::text(&text), Reply::text("ok")]) }.build().await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(hames.texts()[0].len(), text.len());
    hames.renew();
    ended(&hames.run("again").await, RunResult::Complete, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_is_kept_if_seen_and_asked_again_if_not() {
    let broken = || Failure::new(ErrorClass::Connection, "The connection broke.").retryable();
    let seen = [
        Reply::text("Half"),
        Reply::new().reasoning("Hm"),
        Reply::new().raw_call("Look", &["{\"pa"]),
        Reply::call("Look", json!({"path": "a"})),
    ];
    for reply in seen {
        let mut hames = hames([reply.breaks(broken()), Reply::text("unasked")]).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Error, 1);
        assert_eq!(end.failure.map(|f| f.class), Some(ErrorClass::Connection));
        assert_eq!((hames.model.asked().len(), hames.trace.count("body Look")), (1, 0));
        assert!(!hames.types().contains(&"retry".to_owned()));
        hames.renew();
        ended(&hames.run("again").await, RunResult::Complete, 0);
    }
    let mut hames = hames([Reply::new().breaks(broken()), Reply::text("Here.")]).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(hames.texts(), ["Here."]);
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_no_provider_states_is_computed_from_the_price_and_else_unknown() {
    let price = Price { rates: Rates { input: 3_000_000, output: 15_000_000, ..Rates::default() }, tiers: vec![] };
    let stated = Cost { micros: 7, currency: "USD".into(), computed: false };
    let computed = Cost { micros: 100 * 3 + 10 * 15, currency: "USD".into(), computed: true };
    let stating = Reply::text("Hi.").ending(|end| end.cost = Some(stated.clone()));
    for (price, reply, expected) in [
        (Some(price.clone()), Reply::text("Hi."), Some(computed)),
        (Some(price.clone()), stating, Some(stated.clone())),
        (Some(price), Reply::text("Hi.").no_usage(), None),
        (None, Reply::text("Hi."), None),
    ] {
        let mut hames = Setup { price, ..Setup::new([reply]) }.build().await;
        hames.run("go").await;
        let costs = hames.find(|event| if let Event::StepDone(done) = event { Some(done.cost.clone()) } else { None });
        assert_eq!(costs, [expected]);
    }
}
