//! What is kept beside the log of a step that is being streamed.

use std::sync::Arc;
use std::time::Duration;

use hames_protocol::{Event, OpenKind, RunResult};
use serde_json::json;

use crate::support::{Gate, Hames, Reply, Setup, ended, hames, settle};

fn kept(hames: &Hames) -> String {
    hames.log.saved().into_iter().filter(|b| b.kind == OpenKind::Text).map(|b| b.text).collect()
}

/// Dies while the gate holds the stream; gives what the next holder finds as text.
async fn dies_at(hames: &mut Hames, gate: &Gate) -> Vec<String> {
    {
        let run = hames.run_unchecked("go");
        tokio::pin!(run);
        tokio::select! {
            _ = &mut run => panic!("it ended"),
            () = gate.reached() => {}
        }
    }
    settle().await;
    hames.reopen().await;
    hames.texts()
}

#[tokio::test]
async fn pieces_are_kept_after_so_many_bytes() {
    for (piece, count) in [(1, 40_000), (100, 400), (16_384, 3), (70_000, 1)] {
        let gate = Gate::new();
        let text = "x".repeat(piece);
        let reply = (0..count).fold(Reply::new(), |reply, _| reply.then_text(&text)).gate(&gate);
        let mut setup = Setup::new([reply]);
        setup.clock_step = 0;
        let mut hames = setup.build().await;
        let texts = dies_at(&mut hames, &gate).await;
        let (shown, found) = (piece * count, texts.concat().len());
        assert!(found <= shown && shown - found < 16_384, "{piece}: {found} of {shown}");
        // In few writes, however many pieces.
        assert!(hames.log.saved().len() <= shown / 16_384 + 1);
    }
}

