//! Reports: figures with the commit they were measured at, kept under `bench/reports/`.

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{Value, json};

use crate::cargo::root;

fn git(args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(root()).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// The commit that is being measured, with a mark where files differ from it.
pub(crate) fn commit() -> String {
    let dirty = !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty();
    git(&["rev-parse", "HEAD"]) + if dirty { " with changes" } else { "" }
}

/// How much else the machine was doing: the mean number of processes that wanted to run in the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Puts one part into the figures of the report there is, or into one of its own.
pub(crate) fn add(kind: &str, part: &str, mut figures: Value) -> Result<PathBuf> {
    (figures["commit"], figures["load"]) = (json!(commit()), json!(load()));
    let path = root().join(format!("bench/reports/{kind}.json"));
    let known = std::fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let Some(mut report) = known.filter(|report| report["figures"].is_object()) else {
        return write(kind, json!({ part: figures }));
    };
    report["figures"][part] = figures;
    std::fs::write(&path, serde_json::to_string_pretty(&report)? + "\n")?;
    Ok(path)
}

/// Writes `bench/reports/KIND.json`: the newest report of its kind; older ones are in the history.
pub(crate) fn write(kind: &str, figures: Value) -> Result<PathBuf> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let report = json!({
        "kind": kind,
        "commit": git(&["rev-parse", "HEAD"]),
        "uncommitted_changes": !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty(),
        "unix_time": at,
        "load": load(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "figures": figures,
    });
    let path = root().join(format!("bench/reports/{kind}.json"));
    std::fs::create_dir_all(root().join("bench/reports"))?;
    std::fs::write(&path, serde_json::to_string_pretty(&report)? + "\n")?;
    Ok(path)
}
