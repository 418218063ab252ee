//! Usage and cost in all the shapes providers give them, brought to one.

use hames_protocol::{Cost, Usage};
use serde_json::Value;

/// Tokens out of a provider's usage object.
pub(crate) fn normalised(raw: &Value) -> Usage {
    let number = |path: &[&str]| {
        let found = path.iter().try_fold(raw, |value, key| value.get(key))?;
        found.as_u64().or_else(|| found.as_f64().filter(|f| *f >= 0.0).map(|f| f as u64))
    };
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| number(path));
    let cache_read = first(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["prompt_token_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["prompt_cache_hit_tokens"],
        &["cache_read_input_tokens"],
        &["cached_tokens"],
    ]);
    let cache_write = first(&[
        &["prompt_tokens_details", "cache_write_tokens"],
        &["cache_creation_input_tokens"],
        &["cache_write_tokens"],
    ]);
    let input = first(&[&["prompt_tokens"]]).or_else(|| {
        // Where the input is called so, its cached part is counted beside it.
        let fresh = number(&["input_tokens"])?;
        let beside =
            number(&["cache_read_input_tokens"]).unwrap_or(0) + number(&["cache_creation_input_tokens"]).unwrap_or(0);
        Some(fresh.saturating_add(beside))
    });
    Usage {
        input,
        output: first(&[&["completion_tokens"], &["output_tokens"]]),
        cache_read,
        cache_write,
        reasoning: first(&[
            &["completion_tokens_details", "reasoning_tokens"],
            &["output_tokens_details", "reasoning_tokens"],
            &["reasoning_tokens"],
        ]),
    }
}

/// Ticks of a US dollar in which one provider states what a request cost.
const TICKS_PER_USD: f64 = 1e10;

/// Money out of a usage object, or out of a `cost` beside it. Only what a provider states: nothing is computed.
pub(crate) fn stated_cost(usage: Option<&Value>, beside: Option<&Value>) -> Option<Cost> {
    let in_usage = usage.and_then(|usage| {
        let ticks = || Some(usage.get("cost_in_usd_ticks")?.as_f64()? / TICKS_PER_USD);
        usage.get("cost").and_then(dollars).or_else(ticks)
    });
    let usd = in_usage.or_else(|| beside.and_then(dollars)).filter(|usd| usd.is_finite() && *usd >= 0.0)?;
    Some(Cost { micros: (usd * 1e6).round() as u64, currency: "USD".into(), computed: false })
}

fn dollars(cost: &Value) -> Option<f64> {
    match cost {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Object(parts) => ["total_cost", "usd", "total"].iter().find_map(|key| parts.get(*key)?.as_f64()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, read: Option<u64>, write: Option<u64>, reasoning: Option<u64>) -> Usage {
        Usage { input: Some(input), output: Some(output), cache_read: read, cache_write: write, reasoning }
    }

    #[test]
    fn every_shape_of_usage_is_read() {
        let cases = [
            (r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#, usage(9, 2, None, None, None)),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"completion_tokens_details":{"reasoning_tokens":1}}"#,
                usage(9, 2, Some(4), Some(1), Some(1)),
            ),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}"#,
                usage(9, 2, Some(8), None, None),
            ),
            (r#"{"prompt_tokens":9,"completion_tokens":2,"cached_tokens":3}"#, usage(9, 2, Some(3), None, None)),
            (
                r#"{"prompt_tokens":9,"completion_tokens":2,"cache_read_input_tokens":0,"cache_creation_input_tokens":5}"#,
                usage(9, 2, Some(0), Some(5), None),
            ),
            (r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_token_details":null}"#, usage(9, 2, None, None, None)),
            (r#"{"prompt_tokens":9.0,"completion_tokens":2,"reasoning_tokens":1}"#, usage(9, 2, None, None, Some(1))),
            (r#"{"input_tokens":4,"output_tokens":2,"cache_read_input_tokens":5}"#, usage(9, 2, Some(5), None, None)),
            (r#"{"prompt_tokens":9,"completion_tokens":null}"#, Usage { input: Some(9), ..Usage::default() }),
            (r#"{"prompt_tokens":-1,"completion_tokens":"x"}"#, Usage::default()),
            ("{}", Usage::default()),
            ("[1]", Usage::default()),
        ];
        for (raw, expected) in cases {
            assert_eq!(normalised(&serde_json::from_str(raw).unwrap()), expected, "{raw}");
        }
    }

    #[test]
    fn a_stated_cost_is_kept_in_micro_units_and_nothing_else_is_one() {
        let cases = [
            (r#"{"cost":0.001322}"#, "null", Some(1322)),
            (r#"{"cost":0}"#, "null", Some(0)),
            (r#"{"cost":{"input_tokens_cost":1e-5,"total_cost":0.00501}}"#, "null", Some(5010)),
            (r#"{"cost_in_usd_ticks":1654500}"#, "null", Some(165)),
            ("{}", r#"{"diem":0,"usd":0.00015780000000000001}"#, Some(158)),
            ("{}", r#""0.25""#, Some(250_000)),
            ("{}", "null", None),
            (r#"{"cost":-1}"#, "null", None),
            (r#"{"cost":"much"}"#, "[]", None),
        ];
        for (usage, beside, micros) in cases {
            let usage = serde_json::from_str(usage).unwrap();
            let beside = serde_json::from_str(beside).unwrap();
            let cost = stated_cost(Some(&usage), Some(&beside));
            assert_eq!(cost.map(|c| c.micros), micros, "{usage} {beside}");
        }
    }
}
