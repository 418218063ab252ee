//! When a failed request is tried again: only while nothing of the answer was visible, only a few times, and never
//! sooner than the provider asked.

use std::time::Duration;

use hames_protocol::Failure;

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
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 4, first_delay: Duration::from_secs(2), max_delay: Duration::from_secs(30) }
    }
}

impl RetryPolicy {
    /// How long to wait before attempt `attempt + 1`, or `None` where the failure is final. `seed` spreads clients that
    /// failed together: up to a quarter is added.
    pub fn delay(&self, attempt: u32, failure: &Failure, seed: u64) -> Option<Duration> {
        if !failure.retryable || attempt >= self.max_attempts {
            return None;
        }
        if let Some(asked) = failure.retry_after_ms {
            return (asked <= LONGEST_WAIT_MS).then(|| Duration::from_millis(asked));
        }
        let doubled = self.first_delay.saturating_mul(1u32 << (attempt.saturating_sub(1)).min(16)).min(self.max_delay);
        let spread = u32::try_from(seed % 256).unwrap_or(0);
        Some(doubled + doubled * spread / 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hames_protocol::ErrorClass;

    #[test]
    fn waits_double_and_the_providers_word_wins() {
        let policy = RetryPolicy::default();
        let mut failure = Failure::new(ErrorClass::Overloaded, "busy").retryable();
        assert_eq!(policy.delay(1, &failure, 0), Some(Duration::from_secs(2)));
        assert_eq!(policy.delay(3, &failure, 0), Some(Duration::from_secs(8)));
        assert!(policy.delay(3, &failure, 255).unwrap() < Duration::from_secs(10));
        assert_eq!(policy.delay(4, &failure, 0), None);
        failure.retry_after_ms = Some(700);
        assert_eq!(policy.delay(1, &failure, 99), Some(Duration::from_millis(700)));
        failure.retry_after_ms = Some(86_400_000);
        assert_eq!(policy.delay(1, &failure, 0), None);
        failure.retryable = false;
        assert_eq!(policy.delay(1, &failure, 0), None);
    }
}
