//! The store over real files, real processes and real damage.

mod blobs;
mod damage;
mod kit;
mod leases;
mod log;
mod processes;
mod search;
mod sessions;
