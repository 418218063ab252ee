//! What it costs to look at a command line: `cargo run --release -p hames-workspace --example prover`.
//!
//! Prints one line of JSON with microseconds per line: `median_us` over the lines of every day, and `worst_us`, the
//! dearest of them.
#![allow(clippy::print_stdout)] // this is the figure

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;

#[path = "../tests/it/shell/analyze/harmless.rs"]
mod harmless;

/// Looks at each line, of which the fastest counts: the machine does other things too.
const LOOKS: usize = 200;

fn main() {
    let Some(shell) = hames_workspace::shell::tools().pop() else {
        return;
    };
    let inputs: Vec<_> = harmless::LINES.iter().map(|line| json!({"command": line})).collect();
    let mut costs = vec![f64::INFINITY; inputs.len()];
    for _ in 0..LOOKS {
        // Line after line, so that none is looked at whose proof is still kept.
        for (input, cost) in inputs.iter().zip(&mut costs) {
            let start = Instant::now();
            black_box(shell.declare(black_box(input)));
            *cost = cost.min(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    costs.sort_by(f64::total_cmp);
    let (median, worst) = (costs.get(costs.len() / 2), costs.last());
    println!("{}", json!({"lines": costs.len(), "median_us": median, "worst_us": worst}));
}
