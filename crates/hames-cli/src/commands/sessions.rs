//! `hames sessions`: what is kept, shown, searched, renamed, set, moved, copied, cut, deleted, exported and imported. Reading never writes: a run that a death
//! left open stays so until somebody continues the session.

use std::collections::HashMap;
use std::path::Path;

use hames_agent::{Clock, SystemClock};
use hames_client::{Client, ClientError};
use hames_protocol::api::{CutSession, MoveSession, RenameSession, SessionActivity};
use hames_protocol::{Envelope, LogError, Mode, RunResult, SessionId};
use hames_store::{EXPORT_BLOB_BYTES, Exported, Imported, SessionInfo, Store};
use serde::Serialize;
use serde_json::json;

use crate::activity::{Activity, of_sessions};
use crate::cli::{SessionsArgs, SessionsCommand};
use crate::clock::local_minute;
use crate::engine::with_store;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::ledger::Ledgers;
use crate::output::{Out, Style, ask, clean, say};
use crate::resolve::{check_name, existing};
use crate::server::{holds, server_of};
use crate::transcript::Transcript;

/// Events read at once: a page of large results is still a few megabytes.
const PAGE: usize = 64;

pub(crate) fn run(args: SessionsArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let folder = super::folder(args.dir.as_deref())?;
    with_store(&home, |store| act(args.what, store, &home, &folder, env))
}

fn act(what: SessionsCommand, store: &Store, home: &Home, folder: &Path, env: &Env) -> Result<u8, Stop> {
    let mut out = Out::new();
    match what {
        SessionsCommand::List { all, json } => {
            let held = of_sessions(store, home)?;
            list(store, folder, all, json, &held, &mut out)?;
        }
        SessionsCommand::Show { session, json, runs } => {
            let info = existing(store, folder, &session)?;
            match (runs, json) {
                (true, json) => show_runs(store, &info, json, &mut out)?,
                (false, true) => write_log(store, &info, &mut out)?,
                (false, false) => show(store, &info, Style::for_stdout(env), &mut out)?,
            }
        }
        SessionsCommand::Search { query, all, json, limit } => {
            let hits = Search { query, all, json, limit };
            hits.print(store, folder, &mut out)?;
        }
        SessionsCommand::Rename { session, name, json } => {
            let info = existing(store, folder, &session)?;
            let name = name.trim();
            check_name(name)?;
            let rename = RenameSession { name: name.to_owned() };
            let at_server =
                at_server(store, home, &info, async |client| client.rename_session(&info.id, &rename).await)?;
            let renamed = match at_server {
                Some(_) => known(store, &info)?,
                None => store.rename(&info.id, name, SystemClock.now_ms(), "hames sessions rename")?,
            };
            if json {
                out.json(&View::of(&renamed))?;
            } else {
                out.line(format!("\"{}\" is now called \"{}\"", clean::line(&info.name), clean::line(name)))?;
            }
        }
        SessionsCommand::Set(args) => {
            let info = existing(store, folder, &args.session)?;
            super::set::set(&args, store, home, env, &info, &mut out)?;
        }
        SessionsCommand::Delete { session, yes, json } => {
            let info = existing(store, folder, &session)?;
            return delete(store, home, &info, Wish { yes, json }, out, env);
        }
        SessionsCommand::Cut { session, from, yes, json } => {
            let info = existing(store, folder, &session)?;
            return cut(store, home, &info, from, Wish { yes, json }, out, env);
        }
        SessionsCommand::Branch { session, name, at, json } => {
            let info = existing(store, folder, &session)?;
            let name = checked(name.as_deref())?;
            let (made, _lease) = store.branch(&info.id, at, name, SystemClock.now_ms(), "hames sessions branch")?;
            let said = format!("\"{}\" begins as a copy of \"{}\"", clean::line(&made.name), clean::line(&info.name));
            tell(&made, json, &said, &mut out)?;
        }
        SessionsCommand::Move { session, folder: to, json } => {
            let info = existing(store, folder, &session)?;
            let move_to = MoveSession { folder: super::folder(Some(&to))?.display().to_string() };
            let at_server =
                at_server(store, home, &info, async |client| client.move_session(&info.id, &move_to).await)?;
            let moved = match at_server {
                Some(_) => known(store, &info)?,
                None => {
                    let lease = store.lease(&info.id, "hames sessions move")?;
                    store.move_to(&lease, &to, SystemClock.now_ms())?
                }
            };
            let place = clean::line(&moved.folder);
            tell(&moved, json, &format!("\"{}\" belongs to {place} now", clean::line(&moved.name)), &mut out)?;
        }
        SessionsCommand::Import { file, name, json } => {
            let name = checked(name.as_deref())?;
            let imported = import(store, folder, &file, name)?;
            let made = &imported.session;
            let said = format!("\"{}\" was imported: {} events", clean::line(&made.name), imported.events);
            if imported.missing_outputs > 0 {
                say(&format!("hames: {} outputs did not come along and cannot be recalled", imported.missing_outputs));
            }
            tell(made, json, &said, &mut out)?;
        }
        SessionsCommand::Export { session, output, no_blobs, json: _ } => {
            let info = existing(store, folder, &session)?;
            let blob_bytes = if no_blobs { 0 } else { EXPORT_BLOB_BYTES };
            export(store, &info, output.as_deref(), blob_bytes, &mut out)?;
        }
    }
    out.finish()?;
    Ok(exit::COMPLETE)
}

