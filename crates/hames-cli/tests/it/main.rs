//! The `hames` binary from outside: real processes, a scripted provider over real HTTP, a home and a folder of their own
//! for every test. Others script against what is tested here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approve;
mod catalog;
mod changes;
mod compaction;
mod config;
mod crash;
mod demo;
mod face;
mod guard;
mod kit;
mod output;
mod providers;
mod requests;
mod run;
mod server;
mod session_settings;
mod sessions;
mod signals;
mod tty;
