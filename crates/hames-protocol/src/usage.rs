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
