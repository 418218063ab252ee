//! What a person says, and how it reaches a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BlobRef;

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, kept as a blob.
    Image {
        /// Where the bytes are.
        blob: BlobRef,
        /// `image/png` and the like.
        media_type: String,
        /// The file's name, where it came from one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Part::Text { text: text.into() }
    }
}

/// How a message reaches a session that is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Cut the step and restart the model around the message.
    Interrupt,
    /// Put it in at the next step, cutting nothing.
    Steer,
    /// Start a new run with it when this one ends.
    #[default]
    Queue,
}

impl std::str::FromStr for Delivery {
    type Err = crate::UnknownName;
    fn from_str(text: &str) -> Result<Self, crate::UnknownName> {
        match text.to_ascii_lowercase().as_str() {
            "interrupt" => Ok(Delivery::Interrupt),
            "steer" => Ok(Delivery::Steer),
            "queue" => Ok(Delivery::Queue),
            _ => Err(crate::UnknownName { given: text.into(), allowed: "queue, steer, interrupt" }),
        }
    }
}

/// A message that waits for delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pending {
    /// Its id.
    pub id: crate::PendingId,
    /// What it says.
    pub parts: Vec<Part>,
    /// How it is to be delivered.
    pub delivery: Delivery,
    /// The sender's own id, so that a message sent twice is delivered once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_id: Option<String>,
}
