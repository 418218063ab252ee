//! `cargo xtask soak`: the full numbers of what the tests show in small. Hundreds of deaths, long sessions with every
//! fault, thousands of cases of every property, big outputs, two writers.
//!
//! Each suite is a `cargo test` in the ordinary profile with a larger environment. A test that counts something appends
//! a line of JSON to the file that `HAMES_SOAK_REPORT` names; the lines of each suite go into the report as they are.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, must, root};
use crate::report;

/// Cases of each property: 32 times those of the tests, and still minutes altogether.
const PROPERTY_CASES: &str = "2048";

struct Suite {
    name: &'static str,
    /// What follows `cargo test`.
    args: &'static [&'static str],
}

const SUITES: [Suite; 13] = [
    Suite { name: "kill_9", args: &["-p", "hames-cli", "--test", "it", "crash::life"] },
    Suite { name: "cli_chaos", args: &["-p", "hames-cli", "--test", "it", "crash::chaos"] },
    Suite { name: "cli_kit_provider", args: &["-p", "hames-cli", "--test", "it", "crash::reference"] },
    Suite { name: "agent_chaos", args: &["-p", "hames-agent", "--test", "it", "soak::"] },
    Suite { name: "troubled_streams", args: &["-p", "hames-agent", "--test", "it", "streams::"] },
    Suite {
        name: "agent",
        args: &["-p", "hames-agent", "--test", "it", "--", "--skip", "soak::", "--skip", "streams::"],
    },
    Suite { name: "providers_refuse", args: &["-p", "hames-testkit"] },
    Suite { name: "store", args: &["-p", "hames-store"] },
    Suite { name: "workspace", args: &["-p", "hames-workspace"] },
    Suite { name: "model", args: &["-p", "hames-model"] },
    Suite { name: "tools", args: &["-p", "hames-tools"] },
    Suite { name: "protocol", args: &["-p", "hames-protocol"] },
    Suite { name: "context", args: &["-p", "hames-context"] },
];

/// Runs every suite and writes the report, or only those named without a report; fails where one of them failed.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (seed, only) = read(args)?;
    let suites: Vec<&Suite> = SUITES.iter().filter(|suite| only.is_empty() || only.contains(&suite.name)).collect();
    let folder = root().join("target/soak");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for suite in &suites {
        let mut build = cargo(&["test", "--no-run", "--quiet"]);
        // What follows `--` is for the tests.
        build.args(suite.args.iter().take_while(|arg| **arg != "--"));
        must(build)?;
    }
    let began = Instant::now();
    let mut rows = Vec::new();
    for suite in suites {
        eprintln!("== {}", suite.name);
        let row = suite.run(seed, &folder)?;
        eprintln!("== {}: {}, {} s, {} tests", suite.name, row["status"], row["seconds"], row["tests"]);
        rows.push(row);
    }
    let is_ok = rows.iter().all(|row| row["status"] == "ok");
    let seconds = began.elapsed().as_secs();
    let figures = json!({"seed": seed, "seconds": seconds, "ok": is_ok, "suites": rows});
    if only.is_empty() {
        let path = report::write("soak", figures)?;
        println!("report: {} ({seconds} s, seed {seed})", path.display());
    } else {
        println!("{figures:#}");
    }
    if !is_ok {
        bail!("a suite failed; the seed is {seed}, and what it said is in {}", folder.display());
    }
    Ok(())
}

/// `[--seed N] [NAME ...]`.
fn read(args: &[String]) -> Result<(u64, Vec<&str>)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let (mut seed, mut only) = (now, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seed" => seed = args.next().and_then(|seed| seed.parse().ok()).context("--seed needs a number")?,
            name if SUITES.iter().any(|suite| suite.name == name) => only.push(name),
            other => {
                let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
                bail!("there is no suite \"{other}\"; there are {}", names.join(", "));
            }
        }
    }
    Ok((seed, only))
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
fn given(command: &mut Command, variable: &str, name: &str) {
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
fn lines(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| serde_json::from_str(line).context("a test appended what is no JSON")).collect()
}
