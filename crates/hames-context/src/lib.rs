//! What a request carries: how large it is, how much room is left for the answer, what has to leave the window and what
//! stands in its place, and the rules every conversation has to keep before it goes on the wire.
//!
//! Pure: no clock, no I/O, no provider. The agent performs what this crate decides.
//!
//! ```
//! use hames_context::{Budget, Moment, Plan, Terms, Window};
//! use hames_protocol::{Event, MessageUser, Part, Transcript, WindowState};
//! let mut transcript = Transcript::default();
//! transcript.apply(&Event::from(MessageUser {
//!     parts: vec![Part::text("Hello.")],
//!     delivery: None, pending_id: None, idempotency_id: None, note: None,
//! }));
//! let mut window = Window::new(None);
//! window.sync(&transcript, &WindowState::default());
//! let terms = Terms::new(Budget { window: 8_000, wanted_output: 16_384 }, 1_000);
//! let Plan::Ready(ready) = window.plan(Moment::BeforeRequest, &terms) else { panic!() };
//! assert!(ready.max_output_tokens < 7_000);
//! assert_eq!(window.items().len(), 1);
//! ```

mod budget;
mod estimate;
mod images;
mod policy;
mod strategy;
mod window;
mod wire_rules;

pub use budget::{Budget, HeadTooLarge};
pub use estimate::{Counted, Estimator, estimate_head, estimate_item, estimate_tokens};
pub use images::ImageRoom;
pub use policy::{DEFAULT_LANDING, DEFAULT_TRIGGER, Policy, Terms};
pub use strategy::{Author, Carried, Choice, Deterministic, Moment, PruneThenSummarize, Situation, Sketch, Strategy};
pub use window::{Decision, Keep, PinRefused, Plan, Ready, Refused, SummaryAnswer, SummaryRequest, Window};
pub use wire_rules::{RuleBroken, WireRule, WireRules};
