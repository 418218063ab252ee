//! What it costs to assemble a request of a million tokens from bytes that are there already, and from none:
//! `cargo bench -p hames-model --bench render`; `cargo xtask window` keeps the figures and holds them to their limits.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use hames_model::{ChatModel, Endpoint};
use hames_protocol::{
    AssistantItem, CallItem, Head, Item, Label, MemoryBlobs, ModelClient, ModelInfo, Part, RequestOptions, ToolItem,
    UserItem,
};
use hames_testkit::counted;
use serde_json::json;

/// Bytes of the conversation: a million tokens of four.
const BYTES: usize = 4_000_000;
/// Bytes of one result.
const RESULT: usize = 4_000;
const ROUNDS: usize = 21;

fn user(text: String) -> Arc<Item> {
    Arc::new(Item::User(UserItem { parts: vec![Part::text(text)], ..UserItem::default() }))
}

/// An answer with one call, and what it gave: lines with quotes and tabs, as code has them.
fn exchange(n: usize) -> [Arc<Item>; 2] {
    let call = CallItem {
        call_id: format!("own{n}").into(),
        provider_id: format!("call_{n}"),
        name: "Read".into(),
        arguments: format!("{{\"path\":\"src/{n}.rs\"}}"),
        input: None,
        label: Label::default(),
        extra: None,
    };
    let line = "\tlet name = map.get(\"key\").unwrap_or_default(); // and so on\n";
    let result = ToolItem {
        call_id: call.call_id.clone(),
        name: "Read".into(),
        text: line.repeat(RESULT / line.len() + 1),
        error: None,
        blob: None,
        attachments: Vec::new(),
        capability: false,
    };
    let answer = AssistantItem { calls: vec![call], ..AssistantItem::default() };
    [Arc::new(Item::Assistant(answer)), Arc::new(Item::Tool(result))]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let info = ModelInfo::new("p/m".parse().unwrap(), 2_000_000, 16_384);
    let new = || {
        ChatModel::new(Endpoint::new("p", "http://127.0.0.1:9"), info.clone(), Arc::new(MemoryBlobs::default()))
            .unwrap()
    };
    let head = Arc::new(Head { tools: Vec::new(), system: "Be brief.".into() });
    let mut items = vec![user("Go.".into())];
    items.extend((0..BYTES / RESULT).flat_map(exchange));
    let options = RequestOptions { max_output_tokens: Some(16_384), ..RequestOptions::default() };

    let mut bytes = 0;
    let first: Vec<Duration> = (0..5)
        .map(|_| {
            let mut model = new();
            let began = Instant::now();
            bytes = runtime.block_on(model.prepare(&head, &items, &options)).unwrap().bytes;
            began.elapsed()
        })
        .collect();
    counted(
        &json!({"figure": "render_from_nothing", "items": items.len(), "bytes": bytes, "ms": millis(median(first))}),
    );

    let mut model = new();
    runtime.block_on(model.prepare(&head, &items, &options)).unwrap();
    let next: Vec<Duration> = (0..ROUNDS)
        .map(|n| {
            items.extend(exchange(1_000_000 + n));
            let began = Instant::now();
            let prepared = runtime.block_on(model.prepare(&head, &items, &options)).unwrap();
            let took = began.elapsed();
            assert_eq!(prepared.changed_why, "appended");
            took
        })
        .collect();
    let worst = millis(*next.iter().max().unwrap());
    counted(
        &json!({"figure": "render", "bytes": bytes, "ms": millis(median(next)), "worst_ms": worst, "limit_ms": 50}),
    );

    // A break in the middle: what is behind it changes its place, not its bytes.
    let middle = items.len() / 2;
    items[middle] = user("Something else.".into());
    let began = Instant::now();
    let broken = runtime.block_on(model.prepare(&head, &items, &options));
    let took = began.elapsed();
    assert_eq!(broken.unwrap().changed_why, "item");
    counted(&json!({"figure": "render_changed_in_the_middle", "ms": millis(took), "limit_ms": 50}));
}
