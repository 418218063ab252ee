//! `hames server`: what the local server is doing, its end, its log.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

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
use crate::server::{Note, finder, holder, last_args, starter, until_gone};

/// Bytes of the log's end that are looked at.
const TAIL_BYTES: u64 = 4 * 1024 * 1024;
/// What can be done about a server that is busy.
const STOP_HINT: &str = "\n  --now ends what runs, --when-idle waits for its end";

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

/// The server of a home, as far as this program can talk to it.
enum Running {
    Nobody,
    Found(Found),
    /// It speaks another version of the API: only its process is known, where it holds the lock.
    Foreign {
        note: Note,
        why: ClientError,
    },
}

async fn running(home: &Home) -> Result<Running, Stop> {
    match finder(home).connect().await {
        Ok(found) => Ok(Running::Found(found)),
        Err(ClientError::Unreachable { .. }) => Ok(Running::Nobody),
        Err(why @ ClientError::Incompatible { .. }) => match holder(&Place::of(home.data())) {
            Some(note) => Ok(Running::Foreign { note, why }),
            None => Err(why.into()),
        },
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
    let found = match running(home).await? {
        Running::Found(found) => found,
        Running::Nobody => {
            nobody(home, as_json, out)?;
            return Ok(exit::STOPPED);
        }
        Running::Foreign { note, why } => {
            match as_json {
                true => out.json(&json!({"running": true, "pid": note.pid, "reason": why.to_string()}))?,
                false => out.line(format!("process {}: {why}", note.pid))?,
            }
            return Ok(exit::STOPPED);
        }
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
    let (pid, refusal, hint) = match running(home).await? {
        Running::Nobody => {
            nobody(home, as_json, out)?;
            return Ok(exit::COMPLETE);
        }
        Running::Found(found) => (found.health.pid, end(home, &found, how).await?, STOP_HINT),
        Running::Foreign { note, why } => (note.pid, end_foreign(home, &note, &why, how.force).await?, ""),
    };
    match refusal {
        Some(refusal) => {
            if as_json {
                out.json(&json!({"stopped": false, "pid": pid, "reason": refusal}))?;
            } else {
                say(&format!("hames: {refusal}{hint}"));
            }
            Ok(exit::STOPPED)
        }
        None if as_json => {
            out.json(&json!({"stopped": true, "pid": pid}))?;
            Ok(exit::COMPLETE)
        }
        None => {
            out.line(format!("the server has stopped (process {pid})"))?;
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
    until_gone(home, found.health.pid, how.when_idle).await?;
    Ok(None)
}

/// Ends a server that can be asked nothing, by the signal that ends its runs first; gives the words where it stays.
async fn end_foreign(home: &Home, note: &Note, why: &ClientError, now: bool) -> Result<Option<String>, Stop> {
    if !now {
        return Ok(Some(format!("{why}. It cannot be asked whether anything runs in it, which would end too.")));
    }
    let gone = |e| Stop::storage(format!("process {} cannot be asked to end: {e}", note.pid));
    note.ask_to_end().map_err(gone)?;
    until_gone(home, note.pid, false).await?;
    Ok(None)
}

async fn restart(home: &Home, now: bool, as_json: bool, out: &mut Out) -> Result<u8, Stop> {
    let args = last_args(&Place::of(home.data()));
    let refusal = match running(home).await? {
        Running::Nobody => None,
        Running::Found(found) => {
            if !now && !as_json {
                let runs = found.client.status().await?.runs;
                if runs > 0 {
                    say(&format!("hames: waiting for {} runs to end; --now ends them", count(runs.into())));
                }
            }
            end(home, &found, &StopServer { force: now, when_idle: !now }).await?
        }
        Running::Foreign { note, why } => end_foreign(home, &note, &why, now).await?,
    };
    if let Some(refusal) = refusal {
        say(&format!("hames: {refusal}"));
        return Ok(exit::STOPPED);
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
