//! One call on its way through the door, from policy to the end of its tool.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use hames_protocol::{CallId, Declaration, Effect, Emit, Event, Failure, Resource, ToolErrorClass, ToolStart};
use serde_json::Value;
use tokio::time::Instant;

use super::ask::Asking;
use super::emit::MaskedEmit;
use super::scope::{self, Scope};
use super::{Admitted, Parts, RunCx, Stop, approve, execute};
use crate::cap::result_cap;
use crate::guard::guarded;
use crate::locks::Ticket;
use crate::policy::{Intent, Verdict, decide};
use crate::{FsProvider, HostRules, Questions, Recall, Tool, ToolCx, ToolFailure, ToolOutput, Touched, Whole};

/// Bytes of a result kept free for what the door adds to it: where the whole is kept.
const POINTER_ROOM: usize = 96;

/// What is needed to answer a call, whatever became of it.
pub(super) struct Origin {
    pub(super) call_id: CallId,
    /// The tool's name; as sent where there is no such tool.
    pub(super) name: String,
    pub(super) notes: Vec<String>,
    declared_cap: Option<u64>,
}

impl Origin {
    pub(super) fn of(call: &Admitted) -> Self {
        let name = call.known.as_ref().map_or(call.event.label.tool.as_str(), |known| known.name());
        Self {
            call_id: call.event.call_id.clone(),
            name: name.to_owned(),
            notes: call.notes.clone(),
            declared_cap: call.event.declaration.as_ref().and_then(|declaration| declaration.cap_bytes),
        }
    }

    /// One line of notes for the model; empty where there is nothing to say.
    pub(super) fn note_line(&self) -> String {
        if self.notes.is_empty() { String::new() } else { format!("\n[Note: {}.]", self.notes.join("; ")) }
    }

    /// Bytes the tool's own text may have, notes left aside.
    pub(super) fn cap(&self, parts: &Parts) -> usize {
        result_cap(parts.window_tokens, self.declared_cap).saturating_sub(self.note_line().len())
    }
}

/// A call that has come to an end.
pub(super) struct Ended {
    pub(super) result: Result<ToolOutput, ToolFailure>,
    /// From `tool.start` on; zero where it never started.
    pub(super) took: Duration,
    /// Kept until the end is recorded, so that the next call that needs the same things sees it.
    _ticket: Option<Arc<Ticket>>,
}

impl Ended {
    pub(super) fn failed(failure: ToolFailure) -> Self {
        Self { result: Err(failure), took: Duration::ZERO, _ticket: None }
    }
}

/// A tool's own fault, in words that keep the model from repeating the call.
pub(super) fn crashed(name: &str, how: &str) -> ToolFailure {
    ToolFailure::failed(format!(
        "{name} crashed ({how}). This is a fault of the tool or of Hames, not of the call; do it another way."
    ))
}

/// Why a call that has not started does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    Abort,
    Interrupt,
}

impl RunCx {
    /// Returns when nothing new may start.
    pub(super) async fn halted(&self) -> Halt {
        tokio::select! {
            biased;
            () = self.abort.cancelled() => Halt::Abort,
            () = self.interrupt.cancelled() => Halt::Interrupt,
        }
    }

    pub(super) fn check(&self) -> Result<(), ToolFailure> {
        match () {
            () if self.abort.is_cancelled() => Err(not_run(Halt::Abort)),
            () if self.interrupt.is_cancelled() => Err(not_run(Halt::Interrupt)),
            () => Ok(()),
        }
    }
}

pub(super) fn not_run(halt: Halt) -> ToolFailure {
    let text = match halt {
        Halt::Abort => "not run: the run was stopped",
        Halt::Interrupt => "not run: the user added a message",
    };
    ToolFailure { class: ToolErrorClass::NotRun, text: text.into(), whole: Whole::None }
}

/// A call with everything it needs on its way.
pub(super) struct Job {
    pub(super) parts: Arc<Parts>,
    /// The files as this call sees them.
    pub(super) fs: Arc<dyn FsProvider>,
    pub(super) cx: RunCx,
    pub(super) call: Admitted,
    origin: Origin,
    admission: Admission,
}

/// Whether a call runs.
enum Admission {
    /// It does, and this is its place in the order.
    Runs(Arc<Ticket>, Vec<Touched>),
    /// It may not.
    Not(ToolFailure),
    /// It need not: what it would give is known, or will be.
    Known(Recall),
}

