//! A closure as the one who is asked.

use async_trait::async_trait;
use hames_protocol::{ApprovalAsked, Approver, Decision};

/// Asks a function, and records that a callback decided.
pub(crate) struct Callback<F>(pub(crate) F);

#[async_trait]
impl<F, Answer, D> Approver for Callback<F>
where
    F: Fn(ApprovalAsked) -> Answer + Send + Sync,
    Answer: Future<Output = D> + Send,
    D: Into<Decision>,
{
    async fn decide(&self, asked: &ApprovalAsked) -> Option<(Decision, String)> {
        let decision = (self.0)(asked.clone()).await.into();
        Some((decision, "callback".to_owned()))
    }
}
