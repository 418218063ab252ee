//! Streams that go wrong in every way a stream can, one session each: nothing panics, nothing grows past its bound, what
//! was said is kept, and what somebody has seen is not asked for again.
//!
//! By default 64 of them; `HAMES_SOAK=1` takes 1,000, `HAMES_SEED` says where seeds begin.

use std::time::{Duration, Instant};

use hames_agent::RunEnd;
use hames_protocol::{Event, RunResult};
use hames_testkit::trouble::{Trouble, stream};
use hames_testkit::{Script, Turn};

use crate::soak::{Counts, add, number, report};
use crate::support::Hames;
use crate::support::http::{file_tools, over_http};

/// Streams, by default and in full.
const FEW: u64 = 64;
const FULL: u64 = 1_000;

/// Bytes an answer may come to: its limit, and the event that passed it.
const MOST_BYTES: usize = (64 + 16) * 1024 * 1024;

/// A run is given up as hung after this long. The longest ones read 64 MB.
const HUNG: Duration = Duration::from_secs(120);

/// How long the client waits where the server never goes on.
const PATIENCE: Duration = Duration::from_millis(60);

/// One session against a server whose first answers (one to four) go wrong in the same way.
async fn session(seed: u64, counts: &mut Counts) {
    let (trouble, turn) = stream(seed);
    let troubled = 1 + usize::try_from(seed % 4).unwrap();
    let script = Script::new().turns(std::iter::repeat_n(turn, troubled)).respond(|_| Turn::text("Sound."));
    let (mut hames, provider) = over_http(script, file_tools(), |endpoint| {
        if trouble.needs_patience() {
            endpoint.timeouts.idle = PATIENCE;
            endpoint.timeouts.first_byte = PATIENCE;
        }
    })
    .await;
    let began = Instant::now();
    let end = tokio::time::timeout(HUNG, hames.run("Go on.")).await.unwrap_or_else(|_| panic!("{trouble:?} hangs"));
    assert_eq!(provider.violations(), [], "seed {seed} {trouble:?}");
    judge(&hames, &end, counts);
    let steps = hames.find(|event| matches!(event, Event::StepStart(_)).then_some(())).len();
    assert!(provider.requests().len() <= 4 * steps, "{trouble:?}: {} requests", provider.requests().len());
    if trouble == Trouble::None {
        assert_eq!(end.result, RunResult::Complete, "seed {seed}");
    }
    for (name, n) in [
        ("streams", 1),
        ("requests", provider.requests().len()),
        ("steps", steps),
        (&format!("trouble {trouble:?}"), 1),
        (&format!("ended {:?}", end.result), 1),
    ] {
        add(counts, name, n);
    }
    if let Some(failure) = &end.failure {
        assert!(failure.message.contains("test"), "{failure:?}");
        add(counts, &format!("failure {}", failure.class), 1);
    }
    let longest = counts.entry("longest_ms".into()).or_default();
    *longest = (*longest).max(usize::try_from(began.elapsed().as_millis()).unwrap());
}

/// What holds of every stream, by what was seen of it.
fn judge(hames: &Hames, end: &RunEnd, counts: &mut Counts) {
    let (mut text, mut thought, mut input) = (String::new(), String::new(), 0);
    let mut kept = 0;
    for envelope in hames.seen.all() {
        match &envelope.event {
            Event::StepStart(_) => {
                (text, thought, input) = Default::default();
                kept = 0;
            }
            Event::TextDelta(delta) => text.push_str(&delta.text),
            Event::ReasoningDelta(delta) => thought.push_str(&delta.text),
            Event::ToolInputDelta(delta) => input += delta.text.len(),
            Event::Retry(retry) => {
                let visible = text.len() + thought.len() + input;
                assert_eq!(visible, 0, "what was seen is asked for again: {retry:?}");
                add(counts, "retries", 1);
            }
            Event::TextDone(done) => {
                // A lone closing tag turns what was shown as text into reasoning, and only then they differ.
                assert!(done.text == text || text.ends_with(&done.text) || text.contains("think"), "{text:?} {done:?}");
                kept += done.text.len();
                add(counts, "texts_cut", usize::from(done.cut.is_some()));
            }
            Event::ReasoningDone(done) => {
                kept += done.block.text.len();
                add(counts, "reasoning_cut", usize::from(done.cut.is_some()));
            }
            Event::StepDone(_) => {
                // Blank text is nothing to keep; everything else that was shown is there.
                let shown = text.trim().len() + thought.trim().len();
                assert!(kept >= shown || text.contains("think"), "{kept} of {shown} bytes are kept");
                let bytes = kept + input;
                assert!(bytes <= MOST_BYTES, "{bytes} bytes of one answer");
                let most = counts.entry("most_bytes".into()).or_default();
                *most = (*most).max(bytes);
            }
            _ => {}
        }
    }
    let calls = hames.find(|event| matches!(event, Event::ToolCall(_)).then_some(())).len();
    assert!(calls <= 1_024 * 4, "{calls} calls");
    if end.result == RunResult::Error {
        assert!(end.failure.is_some());
    }
}

/// The most memory this process has had, in MB, where the system says so.
fn peak_mb() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<usize>().ok()? / 1024)
}

#[test]
fn streams_that_go_wrong_are_survived_and_what_was_said_is_kept() {
    let count = if number("HAMES_SOAK", 0) > 0 { FULL } else { FEW };
    let first = number("HAMES_SEED", 1);
    let seeds = first..first + count;
    let mut counts = Counts::new();
    for seed in seeds.clone() {
        // The seed is seen where something in it panics.
        println!("seed {seed} {:?}", stream(seed).0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(session(seed, &mut counts));
    }
    for trouble in Trouble::ALL {
        assert!(counts.contains_key(&format!("trouble {trouble:?}")), "{trouble:?} never came");
    }
    assert!(counts["retries"] > 10 && counts["texts_cut"] > 0 && counts["reasoning_cut"] > 0, "{counts:?}");
    counts.extend(peak_mb().map(|mb| ("peak_mb".to_owned(), mb)));
    println!("{}", report("troubled_streams", seeds, 1, &counts));
}
