//! The names that were probably meant.

/// How alike two names are at least, of 1, to be offered one for the other: below it, hints are noise.
const LIKENESS: f64 = 0.8;

/// Up to `count` of `known` that are most like `name`, best first. Case and punctuation do not count.
pub(crate) fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, count: usize) -> Vec<&'k str> {
    let wanted = plain(name);
    let mut near: Vec<(f64, &str)> = known
        .into_iter()
        .map(|known| {
            // A model may be called after the folder its file is in.
            let bare = known.rsplit('/').next().unwrap_or(known);
            (likeness(&wanted, &plain(known)).max(likeness(&wanted, &plain(bare))), known)
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(count).map(|(_, known)| known).collect()
}

/// Also alike: a name that is the end of the other (`gpt-5.4` and `openai/gpt-5.4`).
fn likeness(wanted: &str, known: &str) -> f64 {
    let (short, long) = if wanted.len() < known.len() { (wanted, known) } else { (known, wanted) };
    if short.len() >= 4 && long.ends_with(short) {
        return 0.99;
    }
    strsim::jaro_winkler(wanted, known)
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_probably_meant_comes_first_and_no_other_is_offered() {
        let keys = ["model", "providers", "catalog", "base_url", "api_key", "api_key_env"];
        for (name, meant) in [
            ("modle", Some("model")),
            ("MODEL", Some("model")),
            ("baseUrl", Some("base_url")),
            ("provider", Some("providers")),
            ("apikey", Some("api_key")),
            ("api_key_evn", Some("api_key_env")),
            ("mcp", None),
            ("", None),
            ("käse", None),
        ] {
            assert_eq!(nearest(name, keys, 1).first().copied(), meant, "{name}");
        }
        let models = ["openai/gpt-5.4", "openai/gpt-5.4-mini", "anthropic/claude-sonnet-5", "qwen3-coder"];
        assert_eq!(nearest("gpt-5.4", models, 2).first(), Some(&"openai/gpt-5.4"));
        assert_eq!(nearest("claude-sonnet-5", models, 1), ["anthropic/claude-sonnet-5"]);
        assert_eq!(nearest("qwen3-codr", models, 3), ["qwen3-coder"]);
        assert_eq!(nearest("gemma-27b", ["/srv/models/gemma-3-27b.gguf"], 3), ["/srv/models/gemma-3-27b.gguf"]);
    }
}
