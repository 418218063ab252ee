//! Faults that long sessions are known for, each with the input it was seen with, against a provider that holds the wire
//! rules and a real window.

use std::sync::{Arc, Mutex};

use hames_agent::{Compaction, RunControl};
use hames_context::{Carried, Deterministic, Policy, PruneThenSummarize, Strategy};
use hames_model::{ChatModel, Endpoint};
use hames_protocol::{
    Delivery, Effect, Event, MemoryBlobs, MemoryInbox, ModelInfo, RunResult, Todo, TodoPriority, TodoStatus,
    TodoUpdated,
};
use hames_testkit::{ChatRequest, Provider, Script, TooLong, Turn};
use hames_tools::ToolOutput;
use serde_json::{Value, json};

use crate::support::{Hames, Setup, TestTool, ended, pending};

/// Text of so many tokens, as the provider counts.
fn words(tokens: usize) -> String {
    "word ".repeat(tokens * 4 / 5)
}

fn is_for_document(request: &ChatRequest) -> bool {
    request.tools().is_empty()
}

/// A session over a provider, its model thought to have `believed` tokens; `Look` gives so many tokens each time.
async fn over(script: Script, believed: u64, looks: usize, policy: Policy) -> (Hames, Provider) {
    let provider = Provider::start(script).await.unwrap();
    let info = ModelInfo::new("test/mock-1".parse().unwrap(), believed, 1_024);
    let endpoint = Endpoint::new("test", provider.base_url());
    let mut setup = Setup::new([]);
    setup.model = Some(Box::new(ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap()));
    setup.window = believed;
    let setup = setup.tool(TestTool::new("Look", Effect::Read).does(move |input, _| {
        let text = format!("{}: {}", input["path"], words(looks));
        async move { Ok(ToolOutput::text(text)) }
    }));
    let mut hames = setup.build().await;
    hames.agent = hames.agent.compacting(Compaction { policy, ..Compaction::default() });
    (hames, provider)
}

async fn says(hames: &mut Hames, text: &str) {
    let end = hames.run(text).await;
    assert_eq!(end.result, RunResult::Complete, "{end:?} {:?}", hames.types());
    hames.renew();
}

async fn compact(hames: &mut Hames) -> bool {
    let control = RunControl::default();
    hames.session.compact(&mut hames.agent, &control, Arc::new(hames.seen.clone())).await.unwrap().is_some()
}

/// Every result stands behind the answer that asked for it, and every call has one.
fn paired(request: &ChatRequest) {
    let mut open: Vec<String> = Vec::new();
    for message in request.messages() {
        let id = |call: &Value| call["id"].as_str().unwrap().to_owned();
        match message["role"].as_str().unwrap() {
            "tool" => {
                let of = message["tool_call_id"].as_str().unwrap();
                let at = open.iter().position(|id| id == of).unwrap_or_else(|| panic!("{of} has no call"));
                open.remove(at);
            }
            _ => {
                assert!(open.is_empty(), "{open:?} have no result");
                open = message["tool_calls"].as_array().map(|calls| calls.iter().map(id).collect()).unwrap_or_default();
            }
        }
    }
    assert!(open.is_empty(), "{open:?} have no result");
}

#[tokio::test]
async fn no_boundary_of_any_compaction_parts_a_call_from_its_result() {
    for landing in [0, 3, 8, 15, 25, 40] {
        let script = Script::new().respond(|request| match request.last_role() {
            _ if is_for_document(request) => Turn::text("- looked at files"),
            "tool" => Turn::text("Seen."),
            _ => Turn::call("Look", json!({"path": "a"})).then_call("Look", json!({"path": "b"})),
        });
        let policy = Policy { landing, auto: false, ..Policy::default() };
        let (mut hames, provider) = over(script, 32_000, 900, policy).await;
        for round in 0..4 {
            for turn in 0..3 {
                says(&mut hames, &format!("look {round} {turn}")).await;
            }
            compact(&mut hames).await;
        }
        says(&mut hames, "and once more").await;
        assert!(hames.session.window().checkpoint.is_some(), "{landing}");
        provider.requests().iter().for_each(|request| paired(request));
        assert!(provider.violations().is_empty(), "{landing}: {:?}", provider.violations());
    }
}

