//! The provider as a client meets it, over real sockets.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod chaos;
mod client;
mod delivery;
mod faults;
mod http;
mod rules;
