//! `hames doctor`: one line for each thing Hames needs, and how to mend what is missing.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hames_agent::{Clock, SystemClock};
use hames_client::Place;
use hames_model::ModelList;
use hames_model::catalog::Catalog;
use hames_protocol::{ErrorClass, Failure, LogError};
use hames_store::Store;
use serde_json::json;

use super::checks::{Check, State};
use super::providers::is_open_to_others;
use crate::catalog::refresh::fetch_list;
use crate::catalog::{Source, age, missing};
use crate::config::{Chosen, Config, ModelsDev, Origin, Provider, shown_url};
use crate::engine::learned;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::{Home, create_private};
use crate::output::text::{count, failure_lines};
use crate::output::{Out, Style, clean};
use crate::server::{finder, holder};
use crate::sys;

/// Bytes that are written to see whether the disk takes them: what a step of a run may need at once.
const PROBE_BYTES: usize = 256 * 1024;
/// Free bytes below which a run may not end well.
const SCARCE_BYTES: u64 = 50 * 1024 * 1024;
/// Free bytes below which somebody should know.
const LITTLE_BYTES: u64 = 1024 * 1024 * 1024;
/// How long a provider is waited for. All are asked at once.
const PROVIDER_PATIENCE: Duration = Duration::from_secs(5);
/// Columns below which diffs and questions read badly.
const NARROW: usize = 60;

pub(crate) fn run(as_json: bool, env: &Env) -> Result<u8, Stop> {
    let style = Style::for_stdout(env);
    let mut out = Out::new();
    let mut all = Vec::new();
    let mut show = |checks: Vec<Check>| -> Result<(), Stop> {
        for check in checks {
            if !as_json {
                check.print(style, &mut out)?;
            }
            all.push(check);
        }
        Ok(())
    };
    show(vec![Check::good("version", format!("hames {}", env!("CARGO_PKG_VERSION")))])?;
    let home = Home::find(env)?;
    let writable = writable(&home);
    let is_writable = writable.state != State::Bad;
    show(vec![writable, disk(&home)])?;
    if is_writable {
        show(database(&home))?;
    }
    show(vec![server(&home)?])?;
    show(vec![shell(), git(), terminal(env)])?;
    if sys::user_id() == 0 {
        show(vec![Check::odd("user", "running as root: commands of the agent run as root too")])?;
    }
    match Config::load(&home, env) {
        Err(stop) => show(vec![of_stop("config", &stop, "mend the file; `hames config path` names it")])?,
        Ok(mut config) => {
            show(configuration(&config))?;
            show(models(&mut config, env)?)?;
            show(vec![catalog(&config), lessons(&home)])?;
        }
    }
    let ok = all.iter().all(|check| check.state != State::Bad);
    if as_json {
        out.json(&json!({"ok": ok, "checks": all.iter().map(Check::json).collect::<Vec<_>>()}))?;
    }
    out.finish()?;
    Ok(if ok { exit::COMPLETE } else { exit::MODEL })
}

fn of_stop(name: &'static str, stop: &Stop, remedy: &str) -> Check {
    let what = match stop {
        Stop::Failed(failure) => failure.message.clone(),
        Stop::OutputClosed => String::new(),
    };
    Check::bad(name, what, remedy)
}

/// Whether the home takes what is written to it: a full disk makes files, and only fails to fill them.
fn writable(home: &Home) -> Check {
    let folder = home.data();
    let probe = || {
        create_private(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut file, &vec![0x5a; PROBE_BYTES])?;
        file.as_file().sync_all()
    };
    match probe() {
        Ok(()) => Check::good("home", folder.display().to_string()),
        Err(e) => {
            let remedy = match e.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    "free some space there, or set HAMES_HOME to a folder on another disk"
                }
                _ => "mend its permissions, or set HAMES_HOME to a folder of your own",
            };
            Check::bad("home", format!("{} cannot be written: {e}", folder.display()), remedy)
        }
    }
}