#[tokio::test]
async fn a_request_for_a_document_that_overflows_itself_is_made_to_fit() {
    for words_of in [TooLong::Sum, TooLong::InputOnly, TooLong::NoNumber] {
        // 14,000 tokens of history in a window of 10,000 that nobody knows of: nine of them one result.
        let documents = Arc::new(Mutex::new((0, 0)));
        let (refused, written) = (Arc::clone(&documents), Arc::clone(&documents));
        let script = Script::new()
            .refuse(move |request| {
                let refusal = words_of.refusal(request, 10_000)?;
                refused.lock().unwrap().0 += usize::from(is_for_document(request));
                Some(refusal)
            })
            .respond(move |request| match request.last_role() {
                _ if is_for_document(request) => {
                    written.lock().unwrap().1 += 1;
                    Turn::text("- the work goes on")
                }
                "user" if request.last_text().contains("look") => Turn::call("Look", json!({"path": "big"})),
                _ => Turn::text("Fine."),
            });
        let (mut hames, provider) = over(script, 128_000, 8_000, Policy::default()).await;
        says(&mut hames, &format!("first: {}", words(700))).await;
        says(&mut hames, &format!("look at it: {}", words(300))).await;
        says(&mut hames, &format!("second: {}", words(2_500))).await;
        says(&mut hames, &format!("third: {}", words(2_500))).await;
        says(&mut hames, "go on").await;
        let (refused, written) = *documents.lock().unwrap();
        println!("{words_of:?}: {refused} documents refused, {written} written");
        assert!(refused <= 2, "{words_of:?}: {refused}");
        let last = provider.requests().last().unwrap().clone();
        assert!(last.tokens() <= 10_000 && last.last_text().contains("go on"));
        assert!(provider.violations().is_empty());
    }
}

#[tokio::test]
async fn an_author_with_a_smaller_window_that_nobody_knows_of_is_given_less() {
    // The request for a document is what overflows here, not the conversation.
    let refused = Arc::new(Mutex::new(0));
    let count = Arc::clone(&refused);
    let script = Script::new()
        .refuse(move |request| {
            let refusal = is_for_document(request).then(|| TooLong::NoNumber.refusal(request, 3_000)).flatten()?;
            *count.lock().unwrap() += 1;
            Some(refusal)
        })
        .respond(|request| Turn::text(if is_for_document(request) { "- it goes on" } else { "Noted." }));
    let (mut hames, _provider) = over(script, 16_000, 10, Policy { auto: false, ..Policy::default() }).await;
    for n in 0..14 {
        says(&mut hames, &format!("message {n} {}", words(600))).await;
    }
    assert!(compact(&mut hames).await);
    assert!((1..=3).contains(&*refused.lock().unwrap()), "{refused:?}");
    says(&mut hames, "still there?").await;
}

#[tokio::test]
async fn without_usage_or_with_zeros_the_window_is_kept_by_estimates() {
    for usage in [None, Some(json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}))] {
        let script = Script::new().refuse(|request| TooLong::Sum.refusal(request, 4_096)).respond({
            let usage = usage.clone();
            move |request| {
                let text = if is_for_document(request) { "- ten turns".to_owned() } else { words(120) };
                Turn::text(text).usage(usage.clone())
            }
        });
        let (mut hames, provider) = over(script, 4_096, 10, Policy::default()).await;
        for n in 0..10 {
            says(&mut hames, &format!("turn {n}: {}", words(1_000 / 4))).await;
        }
        assert!(hames.session.window().checkpoint.is_some(), "{usage:?}");
        assert_eq!(hames.session.window().measure.ratio(&"test/mock-1".parse().unwrap()), 1_000, "{usage:?}");
        let report = hames.session.report(&mut hames.agent);
        assert!(report.budget.fill > 300 && report.budget.fill < 4_096, "{:?}", report.budget);
        // Nothing was refused: it was compacted before the window was full.
        assert!(provider.requests().iter().all(|request| request.tokens() + request.answer_limit() <= 4_096));
    }
}

#[tokio::test]
async fn an_output_limit_as_large_as_the_window_compacts_nothing_at_a_fifth() {
    for (window, output) in [(32_768, 32_768), (32_768, 100_000)] {
        let script = Script::new().respond(|_| Turn::text("Noted."));
        let provider = Provider::start(script).await.unwrap();
        let info = ModelInfo::new("test/mock-1".parse().unwrap(), window, output);
        let endpoint = Endpoint::new("test", provider.base_url());
        let mut setup = Setup::new([]);
        setup.model = Some(Box::new(ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap()));
        setup.window = window;
        let mut hames = setup.build().await;
        says(&mut hames, &words(6_000)).await;
        assert_eq!(provider.requests().len(), 1);
        let limit = provider.requests()[0].answer_limit();
        assert!(limit + provider.requests()[0].tokens() <= window && limit > window / 2, "{limit}");
        assert!(!hames.types().iter().any(|kind| kind.starts_with("compaction")));
    }
}

