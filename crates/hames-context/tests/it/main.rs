//! The window from outside: histories in, requests and decisions out.

#![allow(clippy::unwrap_used)] // helpers of tests fail like tests

mod cases;
mod documents;
mod histories;
mod prefix;
mod support;
mod window;
