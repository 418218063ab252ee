//! Sessions that die again and again, and go on every time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::aim::{Aim, Place, When, shown_of_last_step};
use super::death::{Blow, run_and_strike};
use super::dice::{Dice, report, seed, size};
use super::log::{Open, goes_on, printed_is_kept, sound};
use super::story::{ENDING, Story};
use crate::kit::tree;

/// How often each wanted place has to be hit.
const EACH: usize = 3;
/// Of an open step less than this is lost, counted in bytes of text and reasoning.
const LOST_AT_MOST: usize = 16 * 1024;
/// Deaths of one session at most.
const LIVES: u64 = 3;

/// What was hit so far.
#[derive(Default)]
struct Histogram {
    kills: usize,
    places: BTreeMap<Place, usize>,
    with_child: usize,
    saved_bytes: usize,
    violations: usize,
    sessions: usize,
    events: usize,
}

impl Histogram {
    fn of(&self, aim: Aim) -> usize {
        match aim {
            Aim::At(place) => self.places.get(&place).copied().unwrap_or(0),
            Aim::Child => self.with_child,
            Aim::Anywhere => self.kills,
        }
    }

    /// What to aim at next: each wanted place in turn and anywhere at times, then what is still missing.
    fn next(&self, wanted: usize) -> Option<Aim> {
        let missing = Aim::WANTED.into_iter().filter(|aim| self.of(*aim) < EACH).min_by_key(|aim| self.of(*aim));
        if self.kills >= wanted {
            return missing;
        }
        let turn = self.kills % (Aim::WANTED.len() + 1);
        Some(Aim::WANTED.get(turn).copied().unwrap_or(Aim::Anywhere))
    }

    fn json(&self) -> Value {
        let places: BTreeMap<String, usize> = self.places.iter().map(|(place, n)| (format!("{place:?}"), *n)).collect();
        json!({
            "kills": self.kills, "places": places, "with_setsid_child": self.with_child, "sessions": self.sessions,
            "events": self.events, "saved_bytes": self.saved_bytes, "violations": self.violations,
        })
    }
}

/// A session between its deaths.
struct Life {
    story: Story,
    log: Vec<Value>,
    /// What the last death had shown of its open step.
    shown: usize,
}

impl Life {
    fn begin() -> Life {
        Life { story: Story::begin(), log: Vec::new(), shown: 0 }
    }

    fn args(&self, prompt: &'static str) -> Vec<&'static str> {
        let mut args = vec!["run", "--json", "--mode", "build"];
        args.extend(if self.log.is_empty() { &["-s", "life"][..] } else { &["-c"] });
        args.push(prompt);
        args
    }

    /// Lets the session die once, and checks what it left. Nothing where it ended before.
    fn die(&mut self, aim: Aim, dice: &mut Dice, seen: &mut Histogram) {
        let args = self.args("go on");
        let when = When::choose(aim, dice);
        let death = run_and_strike(&self.story.user, &args, Blow::Kill, when, || self.story.nap_is_alive());
        let last = || death.lines.iter().filter(|line| line.contains("\"nudge\"")).take(3).collect::<Vec<_>>();
        assert!(death.was_killed() || death.status.success(), "{}\n{:?}", death.status, last());
        let log = self.read_log();
        printed_is_kept(&death.lines, &log);
        self.story.files_agree_with(&log);
        if log.len() > self.log.len() {
            seen.saved_bytes += self.recovered(&log);
            self.shown = shown_of_last_step(&death.printed(), &log);
        }
        let place = if log.len() > self.log.len() { Place::of(&log, self.shown > 0) } else { Place::Outside };
        self.log = log;
        if dice.one_in(2) {
            // Otherwise the next process begins while what the dead one left is still being ended.
            self.story.nobody_remains(death.struck.map_or_else(Instant::now, |(at, _)| at));
        }
        if death.was_killed() {
            seen.kills += 1;
            seen.with_child += usize::from(death.struck.is_some_and(|(_, had_child)| had_child));
            *seen.places.entry(place).or_default() += 1;
        }
    }

    /// The log as it is. Reading it changes nothing: what a death left open stays open.
    fn read_log(&self) -> Vec<Value> {
        let first = self.story.user.run(&["sessions", "show", "life", "--json"]);
        let again = self.story.user.run(&["sessions", "show", "life", "--json"]);
        assert_eq!((first.code, &first.out), (again.code, &again.out));
        assert!(first.code == 0 || first.err.contains("no session"), "{first:?}");
        first.json()
    }

    fn recovered(&self, log: &[Value]) -> usize {
        let saved = goes_on(&self.log, log);
        if Open::of(&self.log).is_some_and(|open| open.in_step) {
            assert!(self.shown < saved + LOST_AT_MOST, "{} bytes were shown and {saved} saved", self.shown);
        }
        saved
    }

    /// The files that the ending leaves alone.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = tree(&self.story.user.project());
        let changes = |path: &Path| ["marks", "nap.pid", "last.txt"].iter().any(|name| path.ends_with(name));
        files.retain(|(path, _)| !changes(path) && path.extension() != Some("staged".as_ref()));
        files
    }

    /// Goes on once more, to the end this time.
    fn end(mut self, seen: &mut Histogram) {
        let untouched = self.files();
        let ended = self.story.user.run(&self.args(ENDING));
        let ended_at = Instant::now();
        assert_eq!(ended.code, 0, "{ended:?}");
        let log = self.read_log();
        seen.saved_bytes += self.recovered(&log);
        sound(&log);
        assert_eq!(self.files(), untouched, "something was done again");
        self.story.files_agree_with(&log);
        self.story.nobody_remains(ended_at);
        let violations = self.story.provider.violations();
        assert_eq!(violations, []);
        seen.violations += violations.len();
        seen.sessions += 1;
        seen.events += log.len();
        self.log = log;
    }
}

#[test]
fn a_killed_run_loses_nothing_it_printed_and_the_session_goes_on() {
    println!("HAMES_SEED={}", seed());
    let began = Instant::now();
    let (wanted, mut dice) = (size(20, 200), Dice::new(0xdead));
    let mut seen = Histogram::default();
    while let Some(mut aim) = seen.next(wanted) {
        let mut life = Life::begin();
        for _ in 0..=dice.below(LIVES) {
            life.die(aim, &mut dice, &mut seen);
            match seen.next(wanted) {
                Some(next) => aim = next,
                None => break,
            }
        }
        life.end(&mut seen);
        assert!(seen.sessions <= wanted * 3, "what is aimed at is not hit: {}", seen.json());
    }
    for aim in Aim::WANTED {
        assert!(seen.of(aim) >= EACH, "{aim:?}: {}", seen.json());
    }
    let seconds = began.elapsed().as_secs();
    let line = report(&json!({"name": "kill_9", "seed": seed(), "seconds": seconds, "counts": seen.json()}));
    println!("{line}");
}
