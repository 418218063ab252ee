//! The agent: a model, a head, a door, and how to go about it.

use std::sync::Arc;

use hames_context::estimate_head;
use hames_protocol::{GuardSettings, Head, ModelClient, ModelInfo, RequestOptions, Sampling, ThinkingLevel};
use hames_tools::Door;

use crate::RetryPolicy;
use crate::compaction::Compacting;

/// What an agent is made of.
pub struct AgentParts {
    /// The model.
    pub model: Box<dyn ModelClient>,
    /// Tools and system text.
    pub head: Arc<Head>,
    /// Where calls go.
    pub door: Arc<Door>,
    /// Steps a run may take; `None` for no limit.
    pub max_steps: Option<u32>,
    /// How much to think; `None` says nothing to the provider.
    pub thinking: Option<ThinkingLevel>,
    /// How words are picked.
    pub sampling: Sampling,
    /// Tokens an answer may have; `None` for the model's own limit.
    pub max_output_tokens: Option<u64>,
    /// When to try again.
    pub retry: RetryPolicy,
    /// When a run goes round in circles.
    pub guard: GuardSettings,
}

/// A pure executor: see [`Session::run`](crate::Session::run) for running one.
pub struct Agent {
    pub(crate) model: Box<dyn ModelClient>,
    pub(crate) head: Arc<Head>,
    pub(crate) door: Arc<Door>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) retry: RetryPolicy,
    pub(crate) guard: GuardSettings,
    pub(crate) options: RequestOptions,
    pub(crate) wanted_output: u64,
    pub(crate) head_tokens: u64,
    pub(crate) compacting: Compacting,
}

impl Agent {
    /// An agent of these parts.
    pub fn new(parts: AgentParts) -> Self {
        let info = parts.model.info();
        let wanted_output =
            parts.max_output_tokens.unwrap_or(info.max_output_tokens).min(info.max_output_tokens.max(1));
        let compacting = Compacting::new(parts.door.recaller());
        Self {
            head_tokens: estimate_head(&parts.head),
            model: parts.model,
            head: parts.head,
            door: parts.door,
            max_steps: parts.max_steps,
            retry: parts.retry,
            guard: parts.guard,
            options: RequestOptions { thinking: parts.thinking, sampling: parts.sampling, ..RequestOptions::default() },
            wanted_output,
            compacting,
        }
    }

    /// What is known of its model.
    pub fn model_info(&self) -> &ModelInfo {
        self.model.info()
    }

    /// From here on requests begin with this.
    pub(crate) fn set_head(&mut self, head: Arc<Head>) {
        self.head_tokens = estimate_head(&head);
        self.head = head;
    }

    /// What may differ from request to request.
    pub(crate) fn request_options(&self, max_output_tokens: u64, session: &str) -> RequestOptions {
        RequestOptions {
            max_output_tokens: Some(max_output_tokens),
            session: Some(session.to_owned()),
            ..self.options.clone()
        }
    }
}
