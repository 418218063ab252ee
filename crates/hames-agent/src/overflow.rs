//! Whether a request did not fit, and what its refusal says about the window.
//!
//! Most providers say so in words; what those mean is read where refusals are read. Here is what only whoever sent the
//! request can know: that an answer of nothing, or a refusal of nothing in particular, came to a request that was nearly as
//! large as the window. Pure: numbers in, a verdict out.

use hames_context::Budget;
use hames_protocol::{Completion, ErrorClass, Failure};

/// A window smaller than this is no window: the number means something else.
const LEAST_LIMIT: u64 = 1_024;
/// Percent of the window from which an unexplained refusal is taken for an overflow.
const NEARLY_FULL: u64 = 90;
/// Percent of the window that a reading of the input has to have where a server reads no more than fits.
const FULL: u64 = 99;
/// Percent of a failed request's own estimate that the window is taken to have where nobody says a number.
const SHRUNK: u64 = 95;
/// Percent by which a stated limit may be above what was asked for, by the provider's own count, and still explain a
/// refusal.
const COUNTING_SLACK: u64 = 105;

/// A request, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Of its input, as estimated.
    pub(crate) estimate: u64,
    /// Of its input, as the provider is expected to count.
    pub(crate) input: u64,
    /// Of the answer it allowed.
    pub(crate) output: u64,
    /// Of the window it was made for.
    pub(crate) window: u64,
}

impl Sent {
    /// Whether so much of the window was taken that it may have been too much.
    fn is_nearly_full(&self) -> bool {
        self.input.saturating_mul(100) >= self.window.saturating_mul(NEARLY_FULL)
    }
}

/// A request that did not fit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Overflow {
    /// What is said where nothing helps.
    pub(crate) failure: Failure,
    /// Tokens of the window, as the provider states it.
    pub(crate) limit: Option<u64>,
    /// Tokens of input and answer, as the provider counted.
    pub(crate) requested: Option<u64>,
    /// Of those, the input.
    pub(crate) input: Option<u64>,
    /// Whether it was too much to take in at all, in bytes or messages: that says nothing about the window.
    pub(crate) is_of_bytes: bool,
}

/// Whether a failure that may be tried again should rather be taken for an overflow: the same refusal for the rate of
/// requests a second time, or nothing at all, to a request that nearly filled the window.
pub(crate) fn is_suspect(failure: &Failure, before: Option<&Failure>, sent: &Sent) -> bool {
    let same = |before: &Failure| before.class == failure.class && before.provider_message == failure.provider_message;
    sent.is_nearly_full()
        && match failure.class {
            ErrorClass::RateLimit => before.is_some_and(same),
            ErrorClass::StreamIncomplete => failure.status.is_none(),
            _ => false,
        }
}

/// Reads what a request came to. `is_suspect` is what [`is_suspect`] said of it.
pub(crate) fn read(completion: &Completion, seen: bool, is_suspect: bool, sent: &Sent) -> Option<Overflow> {
    if seen {
        return None;
    }
    match &completion.failure {
        Some(failure) => {
            let is_vague =
                matches!(failure.status, Some(400 | 413 | 422)) && failure.class == ErrorClass::InvalidRequest;
            let did_not_fit =
                failure.class == ErrorClass::ContextOverflow || is_suspect || (is_vague && sent.is_nearly_full());
            did_not_fit.then(|| Overflow::of_failure(failure))
        }
        None => is_silent(completion, sent)
            .then(|| Overflow { limit: read_whole(completion), ..Overflow::of_failure(&silent(sent)) }),
    }
}

/// The window, where an answer ended for its length before it began: the input that was read is all there is room for.
fn read_whole(completion: &Completion) -> Option<u64> {
    let usage = completion.usage.as_ref()?;
    let ended_at_once = completion.finish_reason.as_deref() == Some("length") && usage.output == Some(0);
    usage.input.filter(|_| ended_at_once)
}

