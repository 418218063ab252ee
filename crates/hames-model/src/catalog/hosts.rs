//! Which provider of the catalog a host is. A host that is not known has no facts of another: a gateway serves a model
//! under its own limits, and says them itself or not at all.

/// Hosts and the names under which the catalog of models.dev has their models.
const HOSTS: [(&str, &str); 26] = [
    ("api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
    ("openrouter.ai", "openrouter"),
    ("generativelanguage.googleapis.com", "google"),
    ("api.mistral.ai", "mistral"),
    ("api.groq.com", "groq"),
    ("api.x.ai", "xai"),
    ("api.deepseek.com", "deepseek"),
    ("api.together.xyz", "togetherai"),
    ("api.together.ai", "togetherai"),
    ("api.fireworks.ai", "fireworks-ai"),
    ("api.cerebras.ai", "cerebras"),
    ("api.githubcopilot.com", "github-copilot"),
    ("api.moonshot.ai", "moonshotai"),
    ("api.moonshot.cn", "moonshotai-cn"),
    ("api.z.ai", "zai"),
    ("api.minimax.io", "minimax"),
    ("dashscope-intl.aliyuncs.com", "alibaba"),
    ("dashscope.aliyuncs.com", "alibaba-cn"),
    ("integrate.api.nvidia.com", "nvidia"),
    ("router.huggingface.co", "huggingface"),
    ("api.deepinfra.com", "deepinfra"),
    ("api.perplexity.ai", "perplexity"),
    ("ollama.com", "ollama-cloud"),
    ("opencode.ai", "opencode"),
    ("ai-gateway.vercel.sh", "vercel"),
];

/// Ends of hosts that differ from customer to customer.
const DOMAINS: [(&str, &str); 3] = [
    (".openai.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    ("-aiplatform.googleapis.com", "google-vertex"),
];

/// Every name in the catalog that a host leads to, each once.
pub fn catalog_names() -> impl Iterator<Item = &'static str> {
    let all = || HOSTS.iter().chain(&DOMAINS).map(|(_, name)| *name);
    let first = move |at: usize, name: &str| all().position(|other| other == name) == Some(at);
    all().enumerate().filter(move |(at, name)| first(*at, name)).map(|(_, name)| name)
}

/// The name in the catalog of the provider that a base URL leads to, for those whose host alone says it.
pub fn catalog_name(base_url: &str) -> Option<&'static str> {
    let url = reqwest::Url::parse(base_url.trim()).ok()?;
    let host = url.host_str()?;
    let name = HOSTS.iter().find(|(known, _)| *known == host).map(|(_, name)| *name);
    let name = name.or_else(|| DOMAINS.iter().find(|(end, _)| host.ends_with(end)).map(|(_, name)| *name))?;
    // One host, two price lists.
    if name == "opencode" && url.path().starts_with("/zen/go") {
        return Some("opencode-go");
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_by_its_name_alone() {
        for (url, name) in [
            ("https://api.openai.com/v1", Some("openai")),
            ("https://API.OpenAI.com", Some("openai")),
            ("https://me:pw@api.openai.com:443/v1", Some("openai")),
            ("https://openrouter.ai/api/v1", Some("openrouter")),
            ("https://mine.openai.azure.com/openai/v1", Some("azure")),
            ("https://opencode.ai/zen/v1", Some("opencode")),
            ("https://opencode.ai/zen/go/v1", Some("opencode-go")),
            ("https://api.openai.com.example/v1", None),
            ("https://api.openai.com:pw@other.example/v1", None),
            ("https://proxy.example/api.openai.com/v1", None),
            ("http://127.0.0.1:8080/v1", None),
            ("http://localhost:11434", None),
            ("", None),
            ("no url", None),
        ] {
            assert_eq!(catalog_name(url), name, "{url}");
        }
    }
}
