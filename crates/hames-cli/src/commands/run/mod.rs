//! `hames run`: a task in, an answer out. Everything that can be wrong is found before a session is touched.

mod join;
mod question;

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::CommandFactory;
use hames_agent::{Clock, RunControl, SystemClock};
use hames_client::{Client, Finder, Place};
use hames_protocol::api::RunAnswers;
use hames_protocol::{Delivery, ErrorClass, LogError, SessionId, Settings, ThinkingLevel};
use hames_store::{Lease, SessionInfo, Store};
use hames_tools::{Rule, Secrets};
use tokio_util::sync::CancellationToken;

use self::join::{Answers, Guest, Left};
use crate::approve::{Person, approver};
use crate::attach::{self, Attachment};
use crate::catalog::refresh::{self, Noticing};
use crate::catalog::{age, missing};
use crate::cli::{Cli, RunArgs};
use crate::config::{Approve, Chosen, Config, Masks};
use crate::engine::{Ended, Ground, Job, whole_window_for_answers, with_store};
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::logging;
use crate::output::json::{Deltas, JsonLines, print_failure};
use crate::output::printer::{Printer, Sink};
use crate::output::text::{self, Text};
use crate::output::watch::{Renderer, Screen};
use crate::output::{Style, clean, say, say_failure};
use crate::resolve::{Named, first_name, named, settings_of};
use crate::server::{finder, holds, last_args, starter};
use crate::signals::{HangUp, Signals};

/// Bytes of a prompt from standard input: far more than any window holds.
const MAX_PROMPT_BYTES: u64 = 10 * 1024 * 1024;

/// How long a failed run waits for the list that may say what was meant.
const LIST_PATIENCE: Duration = Duration::from_secs(3);

/// Runs the command and gives its exit code.
pub(crate) fn run(args: RunArgs, env: &Env) -> u8 {
    let json = args.json;
    match Request::read(args).and_then(|request| request.run(env)) {
        Ok(code) => code,
        Err(stop) => {
            if json {
                print_failure(&stop);
            }
            if let Stop::Failed(failure) = &stop {
                say_failure(failure);
            }
            stop.code()
        }
    }
}

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Text,
    Json(Deltas),
}

/// Which session is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    New,
    Last,
    Named(String),
}

/// What the command line asks for, checked as far as it can be without home and store.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) prompt: String,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) folder: PathBuf,
    pub(crate) which: Which,
    /// What the flags set.
    pub(crate) flags: Settings,
    pub(crate) shown: Shown,
    /// How it reaches a run that goes on.
    pub(crate) delivery: Delivery,
    /// What becomes of questions; the configuration says where this does not.
    pub(crate) approve: Option<Approve>,
    /// Who could answer one.
    pub(crate) person: Person,
}

impl Request {
    fn read(mut args: RunArgs) -> Result<Request, Stop> {
        let given = args.prompt.take().or_else(|| prompt_among(&mut args.attach));
        let prompt = match given.as_deref() {
            None => return Err(Stop::usage(format!("run needs a prompt\n\n{}", usage_of_run()))),
            Some("-") => from_stdin(std::io::stdin().lock())?,
            Some(text) => text.to_owned(),
        };
        let person = Person::of(args.json || given.as_deref() == Some("-"));
        if prompt.trim().is_empty() {
            return Err(Stop::usage("the prompt is empty; say what to do: hames run \"explain this project\""));
        }
        Ok(Request {
            folder: super::folder(args.dir.as_deref())?,
            attachments: attach::read_all(&args.attach)?,
            prompt,
            which: match args.session {
                Some(name) => Which::Named(name),
                None if args.continue_last => Which::Last,
                None => Which::New,
            },
            flags: args.settings.settings(),
            shown: match (args.json, args.no_deltas) {
                (false, _) => Shown::Text,
                (true, false) => Shown::Json(Deltas::Shown),
                (true, true) => Shown::Json(Deltas::LeftOut),
            },
            delivery: args.delivery.unwrap_or_default(),
            approve: args.approve,
            person,
        })
    }

