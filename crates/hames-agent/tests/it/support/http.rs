//! The real model client over a scripted provider, and tools that work on files in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hames_agent::RetryPolicy;
use hames_model::{ChatModel, Endpoint};
use hames_protocol::{Effect, MemoryBlobs, ModelInfo};
use hames_testkit::{Provider, Script};
use hames_tools::{ToolFailure, ToolOutput};
use serde_json::{Value, json};

use super::{Hames, Setup, TestTool};

/// A session whose model is a provider over loopback.
pub(crate) async fn over_http(
    script: Script,
    tools: Vec<TestTool>,
    change: impl FnOnce(&mut Endpoint),
) -> (Hames, Provider) {
    over_http_with(script, tools, change, None, Arc::new(MemoryBlobs::default())).await
}

/// The same with blobs of the test's own, for a model of which it is known whether it takes images.
pub(crate) async fn over_http_with(
    script: Script,
    tools: Vec<TestTool>,
    change: impl FnOnce(&mut Endpoint),
    images: Option<bool>,
    blobs: Arc<MemoryBlobs>,
) -> (Hames, Provider) {
    let provider = Provider::start(script).await.unwrap();
    let mut endpoint = Endpoint::new("test", provider.base_url());
    change(&mut endpoint);
    let info = ModelInfo { images, ..ModelInfo::new("test/mock-1".parse().unwrap(), 2_000_000, 4_096) };
    let model = ChatModel::new(endpoint, info, blobs).unwrap();
    let mut setup = Setup::new([]);
    setup.model = Some(Box::new(model));
    setup.tools = tools;
    // Waits are the script's; ours would only make the test slow.
    setup.retry = RetryPolicy {
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(4),
        ..RetryPolicy::default()
    };
    (setup.build().await, provider)
}

type Files = Arc<Mutex<HashMap<String, String>>>;

/// `Read`, `Shell` and `StrReplace` over files in memory, as far as made-up runs use them.
pub(crate) fn file_tools() -> Vec<TestTool> {
    let files: Files =
        Arc::new(Mutex::new((0..8).map(|n| (format!("chaos-{n}.txt"), "mark 0\n".to_owned())).collect()));
    let tool = |name: &str,
                effect: Effect,
                members: &[&str],
                work: fn(&Value, &mut HashMap<String, String>) -> Result<String, String>| {
        let properties: serde_json::Map<String, Value> =
            members.iter().map(|member| ((*member).to_owned(), json!({"type": "string"}))).collect();
        let files = Arc::clone(&files);
        TestTool::new(name, effect)
            .parameters(json!({"type": "object", "properties": properties, "required": members}))
            .does(move |input, _| {
                let result = work(&input, &mut files.lock().unwrap());
                async move { result.map(ToolOutput::text).map_err(ToolFailure::failed) }
            })
    };
    vec![
        tool("Read", Effect::Read, &["path"], |input, files| read(files, &input["path"])),
        tool("Shell", Effect::Run, &["command"], shell),
        tool("StrReplace", Effect::Edit, &["path", "old_string", "new_string"], |input, files| {
            let (old, new) = (input["old_string"].as_str().unwrap_or(""), input["new_string"].as_str().unwrap_or(""));
            let content = read(files, &input["path"])?;
            if content.matches(old).count() != 1 {
                return Err(format!("{old:?} is not there once"));
            }
            files.insert(input["path"].as_str().unwrap_or("").to_owned(), content.replace(old, new));
            Ok("replaced".into())
        }),
    ]
}

fn read(files: &HashMap<String, String>, path: &Value) -> Result<String, String> {
    files.get(path.as_str().unwrap_or("")).cloned().ok_or_else(|| format!("{path} does not exist"))
}

fn shell(input: &Value, files: &mut HashMap<String, String>) -> Result<String, String> {
    let command = input["command"].as_str().unwrap_or("");
    if let Some(path) = command.strip_prefix("cat ") {
        return read(files, &path.into());
    }
    match command.split_once(" > ") {
        Some((_, path)) => {
            files.insert(path.to_owned(), "mark 0\n".into());
            // Says nothing, as a command does that has nothing to say.
            Ok(String::new())
        }
        None => Err("Exit code 3.".into()),
    }
}
