//! Speaks Chat Completions to models.
//!
//! [`ChatModel`] is a conversation's connection to one model: it renders requests, keeping the bytes of what did not
//! change, sends them over one pooled connection, and gives the answer piece by piece and then whole, with reasoning,
//! calls, usage and failures brought to one form whatever the server's dialect. [`ScriptedModel`] is the same port
//! without a wire, for tests.
//!
//! It never retries what a person has seen, follows no redirect, reads no environment and knows no tool by name.
//!
//! ```no_run
//! use std::sync::Arc;
//! use hames_model::{ChatModel, Endpoint};
//! use hames_protocol::{Head, Item, MemoryBlobs, ModelClient, ModelInfo, Part, RequestOptions, UserItem};
//!
//! # async fn example() -> Result<(), hames_protocol::Failure> {
//! let endpoint = Endpoint::new("local", "http://localhost:8080");
//! let info = ModelInfo::new("local/qwen3".parse().unwrap(), 32_768, 4_096);
//! let mut model = ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default()))?;
//!
//! let head = Arc::new(Head { tools: vec![], system: "Answer in one sentence.".into() });
//! let question = Item::User(UserItem { parts: vec![Part::text("What is a hame?")], ..UserItem::default() });
//! model.prepare(&head, &[Arc::new(question)], &RequestOptions::default()).await?;
//! let mut answer = model.send().await?;
//! while let Some(pieces) = answer.next().await {
//!     println!("{pieces:?}");
//! }
//! println!("{:?}", answer.finish().usage);
//! # Ok(())
//! # }
//! ```

pub mod catalog;
mod chat;
mod endpoint;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
#[allow(missing_docs, clippy::missing_panics_doc)] // for fuzz targets, no interface
pub mod fuzzing;
mod http;
mod learned;
mod models;
mod scripted;
mod url;

pub use chat::ChatModel;
pub use endpoint::{Endpoint, Proxy, Remedies, Secret, ThinkingDialect, Timeouts};
pub use learned::{LearnedFile, LearnedStore, MemoryLearned, ModelAt, NowSeconds};
pub use models::{ModelList, ServerKind, list_models, model_names};
pub use scripted::{Asked, ScriptedModel, ScriptedTurn};
pub use url::chat_url;

/// Bytes one event (or one line) of an answer may have. The largest honest ones are whole images and whole files in one
/// delta; more is a broken or hostile server.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// Cases a property test runs: few by default, more where somebody has time.
#[cfg(test)]
fn proptest_cases() -> u32 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}
