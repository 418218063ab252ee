//! What a step cost: tokens, money, time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of one step, or summed over several. `None` means the provider did not say; zero means it said zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the whole input, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens generated, reasoning included where the provider counts it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Input tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Input tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Output tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Adds another step's usage: a known number plus an unknown one stays the known one.
    pub fn add(&mut self, other: &Usage) {
        fn plus(a: &mut Option<u64>, b: Option<u64>) {
            if let Some(b) = b {
                *a = Some(a.unwrap_or(0).saturating_add(b));
            }
        }
        plus(&mut self.input, other.input);
        plus(&mut self.output, other.output);
        plus(&mut self.cache_read, other.cache_read);
        plus(&mut self.cache_write, other.cache_write);
        plus(&mut self.reasoning, other.reasoning);
    }
}

/// Money in millionths of a unit of `currency`. Absent where neither provider nor price list states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Millionths of the currency's unit.
    pub micros: u64,
    /// ISO 4217 code.
    pub currency: String,
    /// Whether it was computed from a price list; absent where the provider stated it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub computed: bool,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Tokens that a [`Rates`] is the price of.
const RATED_TOKENS: u128 = 1_000_000;

/// What a million tokens cost, in millionths of a US dollar: 2.50 dollars are 2,500,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Input that was not read from a cache.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from the provider's cache; the rate of other input where unset.
    pub cache_read: Option<u64>,
    /// Input written to the provider's cache; the rate of other input where unset.
    pub cache_write: Option<u64>,
}

/// What a model charges. A model whose price nobody knows has none: that is not the same as one that is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// The rates of an ordinary request.
    pub rates: Rates,
    /// Rates of requests whose whole input has more than so many tokens, smallest first.
    pub tiers: Vec<(u64, Rates)>,
}

impl Price {
    /// What a request with this usage costs. `None` where the provider did not count both input and output.
    pub fn cost(&self, usage: &Usage) -> Option<Cost> {
        let (input, output) = (usage.input?, usage.output?);
        let rates = self.tiers.iter().rev().find(|(above, _)| input > *above).map_or(&self.rates, |(_, rates)| rates);
        let read = usage.cache_read.unwrap_or(0).min(input);
        let written = usage.cache_write.unwrap_or(0).min(input - read);
        let sum = [
            (input - read - written, rates.input),
            (read, rates.cache_read.unwrap_or(rates.input)),
            (written, rates.cache_write.unwrap_or(rates.input)),
            (output, rates.output),
        ]
        .iter()
        .map(|(tokens, rate)| u128::from(*tokens).saturating_mul(u128::from(*rate)))
        .fold(RATED_TOKENS / 2, u128::saturating_add);
        let micros = u64::try_from(sum / RATED_TOKENS).ok()?;
        Some(Cost { micros, currency: "USD".into(), computed: true })
    }
}

/// Where a step's time went, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// From sending the request to the first delta a person can see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// From sending the request to the end of the stream.
    pub total_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, cache_read: Option<u64>, cache_write: Option<u64>) -> Usage {
        Usage { input: Some(input), output: Some(output), cache_read, cache_write, reasoning: None }
    }

    #[test]
    fn a_cost_is_computed_from_what_each_kind_of_token_costs() {
        // 2.50 in, 15.00 out, 0.25 from the cache; twice as much above 200,000 tokens.
        let base = Rates { input: 2_500_000, output: 15_000_000, cache_read: Some(250_000), cache_write: None };
        let large = Rates { input: 5_000_000, output: 30_000_000, cache_read: Some(500_000), cache_write: None };
        let price = Price { rates: base, tiers: vec![(200_000, large)] };
        let free = Price::default();
        let unknown = |input, output| Usage { input, output, ..Usage::default() };
        for (price, usage, micros) in [
            (&price, usage(1_000_000 / 10, 0, None, None), Some(250_000)),
            (&price, usage(1_000, 100, None, None), Some(2_500 + 1_500)),
            (&price, usage(1_000, 100, Some(800), None), Some(500 + 200 + 1_500)),
            // No rate for writing: that of other input.
            (&price, usage(1_000, 0, Some(500), Some(500)), Some(125 + 1_250)),
            (&price, usage(200_000, 1, None, None), Some(500_015)),
            (&price, usage(200_001, 1, None, None), Some(1_000_035)),
            // More cached than there is input: a provider that counts them apart.
            (&price, usage(1_000, 0, Some(5_000), Some(5_000)), Some(250)),
            (&price, usage(1, 0, None, None), Some(3)),
            (&price, usage(0, 0, None, None), Some(0)),
            (&free, usage(1_000, 1_000, None, None), Some(0)),
            (&price, unknown(Some(1), None), None),
            (&price, unknown(None, Some(1)), None),
            (&price, usage(u64::MAX, u64::MAX, None, None), None),
        ] {
            let cost = price.cost(&usage);
            assert_eq!(cost.as_ref().map(|cost| cost.micros), micros, "{usage:?}");
            assert!(cost.is_none_or(|cost| cost.computed && cost.currency == "USD"));
        }
    }
}
