//! `hames server`: what the local server is doing, its end, its log.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use hames_agent::{Clock, SystemClock};
use hames_client::{ClientError, Found, Place};
use hames_protocol::api::{ApiErrorCode, ServerStatus, StopServer};
use serde_json::json;

use crate::cli::ServerCommand;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::text::{count, duration};
use crate::output::{Out, clean, say};
use crate::server::{finder, holder, last_args, starter};

/// Between two looks whether a server that is stopping is gone.
const LOOK: Duration = Duration::from_millis(20);
/// How long a server may take to end its runs and leave.
const LEAVE_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of the log's end that are looked at.
const TAIL_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) fn run(what: &ServerCommand, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let mut out = Out::new();
    let runtime = super::runtime()?;
    let code = match what {
        ServerCommand::Status { json } => runtime.block_on(status(&home, *json, &mut out))?,
        ServerCommand::Stop { now, when_idle, json } => {
            let how = StopServer { force: *now, when_idle: *when_idle };
            runtime.block_on(stop(&home, &how, *json, &mut out))?
        }
        ServerCommand::Restart { now, json } => runtime.block_on(restart(&home, *now, *json, &mut out))?,
        ServerCommand::Logs { lines, json } => logs(&home, *lines, *json, &mut out)?,
    };
    out.finish()?;
    Ok(code)
}

/// The running server; `None` where there is none.
async fn running(home: &Home) -> Result<Option<Found>, Stop> {
    match finder(home).connect().await {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::Unreachable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn nobody(home: &Home, as_json: bool, out: &mut Out) -> Result<(), Stop> {
    if as_json {
        return out.json(&json!({"running": false}));
    }
    let place = Place::of(home.data());
    let lock = place.server_lock();
    if File::open(&lock).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        let lock = clean::line(&lock.display().to_string());
        return out.line(format!("{lock} may not be read: only the user whose home it is knows whether a server runs"));
    }
    // A server that holds the lock and does not answer is still coming, or stuck.
    match holder(&place) {
        Some(note) => {
            out.line(format!("process {} is the server and does not answer; `hames server logs` may say why", note.pid))
        }
        None => out.line("no server runs; `hames serve` starts one"),
    }
}

async fn status(home: &Home, as_json: bool, out: &mut Out) -> Result<u8, Stop> {
    let Some(found) = running(home).await? else {
        nobody(home, as_json, out)?;
        return Ok(exit::STOPPED);
    };
    let status = found.client.status().await?;
    if as_json {
        let mut object = serde_json::to_value(&status).map_err(std::io::Error::from)?;
        object["running"] = true.into();
        out.json(&object)?;
    } else {
        lines(&status).into_iter().try_for_each(|line| out.line(line))?;
    }
    if let Some(note) = found.note() {
        say(&format!("hames: {note}"));
    }
    Ok(exit::COMPLETE)
}

fn lines(status: &ServerStatus) -> Vec<String> {
    let health = &status.health;
    let up = duration(SystemClock.now_ms().saturating_sub(health.started_at));
    let mut lines = vec![
        format!(
            "server    Hames {}, API {}.{}, process {}, for {up}{}",
            clean::line(&health.version),
            health.api.major,
            health.api.minor,
            health.pid,
            if status.stopping { "; it stops once nothing runs" } else { "" }
        ),
        format!("socket    {}", clean::line(&status.socket)),
    ];
    lines.extend(status.listen.as_ref().map(|address| format!("listens   http://{}", clean::line(address))));
    lines.push(format!(
        "sessions  {} open, {} running, {} waiting for you; {} clients",
        count(status.sessions.into()),
        count(status.runs.into()),
        count(status.waiting.into()),
        count(status.clients.into())
    ));
    lines.extend(status.memory_bytes.map(|bytes| format!("memory    {} MB", count(bytes / 1_000_000))));
    lines
}

/// Asks the server to stop and waits until it is gone.
async fn stop(home: &Home, how: &StopServer, as_json: bool, out: &mut Out) -> Result<u8, Stop> {
    let Some(found) = running(home).await? else {
        nobody(home, as_json, out)?;
        return Ok(exit::COMPLETE);
    };
    match end(home, &found, how).await? {
        Some(refusal) => {
            if as_json {
                out.json(&json!({"stopped": false, "pid": found.health.pid, "reason": refusal}))?;
            } else {
                say(&format!("hames: {refusal}\n  --now ends what runs, --when-idle waits for its end"));
            }
            Ok(exit::STOPPED)
        }
        None if as_json => {
            out.json(&json!({"stopped": true, "pid": found.health.pid}))?;
            Ok(exit::COMPLETE)
        }
        None => {
            out.line(format!("the server has stopped (process {})", found.health.pid))?;
            Ok(exit::COMPLETE)
        }
    }
}

/// Ends a server; gives its words where it stays.
async fn end(home: &Home, found: &Found, how: &StopServer) -> Result<Option<String>, Stop> {
    match found.client.stop_server(how).await {
        Ok(_) | Err(ClientError::Unreachable { .. } | ClientError::Lost(_)) => {}
        Err(ClientError::Refused(refusal)) if refusal.code == ApiErrorCode::Stopping => {}
        Err(ClientError::Refused(refusal)) if refusal.code == ApiErrorCode::Busy => return Ok(Some(refusal.message)),
        Err(error) => return Err(error.into()),
    }
    let place = Place::of(home.data());
    let begun = tokio::time::Instant::now();
    // Its lock goes last, so that the next one finds the way free.
    while holder(&place).is_some_and(|note| note.pid == found.health.pid) {
        if begun.elapsed() > LEAVE_LIMIT && !how.when_idle {
            return Err(Stop::storage(format!(
                "the server does not end (process {}); `kill {0}` asks it again, a second one ends it at once",
                found.health.pid
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(None)
}

async fn restart(home: &Home, now: bool, as_json: bool, out: &mut Out) -> Result<u8, Stop> {
    let args = last_args(&Place::of(home.data()));
    if let Some(found) = running(home).await? {
        if !now && !as_json {
            let runs = found.client.status().await?.runs;
            if runs > 0 {
                say(&format!("hames: waiting for {} runs to end; --now ends them", count(runs.into())));
            }
        }
        let how = StopServer { force: now, when_idle: !now };
        if let Some(refusal) = end(home, &found, &how).await? {
            say(&format!("hames: {refusal}"));
            return Ok(exit::STOPPED);
        }
    }
    let found = finder(home).starting(starter(&args)).connect_or_start().await?;
    if as_json {
        out.json(&json!({"running": true, "pid": found.health.pid, "version": found.health.version}))?;
    } else {
        out.line(format!("the server runs (process {})", found.health.pid))?;
    }
    Ok(exit::COMPLETE)
}

fn logs(home: &Home, lines: usize, as_json: bool, out: &mut Out) -> Result<u8, Stop> {
    let path = home.logs().join("hames.log");
    let text = tail(&path).map_err(|e| Stop::usage(format!("there is no log at {}: {e}", path.display())))?;
    let all: Vec<&str> = text.lines().collect();
    for line in &all[all.len().saturating_sub(lines)..] {
        if as_json {
            let mut parts = line.splitn(4, ' ');
            let mut next = || parts.next().unwrap_or_default();
            let (at, level, target, text) = (next(), next(), next(), next());
            out.json(&json!({"at": at, "level": level, "target": target, "text": text}))?;
        } else {
            out.line(clean::line(line))?;
        }
    }
    Ok(exit::COMPLETE)
}

/// The end of a file, from a line's beginning.
fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let from = size.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, rest)) if from > 0 => rest.to_owned(),
        _ => text,
    })
}
