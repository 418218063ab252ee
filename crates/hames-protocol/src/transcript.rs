//! The transcript: a pure fold of the log into what was said, asked and answered.
//!
//! Items are immutable once closed and shared by pointer, so that whoever renders them can keep what it rendered.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::{
    BlobRef, CallId, Cut, Declaration, Event, Label, ModelRef, Part, PinAdded, PinTarget, ReasoningBlock,
    ToolErrorClass,
};

/// One thing in the conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// The user spoke.
    User(UserItem),
    /// The model answered.
    Assistant(AssistantItem),
    /// A call was answered.
    Tool(ToolItem),
}

/// What the user said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserItem {
    /// Its parts.
    pub parts: Vec<Part>,
    /// Added by Hames (mode, date, folder), sent after the parts.
    pub note: Option<String>,
    /// The kind of loop, where it was the loop guard that spoke.
    pub nudge: Option<String>,
}

/// What the model answered in one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantItem {
    /// Visible text.
    pub text: String,
    /// Reasoning that may go back.
    pub reasoning: Vec<ReasoningBlock>,
    /// Calls.
    pub calls: Vec<CallItem>,
    /// Set where the answer was cut; reasoning of a cut answer is never sent back.
    pub cut: Option<Cut>,
    /// The model that gave it, where a run said so: what is opaque in an answer goes back to its own provider only.
    pub model: Option<Arc<ModelRef>>,
}

/// A call inside an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct CallItem {
    /// Our id.
    pub call_id: CallId,
    /// The provider's id as sent.
    pub provider_id: String,
    /// The tool.
    pub name: String,
    /// The arguments as sent.
    pub arguments: String,
    /// The arguments as used, kept only where those sent are not the text of a JSON object.
    pub input: Option<Value>,
    /// Name for people.
    pub label: Label,
    /// What goes back with the call verbatim.
    pub extra: Option<String>,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolItem {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// What the model gets; never blank.
    pub text: String,
    /// Set where the call gave no result.
    pub error: Option<ToolErrorClass>,
    /// The whole output, where `text` is a part of it.
    pub blob: Option<BlobRef>,
    /// Images of the result. They reach the model in a user message after the results of the step.
    pub attachments: Vec<Part>,
    /// Whether it says what can be done or how: it leaves the window after other results.
    pub capability: bool,
}

/// A call that was asked for and has no answer yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// The call.
    pub call: CallItem,
    /// What the tool declared of it.
    pub declaration: Option<Declaration>,
    /// Whether execution had begun.
    pub started: bool,
}

/// Where an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's message a run began with.
    Opening,
    /// A message of the user that came during a run.
    Message,
    /// The loop guard.
    Nudge,
    /// A text that was pinned.
    Pin,
    /// The model.
    Answer,
    /// A call.
    Result,
}

/// Where an item stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What orders items against events: the item's first event; of a result, that of the answer that asked for it. It
    /// never falls from item to item, and what stands in one step has one number.
    pub seq: u64,
    /// The event that closed it: `message.user`, `step.done`, `tool.done`. Its name for pins.
    pub event: u64,
    /// Ordinal of its run in what was read, from 1.
    pub turn: u32,
    /// Where it comes from.
    pub origin: Origin,
}

/// The conversation so far.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    items: Vec<Arc<Item>>,
    /// One for each item.
    places: Vec<Place>,
    /// Seq of the event read last.
    seq: u64,
    turn: u32,
    answer: Option<AssistantItem>,
    /// Seq of the first event of `answer`.
    answer_began: u64,
    open: Vec<OpenCall>,
    asked: HashSet<CallId>,
    /// The model of the run that is being read.
    model: Option<Arc<ModelRef>>,
    /// What is known of the message the present run began with.
    opening: Opening,
}

/// The message a run begins with. Where its record cannot be read, something has to stand in its place: no provider
/// takes a conversation that opens with an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Opening {
    /// It has not come yet.
    #[default]
    Awaited,
    /// It has not come, but a record that cannot be read has.
    Unreadable,
    /// It has come.
    Heard,
}

/// What the model is told in place of a message that cannot be read.
const UNREADABLE_MESSAGE: &str = "[A message of the user stood here; its record is damaged and cannot be read.]";

impl Transcript {
    /// The closed items, oldest first. A step still being streamed is not among them.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// Where each of the items stands, in the same order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Calls without an answer, in the order they were asked for.
    pub fn open_calls(&self) -> &[OpenCall] {
        &self.open
    }

    /// Whether blocks of a step were recorded whose `step.done` was not.
    pub fn has_open_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Takes in the next event, counting seqs by itself: for conversations that have no log.
    pub fn apply(&mut self, event: &Event) {
        self.apply_at(self.seq + 1, event);
    }

