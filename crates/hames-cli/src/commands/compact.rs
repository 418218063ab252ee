//! `hames compact` and `hames context`: a session's window, made smaller by hand and looked at.
//!
//! Looking writes nothing, also where a run was cut by a death. Compacting and pinning take the session's lease, or are
//! done by the local server where that has it.

use std::path::PathBuf;
use std::sync::Arc;

use hames_agent::{Agent, Nobody, Ports, RunControl, Session, SystemClock, Watch};
use hames_client::{Client, ClientError};
use hames_protocol::api::{Abort, AddPin, SessionCompacted};
use hames_protocol::{
    ErrorClass, Failure, NobodyAnswers, PinTarget, PinnedBy, Projection, Settings, WindowPreview, WindowReport,
};
use hames_store::SessionInfo;
use hames_tools::LockTable;
use serde_json::json;

use super::sessions::at_server;
use crate::cli::{CompactArgs, ContextArgs};
use crate::config::{Config, Masks};
use crate::engine::{Ground, Setup, in_force, with_store};
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::logging;
use crate::output::text::count;
use crate::output::{Out, clean};
use crate::resolve::{existing, settings_of};
use crate::signals::{HangUp, Signals};

/// `hames compact`.
pub(crate) fn compact(args: &CompactArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let config = Config::load(&home, env)?;
    let folder = super::folder(args.dir.as_deref())?;
    let signals = Signals::catch(HangUp::Ends).map_err(|e| Stop::storage(format!("signals cannot be caught: {e}")))?;
    logging::start(home.logs(), Masks::of(config.secrets()), env.is_on("HAMES_DEBUG"));
    with_store(&home, |store| {
        let ground = Ground { env, home: &home, config: &config, store };
        let info = existing(store, &folder, &args.session)?;
        let mut out = Out::new();
        let runtime = super::runtime()?;
        let draft = args.window.settings();
        if args.dry_run {
            let preview = runtime.block_on(preview(ground, &info, &draft))?;
            show_preview(&preview, &info, args.json, &mut out)?;
            out.finish()?;
            return Ok(exit::COMPLETE);
        }
        if draft != Settings::default() {
            return Err(Stop::usage(
                "the flags of the window say what a dry run assumes; `hames sessions set` sets them, then compact without",
            ));
        }
        let control = RunControl { abort: signals.abort.clone(), ..RunControl::default() };
        let done = match at_server(store, &home, &info, async |client| in_server(&client, &info, &control).await)? {
            Some(done) => Ok(done),
            None => {
                let _lease = store.lease(&info.id, "hames compact")?;
                runtime.block_on(by_hand(ground, &info, &control))
            }
        };
        if signals.came() {
            return Ok(u8::try_from(signals.code.load(std::sync::atomic::Ordering::SeqCst)).unwrap_or(exit::MODEL));
        }
        let done = done?;
        if args.json {
            let mut told = json!(done);
            told["session"] = info.id.as_str().into();
            out.json(&told)?;
        } else {
            let name = clean::line(&info.name);
            out.line(match (done.tokens_before, done.tokens_after) {
                (Some(before), Some(after)) => {
                    format!("\"{name}\" is compacted: about {} tokens instead of {}", count(after), count(before))
                }
                _ => format!("nothing would be gained in \"{name}\""),
            })?;
        }
        out.finish()?;
        Ok(exit::COMPLETE)
    })
}

/// `hames context`.
pub(crate) fn context(args: &ContextArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let config = Config::load(&home, env)?;
    let folder = super::folder(args.dir.as_deref())?;
    with_store(&home, |store| {
        let ground = Ground { env, home: &home, config: &config, store };
        let info = existing(store, &folder, &args.session)?;
        if let Some(pinning) = pinning(args) {
            let there = at_server(store, &home, &info, async |client| pin_in_server(&client, &info, &pinning).await)?;
            if there.is_none() {
                let _lease = store.lease(&info.id, "hames context")?;
                super::runtime()?.block_on(pin(ground, &info, pinning))?;
            }
        }
        let report = super::runtime()?.block_on(async {
            let (session, mut agent) = looked_at(ground, &info, &Settings::default()).await?;
            Ok::<_, Failure>(session.report(&mut agent))
        })?;
        let mut out = Out::new();
        match args.json {
            true => out.json(&report)?,
            false => show_report(&report, &info, &mut out)?,
        }
        out.finish()?;
        Ok(exit::COMPLETE)
    })
}

