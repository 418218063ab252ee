//! What a run records and does when its model refuses a parameter.

use hames_protocol::{ErrorClass, Event, Lesson, Remedy, RunResult};
use hames_testkit::{Gate, Provider, Script, Turn};
use serde_json::{Value, json};

use crate::support::http::{file_tools, over_http};
use crate::support::{Hames, ended};

fn refusal(message: &str) -> Turn {
    Turn::error(400, json!({"error": {"message": message, "type": "invalid_request_error"}}))
}

fn refusal_in_stream(message: &str) -> Turn {
    let error = json!({"error": {"message": message, "code": 400}});
    Turn::raw_sse(format!("data: {error}\n\n"))
}

const LIMIT: &str = "Unrecognized request argument supplied: max_tokens";
const USAGE: &str = "Unrecognized request argument supplied: stream_options";

fn lessons(hames: &Hames) -> Vec<Lesson> {
    hames.find(|event| if let Event::ParameterLearned(learned) = event { Some(learned.lesson.clone()) } else { None })
}

fn renamed() -> Lesson {
    Lesson::new("max_tokens", Remedy::Rename("max_completion_tokens".into()))
}

fn body(provider: &Provider, n: usize) -> Value {
    provider.requests()[n].body.clone()
}

#[tokio::test]
async fn a_lesson_is_recorded_in_its_step_before_the_answer_and_is_no_retry() {
    let script = Script::new().turns([
        refusal(LIMIT),
        refusal(USAGE),
        Turn::call("Read", json!({"path": "chaos-0.txt"})),
        Turn::text("Done."),
    ]);
    let (mut hames, provider) = over_http(script, file_tools(), |_| {}).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    let expected = "run.start message.user step.start parameter.learned parameter.learned tool.call step.done tool.start \
                    tool.done step.start text.done step.done done turn.done run.done";
    assert_eq!(hames.types().join(" "), expected);
    assert_eq!(lessons(&hames), [renamed(), Lesson::new("stream_options", Remedy::Drop)]);
    // The next step is written by what was learned.
    assert_eq!((provider.requests().len(), provider.connections()), (4, 1));
    assert_eq!(body(&provider, 3)["max_completion_tokens"], 4_096);
    assert_eq!(body(&provider, 3)["stream_options"], Value::Null);
    assert_eq!(provider.violations(), []);
}

#[tokio::test]
async fn a_refusal_inside_a_stream_is_sent_again_at_once() {
    for (turn, lesson) in [
        (refusal_in_stream(LIMIT), renamed()),
        (
            refusal_in_stream("max_tokens is too large: 4096. At most 2048 are allowed."),
            Lesson::new("max_tokens", Remedy::Cap(2_048)),
        ),
        (refusal_in_stream("`stream_options` is not supported here"), Lesson::new("stream_options", Remedy::Drop)),
    ] {
        let (mut hames, provider) =
            over_http(Script::new().turn(turn).turn(Turn::text("Done.")), file_tools(), |_| {}).await;
        ended(&hames.run("go").await, RunResult::Complete, 0);
        let expected =
            "run.start message.user step.start retry parameter.learned text.done step.done done turn.done run.done";
        assert_eq!(hames.types().join(" "), expected);
        assert_eq!(lessons(&hames), [lesson]);
        assert_eq!(provider.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_model_that_refuses_whatever_is_sent_gets_three_requests_in_all() {
    // One complaint after the other, each about something that is still there; in the head and in the stream.
    let words = [LIMIT, USAGE, "Unrecognized request argument supplied: max_completion_tokens", LIMIT, USAGE];
    for turn in [refusal, refusal_in_stream] {
        let (mut hames, provider) = over_http(Script::new().turns(words.map(turn)), file_tools(), |_| {}).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Error, 1);
        let failure = end.failure.unwrap();
        assert_eq!(failure.class, ErrorClass::InvalidRequestFixable);
        assert!(failure.message.contains("This was tried first: max_tokens is sent as"), "{}", failure.message);
        assert_eq!((provider.requests().len(), lessons(&hames).len()), (3, 2));
    }
}

#[tokio::test]
async fn a_stop_while_a_request_is_sent_again_ends_the_run_and_keeps_the_record() {
    let gate = Gate::new();
    let script = Script::new().turn(refusal(LIMIT)).turn(Turn::text("never seen").gate_head(gate.clone()));
    let (mut hames, provider) = over_http(script, file_tools(), |_| {}).await;
    let abort = hames.abort.clone();
    let stops = async {
        gate.reached().await;
        abort.cancel();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Interrupted, 130);
    assert_eq!(lessons(&hames), [renamed()]);
    assert_eq!(provider.requests().len(), 2);
}
