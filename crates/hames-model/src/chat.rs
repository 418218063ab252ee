//! Chat Completions: requests out, answers in.

mod answer;
mod calls;
mod client;
mod content;
mod decode;
mod encode;
mod learning;
mod mend;
mod pace;
mod parameters;
mod reasoning;
mod render;
mod spoken;
mod stream;
mod tags;
mod usage;
mod wire;

pub use client::ChatModel;
pub(crate) use client::refusal;
pub(crate) use encode::Body;
pub(crate) use parameters::{Parameter, Parameters};

/// What the fuzz targets reach.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing {
    pub(crate) use super::content::Reading;
    pub(crate) use super::decode::Decoder;
    pub(crate) use super::spoken::Gate;
    pub(crate) use super::tags::{Piece, Splitter};
}
