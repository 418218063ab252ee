//! What planning costs: a session of 10,000 items taken in and planned, one more item, a decision, a report.
//! `cargo bench -p hames-context`; `cargo xtask window` keeps the figures and holds them to their limits.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use hames_context::{Budget, Moment, Plan, Terms, Window};
use hames_protocol::{Envelope, Event, Transcript, WindowState};
use hames_testkit::counted;
use serde_json::json;

const ITEMS: usize = 10_000;

struct Log {
    transcript: Transcript,
    state: WindowState,
    seq: u64,
}

impl Log {
    fn push(&mut self, event: serde_json::Value) {
        self.record(serde_json::from_value(event).unwrap());
    }

    fn record(&mut self, event: Event) {
        assert!(!matches!(event, Event::Unknown(_)));
        self.seq += 1;
        let envelope = Envelope { seq: Some(self.seq), ..Envelope::detached(0, event) };
        self.transcript.apply_at(self.seq, &envelope.event);
        self.state.apply(&envelope);
    }

    fn step(&mut self, n: usize) {
        let (id, path) = (format!("c{n}"), format!("src/{n}.rs"));
        self.push(json!({"type": "tool.call", "call_id": id, "provider_id": id, "name": "Read",
            "arguments": json!({"path": path}).to_string(), "label": {"tool": "Read", "target": path}}));
        self.record(Event::step_done_for_tests("tool_calls"));
        self.push(json!({"type": "tool.done", "call_id": id, "name": "Read", "duration_ms": 1,
            "output": "let x = compute(input)?; // and some more of the line\n".repeat(8)}));
    }

    fn message(&mut self, n: usize) {
        self.push(json!({"type": "message.user", "parts": [{"type": "text", "text": format!("Do thing {n}.")}]}));
    }
}

fn best(times: &[Duration]) -> Duration {
    *times.iter().min().unwrap()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let mut log = Log { transcript: Transcript::default(), state: WindowState::default(), seq: 0 };
    for n in 0..ITEMS / 2 {
        if n % 20 == 0 {
            log.message(n);
        }
        log.step(n);
    }
    let items = log.transcript.items().len();
    // Large enough that everything stays, and so small that everything has to be looked at.
    let roomy = Terms::new(Budget { window: 20_000_000, wanted_output: 16_384 }, 5_000);
    let tight = Terms::new(Budget { window: 400_000, wanted_output: 16_384 }, 5_000);

    let whole: Vec<Duration> = (0..7)
        .map(|_| {
            let begin = Instant::now();
            let mut window = Window::new(Some("Recall"));
            window.sync(&log.transcript, &log.state);
            let Plan::Ready(_) = window.plan(Moment::AtBoundary, &roomy) else { panic!() };
            begin.elapsed()
        })
        .collect();
    counted(&json!({"figure": "plan", "items": items, "ms": millis(median(whole)), "limit_ms": 5}));

    let mut window = Window::new(Some("Recall"));
    window.sync(&log.transcript, &log.state);
    let Plan::Ready(_) = window.plan(Moment::AtBoundary, &roomy) else { panic!() };
    let again: Vec<Duration> = (0..7)
        .map(|_| {
            let begin = Instant::now();
            let Plan::Ready(_) = window.plan(Moment::AtBoundary, &roomy) else { panic!() };
            begin.elapsed()
        })
        .collect();
    counted(&json!({"figure": "plan_again", "ms": millis(best(&again))}));

    let added: Vec<Duration> = (0..201)
        .map(|n| {
            log.step(ITEMS + n);
            let begin = Instant::now();
            window.sync(&log.transcript, &log.state);
            let Plan::Ready(_) = window.plan(Moment::AtBoundary, &roomy) else { panic!() };
            begin.elapsed()
        })
        .collect();
    counted(&json!({"figure": "plan_one_more_step", "us": millis(median(added)) * 1_000.0, "limit_us": 100}));

    let decided: Vec<Duration> = (0..7)
        .map(|_| {
            let begin = Instant::now();
            let plan = window.plan(Moment::AtBoundary, &tight);
            assert!(!matches!(plan, Plan::Ready(_)));
            begin.elapsed()
        })
        .collect();
    counted(&json!({"figure": "plan_decision", "ms": millis(best(&decided))}));

    let Plan::Decide(decision) = window.plan(Moment::AtBoundary, &tight) else { panic!() };
    for event in decision.events(&vec![None; decision.keeps.len()]) {
        log.record(event);
    }
    let projected: Vec<Duration> = (0..7)
        .map(|_| {
            // Another revision is another projection.
            log.state.revision += 1;
            let begin = Instant::now();
            window.sync(&log.transcript, &log.state);
            begin.elapsed()
        })
        .collect();
    counted(&json!({"figure": "plan_projection", "ms": millis(best(&projected)), "after": decision.line}));
    let begin = Instant::now();
    let report = window.report(&log.state, &tight);
    let took = begin.elapsed();
    counted(&json!({"figure": "plan_report", "items": report.items.len(), "ms": millis(took)}));
}