#[tokio::test]
async fn pieces_are_kept_after_a_while() {
    let (gate, last) = (Gate::new(), Gate::new());
    let mut setup = Setup::new([Reply::text("a").gate(&gate).then_text("b").gate(&last)]);
    setup.clock_step = 0;
    let mut hames = setup.build().await;
    let clock = Arc::clone(&hames.clock);
    let ticks = async {
        gate.reached().await;
        clock.set(1_000_000);
        gate.open();
        std::future::pending::<()>().await;
    };
    let texts = tokio::select! {
        texts = dies_at(&mut hames, &last) => texts,
        () = ticks => unreachable!(),
    };
    assert_eq!(texts, ["ab"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_pauses_has_kept_what_it_said() {
    for hold in [Gate::new(), Gate::new()] {
        let mut hames = hames([Reply::text("So far").gate(&hold)]).await;
        let clock = Arc::clone(&hames.clock);
        let control = hames_agent::RunControl::default();
        {
            let input = hames_agent::RunInput { parts: vec![hames_protocol::Part::text("go")], ..Default::default() };
            let run = hames.session.run(&mut hames.agent, input, &control, Arc::new(hames.seen.clone()));
            tokio::pin!(run);
            let waits = async {
                hold.reached().await;
                clock.set(1_000_000);
                tokio::time::sleep(Duration::from_secs(5)).await;
            };
            tokio::select! {
                _ = &mut run => panic!("it ended"),
                () = waits => {}
            }
        }
        assert_eq!(kept(&hames), "So far");
        hames.reopen().await;
        assert_eq!(hames.texts(), ["So far"]);
    }
}

#[tokio::test]
async fn a_clock_that_goes_backwards_stands_still_or_jumps_harms_nothing() {
    for times in [[5_000_000, 10], [10, 5_000_000], [0, 0], [u64::MAX - 1, 0], [1, u64::MAX - 5]] {
        let (gate, last) = (Gate::new(), Gate::new());
        let reply = Reply::text("a").gate(&gate).then_text("b").gate(&last).then_call("Look", json!({"path": "a"}));
        let mut setup = Setup::new([reply, Reply::text("Done.")]);
        setup.clock_step = 0;
        let mut hames = setup.build().await;
        hames.clock.set(times[0]);
        let clock = Arc::clone(&hames.clock);
        let ticks = async {
            gate.reached().await;
            clock.set(times[1]);
            gate.open();
            last.reached().await;
            last.open();
        };
        let (end, ()) = tokio::join!(hames.run("go"), ticks);
        ended(&end, RunResult::Complete, 0);
        // A clock set back keeps pieces rather early than never.
        let moved = times[0] != times[1];
        assert_eq!(kept(&hames) == "ab", moved, "{times:?}");
        let turn = hames.find(|e| if let Event::TurnDone(turn) = e { Some(turn.duration_ms) } else { None });
        assert_eq!(turn, [times[1].saturating_sub(times[0])]);
    }
}

#[tokio::test]
async fn after_a_piece_is_lost_what_is_kept_is_still_the_beginning() {
    let (first, second, last) = (Gate::new(), Gate::new(), Gate::new());
    let [a, b, c] = ["a", "b", "c"].map(|letter| letter.repeat(20_000));
    let reply = Reply::text(&a).gate(&first).then_text(&b).gate(&second).then_text(&c).gate(&last);
    let mut hames = hames([reply]).await;
    let log = hames.log.clone();
    let fails = async {
        first.reached().await;
        log.lose_pieces(true);
        first.open();
        second.reached().await;
        log.lose_pieces(false);
        second.open();
        std::future::pending::<()>().await;
    };
    let texts = tokio::select! {
        texts = dies_at(&mut hames, &last) => texts,
        () = fails => unreachable!(),
    };
    assert_eq!(texts, [a]);
}

#[tokio::test]
async fn losing_pieces_does_not_end_a_run_and_the_next_step_is_kept_again() {
    let gate = Gate::new();
    let long = "x".repeat(20_000);
    let first = Reply::text(&long).then_text(&long).then_call("Look", json!({"path": "a"}));
    let mut hames = hames([first, Reply::text(&long).gate(&gate)]).await;
    hames.log.lose_pieces(true);
    let (log, trace) = (hames.log.clone(), hames.trace.clone());
    let mends = async {
        trace.until("see tool.start").await;
        log.lose_pieces(false);
        std::future::pending::<()>().await;
    };
    let texts = tokio::select! {
        texts = dies_at(&mut hames, &gate) => texts,
        () = mends => unreachable!(),
    };
    assert_eq!(texts, [format!("{long}{long}"), long]);
}

#[tokio::test]
async fn nothing_is_left_beside_the_log_after_a_step() {
    let long = "x".repeat(40_000);
    let mut hames = hames([Reply::text(&long).then_call("Look", json!({"path": "a"})), Reply::text(&long)]).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert!(!hames.log.saved().is_empty());
    let left = hames.ports.log.take_open(hames.session.id()).await.unwrap();
    assert_eq!(left, []);
}

#[tokio::test]
async fn a_watcher_that_breaks_down_leaves_a_log_that_can_be_gone_on_with() {
    for kind in ["run.start", "step.start", "text.delta", "step.done", "tool.start", "tool.done", "done"] {
        let reply = Reply::text("I look.").then_call("Look", json!({"path": "a"}));
        let mut hames = hames([reply, Reply::text("Done.")]).await;
        hames.seen.panic_at(kind);
        let (mut hames, ended_by_panic) = tokio::spawn(async move {
            let run = std::panic::AssertUnwindSafe(hames.run_unchecked("go"));
            let panicked = futures_util::FutureExt::catch_unwind(run).await.is_err();
            (hames, panicked)
        })
        .await
        .unwrap();
        // In a tool's task the door answers for it; in the run's own it is the caller's to know.
        assert_eq!(ended_by_panic, kind != "tool.start", "{kind}");
        hames.renew();
        hames.model.clear();
        hames.model.push(Reply::text("Going on."));
        ended(&hames.run("again").await, RunResult::Complete, 0);
    }
}
