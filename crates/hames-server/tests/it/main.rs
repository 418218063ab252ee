//! The server from outside: real sockets, a real store.

mod http;
