//! The agent: a model, a head, a door, and how to go about it.

use std::sync::Arc;

use hames_context::{Budget, Estimator, ImageRoom, WireRules, estimate_head};
use hames_protocol::{
    ErrorClass, Failure, GuardSettings, Head, Item, ModelClient, ModelInfo, RequestOptions, Sampling, ThinkingLevel,
};
use hames_tools::Door;

use crate::RetryPolicy;

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
    options: RequestOptions,
    wanted_output: u64,
    head_tokens: u64,
    estimator: Estimator,
    rules: WireRules,
    pub(crate) images: ImageRoom,
}

impl Agent {
    /// An agent of these parts.
    pub fn new(parts: AgentParts) -> Self {
        let info = parts.model.info();
        let wanted_output =
            parts.max_output_tokens.unwrap_or(info.max_output_tokens).min(info.max_output_tokens.max(1));
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
            estimator: Estimator::default(),
            rules: WireRules::default(),
            images: ImageRoom::default(),
        }
    }

    /// What is known of its model.
    pub fn model_info(&self) -> &ModelInfo {
        self.model.info()
    }

    /// Checks that the conversation may and can be sent, and decides how long the answer may be.
    pub(crate) fn plan(&mut self, items: &[Arc<Item>], session: &str) -> Result<RequestOptions, Failure> {
        self.rules.check(items).map_err(|broken| {
            Failure::new(
                ErrorClass::WireRule,
                format!("{broken}. Nothing was sent. This is a fault of Hames; start a new session to go on, and please report it."),
            )
        })?;
        let budget = Budget { window: self.model.info().context_window, wanted_output: self.wanted_output };
        let input = self.head_tokens + self.estimator.total(items);
        let output = budget.output_for(input).map_err(|too_large| self.too_large(too_large.input))?;
        Ok(RequestOptions {
            max_output_tokens: Some(output),
            session: Some(session.to_owned()),
            ..self.options.clone()
        })
    }

    fn too_large(&self, input: u64) -> Failure {
        let info = self.model.info();
        let (model, window, head) = (&info.model, info.context_window, self.head_tokens);
        let message = if head * 2 > window {
            format!(
                "The fixed part of every request (tools, system text, instruction files) has about {head} tokens; the window of \
                 {model} has {window}. Shorten the instruction files, or choose a model with a larger window."
            )
        } else {
            format!(
                "The conversation has about {input} tokens and leaves no room for an answer in the window of {model} ({window} \
                 tokens). Start a new session, or continue this one with a model that has a larger window."
            )
        };
        Failure::new(ErrorClass::ContextOverflow, message)
    }
}
