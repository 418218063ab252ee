//! `cargo xtask soak`: the full numbers of what the tests show in small. Hundreds of deaths, long sessions with every
//! fault, thousands of cases of every property, big outputs, two writers.
//!
//! Each suite is a `cargo test` in the ordinary profile with a larger environment. A test that counts something appends
//! a line of JSON to the file that `HAMES_SOAK_REPORT` names; the lines of each suite go into the report as they are.
//!
//! `cargo xtask soak --minutes 20 fuzz` fuzzes each parser for 20 minutes and puts the figures into the same report.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, must, root};
use crate::{fuzz, report};

/// Cases of each property: 32 times those of the tests, and still minutes altogether.
const PROPERTY_CASES: &str = "2048";

struct Suite {
    name: &'static str,
    /// What follows `cargo test`.
    args: &'static [&'static str],
}

const SUITES: [Suite; 20] = [
    Suite { name: "kill_9", args: &["-p", "hames-cli", "--test", "it", "crash::life"] },
    Suite { name: "server_kill_9", args: &["-p", "hames-cli", "--test", "it", "server::death"] },
    Suite { name: "server_cuts", args: &["-p", "hames-cli", "--test", "it", "server::cuts"] },
    Suite { name: "server_races", args: &["-p", "hames-server", "--test", "it", "races::"] },
    Suite { name: "server_load", args: &["-p", "hames-cli", "--test", "it", "server::load"] },
    Suite { name: "cli_chaos", args: &["-p", "hames-cli", "--test", "it", "crash::chaos"] },
    Suite { name: "cli_kit_provider", args: &["-p", "hames-cli", "--test", "it", "crash::reference"] },
    Suite { name: "agent_chaos", args: &["-p", "hames-agent", "--test", "it", "soak::"] },
    Suite { name: "long_sessions", args: &["-p", "hames-agent", "--test", "it", "long::"] },
    Suite { name: "troubled_streams", args: &["-p", "hames-agent", "--test", "it", "streams::"] },
    Suite {
        name: "agent",
        args: &[
            "-p",
            "hames-agent",
            "--test",
            "it",
            "--",
            "--skip",
            "soak::",
            "--skip",
            "streams::",
            "--skip",
            "long::",
        ],
    },
    Suite { name: "providers_refuse", args: &["-p", "hames-testkit"] },
    Suite { name: "client_cuts", args: &["-p", "hames-client"] },
    Suite { name: "api_over_http", args: &["-p", "hames-server", "--test", "it", "http::"] },
    Suite { name: "store", args: &["-p", "hames-store"] },
    Suite { name: "workspace", args: &["-p", "hames-workspace"] },
    Suite { name: "model", args: &["-p", "hames-model"] },
    Suite { name: "tools", args: &["-p", "hames-tools"] },
    Suite { name: "protocol", args: &["-p", "hames-protocol"] },
    Suite { name: "context", args: &["-p", "hames-context"] },
];

/// Minutes for each fuzz target: in a soak of everything, and where they are asked for.
const FUZZ_BESIDE: u64 = 1;
const FUZZ_ALONE: u64 = 20;

/// What is asked for.
struct Wanted<'a> {
    seed: u64,
    /// Minutes for each fuzz target.
    minutes: Option<u64>,
    suites: Vec<&'static Suite>,
    /// Fuzz targets, where fuzzing is asked for; all of them where none is named.
    fuzz: Option<Vec<&'a str>>,
}

/// Runs every suite and the fuzz targets and writes the report; or only what is named, without a report but for fuzzing,
/// whose figures are put into the one there is. Fails where one of them failed.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let wanted = read(args)?;
    let is_all = wanted.suites.is_empty() && wanted.fuzz.is_none();
    let rows = if is_all || !wanted.suites.is_empty() { run_suites(&wanted)? } else { Vec::new() };
    let fuzz = wanted.fuzz.as_deref().or(is_all.then_some(&[][..]));
    let fuzzed = fuzz.map(|names| run_fuzz(names, &wanted, is_all)).transpose()?;
    let is_ok = rows.iter().all(|row| row["status"] == "ok");
    let figures = json!({"seed": wanted.seed, "ok": is_ok, "suites": rows});
    match (is_all, &fuzzed) {
        (true, Some(fuzzed)) => {
            let mut figures = figures;
            figures["fuzz"] = fuzzed.clone();
            println!("report: {}", report::write("soak", figures)?.display());
        }
        (_, Some(fuzzed)) => println!("report: {}", report::add("soak", "fuzz", fuzzed.clone())?.display()),
        _ => println!("{figures:#}"),
    }
    if !is_ok {
        bail!("a suite failed; the seed is {}, and what it said is in target/soak", wanted.seed);
    }
    fuzz::all_clean(fuzzed.as_ref().and_then(|fuzzed| fuzzed["targets"].as_array()).map_or(&[][..], Vec::as_slice))
}