fn disk(home: &Home) -> Check {
    const REMEDY: &str = "free some space there, or set HAMES_HOME to a folder on another disk";
    let existing = home.data().ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let stat = match rustix::fs::statvfs(existing) {
        Ok(stat) => stat,
        Err(e) => return Check::odd("disk", format!("its free space cannot be seen: {e}")),
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let what = format!("{} free", bytes(free));
    // Some file systems count no files at all.
    if stat.f_files > 0 && stat.f_favail == 0 {
        return Check::bad("disk", format!("{what}, and no file more can be made"), REMEDY);
    }
    match free {
        0..SCARCE_BYTES => Check::bad("disk", format!("only {what}"), REMEDY),
        SCARCE_BYTES..LITTLE_BYTES => Check::odd("disk", format!("only {what}")).with_remedy(REMEDY),
        _ => Check::good("disk", what),
    }
}

/// `1 model`, `1,234 models`.
fn several(n: u64, what: &str) -> String {
    let end = if n == 1 { "" } else { "s" };
    format!("{} {what}{end}", count(n))
}

fn bytes(n: u64) -> String {
    match n {
        0..1_000_000 => format!("{} kB", n / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", n / 1_000_000),
        _ => format!("{} GB", count(n / 1_000_000_000)),
    }
}

/// What opening it mended, how it is, and who writes to it now.
fn database(home: &Home) -> Vec<Check> {
    let cannot = |error: LogError| {
        Check::bad(
            "database",
            error.to_string(),
            "end other hames processes; look at the folder's permissions and free space",
        )
    };
    let opened = match Store::open(home.data()) {
        Ok(opened) => opened,
        Err(error) => return vec![cannot(error)],
    };
    let found = match opened.store.check() {
        Err(error) => cannot(error),
        Ok(report) if report.integrity.is_ok() => Check::good(
            "database",
            format!(
                "{}, {}, {}",
                several(report.sessions, "session"),
                several(report.events, "event"),
                bytes(report.database_bytes + report.blob_bytes)
            ),
        ),
        Ok(report) => Check::bad(
            "database",
            report.integrity.err().unwrap_or_default(),
            "keep a copy of the folder; the next command that meets the damage saves what can be read",
        ),
    };
    let locks = match opened.store.in_use() {
        Err(error) => Check::odd("locks", error.to_string()),
        Ok(used) if used.is_empty() => Check::good("locks", "no session is in use"),
        Ok(used) => {
            let each = used.iter().map(|held| format!("{} by {} (process {})", held.session, held.holder, held.pid));
            Check::good("locks", format!("in use: {}", each.collect::<Vec<_>>().join(", ")))
        }
    };
    opened.notices.into_iter().map(|notice| Check::odd("database", notice)).chain([found, locks]).collect()
}

/// Whether the local server runs, can be trusted, and is of this version.
fn server(home: &Home) -> Result<Check, Stop> {
    let place = Place::of(home.data());
    let existing = std::iter::once(place.server_lock()).chain(place.sockets());
    let existing = existing.filter(|file| file.parent().is_some_and(Path::exists));
    if let Some(error) = existing.filter_map(|file| place.prepare(&file).err()).next() {
        return Ok(Check::bad(
            "server",
            error.to_string(),
            "until then no server starts; `hames run` works without one",
        ));
    }
    let Some(note) = holder(&place) else {
        let left = place.sockets().into_iter().find(|socket| socket.exists());
        return Ok(match left {
            Some(socket) => Check::odd(
                "server",
                format!("none runs; a dead one left {}, which the next replaces", socket.display()),
            ),
            None => Check::good("server", "none runs; `hames serve` starts one"),
        });
    };
    let found = super::runtime()?.block_on(finder(home).connect());
    Ok(match found {
        Ok(found) if found.health.version == env!("CARGO_PKG_VERSION") => {
            Check::good("server", format!("process {} at {}", found.health.pid, found.client.place()))
        }
        Ok(found) => Check::odd(
            "server",
            format!(
                "process {} is Hames {}, this is {}",
                found.health.pid,
                found.health.version,
                env!("CARGO_PKG_VERSION")
            ),
        )
        .with_remedy("`hames server restart` starts this version once no run goes on"),
        Err(error) => Check::bad(
            "server",
            format!("process {} holds the server's lock, and {error}", note.pid),
            format!("`hames server logs` may say why; `kill {}` ends it, and the next client starts another", note.pid),
        ),
    })
}

/// The first line of what a program says of its version; `None` where it does not run.
fn version(program: &str) -> Option<String> {
    let ran = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&ran.stdout);
    ran.status.success().then(|| clean::line(text.lines().next().unwrap_or(program)))
}

fn shell() -> Check {
    match version("bash") {
        Some(version) => Check::good("shell", version),
        None => Check::odd("shell", "bash does not run; commands run with /bin/sh, which models know less well")
            .with_remedy("install bash"),
    }
}

fn git() -> Check {
    match version("git") {
        Some(version) if Path::new(".git").exists() => Check::good("git", version),
        Some(version) => Check::good("git", format!("{version} (this folder is no repository root)")),
        None => Check::odd("git", "git does not run; Hames works without it, commands of the agent cannot use it")
            .with_remedy("install git"),
    }
}

/// What is known of the terminal: whether a question can be asked, and what text it shows.
fn terminal(env: &Env) -> Check {
    let at_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !at_terminal {
        return Check::good("terminal", "none: what would be asked is refused here");
    }
    let term = env.get("TERM").unwrap_or("not named");
    let columns = sys::columns(std::io::stderr().as_fd());
    let width = columns.map(|columns| format!(", {columns} columns")).unwrap_or_default();
    let colour = if env.get("NO_COLOR").is_some() || term == "dumb" { ", no colours" } else { "" };
    let what = format!("{}{width}{colour}", clean::line(term));
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env.get(name)).unwrap_or("");
    let plain = locale.to_ascii_lowercase().replace('-', "");
    if !plain.contains("utf8") && !locale.is_empty() {
        let remedy = "set LANG to a UTF-8 locale, such as C.UTF-8";
        return Check::odd(
            "terminal",
            format!("{what}; the locale {} may not show every character", clean::line(locale)),
        )
        .with_remedy(remedy);
    }
    match columns {
        Some(columns) if columns < NARROW => {
            Check::odd("terminal", format!("{what}; diffs read better in a wider one"))
        }
        _ => Check::good("terminal", what),
    }
}

