//! When a failed request is tried again: only while nothing of the answer was visible, only a few times, and never
//! sooner than the provider asked.
//!
//! A server that is still loading its model is a case of its own: it will answer, so it is asked for minutes and not
//! for four times. A call that the provider could not read is another: the model is asked once more, at once.

use std::time::Duration;

use hames_protocol::{ErrorClass, Failure};

/// A wait longer than this is not a hiccup; the person is told instead.
const LONGEST_WAIT_MS: u64 = 300_000;

/// How often and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Requests in all, the first one included.
    pub max_attempts: u32,
    /// The first wait; each later one is twice as long.
    pub first_delay: Duration,
    /// The longest wait of our own choosing.
    pub max_delay: Duration,
    /// How long in all to wait for a server that is loading its model.
    pub loading_patience: Duration,
    /// The longest wait between asking such a server; the first is a second, each later one a second more.
    pub loading_delay: Duration,
}

impl Default for RetryPolicy {
    /// Four requests, 2 s doubled up to 30 s; a server that loads is asked for 10 min, in the end every 10 s: a large model
    /// comes from a slow disk at some 100 MB a second.
    fn default() -> Self {
        Self {
            max_attempts: 4,
            first_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(30),
            loading_patience: Duration::from_secs(600),
            loading_delay: Duration::from_secs(10),
        }
    }
}

/// What was tried of one step so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried {
    /// Requests that failed, those to a loading server apart.
    requests: u32,
    /// Requests to a server that was loading its model, and how long they were waited for.
    while_loading: u32,
    loading_ms: u64,
    /// Whether the model was asked again for a call that could not be read.
    resampled: bool,
}

impl Tried {
    /// The attempt that failed last, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.requests.saturating_add(self.while_loading)
    }
}

impl RetryPolicy {
    /// How long to wait before the request is sent again, or `None` where the failure is final; `tried` takes note of it.
    /// `seed` spreads clients that failed together: up to a quarter is added.
    pub(crate) fn delay(&self, tried: &mut Tried, failure: &Failure, seed: u64) -> Option<Duration> {
        if failure.is_loading() {
            return self.while_loading(tried, failure);
        }
        tried.requests += 1;
        if !failure.retryable || tried.requests >= self.max_attempts {
            return None;
        }
        match failure.class {
            // Whoever sends the request has left out or renamed what it could. Where it has just learned more, from a
            // refusal inside a stream, it asks for another try at once.
            ErrorClass::InvalidRequestFixable if failure.retry_after_ms != Some(0) => return None,
            ErrorClass::ToolUseFailed => {
                return (!std::mem::replace(&mut tried.resampled, true)).then_some(Duration::ZERO);
            }
            _ => {}
        }
        if let Some(asked) = failure.retry_after_ms {
            return (asked <= LONGEST_WAIT_MS).then(|| Duration::from_millis(asked));
        }
        let doublings = tried.requests.saturating_sub(1).min(16);
        let doubled = self.first_delay.saturating_mul(1 << doublings).min(self.max_delay);
        let spread = u32::try_from(seed % 256).unwrap_or(0);
        Some(doubled + doubled * spread / 1024)
    }

    /// The same for a server that is loading. It has not begun to answer, so these do not count among the attempts.
    fn while_loading(&self, tried: &mut Tried, failure: &Failure) -> Option<Duration> {
        let asked = failure.retry_after_ms.filter(|asked| *asked <= LONGEST_WAIT_MS).map(Duration::from_millis);
        let second = Duration::from_secs(1);
        let growing = second.saturating_mul(tried.while_loading.saturating_add(1)).min(self.loading_delay);
        // No sooner than a second, whatever was asked: the patience has to end.
        let delay = asked.unwrap_or(growing).max(second);
        let waited = tried.loading_ms.saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        tried.while_loading += 1;
        if u128::from(waited) > self.loading_patience.as_millis() {
            return None;
        }
        tried.loading_ms = waited;
        Some(delay)
    }