impl Job {
    /// Decides what can be decided at once and takes the ticket. Called in call order; does not wait.
    pub(super) fn new(
        parts: Arc<Parts>,
        fs: Arc<dyn FsProvider>,
        cx: RunCx,
        call: Admitted,
        scope: Scope,
        print: Option<u64>,
        batch: u64,
    ) -> Self {
        let admission = Self::admission(&parts, &cx, &call, scope, print, batch).unwrap_or_else(Admission::Not);
        Self { origin: Origin::of(&call), parts, fs, cx, call, admission }
    }

    /// What the run's memory said of the call.
    pub(super) fn recalled(&self) -> Recall {
        match &self.admission {
            Admission::Known(recall) => recall.clone(),
            Admission::Runs(..) | Admission::Not(_) => Recall::Run,
        }
    }

    fn admission(
        parts: &Arc<Parts>,
        cx: &RunCx,
        call: &Admitted,
        scope: Scope,
        print: Option<u64>,
        batch: u64,
    ) -> Result<Admission, ToolFailure> {
        if let Some((class, text)) = &call.fault {
            return Err(ToolFailure { class: *class, text: text.clone(), whole: Whole::None });
        }
        let declaration = call.runnable().ok_or_else(|| ToolFailure::invalid("the call cannot be run"))?;
        let touched = scope?;
        match verdict(parts, cx, call, declaration, &touched) {
            Verdict::Allow => {}
            Verdict::Deny(why) => return Err(ToolFailure::refused(why)),
            Verdict::Ask(question) if !parts.approver.can_answer() => return Err(approve::nobody(&question.why)),
            Verdict::Ask(_) => {}
        }
        if let Some(memory) = &cx.memory {
            // Nobody counts real time in tests: the clock of the runtime is the one that can stand still.
            match memory.consult(&call.event, print, Instant::now().into_std()) {
                Recall::Run => {}
                known => return Ok(Admission::Known(known)),
            }
        }
        let claim = scope::claim(parts.fs.as_ref(), declaration, &touched, batch, parts.parallel_tools);
        Ok(Admission::Runs(Arc::new(parts.locks.enqueue(claim)), touched))
    }

    /// Takes the call to its end.
    pub(super) async fn carry_out(mut self) -> Result<Ended, Failure> {
        let admission = std::mem::replace(&mut self.admission, Admission::Not(ToolFailure::cancelled()));
        let (ticket, touched) = match admission {
            Admission::Runs(ticket, touched) => (ticket, touched),
            Admission::Not(failure) => return Ok(Ended::failed(failure)),
            // The door answers these itself.
            Admission::Known(_) => return Ok(Ended::failed(ToolFailure::cancelled())),
        };
        let mut started = None;
        let result = match self.proceed(&ticket, touched, &mut started).await {
            Ok(output) => Ok(output),
            Err(Stop::Answer(failure)) => Err(failure),
            Err(Stop::Fail(failure)) => return Err(failure),
        };
        let took = started.map_or(Duration::ZERO, |start: Instant| start.elapsed());
        Ok(Ended { result, took, _ticket: Some(ticket) })
    }

    async fn proceed(
        &self,
        ticket: &Arc<Ticket>,
        touched: Vec<Touched>,
        started: &mut Option<Instant>,
    ) -> Result<ToolOutput, Stop> {
        let (Some(tool), Some(declaration), Some(input)) =
            (self.call.tool(), self.call.runnable(), self.call.event.input.as_ref())
        else {
            return Err(ToolFailure::invalid("the call cannot be run").into());
        };
        self.wait(ticket, declaration, &touched).await?;
        let (emit, masked) = self.emit();
        let tool_cx = self.tool_cx(emit, &touched);
        let shown = approve::Shown { tool, input, declaration, touched: &touched, cx: &tool_cx };
        approve::approve(self, shown).await?;
        self.cx.check()?;
        let start = ToolStart { call_id: self.origin.call_id.clone(), name: self.origin.name.clone() };
        self.cx.emit.record(vec![Event::ToolStart(start)]).await?;
        *started = Some(Instant::now());
        let result = execute::execute(self, Running { tool, input, declaration, tool_cx, ticket }).await;
        if let Some(masked) = masked {
            masked.flush();
        }
        Ok(result?)
    }

