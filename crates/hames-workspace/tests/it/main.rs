//! Integration tests of the workspace: real files, real processes.
#![allow(clippy::unwrap_used)] // a test that cannot go on says where

mod bench;
mod files;
mod search;
mod search_kinds;
mod search_oracle;
mod todo;
