//! Messages that arrive while a run goes on.

use std::sync::Arc;
use std::time::Duration;

use hames_protocol::{Cut, Delivery, Effect, Event, Inbox, Item, MemoryInbox, Part, RunResult, ToolErrorClass};
use serde_json::json;

use crate::support::{Gate, Hames, Reply, Setup, TestTool, ended, hames, pending, settle};

fn look() -> serde_json::Value {
    json!({"path": "a"})
}

/// Ids of the messages the run took in, in log order, with how they came.
fn delivered(hames: &Hames) -> Vec<(String, Delivery)> {
    hames.find(|event| match event {
        Event::MessageUser(message) => Some((message.pending_id.as_ref()?.to_string(), message.delivery?)),
        _ => None,
    })
}

fn last_says(hames: &Hames, text: &str) -> bool {
    let asked = hames.model.asked().pop().unwrap().items;
    matches!(asked.last().unwrap().as_ref(), Item::User(user) if user.parts == [Part::text(text)])
}

#[tokio::test]
async fn a_steer_waits_for_the_whole_batch_and_cuts_nothing() {
    let gate = Gate::new();
    let slow = TestTool::new("Slow", Effect::Read).gated(&gate);
    let calls = Reply::call("Slow", look()).then_call("Change", json!({"path": "b"}));
    let mut hames = Setup::new([calls, Reply::text("Done.")]).tool(slow).build().await;
    let inbox = hames.inbox.clone();
    let says = async {
        gate.reached().await;
        inbox.push(pending("1", Delivery::Steer)).unwrap();
        settle().await;
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(hames.errors(), []);
    assert_eq!(delivered(&hames), [("1".into(), Delivery::Steer)]);
    assert!(last_says(&hames, "message 1"));
    assert!(inbox.waiting().is_empty());
}

#[tokio::test]
async fn a_steer_in_the_middle_of_text_lets_the_model_finish() {
    let gate = Gate::new();
    let mut hames = hames([Reply::text("One ").gate(&gate).then_text("two."), Reply::text("Three.")]).await;
    let inbox = hames.inbox.clone();
    let says = async {
        gate.reached().await;
        inbox.push(pending("1", Delivery::Steer)).unwrap();
        settle().await;
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(hames.texts(), ["One two.", "Three."]);
    assert!(last_says(&hames, "message 1"));
}

#[tokio::test]
async fn an_interrupt_cuts_the_stream_and_the_model_begins_again_around_it() {
    type Case = (fn(&Gate) -> Reply, &'static [&'static str]);
    let cases: [Case; 5] = [
        (|gate| Reply::text("late").gate_head(gate), &["Heard."]),
        (|gate| Reply::text("Half").gate(gate).then_text(" more"), &["Half", "Heard."]),
        (|gate| Reply::new().reasoning("Hm").gate(gate), &["Heard."]),
        (|gate| Reply::text("I look.").raw_call("Look", &["{\"pa"]).gate(gate), &["I look.", "Heard."]),
        (|gate| Reply::text("I look.").then_call("Look", look()).gate(gate), &["I look.", "Heard."]),
    ];
    for (cut, texts) in cases {
        let gate = Gate::new();
        let mut hames = hames([cut(&gate), Reply::text("Heard.")]).await;
        let inbox = hames.inbox.clone();
        let says = async {
            gate.reached().await;
            inbox.push(pending("1", Delivery::Interrupt)).unwrap();
        };
        let (end, ()) = tokio::join!(hames.run("go"), says);
        ended(&end, RunResult::Complete, 0);
        assert_eq!(hames.texts(), texts);
        assert_eq!(delivered(&hames), [("1".into(), Delivery::Interrupt)]);
        assert!(last_says(&hames, "message 1"));
        for (class, text) in hames.errors() {
            assert_eq!((class, text.contains("the user added a message")), (ToolErrorClass::NotRun, true));
        }
        let cuts = hames.find(|e| if let Event::TextDone(text) = e { text.cut } else { None });
        assert!(cuts.iter().all(|cut| *cut == Cut::Interrupt));
        assert_eq!(hames.trace.count("body Look"), 0);
    }
}

#[tokio::test]
async fn an_interrupt_lets_running_changes_finish_and_cancels_reads() {
    for (effect, cancelled) in [
        (Effect::Read, true),
        (Effect::Edit, false),
        (Effect::Run, false),
        (Effect::External, false),
        (Effect::Session, false),
    ] {
        let (gate, after) = (Gate::new(), Gate::new());
        let slow = TestTool::new("Slow", effect).gated(&gate);
        // The second call waits for the first, because it changes the same file.
        let calls = Reply::call("Slow", look()).then_call("Change", look());
        let mut hames = Setup::new([calls, Reply::text("Heard.").gate_head(&after)]).tool(slow).build().await;
        let (inbox, trace) = (hames.inbox.clone(), hames.trace.clone());
        let says = async {
            gate.reached().await;
            inbox.push(pending("1", Delivery::Interrupt)).unwrap();
            settle().await;
            let was_over = trace.count("log message.user") == 2;
            assert_eq!(was_over, cancelled, "{effect:?}");
            gate.open();
            after.open();
        };
        let (end, ()) = tokio::join!(hames.run("go"), says);
        ended(&end, RunResult::Complete, 0);
        let classes: Vec<ToolErrorClass> = hames.errors().into_iter().map(|e| e.0).collect();
        match effect {
            Effect::Read => assert!(classes.contains(&ToolErrorClass::Cancelled), "{classes:?}"),
            // It names no resource, so the second call does not wait for it.
            Effect::Session => continue,
            _ => assert_eq!(classes, [ToolErrorClass::NotRun], "{effect:?}"),
        }
        assert_eq!(hames.trace.count("body Change"), 0, "{effect:?}");
    }
}

#[tokio::test]
async fn an_interrupt_between_step_done_and_its_calls_starts_none() {
    let mut hames =
        hames([Reply::call("Change", look()).then_call("Look", json!({"path": "b"})), Reply::text("Heard.")]).await;
    let gate = hames.seen.hold("step.done");
    let inbox = hames.inbox.clone();
    let says = async {
        gate.reached().await;
        inbox.push(pending("1", Delivery::Interrupt)).unwrap();
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert!(!hames.types().contains(&"tool.start".to_owned()));
    assert_eq!(hames.errors().len(), 2);
}

#[tokio::test]
async fn a_signal_left_from_a_delivered_message_cuts_nothing() {
    // Delivered as one that waits already, so its signal is never listened to.
    for count in 1..=3 {
        let mut hames = hames([Reply::text("One ").then_text("two."), Reply::text("unasked")]).await;
        for n in 0..count {
            hames.inbox.push(pending(&n.to_string(), Delivery::Interrupt)).unwrap();
        }
        ended(&hames.run("go").await, RunResult::Complete, 0);
        assert_eq!(hames.texts(), ["One two."]);
        assert_eq!(delivered(&hames).len(), count);
        assert_eq!(hames.model.asked().len(), 1);
    }
}

#[tokio::test]
async fn messages_are_delivered_once_and_in_order_whatever_they_are() {
    use Delivery::{Interrupt, Steer};
    let mixes: [&[Delivery]; 6] = [
        &[Steer, Steer, Steer],
        &[Interrupt, Interrupt, Interrupt],
        &[Steer, Interrupt, Steer],
        &[Interrupt, Steer],
        &[Steer],
        &[Interrupt, Steer, Interrupt, Steer, Interrupt],
    ];
    for mix in mixes {
        let gate = Gate::new();
        let mut hames = hames([Reply::text("Half").gate(&gate), Reply::text("Heard.")]).await;
        let inbox = hames.inbox.clone();
        let says = async {
            gate.reached().await;
            for (n, delivery) in mix.iter().enumerate() {
                inbox.push(pending(&n.to_string(), *delivery)).unwrap();
            }
            gate.open();
        };
        let (end, ()) = tokio::join!(hames.run("go"), says);
        ended(&end, RunResult::Complete, 0);
        let expected: Vec<_> = mix.iter().enumerate().map(|(n, d)| (n.to_string(), *d)).collect();
        assert_eq!(delivered(&hames), expected);
        assert_eq!(hames.model.asked().len(), 2);
        // None of them is still waiting in the fold either.
        assert!(hames.session.state().pending.is_empty());
    }
}

#[tokio::test]
async fn a_message_just_before_the_end_is_not_lost() {
    // In the gap between the last event of the answer and the closing of the inbox.
    for (held, delivery) in [
        ("text.done", Delivery::Steer),
        ("text.done", Delivery::Interrupt),
        ("text.delta", Delivery::Steer),
        ("step.start", Delivery::Steer),
        ("step.start", Delivery::Interrupt),
    ] {
        let mut hames = hames([Reply::text("Done?"), Reply::text("Now done.")]).await;
        let gate = hames.seen.hold(held);
        let inbox = hames.inbox.clone();
        let says = async {
            gate.reached().await;
            inbox.push(pending("1", delivery)).unwrap();
            gate.open();
        };
        let (end, ()) = tokio::join!(hames.run("go"), says);
        ended(&end, RunResult::Complete, 0);
        assert_eq!(delivered(&hames), [("1".into(), delivery)], "{held}");
        assert!(last_says(&hames, "message 1"));
    }
}

#[tokio::test]
async fn a_message_after_the_inbox_was_closed_is_given_back() {
    let mut hames = hames([Reply::text("Done.")]).await;
    let gate = hames.seen.hold("run.done");
    let inbox = hames.inbox.clone();
    let says = async {
        gate.reached().await;
        assert!(inbox.push(pending("1", Delivery::Steer)).is_err());
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert_eq!(delivered(&hames), []);
}

/// A thousand messages at moments nobody chose: each is either in the transcript once or given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_messages_none_is_lost_and_none_is_doubled() {
    let mut hames = hames([]).await;
    let mut given_back = 0;
    let total = 1_000;
    let mut sent = 0;
    while sent < total {
        hames.renew();
        let inbox = hames.inbox.clone();
        let from = sent;
        let sender = tokio::spawn(async move {
            let mut back = Vec::new();
            for n in from..(from + 10).min(total) {
                let delivery = if n % 2 == 0 { Delivery::Steer } else { Delivery::Interrupt };
                if let Err(pending) = inbox.push(pending(&n.to_string(), delivery)) {
                    back.push(pending);
                }
                for _ in 0..(n * 7919) % 13 {
                    tokio::task::yield_now().await;
                }
            }
            back
        });
        let end = hames.run("go").await;
        ended(&end, RunResult::Complete, 0);
        given_back += sender.await.unwrap().len();
        assert!(hames.inbox.waiting().is_empty());
        sent += 10;
    }
    let all: Vec<String> = hames
        .log
        .events()
        .iter()
        .filter_map(
            |e| if let Event::MessageUser(m) = &e.event { Some(m.pending_id.as_ref()?.to_string()) } else { None },
        )
        .collect();
    let unique: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!((all.len(), all.len() + given_back), (unique.len(), total));
}

/// An inbox of somebody else's that counts what it should not.
#[derive(Default)]
struct Stubborn(MemoryInbox);

#[async_trait::async_trait]
impl Inbox for Stubborn {
    fn waiting(&self) -> Vec<hames_protocol::Pending> {
        let queued = [pending("q1", Delivery::Queue), pending("q2", Delivery::Queue)];
        queued.into_iter().chain(self.0.waiting()).collect()
    }
    fn delivered(&self, id: &hames_protocol::PendingId) {
        self.0.delivered(id);
    }
    fn close_if_empty(&self) -> bool {
        false
    }
    async fn interrupt(&self) {
        self.0.interrupt().await;
    }
}

#[tokio::test(start_paused = true)]
async fn queued_messages_are_left_alone_and_keep_no_run_awake() {
    let mut hames = hames([Reply::call("Look", look()), Reply::text("Done.")]).await;
    let inbox = Arc::new(Stubborn::default());
    inbox.0.push(pending("s1", Delivery::Steer)).unwrap();
    let control = hames_agent::RunControl { inbox, ..Default::default() };
    let input = hames_agent::RunInput { parts: vec![Part::text("go")], ..Default::default() };
    let run = hames.session.run(&mut hames.agent, input, &control, Arc::new(hames.seen.clone()));
    let end = tokio::time::timeout(Duration::from_secs(5), run).await.unwrap();
    ended(&end, RunResult::Complete, 0);
    assert_eq!(delivered(&hames), [("s1".into(), Delivery::Steer)]);
    assert_eq!(hames.model.asked().len(), 2);
}

#[tokio::test]
async fn what_a_stopped_run_did_not_take_is_given_back() {
    let gate = Gate::new();
    let mut hames = hames([Reply::text("Half").gate(&gate)]).await;
    let (inbox, abort) = (hames.inbox.clone(), hames.abort.clone());
    let stops = async {
        gate.reached().await;
        inbox.push(pending("1", Delivery::Steer)).unwrap();
        abort.cancel();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Interrupted, 130);
    assert_eq!(delivered(&hames), []);
    assert_eq!(inbox.close().len(), 1);
    assert!(inbox.push(pending("2", Delivery::Steer)).is_err());
    assert!(inbox.close().is_empty());
}

#[tokio::test]
async fn a_message_at_the_output_limit_is_answered() {
    let gate = Gate::new();
    let mut hames = hames([Reply::text("Half").gate(&gate).finish(Some("length")), Reply::text("Heard.")]).await;
    let inbox = hames.inbox.clone();
    let says = async {
        gate.reached().await;
        inbox.push(pending("1", Delivery::Steer)).unwrap();
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert!(last_says(&hames, "message 1"));
}

#[tokio::test]
async fn errors_before_a_message_still_count() {
    let mut hames = hames([Reply::call("Nothing", look()), Reply::text("Done?"), Reply::text("Done.")]).await;
    let gate = hames.seen.hold("text.done");
    let inbox = hames.inbox.clone();
    let says = async {
        gate.reached().await;
        inbox.push(pending("1", Delivery::Steer)).unwrap();
        gate.open();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    let errors = hames.find(|e| if let Event::Done(done) = e { Some(done.errors) } else { None });
    assert_eq!(errors, [1]);
}
