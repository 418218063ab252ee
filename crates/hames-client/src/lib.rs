//! The client of the server's API, for every face.
//!
//! A [`Client`] has a method for each endpoint and is cheap to clone. It talks through a [`Transport`]: a socket
//! ([`Socket`]), or the same router in this process, which `hames-server` supplies; both behave alike, because the same
//! code answers. [`Client::events`] follows a session: it reconnects by itself, goes on behind the last event it gave,
//! and never gives one twice or out of order.
//!
//! [`Finder`] finds the server of a home ([`Place`]), compares versions with it, and starts one through a command that
//! the caller supplies where there is none.
//!
//! It knows the protocol only: no store, no agent, no terminal; it reads neither environment nor home folder.

mod client;
mod error;
mod events;
mod find;
mod place;
mod socket;
mod transport;

pub use client::*;
pub use error::ClientError;
pub use events::{EventStream, News};
pub use find::{Finder, Found, Starter};
pub use place::{Place, PlaceError};
pub use socket::Socket;
pub use transport::{BodyStream, Transport, Upload};