/// The file, its odd keys, and who may read the keys in it.
fn configuration(config: &Config) -> Vec<Check> {
    let exists = if config.file.exists { "" } else { " (none; fine with a key in the environment)" };
    let path = config.file.path.display();
    let mut checks = vec![Check::good("config", format!("{path}{exists}"))];
    checks.extend(config.file.warnings.iter().map(|warning| Check::odd("config", warning.clone())));
    let has_key = |provider: &Provider| {
        provider.key.as_ref().is_some_and(|key| matches!(key.origin, Origin::File(_))) || !provider.headers.is_empty()
    };
    if config.providers.iter().any(has_key) && is_open_to_others(&config.file.path) {
        checks.push(
            Check::odd("config", "it holds keys, and others on this machine can read it")
                .with_remedy(format!("chmod 600 {path}")),
        );
    }
    checks
}

/// The model in force, then every provider; all are asked at the same time.
fn models(config: &mut Config, env: &Env) -> Result<Vec<Check>, Stop> {
    let runtime = super::runtime()?;
    if config.names_no_model() {
        runtime.block_on(config.look_around());
    }
    let chosen = config.choose(None, None);
    let answers = runtime.block_on(async {
        let asked = config.providers.iter().map(|provider| async {
            let listed = tokio::time::timeout(PROVIDER_PATIENCE, fetch_list(provider, config, env)).await;
            listed.unwrap_or_else(|_| Err(silent()))
        });
        futures_util::future::join_all(asked).await
    });
    let mut checks = vec![match &chosen {
        Ok(chosen) => model(chosen, config),
        Err(stop) => of_stop("model", stop, "do one of these and run `hames doctor` again"),
    }];
    checks.extend(chosen.iter().map(window));
    let default = chosen.as_ref().ok().map(|chosen| chosen.provider.name.as_str());
    for (provider, answer) in config.providers.iter().zip(&answers) {
        checks.push(reached(provider, answer, default == Some(provider.name.as_str())));
    }
    Ok(checks)
}

