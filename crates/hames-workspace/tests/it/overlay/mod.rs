//! The overlay: whatever is done to it, it shows what the disk would show, and the disk stays as it is.

mod applying;
mod kit;
mod names;
mod same;
mod tools;
