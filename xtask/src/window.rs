//! `cargo xtask window`: what long sessions cost and how they go, from one command, with every figure held to its limit:
//! planning, assembling a request, the guard; how much is sent twice; long sessions in small windows; loops and work.
//!
//! Each part is a bench or a test that appends its figures, one line of JSON each, to the file that its environment
//! names. A line may say its own limit: `ms` beside `limit_ms`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, root};
use crate::{report, soak};

/// What is measured and counted, in this order: what follows `cargo`.
const PARTS: [&[&str]; 6] = [
    &["bench", "--package", "hames-context", "--bench", "window"],
    &["bench", "--package", "hames-model", "--bench", "render"],
    &["bench", "--package", "hames-agent", "--bench", "guard"],
    &["test", "--package", "hames-context", "--test", "it", "prefix::"],
    &["test", "--package", "hames-agent", "--test", "it", "guard::traces"],
    &["test", "--package", "hames-agent", "--test", "it", "long::"],
];

/// Figures that have to be there: a part that counts nothing says nothing.
const EXPECTED: [&str; 7] = ["plan", "plan_one_more_step", "render", "guard", "prefix", "guard_traces", "long_session"];

/// Measures and writes `bench/reports/window.json`, also where a limit is passed; then it fails.
pub(crate) fn run() -> Result<()> {
    let counted = root().join("target/window.jsonl");
    std::fs::File::create(&counted).with_context(|| format!("cannot make {}", counted.display()))?;
    let mut failed = Vec::new();
    for part in PARTS {
        eprintln!("== cargo {}", part.join(" "));
        if !play(part, &counted)? {
            failed.push(part.join(" "));
        }
    }
    let figures = soak::lines(&counted)?;
    let passed: Vec<String> = figures.iter().flat_map(passed).collect();
    let missing: Vec<&str> =
        EXPECTED.into_iter().filter(|name| !figures.iter().any(|f| f["figure"] == *name)).collect();
    let all = json!({"command": "cargo xtask window", "limits_passed": passed, "figures": figures});
    println!("report: {}", report::write("window", all)?.display());
    if !(failed.is_empty() && passed.is_empty() && missing.is_empty()) {
        bail!("failed: {failed:?}; limits passed: {passed:?}; figures missing: {missing:?}");
    }
    Ok(())
}

fn play(part: &[&str], counted: &Path) -> Result<bool> {
    let mut command: Command = cargo(part);
    command.env("HAMES_SOAK", "1").env("HAMES_SOAK_REPORT", counted);
    soak::given(&mut command, "HAMES_TEST_DATA", "data");
    Ok(command.status().context("cannot start cargo")?.success())
}

/// Figures of a line that are above its limits, in words.
fn passed(line: &Value) -> Vec<String> {
    let limits = line.as_object().into_iter().flatten().filter_map(|(name, limit)| {
        let unit = name.strip_prefix("limit")?.trim_start_matches('_');
        Some((unit, limit.as_f64()?))
    });
    let of_unit = |unit: &str| match unit {
        "" => line["uncached_to_new"].as_f64(),
        unit => ["", "_per_token"].iter().find_map(|what| line[format!("{unit}{what}")].as_f64()),
    };
    limits
        .filter(|(unit, limit)| of_unit(unit).is_none_or(|figure| figure > *limit))
        .map(|(unit, limit)| {
            format!("{} {} {unit}, at most {limit}", line["figure"], of_unit(unit).unwrap_or(f64::NAN))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_above_its_limit_is_said_and_one_that_is_missing_too() {
        for (line, is_passed) in [
            (json!({"figure": "plan", "ms": 4.9, "limit_ms": 5}), false),
            (json!({"figure": "plan", "ms": 5.1, "limit_ms": 5}), true),
            (json!({"figure": "guard", "ns_per_token": 900, "limit_ns": 1000}), false),
            (json!({"figure": "guard", "ns_per_token": 1100, "limit_ns": 1000}), true),
            (json!({"figure": "prefix", "uncached_to_new": 1.1, "limit": 1.25}), false),
            (json!({"figure": "prefix", "uncached_to_new": 1.3, "limit": 1.25}), true),
            (json!({"figure": "plan", "limit_ms": 5}), true),
            (json!({"figure": "plan_again", "ms": 4.9}), false),
        ] {
            assert_eq!(!passed(&line).is_empty(), is_passed, "{line}");
        }
    }
}
