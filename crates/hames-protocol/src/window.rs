//! What became of the window: the fold of every decision about it. The request and whoever shows the conversation read
//! the same one, so they cannot disagree about where the window begins.

use std::collections::{BTreeMap, HashMap};

use crate::{
    BlobRef, CallId, CheckpointKind, CompactionDone, Envelope, Event, PinTarget, PinnedBy, RetireScope, SeqSpan,
    StepStart, WindowCheckpoint,
};

mod measure;
mod repairs;
mod report;

pub use measure::Measure;
pub use repairs::{RepairCount, Repairs};
pub use report::{
    ItemKind, ItemState, Projection, ReportBudget, ReportItem, ReportOpening, ReportPin, ReportRequest, ReportSent,
    ReportSum, WindowPreview, WindowReport,
};

/// Archives whose names are kept; the window names the newest of them.
const ARCHIVES: usize = 8;

/// Decisions between two requests that are named as causes.
const CAUSES: usize = 16;

/// Something that stays in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The event that added it: its name.
    pub seq: u64,
    /// What.
    pub target: PinTarget,
    /// By whom.
    pub by: PinnedBy,
}

impl Pin {
    /// The event of the item that is pinned: a text of its own stands in the conversation at the pin's own event.
    pub fn item(&self) -> u64 {
        match self.target {
            PinTarget::Message { seq } => seq,
            PinTarget::Text { .. } => self.seq,
        }
    }
}

/// A message of which only the beginning and the end are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Externalised {
    /// The whole, for Recall.
    pub blob: Option<BlobRef>,
    /// Bytes of text sent of its beginning.
    pub head_bytes: u64,
    /// Bytes of text sent of its end.
    pub tail_bytes: u64,
    /// Whether its images are left out too.
    pub without_images: bool,
}

/// Why the bytes of a request changed before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Break {
    /// Results became stubs.
    Masked,
    /// Exchanges or turns left.
    Retired,
    /// The window begins anew.
    Checkpoint,
    /// A message is sent in part.
    Externalised,
    /// A newer nudge replaced one of its kind.
    Nudge,
    /// What is pinned changed, behind a checkpoint.
    Pin,
    /// There was no room for the oldest images: they go by themselves, without an event.
    Images,
    /// Tools or system text.
    Head,
    /// None of these.
    Other,
}

/// One decision, as the break that it causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What kind.
    pub what: Break,
    /// The event.
    pub seq: u64,
}

/// The last request that was prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRequest {
    /// Its `step.start`.
    pub seq: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// The first byte that differs from the request before.
    pub changed_at: Option<u64>,
    /// Why, as its event says it: `first`, `appended`, `item`, `images`, `head`.
    pub changed_why: String,
    /// The decisions since the request before, oldest first: what the change comes from.
    pub causes: Vec<Cause>,
}

impl LastRequest {
    /// What changed it before its end, where something did.
    pub fn changed_by(&self) -> Option<Break> {
        let decided = self.causes.first().map(|cause| cause.what);
        match self.changed_why.as_str() {
            "item" => Some(decided.unwrap_or(Break::Other)),
            "images" => Some(decided.unwrap_or(Break::Images)),
            "head" => Some(Break::Head),
            _ => None,
        }
    }
}

/// Bytes sent since the beginning, and how many of them no cache could have held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests.
    pub requests: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes behind the first that differed, of all of them.
    pub uncached: u64,
    /// Requests whose bytes changed before their end, by what it came from.
    pub breaks: BTreeMap<&'static str, u64>,
}

/// The window's decisions, folded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowState {
    /// Calls whose results are stubs, and where the whole is where it was kept for that.
    pub masked: HashMap<CallId, Option<BlobRef>>,
    /// Exchanges up to this event left the window.
    pub retired_up_to: u64,
    /// Everything up to this event left the window.
    pub archived_up_to: u64,
    /// The document the window opens with, and what goes with it.
    pub checkpoint: Option<WindowCheckpoint>,
    /// Its event.
    pub checkpoint_seq: u64,
    /// The texts of what left, oldest first: the newest few.
    pub archives: Vec<BlobRef>,
    /// The stretches that left, one for each checkpoint, oldest first: the last event of each, and the name of its text
    /// where it was kept.
    pub archived: Vec<(u64, Option<String>)>,
    /// The same of exchanges that left while their turns stay.
    pub retired: Vec<(u64, Option<String>)>,
    /// Messages sent in part, by their event.
    pub externalised: BTreeMap<u64, Externalised>,
    /// What stays, oldest first.
    pub pins: Vec<Pin>,
    /// The newest nudge of each kind.
    pub nudges: HashMap<String, u64>,
    /// What no document tells of.
    pub deferred: Vec<SeqSpan>,
    /// A compaction that ended without a gain: estimated tokens it left.
    pub fruitless: Option<u64>,
    /// The last compaction, whether or not it gained anything.
    pub last_compaction: Option<CompactionDone>,
    /// How far estimates were from what providers counted.
    pub measure: Measure,
    /// How often what was done.
    pub repairs: Repairs,
    /// The last request.
    pub last_request: Option<LastRequest>,
    /// What was sent in all.
    pub sent: Sent,
    /// Grows with every decision: whoever holds a projection looks at this to know whether it still holds.
    pub revision: u64,
    causes: Vec<Cause>,
}

impl WindowState {
    /// Takes in one event with its envelope. Events of children count in [`repairs`](Self::repairs) and nowhere else.
    pub fn apply(&mut self, envelope: &Envelope) {
        let seq = envelope.seq.unwrap_or(0);
        self.repairs.apply(&envelope.event, envelope.agent.is_empty());
        if envelope.agent.is_empty() {
            self.measure.apply(&envelope.event);
            self.take(seq, &envelope.event);
        }
    }