/// A name somebody gives, where they give one.
fn checked(name: Option<&str>) -> Result<Option<&str>, Stop> {
    let name = name.map(str::trim);
    name.map_or(Ok(()), check_name)?;
    Ok(name)
}

/// A session that is there now, for scripts or in words.
fn tell(info: &SessionInfo, json: bool, said: &str, out: &mut Out) -> Result<(), Stop> {
    if json { out.json(&View::of(info)) } else { out.line(said) }
}

/// A session as scripts see it.
#[derive(Serialize)]
struct View<'a> {
    id: &'a str,
    name: &'a str,
    folder: &'a str,
    folder_missing: bool,
    created_at: u64,
    updated_at: u64,
    last_seq: u64,
    turns: u32,
    model: Option<&'a str>,
    mode: Option<Mode>,
    first_line: &'a str,
    /// How the last run ended; nothing before the first, and while one goes on.
    last_result: Option<RunResult>,
    /// Only in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<SessionActivity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<&'a str>,
}

impl<'a> View<'a> {
    fn of(info: &'a SessionInfo) -> Self {
        Self {
            id: info.id.as_str(),
            name: &info.name,
            folder: &info.folder,
            folder_missing: info.folder_missing,
            created_at: info.created_at,
            updated_at: info.updated_at,
            last_seq: info.last_seq,
            turns: info.turns,
            model: info.model.as_deref(),
            mode: info.mode,
            first_line: &info.first_line,
            last_result: info.last_result,
            state: None,
            held_by: None,
        }
    }

    fn listed(mut self, info: &SessionInfo, activity: Option<&'a Activity>) -> Self {
        self.state = Some(activity.map_or_else(|| at_rest(info), |activity| activity.state));
        self.held_by = activity.map(|activity| activity.holder.as_str());
        self
    }
}

/// What a session is about that nobody holds.
fn at_rest(info: &SessionInfo) -> SessionActivity {
    if info.undecided { SessionActivity::WaitingForYou } else { SessionActivity::Idle }
}

/// What a list says behind a session: what goes on in it, or what its last run left.
fn remark(info: &SessionInfo, held: Option<&Activity>) -> Option<String> {
    let goes_on = match held {
        Some(activity) => activity.text(),
        None => Activity { state: at_rest(info), holder: String::new() }.text(),
    };
    goes_on.or_else(|| Some(info.last_result?.remark()?.to_owned()))
}

fn list(
    store: &Store,
    folder: &Path,
    all: bool,
    json: bool,
    held: &HashMap<SessionId, Activity>,
    out: &mut Out,
) -> Result<(), Stop> {
    let sessions = store.list(if all { None } else { Some(folder) })?;
    if json {
        return sessions.iter().try_for_each(|info| out.json(&View::of(info).listed(info, held.get(&info.id))));
    }
    if sessions.is_empty() {
        let place = if all { String::new() } else { format!(" in {}", folder.display()) };
        return out.line(format!("no sessions{place} yet; `hames run \"…\"` begins one, `hames demo` plays one"));
    }
    let width = sessions.iter().map(|info| info.name.chars().count()).max().unwrap_or(0).min(48);
    for info in &sessions {
        let name = clean::line(&info.name);
        let runs = if info.turns == 1 { "1 run".into() } else { format!("{} runs", info.turns) };
        let mode = info.mode.map(|mode| mode.to_string()).unwrap_or_default();
        let model = info.model.as_deref().map(clean::line).unwrap_or_default();
        let gone = if info.folder_missing { " (gone)" } else { "" };
        let place = if all { format!("  {}{gone}", clean::line(&info.folder)) } else { String::new() };
        let now = remark(info, held.get(&info.id)).map(|text| format!("  [{}]", clean::line(&text)));
        let now = now.unwrap_or_default();
        let at = local_minute(info.updated_at);
        let line = format!("{name:<width$}  {at}  {runs:>8}  {mode:<7}  {model}{place}{now}");
        out.line(line.trim_end())?;
    }
    Ok(())
}

