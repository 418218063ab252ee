//! What a session is, apart from what was said: the fold of everything that lives outside the transcript.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::proposals::{self, Proposal, Settled};
use crate::{
    BlobRef, Decision, Envelope, Event, Grant, InstructionFile, Outside, Pending, PendingEdited, PendingId, Pin, RunId,
    Settings, Todo, Usage,
};

/// So many messages are known by their senders' own ids: a message that is sent again comes soon after the first time.
const SENT_KEPT: usize = 500;

/// A message that was taken in under its sender's own id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// The sender's id.
    pub idempotency_id: String,
    /// The id it waited under.
    pub pending_id: PendingId,
    /// The event that took it in.
    pub seq: u64,
}

/// Name, folder, settings, todos, pending messages and known file contents of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionState {
    /// The name.
    pub name: String,
    /// The folder, canonical.
    pub folder: String,
    /// Settings, with every change applied.
    pub settings: Settings,
    /// The todo list.
    pub todos: Vec<Todo>,
    /// What stays in the window, oldest first.
    pub pins: Vec<Pin>,
    /// Messages that wait, oldest first.
    pub pending: Vec<Pending>,
    /// Whether they stay where they are until resumed.
    pub paused: bool,
    /// Hash of each file's content as this session last read or left it, by canonical path.
    pub files: HashMap<String, String>,
    /// Ordinal of the last run, 0 before the first.
    pub turn: u32,
    /// The run that has begun and not ended.
    pub open_run: Option<RunId>,
    /// Ordinal of the last step of the last run.
    pub step: u32,
    /// Seq of the last event.
    pub seq: u64,
    /// Outputs kept as blobs so far; the next one is named `out-N` with N one higher.
    pub blobs: u32,
    /// Changes that were proposed in Analyze and neither applied nor discarded, by absolute path.
    pub proposals: BTreeMap<String, Proposal>,
    /// Folders that are missing on disk and that proposals have made, by absolute path.
    pub proposed_folders: BTreeSet<String>,
    /// The paths that are being applied: set from `changes.apply_started` to `changes.applied`.
    pub applying: Vec<String>,
    /// The run that proposed last and in which nothing else was decided about that since.
    pub proposed_in: Option<RunId>,
    /// The run that ended with open proposals nobody has decided about: applied or discarded any, kept them, or begun
    /// another run.
    pub undecided: Option<RunId>,
    /// What became of proposals since the last message: told to the model with the next one.
    pub settled: Settled,
    /// The instruction files of the last run, by their content.
    pub instructions: Vec<InstructionFile>,
    /// Windows that turned out smaller than was thought, in tokens, by model, since the session's window was last set.
    pub limits: BTreeMap<String, u64>,
    /// What a person allowed for the rest of the session.
    pub grants: Vec<Grant>,
    /// The last messages that came with an id of their senders' own, oldest first.
    pub sent: VecDeque<SentMessage>,
    /// Tokens the next request begins with: those of the last step, as its provider counted them or, where it counts
    /// nothing, as they were estimated; or what a compaction has left since, estimated. `None` before either.
    pub fill: Option<u64>,
    /// Estimated tokens of the request that is under way.
    pub asked: Option<u64>,
}