/// What a person changes about pins.
enum Pinning {
    Add(PinTarget),
    Remove(u64),
}

fn pinning(args: &ContextArgs) -> Option<Pinning> {
    let text = args.pin.clone().map(|text| Pinning::Add(PinTarget::Text { text }));
    let event = args.pin_event.map(|seq| Pinning::Add(PinTarget::Message { seq }));
    text.or(event).or(args.unpin.map(Pinning::Remove))
}

async fn pin_in_server(client: &Client, info: &SessionInfo, pinning: &Pinning) -> Result<(), ClientError> {
    match pinning {
        Pinning::Add(target) => client.add_pin(&info.id, &AddPin { target: target.clone() }).await.map(|_| ()),
        Pinning::Remove(pin) => client.remove_pin(&info.id, *pin).await,
    }
}

async fn pin(ground: Ground<'_>, info: &SessionInfo, pinning: Pinning) -> Result<(), Failure> {
    let ports = Ports { log: ground.store.log(), clock: Arc::new(SystemClock) };
    let session = Session::resume(ports, info.id.clone()).await?;
    let watch = Arc::new(Nobody) as Arc<dyn Watch>;
    match pinning {
        Pinning::Add(target) => {
            let mut agent = agent(ground, info, &session, &Settings::default())?;
            session.take_up(&mut agent).await;
            session.pin(&mut agent, target, PinnedBy::User, watch).await.map(|_| ())
        }
        Pinning::Remove(pin) if session.unpin(pin, watch).await? => Ok(()),
        Pinning::Remove(pin) => {
            let pins: Vec<String> = session.window().pins.iter().map(|pin| pin.seq.to_string()).collect();
            let known =
                if pins.is_empty() { "nothing is pinned".to_owned() } else { format!("there are {}", pins.join(", ")) };
            Err(Failure::new(ErrorClass::Usage, format!("There is no pin {pin}; {known}.")))
        }
    }
}

/// In the server, which has the session. A signal stops it there.
async fn in_server(client: &Client, info: &SessionInfo, control: &RunControl) -> Result<SessionCompacted, ClientError> {
    let compacting = client.compact(&info.id);
    tokio::pin!(compacting);
    tokio::select! {
        done = &mut compacting => done,
        () = control.abort.cancelled() => {
            client.abort(&info.id, &Abort::default()).await?;
            compacting.await
        }
    }
}

async fn by_hand(ground: Ground<'_>, info: &SessionInfo, control: &RunControl) -> Result<SessionCompacted, Failure> {
    let ports = Ports { log: ground.store.log(), clock: Arc::new(SystemClock) };
    let mut session = Session::resume(ports, info.id.clone()).await?;
    let mut agent = agent(ground, info, &session, &Settings::default())?;
    let done = session.compact(&mut agent, control, Arc::new(Nobody) as Arc<dyn Watch>).await?;
    Ok(done.into())
}

async fn preview(ground: Ground<'_>, info: &SessionInfo, draft: &Settings) -> Result<WindowPreview, Failure> {
    let (session, mut agent) = looked_at(ground, info, draft).await?;
    Ok(session.preview_compaction(&mut agent))
}

/// The session as its log has it, and the agent its next run would have if its settings were changed so.
async fn looked_at(ground: Ground<'_>, info: &SessionInfo, draft: &Settings) -> Result<(Session, Agent), Failure> {
    let ports = Ports { log: ground.store.log(), clock: Arc::new(SystemClock) };
    let session = Session::look(ports, info.id.clone()).await?;
    let mut agent = agent(ground, info, &session, draft)?;
    session.take_up(&mut agent).await;
    Ok((session, agent))
}

fn agent(ground: Ground<'_>, info: &SessionInfo, session: &Session, draft: &Settings) -> Result<Agent, Failure> {
    let folder = PathBuf::from(&info.folder);
    let own = session.state().settings.patched(draft);
    let known = settings_of(info).patched(&own);
    let chosen = ground.config.choose(None, Some(&known)).map_err(failure)?;
    let setup = Setup {
        ground,
        folder: &folder,
        session: &info.id,
        chosen: &chosen,
        rules: Vec::new(),
        approver: Arc::new(NobodyAnswers),
        commands: ground.env,
        locks: Arc::new(LockTable::default()),
    };
    let settings = in_force(&chosen, &own);
    Ok(setup.make(&settings)?.agent)
}

