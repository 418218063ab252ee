//! A question that a tool asks while it runs: recorded before anybody is asked, and its answer before the tool has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use hames_protocol::{CallId, Emit, Failure, QuestionAnswered, QuestionAsked};
use serde_json::json;

use super::{Parts, emit};
use crate::Ask;

/// Asks for one call.
pub(super) struct Asking {
    pub(super) parts: Arc<Parts>,
    pub(super) emit: Arc<dyn Emit>,
    pub(super) call_id: CallId,
    /// Questions the call has asked: two that say the same are two.
    pub(super) asked: AtomicU32,
}

#[async_trait]
impl Ask for Asking {
    async fn ask(&self, text: &str, choices: &[String]) -> Result<Option<String>, Failure> {
        let approver = &self.parts.approver;
        if !approver.can_answer() {
            return Ok(None);
        }
        let _turn = self.parts.asking.lock().await;
        let asked = self.question(text, choices);
        self.emit.record(vec![asked.clone().into()]).await?;
        let answer = approver.answer(&asked).await;
        let (text, by) = answer.clone().unwrap_or_else(|| (String::new(), "nobody".into()));
        let answered = QuestionAnswered { call_id: asked.call_id, text, by, digest: asked.digest };
        self.emit.record(vec![emit::masked(&self.parts.secrets, answered.into())]).await?;
        Ok(answer.map(|(text, _)| text))
    }
}

impl Asking {
    /// The question as it is shown, and what binds an answer to it.
    fn question(&self, text: &str, choices: &[String]) -> QuestionAsked {
        let secrets = &self.parts.secrets;
        let (text, choices): (String, Vec<String>) =
            (secrets.mask(text).into_owned(), choices.iter().map(|choice| secrets.mask(choice).into_owned()).collect());
        let nth = self.asked.fetch_add(1, Ordering::Relaxed);
        let digest = blake3::hash(json!([self.call_id, nth, text, choices]).to_string().as_bytes());
        QuestionAsked { call_id: self.call_id.clone(), text, choices, digest: digest.to_hex().to_string() }
    }
}
