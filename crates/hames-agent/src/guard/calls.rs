//! What a run remembers of its calls: which are not worth making again, and what they gave.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use hames_protocol::{
    CallId, Effect, Event, GuardDials, GuardParameter, Resource, ToolCall, ToolDone, ToolError, ToolErrorClass,
};
use hames_tools::{Recall, true_effect};

use super::failures::{Failed, Failures};
use super::repeats::{Repeated, Repeats};
use super::signature::{Signature, digest};
use super::{says, streak};

/// A call that was asked for and has no answer yet.
struct Pending {
    signature: Signature,
    label: String,
    effect: Option<Effect>,
    is_polling: bool,
    is_cacheable: bool,
    lasts: Option<Duration>,
    /// It speaks to the network, whose failures pass.
    is_remote: bool,
    /// It may change what other calls read.
    changes: bool,
    role: Role,
    /// What it reads, as it looked before it ran, and when that was.
    seen: Option<(u64, Instant)>,
    /// Changes made before it was decided that it runs; `None` until then.
    generation: Option<u64>,
}

/// How a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// By running it.
    Runs,
    /// With what it gave before.
    Served,
    /// With how it failed before.
    Refused,
    /// Together with an equal call of its step.
    Shared,
}

/// A result that may be given again.
struct Known {
    done: ToolDone,
    gave: [u8; 16],
    print: u64,
    at: Instant,
    lasts: Option<Duration>,
}

/// What the calls of a step came to.
#[derive(Default)]
pub(super) struct StepCalls {
    /// One line for each failure.
    pub(super) errors: Vec<String>,
    pub(super) successes: usize,
    pub(super) did: Vec<Signature>,
    /// Calls that failed once more than they may: what they are called, and how often they failed.
    pub(super) failing: Vec<(String, usize)>,
    /// Calls that gave the same once too often, and whether they were answered from memory.
    pub(super) repeated: Vec<(String, Repeated, bool)>,
    counted: HashSet<Signature>,
}

/// The calls of a run.
pub(super) struct Calls {
    failure_repeats: usize,
    /// What calls read is looked at from the first time on.
    looks_at_once: bool,
    repeats: Repeats,
    failures: Failures,
    results: HashMap<Signature, Known>,
    pending: HashMap<CallId, Pending>,
    generation: u64,
    pub(super) step: StepCalls,
}

impl Calls {
    pub(super) fn new(dials: &GuardDials) -> Self {
        let count = |parameter| dials.count(parameter);
        let (consecutive, threshold) =
            (count(GuardParameter::ToolRepeatConsecutive), count(GuardParameter::ToolRepeatWindowThreshold));
        let window = count(GuardParameter::ToolRepeatWindow);
        Self {
            failure_repeats: count(GuardParameter::ToolFailureRepeats),
            looks_at_once: consecutive.min(threshold) <= 2,
            repeats: Repeats::new(consecutive, window, threshold),
            failures: Failures::default(),
            results: HashMap::new(),
            pending: HashMap::new(),
            generation: 0,
            step: StepCalls::default(),
        }
    }

    /// Somebody spoke: what was tried before may be right now.
    pub(super) fn forget(&mut self) {
        self.repeats.forget();
        self.failures.forget();
        self.changed();
    }

    /// A step begins.
    pub(super) fn begin_step(&mut self) {
        self.step = StepCalls::default();
        self.pending.clear();
    }

    /// A file changed.
    pub(super) fn file_changed(&mut self) {
        self.failures.forget_commands();
        self.changed();
    }

    /// Nothing that was read is vouched for any more.
    fn changed(&mut self) {
        self.generation += 1;
        self.results.clear();
    }

