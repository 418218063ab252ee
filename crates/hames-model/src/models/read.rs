//! The shapes in which providers list their models, brought to one.

use hames_protocol::{Price, Rates};
use serde_json::Value;

use super::{ModelList, ServerKind};
use crate::catalog::{Facts, ListedModel};

/// Windows as they are served, best known first. A dot steps into an object.
const WINDOWS: [&str; 16] = [
    "loaded_context_length",
    "top_provider.context_length",
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "context_size",
    "limit.context",
    "limits.max_context_window_tokens",
    "capabilities.limits.max_context_window_tokens",
    "model_spec.availableContextTokens",
    "metadata.context_length",
    "inputTokenLimit",
    "max_input_tokens",
    // What a server was started with says more than what the model was trained for.
    "meta.n_ctx",
    "max_context_tokens",
];

/// Tokens one answer may have.
const OUTPUTS: [&str; 11] = [
    "top_provider.max_completion_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_output_length",
    "max_output",
    "limit.output",
    "capabilities.limits.max_output_tokens",
    "model_spec.maxCompletionTokens",
    "metadata.max_tokens",
    "outputTokenLimit",
    "max_tokens",
];

/// Flags that say whether a model calls tools, takes images, can think.
const TOOLS: [&str; 6] = [
    "capabilities.function_calling",
    "capabilities.supports.tool_calls",
    "model_spec.capabilities.supportsFunctionCalling",
    "supports_tools",
    "supports_function_calling",
    "tool_call",
];
const IMAGES: [&str; 7] = [
    "capabilities.vision",
    "capabilities.supports.vision",
    "capabilities.image_input.supported",
    "model_spec.capabilities.supportsVision",
    "supports_image_in",
    "supports_image_input",
    "supports_vision",
];
const REASONING: [&str; 5] = [
    "capabilities.reasoning",
    "capabilities.thinking.supported",
    "model_spec.capabilities.supportsReasoning",
    "supports_reasoning",
    "reasoning",
];

/// The list of what requests may hold: what is not in it cannot be asked for.
const PARAMETERS: &str = "supported_parameters";
/// Lists of words among which abilities are named, and other things too: what is not in them is not known.
const WORDS: [&str; 3] = ["capabilities", "tags", "metadata.tags"];

/// Reads a list. `None` where the value is none.
pub(super) fn list(value: &Value) -> Option<ModelList> {
    let models = ["data", "models"].iter().find_map(|key| value.get(*key)).unwrap_or(value).as_array()?;
    let server = models.iter().find_map(|model| match model.get("owned_by")?.as_str()? {
        "llamacpp" => Some(ServerKind::LlamaCpp),
        "library" => Some(ServerKind::Ollama),
        "organization_owner" => Some(ServerKind::LmStudio),
        "vllm" => Some(ServerKind::Vllm),
        _ => None,
    });
    Some(ModelList { models: models.iter().filter_map(model).collect(), server, loaded: Vec::new() })
}

/// Reads one model.
pub(super) fn model(model: &Value) -> Option<ListedModel> {
    let id = ["id", "name", "model"].iter().find_map(|key| model.get(*key)?.as_str()).or_else(|| model.as_str())?;
    let number = |paths: &[&str]| paths.iter().find_map(|path| whole(at(model, path)?));
    let flag = |paths: &[&str]| paths.iter().find_map(|path| at(model, path)?.as_bool());
    let words = Words::of(model);
    let images = flag(&IMAGES).or_else(|| words.images()).or_else(|| takes_images(model));
    let facts = Facts {
        context_window: number(&WINDOWS).or_else(|| smallest_window(model)),
        trained_window: number(&["meta.n_ctx_train"]),
        max_output: number(&OUTPUTS),
        price: price(model),
        tools: flag(&TOOLS).or_else(|| words.tools()),
        images,
        reasoning: flag(&REASONING).or_else(|| words.reasoning()),
    };
    Some(ListedModel { id: id.to_owned(), facts })
}

/// The words in which some name what a model can.
struct Words<'v> {
    words: Vec<&'v str>,
    /// Whether what is not among them is a no.
    is_complete: bool,
}

impl<'v> Words<'v> {
    fn of(model: &'v Value) -> Self {
        let words = |path: &str| Some(at(model, path)?.as_array()?.iter().filter_map(Value::as_str).collect());
        match words(PARAMETERS) {
            Some(words) => Self { words, is_complete: true },
            None => Self { words: WORDS.iter().find_map(|path| words(path)).unwrap_or_default(), is_complete: false },
        }
    }

    fn any(&self, wanted: &[&str]) -> Option<bool> {
        let has = self.words.iter().any(|word| wanted.contains(word));
        (has || self.is_complete).then_some(has)
    }

