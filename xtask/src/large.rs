//! `cargo xtask large`: what a large home costs, by the store's bench, with the figures kept beside the commit they were
//! measured at.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo::{cargo, root};
use crate::report;

/// Measures and writes the report, also where a limit is passed; then it fails.
pub(crate) fn run() -> Result<()> {
    let figures = root().join("target/large.json");
    if figures.exists() {
        std::fs::remove_file(&figures).with_context(|| format!("cannot remove {}", figures.display()))?;
    }
    let status = cargo(&["bench", "--package", "hames-store", "--bench", "large"])
        .env("HAMES_BENCH_REPORT", &figures)
        .status()
        .context("cannot start cargo")?;
    let text = std::fs::read_to_string(&figures).context("the bench wrote no figures; see what it said above")?;
    let figures: Value = serde_json::from_str(&text).context("the bench wrote what is no JSON")?;
    println!("report: {}", report::write("large", figures)?.display());
    if !status.success() {
        bail!("a limit is passed; see the figures above");
    }
    Ok(())
}
