//! What files and searches cost, by the benches of their crate.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::table::limit;
use crate::cargo::cargo;

/// How much more an overlay read may cost than a plain one.
const OVERLAY_LIMIT: f64 = 1.10;
/// How much longer a search may take than ripgrep's.
const GREP_LIMIT: f64 = 1.3;

/// What reads over proposals cost.
pub(super) fn overlay() -> Result<Value> {
    bench("overlay", &[])
}

/// What searches of a large tree cost beside ripgrep's; null where there is no such tree.
pub(super) fn grep() -> Result<Value> {
    match sources() {
        Some(folder) => bench("grep", &[&folder.to_string_lossy()]),
        None => Ok(Value::Null),
    }
}

/// A large tree of sources: the toolchain's own where they are installed, else those of the crates that cargo keeps.
fn sources() -> Option<PathBuf> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let toolchain = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim()).join("lib/rustlib/src/rust/library");
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let crates = home.map(|home| home.join("registry/src"));
    std::iter::once(toolchain).chain(crates).find(|folder| folder.is_dir())
}

fn bench(name: &str, args: &[&str]) -> Result<Value> {
    let before = ["bench", "--quiet", "--package", "hames-workspace", "--bench", name, "--"];
    let output = cargo(&[&before[..], args, &["--json"]].concat()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find(|line| line.starts_with('{'));
    line.and_then(|line| serde_json::from_str(line).ok())
        .with_context(|| format!("the bench {name} gave no figures: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// The limits of both.
pub(super) fn limits(overlay: &Value, grep: &Value) -> Vec<Value> {
    let worst = |rows: &Value| {
        let ratios = rows.as_array().into_iter().flatten().map(|row| row["ratio"].as_f64().unwrap_or(f64::NAN));
        // A figure that is missing passes no limit.
        ratios.fold(0.0, |worst: f64, ratio| if ratio.is_nan() || ratio > worst { ratio } else { worst })
    };
    let mut limits = vec![limit("overlay read <= 1.10 x plain", worst(&overlay["ways"]), OVERLAY_LIMIT)];
    let patterns = &grep["patterns"];
    let skipped = match patterns.as_array() {
        None => Some("there is no large tree; add the toolchain's sources with rustup component add rust-src"),
        Some(rows) if rows.iter().any(|row| row["ratio"].is_null()) => Some("there is no rg on the path"),
        Some(_) => None,
    };
    limits.push(match skipped {
        None => limit("Grep <= 1.3 x ripgrep", worst(patterns), GREP_LIMIT),
        Some(why) => json!({"what": "Grep <= 1.3 x ripgrep", "skipped": why}),
    });
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_ratio_counts_and_what_was_not_measured_is_said() {
        let ways = |ratios: &[f64]| json!({"ways": ratios.iter().map(|r| json!({"ratio": r})).collect::<Vec<_>>()});
        let greps = |ratios: &[Option<f64>]| json!({"patterns": ratios.iter().map(|r| json!({"ratio": r})).collect::<Vec<_>>()});
        let both = limits(&ways(&[1.0, 1.05]), &greps(&[Some(0.9), Some(1.31), Some(1.2)]));
        assert_eq!(both[0], json!({"what": "overlay read <= 1.10 x plain", "value": 1.05, "limit": 1.1, "ok": true}));
        assert_eq!((&both[1]["value"], &both[1]["ok"]), (&json!(1.31), &json!(false)));
        for (grep, why) in [(Value::Null, "no large tree"), (greps(&[Some(1.0), None]), "no rg")] {
            let both = limits(&ways(&[1.2]), &grep);
            assert_eq!(both[0]["ok"], json!(false));
            assert!(both[1]["skipped"].as_str().unwrap().contains(why) && both[1]["ok"].is_null());
        }
    }
}