fn silent() -> Failure {
    Failure::new(ErrorClass::Timeout, format!("nothing came within {} s", PROVIDER_PATIENCE.as_secs()))
}

fn model(chosen: &Chosen, config: &Config) -> Check {
    let name = clean::line(&chosen.info.model.to_string());
    let what = format!("{name}  ({})", config.origin_text(&chosen.origin));
    match missing(&chosen.provider, &chosen.info.model.id, &config.shelf) {
        Some(missing) => {
            Check::odd("model", format!("{what}; {} does not list it{}", chosen.provider.name, missing.hint()))
                .with_remedy("`hames models` shows what it lists")
        }
        None => Check::good("model", what),
    }
}

fn window(chosen: &Chosen) -> Check {
    let now = SystemClock.now_ms();
    let (window, output) = (&chosen.described.window, &chosen.described.max_output);
    let check = Check::good(
        "window",
        format!(
            "{} tokens ({}); answers up to {} ({})",
            count(window.value),
            window.source.text(now),
            count(output.value),
            output.source.text(now)
        ),
    );
    // A longer prompt than the server has room for may be cut there without a word.
    match window.source {
        Source::Trained { .. } => Check { state: State::Odd, ..check }
            .with_remedy("load the model once and run this again, or set its context_window in the configuration"),
        _ => check,
    }
}

/// Whether a provider can be used. One that is not needed now is only worth a note.
fn reached(provider: &Provider, answer: &Result<ModelList, Failure>, is_default: bool) -> Check {
    let name = clean::line(&provider.name);
    let bad = |what: String, remedy: String| match is_default {
        true => Check::bad("provider", what, remedy),
        false => Check::odd("provider", what).with_remedy(remedy),
    };
    let test = format!("`hames providers test {name}` looks closer");
    if let Some(var) = &provider.missing_key_var {
        return bad(format!("{name}: ${var}, which should hold its key, is not set"), format!("export {var}"));
    }
    if provider.base_url.is_empty() {
        return bad(format!("{name} has no base_url"), format!("hames providers edit {name} --url URL"));
    }
    let url = clean::line(&shown_url(&provider.base_url));
    match answer {
        Ok(list) => {
            Check::good("provider", format!("{name} at {url} lists {}", several(list.models.len() as u64, "model")))
        }
        // Some have no list at all; whether they answer shows when they are asked.
        Err(failure) if failure.status == Some(404) => {
            Check::odd("provider", format!("{name} at {url} answers, and has no model list")).with_remedy(test)
        }
        Err(failure) => {
            let words = failure_lines(failure).join("\n");
            bad(format!("{name} at {url}: {}", words.trim_start_matches("hames: ")), test)
        }
    }
}

/// What is known of models without asking their providers.
fn catalog(config: &Config) -> Check {
    let now = SystemClock.now_ms();
    let public = match (&config.file.catalog.models_dev, config.shelf.public()) {
        (ModelsDev::Off, _) => "models.dev off".to_owned(),
        (_, Some(kept)) => format!("models.dev {}", age(kept.at_ms, now)),
        (_, None) => "models.dev not needed so far".to_owned(),
    };
    Check::good("catalog", format!("built in, of {}; {public}", Catalog::embedded().stamp()))
}

/// What refusals of providers have taught.
fn lessons(home: &Home) -> Check {
    match learned(home).all().len() {
        0 => Check::good("lessons", "no provider has refused a parameter so far"),
        n => Check::good(
            "lessons",
            format!("of {n} models: parameters they refused are left out ({})", home.learned().display()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!((several(1, "model"), several(1_234, "model")), ("1 model".into(), "1,234 models".into()));
        for (n, text) in [(0, "0 kB"), (999_999, "999 kB"), (52_428_800, "52 MB"), (7_600_000_000_000, "7,600 GB")] {
            assert_eq!(bytes(n), text);
        }
    }
}