/// An answer of nothing: the input took the whole window, or was cut to it.
fn is_silent(completion: &Completion, sent: &Sent) -> bool {
    let usage = completion.usage.clone().unwrap_or_default();
    let filled = usage.input.is_some_and(|input| input.saturating_mul(100) >= sent.window.saturating_mul(FULL));
    match completion.finish_reason.as_deref() {
        // Some room for an answer was asked for, so it was not that which ran out.
        Some("length") if usage.output == Some(0) && usage.input.is_some() => true,
        Some("length") => usage.output.unwrap_or(0) == 0 && (filled || sent.is_nearly_full()),
        Some("content_filter" | "error") => false,
        _ => sent.is_nearly_full() || filled,
    }
}

fn silent(sent: &Sent) -> Failure {
    Failure::new(
        ErrorClass::ContextOverflow,
        format!(
            "The provider answered nothing to a request of about {} tokens, which is nearly all of the model's window of {}. \
             Start a new session, or use a model with a larger window.",
            sent.input, sent.window
        ),
    )
}

/// A window that is smaller than was thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) tokens: u64,
    /// `stated`, `estimated` or `observed`, as the event says.
    pub(crate) how: &'static str,
}

impl Overflow {
    /// What a failure states.
    pub(crate) fn of_failure(failure: &Failure) -> Self {
        let stated = failure.stated.as_deref().cloned().unwrap_or_default();
        // What an unexplained refusal states is of something else.
        let is_stated = failure.class == ErrorClass::ContextOverflow;
        let number = |number: Option<u64>| number.filter(|_| is_stated);
        Self {
            failure: failure.clone(),
            limit: number(stated.limit_tokens),
            requested: number(stated.requested_tokens),
            input: number(stated.input_tokens),
            is_of_bytes: stated.not_in_tokens,
        }
    }

    /// The window by the provider's own word. Never more than was thought, and nothing that cannot be meant.
    pub(crate) fn stated(&self, sent: &Sent) -> Option<Limit> {
        let tokens = self.limit.filter(|limit| (LEAST_LIMIT..sent.window).contains(limit))?;
        let explains =
            self.requested.is_none_or(|asked| tokens.saturating_mul(100) < asked.saturating_mul(COUNTING_SLACK));
        explains.then_some(Limit { tokens, how: "stated" })
    }

    /// The window where nobody says a number: less than what was refused.
    pub(crate) fn shrunk(&self, sent: &Sent, is_first: bool) -> Option<Limit> {
        // Too many bytes may be one image; what is refused again without it is too long.
        if (self.is_of_bytes && is_first) || self.limit.is_some() {
            return None;
        }
        let tokens = sent.window.min(sent.input.saturating_mul(SHRUNK) / 100);
        (LEAST_LIMIT..sent.window).contains(&tokens).then_some(Limit { tokens, how: "estimated" })
    }

    /// The input as the provider counted it.
    pub(crate) fn counted_input(&self, sent: &Sent) -> Option<u64> {
        // Where only a sum is stated, the answer that was allowed is part of it, unless only the input was refused.
        let of_sum = |asked: u64| match asked.checked_sub(sent.output) {
            Some(input) if input.saturating_mul(2) >= sent.input => input,
            _ => asked,
        };
        self.input.or_else(|| self.requested.map(of_sum))
    }

    /// Tokens the answer may have so that the input fits as it is; nothing where the input alone is too much.
    pub(crate) fn lower_output(&self, sent: &Sent) -> Option<u64> {
        let limit = self.limit?;
        let input = self.counted_input(sent)?;
        let margin = Budget { window: limit, wanted_output: 0 }.margin() / 4;
        let output = limit.checked_sub(input)?.checked_sub(margin)?;
        (LEAST_ANSWER..sent.output).contains(&output).then_some(output)
    }
}

/// An answer shorter than this is not worth asking for: then the input has to become smaller.
const LEAST_ANSWER: u64 = 256;

