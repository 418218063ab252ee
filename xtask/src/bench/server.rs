//! What the local server costs: at rest, at an attach, and while it passes a stream on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hames_client::{Client, Finder, News, Place};
use hames_protocol::SessionId;
use serde_json::{Value, json};

use super::contender::Contender;
use super::kit::{Kit, Mock};
use super::median;
use super::table::limit;

/// How long a server that nobody uses is watched.
const REST: Duration = Duration::from_secs(10);
const ATTACHES: usize = 25;
/// 500 deltas a second, for eight seconds.
const DELTAS: usize = 4_000;
const DELTA_US: u64 = 2_000;

/// A process, as the kernel counts it.
pub(super) struct Process(pub(super) u32);

impl Process {
    /// CPU seconds so far.
    pub(super) fn cpu_s(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok());
        // User and system time, in hundredths of a second on every Linux.
        Ok((ticks(11).context("no user time")? + ticks(12).context("no system time")?) / 100.0)
    }

    pub(super) fn rss_mb(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    /// How often any of its threads went to sleep or was made to.
    pub(super) fn switches(&self) -> Result<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.0))? {
            let status = fs::read_to_string(task?.path().join("status"))?;
            let counts = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
            sum += counts.filter_map(|(_, n)| n.trim().parse::<u64>().ok()).sum::<u64>();
        }
        Ok(sum)
    }

    /// Nanoseconds that its threads had a processor.
    pub(super) fn cpu_ns(&self) -> Result<u64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0))?;
        // A thread may end meanwhile.
        Ok(tasks.flatten().map(|task| thread_ns(&task.path()).unwrap_or(0)).sum())
    }

    /// The same of its first thread alone.
    pub(super) fn main_cpu_ns(&self) -> Result<u64> {
        thread_ns(Path::new(&format!("/proc/{0}/task/{0}", self.0))).context("the process has ended")
    }
}

fn thread_ns(task: &Path) -> Option<u64> {
    let stat = fs::read_to_string(task.join("schedstat")).ok()?;
    stat.split(' ').next()?.parse().ok()
}

/// A server of the contender's home, ended when it is dropped.
pub(super) struct Server<'c> {
    hames: &'c Contender,
    process: Process,
}

impl<'c> Server<'c> {
    pub(super) fn start(hames: &'c Contender) -> Result<Server<'c>> {
        ensure!(command(hames, &["serve"]).status()?.success(), "the server does not start");
        let output = command(hames, &["server", "status", "--json"]).stdout(Stdio::piped()).output()?;
        let status: Value = serde_json::from_slice(&output.stdout).context("the server does not say how it is")?;
        let pid = status["health"]["pid"].as_u64().context("the server has no process")?;
        Ok(Server { hames, process: Process(u32::try_from(pid)?) })
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // One that has died already needs no stop.
        let _ = command(self.hames, &["server", "stop", "--now"]).status();
    }
}

/// The contender's program with other arguments.
pub(super) fn command(hames: &Contender, args: &[&str]) -> Command {
    let mut command = Command::new(hames.program());
    command.args(args).current_dir(hames.folder()).env_clear().envs(hames.env().iter().map(|(k, v)| (k, v)));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Measures the server of the contender's home.
pub(super) fn measure(floor: &Contender, hames: &Contender, kit: &Kit, mock: &Mock) -> Result<Value> {
    eprintln!("== server");
    mock.reset(&json!({"scenario": "hello"}))?;
    ensure!(command(hames, &["run", "-s", "served", "go"]).status()?.success(), "no session can be made");
    let server = Server::start(hames)?;
    std::thread::sleep(Duration::from_secs(1));
    let before = server.process.switches()?;
    std::thread::sleep(REST);
    let wakeups = server.process.switches()? - before;
    let idle_rss_mb = server.process.rss_mb()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (client, session) = runtime.block_on(find(hames.home()))?;
    let attach = (0..ATTACHES).map(|_| runtime.block_on(attach_ms(hames.home(), &session))).collect::<Result<_>>()?;
    let attached_rss_mb = server.process.rss_mb()?;
    let paced = json!({"scenario": "tokens", "n": DELTAS, "delay_us": DELTA_US, "tool": "any"});
    let hello = floor.run(kit, mock, &json!({"scenario": "hello"}))?.cpu_s();
    let floor_cpu = floor.run(kit, mock, &paced)?.cpu_s() - hello;
    // The server holds the session now, so the command goes through it: its CPU and the server's are what it costs.
    runtime.block_on(hold(&client, &session))?;
    mock.reset(&paced)?;
    let before = server.process.cpu_s()?;
    let args = ["run", "-s", "served", "--json", "go"].map(str::to_owned);
    let run = [vec![hames.program().display().to_string()], args.to_vec()].concat();
    let measured = kit.measured(&run, hames.env(), hames.folder())?;
    let own = measured["user_s"].as_f64().unwrap_or(f64::NAN) + measured["sys_s"].as_f64().unwrap_or(f64::NAN);
    let served_cpu = server.process.cpu_s()? - before + own;
    Ok(json!({
        "idle_rss_mb": idle_rss_mb,
        "attached_rss_mb": attached_rss_mb,
        "idle_wakeups": wakeups,
        "attach_ms": median(attach),
        "paced_floor_cpu_s": floor_cpu,
        "paced_cpu_s": served_cpu,
        "rss_after_mb": server.process.rss_mb()?,
    }))
}

/// What a server may cost.
pub(super) fn limits(figures: &Value) -> Vec<Value> {
    let of = |what: &str| figures[what].as_f64().unwrap_or(f64::NAN);
    vec![
        limit("idle server RSS <= 25 MB", of("idle_rss_mb"), 25.0),
        limit("the same after attaches <= 25 MB", of("attached_rss_mb"), 25.0),
        limit("idle server, wake-ups in 10 s <= 0", of("idle_wakeups"), 0.0),
        limit("attach and first event <= 30 ms", of("attach_ms"), 30.0),
        limit("500 deltas/s end to end <= 2.5 x floor", of("paced_cpu_s"), 2.5 * of("paced_floor_cpu_s")),
    ]
}

fn finder(home: &Path) -> Finder {
    Finder::new(Place::of(home))
}

async fn find(home: PathBuf) -> Result<(Client, SessionId)> {
    let client = finder(&home).connect().await?.client;
    let sessions = client.sessions(None).await?.sessions;
    let session = sessions.into_iter().find(|row| row.name == "served").context("the session is not listed")?;
    Ok((client, session.id))
}

/// From nothing to the session's first event, finding the server included.
async fn attach_ms(home: PathBuf, session: &SessionId) -> Result<f64> {
    let begun = Instant::now();
    let mut news = finder(&home).connect().await?.client.events(session, 0);
    loop {
        match news.next().await {
            Some(News::Event(_)) => return Ok(begun.elapsed().as_secs_f64() * 1e3),
            Some(News::Connected) => {}
            other => bail!("no event came: {other:?}"),
        }
    }
}

async fn hold(client: &Client, session: &SessionId) -> Result<()> {
    let mut news = client.events(session, 0);
    while !matches!(news.next().await, Some(News::Event(_))) {}
    Ok(())
}
