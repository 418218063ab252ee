//! Plays a trace: a model's steps and what its calls came to, through a whole session with its door.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_agent::RunEnd;
use hames_protocol::{Declaration, Delivery, Effect, Event, GuardSettings, Resource, ToolErrorClass, ToolSpec};
use hames_tools::{
    DirEntry, Expect, FileKind, FileStat, FsError, FsPath, FsProvider, Staged, Tool, ToolCx, ToolFailure, ToolOutput,
    Whole,
};
use serde_json::{Value, json};

use crate::support::{Hames, Reply, Setup, pending};

/// What came of a trace.
pub(super) struct Played {
    pub(super) hames: Hames,
    pub(super) end: RunEnd,
    /// Kinds of the nudges, in order.
    pub(super) nudges: Vec<String>,
    /// Kind of the loop that stopped the run.
    pub(super) stopped: Option<String>,
    /// Calls that were answered without running.
    pub(super) not_run: usize,
}

/// Plays a trace under these settings.
pub(super) async fn play(trace: &Value, guard: GuardSettings) -> Played {
    let steps = unrolled(&trace["steps"]);
    let stage = Stage(Arc::new(Mutex::new(Scene { steps: steps.clone(), at: 0 })));
    let fs = Arc::new(Disk::default());
    let mut setup = Setup::new(steps.iter().map(reply));
    (setup.guard, setup.fs) = (guard, fs.clone());
    setup.extra = ["Read", "Grep", "Edit", "Shell", "Fetch", "Poll", "Api", "Ask"]
        .map(|name| Arc::new(Prop::new(name, &stage, &fs)) as Arc<dyn Tool>)
        .into();
    let mut hames = setup.build().await;
    let (model, inbox) = (hames.model.clone(), hames.inbox.clone());
    {
        let (stage, fs) = (stage.clone(), fs.clone());
        model.on_send(move |number| {
            let mut scene = stage.0.lock().unwrap();
            scene.at = number;
            let step = scene.steps.get(number).cloned().unwrap_or_default();
            if step["outside"] == true {
                fs.version.fetch_add(1, Ordering::SeqCst);
            }
            if let Some(id) = step["message"].as_str() {
                inbox.push(pending(id, Delivery::Steer)).unwrap();
            }
        });
    }
    let end = hames.run("go").await;
    let kinds = |pick: fn(&Event) -> Option<String>| hames.find(pick);
    let nudges = kinds(|event| if let Event::Nudge(nudge) = event { Some(nudge.kind.clone()) } else { None });
    let stopped = kinds(|event| if let Event::LoopStopped(stop) = event { Some(stop.kind.clone()) } else { None });
    let served = hames.find(|event| match event {
        Event::ToolDone(done) => Some(done.served_from.is_some()),
        Event::ToolError(error) => Some(error.error.starts_with("[Not run again")),
        _ => None,
    });
    let not_run = served.into_iter().filter(|served| *served).count();
    Played { end, nudges, stopped: stopped.into_iter().next(), not_run, hames }
}

/// The steps, those with `repeat` as often as they say; `{n}` in their texts is the round.
pub(super) fn unrolled(steps: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    for step in steps.as_array().expect("steps are an array") {
        for round in 0..step["repeat"].as_u64().unwrap_or(1) {
            let from = step["from"].as_u64().unwrap_or(1);
            out.push(numbered(step, round + from));
        }
    }
    out
}

fn numbered(value: &Value, n: u64) -> Value {
    match value {
        Value::String(text) => json!(text.replace("{n}", &n.to_string())),
        Value::Array(items) => items.iter().map(|item| numbered(item, n)).collect(),
        Value::Object(members) if members.contains_key("lines") => value.clone(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), numbered(value, n)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// A text of a trace: a string, one many times over, numbered lines, or words that are never the same.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect(),
        Value::Object(part) => match (&part.get("times"), &part.get("to"), &part.get("filler")) {
            (Some(times), ..) => text(&part["text"]).repeat(usize::try_from(times.as_u64().unwrap()).unwrap()),
            (_, Some(to), _) => (part["from"].as_u64().unwrap_or(1)..=to.as_u64().unwrap())
                .map(|n| text(&part["lines"]).replace("{n}", &n.to_string()))
                .collect(),
            (.., Some(words)) => filler(words.as_u64().unwrap()),
            _ => panic!("no text: {value}"),
        },
        _ => panic!("no text: {value}"),
    }
}

/// Words that hardly ever stand in the same order twice, as in prose.
fn filler(words: u64) -> String {
    const BEGIN: [&str; 16] =
        ["ba", "co", "de", "fi", "gu", "ha", "je", "ka", "li", "mo", "nu", "pe", "ri", "so", "tu", "wa"];
    const END: [&str; 16] = [
        "ber", "cal", "den", "fer", "gon", "hal", "ing", "kel", "lor", "mid", "nor", "per", "ral", "sen", "tor", "ved",
    ];
    let (mut out, mut seed) = (String::new(), 12_345u64);
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 60).unwrap()
    };
    for number in 1..=words {
        out.push_str(BEGIN[next()]);
        out.push_str(END[next()]);
        out.push_str(if number % 14 == 0 { ". " } else { " " });
    }
    out
}

