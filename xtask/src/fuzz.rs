//! Fuzzing: each parser of what comes back from a model gets inputs by chance, guided by what they reach.
//!
//! The targets are in `fuzz/`, a workspace of its own in the layout `cargo fuzz` knows. It is built here with the
//! instrumentation alone, which the stable compiler has; there is no unsafe code in the targets for a sanitizer to watch.
//! The corpora in the repository are read and not written: what is found goes to `fuzz/work`, and an input that breaks
//! a promise to `fuzz/artifacts`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cargo::{cargo, must, root};

/// The targets.
pub(crate) const TARGETS: [&str; 5] = ["sse", "answer", "tags", "spoken", "refusal"];

/// Coverage of edges and comparisons, as libFuzzer wants it.
const INSTRUMENTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// Bytes of one input at most: longer ones are slow and reach nothing more.
const MAX_LEN: usize = 4096;

/// An input that takes longer than this is a fault of its own.
const SLOWEST_S: u64 = 10;

/// Memory a target may take.
const MOST_MB: u64 = 1024;

/// Runs the targets for so long each, as many at a time as there are cores. Gives a row for each; fails where the
/// targets cannot be built.
pub(crate) fn run(targets: &[&'static str], each: Duration, seed: u64) -> Result<Vec<Value>> {
    let host = host()?;
    let manifest = root().join("fuzz/Cargo.toml");
    let mut build = cargo(&["build", "--release", "--quiet", "--target", &host, "--manifest-path"]);
    build.arg(&manifest).env("RUSTFLAGS", INSTRUMENTED);
    must(build)?;
    let folder = root().join("fuzz/target").join(&host).join("release");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::new();
    for some in targets.chunks(cores) {
        let running = some.iter().map(|name| {
            let program = folder.join(name);
            let name = *name;
            std::thread::spawn(move || target(name, &program, each, seed))
        });
        for running in running.collect::<Vec<_>>() {
            let row = running.join().map_err(|_| anyhow::anyhow!("a fuzz run panicked"))??;
            eprintln!("== fuzz {}: {}, {} inputs in {} s", row["name"], row["status"], row["inputs"], row["seconds"]);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn host() -> Result<String> {
    let Output { stdout, .. } = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not say its host")?;
    Ok(host.to_owned())
}

fn target(name: &str, program: &Path, each: Duration, seed: u64) -> Result<Value> {
    let folder = |kind: &str| -> Result<PathBuf> {
        let path = root().join("fuzz").join(kind).join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    };
    let (work, artifacts, corpus) = (folder("work")?, folder("artifacts")?, root().join("fuzz/corpus").join(name));
    let began = Instant::now();
    let output = Command::new(program)
        .arg(format!("-max_total_time={}", each.as_secs()))
        .arg(format!("-max_len={MAX_LEN}"))
        .arg(format!("-timeout={SLOWEST_S}"))
        .arg(format!("-rss_limit_mb={MOST_MB}"))
        // It takes 32 bits and no 0, which means chance.
        .arg(format!("-seed={}", seed % u64::from(u32::MAX) + 1))
        .arg(format!("-dict={}", root().join("fuzz/dicts").join(format!("{name}.dict")).display()))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .arg(&work)
        .arg(&corpus)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    std::fs::write(root().join("fuzz/work").join(format!("{name}.log")), &said)?;
    if !output.status.success() {
        let tail: Vec<&str> = said.lines().rev().take(40).collect();
        eprintln!("{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    let stat = |what: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(what));
        line.and_then(|line| line.trim_start_matches(':').trim().parse::<u64>().ok())
    };
    // `#123  REDUCE cov: 456 ft: …`: the last one counts.
    let covered =
        said.lines().rev().find_map(|line| line.split_once(" cov: ")?.1.split_whitespace().next()?.parse::<u64>().ok());
    Ok(json!({
        "name": name,
        "status": if output.status.success() { "clean" } else { "failed" },
        "seconds": began.elapsed().as_secs(),
        "inputs": stat("number_of_executed_units"),
        "found": stat("new_units_added"),
        "edges": covered,
        "slowest_s": stat("slowest_unit_time_sec"),
        "peak_mb": stat("peak_rss_mb"),
    }))
}

/// The targets by their names; all of them, where none is named.
pub(crate) fn named(names: &[&str]) -> Result<Vec<&'static str>> {
    if names.is_empty() {
        return Ok(TARGETS.to_vec());
    }
    let find = |name: &&str| TARGETS.into_iter().find(|target| target == name);
    names.iter().map(|name| find(name).with_context(|| format!("there is no fuzz target \"{name}\""))).collect()
}

/// Whether every row is clean.
pub(crate) fn all_clean(rows: &[Value]) -> Result<()> {
    if rows.iter().any(|row| row["status"] != "clean") {
        bail!("a fuzz target failed; the input is in fuzz/artifacts, what it said in fuzz/work");
    }
    Ok(())
}
