//! Chat Completions: requests out, answers in.

mod answer;
mod calls;
mod client;
mod content;
mod decode;
mod encode;
mod learning;
mod mend;
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
