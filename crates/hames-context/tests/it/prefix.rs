//! How much of a long turn is sent twice: the bytes behind the first that differs, against the bytes that are new.

use std::sync::Arc;

use hames_context::{Budget, Moment, Terms};
use hames_protocol::Item;

use crate::support::{Log, event, terse, text};
use serde_json::json;

const STEPS: usize = 300;
const OUTPUT: usize = 8 << 10;
/// Bytes that no cache could hold, for each new one.
const MOST_UNCACHED: f64 = 1.25;

/// What a request is to a provider: the bytes of its messages, one after the other.
#[derive(Default)]
struct Provider {
    before: Vec<Vec<u8>>,
    bytes: u64,
    uncached: u64,
}

impl Provider {
    /// Takes a request; gives the first byte that differs and whether that is its end.
    fn take(&mut self, items: &[Arc<Item>]) -> (u64, bool, u64) {
        let bodies: Vec<Vec<u8>> = items.iter().map(wire).collect();
        let mut common = 0u64;
        let mut appended = true;
        for (at, before) in self.before.iter().enumerate() {
            let Some(now) = bodies.get(at) else { break };
            let same = now.iter().zip(before).take_while(|(a, b)| a == b).count();
            common += same as u64;
            if same < before.len() || same < now.len() {
                appended = false;
                break;
            }
        }
        appended &= bodies.len() >= self.before.len();
        let all: u64 = bodies.iter().map(|body| body.len() as u64).sum();
        self.bytes += all;
        self.uncached += all - common;
        self.before = bodies;
        (common, appended, all)
    }
}

fn wire(item: &Arc<Item>) -> Vec<u8> {
    let calls = match item.as_ref() {
        Item::Assistant(answer) => {
            answer.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect()
        }
        _ => String::new(),
    };
    format!("{{\"role\":\"x\",\"content\":{:?},\"calls\":{calls:?}}}", text(item)).into_bytes()
}

fn output(n: usize) -> String {
    let line = format!("{n:04}: let value = compute(input, {n})?; // a line of code, as long as lines are\n");
    line.repeat(OUTPUT / line.len() + 1)[..OUTPUT].to_owned()
}

#[test]
fn a_long_turn_sends_little_twice_and_every_break_has_a_name() {
    let mut log = Log::new();
    let terms = Terms::new(Budget { window: 128_000, wanted_output: 16_384 }, 4_000);
    let mut provider = Provider::default();
    log.user("Read the whole project and tell me what it does.");
    let mut breaks = Vec::new();
    let mut seen = 0;
    for n in 0..STEPS {
        log.step("", &[(&format!("src/{n}.rs"), &output(n))]);
        log.settle(Moment::AtBoundary, &terms, &terse).unwrap().unwrap();
        let (common, appended, bytes) = provider.take(log.window.items());
        let (changed_at, changed_why) =
            if n == 0 { (None, "first") } else { (Some(common), if appended { "appended" } else { "item" }) };
        log.push(event(json!({"type": "step.start", "number": n + 1, "fingerprint": "f", "bytes": bytes, "changed_at": changed_at, "changed_why": changed_why})));
        if !appended && n > 0 {
            log.window.sync(&log.transcript, &log.state);
            let request = log.window.report(&log.state, &terms).request.unwrap();
            let by = request.changed_by.unwrap();
            assert_ne!(by, hames_protocol::Break::Other, "a break without a decision at step {n}");
            assert!(request.changed_by_event.is_some_and(|event| event > seen));
            breaks.push((n, by));
            seen = request.event;
        }
    }
    let new: u64 = log.transcript.items().iter().map(|item| wire(item).len() as u64).sum();
    let ratio = |uncached: u64| uncached as f64 / new as f64;
    let carried = ratio(provider.uncached);
    // The same session with the oldest results masked at every step, as soon as they are older than what stays verbatim.
    let mut naive = Provider::default();
    let items = log.transcript.items().to_vec();
    let keep = 64 << 10;
    for n in 1..=STEPS {
        let upto = &items[..1 + 2 * n];
        let mut kept = 0;
        let mut sent: Vec<Arc<Item>> = Vec::new();
        for item in upto.iter().rev() {
            kept += wire(item).len();
            sent.push(match item.as_ref() {
                Item::Tool(result) if kept > keep => {
                    let mut stub = result.clone();
                    stub.text = "[masked]".into();
                    Arc::new(Item::Tool(stub))
                }
                _ => Arc::clone(item),
            });
        }
        sent.reverse();
        naive.take(&sent);
    }
    hames_testkit::counted(&json!({
        "figure": "prefix", "steps": STEPS, "output_bytes": OUTPUT, "window": 128_000,
        "uncached_to_new": carried, "limit": MOST_UNCACHED, "masked_at_every_step": ratio(naive.uncached),
        "breaks": log.state.sent.breaks,
    }));
    assert!(carried <= MOST_UNCACHED, "{carried}: {breaks:?} {:#?}", log.lines);
    assert!(ratio(naive.uncached) >= 4.0);
    let counted: u64 = log.state.sent.breaks.values().sum();
    assert_eq!(counted, breaks.len() as u64);
    assert_eq!(log.state.sent.uncached, provider.uncached);
}
