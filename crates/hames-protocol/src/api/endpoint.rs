//! What there is under `/v1`: one table, from which the OpenAPI document is generated, and which the router and the client
//! are held to.

mod table;

use schemars::{Schema, SchemaGenerator};

use super::ApiErrorCode;

pub use table::ENDPOINTS;

/// Bytes a body of JSON may have: a message with long pasted texts.
pub const MAX_JSON_BODY: usize = 16 * 1024 * 1024;

/// Bytes an attachment may have.
pub const MAX_ATTACHMENT: usize = 64 * 1024 * 1024;

/// Bytes of a blob that one answer holds at most.
pub const MAX_BLOB_PIECE: u64 = 16 * 1024 * 1024;

/// The methods that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// Looks; changes nothing.
    Get,
    /// Does something.
    Post,
    /// Changes what is given.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// Upper case, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// The method.
    pub method: Method,
    /// The path, names of parameters in braces.
    pub path: &'static str,
    /// A name in snake case, unique.
    pub name: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// Parameters behind the question mark.
    pub query: &'static [Parameter],
    /// What is sent.
    pub body: Body,
    /// What is answered.
    pub answer: Answer,
    /// Refusals of its own, besides those that every endpoint has.
    pub refusals: &'static [ApiErrorCode],
}

/// Refusals that every endpoint has.
pub const COMMON_REFUSALS: [ApiErrorCode; 9] = [
    ApiErrorCode::Invalid,
    ApiErrorCode::Unauthorized,
    ApiErrorCode::Forbidden,
    ApiErrorCode::NotFound,
    ApiErrorCode::TooLarge,
    ApiErrorCode::UnsupportedMediaType,
    ApiErrorCode::Internal,
    ApiErrorCode::Stopping,
    ApiErrorCode::Storage,
];

impl Endpoint {
    /// Names of the parameters in the path, in order.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// A parameter behind the question mark.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub is_required: bool,
    /// What it may be.
    pub kind: ParameterKind,
    /// One sentence for people.
    pub summary: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    /// Text of up to 4096 bytes.
    Text,
    /// A number from `min` to `max`.
    Number {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// What counts where it is absent.
        default: Option<u64>,
    },
}

/// Bytes a parameter of the path may have.
pub const MAX_SEGMENT: usize = 512;

/// Bytes a parameter may have.
pub const MAX_PARAMETER: usize = 4096;

/// A type of the protocol.
#[derive(Clone, Copy)]
pub struct TypeOf {
    /// Its name.
    pub name: fn() -> String,
    /// Its schema.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl TypeOf {
    /// This type.
    pub const fn new<T: schemars::JsonSchema>() -> Self {
        Self { name: || T::schema_name().into_owned(), schema: SchemaGenerator::subschema_for::<T> }
    }
}

impl std::fmt::Debug for TypeOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&(self.name)())
    }
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Nothing.
    Nothing,
    /// JSON, up to [`MAX_JSON_BODY`].
    Json(TypeOf),
    /// Bytes of any kind, up to `max`.
    Bytes {
        /// The limit.
        max: usize,
    },
    /// Lines of JSON, without a limit: they are taken in as they come.
    Lines,
}

/// What is answered.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// 204.
    Nothing,
    /// JSON.
    Json(TypeOf),
    /// Bytes.
    Bytes,
    /// Lines of JSON as they come.
    Lines,
    /// Server-sent events, each with an [`Envelope`](crate::Envelope).
    Events,
}
