//! Glob and Grep over real folders.

mod answers;
mod kinds;
mod oracle;
mod threads;
