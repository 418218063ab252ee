//! Reasoning as real models streamed it: none of it is a loop. Runs where `HAMES_TEST_DATA` names the folder of recordings.

use std::path::Path;

use hames_agent::Guard;
use hames_protocol::{Delta, GuardLevel, GuardSettings};
use serde_json::Value;

#[test]
fn no_recorded_reasoning_is_taken_for_a_loop() {
    let Some(folder) = std::env::var_os("HAMES_TEST_DATA") else {
        eprintln!("skipped: HAMES_TEST_DATA is not set");
        return;
    };
    let (mut streams, mut characters) = (0, 0);
    for file in files(&Path::new(&folder).join("chat-streams")) {
        let Ok(content) = std::fs::read_to_string(&file) else { continue };
        for level in [GuardLevel::Low, GuardLevel::Medium, GuardLevel::High] {
            let mut settings = GuardSettings::level(level);
            settings.guard_response = Some(true);
            let mut guard = Guard::new(&settings);
            let mut read = 0;
            for delta in content.lines().flat_map(deltas) {
                if let Delta::Reasoning(text) = &delta {
                    read += text.len();
                }
                assert_eq!(guard.watch(&[delta]), None, "{} at {level:?}", file.display());
            }
            if level == GuardLevel::Medium && read > 0 {
                streams += 1;
                characters += read;
            }
        }
    }
    println!("{streams} recorded streams with reasoning, {characters} bytes of it");
    assert!(streams >= 3, "{streams} streams in {}", Path::new(&folder).display());
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The pieces of one line of a recording.
fn deltas(line: &str) -> Vec<Delta> {
    let Some(data) = line.strip_prefix("data:") else { return Vec::new() };
    let Ok(event) = serde_json::from_str::<Value>(data.trim()) else { return Vec::new() };
    let delta = &event["choices"][0]["delta"];
    let reasoning = ["reasoning_content", "reasoning"].iter().find_map(|field| delta[*field].as_str());
    let reasoning = reasoning.map(|text| Delta::Reasoning(text.to_owned()));
    let text = delta["content"].as_str().map(|text| Delta::Text(text.to_owned()));
    reasoning.into_iter().chain(text).collect()
}
