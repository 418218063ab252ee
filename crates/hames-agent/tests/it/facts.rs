//! Facts planted over many windows: what still holds is in the window, in its document, or a Recall away; what was
//! replaced is nowhere given as what holds.
//!
//! The author of documents here can only copy: it takes lines of the request it got, within the answer it is allowed. So
//! whatever survives does so because it was put before it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hames_context::{Carried, Deterministic, Policy, PruneThenSummarize, Strategy};
use hames_model::{ChatModel, Endpoint};
use hames_protocol::{BlobStore, Effect, Item, MemoryBlobs, ModelInfo, Part, Projection, RunResult, SessionId};
use hames_testkit::{ChatRequest, Provider, Script, TooLong, Turn};
use hames_tools::ToolOutput;
use serde_json::json;

use crate::support::{Setup, TestTool, ended};

const WINDOW: u64 = 8_192;
const FACTS: usize = 60;
const REPLACED: usize = 20;
/// Looks between one statement and the next.
const LOOKS: usize = 3;

/// What is said of the facts at this point: the key, its value, and whether a tool says it rather than the user.
fn statement(n: usize) -> (String, String, bool) {
    match n {
        0..FACTS => (format!("key-{n:02}"), format!("first-{n:02}"), n % 2 == 1),
        _ => {
            let of = (n - FACTS) * 3;
            (format!("key-{of:02}"), format!("second-{of:02}"), false)
        }
    }
}

fn line(n: usize) -> String {
    let (key, value, _) = statement(n);
    format!("FACT {key} is {value}")
}

/// A key, what was said of it first, and what holds instead.
type Replaced = (String, String, String);

/// What holds in the end, and what no longer does.
fn in_the_end() -> (BTreeMap<String, String>, Vec<Replaced>) {
    let mut live = BTreeMap::new();
    let mut gone = Vec::new();
    for n in 0..FACTS + REPLACED {
        let (key, value, _) = statement(n);
        if let Some(old) = live.insert(key.clone(), value.clone()) {
            gone.push((key, old, value));
        }
    }
    (live, gone)
}

/// Copies the lines that state facts, the newest of each key, as far as the answer may go.
fn copied(request: &ChatRequest) -> String {
    let text = request.last_text();
    let mut by_key: Vec<(&str, &str)> = Vec::new();
    for line in text.lines().filter_map(|line| line.find("FACT ").map(|at| line[at..].trim())) {
        let key = line.split(' ').nth(1).unwrap_or("");
        by_key.retain(|(known, _)| *known != key);
        by_key.push((key, line));
    }
    let most = usize::try_from(request.answer_limit()).unwrap_or(0) * 4;
    let mut document = String::from("## Facts\n");
    for (_, line) in by_key {
        if document.len() + line.len() + 3 > most {
            break;
        }
        document.push_str(&format!("- {line}\n"));
    }
    document
}

fn said_by(item: &Item) -> String {
    match item {
        Item::User(message) => {
            let text = |part: &Part| if let Part::Text { text } = part { text.clone() } else { String::new() };
            message.parts.iter().map(text).collect()
        }
        Item::Assistant(answer) => answer.text.clone(),
        Item::Tool(result) => result.text.clone(),
    }
}

