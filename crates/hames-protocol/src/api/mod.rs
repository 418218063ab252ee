//! The words of the server's API, `/v1`: what clients send and what they get, over whatever connection.
//!
//! A session's news are the same [`Envelope`](crate::Envelope)s as everywhere else. Bodies are JSON in snake case; times are
//! Unix milliseconds; every refusal is an [`ApiError`]. Additive only: unknown members are ignored, absent ones have defaults.

pub mod endpoint;
mod error;
mod message;
mod run;
mod session;
mod system;

pub use error::*;
pub use message::*;
pub use run::*;
pub use session::*;
pub use system::*;

/// The version of the API a client and a server compare. A newer minor only adds; another major does not talk.
pub const API_VERSION: ApiVersion = ApiVersion { major: 1, minor: 0 };

/// Public fields, serde and schema: what every body of the API has.
macro_rules! api {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fmeta:meta])* $field:ident: $ty:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }
    };
}
use api;
