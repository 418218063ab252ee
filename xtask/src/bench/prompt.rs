//! The fixed part of a request, in cl100k tokens, counted from the requests that were really sent.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::contender::Contender;
use super::kit::Mock;
use crate::cargo::root;

/// Tokens of tools and system text, with the full set of tools and with the lean one.
pub(crate) fn measure(hames: &Contender, mock: &Mock, scratch: &Path) -> Result<Value> {
    let home = scratch.join("home/config.jsonc");
    let config = fs::read_to_string(&home)?;
    let full = captured(hames, mock, scratch)?;
    fs::write(&home, config.replace("2000000", "8000"))?;
    let lean = captured(hames, mock, scratch);
    fs::write(&home, config)?;
    let lean = lean?;
    ensure!(lean.1 == 4, "the lean set has {} tools", lean.1);
    Ok(json!({"full_tokens": full.0, "full_tools": full.1, "lean_tokens": lean.0, "lean_tools": lean.1}))
}

fn captured(hames: &Contender, mock: &Mock, scratch: &Path) -> Result<(usize, usize)> {
    let dump = scratch.join("dump");
    mock.reset(&json!({"scenario": "hello", "dump": dump.display().to_string()}))?;
    let status = std::process::Command::new(root().join("target/release/hames"))
        .args(["run", "--json", "--mode", "build", "go"])
        .current_dir(scratch)
        .envs(hames.env().iter().map(|(k, v)| (k.as_str(), v.as_str())))
        .stdout(std::process::Stdio::null())
        .status()?;
    ensure!(status.success(), "hames ended with {status}");
    let body: Value =
        serde_json::from_slice(&fs::read(dump.with_extension("0.json")).context("no request was captured")?)?;
    let tools = body["tools"].as_array().map_or(0, Vec::len);
    let system = body["messages"][0]["content"].as_str().context("the first message is no system text")?;
    Ok((count(&format!("{}{}", body["tools"], system))?, tools))
}

#[cfg(feature = "tokens")]
fn count(text: &str) -> Result<usize> {
    Ok(tiktoken_rs::cl100k_base()?.encode_ordinary(text).len())
}

#[cfg(not(feature = "tokens"))]
fn count(_text: &str) -> Result<usize> {
    anyhow::bail!("xtask was built without the feature `tokens`")
}
