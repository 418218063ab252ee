//! The loop, and the recorder around it.
//!
//! [`Agent`] is a pure executor: it is lent a conversation, takes steps until the model has nothing more to do, and
//! hands every event to whoever [`Emit`](hames_protocol::Emit)s for it. It owns no conversation and writes nothing.
//! [`Session`] owns one: it replays the log, recovers what a death left open, and runs the agent with a recorder that
//! appends each durable event before anybody else sees it. The same recorder stands over SQLite and over memory.
//!
//! This crate knows no provider, no tool by name, no terminal and no environment.

mod agent;
mod clock;
mod compaction;
mod frozen;
mod guard;
mod head;
mod journal;
mod overflow;
mod recorder;
mod retry;
mod run_end;
mod run_loop;
mod session;
mod step;

pub use agent::{Agent, AgentParts};
pub use clock::{Clock, SystemClock};
pub use compaction::{Compaction, Fill, OnCompaction, ShouldCompact};
pub use guard::{Guard, StepEnded, Verdict};
pub use head::{run_note, system_text};
pub use journal::Journal;
pub use recorder::{Nobody, Watch};
pub use retry::RetryPolicy;
pub use run_end::RunEnd;
pub use session::{Ports, RunControl, RunInput, Session};
