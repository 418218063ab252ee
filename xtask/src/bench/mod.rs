//! `cargo xtask bench`: what Hames costs, side by side with a bare client and any peer, in one run.
//!
//! The yardstick is the kit's: `mockllm` (a fast provider), `floor` (the least a client can do) and `benchrun` (wall,
//! CPU and memory of a whole process tree). Ratios count; absolute times do not hold from machine to machine.

mod contender;
mod kit;
mod prompt;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, must, root};
use crate::report;
use contender::Contender;
use kit::{Kit, Mock, Run};

const START_RUNS: usize = 15;
const STEP_RUNS: usize = 5;
const STEP_COUNT: usize = 50;
const DELTA_RUNS: usize = 5;
const DELTA_COUNT: usize = 20_000;
const LONG_RUNS: usize = 3;
const LONG_STEPS: usize = 200;
const LONG_BYTES: usize = 8 * 1024;
const GROWTH_STEPS: usize = 2_000;
const VERSION_RUNS: usize = 25;

/// Measures and writes a report; fails where a limit is passed.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let kit_folder = std::env::var_os("HAMES_TEST_KIT").map_or_else(|| root().join("../shared/kit"), PathBuf::from);
    if !kit_folder.join("bench/Cargo.toml").exists() {
        bail!("the bench kit is not at {}; set HAMES_TEST_KIT to its folder", kit_folder.display());
    }
    must(cargo(&["build", "--release", "--package", "hames-cli"]))?;
    let kit = Kit::build(&kit_folder)?;
    let scratch = tempfile::tempdir_in(root().join("target")).context("cannot make a scratch folder")?;
    let mock = Mock::start(&kit)?;
    let mut contenders = vec![Contender::floor(&kit, &mock, scratch.path())?, Contender::hames(&mock, scratch.path())?];
    for arg in args {
        contenders.push(Contender::peer(arg, &mock, scratch.path())?);
    }
    let mut rows = Vec::new();
    for contender in &contenders {
        eprintln!("== measuring {}", contender.name);
        rows.push(measure(contender, &kit, &mock)?);
    }
    let prompt = prompt::measure(&contenders[1], &mock, scratch.path())?;
    let limits = table::limits(&rows, &prompt);
    table::print(&rows, &prompt, &limits);
    let path = report::write("bench", json!({"rows": rows, "prompt": prompt, "limits": limits}))?;
    println!("report: {}", path.display());
    if limits.iter().any(|limit| limit["ok"] == json!(false)) {
        bail!("a limit is passed; see the table above");
    }
    Ok(())
}

fn measure(contender: &Contender, kit: &Kit, mock: &Mock) -> Result<Value> {
    contender.run(kit, mock, &json!({"scenario": "hello"}))?; // warms caches and the home
    let hello = repeat(START_RUNS, || contender.run(kit, mock, &json!({"scenario": "hello"})))?;
    let start = hello.iter().map(Run::start_ms).collect::<Result<Vec<f64>>>()?;
    let step_ctl = json!({"scenario": "loop", "k": STEP_COUNT, "cmd": "echo hi"});
    let steps = repeat(STEP_RUNS, || contender.run(kit, mock, &step_ctl))?;
    let step = steps.iter().map(|run| run.step_ms(STEP_COUNT)).collect::<Result<Vec<f64>>>()?;
    let delta_ctl = json!({"scenario": "tokens", "n": DELTA_COUNT, "tool": "any"});
    let deltas = repeat(DELTA_RUNS, || contender.run(kit, mock, &delta_ctl))?;
    let hello_cpu = median(hello.iter().map(Run::cpu_s).collect());
    let delta_us = median(deltas.iter().map(|run| (run.cpu_s() - hello_cpu) * 1e6 / DELTA_COUNT as f64).collect());
    let command = format!("head -c {LONG_BYTES} /dev/zero | tr '\\0' x");
    let long_ctl = json!({"scenario": "loop", "k": LONG_STEPS, "cmd": command});
    let children = kit.children_cpu_s(&command, LONG_STEPS)?;
    let long = repeat(LONG_RUNS, || contender.run(kit, mock, &long_ctl))?;
    for run in &long {
        run.must_hold_results(LONG_STEPS, LONG_BYTES)?;
    }
    let growth = |k: usize| -> Result<f64> {
        let ctl = json!({"scenario": "loop", "k": k, "cmd": "echo {i}"});
        Ok(contender.run(kit, mock, &ctl)?.rss_mb())
    };
    let (at_200, at_2000) = (growth(LONG_STEPS)?, growth(GROWTH_STEPS)?);
    let version = match &contender.version {
        Some(command) => json!(median(repeat(VERSION_RUNS, || kit.wall_ms(command))?)),
        None => Value::Null,
    };
    Ok(json!({
        "name": contender.name,
        "start_ms": median(start),
        "step_ms": median(step),
        "delta_us": delta_us,
        "long_cpu_s": median(long.iter().map(|run| run.cpu_s() - children).collect()),
        "long_children_cpu_s": children,
        "long_rss_mb": median(long.iter().map(Run::rss_mb).collect()),
        "hello_rss_mb": median(hello.iter().map(Run::rss_mb).collect()),
        "rss_at_200_mb": at_200,
        "rss_at_2000_mb": at_2000,
        "version_ms": version,
        "connections": steps.first().map(|run| run.connections),
    }))
}

fn repeat<T>(times: usize, mut work: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    (0..times).map(|_| work()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