fn run_suites(wanted: &Wanted<'_>) -> Result<Vec<Value>> {
    let suites = if wanted.suites.is_empty() { SUITES.iter().collect() } else { wanted.suites.clone() };
    let folder = root().join("target/soak");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for suite in &suites {
        let mut build = cargo(&["test", "--no-run", "--quiet"]);
        // What follows `--` is for the tests.
        build.args(suite.args.iter().take_while(|arg| **arg != "--"));
        must(build)?;
    }
    let mut rows = Vec::new();
    for suite in suites {
        eprintln!("== {}", suite.name);
        let row = suite.run(wanted.seed, &folder)?;
        eprintln!("== {}: {}, {} s, {} tests", suite.name, row["status"], row["seconds"], row["tests"]);
        rows.push(row);
    }
    Ok(rows)
}

fn run_fuzz(names: &[&str], wanted: &Wanted<'_>, is_all: bool) -> Result<Value> {
    let minutes = wanted.minutes.unwrap_or(if is_all { FUZZ_BESIDE } else { FUZZ_ALONE });
    let targets = fuzz::named(names)?;
    let rows = fuzz::run(&targets, Duration::from_secs(minutes * 60), wanted.seed)?;
    Ok(json!({"minutes_each": minutes, "seed": wanted.seed, "commit": report::commit(), "targets": rows}))
}

/// `[--seed N] [--minutes N] [SUITE ...] [fuzz [TARGET ...]]`.
fn read(args: &[String]) -> Result<Wanted<'_>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let mut wanted = Wanted { seed: now, minutes: None, suites: Vec::new(), fuzz: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), &mut wanted.fuzz) {
            ("--seed", _) => {
                wanted.seed = args.next().and_then(|seed| seed.parse().ok()).context("--seed needs a number")?;
            }
            ("--minutes", _) => {
                let minutes = args.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                wanted.minutes = Some(minutes.context("--minutes needs a number")?);
            }
            ("fuzz", fuzz) => drop(fuzz.get_or_insert_default()),
            (name, Some(targets)) if fuzz::TARGETS.contains(&name) => targets.push(name),
            (name, _) => match SUITES.iter().find(|suite| suite.name == name) {
                Some(suite) => wanted.suites.push(suite),
                None => {
                    let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
                    bail!(
                        "there is no suite \"{name}\"; there are {}, and fuzz with the targets {}",
                        names.join(", "),
                        fuzz::TARGETS.join(", ")
                    );
                }
            },
        }
    }
    Ok(wanted)
}

impl Suite {
    fn run(&self, seed: u64, folder: &Path) -> Result<Value> {
        let said = folder.join(format!("{}.log", self.name));
        let counted = folder.join(format!("{}.jsonl", self.name));
        File::create(&counted)?;
        let mut command = cargo(&["test", "--no-fail-fast"]);
        command
            .args(self.args)
            .env("HAMES_SOAK", "1")
            .env("HAMES_SEED", seed.to_string())
            .env("HAMES_PROPTEST_CASES", PROPERTY_CASES)
            .env("HAMES_SOAK_REPORT", &counted);
        given(&mut command, "HAMES_TEST_DATA", "data");
        given(&mut command, "HAMES_TEST_KIT", "kit");
        let began = Instant::now();
        let log = File::create(&said)?;
        let status = command.stdout(log.try_clone()?).stderr(log).status().context("cannot start cargo")?;
        let seconds = began.elapsed().as_secs();
        let said = std::fs::read(&said).map(|said| String::from_utf8_lossy(&said).into_owned())?;
        if !status.success() {
            eprintln!("{said}");
        }
        let [tests, failed] = [" passed;", " failed;"].map(|what| count(&said, what));
        Ok(json!({
            "name": self.name,
            "command": format!("cargo test {}", self.args.join(" ")),
            "status": if status.success() && tests > 0 { "ok" } else { "failed" },
            "seconds": seconds,
            "tests": tests,
            "failed": failed,
            "counts": lines(&counted)?,
        }))
    }
}

/// Names a folder of the shared test data, unless the environment names another or it is not there.
pub(crate) fn given(command: &mut Command, variable: &str, name: &str) {
    let folder: PathBuf = root().join("../shared").join(name);
    if std::env::var_os(variable).is_none() && folder.is_dir() {
        command.env(variable, folder);
    }
}

/// Adds up the numbers before `what` in the result lines of the test runner.
fn count(said: &str, what: &str) -> u64 {
    let results = said.lines().filter(|line| line.starts_with("test result:"));
    results.filter_map(|line| line.split(what).next()?.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// The lines that the tests appended.
pub(crate) fn lines(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| serde_json::from_str(line).context("a test appended what is no JSON")).collect()
}