#[tokio::test]
async fn todos_waiting_messages_and_what_was_read_outlive_a_compaction() {
    let todo = |id: &str| Todo {
        id: id.into(),
        content: format!("task {id}"),
        status: TodoStatus::Pending,
        priority: TodoPriority::Medium,
    };
    let todos = vec![todo("1"), todo("2"), todo("3")];
    let inbox_of = Arc::new(Mutex::new(None::<Arc<MemoryInbox>>));
    let during = Arc::clone(&inbox_of);
    let script = Script::new().respond(move |request| {
        if is_for_document(request) {
            // Said while the document is written.
            let mut inbox = during.lock().unwrap();
            if inbox.as_ref().is_some_and(|inbox| inbox.push(pending("mid", Delivery::Steer)).is_ok()) {
                *inbox = None;
            }
            return Turn::text("- it goes on");
        }
        match request.last_role() {
            "user" if request.last_text().contains("look") => Turn::call("Look", json!({"path": "a"})),
            _ => Turn::text("Fine."),
        }
    });
    let (mut hames, provider) = over(script, 16_000, 1_000, Policy::default()).await;
    let list = todos.clone();
    hames.session.emit(Arc::new(hames.seen.clone())).record(vec![TodoUpdated { todos: list }.into()]).await.unwrap();
    hames
        .session
        .emit(Arc::new(hames.seen.clone()))
        .record(vec![Event::PendingAdded(pending("later", Delivery::Queue))])
        .await
        .unwrap();
    *inbox_of.lock().unwrap() = Some(hames.inbox.clone());
    for n in 0..24 {
        let end = hames.run_unchecked(&format!("look {n} {}", words(900))).await;
        ended(&end, RunResult::Complete, 0);
        // Whoever speaks while a document is written speaks to the run that goes on.
        if inbox_of.lock().unwrap().is_none() {
            break;
        }
        hames.renew();
        *inbox_of.lock().unwrap() = Some(hames.inbox.clone());
    }
    let log = hames.log.events();
    let said = |id: &str| {
        let is_it = |event: &Event| matches!(event, Event::MessageUser(m) if m.pending_id.as_ref().is_some_and(|p| p.as_str() == id));
        log.iter().filter(|envelope| is_it(&envelope.event)).count()
    };
    assert_eq!((said("mid"), said("later")), (1, 0));
    assert!(hames.session.window().checkpoint.is_some());
    assert_eq!(hames.session.state().todos, todos);
    assert_eq!(hames.session.state().pending.len(), 1);
    let last = provider.requests().iter().rfind(|request| !is_for_document(request)).unwrap().clone();
    let opening = last.messages()[1].to_string();
    assert!(todos.iter().all(|todo| opening.contains(&todo.content)), "{opening}");
    let steers = last.messages().iter().filter(|message| message.to_string().contains("message mid")).count();
    assert_eq!(steers, 1);
}

#[tokio::test]
async fn a_steer_that_was_heard_is_not_what_is_asked_after_a_later_compaction() {
    let strategies: [Arc<dyn Strategy>; 3] =
        [Arc::new(Carried), Arc::new(Deterministic), Arc::new(PruneThenSummarize::default())];
    for strategy in strategies {
        let name = strategy.name().to_owned();
        let inbox_of = Arc::new(Mutex::new(None::<Arc<MemoryInbox>>));
        let during = Arc::clone(&inbox_of);
        let script = Script::new().respond(move |request| {
            if is_for_document(request) {
                return Turn::text("- foo is called bar by now");
            }
            match request.last_role() {
                "user" if request.last_text().contains("message rename") => Turn::text("It is renamed."),
                "user" if request.last_text().contains("second") => {
                    let inbox = during.lock().unwrap().take().unwrap();
                    inbox.push(pending("rename", Delivery::Steer)).unwrap();
                    Turn::call("Look", json!({"path": "a"}))
                }
                _ => Turn::text("Fine."),
            }
        });
        let policy = Policy { strategy, auto: false, ..Policy::default() };
        let (mut hames, provider) = over(script, 16_000, 500, policy).await;
        for turn in ["first", "second", "third", "fourth"] {
            *inbox_of.lock().unwrap() = Some(hames.inbox.clone());
            says(&mut hames, &format!("{turn} {}", words(1_500))).await;
        }
        assert!(compact(&mut hames).await, "{name}");
        says(&mut hames, "go on").await;
        let requests: Vec<Arc<ChatRequest>> = provider.requests().into_iter().filter(|r| !is_for_document(r)).collect();
        let says_it = |message: &&Value| message["role"] == "user" && message.to_string().contains("message rename");
        // It is the last word of exactly the request it came in with.
        let last_word = |request: &&Arc<ChatRequest>| {
            request.messages().iter().rfind(|m| m["role"] == "user").is_some_and(|m| says_it(&m))
        };
        assert_eq!(requests.iter().filter(last_word).count(), 1, "{name}");
        let after = requests.last().unwrap();
        assert!(after.messages().iter().filter(says_it).count() <= 1, "{name}: {:?}", after.messages());
        assert!(after.last_text().contains("go on"));
        let delivered = hames
            .log
            .events()
            .iter()
            .filter(|e| matches!(&e.event, Event::MessageUser(m) if m.pending_id.is_some()))
            .count();
        assert_eq!((delivered, provider.violations().len()), (1, 0), "{name}");
    }
}