fn failure(stop: Stop) -> Failure {
    match stop {
        Stop::Failed(failure) => *failure,
        Stop::OutputClosed => Failure::new(ErrorClass::Internal, "the output is closed"),
    }
}

fn show_preview(preview: &WindowPreview, info: &SessionInfo, as_json: bool, out: &mut Out) -> Result<(), Stop> {
    if as_json {
        return out.json(&json!({ "session": info.id.as_str(), "plan": preview }));
    }
    out.line(format!(
        "\"{}\" has about {} tokens in its window; it would be compacted by itself at {}",
        clean::line(&info.name),
        count(preview.fill),
        count(preview.trigger)
    ))?;
    let what = match preview.stage.as_str() {
        "mask" => "old results would be sent as one line each",
        "retire" => "old results would be sent as one line each, and finished calls left out",
        "summary" => "a model would write a document of what leaves",
        "rolled" => "a list of what was said and done would stand for what leaves",
        _ => return out.line("  nothing would be gained now"),
    };
    let plural = if preview.leaving == 1 { "" } else { "s" };
    out.line(format!("  {what}; {} message{plural} would leave", count(preview.leaving)))?;
    out.line(format!(
        "  about {} tokens would be left, {} of them verbatim; nothing is changed yet",
        count(preview.after),
        count(preview.kept)
    ))
}

fn show_report(report: &WindowReport, info: &SessionInfo, out: &mut Out) -> Result<(), Stop> {
    let budget = &report.budget;
    out.line(format!(
        "\"{}\": about {} of {} usable tokens, {} of them tools and system text; compacted at {} to keep {} ({})",
        clean::line(&info.name),
        count(budget.fill),
        count(budget.usable),
        count(budget.head),
        count(budget.trigger),
        count(budget.landing),
        clean::line(&report.strategy)
    ))?;
    let sums = [
        ("sent", &report.sent),
        ("sent as one line", &report.masked),
        ("finished calls left out", &report.retired),
        ("before the window", &report.archived),
    ];
    for (what, sum) in sums {
        if sum.items > 0 {
            let (items, tokens) = (count(sum.items), count(sum.tokens));
            out.line(format!("  {what:<24} {items:>7} items {tokens:>11} tokens {:>12} bytes", count(sum.bytes)))?;
        }
    }
    if let Some(opening) = &report.opening {
        out.line(format!(
            "  the window opens with a document of {} tokens; {} items above it are kept in the session{}",
            count(opening.document_tokens),
            count(opening.items_above),
            match opening.archives.last() {
                Some(archive) => format!(" (the newest text: {})", clean::line(archive)),
                None => String::new(),
            }
        ))?;
        if !opening.deferred.is_empty() {
            let told: Vec<String> =
                opening.deferred.iter().map(|span| format!("{} to {}", span.from_seq, span.to_seq)).collect();
            out.line(format!("  too much to be read for it, and not in it: events {}", told.join(", ")))?;
        }
    }
    for pin in &report.pins {
        let label = report.items.iter().find(|item| item.event == pin.item).map_or("", |item| item.label.as_str());
        let by = if pin.by == PinnedBy::Model { " by the model" } else { "" };
        let cut = if pin.projection == Projection::Stub { ", cut short" } else { "" };
        out.line(format!("  pin {}{by}{cut}: {}", pin.pin, clean::line(label)))?;
    }
    if let Some(request) = &report.request {
        let changed = match request.changed_at {
            // Each run has a connection of its own, which compares what it sends with what it sent itself.
            None if report.requests.requests > 1 => "the first of its run".to_owned(),
            None => "nothing was sent before it".to_owned(),
            Some(at) => {
                let why = request.changed_by.map_or(request.changed_why.as_str(), |changed| changed.as_str());
                format!("new from byte {} on ({})", count(at), clean::line(why))
            }
        };
        out.line(format!("  last request: {} bytes, {changed}", count(request.bytes)))?;
    }
    let sent = &report.requests;
    out.line(format!(
        "  {} requests with {} bytes, {} of them new to any cache",
        count(sent.requests),
        count(sent.bytes),
        count(sent.uncached_bytes)
    ))?;
    if !sent.breaks.is_empty() {
        let breaks: Vec<String> = sent.breaks.iter().map(|(why, n)| format!("{why} {}", count(*n))).collect();
        out.line(format!("  what was sent before changed by: {}", clean::line(&breaks.join(", "))))?;
    }
    out.line(format!("  {}", report.repairs.line()))
}
