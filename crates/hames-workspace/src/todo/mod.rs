//! The session's todo list: [`TodoWrite`] replaces it, [`TodoRead`] shows it. What the model wants to stay in its window,
//! whatever leaves it, is written the same way.
//!
//! The list lives in the session's state, which is a fold of events; these tools only record that it changed.

mod list;
mod pins;

use std::sync::Arc;

use async_trait::async_trait;
use hames_protocol::{Declaration, Effect, Event, Label, Resource, TodoUpdated, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput};
use serde_json::{Value, json};

/// The tools of this module.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(TodoWrite::new()), Arc::new(TodoRead::new())]
}

fn declaration(write: bool) -> Declaration {
    Declaration::new(Effect::Session, vec![Resource::Named { name: "todos".into(), write }])
}

/// Replaces the todo list.
pub struct TodoWrite {
    spec: ToolSpec,
}

impl TodoWrite {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "TodoWrite".into(),
                description: include_str!("todo_write.md").trim_end().into(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "todos": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "id": {"type": "string"},
                                    "content": {"type": "string"},
                                    "status": {
                                        "type": "string",
                                        "description": "pending, in_progress, completed or cancelled",
                                    },
                                    "priority": {"type": "string", "description": "high, medium or low"},
                                },
                                "required": ["content", "status"],
                            },
                        },
                        "pins": {
                            "type": "array",
                            "items": {"type": "string"},
                            "description": "what must stay in view; replaces earlier pins",
                        },
                    },
                }),
            },
        }
    }
}

impl Default for TodoWrite {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for TodoWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("items", "todos"), ("todo_list", "todos"), ("todoList", "todos"), ("list", "todos"), ("tasks", "todos")]
    }

    fn declare(&self, _input: &Value) -> Declaration {
        // Writing the list again with one more mark is how it is used, so repetition is no loop.
        Declaration { polling: true, ..declaration(true) }
    }

    fn label(&self, input: &Value) -> Label {
        let count = input.get("todos").and_then(Value::as_array).map_or(0, Vec::len);
        let pins = input.get("pins").and_then(Value::as_array).map_or(0, Vec::len);
        let sized = match pins {
            0 => format!("{count} todos"),
            _ => format!("{count} todos, {pins} pins"),
        };
        Label::new("TodoWrite", "").sized(sized)
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let (known, pinned) = {
            let state = cx.state();
            (state.todos.clone(), state.pins.clone())
        };
        let pins = input.get("pins").filter(|pins| !pins.is_null());
        let todos = match input.get("todos") {
            None if pins.is_some() => None,
            given => Some(list::read(given, &known).map_err(ToolFailure::invalid)?),
        };
        let mut events = Vec::new();
        let mut said = Vec::new();
        if let Some(todos) = todos {
            said.push(list::render(&todos, list::SHORT, cx.cap_bytes));
            events.push(Event::TodoUpdated(TodoUpdated { todos }));
        }
        if let Some(pins) = pins {
            let texts = pins::read(pins).map_err(ToolFailure::invalid)?;
            cx.pins.check(&texts).map_err(ToolFailure::refused)?;
            events.extend(pins::changes(&pinned, &texts));
            said.push(format!("{} pinned.", texts.len()));
        }
        if !events.is_empty() {
            cx.emit.record(events).await?;
        }
        Ok(ToolOutput::text(said.join("\n")))
    }
}

/// Shows the todo list.
pub struct TodoRead {
    spec: ToolSpec,
}

impl TodoRead {
    /// The tool.
    pub fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: "TodoRead".into(),
                description: "Show the todo list.".into(),
                parameters: json!({"type": "object", "properties": {}}),
            },
        }
    }
}

impl Default for TodoRead {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for TodoRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declare(&self, _input: &Value) -> Declaration {
        Declaration { cacheable: true, ..declaration(false) }
    }

    async fn run(&self, _input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let todos = cx.state().todos.clone();
        Ok(ToolOutput::text(list::render(&todos, list::MAX_CONTENT, cx.cap_bytes)))
    }
}