async fn planted(strategy: Arc<dyn Strategy>) {
    let name = strategy.name().to_owned();
    let stated: Arc<Mutex<Option<String>>> = Arc::default();
    let steps = Mutex::new(0usize);
    let script = Script::new().refuse(|request| TooLong::Sum.refusal(request, WINDOW)).respond(move |request| {
        if request.tools().is_empty() {
            return Turn::text(copied(request));
        }
        let mut steps = steps.lock().unwrap();
        *steps += 1;
        match *steps % (LOOKS + 1) {
            0 => Turn::text("Noted."),
            step => Turn::call("Look", json!({"path": format!("file {step} of {steps}")})),
        }
    });
    let provider = Provider::start(script).await.unwrap();
    let info = ModelInfo::new("test/mock-1".parse().unwrap(), WINDOW, 2_048);
    let endpoint = Endpoint::new("test", provider.base_url());
    let mut setup = Setup::new([]);
    let blobs = Arc::clone(&setup.blobs);
    setup.model = Some(Box::new(ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap()));
    setup.window = WINDOW;
    let says = Arc::clone(&stated);
    setup.tools = vec![TestTool::new("Look", Effect::Read).does(move |_, _| {
        let fact = says.lock().unwrap().take().map(|fact| format!("{fact}\n")).unwrap_or_default();
        async move { Ok(ToolOutput::text(format!("{fact}{}", "a line of a file that says nothing\n".repeat(70)))) }
    })];
    let mut hames = setup.build().await;
    hames.agent = hames.agent.compacting(hames_agent::Compaction {
        policy: Policy { strategy, ..Policy::default() },
        ..hames_agent::Compaction::default()
    });
    for n in 0..FACTS + REPLACED {
        let by_tool = statement(n).2;
        *stated.lock().unwrap() = by_tool.then(|| line(n));
        let said = if by_tool { "Look at what the files say.".to_owned() } else { format!("{}. Look on.", line(n)) };
        ended(&hames.run_unchecked(&said).await, RunResult::Complete, 0);
        hames.renew();
    }

    // What the next request would carry, what can be recalled, and what was ever said in all.
    let last = provider.requests().iter().rfind(|request| !request.tools().is_empty()).unwrap().clone();
    let window: String = last.messages().iter().map(|message| format!("{message}\n")).collect();
    let total: u64 = hames.session.items().iter().map(|item| hames_context::estimate_item(item)).sum();
    assert!(total > 10 * WINDOW, "{name}: {total} tokens are not ten windows");
    let document = hames.session.window().document().to_owned();
    let (live, gone) = in_the_end();
    // The report says of every item where it is, and what it says is so: in the window as it is, or kept under a name
    // that Recall takes. What the document says besides is counted.
    let report = hames.session.report(&mut hames.agent);
    let items = hames.session.items();
    assert_eq!(report.items.len(), items.len(), "{name}");
    let mut places = BTreeMap::new();
    for (key, value) in &live {
        let stated = format!("{key} is {value}");
        let at = items.iter().position(|item| said_by(item).contains(&stated)).unwrap();
        let told = &report.items[at];
        let place = match (told.projection, told.kept.as_ref().or(told.archive.as_ref())) {
            (Projection::Full, _) => {
                assert!(window.contains(value), "{name}: {key} is {value} is not in the window: {told:?}");
                "window"
            }
            (_, Some(output)) => {
                let blob = blobs.named(&SessionId::from("s-1"), output).await.unwrap().unwrap();
                let bytes = blobs.get(&blob.hash, 0, blob.bytes).await.unwrap();
                let whole = String::from_utf8(bytes).unwrap();
                assert!(whole.contains(value), "{name}: {key} is {value} is not in {output}: {told:?}");
                if document.contains(value) { "document and Recall" } else { "Recall" }
            }
            (_, None) => panic!("{name}: {key} is {value} is lost: {told:?}\n{document}"),
        };
        *places.entry(place).or_insert(0) += 1;
    }
    for (key, old, new) in &gone {
        let (old_at, new_at) = (window.rfind(old.as_str()), window.rfind(new.as_str()));
        assert!(old_at.is_none() || new_at > old_at, "{name}: {key} is given as {old}, and is {new}\n{document}");
    }
    let opening = report.opening.as_ref().unwrap();
    assert!(opening.items_above > 0 && !opening.archives.is_empty(), "{name}: {opening:?}");
    println!("{name}: {total} tokens, {} facts: {places:?}", live.len());
}

#[tokio::test]
async fn no_fact_that_holds_is_lost_and_none_that_was_replaced_is_given_as_holding() {
    for strategy in
        [Arc::new(Carried) as Arc<dyn Strategy>, Arc::new(Deterministic), Arc::new(PruneThenSummarize::default())]
    {
        planted(strategy).await;
    }
}
