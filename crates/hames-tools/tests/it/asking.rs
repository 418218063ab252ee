//! Questions that a tool asks a person while it runs.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_protocol::{ApprovalAsked, Approver, Decision, Effect, Event, NobodyAnswers, QuestionAsked, ToolErrorClass};
use hames_tools::ToolOutput;
use serde_json::json;

use crate::kit::{Gate, Setup, TestDoor, TestTool, settle, until};

/// Somebody who has these answers, and waits for ever once they are used up.
#[derive(Default)]
struct Somebody {
    answers: Mutex<Vec<Option<&'static str>>>,
    asked: Mutex<Vec<QuestionAsked>>,
}

#[async_trait]
impl Approver for Somebody {
    async fn decide(&self, _: &ApprovalAsked) -> Option<(Decision, String)> {
        Some((Decision::Once, "somebody".into()))
    }
    async fn answer(&self, asked: &QuestionAsked) -> Option<(String, String)> {
        self.asked.lock().unwrap().push(asked.clone());
        let answer = self.answers.lock().unwrap().pop();
        match answer {
            Some(answer) => answer.map(|text| (text.into(), "somebody".into())),
            None => std::future::pending().await,
        }
    }
}

fn somebody(answers: &[Option<&'static str>]) -> Arc<Somebody> {
    Arc::new(Somebody { answers: Mutex::new(answers.iter().rev().copied().collect()), ..Somebody::default() })
}

/// Asks twice the same, and says what it was told.
fn curious(effect: Effect) -> TestTool {
    TestTool::new("Ask").effect(effect).does(|_, cx| async move {
        let choices = ["red".to_owned(), "my-secret blue".to_owned()];
        let first = cx.ask("Which colour?", &choices).await?;
        let second = cx.ask("Which colour?", &choices).await?;
        Ok(ToolOutput::text(format!("{first:?} {second:?}")))
    })
}

fn with(approver: Arc<dyn Approver>, tool: TestTool) -> TestDoor {
    let mut setup = Setup::new(vec![tool]);
    (setup.approver, setup.secrets) = (approver, vec!["my-secret".into()]);
    setup.build()
}

#[tokio::test]
async fn a_question_is_in_the_log_before_it_is_asked_and_its_answer_before_the_tool_goes_on() {
    let person = somebody(&[Some("red"), Some("the my-secret one")]);
    let test = with(person.clone(), curious(Effect::Session));
    let outcome = test.run(&[("Ask", json!({}))]).await.remove(0);
    // The door masks what the model is told, like any result.
    assert_eq!(outcome.output(), r#"Some("red") Some("the [masked secret] one")"#);
    let asked = "question.asked";
    let answered = "question.answered";
    assert_eq!(test.log.types(), ["tool.start", asked, answered, asked, answered, "tool.done"]);
    let seen = person.asked.lock().unwrap().clone();
    assert_ne!(seen[0].digest, seen[1].digest, "an answer to the one is none to the other");
    assert_eq!(seen[0].choices, ["red", "[masked secret] blue"]);
    for (event, question) in test.log.events().iter().filter(|e| e.type_name() == asked).zip(&seen) {
        assert_eq!(event, &Event::from(question.clone()), "what is shown is what is recorded");
    }
    let told = test.log.events().into_iter().filter_map(|event| match event {
        Event::QuestionAnswered(answer) => Some((answer.text, answer.by, answer.digest)),
        _ => None,
    });
    let of = |text: &str, n: usize| (text.to_owned(), "somebody".to_owned(), seen[n].digest.clone());
    assert_eq!(told.collect::<Vec<_>>(), [of("red", 0), of("the [masked secret] one", 1)]);
}

#[tokio::test]
async fn where_nobody_answers_the_tool_is_told_so() {
    let test = with(Arc::new(NobodyAnswers), curious(Effect::Session));
    assert_eq!(test.run(&[("Ask", json!({}))]).await.remove(0).output(), "None None");
    assert_eq!(test.log.types(), ["tool.start", "tool.done"], "nothing was asked");

    let test = with(somebody(&[None, Some("blue")]), curious(Effect::Session));
    assert_eq!(test.run(&[("Ask", json!({}))]).await.remove(0).output(), r#"None Some("blue")"#);
    let nobody = test.log.events().into_iter().find_map(|event| match event {
        Event::QuestionAnswered(answer) => Some((answer.text, answer.by)),
        _ => None,
    });
    assert_eq!(nobody, Some((String::new(), "nobody".into())));
}

#[tokio::test]
async fn a_stop_takes_a_question_away_and_a_message_only_that_of_a_call_that_reads() {
    for (effect, stops) in [(Effect::Session, true), (Effect::Read, true), (Effect::Read, false)] {
        let person = somebody(&[]);
        let test = with(person.clone(), curious(effect));
        let running = test.start(&[("Ask", json!({}))]);
        until(|| !person.asked.lock().unwrap().is_empty()).await;
        if stops {
            test.cx.abort.cancel()
        } else {
            test.cx.interrupt.cancel()
        }
        running.await.unwrap().remove(0).failed_as(ToolErrorClass::Cancelled);
    }
    // What is no reading is not cut: the question stands until it is answered.
    let (person, gate) = (somebody(&[Some("red"), Some("blue")]), Gate::new());
    let test = with(person.clone(), curious(Effect::Session));
    test.log.hold_at("question.asked", &gate);
    let running = test.start(&[("Ask", json!({}))]);
    gate.holds(&["question.asked"]).await;
    test.cx.interrupt.cancel();
    gate.open("question.asked");
    assert_eq!(running.await.unwrap().remove(0).output(), r#"Some("red") Some("blue")"#);
}

#[tokio::test]
async fn one_question_stands_at_a_time() {
    let person = somebody(&[]);
    let test = with(person.clone(), curious(Effect::Session));
    let running = test.start(&[("Ask", json!({})), ("Ask", json!({"n": 1}))]);
    until(|| !person.asked.lock().unwrap().is_empty()).await;
    settle().await;
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    test.cx.abort.cancel();
    running.await.unwrap();
}
