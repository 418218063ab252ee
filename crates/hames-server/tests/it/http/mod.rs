//! The API over real sockets.

mod alike;
mod door;
mod fuzz;
mod kit;
mod limits;
mod long;
mod rows;
mod streams;
mod unix;