    /// Takes in one event, in the order of the log. Unknown and irrelevant events change nothing; no event can make it
    /// panic.
    pub fn apply_at(&mut self, seq: u64, event: &Event) {
        self.seq = self.seq.max(seq);
        self.turn += u32::from(matches!(event, Event::RunStart(_)));
        self.open_with(event);
        match event {
            Event::RunStart(start) if self.model.as_deref() != Some(&start.model) => {
                self.model = Some(Arc::new(start.model.clone()));
            }
            Event::MessageUser(message) => {
                let origin = if message.delivery.is_none() { Origin::Opening } else { Origin::Message };
                let item = UserItem { parts: message.parts.clone(), note: message.note.clone(), nudge: None };
                self.say(origin, item);
            }
            Event::Nudge(nudge) => {
                let item = UserItem { nudge: Some(nudge.kind.clone()), ..said(&nudge.text) };
                self.say(Origin::Nudge, item);
            }
            Event::PinAdded(PinAdded { target: PinTarget::Text { text }, .. }) if !text.trim().is_empty() => {
                self.say(Origin::Pin, said(&format!("[Pinned: {}]", text.trim())));
            }
            Event::ReasoningDone(done) => {
                let answer = self.open_answer();
                answer.reasoning.push(done.block.clone());
                answer.cut = answer.cut.or(done.cut);
            }
            Event::TextDone(done) => {
                let answer = self.open_answer();
                answer.text.push_str(&done.text);
                answer.cut = answer.cut.or(done.cut);
            }
            // An id is asked for once; a second call under it could never be told from the first.
            Event::ToolCall(call) if self.asked.insert(call.call_id.clone()) => {
                let item = CallItem {
                    call_id: call.call_id.clone(),
                    provider_id: call.provider_id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                    input: if is_object(&call.arguments) { None } else { call.input.clone() },
                    label: call.label.clone(),
                    extra: call.extra.clone(),
                };
                self.open.push(OpenCall { call: item.clone(), declaration: call.declaration.clone(), started: false });
                self.open_answer().calls.push(item);
            }
            Event::StepDone(_) => self.close_answer(),
            Event::ToolStart(start) => {
                if let Some(open) = self.open.iter_mut().find(|o| o.call.call_id == start.call_id) {
                    open.started = true;
                }
            }
            Event::ToolDone(done) => self.answer_call(ToolItem {
                call_id: done.call_id.clone(),
                name: done.name.clone(),
                text: done.output.clone(),
                error: None,
                blob: done.blob.clone(),
                attachments: done.attachments.clone(),
                capability: done.capability,
            }),
            Event::ToolError(error) => self.answer_call(ToolItem {
                call_id: error.call_id.clone(),
                name: error.name.clone(),
                text: error.error.clone(),
                error: Some(error.class),
                blob: error.blob.clone(),
                attachments: Vec::new(),
                capability: false,
            }),
            Event::RunDone(_) => self.close_answer(),
            _ => {}
        }
    }

    fn open_with(&mut self, event: &Event) {
        self.opening = match (self.opening, event) {
            (_, Event::MessageUser(_)) => Opening::Heard,
            (_, Event::RunDone(_)) | (Opening::Heard, Event::RunStart(_)) => Opening::Awaited,
            (Opening::Awaited, Event::Unknown(_)) => Opening::Unreadable,
            (
                Opening::Unreadable,
                Event::StepStart(_) | Event::ReasoningDone(_) | Event::TextDone(_) | Event::ToolCall(_),
            ) => {
                self.say(Origin::Opening, said(UNREADABLE_MESSAGE));
                Opening::Heard
            }
            (opening, _) => opening,
        };
    }

    fn answer_call(&mut self, mut item: ToolItem) {
        let Some(at) = self.open.iter().position(|o| o.call.call_id == item.call_id) else { return };
        self.close_answer();
        self.open.remove(at);
        if item.text.trim().is_empty() {
            item.text = "(no output)".to_owned();
        }
        // Answers may arrive in any order; they stand in the order of their calls, right after the step that asked.
        let at = self.place_of(&item.call_id);
        let (seq, turn) =
            at.checked_sub(1).map_or((self.seq, self.turn), |at| (self.places[at].seq, self.places[at].turn));
        self.places.insert(at, Place { seq, event: self.seq, turn, origin: Origin::Result });
        self.items.insert(at, Arc::new(Item::Tool(item)));
    }

    /// Where the answer to a call belongs: after the answers to the calls before it in the same step.
    fn place_of(&self, id: &CallId) -> usize {
        for (at, item) in self.items.iter().enumerate().rev() {
            let Item::Assistant(answer) = item.as_ref() else { continue };
            let Some(ordinal) = answer.calls.iter().position(|c| &c.call_id == id) else { continue };
            let earlier = &answer.calls[..ordinal];
            let mut place = at + 1;
            while let Some(Item::Tool(tool)) = self.items.get(place).map(Arc::as_ref) {
                if !earlier.iter().any(|c| c.call_id == tool.call_id) {
                    break;
                }
                place += 1;
            }
            return place;
        }
        self.items.len()
    }

    fn say(&mut self, origin: Origin, item: UserItem) {
        self.close_answer();
        self.push(self.seq, origin, Item::User(item));
    }

    fn open_answer(&mut self) -> &mut AssistantItem {
        if self.answer.is_none() {
            self.answer_began = self.seq;
        }
        self.answer.get_or_insert_default()
    }

    fn close_answer(&mut self) {
        if let Some(mut answer) = self.answer.take() {
            answer.model.clone_from(&self.model);
            self.push(self.answer_began, Origin::Answer, Item::Assistant(answer));
        }
    }

    fn push(&mut self, seq: u64, origin: Origin, item: Item) {
        self.places.push(Place { seq, event: self.seq, turn: self.turn, origin });
        self.items.push(Arc::new(item));
    }
}

fn said(text: &str) -> UserItem {
    UserItem { parts: vec![Part::text(text)], ..UserItem::default() }
}

/// Whether a text is a JSON object, without building one.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
