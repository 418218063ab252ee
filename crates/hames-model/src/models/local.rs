//! What servers of one's own say beside the list: llama.cpp's `/props`, LM Studio's `/api/v0/models`, Ollama's `/api/ps`
//! and `/api/show`. Each is asked briefly and believed as far as it goes; a server that does not know the address has
//! simply nothing to add.

use std::time::Duration;

use serde_json::{Value, json};

use super::read::{model, whole};
use super::{ModelList, ServerKind, body, place};
use crate::{Endpoint, http, url};

/// How long one of these may take: they are answered from memory.
const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of one answer; the longest is an Ollama model's, with its licence and template.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Models of an Ollama that are asked about one by one.
const MAX_SHOWN: usize = 64;

/// Adds to a list what its server says elsewhere.
pub(super) async fn ask(endpoint: &Endpoint, list: &mut ModelList) {
    match list.server {
        Some(ServerKind::LlamaCpp) => llama_cpp(endpoint, list).await,
        Some(ServerKind::Ollama) => ollama(endpoint, list).await,
        Some(ServerKind::LmStudio) => lm_studio(endpoint, list).await,
        Some(ServerKind::Vllm) | None => {}
    }
}

async fn asked(endpoint: &Endpoint, path: &str, send: Option<Value>) -> Option<Value> {
    let url = url::server_url(&endpoint.base_url, path).ok()?;
    let place = place(endpoint, &url);
    let client = http::client(endpoint, &url, &place).ok()?;
    let request = match send {
        Some(value) => client.post(url).header("content-type", "application/json").body(value.to_string()),
        None => client.get(url),
    };
    let body = body(request, &place, MAX_BYTES, PATIENCE).await.ok()??;
    serde_json::from_slice(&body).ok()
}

/// The window of one slot: what a request really has.
async fn llama_cpp(endpoint: &Endpoint, list: &mut ModelList) {
    // A server with several models tells of none in particular.
    let [only] = list.models.as_mut_slice() else { return };
    let Some(props) = asked(endpoint, "/props", None).await else { return };
    let slot = props.pointer("/default_generation_settings/n_ctx").or_else(|| props.get("n_ctx"));
    let facts = &mut only.facts;
    facts.context_window = slot.and_then(whole).or(facts.context_window);
    facts.images = props.pointer("/modalities/vision").and_then(Value::as_bool).or(facts.images);
    facts.tools = props.pointer("/chat_template_caps/supports_tools").and_then(Value::as_bool).or(facts.tools);
    list.loaded.push(only.id.clone());
}

/// The window a model is loaded with; of one that is not, the largest it can be loaded with.
async fn lm_studio(endpoint: &Endpoint, list: &mut ModelList) {
    let Some(answer) = asked(endpoint, "/api/v0/models", None).await else { return };
    for entry in answer.get("data").and_then(Value::as_array).into_iter().flatten() {
        let Some(told) = model(entry) else { continue };
        let Some(known) = list.models.iter_mut().find(|model| model.id == told.id) else { continue };
        let loaded = entry.get("loaded_context_length").and_then(whole);
        known.facts.context_window = loaded.or(known.facts.context_window);
        known.facts.trained_window = entry.get("max_context_length").and_then(whole);
        known.facts.tools = told.facts.tools.or(known.facts.tools);
        known.facts.images = entry.get("type").and_then(Value::as_str).map(|kind| kind == "vlm");
        if entry.get("state").and_then(Value::as_str) == Some("loaded") {
            list.loaded.push(told.id);
        }
    }
}

/// The window a model is loaded with, else the one its file sets; the one it was made for is only an upper end, because
/// Ollama takes as much as the machine has memory for, and cuts a longer prompt without a word.
async fn ollama(endpoint: &Endpoint, list: &mut ModelList) {
    let running = asked(endpoint, "/api/ps", None).await.unwrap_or_default();
    let running: Vec<&Value> = running.get("models").and_then(Value::as_array).into_iter().flatten().collect();
    for known in list.models.iter_mut().take(MAX_SHOWN) {
        let Some(shown) = asked(endpoint, "/api/show", Some(json!({"model": known.id}))).await else { continue };
        let loaded = running.iter().find(|entry| {
            ["model", "name"].iter().any(|key| entry.get(*key).and_then(Value::as_str) == Some(known.id.as_str()))
        });
        let facts = &mut known.facts;
        facts.context_window =
            loaded.and_then(|entry| whole(entry.get("context_length")?)).or_else(|| set_window(&shown));
        facts.trained_window = trained_window(&shown);
        if let Some(able) = shown.get("capabilities").and_then(Value::as_array) {
            let can = |word: &str| Some(able.iter().any(|value| value.as_str() == Some(word)));
            (facts.tools, facts.images, facts.reasoning) = (can("tools"), can("vision"), can("thinking"));
        }
        if loaded.is_some() {
            list.loaded.push(known.id.clone());
        }
    }
}

/// `num_ctx 8192` among the lines of its parameters.
fn set_window(shown: &Value) -> Option<u64> {
    let lines = shown.get("parameters")?.as_str()?.lines();
    lines
        .filter_map(|line| line.trim().strip_prefix("num_ctx"))
        .find_map(|rest| rest.trim().parse().ok())
        .filter(|n| *n > 0)
}

fn trained_window(shown: &Value) -> Option<u64> {
    let info = shown.get("model_info")?.as_object()?;
    info.iter().find(|(key, _)| key.ends_with(".context_length")).and_then(|(_, value)| whole(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_an_ollama_model_are_read() {
        for (shown, set, trained) in [
            (
                json!({"parameters": "stop \"<x>\"\nnum_ctx                        8192\ntemperature 1"}),
                Some(8_192),
                None,
            ),
            (json!({"parameters": "num_ctx many"}), None, None),
            (
                json!({"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 262_144}}),
                None,
                Some(262_144),
            ),
            (json!({"model_info": {"x.context_length": 0}, "parameters": ""}), None, None),
            (json!({}), None, None),
        ] {
            assert_eq!((set_window(&shown), trained_window(&shown)), (set, trained), "{shown}");
        }
    }
}
