//! The public catalog of models.dev, and its reading: one JSON object, provider by provider.

use std::collections::BTreeMap;
use std::time::Duration;

use hames_protocol::{ErrorClass, Failure, Price, Rates};
use serde::Deserialize;
use serde_json::Value;

use super::{Catalog, Facts, ListedModel};
use crate::error::Place;
use crate::models::get;
use crate::{Endpoint, Proxy};

/// Where the catalog is.
pub const MODELS_DEV: &str = "https://models.dev/api.json";

/// Bytes that are read of it; it has about 3 MB.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// How long it may take: nobody waits for it but who asked for a list.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fetches the catalog from an address that serves it, and gives it in our own form, stamped with `stamp`.
pub async fn fetch_models_dev(url: &str, proxy: Option<Proxy>, stamp: &str) -> Result<Catalog<'static>, Failure> {
    let mut endpoint = Endpoint::new("models.dev", url);
    endpoint.proxy = proxy;
    let bad = |why: &str| {
        Failure::new(
            ErrorClass::Configuration,
            format!("the address of the model catalog {why}; correct catalog.models_dev in the configuration"),
        )
    };
    let address = reqwest::Url::parse(url).map_err(|_| bad("is no URL"))?;
    let place = Place::new(&endpoint, address.host_str().unwrap_or(""), "");
    let no_catalog = || {
        place.failure(
            ErrorClass::WrongBaseUrl,
            "what it answers is no catalog of models",
            "Correct catalog.models_dev in the configuration, or set it to false",
        )
    };
    let body = get(&endpoint, address, &place, MAX_BYTES, PATIENCE).await?.ok_or_else(no_catalog)?;
    let stamp = stamp.to_owned();
    let read = tokio::task::spawn_blocking(move || read_models_dev(&body, &stamp)).await;
    read.ok().flatten().ok_or_else(no_catalog)
}

#[derive(Deserialize)]
struct Provider {
    #[serde(default)]
    models: BTreeMap<String, Value>,
}

/// Reads the catalog's JSON. `None` where it is none, or names no model at all.
pub fn read_models_dev(json: &[u8], stamp: &str) -> Option<Catalog<'static>> {
    let providers: BTreeMap<String, Value> = serde_json::from_slice(json).ok()?;
    let sections: Vec<(String, Vec<ListedModel>)> = providers
        .into_iter()
        .filter_map(|(name, value)| {
            let provider: Provider = serde_json::from_value(value).ok()?;
            let models = provider.models.iter().filter_map(|(id, model)| read_model(id, model)).collect();
            Some((name, models))
        })
        .collect();
    let any = sections.iter().any(|(_, models): &(_, Vec<_>)| !models.is_empty());
    any.then(|| Catalog::write(stamp, sections.iter().map(|(name, models)| (name.as_str(), models.as_slice()))))
}

/// A model that answers with text; others (pictures, speech, embeddings) are none of ours.
fn read_model(id: &str, model: &Value) -> Option<ListedModel> {
    let has = |path: &str, word: &str| {
        let list = model.pointer(path)?.as_array()?;
        Some(list.iter().any(|value| value.as_str() == Some(word)))
    };
    let number = |path: &str| model.pointer(path).and_then(Value::as_u64).filter(|n| *n > 0);
    let context_window = number("/limit/context")?;
    if has("/modalities/output", "text") == Some(false) {
        return None;
    }
    let flag = |key: &str| model.get(key).and_then(Value::as_bool);
    let facts = Facts {
        context_window: Some(context_window),
        trained_window: None,
        max_output: number("/limit/output"),
        price: model.get("cost").and_then(|cost| read_cost(id, cost)),
        tools: flag("tool_call"),
        images: has("/modalities/input", "image"),
        reasoning: flag("reasoning"),
    };
    Some(ListedModel { id: id.to_owned(), facts })
}

/// One object with `tiers` or `context_over_200k` beside it, or a list of objects with their `min_context`.
fn read_cost(id: &str, cost: &Value) -> Option<Price> {
    let mut tiers: Vec<(u64, Rates)> = Vec::new();
    match cost {
        Value::Array(list) => {
            for tier in list {
                let above = tier.get("min_context").and_then(Value::as_u64).unwrap_or(0);
                tiers.extend(read_rates(tier).map(|rates| (above, rates)));
            }
        }
        Value::Object(_) => {
            tiers.push((0, read_rates(cost)?));
            let over = cost.get("context_over_200k").and_then(read_rates);
            tiers.extend(over.map(|rates| (200_000, rates)));
            for tier in cost.get("tiers").and_then(Value::as_array).into_iter().flatten() {
                let above =
                    ["/min_context", "/tier/size", "/context"].iter().find_map(|path| tier.pointer(path)?.as_u64());
                tiers.extend(above.zip(read_rates(tier)));
            }
        }
        _ => return None,
    }
    tiers.sort_by_key(|(above, _)| *above);
    tiers.dedup_by_key(|(above, _)| *above);
    let (first, rates) = *tiers.first()?;
    // Nothing at all is what a subscription is listed with, and what nobody knows; only some are free.
    let is_nothing = rates.input == 0 && rates.output == 0;
    if first != 0 || (is_nothing && !id.ends_with(":free")) {
        return None;
    }
    tiers.remove(0);
    Some(Price { rates, tiers })
}

