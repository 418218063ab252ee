//! How an agent keeps its conversation within the window, as an embedder sets it.

use std::sync::Arc;

use hames_agent::{Compaction, Fill};
use hames_context::{Budget, PruneThenSummarize, Strategy, SummaryRequest};
use hames_protocol::ModelClient;

use super::AgentBuilder;

/// Tokens kept for the answer where nobody says how many.
const RESERVED_TOKENS: u64 = 20_000;
/// Tokens of results kept from pruning where nobody says how many.
const PROTECTED_TOKENS: u64 = 40_000;

impl AgentBuilder {
    /// Keeps the conversation within a window of this many tokens, or the model's where that is smaller. Documents are
    /// written by `model`, or by the agent's own. It begins when no more than [`reserved_tokens`](Self::reserved_tokens)
    /// are left.
    ///
    /// Without this an agent does the same by its model's window, at 80 percent of it; see
    /// [`compaction`](Self::compaction) for everything there is to set.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hames::agent::{Nobody, Ports, RunControl, RunInput, Session, SystemClock};
    /// # use hames::model::{ScriptedModel, ScriptedTurn};
    /// # use hames::protocol::{MemoryLog, Mode, Part, SessionCreated, SessionId, Settings};
    /// use hames::AgentBuilder;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let model = ScriptedModel::new((0..4).map(|_| ScriptedTurn::text("Noted.")));
    /// # let cheap_model = ScriptedModel::new([ScriptedTurn::text("## Facts\n- The port is 8080.")]);
    /// # let (seen, written) = (model.clone(), cheap_model.clone());
    /// let mut agent = AgentBuilder::new(folder.path(), Box::new(model))
    ///     .with_compaction(100_000, Some(Box::new(cheap_model) as Box<_>))
    ///     .auto_compact(false)
    ///     .on_compaction(|_| Some("Keep every port number.".to_owned()))
    ///     .build()?;
    /// # let ports = Ports { log: Arc::new(MemoryLog::default()), clock: Arc::new(SystemClock) };
    /// # let folder_name = folder.path().display().to_string();
    /// # let created = SessionCreated { name: "s".into(), folder: folder_name, settings: Settings::default() };
    /// # let mut session = Session::create(ports, SessionId::generate(), created).await?;
    /// # for text in ["The port is 8080.", "Fine.", "And so on."] {
    /// #     let input = RunInput { parts: vec![Part::text(text.repeat(9000))], mode: Mode::Build, ..RunInput::default() };
    /// #     session.run(&mut agent, input, &RunControl::default(), Arc::new(Nobody)).await;
    /// # }
    /// // By hand, between two runs:
    /// let done = session.compact(&mut agent, &RunControl::default(), Arc::new(Nobody)).await?;
    /// assert!(done.is_some_and(|done| done.tokens_after < done.tokens_before));
    /// assert!(session.window().document().contains("8080"));
    /// # assert_eq!(written.left(), 0);
    /// # let Some(asked) = written.asked().pop() else { panic!() };
    /// # assert!(format!("{:?}", asked.items).contains("every port number"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_compaction(mut self, context_window: u64, model: impl Into<Option<Box<dyn ModelClient>>>) -> Self {
        self.compaction.context_window = Some(context_window);
        self.compaction.summary_model = model.into().or(self.compaction.summary_model);
        self.reserves.get_or_insert(None);
        self
    }

    /// Whether it happens by itself; it does where nobody says otherwise. Where it does not, a conversation that has no
    /// room left is refused.
    pub fn auto_compact(mut self, on: bool) -> Self {
        self.compaction.policy.auto = on;
        self
    }

    /// In place of the fill at which it begins by itself: a function that is asked before every request, between steps and
    /// after an answer.
    pub fn should_compact(mut self, decide: impl Fn(&Fill) -> bool + Send + Sync + 'static) -> Self {
        self.compaction.should_compact = Some(Arc::new(decide));
        self
    }

    /// It begins when the window has only so many tokens left: the smaller of 20,000 and the answer's limit where nobody
    /// says.
    pub fn reserved_tokens(mut self, tokens: u64) -> Self {
        self.reserves = Some(Some(tokens));
        self
    }

    /// Prunes old results first and sums up everything else only where that is not enough; the newest so many tokens are
    /// never pruned.
    pub fn protected_tokens(mut self, tokens: u64) -> Self {
        let strategy = PruneThenSummarize { protected_tokens: tokens, ..PruneThenSummarize::default() };
        self.compaction.policy.strategy = Arc::new(strategy);
        self
    }

    /// Prunes old results first, with [`protected_tokens`](Self::protected_tokens) of 40,000.
    pub fn prune_then_summarize(self) -> Self {
        self.protected_tokens(PROTECTED_TOKENS)
    }

    /// A strategy of one's own.
    pub fn compaction_strategy(mut self, strategy: Arc<dyn Strategy>) -> Self {
        self.compaction.policy.strategy = strategy;
        self
    }

    /// The model that writes documents.
    pub fn summary_model(mut self, model: impl Into<Option<Box<dyn ModelClient>>>) -> Self {
        self.compaction.summary_model = model.into();
        self
    }

    /// Says what the author of a document is told besides.
    pub fn on_compaction(mut self, more: impl Fn(&SummaryRequest) -> Option<String> + Send + Sync + 'static) -> Self {
        self.compaction.on_compaction = Some(Arc::new(more));
        self
    }

    /// All of it at once.
    pub fn compaction(mut self, compaction: Compaction) -> Self {
        self.compaction = compaction;
        self
    }

    /// What was set, with the fill that leaves the reserve as trigger where there is one.
    pub(super) fn settled_compaction(&mut self) -> Compaction {
        let mut compaction = std::mem::take(&mut self.compaction);
        if let Some(reserved) = self.reserves {
            let info = self.model.info();
            let window = compaction.context_window.map_or(info.context_window, |most| most.min(info.context_window));
            let output = self.max_output_tokens.unwrap_or(info.max_output_tokens).min(info.max_output_tokens);
            let reserved = reserved.unwrap_or(RESERVED_TOKENS.min(output));
            let usable = Budget { window, wanted_output: output }.usable().max(1);
            let percent = window.saturating_sub(reserved).saturating_mul(100) / usable;
            compaction.policy.trigger = u8::try_from(percent.min(100)).unwrap_or(100);
        }
        compaction.policy = compaction.policy.clamped();
        compaction
    }
}