    /// The model asked for a call.
    pub(super) fn asked(&mut self, call: &ToolCall) {
        let declaration = call.declaration.as_ref();
        let resources = declaration.map_or(&[] as &[Resource], |declaration| &declaration.resources);
        let label = match (call.label.tool.is_empty(), call.label.target.is_empty()) {
            (true, _) => call.name.clone(),
            (false, true) => call.label.tool.clone(),
            (false, false) => format!("{} {}", call.label.tool, call.label.target),
        };
        let pending = Pending {
            signature: Signature::of(call),
            label,
            effect: declaration.map(true_effect),
            is_polling: declaration.is_some_and(|declaration| declaration.polling),
            is_cacheable: declaration.is_some_and(|declaration| declaration.cacheable),
            lasts: declaration.and_then(|declaration| declaration.cache_ms).map(Duration::from_millis),
            is_remote: resources.iter().any(|resource| matches!(resource, Resource::Host { .. })),
            changes: resources.iter().any(Resource::is_written)
                || declaration.is_some_and(|d| !matches!(d.effect, Effect::Read | Effect::Session)),
            role: Role::Runs,
            seen: None,
            generation: None,
        };
        self.pending.insert(call.call_id.clone(), pending);
    }

    /// Whether a result of this call could be given again, so that it has to be known what it reads.
    pub(super) fn wants_print(&self, id: &CallId) -> bool {
        self.pending
            .get(id)
            .is_some_and(|call| call.may_be_served() && (self.looks_at_once || self.repeats.knows(&call.signature)))
    }

    /// What is to be done with a call that may run.
    pub(super) fn consult(&mut self, asked: &ToolCall, print: Option<u64>, now: Instant) -> Recall {
        let id = &asked.call_id;
        let Some(call) = self.pending.get(id) else { return Recall::Run };
        if call.is_polling {
            if call.changes {
                self.changed();
            }
            return Recall::Run;
        }
        let signature = call.signature;
        if let Some((failed, times)) = self.failures.of(&signature)
            && times >= self.failure_repeats
        {
            let error = ToolError {
                call_id: id.clone(),
                name: name_of(asked),
                error: says::failed_before(times, &failed.text),
                class: failed.class,
                blob: None,
                duration_ms: 0,
            };
            self.set_role(id, Role::Refused);
            return Recall::Answer(Box::new(error.into()));
        }
        if call.changes {
            self.changed();
            return Recall::Run;
        }
        if call.may_be_served() {
            if let Some(first) = self.same_in_step(id, &signature) {
                self.set_role(id, Role::Shared);
                return Recall::Share(first);
            }
            if let Some(done) = self.served(asked, &signature, print, now) {
                self.set_role(id, Role::Served);
                return Recall::Answer(Box::new(done.into()));
            }
        }
        let generation = self.generation;
        if let Some(call) = self.pending.get_mut(id) {
            call.seen = print.map(|print| (print, now));
            call.generation = Some(generation);
        }
        Recall::Run
    }

    fn set_role(&mut self, id: &CallId, role: Role) {
        if let Some(call) = self.pending.get_mut(id) {
            call.role = role;
        }
    }

    /// An equal call of this step that runs, with nothing changed between the two.
    fn same_in_step(&self, id: &CallId, signature: &Signature) -> Option<CallId> {
        let is_same = |(other, call): &(&CallId, &Pending)| {
            *other != id
                && call.signature == *signature
                && call.role == Role::Runs
                && call.generation == Some(self.generation)
        };
        self.pending.iter().find(is_same).map(|(other, _)| other.clone())
    }

    fn served(&self, asked: &ToolCall, signature: &Signature, print: Option<u64>, now: Instant) -> Option<ToolDone> {
        let known = self.results.get(signature)?;
        let is_fresh = known.lasts.is_none_or(|lasts| now.duration_since(known.at) <= lasts);
        let is_loop = self.repeats.would_be_too_many(signature, Some(known.gave));
        (is_loop && is_fresh && print == Some(known.print)).then(|| ToolDone {
            call_id: asked.call_id.clone(),
            output: says::given_before(&known.done.output),
            diffs: Vec::new(),
            duration_ms: 0,
            served_from: Some(known.done.call_id.clone()),
            ..known.done.clone()
        })
    }

    /// A call gave a result.
    pub(super) fn done(&mut self, done: &ToolDone) {
        let Some(call) = self.pending.remove(&done.call_id) else { return };
        match call.role {
            Role::Shared | Role::Refused => return,
            Role::Served => {
                let gave = self.results.get(&call.signature).map(|known| known.gave);
                self.succeeded(&call, gave, true);
                return;
            }
            Role::Runs => {}
        }
        if done.exit_code.is_some_and(|code| code != 0) {
            if call.changes {
                self.changed();
            }
            self.failed(call, Failed { class: ToolErrorClass::Failed, text: done.output.clone() });
            return;
        }
        if call.changes {
            self.changed();
        }
        if call.acts() {
            self.failures.forget();
        }
        self.failures.forget_call(&call.signature);
        let gave = what_it_gave(done);
        self.succeeded(&call, Some(gave), false);
        if let Some((print, at)) = call.seen
            && call.generation == Some(self.generation)
        {
            let known = Known { done: done.clone(), gave, print, at, lasts: call.lasts };
            self.results.insert(call.signature, known);
        }
    }

