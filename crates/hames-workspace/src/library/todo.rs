//! The two todo tools.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hames_protocol::{Declaration, Label, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolOutput};
use serde_json::{Value, json};

use super::{Outcome, spec, told};
use crate::todo::{TodoRead, TodoWrite};

pub(super) fn tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Todowrite(TodoWrite::new())), Arc::new(Todoread(TodoRead::new()))]
}

static WRITE: LazyLock<ToolSpec> = LazyLock::new(|| {
    let todo = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "content": {"type": "string", "minLength": 1},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "cancelled"]},
            "priority": {"type": "string", "enum": ["high", "medium", "low"], "default": "medium"},
        },
        "required": ["content", "status"],
    });
    let properties = json!({"todos": {"type": "array", "items": todo}});
    spec("todowrite", "Replace the todo list of this session.", properties, &["todos"])
});

static READ: LazyLock<ToolSpec> =
    LazyLock::new(|| spec("todoread", "Show the todo list of this session.", json!({}), &[]));

struct Todowrite(TodoWrite);

#[async_trait]
impl Tool for Todowrite {
    fn spec(&self) -> &ToolSpec {
        &WRITE
    }
    fn declare(&self, input: &Value) -> Declaration {
        self.0.declare(input)
    }
    fn label(&self, input: &Value) -> Label {
        Label { tool: "todowrite".into(), ..self.0.label(input) }
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        match self.0.run(input, cx).await {
            Ok(_) => Ok(list(cx)),
            Err(failure) => told(failure, &[]),
        }
    }
}

struct Todoread(TodoRead);

#[async_trait]
impl Tool for Todoread {
    fn spec(&self) -> &ToolSpec {
        &READ
    }
    fn declare(&self, input: &Value) -> Declaration {
        self.0.declare(input)
    }
    async fn run(&self, _input: &Value, cx: &ToolCx) -> Outcome {
        Ok(list(cx))
    }
}

fn list(cx: &ToolCx) -> ToolOutput {
    let todos = cx.state().todos.clone();
    ToolOutput::text(json!({"sessionId": cx.session.to_string(), "todos": todos}).to_string())
}
