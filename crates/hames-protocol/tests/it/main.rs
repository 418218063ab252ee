//! Integration tests of the words, the folds and the in-memory ports.

mod fold;
mod memory;
mod newer;
mod outside;
mod proposals;
mod samples;
mod wire;
