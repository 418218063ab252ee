//! The client against servers that are made to fail: real sockets, connections cut at any byte.

mod find;
mod follow;
mod rows;
mod server;
