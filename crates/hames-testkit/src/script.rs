//! What a provider will answer.

use std::{collections::VecDeque, fmt, sync::Arc};

use serde_json::{Value, json};

use crate::{ChatRequest, Turn};

pub(crate) type Responder = Arc<dyn Fn(&ChatRequest) -> Turn + Send + Sync>;
pub(crate) type Refuser = Arc<dyn Fn(&ChatRequest) -> Option<Turn> + Send + Sync>;

/// The answers of a provider, in order, and what it insists on.
///
/// Each accepted chat request uses up one fixed turn. When none is left, [`respond`](Self::respond) decides; without
/// it the answer is status 500 and a violation of the rule `scenario_exhausted`. A refused request uses up nothing.
#[derive(Clone)]
pub struct Script {
    pub(crate) turns: VecDeque<Turn>,
    pub(crate) responder: Option<Responder>,
    pub(crate) refusers: Vec<Refuser>,
    pub(crate) strict: bool,
    pub(crate) models: Value,
    pub(crate) window: Option<u64>,
}

impl Script {
    /// A strict script without turns that lists one model, `mock-1`.
    pub fn new() -> Script {
        Script {
            turns: VecDeque::new(),
            responder: None,
            refusers: Vec::new(),
            strict: true,
            models: json!([{"id": "mock-1", "object": "model"}]),
            window: None,
        }
    }

    /// Adds a fixed turn.
    pub fn turn(mut self, turn: Turn) -> Script {
        self.turns.push_back(turn);
        self
    }

    /// Adds fixed turns.
    pub fn turns(mut self, turns: impl IntoIterator<Item = Turn>) -> Script {
        self.turns.extend(turns);
        self
    }

    /// Decides every turn after the fixed ones. It is called by the server, one request at a time per connection.
    pub fn respond(mut self, responder: impl Fn(&ChatRequest) -> Turn + Send + Sync + 'static) -> Script {
        self.responder = Some(Arc::new(responder));
        self
    }

    /// Adds a rule of this provider's own: where `refuser` gives a turn, that is the answer, and the request uses up
    /// nothing. The first rule that answers wins.
    pub fn refuse(mut self, refuser: impl Fn(&ChatRequest) -> Option<Turn> + Send + Sync + 'static) -> Script {
        self.refusers.push(Arc::new(refuser));
        self
    }

    /// Whether requests that break a rule of [`wire`](crate::wire) are refused. A body that is no JSON object always is.
    pub fn strict(mut self, strict: bool) -> Script {
        self.strict = strict;
        self
    }

    /// What `GET /v1/models` says: a list of models, or any other JSON given as it is.
    pub fn models(mut self, models: Value) -> Script {
        self.models = models;
        self
    }

    /// Refuses with `context_length_exceeded` what is larger than this many tokens, its output limit included. A
    /// token is taken to be four bytes of messages and tools.
    pub fn window(mut self, tokens: u64) -> Script {
        self.window = Some(tokens);
        self
    }
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("turns", &self.turns)
            .field("responds", &self.responder.is_some())
            .field("refuses", &self.refusers.len())
            .field("strict", &self.strict)
            .field("models", &self.models)
            .field("window", &self.window)
            .finish()
    }
}
