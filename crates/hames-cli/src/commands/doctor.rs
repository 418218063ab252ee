//! `hames doctor`: one line for each thing Hames needs, and how to mend what is missing.

use std::path::Path;
use std::process::{Command, Stdio};

use hames_model::list_models;
use hames_protocol::LogError;
use hames_store::Store;

use crate::config::{Config, shown_url};
use crate::engine::endpoint;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::{Home, create_private};
use crate::output::text::count;
use crate::output::{Out, Style, clean};
use crate::sys;

/// What a check found.
enum Found {
    Good(String),
    /// Works, but somebody should know.
    Odd(String),
    Bad {
        what: String,
        remedy: String,
    },
}

pub(crate) fn run(env: &Env) -> Result<u8, Stop> {
    let style = Style::for_stdout(env);
    let mut out = Out::new();
    let mut bad = 0;
    let mut show = |name: &str, found: Found, out: &mut Out| -> Result<(), Stop> {
        match found {
            Found::Good(what) => out.line(format!("{}  {name:<9} {what}", style.green("ok  "))),
            Found::Odd(what) => out.line(format!("{}  {name:<9} {what}", style.yellow("note"))),
            Found::Bad { what, remedy } => {
                bad += 1;
                let what = what.replace('\n', "\n                ");
                out.line(format!("{}  {name:<9} {what}", style.red("FAIL")))?;
                out.line(format!("                → {remedy}"))
            }
        }
    };
    show("version", Found::Good(format!("hames {}", env!("CARGO_PKG_VERSION"))), &mut out)?;
    let home = Home::find(env)?;
    show("home", writable(&home), &mut out)?;
    for found in database(&home) {
        show("database", found, &mut out)?;
    }
    show("shell", shell(), &mut out)?;
    show("git", git(), &mut out)?;
    if sys::user_id() == 0 {
        show("user", Found::Odd("running as root: commands of the agent run as root too".into()), &mut out)?;
    }
    match Config::load(&home, env) {
        Err(stop) => show("config", of_stop(&stop, "mend the file; `hames config path` names it"), &mut out)?,
        Ok(config) => {
            let exists = if config.file.exists { "" } else { " (none; fine with a key in the environment)" };
            show("config", Found::Good(format!("{}{exists}", config.file.path.display())), &mut out)?;
            for warning in &config.file.warnings {
                show("config", Found::Odd(warning.clone()), &mut out)?;
            }
            model(&config, env, |name, found| show(name, found, &mut out))?;
        }
    }
    out.finish()?;
    Ok(if bad == 0 { exit::COMPLETE } else { exit::MODEL })
}

fn of_stop(stop: &Stop, remedy: &str) -> Found {
    let what = match stop {
        Stop::Failed(failure) => clean::block(&failure.message),
        Stop::OutputClosed => String::new(),
    };
    Found::Bad { what, remedy: remedy.into() }
}

fn writable(home: &Home) -> Found {
    let folder = home.data();
    let tried = create_private(folder).and_then(|()| tempfile::NamedTempFile::new_in(folder).map(drop));
    match tried {
        Ok(()) => Found::Good(folder.display().to_string()),
        Err(e) => Found::Bad {
            what: format!("{} cannot be written: {e}", folder.display()),
            remedy: "mend its permissions, or set HAMES_HOME to a folder of your own".into(),
        },
    }
}

/// What opening it mended, and how it is.
fn database(home: &Home) -> Vec<Found> {
    let cannot = |error: LogError| Found::Bad {
        what: error.to_string(),
        remedy: "end other hames processes; look at the folder's permissions and free space".into(),
    };
    let opened = match Store::open(home.data()) {
        Ok(opened) => opened,
        Err(error) => return vec![cannot(error)],
    };
    let found = match opened.store.check() {
        Err(error) => cannot(error),
        Ok(report) if report.integrity.is_ok() => Found::Good(format!(
            "{} sessions, {} events, {} MB",
            count(report.sessions),
            count(report.events),
            (report.database_bytes + report.blob_bytes) / 1_000_000
        )),
        Ok(report) => Found::Bad {
            what: clean::block(&report.integrity.err().unwrap_or_default()),
            remedy: "keep a copy of the folder; the next command that meets the damage saves what can be read".into(),
        },
    };
    opened.notices.into_iter().map(Found::Odd).chain([found]).collect()
}

/// The first line of what a program says of its version; `None` where it does not run.
fn version(program: &str) -> Option<String> {
    let ran = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&ran.stdout);
    ran.status.success().then(|| clean::line(text.lines().next().unwrap_or(program)))
}

fn shell() -> Found {
    match version("bash") {
        Some(version) => Found::Good(version),
        None => Found::Odd("bash does not run; commands run with /bin/sh, which models know less well".into()),
    }
}

fn git() -> Found {
    match version("git") {
        Some(version) if Path::new(".git").exists() => Found::Good(version),
        Some(version) => Found::Good(format!("{version} (this folder is no repository root)")),
        None => Found::Odd("git does not run; Hames works without it, commands of the agent cannot use it".into()),
    }
}

fn model(config: &Config, env: &Env, mut show: impl FnMut(&str, Found) -> Result<(), Stop>) -> Result<(), Stop> {
    let chosen = match config.choose(None, None) {
        Ok(chosen) => chosen,
        Err(stop) => return show("model", of_stop(&stop, "do one of these and run `hames doctor` again")),
    };
    let name = clean::line(&chosen.info.model.to_string());
    show("model", Found::Good(format!("{name}  ({})", config.origin_text(&chosen.origin))))?;
    let endpoint = endpoint(&chosen.provider, config, env);
    match super::runtime()?.block_on(list_models(&endpoint)) {
        Ok(list) if list.models.iter().any(|model| model.id == chosen.info.model.id) || list.models.is_empty() => {
            show("reachable", Found::Good(clean::line(&shown_url(&chosen.provider.base_url))))
        }
        Ok(_) => show(
            "reachable",
            Found::Odd(format!(
                "{} answers, and does not list {}; `hames models` shows what it lists",
                clean::line(&shown_url(&chosen.provider.base_url)),
                clean::line(&chosen.info.model.id)
            )),
        ),
        Err(failure) => show(
            "reachable",
            Found::Bad {
                what: clean::block(&failure.message),
                remedy: format!("check base_url and key of provider {}, and the network", chosen.provider.name),
            },
        ),
    }
}
