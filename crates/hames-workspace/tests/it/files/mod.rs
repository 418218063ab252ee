//! The local filesystem and its tools over real folders.

mod border;
mod deleting;
mod edits;
pub(crate) mod kit;
mod model;
mod paths;
pub(crate) mod pictures;
mod proposing;
mod reading;
mod staging;
mod together;
mod walking;
mod writes;
