//! The same against the provider of the test kit, an independent piece of work, where `HAMES_TEST_KIT` names its folder.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::chaos::Restless;
use super::dice::{Dice, report, seed, size};
use super::story::with_wide_window;

/// What it says when its turns are used up.
const OVER: &str = "Every turn is used up.";

/// The kit's provider, stopped when dropped.
struct Reference {
    child: Child,
    url: String,
}

impl Reference {
    fn start(kit: &Path, folder: &Path, scenario: &Value) -> Reference {
        let file = folder.join("scenario.json");
        std::fs::write(&file, scenario.to_string()).unwrap();
        let mut child = Command::new("python3")
            .arg(kit.join("mock_provider.py"))
            .args(["--strict", "--scenario"])
            .arg(&file)
            .arg("--log")
            .arg(folder.join("log.jsonl"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Reference { child, url }
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A turn, sound or with one of the faults.
fn turn(dice: &mut Dice) -> Value {
    let at = dice.below(600);
    match dice.below(30) {
        0 => json!({"status": 429, "headers": {"retry-after-ms": "3"}, "body": {"error": {"message": "slow down"}}}),
        1 => json!({"status": 503, "headers": {"retry-after-ms": "3"}, "body": "down for a moment"}),
        2 => json!({"fault": "cut", "after_bytes": at, "tool_calls": calls(dice)}),
        3 => json!({"fault": "reset", "after_bytes": at, "tool_calls": calls(dice)}),
        4 => json!({"fault": "sse_error", "after_chunks": 3, "text": "Let me see what there is."}),
        5 => json!({"tool_calls": [{"name": "Read", "arguments": "{\"path\": \"chaos-1.t"}]}),
        6 => {
            json!({"tool_calls": [{"name": "Shell", "arguments": "[]"}, {"name": "Read", "arguments": {"path": "chaos-1.txt"}}]})
        }
        7 => json!({"tool_calls": [{"name": "no_such_tool", "arguments": {"x": 1}}]}),
        8 => json!({"tool_calls": calls(dice), "style": {"omit_tool_id": true, "args_in_one_chunk": true}}),
        9 => json!({"tool_calls": [{"id": "call_1", "name": "Read", "arguments": {"path": "chaos-2.txt"}}]}),
        10 => json!({"tool_calls": calls(dice), "finish": "stop"}),
        11 => json!({"tool_calls": calls(dice), "finish": "length"}),
        12 => json!({"tool_calls": calls(dice), "finish": null, "usage": "auto"}),
        13 => json!({"text": ""}),
        14 => json!({"reasoning": "Only a thought.", "finish": "stop"}),
        15 => json!({"text": "That should be all."}),
        16 => json!({"fault": "html_502"}),
        17 => json!({"reasoning": "First look, then act.", "text": "Looking.", "tool_calls": calls(dice),
            "style": {"reasoning_field": "reasoning_details", "split_bytes": 11, "comments": 2}}),
        18 => json!({"reasoning": "Hm.", "tool_calls": calls(dice), "style": {"line_end": "\r\n", "bom": true}}),
        _ => json!({"text": "Next.", "tool_calls": calls(dice), "chunk_chars": dice.below(20)}),
    }
}

fn calls(dice: &mut Dice) -> Vec<Value> {
    let path = |dice: &mut Dice| format!("chaos-{}.txt", dice.below(9));
    (0..=dice.below(3))
        .map(|_| match dice.below(5) {
            0 => json!({"name": "Read", "arguments": {"path": path(dice)}}),
            1 => json!({"name": "Write", "arguments": {"path": path(dice), "content": format!("mark {}\n", dice.below(4))}}),
            2 => json!({"name": "StrReplace",
                "arguments": {"path": path(dice), "old_string": "mark", "new_string": "mark"}}),
            3 => json!({"name": "Shell", "arguments": {"command": format!("cat {}", path(dice))}}),
            _ => json!({"name": "Grep", "arguments": {"pattern": "mark"}}),
        })
        .collect()
}

#[test]
fn the_kits_provider_finds_no_broken_rule_either() {
    let Some(kit) = std::env::var_os("HAMES_TEST_KIT") else {
        return println!("skipped: HAMES_TEST_KIT does not name the kit's folder");
    };
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return println!("skipped: there is no python3");
    }
    println!("HAMES_SEED={}", seed());
    let began = Instant::now();
    let mut dice = Dice::new(0x41f);
    let turns: Vec<Value> = (0..size(30, 200)).map(|_| turn(&mut dice)).collect();
    let steps = turns.len();
    let folder = tempfile::tempdir().unwrap();
    let reference =
        Reference::start(Path::new(&kit), folder.path(), &json!({"turns": turns, "default": {"text": OVER}}));
    let mut session = Restless::new(with_wide_window(&reference.url), dice);
    let mut runs = 0;
    loop {
        let ran = session.run();
        let says_so = |line: &String| line.contains("\"type\":\"text.done\"") && line.contains(OVER);
        if ran.status.success() && ran.lines.iter().any(says_so) {
            break;
        }
        runs += 1;
        assert!(runs < 20 * steps, "it comes to no end");
    }
    let events = session.log().len();
    drop(reference);
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let requests: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let violations: Vec<&Value> =
        requests.iter().flat_map(|request| request["violations"].as_array().unwrap()).collect();
    assert!(violations.is_empty(), "{violations:#?}");
    assert!(requests.len() > steps, "{} requests", requests.len());
    let line = report(&json!({
        "name": "cli_kit_provider", "seed": seed(), "seconds": began.elapsed().as_secs(), "steps": steps,
        "requests": requests.len(), "violations": violations.len(), "events": events, "counts": session.counts,
    }));
    println!("{line}");
}
