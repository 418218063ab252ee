//! After a request that did not fit: what its refusal says of the window is kept to, then the answer is made shorter where
//! that is enough, else the conversation. The same turn goes out again, at most twice; then the provider's words stand.

use hames_context::{Moment, Ready};
use hames_protocol::{ErrorClass, Event, Failure, Retry, WindowLimited};

use super::Planned;
use crate::Agent;
use crate::overflow::{self, Limit, Overflow, Sent};
use crate::run_loop::LoopCx;
use crate::step::{StepEnd, StepOutcome};

/// Times a turn is sent again. The first makes it fit by what is known then; the second is for what the first refusal
/// did not say.
const MAX_RECOVERIES: u32 = 2;
/// A ratio stated by a refusal is believed up to here, in thousandths.
const MOST_RATIO: u64 = 4_000;

/// One turn's way through refusals, from its first request to the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// Requests that did not fit.
    failed: u32,
    /// Whether the window was made smaller without a number.
    shrunk: bool,
    /// Tokens the answer may have at most.
    pub(crate) output: Option<u64>,
}

/// What came of it.
pub(crate) enum Recovered {
    /// Something is smaller: the same turn may be sent again.
    Again,
    /// Nothing helps.
    No(Failure),
    /// A person or a message came in between.
    Cut,
}

impl Agent {
    /// Makes the next request smaller than the one that did not fit.
    pub(crate) async fn recover(
        &mut self,
        cx: &LoopCx,
        overflow: Overflow,
        sent: &Sent,
        recovery: &mut Recovery,
    ) -> Result<Recovered, Failure> {
        recovery.failed += 1;
        let failure = overflow.failure.clone();
        if recovery.failed > MAX_RECOVERIES {
            return Ok(Recovered::No(failure));
        }
        let is_stated = self.keep_to(cx, &overflow, sent, recovery).await?;
        recovery.output = overflow.lower_output(sent);
        if recovery.output.is_none() {
            let moment = if is_stated && self.has_become_too_large(cx) { Moment::AtBoundary } else { Moment::Overflow };
            let before = self.compacting.window.tokens();
            match self.plan(cx, moment).await? {
                Planned::Cut => return Ok(Recovered::Cut),
                Planned::Refused(refused) => {
                    return Ok(Recovered::No(Failure { provider_message: failure.provider_message, ..refused }));
                }
                Planned::Ready(ready)
                    if self.compacting.window.tokens() < before || ready.max_output_tokens < sent.output => {}
                Planned::Ready(_) | Planned::Nothing => return Ok(Recovered::No(failure)),
            }
        }
        let again = Retry { attempt: recovery.failed, max_attempts: MAX_RECOVERIES + 1, delay_ms: 0, failure };
        cx.emit.record(vec![Event::Retry(again)]).await?;
        Ok(Recovered::Again)
    }

    /// The request that is about to be sent, in numbers.
    pub(crate) fn sent(&self, cx: &LoopCx, ready: Ready, recovery: &Recovery) -> Sent {
        let fill = self.fill(&cx.folds);
        let output = recovery.output.map_or(ready.max_output_tokens, |most| most.min(ready.max_output_tokens));
        Sent { estimate: ready.input_estimate, input: fill.input, output, window: fill.window }
    }

    /// Takes in what an answered request showed of the window.
    pub(crate) async fn learn_of(&mut self, cx: &LoopCx, step: &StepOutcome, sent: &Sent) -> Result<(), Failure> {
        if let StepEnd::Failed(failure) = &step.end
            && failure.class == ErrorClass::ContextOverflow
            && let Some(tokens) = failure.stated.as_ref().and_then(|stated| stated.limit_tokens)
        {
            // It had begun to answer, so nothing is sent again; the next request knows.
            let overflow = Overflow::of_failure(failure);
            if let Some(limit) = overflow.stated(sent).filter(|limit| limit.tokens == tokens) {
                self.limit_window(cx, limit, failure.provider_message.as_deref()).await?;
            }
        }
        if let (Some(input), StepEnd::Whole) = (step.input, &step.end) {
            self.model.window_holds(input).await;
        }
        let Some(counted) = step.counted else { return Ok(()) };
        // The provider counts by now, so what a refusal stated of counting is out of date.
        self.compacting.stated_ratio = 0;
        let now = (sent.estimate, counted);
        let before = self.compacting.counted.replace(now);
        match before.and_then(|before| overflow::observed(before, now, sent.window)) {
            Some(limit) => self.limit_window(cx, limit, None).await,
            None => Ok(()),
        }
    }

    /// Whether what is known of the window by now is reason enough to tidy it.
    fn has_become_too_large(&self, cx: &LoopCx) -> bool {
        let fill = self.fill(&cx.folds);
        fill.input.saturating_add(fill.reserved.min(1_024)) > fill.window
    }

    /// Adopts what an overflow says of the window, or how far the estimate was off. Whether it stated anything.
    async fn keep_to(
        &mut self,
        cx: &LoopCx,
        overflow: &Overflow,
        sent: &Sent,
        recovery: &mut Recovery,
    ) -> Result<bool, Failure> {
        let counted = overflow.counted_input(sent).filter(|counted| *counted > sent.input);
        if let Some(counted) = counted {
            let ratio = counted.saturating_mul(1_000) / sent.estimate.max(1);
            self.compacting.stated_ratio = self.compacting.stated_ratio.max(ratio.min(MOST_RATIO));
        }
        let words = overflow.failure.provider_message.as_deref();
        if let Some(limit) = overflow.stated(sent) {
            self.limit_window(cx, limit, words).await?;
            return Ok(true);
        }
        if let Some(limit) =
            overflow.shrunk(sent, recovery.failed == 1).filter(|_| counted.is_none() && !recovery.shrunk)
        {
            recovery.shrunk = true;
            self.limit_window(cx, limit, words).await?;
        }
        Ok(counted.is_some())
    }

    /// The window is smaller than was thought, for this run and every later one of the session; what a provider stated
    /// is kept for other sessions too.
    pub(crate) async fn limit_window(&mut self, cx: &LoopCx, limit: Limit, words: Option<&str>) -> Result<(), Failure> {
        let before = self.window_tokens();
        if limit.tokens >= before {
            return Ok(());
        }
        self.compacting.limit = Some(limit.tokens);
        let limited = WindowLimited {
            model: self.model.info().model.clone(),
            tokens: limit.tokens,
            before,
            how: limit.how.to_owned(),
            words: words.map(str::to_owned),
        };
        tracing::info!(target: "hames::window", session = %cx.session, how = limit.how, before, "window limited to {}", limit.tokens);
        cx.emit.record(vec![limited.into()]).await?;
        if limit.how == "stated" {
            self.model.limit_window(limit.tokens, words).await;
        }
        Ok(())
    }
}