    fn run(self, env: &Env) -> Result<u8, Stop> {
        let home = Home::find(env)?;
        let mut config = Config::load(&home, env)?;
        config.file.warnings.iter().for_each(|warning| say(&format!("hames: warning: {warning}")));
        if self.flags.model.is_none() && config.names_no_model() && self.begins_a_session(&home)? {
            super::look_around(&mut config)?;
        }
        self.run_with(env, &home, &config)
    }

    /// Whether a session will be made: one that exists brings its own model.
    fn begins_a_session(&self, home: &Home) -> Result<bool, Stop> {
        match &self.which {
            Which::New => Ok(true),
            Which::Last => Ok(false),
            Which::Named(_) if !home.data().join("hames.db").exists() => Ok(true),
            Which::Named(name) => {
                with_store(home, |store| Ok(matches!(named(store, &self.folder, name)?, Named::New(_))))
            }
        }
    }

    /// Runs with a configuration that is read already.
    pub(crate) fn run_with(mut self, env: &Env, home: &Home, config: &Config) -> Result<u8, Stop> {
        // A model that is missing is said before the disk is touched, unless a session may bring its own.
        if self.which == Which::New {
            config.choose(self.flags.model.as_ref(), None)?;
        }
        let rules = config.file.rules_in(&self.folder, env)?;
        let secrets = Secrets::new(config.secrets());
        self.mask(&secrets);
        logging::start(home.logs(), Masks::of(config.secrets()), env.is_on("HAMES_DEBUG"));
        let signals =
            Signals::catch(HangUp::Ends).map_err(|e| Stop::storage(format!("signals cannot be caught: {e}")))?;
        with_store(home, |store| self.run_on(Ground { env, home, config, store }, rules, &signals))
    }

    fn run_on(self, ground: Ground<'_>, rules: Vec<Rule>, signals: &Signals) -> Result<u8, Stop> {
        let shown = self.shown;
        let target = match self.target(ground.store, ground.config)? {
            Where::Here(target) => *target,
            Where::Server(info) => return self.run_at(ground, &info, signals),
        };
        let chosen = target.chosen.clone();
        self.say_odd(&chosen, ground.config);
        let closed = CancellationToken::new();
        let printer = printer(&closed)?;
        let runtime = super::runtime()?;
        let ended = runtime.block_on(async {
            let answering = CancellationToken::new();
            let refresh = refresh::beside(&chosen, ground.config, ground.env, &answering);
            let refresh = async {
                refresh.await;
                std::future::pending::<()>().await;
            };
            let run = self.job(ground, rules, &target, &printer, signals, answering.clone()).run();
            tokio::pin!(run, refresh);
            tokio::select! {
                biased;
                ended = &mut run => return ended,
                // Nobody reads any more: no failure, and the code says so (it is 0 until a signal sets another).
                () = closed.cancelled() => signals.abort.cancel(),
                () = &mut refresh => {}
            }
            run.await
        });
        let ended = ended.map_err(Stop::from).map(|Ended { end, proposals }| Left {
            exit_code: end.exit_code,
            proposals,
            failure: end.failure.map(|failure| failure.class),
        });
        let not_found = Showing { printer, closed, shown, signals }.end(ended)?;
        if not_found.model_not_found {
            runtime.block_on(say_near(&chosen, ground));
        }
        Ok(not_found.code)
    }

    /// Says what is odd about the model and what is asked of it.
    fn say_odd(&self, chosen: &Chosen, config: &Config) {
        say_missing(chosen, config);
        whole_window_for_answers(chosen, &self.flags).iter().for_each(|odd| say(&format!("hames: warning: {odd}")));
        if let Some(level) = self.flags.thinking_level.filter(|_| chosen.provider.thinking.is_none()) {
            say(&unsent(level, &chosen.provider.name, config));
        }
    }