impl SessionState {
    /// Takes in one event with its envelope.
    pub fn apply(&mut self, envelope: &Envelope) {
        if let Some(seq) = envelope.seq {
            self.seq = self.seq.max(seq);
        }
        if let (Some(step), true) = (envelope.step, envelope.agent.is_empty()) {
            self.step = step;
        }
        match &envelope.event {
            Event::SessionCreated(created) => {
                self.name.clone_from(&created.name);
                self.folder.clone_from(&created.folder);
                self.settings = created.settings.clone();
            }
            Event::SessionRenamed(renamed) => self.name.clone_from(&renamed.name),
            Event::SessionMoved(moved) => self.folder.clone_from(&moved.folder),
            Event::SettingsChanged(changed) => {
                let before = self.settings.context_window;
                self.settings = self.settings.without(&changed.unset).patched(&changed.settings);
                // What a person says of the window counts until a provider says otherwise again.
                if self.settings.context_window != before {
                    self.limits.clear();
                }
            }
            Event::RunStart(start) if envelope.agent.is_empty() => {
                self.turn = envelope.turn.unwrap_or(self.turn.saturating_add(1));
                self.open_run = envelope.run.clone();
                self.instructions.clone_from(&start.instructions);
                self.step = 0;
                self.decided();
            }
            Event::RunDone(_) if envelope.agent.is_empty() => {
                self.open_run = None;
                self.undecided = self.proposed_in.take().filter(|_| self.has_proposals());
            }
            Event::ChangesKept(_) => self.decided(),
            // A child keeps a list of its own, if any; this one is the session's.
            Event::TodoUpdated(updated) if envelope.agent.is_empty() => self.todos.clone_from(&updated.todos),
            Event::PinAdded(added) if envelope.agent.is_empty() => {
                let seq = envelope.seq.unwrap_or(self.seq);
                self.pins.push(Pin { seq, target: added.target.clone(), by: added.by });
            }
            Event::PinRemoved(removed) if envelope.agent.is_empty() => self.pins.retain(|pin| pin.seq != removed.pin),
            Event::PendingAdded(pending) => {
                if let (Some(id), Some(seq)) = (&pending.idempotency_id, envelope.seq) {
                    let sent = SentMessage { idempotency_id: id.clone(), pending_id: pending.id.clone(), seq };
                    self.sent.push_back(sent);
                    self.sent.drain(..self.sent.len().saturating_sub(SENT_KEPT));
                }
                self.pending.push(pending.clone());
            }
            Event::PendingEdited(edited) => self.edit_pending(edited),
            Event::PendingPaused(pause) => self.paused = pause.paused,
            Event::PendingCancelled(cancelled) => self.pending.retain(|p| p.id != cancelled.id),
            Event::MessageUser(message) => {
                self.settled = Settled::default();
                if let Some(id) = &message.pending_id {
                    self.pending.retain(|p| &p.id != id);
                }
            }
            Event::StepStart(start) if envelope.agent.is_empty() => self.asked = start.input_estimate,
            Event::StepDone(done) if envelope.agent.is_empty() => {
                let counted = |usage: &Usage| {
                    let input = usage.input.filter(|input| *input > 0)?;
                    Some(input.saturating_add(usage.output.unwrap_or(0)))
                };
                self.fill = done.usage.as_ref().and_then(counted).or(self.asked.take()).or(self.fill);
            }
            Event::CompactionDone(done) if envelope.agent.is_empty() => self.fill = Some(done.tokens_after),
            Event::ToolDone(done) => {
                for file in &done.files {
                    self.files.insert(file.path.clone(), file.hash.clone());
                }
                self.blobs += u32::from(done.blob.is_some() && done.served_from.is_none());
            }
            Event::ToolError(error) => self.blobs += u32::from(error.blob.is_some()),
            Event::WindowMasked(masked) => masked.kept.iter().for_each(|kept| self.named(Some(&kept.blob))),
            Event::WindowRetired(retired) => self.named(retired.archive.as_ref()),
            Event::WindowCheckpoint(checkpoint) => self.named(checkpoint.archive.as_ref()),
            Event::WindowExternalised(message) => self.named(message.blob.as_ref()),
            Event::FileChanged(changed) => match &changed.after {
                Some(hash) => {
                    self.files.insert(changed.path.clone(), hash.clone());
                }
                None => {
                    self.files.remove(&changed.path);
                }
            },
            Event::ChangeProposed(change) => {
                self.proposed_in.clone_from(&envelope.run);
                proposals::propose(&mut self.proposals, &mut self.proposed_folders, change, envelope.at);
            }
            Event::WindowLimited(limited) => {
                let known = self.limits.entry(limited.model.to_string()).or_insert(limited.tokens);
                *known = limited.tokens.min(*known);
            }
            Event::ChangesApplyStarted(started) => self.applying.clone_from(&started.paths),
            Event::ChangesApplied(applied) => {
                self.applying.clear();
                self.decided();
                let settled = self.settle(&applied.paths);
                // What a run made itself, its model knows.
                if envelope.run.is_none() {
                    self.settled.applied.extend(settled);
                }
            }
            Event::ChangesDiscarded(discarded) => {
                self.decided();
                let settled = self.settle(&discarded.paths);
                self.settled.discarded.extend(settled);
            }
            Event::ApprovalAnswered(answer) if answer.decision == Decision::Session => {
                for grant in &answer.grants {
                    if !self.grants.contains(grant) {
                        self.grants.push(grant.clone());
                    }
                }
            }
            Event::SessionCut(cut) => {
                self.take_outside(cut.outside.as_deref());
                self.applying.clear();
                self.decided();
                let (applied, discarded) = (self.settle(&cut.applied), self.settle(&cut.discarded));
                self.settled.applied.extend(applied);
                self.settled.discarded.extend(discarded);
            }
            // Whatever was being applied was so in another session.
            Event::SessionBranched(branched) => {
                self.take_outside(branched.outside.as_deref());
                self.applying.clear();
                self.decided();
            }
            // What a file says of the disk, of permissions and of what is to be done is nobody's word here.
            Event::SessionImported(imported) => {
                *self = Self {
                    name: std::mem::take(&mut self.name),
                    folder: std::mem::take(&mut self.folder),
                    settings: std::mem::take(&mut self.settings),
                    todos: std::mem::take(&mut self.todos),
                    turn: self.turn,
                    open_run: self.open_run.take(),
                    step: self.step,
                    seq: self.seq,
                    blobs: self.blobs,
                    ..Self::default()
                };
                self.take_outside(imported.outside.as_deref());
            }
            _ => {}
        }
    }

