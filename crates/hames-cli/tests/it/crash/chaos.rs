//! A long session with every fault a provider can have, interrupted at random, against one that refuses what breaks a
//! rule.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hames_testkit::chaos::{Chaos, Fault};
use hames_testkit::{Provider, Script};
use serde_json::{Value, json};

use super::aim::When;
use super::death::{Blow, Ran, run_and_strike};
use super::dice::{Dice, report, seed, size};
use super::log::{kind, printed_is_kept, sound};
use super::story::with_wide_window;
use crate::kit::User;

/// A session that is continued, however each of its runs ends.
pub(super) struct Restless {
    pub(super) user: User,
    dice: Dice,
    runs: u64,
    pub(super) counts: BTreeMap<String, usize>,
    /// Everything printed so far.
    lines: Vec<String>,
}

impl Restless {
    pub(super) fn new(user: User, dice: Dice) -> Restless {
        for n in 0..8 {
            user.write(&format!("chaos-{n}.txt"), "mark 0\n");
        }
        Restless { user, dice, runs: 0, counts: BTreeMap::new(), lines: Vec::new() }
    }

    /// One run: interrupted at times, killed at times.
    pub(super) fn run(&mut self) -> Ran {
        self.runs += 1;
        let prompt = format!("Go on, {}.", self.runs);
        let mut args = vec!["run", "--json", "--mode", "build"];
        args.extend(if self.runs == 1 { &["-s", "restless"][..] } else { &["-c"] });
        args.push(&prompt);
        let (blow, when) = match self.dice.below(8) {
            0..=3 => (Blow::Interrupt, self.moment()),
            4 => (Blow::Kill, self.moment()),
            _ => (Blow::Interrupt, When::After(Duration::from_secs(3600))),
        };
        let ran = run_and_strike(&self.user, &args, blow, when, || false);
        let code = ran.status.code();
        assert!(matches!(code, None | Some(0 | 1 | 3 | 130)), "{}: {:#?}", ran.status, ran.lines);
        let name = match (code, ran.was_killed()) {
            (Some(code), _) => format!("exit {code}"),
            (None, true) => "killed".to_owned(),
            (None, false) => panic!("{}", ran.status),
        };
        *self.counts.entry(name).or_default() += 1;
        self.lines.extend(ran.lines.iter().cloned());
        ran
    }

    fn moment(&mut self) -> When {
        let words = ["\"seq\":", "\"type\":\"tool.start\"", "\"type\":\"step.start\""][self.dice.below(3) as usize];
        When::Line {
            words,
            count: 1 + self.dice.below(if words == "\"seq\":" { 80 } else { 12 }),
            delay: self.dice.time(Duration::from_millis(10)),
        }
    }

    /// Checks the log once the last run is over.
    pub(super) fn log(&mut self) -> Vec<Value> {
        let log = self.user.ok(&["sessions", "show", "restless", "--json"]).json();
        printed_is_kept(&self.lines, &log);
        sound(&log);
        for line in &log {
            let name = match kind(line) {
                "tool.error" => format!("error {}", line["event"]["class"].as_str().unwrap()),
                name @ ("step.start" | "tool.done" | "retry" | "run.done") => name.to_owned(),
                _ => continue,
            };
            *self.counts.entry(name).or_default() += 1;
        }
        log
    }
}

/// Within a run everything that was said before is said again, byte for byte.
fn prefixes_are_kept(provider: &Provider, from: usize) {
    for request in provider.requests().iter().filter(|request| request.n > from + 1) {
        let prefix = request.prefix.unwrap();
        assert!(prefix.is_kept(), "request {}: {prefix:?}", request.n);
    }
}

#[test]
fn a_long_session_with_faults_and_interrupts_breaks_no_rule() {
    println!("HAMES_SEED={}", seed());
    let began = Instant::now();
    let steps = size(30, 200);
    let chaos = Arc::new(Mutex::new(Chaos::new(seed()).steps(steps)));
    let script = Script::new().respond({
        let chaos = Arc::clone(&chaos);
        move |request| chaos.lock().unwrap().turn(request)
    });
    let provider = hames_testkit::blocking(script).unwrap();
    let user = with_wide_window(&provider.base_url());
    let mut session = Restless::new(user, Dice::new(0xc4a05));
    // The last run is one that came to its end by itself.
    let mut is_over = false;
    while !is_over {
        let from = provider.requests().last().map_or(0, |request| request.n);
        let was_last = chaos.lock().unwrap().counts().ends > 0;
        let ran = session.run();
        is_over = was_last && ran.status.success();
        prefixes_are_kept(&provider, from);
        assert!(session.runs < 20 * steps as u64, "it comes to no end");
    }
    let log = session.log();
    assert_eq!(provider.violations(), []);
    let given = chaos.lock().unwrap().counts().clone();
    let faults: BTreeMap<String, usize> =
        Fault::ALL.into_iter().map(|fault| (format!("{fault:?}"), given.of(fault))).collect();
    let line = report(&json!({
        "name": "cli_chaos", "seed": seed(), "seconds": began.elapsed().as_secs(), "steps": steps,
        "requests": provider.requests().last().map(|request| request.n), "violations": provider.violations().len(),
        "runs": session.runs, "events": log.len(), "counts": session.counts, "faults": faults,
    }));
    println!("{line}");
}