/// The window a server shows that reads no more than fits and says nothing: the same count twice, to a request that has
/// grown since. Two pairs of estimate and count, the older first.
pub(crate) fn observed(before: (u64, u64), now: (u64, u64), window: u64) -> Option<Limit> {
    let ((estimate_before, counted_before), (estimate, counted)) = (before, now);
    let has_grown = estimate.saturating_mul(100) >= estimate_before.saturating_mul(105);
    let is_same = counted.abs_diff(counted_before).saturating_mul(100) <= counted_before;
    let is_less = counted.saturating_mul(100) < estimate.saturating_mul(95);
    let tokens = counted.max(counted_before);
    (has_grown && is_same && is_less && (LEAST_LIMIT..window).contains(&tokens))
        .then_some(Limit { tokens, how: "observed" })
}

#[cfg(test)]
mod tests {
    use hames_protocol::{Stated, Usage};

    use super::*;

    const SENT: Sent = Sent { estimate: 30_000, input: 30_000, output: 4_000, window: 32_000 };
    const EARLY: Sent = Sent { estimate: 3_000, input: 3_000, output: 4_000, window: 32_000 };

    fn refused(class: ErrorClass, status: u16, numbers: [Option<u64>; 3]) -> Failure {
        let [limit_tokens, requested_tokens, input_tokens] = numbers;
        let stated = Stated { limit_tokens, requested_tokens, input_tokens, ..Stated::default() };
        Failure { status: Some(status), stated: Some(Box::new(stated)), ..Failure::new(class, "no") }
    }

    fn failed(failure: Failure) -> Completion {
        Completion { failure: Some(failure), ..Completion::default() }
    }

    fn ended(reason: Option<&str>, input: Option<u64>, output: Option<u64>) -> Completion {
        let usage = Usage { input, output, ..Usage::default() };
        Completion {
            finish_reason: reason.map(str::to_owned),
            usage: Some(usage),
            done_marker: true,
            ..Completion::default()
        }
    }

    #[test]
    fn what_is_refused_for_its_size_or_for_nothing_near_the_limit_did_not_fit() {
        use ErrorClass::*;
        let none = [None; 3];
        for (completion, near, early) in [
            (failed(refused(ContextOverflow, 400, none)), true, true),
            (failed(refused(InvalidRequest, 400, none)), true, false),
            (failed(refused(InvalidRequest, 422, none)), true, false),
            (failed(refused(InvalidRequest, 404, none)), false, false),
            (failed(refused(Auth, 400, none)), false, false),
            (failed(refused(WireRule, 400, none)), false, false),
            (failed(refused(ServerError, 500, none)), false, false),
            (failed(refused(RateLimit, 429, none)), false, false),
            (ended(Some("length"), Some(31_900), Some(0)), true, true),
            (ended(Some("length"), Some(9_000), Some(0)), true, true),
            (ended(Some("length"), Some(9_000), None), true, false),
            (ended(Some("length"), Some(9_000), Some(7)), false, false),
            (ended(Some("stop"), None, None), true, false),
            (ended(None, None, None), true, false),
            (ended(Some("content_filter"), None, None), false, false),
        ] {
            assert_eq!(read(&completion, false, false, &SENT).is_some(), near, "{completion:?}");
            assert_eq!(read(&completion, false, false, &EARLY).is_some(), early, "{completion:?}");
            assert_eq!(read(&completion, true, false, &SENT), None, "what was seen stays: {completion:?}");
        }
    }

    #[test]
    fn a_second_refusal_for_the_rate_is_suspect_only_near_the_limit() {
        let busy = refused(ErrorClass::RateLimit, 429, [None; 3]);
        let other = Failure { provider_message: Some("other".into()), ..busy.clone() };
        let empty = Failure::new(ErrorClass::StreamIncomplete, "the answer was empty").retryable();
        for (failure, before, near) in
            [(&busy, None, false), (&busy, Some(&busy), true), (&busy, Some(&other), false), (&empty, None, true)]
        {
            assert_eq!(is_suspect(failure, before, &SENT), near, "{failure:?} {before:?}");
            assert!(!is_suspect(failure, before, &EARLY));
        }
        assert!(read(&failed(busy.clone()), false, true, &SENT).is_some());
    }

