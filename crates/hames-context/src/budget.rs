//! How much of a window the answer may use.

/// The share of the window kept free, and its ceiling in tokens: estimates are off by a little.
const MARGIN_SHARE: u64 = 20;
const MARGIN_CEILING: u64 = 8_192;
/// An answer shorter than this is no answer; a head that leaves less is refused.
const MIN_OUTPUT: u64 = 256;
/// The share of the window that is kept for the answer at most, whatever one would like: some models state an output
/// limit as large as their window.
const RESERVE_SHARE: u64 = 4;

/// A window and the answer one would like to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Tokens of the window.
    pub window: u64,
    /// Tokens the answer may have where there is room.
    pub wanted_output: u64,
}

/// The input leaves no room for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request has about {input} tokens and the model's window {window}: there is no room left for an answer")]
pub struct HeadTooLarge {
    /// Estimated tokens of the request.
    pub input: u64,
    /// Tokens of the window.
    pub window: u64,
}

impl Budget {
    /// Tokens kept free because estimates are only estimates.
    pub fn margin(&self) -> u64 {
        (self.window / MARGIN_SHARE).min(MARGIN_CEILING)
    }

    /// Tokens kept for the answer.
    pub fn reserve(&self) -> u64 {
        self.wanted_output.min(self.window / RESERVE_SHARE)
    }

    /// Tokens of the window less those kept for the answer: what shares of the window are shares of.
    pub fn usable(&self) -> u64 {
        self.window - self.reserve()
    }

    /// Tokens a request may have at most: the answer is as short as an answer can be then.
    pub fn most_input(&self) -> u64 {
        self.window.saturating_sub(self.margin()).saturating_sub(MIN_OUTPUT)
    }

    /// Tokens the answer may have so that input, answer and margin fit the window.
    pub fn output_for(&self, input: u64) -> Result<u64, HeadTooLarge> {
        let room = self.window.saturating_sub(self.margin()).saturating_sub(input);
        if room < MIN_OUTPUT {
            return Err(HeadTooLarge { input, window: self.window });
        }
        Ok(room.min(self.wanted_output.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_answer_gets_what_it_wants_or_what_is_left() {
        for (window, wanted, input, expected) in [
            (128_000, 16_384, 1_000, Some(16_384)),
            (128_000, 16_384, 115_000, Some(128_000 - 6_400 - 115_000)),
            (8_000, 16_384, 1_000, Some(8_000 - 400 - 1_000)),
            (2_000_000, 1, 10, Some(1)),
            (8_192, 4_096, 8_000, None),
            (0, 16_384, 0, None),
            (300, 100, 10, Some(100)),
            (32_768, 32_768, 6_000, Some(32_768 - 1_638 - 6_000)),
        ] {
            assert_eq!(
                Budget { window, wanted_output: wanted }.output_for(input).ok(),
                expected,
                "{window} {wanted} {input}"
            );
        }
    }

    proptest! {
        #[test]
        fn input_answer_and_margin_always_fit(window in 0u64..3_000_000, wanted in 0u64..3_000_000, input in 0u64..3_000_000) {
            let budget = Budget { window, wanted_output: wanted };
            if let Ok(output) = budget.output_for(input) {
                prop_assert!(input + output + budget.margin() <= window);
                prop_assert!(output >= 1);
            }
        }
    }
}