    fn tools(&self) -> Option<bool> {
        self.any(&["tools", "tool_use", "tool-use", "tool_choice", "function-calling", "function_calling"])
    }

    fn reasoning(&self) -> Option<bool> {
        self.any(&["reasoning", "reasoning_effort", "include_reasoning", "thinking"])
    }

    /// A word for images says yes; its absence says nothing, because those lists are often about other things.
    fn images(&self) -> Option<bool> {
        self.any(&["vision", "multimodal", "image-input", "image"]).filter(|yes| *yes)
    }
}

fn takes_images(model: &Value) -> Option<bool> {
    let modalities = ["architecture.input_modalities", "input_modalities", "modalities.input"]
        .iter()
        .find_map(|path| at(model, path)?.as_array())?;
    Some(modalities.iter().any(|word| word.as_str() == Some("image")))
}

/// A router names a window for each of its providers, and takes any of them.
fn smallest_window(model: &Value) -> Option<u64> {
    let providers = model.get("providers")?.as_array()?;
    providers.iter().filter_map(|provider| whole(provider.get("context_length")?)).min()
}

/// What a million tokens cost. Two units are in use: strings are dollars for one token, numbers dollars for a million.
fn price(model: &Value) -> Option<Price> {
    let pricing = ["pricing", "metadata.pricing", "model_spec.pricing"].iter().find_map(|path| at(model, path))?;
    let rate = |keys: &[&str]| keys.iter().find_map(|key| micros(at(pricing, key)?));
    let rates = Rates {
        input: rate(&["prompt", "input", "input_tokens", "input.usd"])?,
        output: rate(&["completion", "output", "output_tokens", "output.usd"])?,
        cache_read: rate(&["input_cache_read", "cached_input", "cache_read_tokens", "cache_input.usd"]),
        cache_write: rate(&["input_cache_write", "cache_write_tokens"]),
    };
    Some(Price { rates, tiers: Vec::new() })
}

