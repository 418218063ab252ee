//! Loops, and work that only looks like one.

mod play;
mod reactions;
mod recorded;
mod traces;
