//! Parts, driven by keys and drawn.

mod confirm;
mod field;
mod list;
mod scroll;
