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

/// A word of a list that only grows: one that this version does not know is left out, so that everything around it is
/// read all the same.
fn if_known<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    use serde::Deserialize;
    let value = Option::<serde_json::Value>::deserialize(from)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

/// Settings of an answer: those whose values this version knows.
fn known_settings<'de, D: serde::Deserializer<'de>>(from: D) -> Result<crate::Settings, D::Error> {
    use serde::Deserialize;
    use serde::de::Error;
    let alone = |name: &str, value: &serde_json::Value| serde_json::json!({ name: value });
    let mut members = serde_json::Map::<String, serde_json::Value>::deserialize(from)?;
    members.retain(|name, value| serde_json::from_value::<crate::Settings>(alone(name, value)).is_ok());
    serde_json::from_value(members.into()).map_err(D::Error::custom)
}

/// Public fields, serde and schema: what every body of the API has.
macro_rules! api {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fmeta:meta])* $field:ident: $ty:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name { $( $(#[$fmeta])* pub $field: $ty, )* }
    };
}
use api;
