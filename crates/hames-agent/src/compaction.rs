//! Keeping a conversation within the window: plans come from `hames-context`, and are performed here.
//!
//! A plan is made before every request, between the steps and after an answer. What it decides is recorded before it
//! takes effect; where it wants a document, a model is asked for one ([`author`]); where a provider refuses a request as
//! too large, [`recover`] makes it smaller. Nothing that was said is ever changed: see [`Window`].

mod author;
mod recover;

use std::sync::Arc;

use hames_context::{
    Budget, Carried, Decision, Deterministic, Moment, PinRefused, Plan, Policy, PruneThenSummarize, Ready, Refused,
    Strategy, SummaryAnswer, SummaryRequest, Terms, Window,
};
use hames_protocol::{
    CompactionSettings, CompactionStrategy, ErrorClass, Event, Failure, ModelClient, PinTarget, WindowPreview,
    WindowReport,
};

use hames_tools::PinRoom;

use crate::Agent;
use crate::journal::{Folds, locked};
use crate::run_loop::LoopCx;
use author::Answered;
pub(crate) use recover::{Recovered, Recovery};

/// Decisions before one request. Each makes the window smaller, so there are few; more is a fault.
const MAX_DECISIONS: usize = 24;

/// What the fill of a window is, for whoever decides by it. All numbers are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Of the next request as it would be, as the provider is expected to count.
    pub input: u64,
    /// Of the model's window.
    pub window: u64,
    /// Kept for the answer.
    pub reserved: u64,
}

/// Says whether it is time to compact.
pub type ShouldCompact = Arc<dyn Fn(&Fill) -> bool + Send + Sync>;
/// Says what the author of a document is told besides, if anything.
pub type OnCompaction = Arc<dyn Fn(&SummaryRequest) -> Option<String> + Send + Sync>;

/// How an agent keeps its conversation within the window. The default does so by itself, with the agent's own model.
#[derive(Default)]
pub struct Compaction {
    /// When, how far and by which strategy.
    pub policy: Policy,
    /// Tokens of the window, where it is to be smaller than the model's.
    pub context_window: Option<u64>,
    /// The model that writes documents; the agent's own where absent.
    pub summary_model: Option<Box<dyn ModelClient>>,
    /// In place of the policy's trigger, where it happens by itself at all.
    pub should_compact: Option<ShouldCompact>,
    /// Adds to what the author of a document is told.
    pub on_compaction: Option<OnCompaction>,
}

impl Compaction {
    /// What a person set, with the defaults for the rest. Who writes documents is the caller's to find.
    pub fn of(settings: &CompactionSettings) -> Self {
        let strategy: Arc<dyn Strategy> = match settings.strategy.unwrap_or_default() {
            CompactionStrategy::Carried => Arc::new(Carried),
            CompactionStrategy::Deterministic => Arc::new(Deterministic),
            CompactionStrategy::PruneThenSummarize => Arc::new(PruneThenSummarize::default()),
        };
        let default = Policy::default();
        let (trigger, landing) = settings.marks();
        let policy = Policy { auto: settings.auto.unwrap_or(default.auto), trigger, landing, strategy, ..default };
        Self { policy, ..Self::default() }
    }
}

/// What an agent holds of it while it runs.
pub(crate) struct Compacting {
    pub(crate) window: Window,
    config: Compaction,
    /// A connection of its own for documents, so that what was rendered of the conversation stays.
    author: Option<Box<dyn ModelClient>>,
    /// Tokens that the model turned out to take at most.
    limit: Option<u64>,
    /// Items whose images the last request had no room for.
    pub(crate) images_left_out: usize,
    /// Tokens that the author of documents turned out to take at most.
    author_limit: Option<u64>,
    /// How often a span was made shorter because its author could not read it.
    shorter: u32,
    /// Thousandths of a counted token to an estimated one, as a refusal stated it.
    stated_ratio: u64,
    /// Estimate and count of the last request that was answered.
    counted: Option<(u64, u64)>,
}

impl Compacting {
    pub(crate) fn new(recaller: Option<&str>) -> Self {
        Self {
            window: Window::new(recaller),
            config: Compaction::default(),
            author: None,
            limit: None,
            images_left_out: 0,
            author_limit: None,
            shorter: 0,
            stated_ratio: 0,
            counted: None,
        }
    }
}

