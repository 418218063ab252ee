//! Endpoints that are known by name: ready as soon as their key is in the environment, and offered by `hames providers
//! add`. What their models can is the catalog's business, not this table's.

use super::file::Thinking;

/// A well-known endpoint.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    /// What people call it.
    pub(crate) title: &'static str,
    /// The variable its key is taken from; none for a server of one's own.
    pub(crate) key_var: Option<&'static str>,
    /// A variable that replaces the base URL, and makes the provider ready by itself: a local server needs no key.
    pub(crate) url_var: Option<&'static str>,
    pub(crate) base_url: &'static str,
    pub(crate) thinking: Option<Thinking>,
    /// The header it wants the session's id in.
    pub(crate) session_header: Option<&'static str>,
    /// What is meant where nobody names a model.
    pub(crate) default_model: Option<&'static str>,
}

const NONE: Preset = Preset {
    name: "",
    title: "",
    key_var: None,
    url_var: None,
    base_url: "",
    thinking: None,
    session_header: None,
    default_model: None,
};

/// In the order in which they are preferred.
pub(crate) const PRESETS: [Preset; 20] = [
    Preset {
        name: "openai",
        title: "OpenAI",
        key_var: Some("OPENAI_API_KEY"),
        url_var: Some("OPENAI_BASE_URL"),
        base_url: "https://api.openai.com/v1",
        thinking: Some(Thinking::Effort),
        // Later ones refuse tools on this endpoint unless reasoning is switched off by name.
        default_model: Some("gpt-5.4"),
        ..NONE
    },
    Preset {
        name: "anthropic",
        title: "Anthropic",
        key_var: Some("ANTHROPIC_API_KEY"),
        base_url: "https://api.anthropic.com/v1",
        default_model: Some("claude-sonnet-5"),
        ..NONE
    },
    Preset {
        name: "openrouter",
        title: "OpenRouter",
        key_var: Some("OPENROUTER_API_KEY"),
        base_url: "https://openrouter.ai/api/v1",
        thinking: Some(Thinking::Reasoning),
        default_model: Some("anthropic/claude-sonnet-5"),
        ..NONE
    },
    Preset {
        name: "google",
        title: "Google Gemini",
        key_var: Some("GOOGLE_GENERATIVE_AI_API_KEY"),
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        thinking: Some(Thinking::Effort),
        default_model: Some("gemini-3.7-flash"),
        ..NONE
    },
    Preset {
        name: "deepseek",
        title: "DeepSeek",
        key_var: Some("DEEPSEEK_API_KEY"),
        base_url: "https://api.deepseek.com",
        thinking: Some(Thinking::Type),
        ..NONE
    },
    Preset {
        name: "mistral",
        title: "Mistral",
        key_var: Some("MISTRAL_API_KEY"),
        base_url: "https://api.mistral.ai/v1",
        ..NONE
    },
    Preset {
        name: "groq",
        title: "Groq",
        key_var: Some("GROQ_API_KEY"),
        base_url: "https://api.groq.com/openai/v1",
        thinking: Some(Thinking::Effort),
        ..NONE
    },
    Preset {
        name: "xai",
        title: "xAI",
        key_var: Some("XAI_API_KEY"),
        base_url: "https://api.x.ai/v1",
        thinking: Some(Thinking::Effort),
        ..NONE
    },
    Preset {
        name: "together",
        title: "Together AI",
        key_var: Some("TOGETHER_API_KEY"),
        base_url: "https://api.together.xyz/v1",
        ..NONE
    },
    Preset {
        name: "fireworks",
        title: "Fireworks AI",
        key_var: Some("FIREWORKS_API_KEY"),
        base_url: "https://api.fireworks.ai/inference/v1",
        ..NONE
    },
    Preset {
        name: "cerebras",
        title: "Cerebras",
        key_var: Some("CEREBRAS_API_KEY"),
        base_url: "https://api.cerebras.ai/v1",
        ..NONE
    },
    Preset {
        name: "moonshot",
        title: "Moonshot AI (Kimi)",
        key_var: Some("MOONSHOT_API_KEY"),
        base_url: "https://api.moonshot.ai/v1",
        thinking: Some(Thinking::Type),
        ..NONE
    },
    Preset {
        name: "zai",
        title: "Z.AI (GLM)",
        key_var: Some("ZAI_API_KEY"),
        base_url: "https://api.z.ai/api/paas/v4",
        thinking: Some(Thinking::Type),
        ..NONE
    },
    Preset {
        name: "deepinfra",
        title: "DeepInfra",
        key_var: Some("DEEPINFRA_API_KEY"),
        base_url: "https://api.deepinfra.com/v1/openai",
        ..NONE
    },
    Preset {
        name: "perplexity",
        title: "Perplexity",
        key_var: Some("PERPLEXITY_API_KEY"),
        base_url: "https://api.perplexity.ai",
        ..NONE
    },
    Preset {
        name: "opencode",
        title: "OpenCode Zen",
        key_var: Some("OPENCODE_API_KEY"),
        base_url: "https://opencode.ai/zen/v1",
        thinking: Some(Thinking::Type),
        session_header: Some("x-opencode-session"),
        ..NONE
    },
    Preset { name: "ollama", title: "Ollama", base_url: "http://127.0.0.1:11434/v1", ..NONE },
    Preset { name: "lmstudio", title: "LM Studio", base_url: "http://127.0.0.1:1234/v1", ..NONE },
    Preset {
        name: "llamacpp",
        title: "llama.cpp",
        base_url: "http://127.0.0.1:8080/v1",
        thinking: Some(Thinking::Bool),
        ..NONE
    },
    Preset { name: "vllm", title: "vLLM", base_url: "http://127.0.0.1:8000/v1", ..NONE },
];

/// The well-known endpoint of that name.
pub(crate) fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
