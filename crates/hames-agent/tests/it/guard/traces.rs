//! The folder of traces: loops that must be caught, and work that must not be taken for one.

use std::path::Path;

use hames_protocol::{Cut, Event, GuardLevel, GuardSettings, RunResult};
use serde_json::{Value, json};

use super::play::{Played, play, text, unrolled};

fn traces() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guard");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| serde_json::from_str(&std::fs::read_to_string(path).unwrap());
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))).collect()
}

fn settings(trace: &Value, level: GuardLevel) -> GuardSettings {
    let own: GuardSettings = serde_json::from_value(trace["guard"].clone()).unwrap();
    GuardSettings::level(level).patched(&own)
}

/// Tokens as the budget counts them.
fn tokens(text: &str) -> u64 {
    hames_context::estimate_tokens(text)
}

/// Tokens streamed from where the text begins to repeat itself to the cut, where something was cut.
fn latency(trace: &Value, played: &Played) -> Option<u64> {
    let (at, shown) = unrolled(&trace["steps"]).iter().enumerate().find_map(|(at, step)| {
        let block = if step["loop_in"] == "say" { &step["say"] } else { &step["think"] };
        let parts = block.as_array()?;
        // The last part is the loop, its first round is new.
        let (repeated, good) = parts.split_last().filter(|(last, _)| last["times"].is_u64())?;
        let good: String = good.iter().map(text).collect();
        Some((at, tokens(&good) + tokens(&text(&repeated["text"]))))
    })?;
    let all = played.hames.seen.all();
    let of_step = all.iter().filter(|envelope| envelope.step == Some(u32::try_from(at + 1).unwrap()));
    let streamed: u64 = of_step
        .map(|envelope| match &envelope.event {
            Event::ReasoningDelta(delta) => tokens(&delta.text),
            Event::TextDelta(delta) => tokens(&delta.text),
            _ => 0,
        })
        .sum();
    let was_cut = played.hames.find(|event| match event {
        Event::ReasoningDone(done) => Some(done.cut == Some(Cut::Guard)),
        Event::TextDone(done) => Some(done.cut == Some(Cut::Guard)),
        _ => None,
    });
    was_cut.contains(&true).then(|| streamed.saturating_sub(shown))
}

#[tokio::test(start_paused = true)]
async fn at_medium_no_loop_is_missed_and_no_work_is_stopped() {
    let traces = traces();
    let (mut loops, mut work, mut cuts) = (0, 0, Vec::new());
    let mut wrong = Vec::new();
    for (name, trace) in &traces {
        let played = play(trace, settings(trace, GuardLevel::Medium)).await;
        let nudges: Vec<&str> = played.nudges.iter().map(String::as_str).collect();
        let expected: Vec<&str> = trace["nudges"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let stops = trace["stops"].as_str();
        if nudges != expected || played.stopped.as_deref() != stops {
            wrong.push(format!("{name}: {nudges:?} {:?}, not {expected:?} {stops:?}", played.stopped));
        }
        if let Some(not_run) = trace["not_run"].as_u64()
            && not_run != played.not_run as u64
        {
            wrong.push(format!("{name}: {} calls were not run, not {not_run}", played.not_run));
        }
        match expected.is_empty() {
            true => {
                work += 1;
                if played.end.result != RunResult::Complete {
                    wrong.push(format!("{name}: {:?}", played.end));
                }
            }
            false => {
                loops += 1;
                cuts.extend(latency(trace, &played).map(|tokens| (tokens, name.clone())));
            }
        }
    }
    cuts.sort();
    for (tokens, name) in &cuts {
        println!("cut after {tokens:>4} tokens of repetition: {name}");
    }
    let tokens = |at: usize| cuts.get(at).map(|(tokens, _)| *tokens);
    hames_testkit::counted(&json!({
        "figure": "guard_traces", "loops": loops, "work": work, "wrong": wrong.len(), "cuts": cuts.len(),
        "tokens_to_the_cut": {"median": tokens(cuts.len() / 2), "most": tokens(cuts.len().saturating_sub(1))},
    }));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(loops >= 30 && work >= 30 && cuts.len() >= 8, "{loops} {work} {}", cuts.len());
}

#[tokio::test(start_paused = true)]
async fn off_is_inert() {
    for (name, trace) in &traces() {
        let played = play(trace, settings(trace, GuardLevel::Off)).await;
        assert_eq!((played.nudges.len(), played.not_run), (0, 0), "{name}");
        assert_eq!(played.stopped, None, "{name}");
        // An empty answer is the end all the same.
        let is_empty = played.end.reason.as_deref() == Some("empty_answer");
        assert!(
            played.end.result == RunResult::Complete || is_empty || trace["ends"] == "other",
            "{name}: {:?}",
            played.end
        );
    }
}

#[tokio::test(start_paused = true)]
async fn low_stops_no_work_and_high_misses_no_loop() {
    for (name, trace) in &traces() {
        let is_loop = trace["nudges"].as_array().is_some_and(|nudges| !nudges.is_empty());
        if is_loop {
            let high = play(trace, settings(trace, GuardLevel::High)).await;
            assert!(!high.nudges.is_empty(), "{name}");
        } else {
            let low = play(trace, settings(trace, GuardLevel::Low)).await;
            assert_eq!((low.nudges, low.stopped), (Vec::new(), None), "{name}");
        }
    }
}
