//! The model client against a raw TCP server of our own: what is sent, what is read, and when it gives up. What a strict
//! provider's rules do to a request is shown against the scripted one of the kit.

#![allow(clippy::unwrap_used)] // a helper that fails here fails its test
mod learned;
mod limits;
mod lists;
mod matrix;
mod requests;
mod server;
mod streams;
