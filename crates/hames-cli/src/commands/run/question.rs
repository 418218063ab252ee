//! A question of a run in the server, as it stands at this terminal: about a call, or a tool's own. Whoever answers first
//! answers it, so it stands only until its event says that, or its call is over.

use std::pin::Pin;
use std::sync::Arc;

use hames_protocol::{Approver, CallId, Decision, Event};

/// What somebody at this terminal answered, and who.
pub(super) enum Given {
    Decision(Decision, String),
    Text(String, String),
}

/// A question that stands at this terminal.
pub(super) struct Question {
    pub(super) call: CallId,
    pub(super) digest: String,
    answer: Pin<Box<dyn Future<Output = Option<Given>> + Send>>,
}

impl Question {
    /// What an event asks.
    pub(super) fn of(event: &Event, person: &Arc<dyn Approver>) -> Option<Question> {
        let person = Arc::clone(person);
        match event {
            Event::ApprovalAsked(asked) => {
                let (call, digest, asked) = (asked.call_id.clone(), asked.digest.clone(), asked.clone());
                let answer = async move { person.decide(&asked).await.map(|(given, by)| Given::Decision(given, by)) };
                Some(Question { call, digest, answer: Box::pin(answer) })
            }
            Event::QuestionAsked(asked) => {
                let (call, digest, asked) = (asked.call_id.clone(), asked.digest.clone(), asked.clone());
                let answer = async move { person.answer(&asked).await.map(|(given, by)| Given::Text(given, by)) };
                Some(Question { call, digest, answer: Box::pin(answer) })
            }
            _ => None,
        }
    }

    /// Whether nobody has to answer it any more: somebody was faster, or its call is over.
    pub(super) fn is_settled_by(&self, event: &Event) -> bool {
        let of = match event {
            Event::ApprovalAnswered(answered) => &answered.call_id,
            Event::QuestionAnswered(answered) => &answered.call_id,
            Event::ToolDone(done) => &done.call_id,
            Event::ToolError(error) => &error.call_id,
            _ => return false,
        };
        *of == self.call
    }
}

/// What is answered to the question that stands; never anything where none does.
pub(super) async fn given_to(question: &mut Option<Question>) -> Option<Given> {
    match question {
        Some(question) => question.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use hames_protocol::{ApprovalAsked, QuestionAnswered, QuestionAsked, ToolError, ToolErrorClass};

    use super::*;

    /// Says no to calls, and its name to questions.
    struct Ada;

    #[async_trait]
    impl Approver for Ada {
        async fn decide(&self, _: &ApprovalAsked) -> Option<(Decision, String)> {
            Some((Decision::Deny, "ada".into()))
        }
        async fn answer(&self, asked: &QuestionAsked) -> Option<(String, String)> {
            Some((format!("Ada, to {}", asked.text), "ada".into()))
        }
    }

    fn asked(call: &str) -> Event {
        let asked =
            QuestionAsked { call_id: call.into(), text: "Who?".into(), choices: vec![], digest: format!("d-{call}") };
        asked.into()
    }

    fn standing(call: &str) -> Option<Question> {
        Question::of(&asked(call), &(Arc::new(Ada) as Arc<dyn Approver>))
    }

    #[tokio::test]
    async fn a_tools_question_stands_here_and_is_answered_in_words() {
        let mut question = standing("c");
        assert_eq!(
            question.as_ref().map(|question| (question.call.as_str(), question.digest.as_str())),
            Some(("c", "d-c"))
        );
        let Some(Given::Text(text, by)) = given_to(&mut question).await else { panic!("no words") };
        assert_eq!((text.as_str(), by.as_str()), ("Ada, to Who?", "ada"));
    }

    #[test]
    fn it_stands_until_somebody_was_faster_or_its_call_is_over() {
        let answered = |call: &str| {
            Event::from(QuestionAnswered {
                call_id: call.into(),
                text: "x".into(),
                by: "web".into(),
                digest: "d".into(),
            })
        };
        let failed = |call: &str| {
            let class = ToolErrorClass::Timeout;
            let name = "Ask".into();
            Event::from(ToolError {
                call_id: call.into(),
                name,
                error: "late".into(),
                class,
                blob: None,
                duration_ms: 1,
            })
        };
        for (event, settles) in [
            (answered("c"), true),
            (failed("c"), true),
            (answered("d"), false),
            (failed("d"), false),
            (asked("c"), false),
        ] {
            assert_eq!(standing("c").is_some_and(|question| question.is_settled_by(&event)), settles, "{event:?}");
        }
    }
}
