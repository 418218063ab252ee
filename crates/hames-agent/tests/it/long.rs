//! Long sessions against a provider with a real window: nothing ends, nothing is done in vain, and a request that did not
//! fit costs one more.

use std::sync::{Arc, Mutex};

use hames_context::{Deterministic, Policy, PruneThenSummarize, Strategy};
use hames_model::{ChatModel, Endpoint};
use hames_protocol::{Effect, Event, MemoryBlobs, ModelInfo, RunResult};
use hames_testkit::{ChatRequest, Provider, Script, TooLong, Turn, counted};
use hames_tools::ToolOutput;
use serde_json::json;

use crate::support::{Hames, Setup, TestTool, ended};

/// Steps of each run of a session.
const STEPS_OF_A_RUN: usize = 30;

/// Steps of a session: 60, and the full 300 with `HAMES_SOAK=1`.
fn steps() -> usize {
    if std::env::var("HAMES_SOAK").is_ok_and(|on| on == "1") { 300 } else { 60 }
}

/// What the provider saw of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saw {
    Answered,
    Refused,
    Document,
}

fn is_for_document(request: &ChatRequest) -> bool {
    request.tools().is_empty()
}

/// A document made of what the request holds: its first lines and its last.
fn document(request: &ChatRequest) -> String {
    let text = request.last_text();
    let lines: Vec<&str> = text.lines().filter(|line| line.len() < 200).collect();
    let most = usize::try_from(request.answer_limit()).unwrap_or(0).min(200) * 3;
    let mut document = String::from("## Facts\n");
    for line in lines {
        if document.len() + line.len() > most {
            break;
        }
        document.push_str(line);
        document.push('\n');
    }
    document
}

struct Long {
    hames: Hames,
    provider: Provider,
    saw: Arc<Mutex<Vec<Saw>>>,
}

/// A session whose model is thought to have `believed` tokens and has `real`.
async fn long(believed: u64, real: u64, words: TooLong, strategy: Arc<dyn Strategy>) -> Long {
    let saw = Arc::new(Mutex::new(Vec::new()));
    let (seen, refused) = (Arc::clone(&saw), Arc::clone(&saw));
    let steps = Mutex::new(0usize);
    let script = Script::new()
        .refuse(move |request| {
            let refusal = words.refusal(request, real)?;
            refused.lock().unwrap().push(Saw::Refused);
            Some(refusal)
        })
        .respond(move |request| {
            if is_for_document(request) {
                seen.lock().unwrap().push(Saw::Document);
                return Turn::text(document(request));
            }
            seen.lock().unwrap().push(Saw::Answered);
            let mut steps = steps.lock().unwrap();
            *steps += 1;
            match *steps % STEPS_OF_A_RUN {
                0 => Turn::text("That is done."),
                step => Turn::call("Look", json!({"path": format!("file {step}")})),
            }
        });
    let provider = Provider::start(script).await.unwrap();
    let endpoint = Endpoint::new("test", provider.base_url());
    let info = ModelInfo::new("test/mock-1".parse().unwrap(), believed, 4_096);
    let mut setup = Setup::new([]);
    setup.model = Some(Box::new(ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap()));
    setup.window = real;
    // About a twelfth of the window each, of different lengths.
    let bytes = usize::try_from(real).unwrap() / 3;
    let looks = Mutex::new(0usize);
    setup.tools = vec![TestTool::new("Look", Effect::Read).does(move |_, _| {
        let mut looks = looks.lock().unwrap();
        *looks += 1;
        let text = format!("look {looks}: {}", "some line of a file\n".repeat(bytes / 20 * (1 + *looks % 3) / 2));
        async move { Ok(ToolOutput::text(text)) }
    })];
    let mut hames = setup.build().await;
    hames.agent = hames.agent.compacting(hames_agent::Compaction {
        policy: Policy { strategy, ..Policy::default() },
        ..hames_agent::Compaction::default()
    });
    Long { hames, provider, saw }
}

/// Plays the whole session and checks what has to hold whatever the window.
async fn play(believed: u64, real: u64, words: TooLong, strategy: Arc<dyn Strategy>) -> Vec<Saw> {
    let name = format!("{believed} {real} {words:?} {}", strategy.name());
    let mut long = long(believed, real, words, strategy).await;
    for run in 0..steps() / STEPS_OF_A_RUN {
        let end = long.hames.run_unchecked(&format!("Task {run}: look at everything once more.")).await;
        if end.result != RunResult::Complete {
            println!("{name}\n{:?}\n{:?}", long.hames.types(), long.saw.lock().unwrap());
        }
        ended(&end, RunResult::Complete, 0);
        long.hames.check(&end);
        long.hames.renew();
    }
    assert!(long.provider.violations().is_empty(), "{name}: {:?}", long.provider.violations());
    for envelope in long.hames.log.events() {
        if let Event::CompactionDone(done) = &envelope.event {
            assert!(done.tokens_after < done.tokens_before, "{name}: in vain: {done:?}");
        }
    }
    let saw = long.saw.lock().unwrap().clone();
    assert_eq!(saw.iter().filter(|saw| **saw == Saw::Answered).count(), steps(), "{name}");
    saw
}

/// The longest row of refusals between two answers.
fn longest_row(saw: &[Saw]) -> usize {
    let turns = saw.iter().copied().filter(|saw| *saw != Saw::Document).collect::<Vec<_>>();
    turns.split(|saw| *saw == Saw::Answered).map(<[Saw]>::len).max().unwrap_or(0)
}

#[tokio::test]
async fn a_session_whose_window_is_known_is_never_refused() {
    for window in [2_048, 8_192, 32_768] {
        for strategy in [
            Arc::new(hames_context::Carried) as Arc<dyn Strategy>,
            Arc::new(Deterministic),
            Arc::new(PruneThenSummarize::default()),
        ] {
            let name = strategy.name().to_owned();
            let saw = play(window, window, TooLong::Sum, strategy).await;
            let refused = saw.iter().filter(|saw| **saw == Saw::Refused).count();
            let documents = saw.iter().filter(|saw| **saw == Saw::Document).count();
            counted(&json!({
                "figure": "long_session", "window": window, "strategy": name, "steps": steps(), "refused": refused, "documents": documents,
            }));
            assert!(refused <= 1 && longest_row(&saw) <= 1, "{window} {name}: {refused} refused");
        }
    }
}

#[tokio::test]
async fn a_session_whose_window_is_thought_larger_learns_it_by_one_more_request() {
    for window in [2_048, 8_192, 32_768] {
        // An empty stream to a request that should fit says nothing to anybody.
        for words in TooLong::ALL.into_iter().filter(|words| *words != TooLong::EmptyStream) {
            let saw = play(128_000, window, words, Arc::new(hames_context::Carried)).await;
            let refused = saw.iter().filter(|saw| **saw == Saw::Refused).count();
            counted(&json!({
                "figure": "long_session", "window": window, "words": format!("{words:?}"), "steps": steps(), "refused": refused,
                "in_a_row": longest_row(&saw),
            }));
            let states_it =
                matches!(words, TooLong::Sum | TooLong::AnswerFirst | TooLong::InputOnly | TooLong::Members);
            assert!(longest_row(&saw) <= 1, "{window} {words:?}");
            assert!(!states_it || refused <= 2, "{window} {words:?}: {refused} refused");
        }
    }
}