    /// What of the session lives outside its transcript.
    pub fn outside(&self) -> Outside {
        Outside {
            name: self.name.clone(),
            folder: self.folder.clone(),
            settings: self.settings.clone(),
            todos: self.todos.clone(),
            pending: self.pending.clone(),
            paused: self.paused,
            grants: self.grants.clone(),
            outputs: self.blobs,
        }
    }

    fn take_outside(&mut self, outside: Option<&Outside>) {
        let Some(Outside { name, folder, settings, todos, pending, paused, grants, outputs }) = outside else { return };
        self.name.clone_from(name);
        self.folder.clone_from(folder);
        self.settings = settings.clone();
        self.todos.clone_from(todos);
        self.pending.clone_from(pending);
        self.paused = *paused;
        self.grants.clone_from(grants);
        self.blobs = self.blobs.max(*outputs);
    }

    /// An output was kept under a name of its own: the next name comes after it.
    fn named(&mut self, blob: Option<&BlobRef>) {
        let name = blob.and_then(|blob| blob.name.as_deref());
        let number = name.and_then(|name| name.strip_prefix("out-")?.parse().ok());
        self.blobs = self.blobs.max(number.unwrap_or(0));
    }

    fn edit_pending(&mut self, edited: &PendingEdited) {
        let Some(at) = self.pending.iter().position(|p| p.id == edited.pending.id) else { return };
        self.pending.remove(at);
        let before = |id: &PendingId| self.pending.iter().position(|p| &p.id == id);
        let to = if edited.last { self.pending.len() } else { edited.before.as_ref().and_then(before).unwrap_or(at) };
        self.pending.insert(to, edited.pending.clone());
    }

    /// Nobody has to decide about proposals any more.
    fn decided(&mut self) {
        (self.proposed_in, self.undecided) = (None, None);
    }

    fn settle(&mut self, paths: &[String]) -> Vec<String> {
        proposals::settle(&mut self.proposals, &mut self.proposed_folders, paths)
    }

    /// The paths of the open proposals, as a person counts them: a folder is one of its own only where nothing would be in
    /// it.
    pub fn open_changes(&self) -> impl Iterator<Item = &str> {
        let holds = |folder: &str| proposals::holds_any(&self.proposals, &self.proposed_folders, folder);
        let empty =
            self.proposed_folders.iter().filter(move |folder| !self.proposals.contains_key(*folder) && !holds(folder));
        self.proposals.keys().chain(empty).map(String::as_str)
    }

    /// Whether anything is proposed and open.
    pub fn has_proposals(&self) -> bool {
        !self.proposals.is_empty() || !self.proposed_folders.is_empty()
    }
}
