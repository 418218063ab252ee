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
    /// after an answer, unless [`auto_compact`](Self::auto_compact) is off. It does what there is to gain; what would not
    /// fit any more is made smaller whatever the function says.
    pub fn should_compact(mut self, decide: impl Fn(&Fill) -> bool + Send + Sync + 'static) -> Self {
        self.compaction.should_compact = Some(Arc::new(decide));
        self
    }

    /// It begins when the window has only so many tokens left: the smaller of 20,000 and the answer's limit where nobody
    /// says, a quarter of the window at most. A little earlier where so few are left that a request could not be sent any more.
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
            let of_the_answer = Budget { window, wanted_output: output }.reserve();
            let reserved = reserved.unwrap_or(RESERVED_TOKENS.min(of_the_answer));
            compaction.policy.trigger_tokens = Some(window.saturating_sub(reserved));
        }
        compaction.policy = compaction.policy.clamped();
        compaction
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use hames_agent::{Agent, Nobody, Ports, RunControl, RunInput, Session, SystemClock};
    use hames_context::{Author, Choice, Situation};
    use hames_model::{ScriptedModel, ScriptedTurn};
    use hames_protocol::{Item, MemoryLog, Mode, Part, SessionCreated, SessionId, Settings};

    use super::*;

    /// An agent whose model answers a word to whatever it is asked.
    fn agent(set: impl FnOnce(AgentBuilder) -> AgentBuilder) -> (Agent, ScriptedModel) {
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::new((0..60).map(|_| ScriptedTurn::text("Noted.")));
        let agent = set(AgentBuilder::new(folder.path(), Box::new(model.clone()))).build().unwrap();
        (agent, model)
    }

    async fn session() -> Session {
        let ports = Ports { log: Arc::new(MemoryLog::default()), clock: Arc::new(SystemClock) };
        let created = SessionCreated { name: "s".into(), folder: "/".into(), settings: Settings::default() };
        Session::create(ports, SessionId::generate(), created).await.unwrap()
    }

    /// A message of about 1,000 tokens.
    async fn says(session: &mut Session, agent: &mut Agent, n: usize) {
        let text = format!("message {n}: {}", "word ".repeat(800));
        let input = RunInput { parts: vec![Part::text(text)], mode: Mode::Build, ..RunInput::default() };
        session.run(agent, input, &RunControl::default(), Arc::new(Nobody)).await;
    }

    async fn compacted_after(agent: &mut Agent, messages: usize) -> Option<usize> {
        let mut session = session().await;
        for n in 1..=messages {
            says(&mut session, agent, n).await;
            if session.window().checkpoint.is_some() {
                return Some(n);
            }
        }
        None
    }

    #[tokio::test]
    async fn it_begins_where_the_reserve_does_and_no_later_than_what_can_be_sent() {
        type Set = fn(AgentBuilder) -> AgentBuilder;
        let cases: [(Set, u64); 8] = [
            (|of| of, (128_000 - 16_384) * 80 / 100),
            (|of| of.with_compaction(100_000, None), 100_000 - 16_384),
            (|of| of.with_compaction(500_000, None), 128_000 - 16_384),
            (|of| of.with_compaction(100_000, None).max_output_tokens(Some(1_000)), 100_000 - 5_000 - 256),
            (|of| of.with_compaction(100_000, None).reserved_tokens(40_000), 60_000),
            (|of| of.reserved_tokens(40_000), 88_000),
            (|of| of.with_compaction(100_000, None).reserved_tokens(10), 100_000 - 5_000 - 256),
            // A reserve as large as the window would leave nothing.
            (|of| of.with_compaction(20_000, None), 15_000),
        ];
        for (at, (set, trigger)) in cases.into_iter().enumerate() {
            let (mut agent, _) = agent(set);
            assert_eq!(session().await.preview_compaction(&mut agent).trigger, trigger, "{at}");
        }
        let (mut agent, _) = agent(|of| of.with_compaction(20_000, None).reserved_tokens(u64::MAX));
        let preview = session().await.preview_compaction(&mut agent);
        assert!(preview.trigger > preview.fill, "{preview:?}");
    }

    #[tokio::test]
    async fn it_happens_by_itself_once_a_window_is_set_and_not_where_that_is_switched_off() {
        let (mut on, _) = agent(|of| of.with_compaction(20_000, None));
        let at = compacted_after(&mut on, 40).await;
        assert!(at.is_some_and(|at| at < 16), "{at:?}");
        let (mut off, _) = agent(|of| of.with_compaction(20_000, None).auto_compact(false));
        assert_eq!(compacted_after(&mut off, 40).await, None);
        let judge = |of: AgentBuilder| of.with_compaction(20_000, None).auto_compact(false).should_compact(|_| true);
        let (mut off, _) = agent(judge);
        assert_eq!(compacted_after(&mut off, 8).await, None, "off is off, whoever judges");
    }

    #[tokio::test]
    async fn who_judges_alone_decides_until_nothing_fits_any_more() {
        let fills = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&fills);
        let (mut early, _) = agent(|of| {
            of.with_compaction(20_000, None).should_compact(move |fill| {
                seen.lock().unwrap().push(*fill);
                fill.input > 8_000
            })
        });
        let early = compacted_after(&mut early, 40).await.unwrap();
        assert!((5..9).contains(&early), "{early}");
        let fills = fills.lock().unwrap().clone();
        assert!(fills.iter().all(|fill| (fill.window, fill.reserved) == (20_000, 5_000)));
        let (_, before) = fills.split_last().unwrap();
        assert!(before.len() > early && before.is_sorted_by_key(|fill| fill.input), "asked at every look: {fills:?}");
        let (mut never, model) = agent(|of| of.with_compaction(20_000, None).should_compact(|_| false));
        let late = compacted_after(&mut never, 40).await.unwrap();
        // The fill at which it would have begun by itself is long passed.
        assert!(late > 13, "{late}");
        assert!(model.asked().iter().all(|asked| asked.options.max_output_tokens.is_some_and(|most| most >= 256)));
    }

    #[tokio::test]
    async fn who_always_says_yes_gets_no_compaction_without_a_gain() {
        let (mut agent, model) = agent(|of| of.with_compaction(20_000, None).should_compact(|_| true));
        let mut session = session().await;
        for n in 0..12 {
            says(&mut session, &mut agent, n).await;
        }
        let documents = model.asked().iter().filter(|asked| asked.head.tools.is_empty()).count();
        assert!((1..=12).contains(&documents), "{documents}");
        let last = session.window().last_compaction.clone().unwrap();
        assert!(last.tokens_after + 500 < last.tokens_before, "{last:?}");
    }

    #[tokio::test]
    async fn a_strategy_of_ones_own_writes_documents_of_its_own() {
        #[derive(Debug)]
        struct Mine;
        impl Strategy for Mine {
            fn name(&self) -> &str {
                "mine"
            }
            fn choose(&self, situation: &Situation<'_>) -> Choice {
                Choice::Checkpoint(situation.checkpoint(situation.keep), Author::Own("my own words".into()))
            }
        }
        let (mut agent, model) = agent(|of| of.with_compaction(20_000, None).compaction_strategy(Arc::new(Mine)));
        let mut session = session().await;
        for n in 0..20 {
            says(&mut session, &mut agent, n).await;
        }
        assert_eq!(session.window().document(), "my own words");
        assert_eq!(model.asked().len(), 20, "no model was asked for a document");
        let report = session.report(&mut agent);
        assert_eq!(report.strategy, "mine");
        let opening = model.asked().last().unwrap().items[0].clone();
        assert!(matches!(opening.as_ref(), Item::User(user) if format!("{:?}", user.parts).contains("my own words")));
    }
}