    /// The same in the server, which holds the session.
    fn run_at(self, ground: Ground<'_>, info: &SessionInfo, signals: &Signals) -> Result<u8, Stop> {
        let shown = self.shown;
        let settings = settings_of(info).patched(&self.flags);
        // The server chooses; what is known here is only said.
        let chosen = ground.config.choose(self.flags.model.as_ref(), Some(&settings)).ok();
        chosen.iter().for_each(|chosen| self.say_odd(chosen, ground.config));
        let closed = CancellationToken::new();
        let printer = printer(&closed)?;
        let runtime = super::runtime()?;
        let ended = runtime.block_on(async {
            let args = last_args(&Place::of(ground.home.data()));
            let finder = finder(ground.home).starting(starter(&args));
            let found = finder.connect_or_start().await?;
            found.note().iter().for_each(|note| say(&format!("hames: {note}")));
            let run = self.guest(ground, info, found.client, finder, &printer, signals).run();
            tokio::pin!(run);
            tokio::select! {
                biased;
                ended = &mut run => return ended,
                () = closed.cancelled() => signals.abort.cancel(),
            }
            run.await
        });
        let end = Showing { printer, closed, shown, signals }.end(ended)?;
        if let (true, Some(chosen)) = (end.model_not_found, &chosen) {
            runtime.block_on(say_near(chosen, ground));
        }
        Ok(end.code)
    }

    /// Keys go out in headers only: also not where a person pasted or attached one.
    fn mask(&mut self, secrets: &Secrets) {
        let attached = self.attachments.iter_mut().flat_map(|attachment| match attachment {
            Attachment::Text(text) => vec![text],
            Attachment::Image { line, name, .. } => vec![line, name],
        });
        for text in attached.chain([&mut self.prompt]) {
            if let Cow::Owned(masked) = secrets.mask(text) {
                *text = masked;
            }
        }
    }

    fn job<'a>(
        self,
        ground: Ground<'a>,
        rules: Vec<Rule>,
        target: &Target,
        printer: &Printer,
        signals: &Signals,
        answering: CancellationToken,
    ) -> Job<'a> {
        let sink = printer.sink();
        let style = Style::for_stderr(ground.env);
        let approve = self.approve.unwrap_or_else(|| ground.config.approve());
        let screen = self.screen(ground.env, &target.name, &sink, signals);
        Job {
            ground,
            folder: self.folder,
            session: target.session.clone(),
            chosen: target.chosen.clone(),
            patch: target.patch.clone(),
            rules,
            approver: approver(approve, self.person, sink.clone(), style),
            prompt: self.prompt,
            attachments: self.attachments,
            watch: Arc::new(Noticing::new(Arc::new(screen), answering)),
            control: RunControl {
                abort: signals.abort.clone(),
                aborted_code: Arc::clone(&signals.code),
                ..RunControl::default()
            },
        }
    }

    /// What shows the run.
    fn screen(&self, env: &Env, session: &str, sink: &Sink, signals: &Signals) -> Screen {
        let renderer = match self.shown {
            Shown::Text => {
                let text = Text::new(sink.clone(), Style::for_stderr(env), session.to_owned());
                Renderer::Text(Box::new(text))
            }
            Shown::Json(deltas) => Renderer::Json(JsonLines::new(sink.clone(), deltas)),
        };
        Screen::new(renderer, sink.clone(), signals.abort.clone())
    }

    fn guest<'s>(
        self,
        ground: Ground<'_>,
        info: &SessionInfo,
        client: Client,
        finder: Finder,
        printer: &Printer,
        signals: &'s Signals,
    ) -> Guest<'s> {
        let sink = printer.sink();
        let watch = Arc::new(self.screen(ground.env, &info.name, &sink, signals));
        let answers = match (self.approve.unwrap_or_else(|| ground.config.approve()), self.person) {
            (Approve::Allow, _) => Answers::Terms(RunAnswers::Allow),
            (Approve::Ask, Person::Present) => {
                Answers::Person(approver(Approve::Ask, Person::Present, sink, Style::for_stderr(ground.env)))
            }
            (Approve::Ask, Person::Absent) | (Approve::Deny, _) => Answers::Terms(RunAnswers::Nobody),
        };
        Guest {
            client,
            finder,
            session: info.id.clone(),
            name: info.name.clone(),
            prompt: self.prompt,
            attachments: self.attachments,
            patch: self.flags,
            delivery: self.delivery,
            answers,
            environment: ground.env.without(&ground.config.key_vars()).into_iter().collect(),
            watch,
            signals,
        }
    }

    /// Finds or makes the session, and takes the right to write it; or says that the server has that.
    fn target(&self, store: &Store, config: &Config) -> Result<Where, Stop> {
        let holder = "hames run";
        let info = match &self.which {
            Which::New => return self.new_session(store, config, &first_name(&self.prompt), holder).map(Where::here),
            Which::Last => store.last(&self.folder)?.ok_or_else(|| {
                Stop::usage(format!(
                    "there is no session in {} to continue; leave -c out to begin one",
                    self.folder.display()
                ))
            })?,
            Which::Named(name) => match named(store, &self.folder, name)? {
                Named::Existing(info) => *info,
                Named::New(name) => return self.new_session(store, config, &name, holder).map(Where::here),
            },
        };
        let lease = match store.lease(&info.id, holder) {
            Err(LogError::Busy(_)) if holds(store, &info.id)? => return Ok(Where::Server(Box::new(info))),
            taken => taken?,
        };
        let settings = settings_of(&info);
        let chosen = config.choose(self.flags.model.as_ref(), Some(&settings.patched(&self.flags)))?;
        Ok(Where::here(Target { session: info.id, name: info.name, chosen, patch: self.flags.clone(), _lease: lease }))
    }

    fn new_session(&self, store: &Store, config: &Config, name: &str, holder: &str) -> Result<Target, Stop> {
        let chosen = config.choose(self.flags.model.as_ref(), None)?;
        // What the session is born with stays, whatever file and environment say later.
        let born = Settings {
            model: Some(chosen.info.model.clone()),
            mode: Some(self.flags.mode.unwrap_or_default()),
            ..self.flags.clone()
        };
        let (info, lease) = store.create(name, &self.folder, born, SystemClock.now_ms(), holder)?;
        Ok(Target { session: info.id, name: info.name, chosen, patch: Settings::default(), _lease: lease })
    }
}

