//! Every key the configuration file may hold, one table for each object.
//!
//! The reader knows no other, `config.example.jsonc` shows each, and a test holds both to that. A new table also gets a
//! line in [`TABLES`], or the test does not know of it.

/// Of the file.
pub(crate) const ROOT: &[&str] = &[
    "$schema",
    "model",
    "providers",
    "catalog",
    "approve",
    "policy",
    "web",
    "guard",
    "database",
    "server",
    "keys",
    "compaction",
    "titles",
];

/// Of one provider.
pub(crate) const PROVIDER: &[&str] = &[
    "base_url",
    "api_key",
    "api_key_env",
    "api",
    "thinking",
    "thinking_level",
    "enableThinking",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "headers",
    "session_header",
    "models",
    "catalog",
    "max_tokens",
    "replay_reasoning",
    "thinking_tags",
    "text_tool_calls",
    "timeouts",
];

/// Of one model of a provider.
pub(crate) const MODEL: &[&str] = &[
    "id",
    "context_window",
    "max_output",
    "images",
    "price",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
];

/// Of a model's `price`: dollars for a million tokens.
pub(crate) const PRICE: &[&str] = &["input", "output", "cache_read", "cache_write"];

/// Of a provider's `timeouts`.
pub(crate) const TIMEOUTS: &[&str] = &["connect_s", "first_byte_s", "idle_s"];

/// Of `catalog`.
pub(crate) const CATALOG: &[&str] = &["models_dev", "local_servers"];

/// Of `policy`.
pub(crate) const POLICY: &[&str] = &["rules"];

/// Of `web`.
pub(crate) const WEB: &[&str] = &["allow", "proxy"];

/// Of `guard`.
pub(crate) const GUARD: &[&str] = &[
    "level",
    "guard_response",
    "max_nudges",
    "reasoning_threshold",
    "reasoning_min_tokens",
    "cross_turn_similarity",
    "cross_turn_min_length",
    "tool_failure_repeats",
    "error_streak_turns",
    "tool_repeat_consecutive",
    "tool_repeat_window",
    "tool_repeat_window_threshold",
    "answer_threshold",
    "answer_min_tokens",
];

/// Of `database`.
pub(crate) const DATABASE: &[&str] = &["vacuum_free_percent", "vacuum_free_mb"];

/// Of `server`.
pub(crate) const SERVER: &[&str] = &["idle_exit"];

/// Of `compaction`.
pub(crate) const COMPACTION: &[&str] = &["auto", "strategy", "trigger", "landing", "summary_model"];

/// Of one rule.
pub(crate) const RULE: &[&str] = &["verdict", "path", "access", "command", "host", "tool", "any"];

/// Where each table holds: `*` is whatever name or place there is.
#[cfg(test)]
pub(crate) const TABLES: &[(&str, &[&str])] = &[
    ("", ROOT),
    ("/providers/*", PROVIDER),
    ("/providers/*/models/*", MODEL),
    ("/providers/*/models/*/price", PRICE),
    ("/providers/*/timeouts", TIMEOUTS),
    ("/catalog", CATALOG),
    ("/policy", POLICY),
    ("/policy/rules/*", RULE),
    ("/web", WEB),
    ("/guard", GUARD),
    ("/database", DATABASE),
    ("/server", SERVER),
    ("/compaction", COMPACTION),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::config::FileConfig;
    use crate::config::edit::value_of;

    const EXAMPLE: &str = include_str!("../../../../config.example.jsonc");

    /// Every value a path leads to.
    fn at<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
        path.split('/').skip(1).fold(vec![value], |found, step| {
            let inner = found.into_iter().flat_map(|value| -> Vec<&Value> {
                match (step, value) {
                    ("*", Value::Object(members)) => members.values().collect(),
                    ("*", Value::Array(elements)) => elements.iter().collect(),
                    (name, value) => value.get(name).into_iter().collect(),
                }
            });
            inner.collect()
        })
    }

    #[test]
    fn the_example_parses_and_shows_every_key() {
        let path = Path::new("config.example.jsonc");
        let read = FileConfig::parse(path, EXAMPLE).unwrap();
        assert_eq!(read.warnings, Vec::<String>::new());
        let example = value_of(path, EXAMPLE).unwrap();
        for (place, table) in TABLES {
            for key in *table {
                let shown = at(&example, place).iter().any(|object| object.get(*key).is_some());
                assert!(shown, "config.example.jsonc does not show {place}/{key}");
            }
        }
    }
}