    /// Waits for everything the call touches, and looks again at what changed meanwhile.
    async fn wait(&self, ticket: &Ticket, declaration: &Declaration, touched: &[Touched]) -> Result<(), ToolFailure> {
        tokio::select! {
            biased;
            halt = self.cx.halted() => return Err(not_run(halt)),
            granted = ticket.granted() => granted.map_err(|_| ToolFailure::failed(
                "not run: an earlier call was given up but may still be at work on the same files. Do something else \
                 first, then look at them before you try again.",
            ))?,
        }
        if ticket.had_to_wait() && !touched.is_empty() {
            let now = scope::resolve_one(&self.fs, declaration).await?;
            if let Some(moved) = scope::leads_elsewhere(touched, &now) {
                return Err(ToolFailure::failed(format!(
                    "not run: {moved}, changed by an earlier call. Call again if that is what you want."
                )));
            }
        }
        Ok(())
    }

    /// What is to be done with the call as things stand now.
    pub(super) fn verdict(&self, declaration: &Declaration, touched: &[Touched]) -> Verdict {
        verdict(&self.parts, &self.cx, &self.call, declaration, touched)
    }

    fn emit(&self) -> (Arc<dyn Emit>, Option<Arc<MaskedEmit>>) {
        if self.parts.secrets.is_empty() {
            return (self.cx.emit.clone(), None);
        }
        let masked = Arc::new(MaskedEmit::new(self.cx.emit.clone(), self.parts.secrets.clone()));
        (masked.clone(), Some(masked))
    }

    fn tool_cx(&self, emit: Arc<dyn Emit>, touched: &[Touched]) -> ToolCx {
        ToolCx {
            session: self.cx.session.clone(),
            call_id: self.origin.call_id.clone(),
            mode: self.cx.mode,
            fs: guarded(self.fs.clone(), &self.parts.rules, touched),
            shell: self.parts.shell.clone(),
            blobs: self.parts.blobs.clone(),
            emit,
            cancel: self.cx.abort.child_token(),
            cap_bytes: self.origin.cap(&self.parts).saturating_sub(POINTER_ROOM),
            state: self.cx.state.clone(),
            // Whoever comes to run with these has a grant or an approval for each of them.
            approved: touched.iter().filter(|t| !t.path.inside).map(|t| t.path.abs.clone()).collect(),
            hosts: self.host_rules(),
            pins: self.cx.pins.clone(),
            asks: Questions::new(Asking {
                parts: self.parts.clone(),
                emit: self.cx.emit.clone(),
                call_id: self.origin.call_id.clone(),
                asked: AtomicU32::new(0),
            }),
        }
    }

    /// Decides on a host that comes up while the tool runs, as if the call had named it. Nobody is asked in the middle
    /// of a call: what would have to be asked about has to be asked for by itself.
    fn host_rules(&self) -> HostRules {
        let (parts, cx) = (self.parts.clone(), self.cx.clone());
        let tool = self.origin.name.clone();
        HostRules::new(move |host| {
            let declaration = Declaration::new(Effect::Read, vec![Resource::Host { host: host.to_owned() }]);
            let intent = Intent {
                mode: cx.mode,
                previews: parts.preview.is_some(),
                tool: &tool,
                root: parts.fs.root(),
                declaration: &declaration,
                touched: &[],
            };
            match decide(&parts.rules, &parts.grants_in_force(&cx), intent) {
                Verdict::Allow => Ok(()),
                Verdict::Deny(why) => Err(why),
                Verdict::Ask(question) => Err(format!("{}. Call again with that address itself.", question.why)),
            }
        })
    }
}

/// A call whose tool is about to run.
pub(super) struct Running<'a> {
    pub(super) tool: &'a Arc<dyn Tool>,
    pub(super) input: &'a Value,
    pub(super) declaration: &'a Declaration,
    pub(super) tool_cx: ToolCx,
    pub(super) ticket: &'a Arc<Ticket>,
}

fn verdict(parts: &Parts, cx: &RunCx, call: &Admitted, declaration: &Declaration, touched: &[Touched]) -> Verdict {
    let intent = Intent {
        mode: cx.mode,
        previews: parts.preview.is_some(),
        tool: call.known.as_ref().map_or("", |known| known.name()),
        root: parts.fs.root(),
        declaration,
        touched,
    };
    decide(&parts.rules, &parts.grants_in_force(cx), intent)
}