/// What became of a plan.
pub(crate) enum Planned {
    /// The window's items may be sent.
    Ready(Ready),
    /// Nothing need be done.
    Nothing,
    /// Nothing can be sent.
    Refused(Failure),
    /// A person or a message came in between; nothing was decided.
    Cut,
}

impl Agent {
    /// The same agent, keeping its conversation within the window in this way.
    pub fn compacting(mut self, config: Compaction) -> Self {
        self.compacting.config = config;
        self
    }

    /// Tokens of the window as far as it is known.
    pub(crate) fn window_tokens(&self) -> u64 {
        let known = [self.compacting.config.context_window, self.compacting.limit];
        known.into_iter().flatten().fold(self.model.info().context_window, u64::min)
    }

    /// Takes over what a session knows of this model's window.
    pub(crate) fn recall_limit(&mut self, folds: &Folds) {
        let known = locked(&folds.state).limits.get(&self.model.info().model.to_string()).copied();
        self.compacting.limit = [self.compacting.limit, known].into_iter().flatten().min();
    }

    fn terms(&self, folds: &Folds) -> Terms {
        let model = self.model.info();
        let budget = Budget { window: self.window_tokens(), wanted_output: self.wanted_output };
        let measured = locked(&folds.window).measure.ratio(&model.model);
        let author = self.compacting.config.summary_model.as_ref().map(|author| author.info());
        let summary_budget = (author.is_some() || self.compacting.author_limit.is_some()).then(|| {
            let (window, output) =
                author.map_or((budget.window, budget.wanted_output), |a| (a.context_window, a.max_output_tokens));
            let window = self.compacting.author_limit.map_or(window, |limit| limit.min(window));
            Budget { window, wanted_output: output.min(self.wanted_output) }
        });
        let mut policy = self.compacting.config.policy.clone();
        if self.compacting.config.should_compact.is_some() {
            // Where somebody else judges, only what no longer fits is tidied without being asked.
            policy.trigger_tokens = Some(u64::MAX);
        }
        Terms {
            ratio: measured.max(self.compacting.stated_ratio),
            policy,
            summary_budget,
            prompt_tokens: author::prompt_tokens(),
            ..Terms::new(budget, self.head_tokens)
        }
    }

    /// The next request as it would be counted, and its room.
    pub(crate) fn fill(&self, folds: &Folds) -> Fill {
        let terms = self.terms(folds);
        let input = (self.head_tokens + self.compacting.window.tokens()).saturating_mul(terms.ratio.max(1)) / 1_000;
        Fill { input, window: terms.budget.window, reserved: terms.budget.reserve() }
    }

    fn sync(&mut self, folds: &Folds) {
        let transcript = locked(&folds.transcript);
        let state = locked(&folds.window);
        self.compacting.window.sync(&transcript, &state);
    }

    fn next_plan(&mut self, folds: &Folds, moment: Moment) -> Plan {
        self.sync(folds);
        let terms = self.terms(folds);
        self.compacting.window.plan(moment, &terms)
    }

    /// The moment, by the caller's own judgement where it has one: then the policy's trigger says nothing.
    fn judged(&mut self, folds: &Folds, moment: Moment) -> Moment {
        let by_itself = matches!(moment, Moment::BeforeRequest | Moment::AtBoundary | Moment::AfterResponse);
        let judge = self.compacting.config.should_compact.clone();
        let Some(should_compact) = judge.filter(|_| by_itself && self.compacting.config.policy.auto) else {
            return moment;
        };
        self.sync(folds);
        if should_compact(&self.fill(folds)) { Moment::Judged } else { moment }
    }

