//! `cargo xtask bench`: what Hames costs, side by side with a bare client and any peer, in one run.
//!
//! The yardstick is the kit's: `mockllm` (a fast provider), `floor` (the least a client can do) and `benchrun` (wall,
//! CPU and memory of a whole process tree). Ratios count; absolute times do not hold from machine to machine.
//!
//! `cargo xtask bench server` measures the local server alone, `cargo xtask bench tui` the terminal face.

mod contender;
mod kit;
mod prompt;
mod pty;
mod server;
mod table;
mod tui;
mod workspace;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, must, root};
use crate::report;
use contender::Contender;
use kit::{Kit, Mock, Run};

const START_RUNS: usize = 15;
const STEP_RUNS: usize = 9;
const STEP_COUNT: usize = 50;
const DELTA_RUNS: usize = 5;
const DELTA_COUNT: usize = 20_000;
const LONG_RUNS: usize = 5;
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
    match args {
        [part] if part == "server" => {
            let figures = server::measure(&contenders[0], &contenders[1], &kit, &mock)?;
            return alone("server", figures, server::limits);
        }
        [part] if part == "tui" => {
            let figures = tui::measure(&contenders[0], &contenders[1], &kit, &mock)?;
            return alone("tui", figures, tui::limits);
        }
        _ => {}
    }
    for arg in args {
        contenders.push(Contender::peer(arg, &mock, scratch.path())?);
    }
    let rows = measure(&contenders, &kit, &mock)?;
    let prompt = prompt::measure(&contenders[1], &mock, scratch.path())?;
    let prover = prover()?;
    let (overlay, grep) = (workspace::overlay()?, workspace::grep()?);
    let mut limits = table::limits(&rows, &prompt, &prover);
    limits.extend(workspace::limits(&overlay, &grep));
    table::print(&rows, &prompt, &limits);
    let figures =
        json!({"rows": rows, "prompt": prompt, "prover": prover, "overlay": overlay, "grep": grep, "limits": limits});
    let path = report::write("bench", figures)?;
    println!("report: {}", path.display());
    if limits.iter().any(|limit| limit["ok"] == json!(false)) {
        bail!("a limit is passed; see the table above");
    }
    Ok(())
}

/// Puts the figures of one part into the report there is.
fn alone(part: &str, mut figures: Value, limits: fn(&Value) -> Vec<Value>) -> Result<()> {
    let limits = limits(&figures);
    table::print(&[], &figures, &limits);
    figures["limits"] = json!(limits);
    println!("report: {}", report::add("bench", part, figures)?.display());
    if limits.iter().any(|limit| limit["ok"] == json!(false)) {
        bail!("a limit is passed; see the table above");
    }
    Ok(())
}

/// What it costs to look at a command line, by the example that measures it.
fn prover() -> Result<Value> {
    let output =
        cargo(&["run", "--quiet", "--release", "--package", "hames-workspace", "--example", "prover"]).output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the prover's example said nothing: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Measures all contenders, turn by turn in every scenario, so that whatever else the machine does meets all of them.
fn measure(contenders: &[Contender], kit: &Kit, mock: &Mock) -> Result<Vec<Value>> {
    let rounds = |name: &str, times: usize, ctl: &Value| -> Result<Vec<Vec<Run>>> {
        eprintln!("== {name}");
        let mut runs: Vec<Vec<Run>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..times {
            for (contender, runs) in contenders.iter().zip(&mut runs) {
                runs.push(contender.run(kit, mock, ctl)?);
            }
        }
        Ok(runs)
    };
    // Every command differs: a model that repeats one is stopped by the loop guard.
    let long_command = format!("head -c {LONG_BYTES} /dev/zero | tr '\\0' x; echo {{i}}");
    let growth = |k: usize| json!({"scenario": "loop", "k": k, "cmd": "echo {i}"});
    rounds("warming", 1, &json!({"scenario": "hello"}))?;
    let hello = rounds("start", START_RUNS, &json!({"scenario": "hello"}))?;
    let steps = rounds("steps", STEP_RUNS, &json!({"scenario": "loop", "k": STEP_COUNT, "cmd": "echo {i}"}))?;
    let deltas = rounds("deltas", DELTA_RUNS, &json!({"scenario": "tokens", "n": DELTA_COUNT, "tool": "any"}))?;
    let long = rounds("long", LONG_RUNS, &json!({"scenario": "loop", "k": LONG_STEPS, "cmd": long_command}))?;
    let children = kit.children_cpu_s(&long_command, LONG_STEPS)?;
    let short_loop = rounds("200 echoes", 1, &growth(LONG_STEPS))?;
    let long_loop = rounds("2,000 echoes", 1, &growth(GROWTH_STEPS))?;

    let mut rows = Vec::new();
    for (n, contender) in contenders.iter().enumerate() {
        for run in &long[n] {
            run.must_hold_results(LONG_STEPS, LONG_BYTES)?;
        }
        let hello_cpu = of(&hello[n], Run::cpu_s);
        let version = match &contender.version {
            Some(command) => json!(median(repeat(VERSION_RUNS, || kit.wall_ms(command))?)),
            None => Value::Null,
        };
        rows.push(json!({
            "name": contender.name,
            "start_ms": median(hello[n].iter().map(Run::start_ms).collect::<Result<_>>()?),
            "step_ms": median(steps[n].iter().map(|run| run.step_ms(STEP_COUNT)).collect::<Result<_>>()?),
            "delta_us": of(&deltas[n], |run| (run.cpu_s() - hello_cpu) * 1e6 / DELTA_COUNT as f64),
            "long_cpu_s": of(&long[n], |run| run.cpu_s() - children),
            "long_children_cpu_s": children,
            "long_rss_mb": of(&long[n], Run::rss_mb),
            "hello_rss_mb": of(&hello[n], Run::rss_mb),
            "rss_at_200_mb": of(&short_loop[n], Run::rss_mb),
            "rss_at_2000_mb": of(&long_loop[n], Run::rss_mb),
            "version_ms": version,
            "connections": steps[n].first().map(|run| run.connections),
        }));
    }
    Ok(rows)
}

fn of(runs: &[Run], figure: impl Fn(&Run) -> f64) -> f64 {
    median(runs.iter().map(figure).collect())
}

fn repeat<T>(times: usize, mut work: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
    (0..times).map(|_| work()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