fn printer(closed: &CancellationToken) -> Result<Printer, Stop> {
    Printer::start(closed.clone()).map_err(|e| Stop::storage(format!("the output cannot be used: {e}")))
}

/// What is left to do where a run was shown.
struct Showing<'a> {
    printer: Printer,
    /// Fired where nobody reads any more.
    closed: CancellationToken,
    shown: Shown,
    signals: &'a Signals,
}

/// How the command ends.
struct End {
    code: u8,
    /// The provider did not know the model.
    model_not_found: bool,
}

impl Showing<'_> {
    /// Waits for the output, says what is left to be said, and finds the exit code.
    fn end(self, ended: Result<Left, Stop>) -> Result<End, Stop> {
        let printed = self.printer.finish(&self.signals.abort);
        let was_closed = self.closed.is_cancelled();
        match ended {
            // The answer is lost to whoever asked for it, though the session has it: never a success.
            _ if printed.is_err() && !self.signals.came() => {
                Err(printed.map_or_else(Stop::from, |()| Stop::OutputClosed))
            }
            Err(_) if was_closed => Err(Stop::OutputClosed),
            Err(stop) => Err(stop),
            Ok(Left { exit_code, proposals, failure }) => {
                if self.shown == Shown::Text && proposals > 0 {
                    say(&proposed(proposals));
                }
                Ok(End {
                    code: u8::try_from(exit_code).unwrap_or(exit::MODEL),
                    model_not_found: failure == Some(ErrorClass::ModelNotFound),
                })
            }
        }
    }
}

/// Says that a model has gone from its provider's list. The run tries all the same: lists are not always complete.
fn say_missing(chosen: &Chosen, config: &Config) {
    let Some(missing) = missing(&chosen.provider, &chosen.info.model.id, &config.shelf) else { return };
    say(&format!(
        "hames: {} does not list {} (asked {}){}",
        chosen.provider.name,
        clean::line(&chosen.info.model.id),
        age(missing.at_ms, SystemClock.now_ms()),
        missing.hint()
    ));
}

/// After a provider did not know a model: the names it has that are near, by a list that is asked for now.
async fn say_near(chosen: &Chosen, ground: Ground<'_>) {
    // Without a list there is nothing to add to what the provider said.
    let asked = refresh::fetch_list(&chosen.provider, ground.config, ground.env);
    let _ = tokio::time::timeout(LIST_PATIENCE, asked).await;
    let missing = missing(&chosen.provider, &chosen.info.model.id, &ground.config.shelf);
    if let Some(missing) = missing.filter(|missing| !missing.near.is_empty()) {
        say(&format!("hames: {} has {}", chosen.provider.name, missing.near.join(", ")));
    }
}