    /// Attempts there will be at most, as far as it is known after `failure`.
    pub(crate) fn most(&self, tried: &Tried, failure: &Failure, delay: Duration) -> u32 {
        match failure.class {
            ErrorClass::ToolUseFailed => tried.attempt() + 1,
            _ if failure.is_loading() => {
                let left = self.loading_patience.as_millis().saturating_sub(u128::from(tried.loading_ms));
                let more = left / delay.as_millis().max(1);
                tried.attempt().saturating_add(1).saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
            }
            _ => self.max_attempts.saturating_add(tried.while_loading),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hames_protocol::Stated;

    fn busy() -> Failure {
        Failure::new(ErrorClass::Overloaded, "busy").retryable()
    }

    /// The waits before each further request, until it is given up.
    fn waits(failure: &Failure, seed: u64) -> Vec<Duration> {
        let mut tried = Tried::default();
        std::iter::from_fn(|| RetryPolicy::default().delay(&mut tried, failure, seed)).take(1_000).collect()
    }

    #[test]
    fn waits_double_and_the_providers_word_wins() {
        assert_eq!(waits(&busy(), 0), [2, 4, 8].map(Duration::from_secs));
        assert!(waits(&busy(), 255)[2] < Duration::from_secs(10));
        let asks = |ms| Failure { retry_after_ms: Some(ms), ..busy() };
        assert_eq!(waits(&asks(700), 99), [Duration::from_millis(700); 3]);
        assert_eq!(waits(&asks(86_400_000), 0), []);
        assert_eq!(waits(&Failure { retryable: false, ..busy() }, 0), []);
    }

    #[test]
    fn a_call_that_could_not_be_read_is_asked_for_once_more_and_at_once() {
        let failure = Failure::new(ErrorClass::ToolUseFailed, "no").retryable();
        assert_eq!(waits(&failure, 7), [Duration::ZERO]);
        // Also between other failures, and not once for each of them.
        let mut tried = Tried::default();
        let policy = RetryPolicy::default();
        assert!(policy.delay(&mut tried, &busy(), 0).is_some());
        assert!(policy.delay(&mut tried, &failure, 0).is_some());
        assert!(policy.delay(&mut tried, &failure, 0).is_none());
    }

    #[test]
    fn what_could_be_mended_has_been_before_it_comes_here() {
        let fixable = Failure::new(ErrorClass::InvalidRequestFixable, "no").retryable();
        assert_eq!(waits(&fixable, 0), []);
        assert_eq!(waits(&Failure { retry_after_ms: Some(500), ..fixable.clone() }, 0), []);
        assert_eq!(waits(&Failure { retry_after_ms: Some(0), ..fixable }, 0), [Duration::ZERO; 3]);
    }

    #[test]
    fn a_server_that_loads_its_model_is_waited_for() {
        let loading = Failure { stated: Some(Box::new(Stated { is_loading: true, ..Stated::default() })), ..busy() };
        let all = waits(&loading, 3);
        assert_eq!(all[..11], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10].map(Duration::from_secs));
        assert_eq!((all.len(), all.iter().sum()), (64, Duration::from_secs(595)));
        // A server that asks for no wait at all is not asked without a pause, nor for ever.
        assert_eq!(waits(&Failure { retry_after_ms: Some(0), ..loading.clone() }, 3).len(), 600);
        // What fails after that has all its attempts.
        let mut tried = Tried::default();
        let policy = RetryPolicy::default();
        for at in 1..=5 {
            let delay = policy.delay(&mut tried, &loading, 0).unwrap();
            assert_eq!(tried.attempt(), at);
            assert!(policy.most(&tried, &loading, delay) > at);
        }
        let rest: Vec<_> = std::iter::from_fn(|| policy.delay(&mut tried, &busy(), 0)).collect();
        assert_eq!((rest.len(), policy.most(&tried, &busy(), rest[0])), (3, 9));
    }
}
