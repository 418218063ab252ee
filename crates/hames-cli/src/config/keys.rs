//! Every key the configuration file may hold, one table for each object.
//!
//! The reader knows no other, `config.example.jsonc` shows each, and a test holds both to that.

/// Of the file.
pub(crate) const ROOT: &[&str] = &["$schema", "model", "providers", "catalog", "approve", "policy", "web"];

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

/// Of one rule.
pub(crate) const RULE: &[&str] = &["verdict", "path", "access", "command", "host", "tool", "any"];
