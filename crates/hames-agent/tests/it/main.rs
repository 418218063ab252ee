//! Sessions, runs and steps over stand-ins.

#![allow(clippy::unwrap_used)] // in a test a panic is the report
#![allow(clippy::print_stdout)] // what was counted is printed for whoever looks

mod abort;
mod barrier;
mod beside;
mod changes;
mod facts;
mod guard;
mod inbox;
mod learned;
mod limits;
mod long;
mod long_cases;
mod long_moments;
mod open_step;
mod order;
mod overflow;
mod recovery;
mod retry;
mod soak;
mod storage;
mod streams;
mod support;
mod whole;
mod wire;
