//! The kit's three programs, built in a scratch copy.

use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::cargo::{must, root};

/// The built kit.
pub(crate) struct Kit {
    bin: PathBuf,
}

impl Kit {
    /// Copies the kit and builds it. The copy learns one more name for a shell tool: ours.
    pub(crate) fn build(kit: &Path) -> Result<Self> {
        let copy = root().join("target/bench-kit");
        let mut cp = Command::new("cp");
        cp.arg("-r").arg("--no-preserve=mode").arg(kit.join("bench/.")).arg(&copy);
        std::fs::create_dir_all(&copy)?;
        must(cp)?;
        let main = copy.join("src/main.rs");
        let source = std::fs::read_to_string(&main)?;
        let known = "const SHELL: &[&str] = &[";
        ensure!(source.contains(known), "the kit's list of shell tools has moved; adapt xtask/src/bench/kit.rs");
        std::fs::write(&main, source.replace(known, "const SHELL: &[&str] = &[\"Shell\", "))?;
        // The copy lies inside this workspace and must not be taken for a member of it.
        let manifest = copy.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)?;
        if !text.contains("[workspace]") {
            std::fs::write(&manifest, text + "\n[workspace]\n")?;
        }
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--release", "--quiet"]).current_dir(&copy).env("CARGO_TARGET_DIR", copy.join("target"));
        must(build)?;
        Ok(Self { bin: copy.join("target/release") })
    }

    /// One of its programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// Runs a command under `benchrun`.
    pub(crate) fn measured(&self, command: &[String], env: &[(String, String)], dir: &Path) -> Result<Value> {
        let mut run = Command::new(self.program("benchrun"));
        run.args(["--timeout", "300", "--"]).args(command).current_dir(dir);
        run.env_clear().envs(env.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        run.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let output = run.output().context("cannot start benchrun")?;
        let value: Value = serde_json::from_slice(&output.stdout).context("benchrun printed no JSON")?;
        ensure!(value["rc"] == 0, "{command:?} ended with {}", value["rc"]);
        ensure!(value["leftover"] == json!([]), "{command:?} left processes running: {}", value["leftover"]);
        Ok(value)
    }

    /// Wall milliseconds of a command.
    pub(crate) fn wall_ms(&self, command: &[String]) -> Result<f64> {
        let value = self.measured(command, &[], &root())?;
        value["wall_ms"].as_f64().context("benchrun gave no wall time")
    }

    /// CPU seconds of the commands alone, run one after the other by a shell that does nothing else.
    pub(crate) fn children_cpu_s(&self, command: &str, times: usize) -> Result<f64> {
        let quoted = command.replace('\'', "'\\''");
        let script = format!("for i in $(seq {times}); do bash -c '{quoted}' >/dev/null; done");
        let value = self.measured(&["bash".into(), "-c".into(), script], &[], &root())?;
        Ok(cpu_s(&value))
    }
}

fn cpu_s(value: &Value) -> f64 {
    value["user_s"].as_f64().unwrap_or(f64::NAN) + value["sys_s"].as_f64().unwrap_or(f64::NAN)
}

/// The running provider.
pub(crate) struct Mock {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) base: String,
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Mock {
    /// Starts it on a port the system chose.
    pub(crate) fn start(kit: &Kit) -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let child = Command::new(kit.program("mockllm"))
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start mockllm")?;
        let mock = Self { child, base: format!("http://127.0.0.1:{port}") };
        let deadline = Instant::now() + Duration::from_secs(10);
        while mock.stats().is_err() {
            ensure!(Instant::now() < deadline, "mockllm does not answer");
            std::thread::yield_now();
        }
        Ok(mock)
    }

    /// Sets the scenario.
    pub(crate) fn reset(&self, ctl: &Value) -> Result<()> {
        ureq::post(format!("{}/ctl/reset", self.base)).send(ctl.to_string())?;
        Ok(())
    }

    /// What it saw since.
    pub(crate) fn stats(&self) -> Result<Value> {
        let mut text = String::new();
        let mut response = ureq::get(format!("{}/ctl/stats", self.base)).call()?;
        response.body_mut().as_reader().read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// One measured run and what the provider saw of it.
pub(crate) struct Run {
    measured: Value,
    requests: Vec<Value>,
    /// Connections the provider accepted.
    pub(crate) connections: u64,
}

impl Run {
    /// Puts both sides together; the requests are those of the agent itself, no side errands.
    pub(crate) fn new(measured: Value, stats: &Value) -> Result<Self> {
        let requests: Vec<Value> =
            stats["recs"].as_array().into_iter().flatten().filter(|r| r["act"] != "misc").cloned().collect();
        if requests.is_empty() {
            bail!("the provider saw no request");
        }
        Ok(Self { measured, requests, connections: stats["conns"].as_u64().unwrap_or(0) })
    }

    fn at_ns(request: &Value, what: &str) -> Result<f64> {
        request[what].as_f64().with_context(|| format!("the provider gave no {what}"))
    }

    /// From exec to the head of the first request.
    pub(crate) fn start_ms(&self) -> Result<f64> {
        let t0 = self.measured["t0"].as_f64().context("benchrun gave no start time")?;
        Ok((Self::at_ns(&self.requests[0], "t")? - t0) / 1e6)
    }

    /// From one request to the next, over all steps.
    pub(crate) fn step_ms(&self, steps: usize) -> Result<f64> {
        ensure!(self.requests.len() == steps + 1, "{} requests instead of {}", self.requests.len(), steps + 1);
        let first = Self::at_ns(&self.requests[0], "t")?;
        let last = Self::at_ns(&self.requests[steps], "t")?;
        Ok((last - first) / 1e6 / steps as f64)
    }

    /// CPU seconds of the whole tree.
    pub(crate) fn cpu_s(&self) -> f64 {
        cpu_s(&self.measured)
    }

    /// Peak resident memory of the largest process.
    pub(crate) fn rss_mb(&self) -> f64 {
        self.measured["maxrss_single_mb"].as_f64().unwrap_or(f64::NAN)
    }

    /// Fails unless the last request carries every result whole.
    pub(crate) fn must_hold_results(&self, steps: usize, bytes: usize) -> Result<()> {
        let last = &self.requests[self.requests.len() - 1];
        let messages = last["msgs"].as_u64().unwrap_or(0);
        ensure!(self.requests.len() == steps + 1, "{} requests instead of {}", self.requests.len(), steps + 1);
        ensure!(messages > 2 * steps as u64, "the last request holds only {messages} messages");
        let size = last["bytes"].as_u64().unwrap_or(0);
        ensure!(size >= (steps * bytes) as u64, "the last request has only {size} bytes");
        Ok(())
    }
}
