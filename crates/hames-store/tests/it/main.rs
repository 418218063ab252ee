//! The store over real files, real processes and real damage.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests fail as tests do")]

mod blobs;
mod branches;
mod cuts;
mod damage;
mod files;
mod grants;
mod kit;
mod leases;
mod log;
mod log_pages;
mod processes;
mod search;
mod sessions;
mod story;
mod tails;
mod together;
mod transfers;
mod upkeep;
mod waiting;
