//! The first half of the door: from a raw call to what will be recorded of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hames_protocol::{CallId, Declaration, Effect, Label, RawCall, ToolCall, ToolErrorClass};
use serde_json::Value;

use super::call::crashed;
use crate::set::{Known, ToolSet};
use crate::{Tool, ToolFailure};

/// A call that passed the threshold: recorded as asked for, not run yet.
#[derive(Clone)]
pub struct Admitted {
    /// The event to record.
    pub event: ToolCall,
    pub(super) known: Option<Arc<Known>>,
    /// What was mended and should be said.
    pub(super) notes: Vec<String>,
    /// Why it cannot run.
    pub(super) fault: Option<(ToolErrorClass, String)>,
}

impl Admitted {
    pub(super) fn tool(&self) -> Option<&Arc<dyn Tool>> {
        self.known.as_ref().map(|known| &known.tool)
    }

    /// The declaration, where the call can run.
    pub(super) fn runnable(&self) -> Option<&Declaration> {
        self.event.declaration.as_ref().filter(|_| self.fault.is_none())
    }
}

impl std::fmt::Debug for Admitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admitted")
            .field("event", &self.event)
            .field("notes", &self.notes)
            .field("fault", &self.fault)
            .finish()
    }
}

pub(super) fn admit(tools: &ToolSet, raw: RawCall) -> Admitted {
    let known = tools.find(&raw.name).cloned();
    let mut call = Admitted {
        event: ToolCall {
            call_id: CallId::generate(),
            provider_id: raw.id,
            name: raw.name,
            arguments: raw.arguments,
            input: None,
            label: Label::default(),
            declaration: None,
            extra: raw.extra,
        },
        known: known.clone(),
        notes: Vec::new(),
        fault: None,
    };
    match known {
        Some(known) => check(&mut call, &known),
        None => {
            // Names of tools that do not exist are a model's invention: they may hold anything.
            call.event.label = Label::new(Label::new("", &call.event.name).target, "");
            call.fault = Some((ToolErrorClass::Invalid, tools.unknown(&call.event.name)));
        }
    }
    call
}

fn check(call: &mut Admitted, known: &Known) {
    let tool = &known.tool;
    let checked = known.checker().check(&call.event.arguments, tool.aliases());
    call.event.label = Label::new(known.name(), "");
    call.notes = checked.notes;
    call.event.input = checked.input;
    if let Some(fault) = checked.fault {
        call.fault = Some((ToolErrorClass::Invalid, format!("{}: {fault}", known.name())));
        return;
    }
    let Some(input) = &call.event.input else { return };
    match declared(tool.as_ref(), input) {
        Ok((declaration, label)) => {
            call.event.declaration = Some(declaration);
            call.event.label = label;
        }
        Err(fault) => {
            // Nothing is known of it, so everything is assumed.
            call.event.declaration = Some(Declaration::new(Effect::External, Vec::new()));
            call.fault = Some((fault.class, fault.text));
        }
    }
}

/// A tool's own code, which may be anybody's: a panic in it is an answer, not the end of the run.
fn declared(tool: &dyn Tool, input: &Value) -> Result<(Declaration, Label), ToolFailure> {
    catch_unwind(AssertUnwindSafe(|| (tool.declare(input), tool.label(input))))
        .map_err(|_| crashed(&tool.spec().name, "it failed before it was run"))
}
