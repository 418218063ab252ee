//! Integration tests of the words, the folds and the in-memory ports.

mod fold;
mod memory;
mod samples;
mod wire;
