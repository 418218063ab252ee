//! Integration tests of the workspace crate.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test a panic or a line is the report

mod shell;
