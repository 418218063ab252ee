//! What a search costs beside ripgrep's: `cargo bench -p hames-workspace --bench grep -- FOLDER [--json]`.
//!
//! The folder should be large: the sources of a toolchain, or of all the crates cargo keeps. Both count the same matches
//! of the same patterns, turn by turn; the figure is the median of the ratios. What one thread would take is measured
//! beside, and what a page of matching lines takes. Without an `rg` on the path it says so and gives our times alone.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement that cannot go on has failed, and prints its figures

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use hames_protocol::{CallId, Emit, Event, Failure, MemoryBlobs, Mode, SessionId, SessionState};
use hames_tools::{Tool, ToolCx};
use hames_workspace::files::{LocalFs, LocalFsOptions};
use hames_workspace::search::Grep;
use hames_workspace::shell::ScriptedShell;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// How often each is searched for.
const ROUNDS: usize = 7;

/// A word, a rare word, an expression, one in any case.
const PATTERNS: [(&str, bool); 4] =
    [("unsafe", false), ("compare_exchange_weak", false), (r"fn \w+_mut\(&mut self", false), ("todo", true)];

struct Nowhere;

#[async_trait]
impl Emit for Nowhere {
    async fn record(&self, _: Vec<Event>) -> Result<(), Failure> {
        Ok(())
    }
    fn show(&self, _: Event) {}
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ripgrep(folder: &str, pattern: &str, ignore_case: bool) -> Option<f64> {
    let began = Instant::now();
    let mut command = Command::new("rg");
    command.args([
        "--hidden",
        "--count",
        "--no-messages",
        "--max-filesize",
        "50M",
        "--glob",
        "!.git",
        "--sort",
        "none",
    ]);
    if ignore_case {
        command.arg("--ignore-case");
    }
    command.args(["-e", pattern, folder]).stdout(Stdio::null()).status().ok()?;
    Some(began.elapsed().as_secs_f64() * 1e3)
}

fn main() {
    let Some(folder) = std::env::args().skip(1).find(|arg| !arg.starts_with('-')) else {
        println!("give a large folder: cargo bench -p hames-workspace --bench grep -- FOLDER");
        return;
    };
    let fs = LocalFs::new(folder.as_ref(), LocalFsOptions::default()).unwrap();
    let cx = ToolCx {
        session: SessionId::from("s"),
        call_id: CallId::from("c"),
        mode: Mode::Build,
        fs: Arc::new(fs),
        hosts: hames_tools::HostRules::default(),
        pins: hames_tools::PinRoom::default(),
        asks: Default::default(),
        shell: Arc::new(ScriptedShell::new()),
        blobs: Arc::new(MemoryBlobs::default()),
        emit: Arc::new(Nowhere),
        cancel: CancellationToken::new(),
        cap_bytes: 50_000,
        state: Arc::new(Mutex::new(SessionState::default())),
        approved: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let timed = |grep: &Grep, input: &serde_json::Value| {
        let began = Instant::now();
        runtime.block_on(grep.run(input, &cx)).unwrap_or_else(|failure| panic!("{}", failure.text));
        began.elapsed().as_secs_f64() * 1e3
    };
    let (grep, alone) = (Grep::new(), Grep::with_threads(1));
    let mut rows = Vec::new();
    for (pattern, ignore_case) in PATTERNS {
        let count = json!({"pattern": pattern, "ignore_case": ignore_case, "mode": "count"});
        let page = json!({"pattern": pattern, "ignore_case": ignore_case});
        let (mut ours, mut theirs, mut one, mut pages) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(timed(&grep, &count));
            theirs.extend(ripgrep(&folder, pattern, ignore_case));
            one.push(timed(&alone, &count));
            pages.push(timed(&grep, &page));
        }
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        let has_rg = theirs.len() == ours.len();
        rows.push(json!({
            "pattern": pattern, "ours_ms": median(ours), "one_thread_ms": median(one), "page_ms": median(pages),
            "rg_ms": has_rg.then(|| median(theirs)), "ratio": has_rg.then(|| median(ratios)),
        }));
    }
    if std::env::args().any(|arg| arg == "--json") {
        println!("{}", json!({"folder": folder, "patterns": rows}));
        return;
    }
    for row in &rows {
        let of = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        let (ours, one, page) = (of("ours_ms"), of("one_thread_ms"), of("page_ms"));
        let pattern = row["pattern"].as_str().unwrap();
        print!("{pattern:28} ours {ours:8.0} ms   on one thread {one:8.0} ms   a page {page:8.0} ms   ");
        match row["ratio"].as_f64() {
            Some(ratio) => println!("rg {:8.0} ms   x {ratio:.2}", of("rg_ms")),
            None => println!("(no rg on the path)"),
        }
    }
}