/// Reads a log page by page.
pub(crate) fn each_event(
    store: &Store,
    info: &SessionInfo,
    mut see: impl FnMut(&Envelope) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let log = store.log();
    let runtime = super::runtime()?;
    let mut after = 0;
    loop {
        let page = runtime.block_on(log.read(&info.id, after, PAGE))?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq.unwrap_or(after + page.len() as u64);
        page.iter().try_for_each(&mut see)?;
    }
}

fn show(store: &Store, info: &SessionInfo, style: Style, out: &mut Out) -> Result<(), Stop> {
    out.line(style.bold(&format!("session \"{}\"", clean::line(&info.name))))?;
    out.line(format!("{} · {} · begun {}", info.id, clean::line(&info.folder), local_minute(info.created_at)))?;
    let mut transcript = Transcript::new(style);
    each_event(store, info, |envelope| transcript.write(envelope, out))
}

fn show_runs(store: &Store, info: &SessionInfo, json: bool, out: &mut Out) -> Result<(), Stop> {
    let mut ledgers = Ledgers::default();
    let mut any = false;
    let mut print = |ledger: &crate::ledger::Ledger, out: &mut Out| {
        any = true;
        if json {
            return out.json(ledger);
        }
        ledger.lines().iter().try_for_each(|line| out.line(line))
    };
    each_event(store, info, |envelope| match ledgers.apply(envelope) {
        Some(ledger) => print(&ledger, out),
        None => Ok(()),
    })?;
    if let Some(ledger) = ledgers.finish() {
        print(&ledger, out)?;
    }
    if !any && !json {
        out.line("this session has no runs yet")?;
    }
    Ok(())
}

struct Search {
    query: String,
    all: bool,
    json: bool,
    limit: u32,
}

impl Search {
    fn print(&self, store: &Store, folder: &Path, out: &mut Out) -> Result<(), Stop> {
        if self.query.trim().is_empty() {
            return Err(Stop::usage("the search has no words; give some: hames sessions search \"failing test\""));
        }
        let place = if self.all { None } else { Some(folder) };
        let hits = store.search(&self.query, place, self.limit as usize)?;
        if hits.is_empty() && !self.json {
            let hint = if self.all { "" } else { "; --all searches every folder" };
            return out.line(format!("nothing found for \"{}\"{hint}", clean::line(&self.query)));
        }
        for hit in &hits {
            if self.json {
                out.json(&json!({
                    "session": hit.session.id.as_str(), "name": hit.session.name, "folder": hit.session.folder,
                    "seq": hit.seq, "at": hit.at, "kind": hit.kind, "snippet": hit.snippet,
                }))?;
            } else {
                out.line(format!(
                    "{}  {}  #{}  {}",
                    local_minute(hit.at),
                    clean::line(&hit.session.name),
                    hit.seq,
                    clean::line(&hit.snippet)
                ))?;
            }
        }
        Ok(())
    }
}

/// Whether to go on with what cannot be taken back; an error where nobody can be asked.
fn confirmed(yes: bool, question: &str, undone: &str, what: &str) -> Result<bool, Stop> {
    if yes {
        return Ok(true);
    }
    match ask(question) {
        Some(true) => Ok(true),
        Some(false) => {
            say(&format!("hames: {undone}"));
            Ok(false)
        }
        None => Err(Stop::usage(format!("{what} is for good; confirm with --yes"))),
    }
}

/// How something is done that cannot be undone.
struct Wish {
    /// Without asking.
    yes: bool,
    /// Printed for programs.
    json: bool,
}

/// Does it in the server, where that holds the session; `None` where nobody does, and the store is asked.
pub(super) fn at_server<T>(
    store: &Store,
    home: &Home,
    info: &SessionInfo,
    work: impl AsyncFnOnce(Client) -> Result<T, ClientError>,
) -> Result<Option<T>, Stop> {
    if !holds(store, &info.id)? {
        return Ok(None);
    }
    super::runtime()?.block_on(async {
        match server_of(store, home, &info.id).await? {
            Some(client) => Ok(Some(work(client).await?)),
            None => Ok(None),
        }
    })
}

/// The session as it is now.
fn known(store: &Store, info: &SessionInfo) -> Result<SessionInfo, Stop> {
    store.session(&info.id)?.ok_or_else(|| Stop::from(LogError::NoSession(info.id.clone())))
}

