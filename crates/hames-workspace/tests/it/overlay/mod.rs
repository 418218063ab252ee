//! The overlay: whatever is done to it, it shows what the disk would show, and the disk stays as it is.

mod kit;
mod same;
