//! The door, driven with tools, files and a log that live in memory.

#![allow(clippy::unwrap_used)] // the exemption for tests covers test functions only, not their helpers

mod admission;
mod approval;
mod asking;
mod ending;
mod kit;
mod order;
mod results;