fn micros(value: &Value) -> Option<u64> {
    let per_million = match value {
        Value::String(text) => text.trim().parse::<f64>().ok()? * 1e6,
        Value::Number(number) => number.as_f64()?,
        _ => return None,
    };
    // Less than nothing is how "it depends" is written.
    (0.0..1e9).contains(&per_million).then(|| (per_million * 1e6).round() as u64)
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// A count that is not zero, as a number or in a string.
pub(super) fn whole(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| value.as_f64().filter(|f| (1.0..9e15).contains(f)).map(|f| f as u64));
    number.or_else(|| value.as_str()?.trim().parse().ok()).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn facts(value: Value) -> Facts {
        model(&value).unwrap().facts
    }

    fn ids(value: Value) -> Option<Vec<String>> {
        list(&value).map(|list| list.models.into_iter().map(|model| model.id).collect())
    }

    #[test]
    fn lists_of_every_shape_are_read() {
        for (value, expected) in [
            (json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}), Some(vec!["a", "b"])),
            (json!({"models": [{"name": "models/a"}]}), Some(vec!["models/a"])),
            (json!({"models": [{"name": "x"}], "data": [{"id": "a"}]}), Some(vec!["a"])),
            (json!([{"id": "a"}]), Some(vec!["a"])),
            (json!(["a", 7, {"x": 1}, null]), Some(vec!["a"])),
            (json!({"data": []}), Some(vec![])),
            (json!({"data": null}), None),
            (json!({"error": "no"}), None),
            (json!("text"), None),
            (json!(7), None),
        ] {
            let expected = expected.map(|ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect());
            assert_eq!(ids(value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn the_server_shows_by_what_it_says_of_its_owner() {
        for (owner, kind) in [
            ("llamacpp", Some(ServerKind::LlamaCpp)),
            ("library", Some(ServerKind::Ollama)),
            ("organization_owner", Some(ServerKind::LmStudio)),
            ("vllm", Some(ServerKind::Vllm)),
            ("openai", None),
        ] {
            assert_eq!(list(&json!([{"id": "a", "owned_by": owner}])).unwrap().server, kind, "{owner}");
        }
    }

    #[test]
    fn windows_are_found_under_every_name() {
        for (value, window, trained) in [
            (json!({"id": "a", "context_length": 8}), Some(8), None),
            (json!({"id": "a", "context_length": 9, "top_provider": {"context_length": 8}}), Some(8), None),
            (json!({"id": "a", "context_length": 9, "top_provider": {"context_length": null}}), Some(9), None),
            (json!({"id": "a", "context_window": 8.0}), Some(8), None),
            (json!({"id": "a", "max_model_len": 8}), Some(8), None),
            (json!({"id": "a", "max_context_length": 8, "loaded_context_length": 4}), Some(4), None),
            (json!({"id": "a", "meta": {"n_ctx_train": 9}}), None, Some(9)),
            (json!({"id": "a", "meta": {"n_ctx_train": 9, "n_ctx": 8}}), Some(8), Some(9)),
            (json!({"name": "a", "inputTokenLimit": "8"}), Some(8), None),
            (json!({"id": "a", "capabilities": {"limits": {"max_context_window_tokens": 8}}}), Some(8), None),
            (json!({"id": "a", "model_spec": {"availableContextTokens": 8}}), Some(8), None),
            (json!({"id": "a", "metadata": {"context_length": 8}}), Some(8), None),
            (json!({"id": "a", "providers": [{"context_length": 9}, {"context_length": 8}, {}]}), Some(8), None),
            (json!({"id": "a", "context_window": 0}), None, None),
            (json!({"id": "a", "context_window": -5}), None, None),
            (json!({"id": "a", "context_window": "many"}), None, None),
            (json!({"id": "a", "context_window": {"x": 8}}), None, None),
            (json!({"id": "a", "context_window": 1e300}), None, None),
        ] {
            let facts = facts(value.clone());
            assert_eq!((facts.context_window, facts.trained_window), (window, trained), "{value}");
        }
    }

    #[test]
    fn a_price_is_read_in_both_units_and_one_that_depends_is_none() {
        let rates = |input, output, cache_read| Some(Rates { input, output, cache_read, cache_write: None });
        for (pricing, expected) in [
            (
                json!({"prompt": "0.00000125", "completion": "0.00001", "input_cache_read": "0.000000125"}),
                rates(1_250_000, 10_000_000, Some(125_000)),
            ),
            (json!({"prompt": "0", "completion": "0"}), rates(0, 0, None)),
            (
                json!({"hourly": 0, "input": 0.88, "output": 0.9, "cached_input": 0.1}),
                rates(880_000, 900_000, Some(100_000)),
            ),
            (json!({"input": "0.000003", "output": "0.000015"}), rates(3_000_000, 15_000_000, None)),
            (
                json!({"input_tokens": 0.27, "output_tokens": 1.1, "cache_read_tokens": 0.07}),
                rates(270_000, 1_100_000, Some(70_000)),
            ),
            (json!({"input": {"usd": 0.5}, "output": {"usd": 2}}), rates(500_000, 2_000_000, None)),
            (json!({"prompt": "-1", "completion": "-1"}), None),
            (json!({"prompt": "0.1"}), None),
            (json!({"prompt": "much", "completion": "more"}), None),
            (json!({}), None),
            (json!(null), None),
        ] {
            let price = facts(json!({"id": "a", "pricing": pricing})).price;
            assert_eq!(price.map(|price| price.rates), expected, "{pricing}");
        }
    }

    #[test]
    fn abilities_are_read_from_flags_and_words() {
        for (value, expected) in [
            (
                json!({"id": "a", "supported_parameters": ["tools", "reasoning"], "architecture": {"input_modalities": ["text", "image"]}}),
                (Some(true), Some(true), Some(true)),
            ),
            (
                json!({"id": "a", "supported_parameters": ["temperature"], "architecture": {"input_modalities": ["text"]}}),
                (Some(false), Some(false), Some(false)),
            ),
            (
                json!({"id": "a", "capabilities": {"completion_chat": true, "function_calling": true, "vision": false}}),
                (Some(true), Some(false), None),
            ),
            (
                json!({"id": "a", "capabilities": {"supports": {"tool_calls": true, "vision": true}}}),
                (Some(true), Some(true), None),
            ),
            (json!({"id": "a", "capabilities": ["tool_use"]}), (Some(true), None, None)),
            (json!({"id": "a", "tags": [""], "capabilities": ["completion"]}), (None, None, None)),
            (json!({"id": "a", "tags": ["vision", "tool-use", "reasoning"]}), (Some(true), Some(true), Some(true))),
            (
                json!({"id": "a", "supports_image_in": true, "supports_reasoning": false}),
                (None, Some(true), Some(false)),
            ),
            (json!({"id": "a"}), (None, None, None)),
        ] {
            let facts = facts(value.clone());
            assert_eq!((facts.tools, facts.images, facts.reasoning), expected, "{value}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::proptest_cases()))]

        #[test]
        fn no_json_is_a_crash(keys in proptest::collection::vec("(id|pricing|meta|context_length|capabilities|data|providers|tags)", 1..6), numbers in proptest::collection::vec(any::<f64>(), 6)) {
            let mut value = json!(numbers);
            for key in keys {
                value = json!({key: value, "id": "a"});
                let _ = list(&value);
                let _ = list(&json!([value]));
            }
        }
    }
}