/// Pieces of about a token, as a model streams them.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(4).map(|piece| piece.iter().collect()).collect()
}

fn reply(step: &Value) -> Reply {
    let mut reply = Reply::new();
    for piece in pieces(&text(&step["think"])) {
        reply = reply.reasoning(&piece);
    }
    for piece in pieces(&text(&step["say"])) {
        reply = reply.then_text(&piece);
    }
    for call in step["calls"].as_array().into_iter().flatten() {
        reply = match call["arguments"].as_str() {
            Some(arguments) => reply.raw_call(call["tool"].as_str().unwrap(), &[arguments]),
            None => reply.then_call(call["tool"].as_str().unwrap(), call["input"].clone()),
        };
    }
    for piece in pieces(&text(&step["think_after"])) {
        reply = reply.reasoning(&piece);
    }
    match step["finish"].as_str() {
        Some(reason) => reply.finish(Some(reason)),
        None => reply,
    }
}

#[derive(Clone)]
struct Stage(Arc<Mutex<Scene>>);

struct Scene {
    steps: Vec<Value>,
    /// The step that is played.
    at: usize,
}

/// A disk on which every file is as old as the last change of anything.
#[derive(Default)]
pub(super) struct Disk {
    version: AtomicU64,
}

impl FsProvider for Disk {
    fn root(&self) -> &Path {
        Path::new("/w")
    }
    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        let abs = PathBuf::from("/w").join(path);
        Ok(FsPath { shown: path.to_owned(), inside: abs.starts_with("/w"), abs, identity: None })
    }
    fn stat(&self, _: &FsPath) -> Result<FileStat, FsError> {
        let modified_ns = u128::from(self.version.load(Ordering::SeqCst)) + 1;
        Ok(FileStat { kind: FileKind::File, size: 1, mode: 0o644, modified_ns })
    }
    fn open(&self, _: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        Err(FsError::Cancelled)
    }
    fn list(&self, _: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        Ok(Vec::new())
    }
    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.resolve(path)
    }
    fn stage_write(&self, _: &FsPath, _: &[u8], _: &Expect, _: Option<u32>) -> Result<Box<dyn Staged>, FsError> {
        Err(FsError::Cancelled)
    }
    fn stage_remove(&self, _: &FsPath, _: &Expect) -> Result<Box<dyn Staged>, FsError> {
        Err(FsError::Cancelled)
    }
}

/// A tool that gives what the trace says, and declares what one of its name would.
struct Prop {
    spec: ToolSpec,
    stage: Stage,
    disk: Arc<Disk>,
}

impl Prop {
    fn new(name: &str, stage: &Stage, disk: &Arc<Disk>) -> Self {
        let spec = ToolSpec { name: name.into(), description: "A tool.".into(), parameters: json!({"type": "object"}) };
        Self { spec, stage: stage.clone(), disk: disk.clone() }
    }

    fn script(&self, input: &Value) -> Value {
        let scene = self.stage.0.lock().unwrap();
        let calls = scene.steps.get(scene.at).and_then(|step| step["calls"].as_array()).cloned().unwrap_or_default();
        let is_this = |call: &&Value| call["tool"] == self.spec.name.as_str() && &call["input"] == input;
        calls.iter().find(is_this).cloned().unwrap_or_default()
    }
}

#[async_trait]
impl Tool for Prop {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn declare(&self, input: &Value) -> Declaration {
        let path = |write| vec![Resource::path(input["path"].as_str().unwrap_or("."), write)];
        let host = vec![Resource::Host { host: "example.com".into() }];
        match self.spec.name.as_str() {
            "Read" | "Grep" => Declaration { cacheable: true, ..Declaration::new(Effect::Read, path(false)) },
            "Ask" => Declaration::new(Effect::Read, path(false)),
            "Edit" => Declaration::new(Effect::Edit, path(true)),
            "Shell" => Declaration::new(Effect::Run, vec![Resource::Workspace { write: true }]),
            "Fetch" => Declaration { cacheable: true, cache_ms: Some(60_000), ..Declaration::new(Effect::Read, host) },
            "Poll" => Declaration { polling: true, ..Declaration::new(Effect::Session, vec![]) },
            _ => Declaration::new(Effect::External, vec![]),
        }
    }
    async fn run(&self, input: &Value, _: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let script = self.script(input);
        if matches!(self.spec.name.as_str(), "Edit") && script["fails"].is_null() {
            self.disk.version.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(error) = script["fails"].as_str() {
            let class = if script["timeout"] == true { ToolErrorClass::Timeout } else { ToolErrorClass::Failed };
            return Err(ToolFailure { class, text: error.into(), whole: Whole::None });
        }
        let exit_code = script["exit"].as_i64().map(|code| i32::try_from(code).unwrap());
        let exit_code = exit_code.or((self.spec.name == "Shell").then_some(0));
        Ok(ToolOutput { exit_code, ..ToolOutput::text(text(&script["gives"])) })
    }
}