    /// Plans and performs until something can be sent, or nothing need be done.
    pub(crate) async fn plan(&mut self, cx: &LoopCx, moment: Moment) -> Result<Planned, Failure> {
        self.compacting.shorter = 0;
        let mut now = self.judged(&cx.folds, moment);
        let mut plan = self.next_plan(&cx.folds, now);
        for _ in 0..MAX_DECISIONS {
            plan = match plan {
                Plan::Ready(ready) => return Ok(Planned::Ready(ready)),
                Plan::Nothing => return Ok(Planned::Nothing),
                Plan::Refused(refused) => return Ok(Planned::Refused(self.refusal(&refused))),
                Plan::Decide(decision) => {
                    if decide(cx, &decision).await? {
                        // It is done once. What is asked for by hand is over with it.
                        match now {
                            Moment::Manual => return Ok(Planned::Nothing),
                            Moment::Overflow | Moment::Judged if moment == Moment::AfterResponse => now = moment,
                            Moment::Overflow | Moment::Judged => now = Moment::AtBoundary,
                            _ => {}
                        }
                    }
                    self.next_plan(&cx.folds, now)
                }
                Plan::Summarise(request) => match self.write_document(cx, &request).await? {
                    Answered::Document(answer) => self.compacting.window.resume(answer),
                    // Whoever asks for a document by hand wants one: without it nothing is changed.
                    Answered::Failed(failure) if now == Moment::Manual && !request.compress => {
                        return Ok(Planned::Refused(no_document(failure)));
                    }
                    Answered::Failed(failure) => self.compacting.window.resume(SummaryAnswer::Failed(failure.message)),
                    Answered::TooLong => self.next_plan(&cx.folds, now),
                    Answered::Cut => return Ok(Planned::Cut),
                },
            };
        }
        let what = "The window could not be made to fit, however often it was tidied. Nothing was sent. This is a fault of \
                    Hames; start a new session to go on, and please report it.";
        Ok(Planned::Refused(Failure::new(ErrorClass::Internal, what)))
    }

    fn refusal(&self, refused: &Refused) -> Failure {
        let class = match refused {
            Refused::Rule(_) => ErrorClass::WireRule,
            Refused::Head { .. } | Refused::Full { .. } => ErrorClass::ContextOverflow,
        };
        Failure::new(class, format!("{} ({})", refused, self.model.info().model))
    }

    /// What a compaction by hand would do now. Changes nothing.
    pub(crate) fn preview(&mut self, folds: &Folds) -> WindowPreview {
        self.sync(folds);
        let terms = self.terms(folds);
        self.compacting.window.preview(&terms)
    }

    /// What the next request carries, what was left out of it, and why.
    pub(crate) fn report(&mut self, folds: &Folds) -> WindowReport {
        self.sync(folds);
        let terms = self.terms(folds);
        let state = locked(&folds.window);
        self.compacting.window.report(&state, &terms)
    }

    /// Whether something may be pinned besides what is.
    pub(crate) fn check_pin(&mut self, folds: &Folds, target: &PinTarget) -> Result<(), PinRefused> {
        self.sync(folds);
        let terms = self.terms(folds);
        self.compacting.window.check_pin(target, &terms)
    }

    /// What the model may pin with the calls of the step that ended: all that pins may have, less what people pinned.
    pub(crate) fn pin_room(&self, folds: &Folds) -> PinRoom {
        let terms = self.terms(folds);
        let others = self.compacting.window.pinned_by_people();
        PinRoom::new(move |texts| terms.check_texts(texts, others).map_err(|refused| refused.to_string()))
    }
}

fn no_document(failure: Failure) -> Failure {
    let message = format!(
        "No document could be written, and nothing has changed. {} A compaction without a model is the strategy \
         \"deterministic\".",
        failure.message
    );
    Failure { message, ..failure }
}

/// Keeps what a decision wants kept and records it. Whether it was a compaction.
async fn decide(cx: &LoopCx, decision: &Decision) -> Result<bool, Failure> {
    let texts = decision.keeps.iter().map(|keep| keep.text()).collect();
    let kept = cx.door.keep(&cx.session, &cx.folds.state, texts).await;
    let todos = locked(&cx.folds.state).todos.clone();
    let mut events = decision.events(&kept);
    for event in &mut events {
        if let Event::WindowCheckpoint(checkpoint) = event {
            author::add_todos(&mut checkpoint.document, &todos);
        }
    }
    let is_compaction = events.iter().any(|event| matches!(event, Event::CompactionDone(_)));
    tracing::info!(target: "hames::window", session = %cx.session, "{}", decision.line);
    cx.emit.record(events).await?;
    Ok(is_compaction)
}