fn cut(
    store: &Store,
    home: &Home,
    info: &SessionInfo,
    from: u64,
    Wish { yes, json }: Wish,
    mut out: Out,
    env: &Env,
) -> Result<u8, Stop> {
    let name = clean::line(&info.name);
    let question = format!("remove message {from} of \"{name}\" and everything behind it for good?");
    if !confirmed(yes, &question, "nothing was removed", &format!("cutting \"{name}\""))? {
        return Ok(exit::COMPLETE);
    }
    let cut = CutSession { from_seq: from };
    let at_server = at_server(store, home, info, async |client| client.cut_session(&info.id, &cut).await)?;
    let (from_seq, seq, removed) = match at_server {
        Some(done) => (from, done.seq, done.removed),
        None => {
            let lease = store.lease(&info.id, "hames sessions cut")?;
            let done = store.cut(&lease, from, SystemClock.now_ms())?;
            (done.from_seq, done.seq, done.removed)
        }
    };
    if json {
        let id = info.id.as_str();
        out.json(&json!({"session": id, "from_seq": from_seq, "seq": seq, "removed": removed}))?;
    } else {
        out.line(format!("removed {removed} events of \"{name}\""))?;
    }
    super::db::suggest(store, env)?;
    out.finish()?;
    Ok(exit::COMPLETE)
}

fn delete(
    store: &Store,
    home: &Home,
    info: &SessionInfo,
    Wish { yes, json }: Wish,
    mut out: Out,
    env: &Env,
) -> Result<u8, Stop> {
    let name = clean::line(&info.name);
    let question = format!("delete session \"{name}\" with {} runs for good?", info.turns);
    if !confirmed(yes, &question, "nothing was deleted", &format!("deleting \"{name}\""))? {
        return Ok(exit::COMPLETE);
    }
    if at_server(store, home, info, async |client| client.delete_session(&info.id).await)?.is_none() {
        store.delete(&info.id, "hames sessions delete")?;
    }
    if json {
        out.json(&json!({"deleted": info.id.as_str(), "name": info.name}))?;
    } else {
        out.line(format!("deleted \"{name}\""))?;
    }
    super::db::suggest(store, env)?;
    out.finish()?;
    Ok(exit::COMPLETE)
}

/// Writes the log as it is. What stopped it tells by what the reader of the output did.
fn write_log(store: &Store, info: &SessionInfo, out: &mut Out) -> Result<(), Stop> {
    match store.export(&info.id, out) {
        Err(_) if out.is_closed() => Err(Stop::OutputClosed),
        written => written.map(|_| ()).map_err(Stop::from),
    }
}

fn export(
    store: &Store,
    info: &SessionInfo,
    output: Option<&Path>,
    blob_bytes: u64,
    out: &mut Out,
) -> Result<(), Stop> {
    let Some(path) = output else {
        let written = store.export_whole(&info.id, blob_bytes, out);
        return match written {
            Err(_) if out.is_closed() => Err(Stop::OutputClosed),
            Ok(exported) => {
                left_out(exported, blob_bytes);
                Ok(())
            }
            Err(error) => Err(error.into()),
        };
    };
    let cannot = |e: std::io::Error| Stop::usage(format!("{} cannot be written: {e}", path.display()));
    // Beside the target and renamed when whole: a half export is worse than none.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(parent).map_err(cannot)?;
    let mut buffered = std::io::BufWriter::new(&mut file);
    let exported = store.export_whole(&info.id, blob_bytes, &mut buffered)?;
    buffered.into_inner().map_err(|e| cannot(e.into_error()))?;
    file.persist(path).map_err(|e| cannot(e.error))?;
    left_out(exported, blob_bytes);
    say(&format!("hames: wrote {}", path.display()));
    Ok(())
}

/// Says what an export does not hold that was wanted.
fn left_out(exported: Exported, blob_bytes: u64) {
    if exported.left_out > 0 && blob_bytes > 0 {
        say(&format!("hames: {} outputs were left out: they are gone, or too large together", exported.left_out));
    }
}

fn import(store: &Store, folder: &Path, file: &Path, name: Option<&str>) -> Result<Imported, Stop> {
    let (now, holder) = (SystemClock.now_ms(), "hames sessions import");
    if file == Path::new("-") {
        return Ok(store.import(&mut std::io::stdin().lock(), folder, name, now, holder)?);
    }
    let opened = std::fs::File::open(file)
        .map_err(|e| Stop::usage(format!("{} cannot be read: {e}", clean::line(&file.display().to_string()))))?;
    Ok(store.import(&mut std::io::BufReader::new(opened), folder, name, now, holder)?)
}
