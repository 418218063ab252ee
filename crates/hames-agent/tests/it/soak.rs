//! Long runs with every fault a provider can have, stopped at random, against one that refuses what breaks a rule.
//!
//! By default a few steps of many seeds. `HAMES_SOAK=1` takes the full number, `HAMES_SEED` says where seeds begin, and
//! `HAMES_SOAK_REPORT` names a file that gets one line of JSON with what was counted.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use hames_protocol::{Delivery, Event};
use hames_testkit::chaos::{Chaos, Fault};
use hames_testkit::{ChatRequest, Provider, Script};
use tokio_util::sync::CancellationToken;

use crate::support::http::{file_tools, over_http};
use crate::support::{Hames, pending, sound};

/// Steps and seeds, by default and in full.
const FEW: (usize, u64) = (16, 25);
const FULL: (usize, u64) = (200, 100);

/// Numbers to choose by: the same from the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

pub(crate) type Counts = BTreeMap<String, usize>;

pub(crate) fn add(counts: &mut Counts, name: &str, n: usize) {
    *counts.entry(name.to_owned()).or_default() += n;
}

/// One session, run after run, until the provider has given all its turns.
async fn session(seed: u64, steps: usize, counts: &mut Counts) {
    let chaos = Arc::new(Mutex::new(Chaos::new(seed).steps(steps)));
    let script = Script::new().respond({
        let chaos = Arc::clone(&chaos);
        move |request| chaos.lock().unwrap().turn(request)
    });
    let (mut hames, provider) = over_http(script, file_tools(), |_| {}).await;
    let mut random = Random(seed ^ 0x5eed);
    let (mut runs, mut stops) = (0, 0);
    while chaos.lock().unwrap().counts().ends == 0 {
        runs += 1;
        assert!(runs < 20 * steps, "seed {seed} comes to no end");
        stops += usize::from(one_run(&mut hames, &provider, &mut random, runs, counts).await);
        hames.renew();
        if random.below(2) == 0 {
            hames.reopen().await;
        }
    }
    provider.wait_idle().await;
    hames.reopen().await;
    let events = hames.log.events();
    sound::log(&events);
    sound::sendable(&hames.session.items());
    assert_eq!(provider.violations(), [], "seed {seed}");

    let given = chaos.lock().unwrap().counts().clone();
    let breaks: usize =
        [Fault::ResetBeforeHead, Fault::ResetStream, Fault::CutStream].iter().map(|fault| given.of(*fault)).sum();
    let connections = provider.connections();
    // A stop in the middle of an answer costs its connection, as a break does; nothing else does.
    assert!(
        connections <= 1 + breaks + stops,
        "seed {seed}: {connections} connections, {breaks} broken, {stops} stops"
    );
    for (name, n) in [
        ("sessions", 1),
        ("runs", runs),
        ("requests", provider.requests().last().map_or(0, |request| request.n)),
        ("turns", given.turns),
        ("calls_given", given.calls),
        ("connections", connections),
        ("connections_broken", breaks),
        ("answers_left", provider.hangups()),
        ("events", events.len()),
        ("violations", provider.violations().len()),
    ] {
        add(counts, name, n);
    }
    for fault in Fault::ALL {
        add(counts, &format!("fault {fault:?}"), given.of(fault));
    }
    for envelope in &events {
        match &envelope.event {
            Event::ToolDone(_) => add(counts, "results", 1),
            Event::ToolError(error) => add(counts, &format!("error {:?}", error.class), 1),
            Event::RunDone(done) => add(counts, &format!("ended {:?}", done.result), 1),
            Event::Retry(_) => add(counts, "retries", 1),
            Event::StepStart(_) => add(counts, "steps", 1),
            _ => {}
        }
    }
}

/// One run, perhaps stopped or dropped at some moment, perhaps with a message. Gives whether it was left before its end.
async fn one_run(
    hames: &mut Hames,
    provider: &Provider,
    random: &mut Random,
    number: usize,
    counts: &mut Counts,
) -> bool {
    let from = provider.requests().last().map_or(0, |request| request.n);
    let death = CancellationToken::new();
    let marks = usize::try_from(random.below(120)).unwrap();
    match random.below(6) {
        0 | 1 => hames.trace.light(marks, hames.abort.clone()),
        2 => hames.trace.light(marks, death.clone()),
        _ => {}
    }
    if random.below(3) == 0 {
        hames.inbox.push(pending(&format!("{number}"), Delivery::Steer)).unwrap();
    }
    let text = format!("Go on, {number}.");
    let end = tokio::select! {
        end = hames.run_unchecked(&text) => Some(end),
        () = death.cancelled() => None,
    };
    hames.trace.unlight();
    let is_stopped = end.as_ref().is_none_or(|end| end.exit_code == 130);
    add(counts, "deaths", usize::from(end.is_none()));
    add(counts, "stops", usize::from(is_stopped && end.is_some()));
    let known = ["stream_incomplete", "server_error", "connection", "overloaded", "rate_limit"];
    if let Some(failure) = end.and_then(|end| end.failure) {
        assert!(known.contains(&failure.class.as_str()), "{failure:?}");
    }
    // Within a run, everything that was said before is said again, byte for byte.
    let requests = provider.requests();
    // A request of a run that was left may only now have been read; it does not hold this run's message.
    let is_of_this_run = |request: &ChatRequest| request.raw.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    for pair in requests[requests.partition_point(|request| request.n <= from)..].windows(2) {
        let [_, request] = pair else { unreachable!() };
        if !pair.iter().all(|request| is_of_this_run(request)) {
            continue;
        }
        let prefix = request.prefix.unwrap();
        assert!(prefix.is_kept(), "request {}: {prefix:?}", request.n);
        add(counts, "prefixes_kept", 1);
    }
    is_stopped
}

/// One line of JSON, also for whoever asked for it in a file.
pub(crate) fn report(name: &str, seeds: std::ops::Range<u64>, steps: usize, counts: &Counts) -> String {
    let line = serde_json::json!({"name": name, "seeds": [seeds.start, seeds.end], "steps": steps, "counts": counts});
    if let Ok(path) = std::env::var("HAMES_SOAK_REPORT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
    line.to_string()
}

pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn long_runs_with_faults_and_stops_break_no_rule() {
    let (steps, count) = if number("HAMES_SOAK", 0) > 0 { FULL } else { FEW };
    let first = number("HAMES_SEED", 1);
    let seeds = first..first + count;
    let mut counts = Counts::new();
    for seed in seeds.clone() {
        // The seed is seen where something in it panics.
        println!("seed {seed}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(session(seed, steps, &mut counts));
    }
    for fault in Fault::ALL {
        assert!(counts[&format!("fault {fault:?}")] > 0, "{fault:?} never came");
    }
    assert!(counts["stops"] > 5 && counts["results"] > 100, "{counts:?}");
    println!("{}", report("agent_chaos", seeds, steps, &counts));
}