    fn take(&mut self, seq: u64, event: &Event) {
        match event {
            Event::WindowMasked(masked) => {
                self.masked.extend(masked.calls.iter().map(|call| (call.clone(), None)));
                for kept in &masked.kept {
                    self.masked.insert(kept.call_id.clone(), Some(kept.blob.clone()));
                }
                self.decided(Break::Masked, seq);
            }
            Event::WindowRetired(retired) => {
                match retired.scope {
                    RetireScope::Exchanges => {
                        self.retired_up_to = self.retired_up_to.max(retired.up_to_seq);
                        let name = retired.archive.as_ref().and_then(|archive| archive.name.clone());
                        self.retired.push((retired.up_to_seq, name));
                    }
                    RetireScope::Turns => self.archived_up_to = self.archived_up_to.max(retired.up_to_seq),
                }
                self.decided(Break::Retired, seq);
            }
            Event::WindowCheckpoint(checkpoint) => self.begin_anew(seq, checkpoint),
            Event::WindowExternalised(message) => {
                let kept = self.externalised.get(&message.seq).and_then(|before| before.blob.clone());
                let now = Externalised {
                    blob: message.blob.clone().or(kept),
                    head_bytes: message.head_bytes,
                    tail_bytes: message.tail_bytes,
                    without_images: message.without_images,
                };
                self.externalised.insert(message.seq, now);
                self.decided(Break::Externalised, seq);
            }
            Event::PinAdded(added) => {
                self.pins.push(Pin { seq, target: added.target.clone(), by: added.by });
                self.decided(Break::Pin, seq);
            }
            Event::PinRemoved(removed) => {
                self.pins.retain(|pin| pin.seq != removed.pin);
                self.decided(Break::Pin, seq);
            }
            Event::Nudge(nudge) => {
                let older = self.nudges.insert(nudge.kind.clone(), seq);
                older.into_iter().for_each(|_| self.decided(Break::Nudge, seq));
            }
            Event::CompactionDone(done) => {
                let gained = done.tokens_after < done.tokens_before;
                self.last_compaction = Some(done.clone());
                self.fruitless = (!gained).then_some(done.tokens_after);
                self.revision += 1;
            }
            Event::StepStart(start) => self.requested(seq, start),
            _ => {}
        }
    }

    fn decided(&mut self, what: Break, seq: u64) {
        self.revision += 1;
        // The first explains the first byte that differs; more than a few explain no more.
        if self.causes.len() < CAUSES {
            self.causes.push(Cause { what, seq });
        }
    }

    fn begin_anew(&mut self, seq: u64, checkpoint: &WindowCheckpoint) {
        self.archived_up_to = self.archived_up_to.max(checkpoint.from_seq);
        self.deferred.extend(checkpoint.deferred.clone());
        let name = checkpoint.archive.as_ref().and_then(|archive| archive.name.clone());
        self.archived.push((checkpoint.from_seq, name));
        self.archives.extend(checkpoint.archive.clone());
        let surplus = self.archives.len().saturating_sub(ARCHIVES);
        self.archives.drain(..surplus);
        self.checkpoint = Some(checkpoint.clone());
        self.checkpoint_seq = seq;
        self.decided(Break::Checkpoint, seq);
    }

    fn requested(&mut self, seq: u64, start: &StepStart) {
        let causes = std::mem::take(&mut self.causes);
        self.sent.requests += 1;
        self.sent.bytes += start.bytes;
        self.sent.uncached += start.bytes.saturating_sub(start.changed_at.unwrap_or(0));
        let request = LastRequest {
            seq,
            bytes: start.bytes,
            changed_at: start.changed_at,
            changed_why: start.changed_why.clone(),
            causes,
        };
        if let Some(broken) = request.changed_by() {
            *self.sent.breaks.entry(broken.as_str()).or_default() += 1;
        }
        self.last_request = Some(request);
    }

    /// Whether an item that stands at this place left the window with everything before it.
    pub fn is_archived(&self, place: u64) -> bool {
        place <= self.archived_up_to
    }

    /// The name of the text that holds what stands at this place whole, where that left the window.
    pub fn archive_of(&self, place: u64) -> Option<&str> {
        name_in(&self.archived, place)
    }

    /// The same of an exchange that left while its turn stays.
    pub fn retired_in(&self, place: u64) -> Option<&str> {
        name_in(&self.retired, place)
    }

    /// The document the window opens with; empty where there is none.
    pub fn document(&self) -> &str {
        self.checkpoint.as_ref().map_or("", |checkpoint| checkpoint.document.as_str())
    }

    /// Who wrote it, where there is one.
    pub fn document_kind(&self) -> Option<CheckpointKind> {
        self.checkpoint.as_ref().map(|checkpoint| checkpoint.kind)
    }

    /// Whether the item that this event closed, or that stands there, is pinned.
    pub fn is_pinned(&self, place: u64, event: u64) -> bool {
        self.pins.iter().any(|pin| pin.item() == event || pin.item() == place)
    }
}

/// The name of the first stretch that reaches to this place.
fn name_in(stretches: &[(u64, Option<String>)], place: u64) -> Option<&str> {
    let at = stretches.partition_point(|(up_to, _)| *up_to < place);
    stretches.get(at)?.1.as_deref()
}

impl Break {
    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Break::Masked => "masked",
            Break::Retired => "retired",
            Break::Checkpoint => "checkpoint",
            Break::Externalised => "externalised",
            Break::Nudge => "nudge",
            Break::Pin => "pin",
            Break::Images => "images",
            Break::Head => "head",
            Break::Other => "other",
        }
    }
}