/// A level that the provider has no words for.
fn unsent(level: ThinkingLevel, provider: &str, config: &Config) -> String {
    format!(
        "hames: --thinking {}: nothing is sent for it, because it is not known how {} wants it said; set \"thinking\" of \
         that provider in {} to bool, effort, reasoning or type",
        level.as_str(),
        clean::line(provider),
        clean::line(&config.file.path.display().to_string())
    )
}

/// What can be done about proposals.
fn proposed(count: usize) -> String {
    let (changes, them) = if count == 1 { ("change", "it") } else { ("changes", "them") };
    format!(
        "hames: {} proposed {changes}, nothing is modified yet\n  `hames changes show` shows {them}, `hames changes apply` \
         makes {them}, `hames changes discard` drops {them}",
        text::count(count as u64)
    )
}

/// Where a run takes place.
enum Where {
    /// In this process.
    Here(Box<Target>),
    /// In the server, which holds the session.
    Server(Box<SessionInfo>),
}

impl Where {
    fn here(target: Target) -> Where {
        Where::Here(Box::new(target))
    }
}

/// The session a run writes.
struct Target {
    session: SessionId,
    name: String,
    chosen: Chosen,
    patch: Settings,
    /// Held until the run is over.
    _lease: Lease,
}

/// `--attach a.txt b.txt "prompt"`: without a prompt of its own place, the last value that names nothing is it. The first
/// value of all is always a file.
fn prompt_among(attach: &mut Vec<PathBuf>) -> Option<String> {
    let is_prompt = |value: &PathBuf| value == Path::new("-") || !value.exists();
    let at = attach.iter().skip(1).rposition(is_prompt)? + 1;
    let prompt = attach[at].to_str()?.to_owned();
    attach.remove(at);
    Some(prompt)
}

fn from_stdin(stdin: impl Read) -> Result<String, Stop> {
    let mut bytes = Vec::new();
    stdin
        .take(MAX_PROMPT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Stop::usage(format!("standard input cannot be read: {e}")))?;
    if bytes.len() as u64 > MAX_PROMPT_BYTES {
        return Err(Stop::usage(
            "standard input has more than 10 MB; put it into a file and name the file in the prompt",
        ));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        Stop::usage(format!(
            "standard input is not UTF-8 text (byte {}); convert it, or name the file in the prompt",
            e.utf8_error().valid_up_to()
        ))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // NUL cannot be part of any message a provider takes.
    Ok(text.trim_end_matches(['\n', '\r']).replace('\0', "\u{fffd}"))
}

fn usage_of_run() -> String {
    let mut command = Cli::command();
    let run = command.find_subcommand_mut("run").map(|run| run.clone().bin_name("hames run").render_help().to_string());
    run.unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_is_text_and_bounded() {
        for (bytes, text) in [
            (&b"do it\n"[..], Some("do it")),
            (b"a\nb\r\n\n", Some("a\nb")),
            (b"\xef\xbb\xbfbom", Some("bom")),
            ("ünï".as_bytes(), Some("ünï")),
            (b"", Some("")),
            (b"a\0b", Some("a\u{fffd}b")),
            (b"\xff\xfe", None),
            (b"cut \xc3", None),
        ] {
            assert_eq!(from_stdin(bytes).ok().as_deref(), text, "{bytes:?}");
        }
        assert!(from_stdin(std::io::repeat(b'x')).is_err());
    }

    #[test]
    fn a_value_of_attach_that_names_nothing_is_the_prompt() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.txt");
        std::fs::write(&file, "x").unwrap();
        for (given, prompt, left) in [
            (vec![file.clone(), "do it".into()], Some("do it"), 1),
            (vec![file.clone(), "-".into()], Some("-"), 1),
            (vec![file.clone(), "do it".into(), file.clone()], Some("do it"), 2),
            (vec!["missing".into(), "do it".into()], Some("do it"), 1),
            (vec![file.clone(), file.clone()], None, 2),
            (vec!["missing".into()], None, 1),
            (vec![], None, 0),
        ] {
            let mut attach = given;
            assert_eq!(prompt_among(&mut attach).as_deref(), prompt);
            assert_eq!(attach.len(), left);
        }
    }
}
