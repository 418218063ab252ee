//! What a request may carry: how large it is, how many images, how much room is left for the answer, and the rules
//! every conversation has to keep before it goes on the wire.
//!
//! Pure: no clock, no I/O, no provider. The agent performs what this crate decides.
//!
//! ```
//! use hames_context::{Budget, estimate_tokens};
//! assert_eq!(estimate_tokens("four"), 1);
//! assert_eq!(estimate_tokens("漢字"), 2);
//! let budget = Budget { window: 8_000, wanted_output: 16_384 };
//! assert!(budget.output_for(1_000).unwrap() < 7_000);
//! ```

mod budget;
mod estimate;
mod images;
mod wire_rules;

pub use budget::{Budget, HeadTooLarge};
pub use estimate::{Estimator, estimate_head, estimate_item, estimate_tokens};
pub use images::ImageRoom;
pub use wire_rules::{RuleBroken, WireRule, WireRules};
