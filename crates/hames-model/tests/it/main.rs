//! The model client against a raw TCP server of our own: what is sent, what is read, and when it gives up.

#![allow(clippy::unwrap_used)] // a helper that fails here fails its test
mod limits;
mod requests;
mod server;
mod streams;
