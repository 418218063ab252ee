//! Integration tests of the workspace: real files, real processes.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // in a test a panic or a line is the report

mod bench;
mod files;
mod overlay;
mod recall;
mod search;
mod shell;
mod todo;
mod web;