    fn succeeded(&mut self, call: &Pending, gave: Option<[u8; 16]>, served: bool) {
        self.step.successes += 1;
        self.step.did.push(call.signature);
        // Equal calls of one step are one.
        if call.is_polling || !self.step.counted.insert(call.signature) {
            return;
        }
        if let Some(repeated) = self.repeats.take(call.signature, gave, call.acts()) {
            self.step.repeated.push((call.label.clone(), repeated, served));
        }
        let repeats = &self.repeats;
        self.results.retain(|signature, _| repeats.knows(signature));
    }

    /// A call gave no result.
    pub(super) fn error(&mut self, error: &ToolError) {
        let Some(call) = self.pending.remove(&error.call_id) else { return };
        if call.changes && error.duration_ms > 0 {
            self.changed();
        }
        match (call.role, error.class) {
            (Role::Shared, _) => {}
            (Role::Refused, _) => {
                let times = self.failures.of(&call.signature).map_or(0, |(_, times)| times);
                self.step.failing.push((call.label, times));
            }
            // Nobody knows how these would have ended.
            (
                _,
                ToolErrorClass::NotRun
                | ToolErrorClass::Cancelled
                | ToolErrorClass::Interrupted
                | ToolErrorClass::OutcomeUnknown,
            ) => {}
            (_, class) => self.failed(call, Failed { class, text: error.error.clone() }),
        }
    }

    fn failed(&mut self, call: Pending, failed: Failed) {
        let line = streak::line(&call.label, &failed.text);
        let counts = !call.is_polling && self.step.counted.insert(call.signature);
        if counts {
            self.repeats.take(call.signature, None, false);
        }
        // What may pass by itself is worth trying again; only the streak counts it.
        let passes =
            failed.class == ToolErrorClass::Timeout || (call.is_remote && failed.class == ToolErrorClass::Failed);
        if counts && !passes {
            let times = self.failures.take(call.signature, call.effect, failed);
            if times > self.failure_repeats {
                self.step.failing.push((call.label, times));
                return;
            }
        }
        self.step.errors.push(line);
    }
}

impl Pending {
    /// Whether it changes more than the session.
    fn acts(&self) -> bool {
        matches!(self.effect, Some(Effect::Edit | Effect::Run | Effect::External))
    }

    fn may_be_served(&self) -> bool {
        self.is_cacheable && !self.is_polling && matches!(self.effect, Some(Effect::Read | Effect::Session))
    }
}

fn name_of(call: &ToolCall) -> String {
    if call.label.tool.is_empty() { call.name.clone() } else { call.label.tool.clone() }
}

/// A result as a hash: its text, its images and how it ended.
fn what_it_gave(done: &ToolDone) -> [u8; 16] {
    let mut text = done.output.clone();
    // The name under which the whole is kept is another each time.
    if let Some(blob) = &done.blob {
        if let Some(name) = &blob.name {
            text = text.replace(name.as_str(), "");
        }
        text.push_str(&blob.hash);
    }
    for part in &done.attachments {
        if let hames_protocol::Part::Image { blob, .. } = part {
            text.push_str(&blob.hash);
        }
    }
    digest(text.as_bytes())
}

/// Takes in an event of the run that is about its calls.
pub(super) fn apply(calls: &mut Calls, event: &Event) {
    match event {
        Event::StepStart(_) => calls.begin_step(),
        Event::ToolCall(call) => calls.asked(call),
        Event::ToolDone(done) => calls.done(done),
        Event::ToolError(error) => calls.error(error),
        Event::FileChanged(_) | Event::ChangeProposed(_) => calls.file_changed(),
        Event::MessageUser(_) => calls.forget(),
        _ => {}
    }
}
