//! The limits, and the table a person reads.
#![allow(clippy::print_stdout)] // this is the table

use serde_json::{Value, json};

const FIGURES: [&str; 9] = [
    "start_ms",
    "step_ms",
    "delta_us",
    "long_cpu_s",
    "long_rss_mb",
    "hello_rss_mb",
    "rss_at_200_mb",
    "rss_at_2000_mb",
    "version_ms",
];

fn figure(rows: &[Value], name: &str, what: &str) -> Option<f64> {
    rows.iter().find(|row| row["name"] == name)?[what].as_f64()
}

/// What was measured beside what it may be.
pub(super) fn limit(what: &str, value: f64, limit: f64) -> Value {
    json!({"what": what, "value": value, "limit": limit, "ok": value <= limit})
}

/// Every limit of the contenders with what was measured.
pub(crate) fn limits(rows: &[Value], prompt: &Value, prover: &Value) -> Vec<Value> {
    let ours = |what| figure(rows, "hames", what).unwrap_or(f64::NAN);
    let floor = |what| figure(rows, "floor", what).unwrap_or(f64::NAN);
    let mut limits = vec![
        limit("start <= floor + 25 ms", ours("start_ms"), floor("start_ms") + 25.0),
        limit("step <= 2 x floor", ours("step_ms"), 2.0 * floor("step_ms")),
        limit("deltas <= 2 x floor", ours("delta_us"), 2.0 * floor("delta_us")),
        limit("200 steps CPU <= 2 x floor", ours("long_cpu_s"), 2.0 * floor("long_cpu_s")),
        limit("200 steps RSS <= 40 MB", ours("long_rss_mb"), 40.0),
        limit("hello RSS <= 30 MB", ours("hello_rss_mb"), 30.0),
        limit("RSS at step 2,000 <= at step 200 + 8 MB", ours("rss_at_2000_mb"), ours("rss_at_200_mb") + 8.0),
        limit("--version <= 8 ms", ours("version_ms"), 8.0),
        limit("fixed prompt <= 2,000 tokens", prompt["full_tokens"].as_f64().unwrap_or(f64::NAN), 2_000.0),
        limit("lean prompt <= 900 tokens", prompt["lean_tokens"].as_f64().unwrap_or(f64::NAN), 900.0),
    ];
    limits.push(limit("a usual line proven <= 100 us", prover["median_us"].as_f64().unwrap_or(f64::NAN), 100.0));
    if let Some(codex) = figure(rows, "codex", "start_ms") {
        limits.push(limit("start <= 1/12 of codex", ours("start_ms"), codex / 12.0));
    }
    limits
}

/// Prints figures and limits.
pub(crate) fn print(rows: &[Value], prompt: &Value, limits: &[Value]) {
    print!("{:<16}", "");
    rows.iter().for_each(|row| print!("{:>12}", row["name"].as_str().unwrap_or("?")));
    println!();
    for what in FIGURES {
        print!("{what:<16}");
        rows.iter().for_each(|row| match row[what].as_f64() {
            Some(value) => print!("{value:>12.2}"),
            None => print!("{:>12}", "-"),
        });
        println!();
    }
    println!("prompt          {prompt}");
    for limit in limits {
        if let Some(why) = limit["skipped"].as_str() {
            println!("--   {:<42} not measured: {why}", limit["what"].as_str().unwrap_or("?"));
            continue;
        }
        let mark = if limit["ok"] == json!(true) { "ok  " } else { "OVER" };
        let (what, value, bound) = (&limit["what"], limit["value"].as_f64(), limit["limit"].as_f64());
        println!(
            "{mark} {:<42} {:>9.2} (limit {:.2})",
            what.as_str().unwrap_or("?"),
            value.unwrap_or(f64::NAN),
            bound.unwrap_or(f64::NAN)
        );
    }
}
