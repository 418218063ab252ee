//! Everything CI checks, in the order that fails soonest.

use std::time::Instant;

use anyhow::Result;

use crate::cargo::{cargo, has_subcommand, must};
use crate::generate;

/// Runs all checks and all tests.
pub(crate) fn run() -> Result<()> {
    step("format", || must(cargo(&["fmt", "--all", "--check"])))?;
    step("generated files", generate::check)?;
    step("lints", || must(cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])))?;
    step("documentation", || {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        must(doc)
    })?;
    step("tests", || {
        if has_subcommand("nextest") {
            must(cargo(&["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "slow"]))?;
            must(cargo(&["test", "--workspace", "--doc", "--quiet"]))
        } else {
            must(cargo(&["test", "--workspace", "--no-fail-fast"]))
        }
    })
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let began = Instant::now();
    eprintln!("== {name}");
    work()?;
    eprintln!("== {name}: ok, {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}
