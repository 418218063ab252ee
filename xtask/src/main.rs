//! `cargo xtask`: everything this repository does to itself.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command for people at a terminal

mod api;
mod bench;
mod cargo;
mod fuzz;
mod generate;
mod large;
mod local_model;
mod report;
mod snapshot;
mod soak;
mod test;
mod window;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  test        everything CI checks: format, lints, docs, generated files, all tests
  generate    write the generated files (schema/)
  api-fuzz [ARGUMENT ...]
              schemathesis (from PATH or HAMES_SCHEMATHESIS) against a server with an empty home, some minutes
  local-model [FOLDER]
              Hames against a real model server, installed into FOLDER the first time (about 265 MB); some minutes
  snapshot FILE
              make the embedded catalog of models from the JSON of models.dev
  bench [NAME=COMMAND ...]
              what Hames costs beside a bare client, and beside any peer given; writes bench/reports/bench.json
  large       what a home with a gigabyte of history costs: pages, searches, 200 sessions at once; some minutes and two
              gigabytes of disk (HAMES_BENCH_MB makes it smaller); writes bench/reports/large.json
  window      what long sessions cost and how they go, held to its limits; some minutes; writes bench/reports/window.json
  soak [--seed N] [--minutes N] [SUITE ...] [fuzz [TARGET ...]]
              the full numbers: deaths, faults, properties, a minute of each fuzz target; about 45 minutes; writes
              bench/reports/soak.json where no suite is named. `soak --minutes 20 fuzz` fuzzes for 20 minutes each and
              puts the figures into that report
";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("test") => test::run(),
        Some("generate") => generate::write(),
        Some("api-fuzz") => api::run(&args.collect::<Vec<_>>()),
        Some("local-model") => local_model::run(&args.collect::<Vec<_>>()),
        Some("snapshot") => snapshot::run(&args.collect::<Vec<_>>()),
        Some("soak") => soak::run(&args.collect::<Vec<_>>()),
        Some("window") => window::run(),
        Some("large") => large::run(),
        Some("bench") if cfg!(feature = "tokens") => bench::run(&args.collect::<Vec<_>>()),
        Some("bench") => with_tokens(&args.collect::<Vec<_>>()),
        None | Some("help" | "-h" | "--help") => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("there is no command \"{other}\"\n\n{HELP}"),
    }
}

/// The bench counts tokens; everything else does without a tokenizer, so it is built only for the bench.
fn with_tokens(args: &[String]) -> Result<()> {
    let mut again = cargo::cargo(&["run", "--quiet", "--package", "xtask", "--features", "tokens", "--", "bench"]);
    again.args(args);
    cargo::must(again)
}