fn read_rates(cost: &Value) -> Option<Rates> {
    let dollars = |key: &str| {
        let value = cost.get(key)?.as_f64().filter(|usd| (0.0..1e9).contains(usd))?;
        Some((value * 1e6).round() as u64)
    };
    let (input, output) = (dollars("input")?, dollars("output")?);
    // A cache that costs nothing beside input that does is a gap in the list.
    let cached = |key: &str| dollars(key).filter(|rate| *rate > 0 || input == 0);
    Some(Rates { input, output, cache_read: cached("cache_read"), cache_write: cached("cache_write") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(models: Value) -> Vec<ListedModel> {
        let json = json!({"p": {"id": "p", "models": models}, "odd": 7}).to_string();
        let catalog = read_models_dev(json.as_bytes(), "today");
        catalog.map(|catalog| catalog.section("p").unwrap().models().collect()).unwrap_or_default()
    }

    #[test]
    fn a_model_is_read_with_limits_price_and_abilities() {
        let read = read(json!({"m": {
            "id": "m", "tool_call": true, "reasoning": false, "attachment": true, "unheard": {"of": 1},
            "modalities": {"input": ["text", "image"], "output": ["text"]},
            "limit": {"context": 200_000, "output": 8_192},
            "cost": {"input": 3, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75},
        }}));
        let rates =
            Rates { input: 3_000_000, output: 15_000_000, cache_read: Some(300_000), cache_write: Some(3_750_000) };
        let facts = Facts {
            context_window: Some(200_000),
            trained_window: None,
            max_output: Some(8_192),
            price: Some(Price { rates, tiers: vec![] }),
            tools: Some(true),
            images: Some(true),
            reasoning: Some(false),
        };
        assert_eq!(read, [ListedModel { id: "m".into(), facts }]);
    }

    #[test]
    fn every_shape_of_a_price_is_read_and_no_price_is_not_zero() {
        let large = |above, input| (above, Rates { input, output: 9_000_000, ..Rates::default() });
        for (cost, input, tiers) in [
            (json!({"input": 1.25, "output": 10}), Some(1_250_000), vec![]),
            (
                json!({"input": 2, "output": 12, "context_over_200k": {"input": 4, "output": 9}}),
                Some(2_000_000),
                vec![large(200_000, 4_000_000)],
            ),
            (
                json!([{"min_context": 0, "input": 2, "output": 12}, {"min_context": 128_000, "input": 4, "output": 9}]),
                Some(2_000_000),
                vec![large(128_000, 4_000_000)],
            ),
            (
                json!({"input": 2, "output": 12, "tiers": [{"tier": {"type": "context", "size": 1_000}, "input": 3, "output": 9}]}),
                Some(2_000_000),
                vec![large(1_000, 3_000_000)],
            ),
            (json!({"input": 0, "output": 0}), None, vec![]),
            (json!([{"min_context": 5, "input": 1, "output": 1}]), None, vec![]),
            (json!({"input": 1}), None, vec![]),
            (json!({"input": -1, "output": 1}), None, vec![]),
            (json!({"input": "1", "output": 1}), None, vec![]),
            (json!([]), None, vec![]),
            (json!(null), None, vec![]),
        ] {
            let read = read(json!({"m": {"limit": {"context": 5}, "cost": cost}}));
            let price = read[0].facts.price.clone();
            assert_eq!(price.as_ref().map(|price| price.rates.input), input, "{cost}");
            assert_eq!(price.map(|price| price.tiers).unwrap_or_default(), tiers, "{cost}");
        }
        let free = self::read(json!({"m:free": {"limit": {"context": 5}, "cost": {"input": 0, "output": 0}}}));
        assert_eq!(free[0].facts.price, Some(Price::default()));
        let gap =
            self::read(json!({"m": {"limit": {"context": 5}, "cost": {"input": 1, "output": 1, "cache_read": 0}}}));
        assert_eq!(gap[0].facts.price.as_ref().unwrap().rates.cache_read, None);
    }

    #[test]
    fn models_without_a_window_or_without_text_are_left_out() {
        let read = read(json!({
            "picture": {"limit": {"context": 5}, "modalities": {"output": ["image"]}},
            "none": {"limit": {"context": 0}},
            "odd": 7,
            "older": {"limit": {"context": 5}},
        }));
        assert_eq!(read.into_iter().map(|model| model.id).collect::<Vec<_>>(), ["older"]);
    }

    #[test]
    fn what_is_no_catalog_is_none() {
        for json in
            ["", "<html>", "[]", "{}", "{\"p\": {\"models\": {}}}", "{\"error\": \"x\"}", "{\"p\": {\"models\": []}}"]
        {
            assert_eq!(read_models_dev(json.as_bytes(), ""), None, "{json}");
        }
    }
}