    #[test]
    fn a_stated_limit_is_taken_where_it_can_be_meant() {
        let limit = |limit, asked| {
            let failure = refused(ErrorClass::ContextOverflow, 400, [Some(limit), asked, None]);
            Overflow::of_failure(&failure).stated(&SENT).map(|limit| limit.tokens)
        };
        assert_eq!(limit(8_192, Some(9_000)), Some(8_192));
        assert_eq!(limit(8_192, None), Some(8_192));
        assert_eq!(limit(1_024, None), Some(1_024));
        assert_eq!(limit(1_000, None), None, "no window is so small");
        assert_eq!(limit(32_000, Some(33_000)), None, "nothing new");
        assert_eq!(limit(64_000, Some(70_000)), None, "a window is never raised");
        assert_eq!(limit(8_192, Some(8_000)), Some(8_192), "counted a little otherwise");
        assert_eq!(limit(8_192, Some(5_000)), None, "not what was refused");
    }

    #[test]
    fn without_a_number_the_window_is_less_than_what_was_refused() {
        let overflow = |status, limit, not_in_tokens| {
            let mut failure = refused(ErrorClass::ContextOverflow, status, [limit, None, None]);
            failure.stated = failure.stated.map(|stated| Box::new(Stated { not_in_tokens, ..*stated }));
            Overflow::of_failure(&failure)
        };
        let less = Some(Limit { tokens: 28_500, how: "estimated" });
        assert_eq!(overflow(400, None, false).shrunk(&SENT, true), less);
        assert_eq!(overflow(413, None, false).shrunk(&SENT, true), less, "nobody says that it is bytes");
        assert_eq!(overflow(413, None, true).shrunk(&SENT, true), None, "bytes are no tokens");
        assert_eq!(overflow(400, None, true).shrunk(&SENT, true), None, "whatever the status");
        assert_eq!(overflow(413, None, true).shrunk(&SENT, false), less);
        assert_eq!(overflow(400, Some(32_000), false).shrunk(&SENT, true), None);
        let tiny = Sent { input: 900, ..EARLY };
        assert_eq!(overflow(400, None, false).shrunk(&tiny, true), None);
    }

    #[test]
    fn the_answer_is_made_shorter_first_where_that_is_enough() {
        let lower = |numbers, sent: &Sent| {
            Overflow::of_failure(&refused(ErrorClass::ContextOverflow, 400, numbers)).lower_output(sent)
        };
        let sent = Sent { estimate: 2_700, input: 2_700, output: 8_000, window: 128_000 };
        // vLLM: 8,000 wanted, 4,096 in all, 2,778 of input.
        assert_eq!(lower([Some(4_096), Some(10_778), Some(2_778)], &sent), Some(4_096 - 2_778 - 51));
        // Only the sum is known.
        assert_eq!(lower([Some(4_096), Some(10_778), None], &sent), Some(4_096 - 2_778 - 51));
        // The input alone is too much, or leaves no answer.
        assert_eq!(lower([Some(4_096), Some(12_100), Some(4_100)], &sent), None);
        assert_eq!(lower([Some(4_096), Some(11_900), Some(3_900)], &sent), None);
        assert_eq!(lower([Some(4_096), None, None], &sent), None);
        assert_eq!(lower([None, Some(10_778), Some(2_778)], &sent), None);
    }

    #[test]
    fn a_server_that_cuts_silently_is_seen_by_its_count_standing_still() {
        let window = 128_000;
        assert_eq!(observed((2_200, 2_048), (2_600, 2_048), window), Some(Limit { tokens: 2_048, how: "observed" }));
        for (before, now) in [
            ((2_000, 2_000), (2_600, 2_600)),
            ((2_200, 2_048), (2_210, 2_048)),
            // Only what was not cached is counted.
            ((2_200, 2_048), (2_600, 400)),
            ((600, 500), (900, 500)),
        ] {
            assert_eq!(observed(before, now, window), None, "{before:?} {now:?}");
        }
        assert_eq!(observed((2_200, 2_048), (2_600, 2_048), 2_048), None);
    }
}
