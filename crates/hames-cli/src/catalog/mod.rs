//! What is known of a model, and who says so.
//!
//! Each fact has the best source that states it: the session, the configuration, the provider's own list, models.dev,
//! the snapshot in the program, else what nearly every model has. Lists and catalog are files that an earlier command
//! left ([`shelf`]); nothing here waits for a network, so that knowing a window never comes ahead of asking the model.
//! Keeping those files fresh is [`refresh`]'s business, looking for servers on this machine [`discover`]'s.

pub(crate) mod discover;
pub(crate) mod refresh;
pub(crate) mod shelf;

use hames_model::catalog::{Catalog, Facts, catalog_name};
use hames_protocol::{ModelInfo, ModelRef, Price};

use crate::config::{Provider, nearest};
use crate::output::clean;
use crate::output::text::count;
use shelf::Shelf;

/// Tokens of the window of a model nobody described: what nearly every current model has at least.
pub(crate) const DEFAULT_WINDOW: u64 = 128_000;
/// Tokens of one answer of a model nobody described, and of any answer nobody set another limit for: room for a long
/// file, and less than what providers hold back of a rate or a credit for a larger one.
pub(crate) const DEFAULT_OUTPUT: u64 = 16_384;

/// Names that are offered for one that is not there.
const NEAR_NAMES: usize = 3;

/// Who states a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The session's own settings.
    Session,
    /// The model's entry in the configuration.
    Config,
    /// The provider's list, asked at that time.
    List { at_ms: u64 },
    /// The provider's list, of what the model was made for: the server may have been started with less.
    Trained { at_ms: u64 },
    /// The public catalog, fetched at that time.
    ModelsDev { at_ms: u64 },
    /// The catalog in the program, of that day.
    Snapshot(String),
    /// A refusal or an answer of the server itself, which showed that it takes less than others say.
    Learned,
    /// Nobody: what nearly every model has.
    Assumed,
}

impl Source {
    /// In words.
    pub(crate) fn text(&self, now_ms: u64) -> String {
        match self {
            Source::Session => "session".into(),
            Source::Config => "config file".into(),
            Source::List { at_ms } => format!("provider's list, {}", age(*at_ms, now_ms)),
            Source::Trained { at_ms } => {
                format!("what the model was made for; the server may have less; {}", age(*at_ms, now_ms))
            }
            Source::ModelsDev { at_ms } => format!("models.dev, {}", age(*at_ms, now_ms)),
            Source::Snapshot(day) => format!("built in, of {day}"),
            Source::Learned => "learned from the server itself".into(),
            Source::Assumed => "assumed: nobody says".into(),
        }
    }

    /// One word for programs.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Source::Session => "session",
            Source::Config => "config",
            Source::List { .. } => "list",
            Source::Trained { .. } => "trained",
            Source::ModelsDev { .. } => "models.dev",
            Source::Snapshot(_) => "snapshot",
            Source::Learned => "learned",
            Source::Assumed => "assumed",
        }
    }
}

/// How long ago something was.
pub(crate) fn age(at_ms: u64, now_ms: u64) -> String {
    let minutes = now_ms.saturating_sub(at_ms) / 60_000;
    match minutes {
        0 => "just now".into(),
        1..60 => format!("{minutes} min ago"),
        60..2_880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", count(minutes / 1_440)),
    }
}

/// A fact and who states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

/// All that is known of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) window: Fact<u64>,
    pub(crate) max_output: Fact<u64>,
    pub(crate) price: Option<Fact<Price>>,
    pub(crate) tools: Option<Fact<bool>>,
    pub(crate) images: Option<Fact<bool>>,
    pub(crate) reasoning: Option<Fact<bool>>,
}

impl Described {
    /// What the engine needs of it.
    pub(crate) fn info(&self, model: &ModelRef) -> ModelInfo {
        ModelInfo {
            images: self.images.as_ref().map(|fact| fact.value),
            price: self.price.as_ref().map(|fact| fact.value.clone()),
            ..ModelInfo::new(model.clone(), self.window.value, self.max_output.value)
        }
    }

    /// The same where the server showed that it takes no more than `tokens`.
    pub(crate) fn limited_to(mut self, tokens: Option<u64>) -> Described {
        if let Some(value) = tokens.filter(|tokens| *tokens < self.window.value) {
            self.window = Fact { value, source: Source::Learned };
        }
        self
    }

    /// Whether the public catalog might say more.
    pub(crate) fn has_gaps(&self) -> bool {
        self.window.source == Source::Assumed || self.price.is_none()
    }
}

/// What is known of a model of a provider, as far as files on this machine say it.
pub(crate) fn describe(provider: &Provider, id: &str, session_window: Option<u64>, shelf: &Shelf) -> Described {
    let list = shelf.list(provider);
    let listed = list.as_ref().and_then(|kept| Some((kept.at_ms, kept.models()?.find(id)?)));
    describe_listed(provider, id, session_window, listed, shelf)
}

/// The same where what the provider's list says is at hand.
pub(crate) fn describe_listed(
    provider: &Provider,
    id: &str,
    session_window: Option<u64>,
    listed: Option<(u64, Facts)>,
    shelf: &Shelf,
) -> Described {
    let mut known = Known::default();
    known.add(Source::Session, Facts { context_window: session_window, ..Facts::default() });
    if let Some(model) = provider.models.iter().find(|model| model.id == id) {
        known.add(Source::Config, model.facts());
    }
    if let Some((at_ms, facts)) = listed {
        let trained = Facts { context_window: facts.trained_window, ..Facts::default() };
        known.add(Source::List { at_ms }, facts);
        known.last = Some((Source::Trained { at_ms }, trained));
    }
    if let Some(name) = section(provider) {
        if let Some(public) = shelf.public()
            && let Some(facts) = public.catalog.section(name).and_then(|section| section.find(id))
        {
            known.add(Source::ModelsDev { at_ms: public.at_ms }, facts);
        }
        let snapshot = Catalog::embedded();
        if let Some(facts) = snapshot.section(name).and_then(|section| section.find(id)) {
            known.add(Source::Snapshot(snapshot.stamp().to_owned()), facts);
        }
    }
    known.described()
}

/// What is said of a model that its provider's list does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// When the list was asked for.
    pub(crate) at_ms: u64,
    /// The names that may be meant, best first.
    pub(crate) near: Vec<String>,
}

impl Missing {
    /// `did you mean a, b?`, or nothing where no name is near.
    pub(crate) fn hint(&self) -> String {
        match self.near.as_slice() {
            [] => String::new(),
            near => format!("; did you mean {}?", near.join(", ")),
        }
    }
}

/// Whether a model is missing from its provider's kept list. One that the configuration declares is not: not every list
/// is complete.
pub(crate) fn missing(provider: &Provider, id: &str, shelf: &Shelf) -> Option<Missing> {
    let kept = shelf.list(provider)?;
    let models = kept.models()?;
    // A host whose models are deployments lists what could be deployed.
    let lists_others = section(provider) == Some("azure") || provider.base_url.contains("/deployments/");
    let is_declared = provider.models.iter().any(|model| model.id == id);
    if is_declared || lists_others || models.ids().next().is_none() || models.has(id) {
        return None;
    }
    let near = nearest(id, models.ids(), NEAR_NAMES).into_iter().map(clean::line).collect();
    Some(Missing { at_ms: kept.at_ms, near })
}

/// The provider in the catalog whose models these are: what the configuration says, else what the host says.
pub(crate) fn section(provider: &Provider) -> Option<&str> {
    provider.catalog.as_deref().or_else(|| catalog_name(&provider.base_url))
}

/// What sources say, best first.
#[derive(Default)]
struct Known {
    sources: Vec<(Source, Facts)>,
    /// Counts after all others.
    last: Option<(Source, Facts)>,
}

impl Known {
    fn add(&mut self, source: Source, facts: Facts) {
        self.sources.push((source, facts));
    }

    fn first<T>(&self, fact: impl Fn(&Facts) -> Option<T>) -> Option<Fact<T>> {
        let all = self.sources.iter().chain(&self.last);
        all.filter_map(|(source, facts)| Some(Fact { value: fact(facts)?, source: source.clone() })).next()
    }

    fn described(&self) -> Described {
        let assumed = |value| Fact { value, source: Source::Assumed };
        Described {
            window: self.first(|facts| facts.context_window).unwrap_or_else(|| assumed(DEFAULT_WINDOW)),
            max_output: self.first(|facts| facts.max_output).unwrap_or_else(|| assumed(DEFAULT_OUTPUT)),
            price: self.first(|facts| facts.price.clone()),
            tools: self.first(|facts| facts.tools),
            images: self.first(|facts| facts.images),
            reasoning: self.first(|facts| facts.reasoning),
        }
    }
}

#[cfg(test)]
mod tests {
    use hames_model::ModelList;
    use hames_model::catalog::ListedModel;
    use hames_protocol::Rates;

    use super::*;
    use crate::config::FileModel;

    fn listed(id: &str, facts: Facts) -> ModelList {
        ModelList { models: vec![ListedModel { id: id.into(), facts }], ..ModelList::default() }
    }

    #[test]
    fn each_fact_has_the_best_source_that_states_it() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(dir.path().into());
        let mut provider = Provider::at("p", "https://api.openai.com/v1");
        let window = |provider: &Provider, session, shelf: &Shelf| {
            let described = describe(provider, "gpt-5.4", session, shelf);
            (described.window.value, described.window.source.name())
        };
        assert_eq!(window(&provider, None, &shelf), (1_050_000, "snapshot"));

        let one = |window| {
            [ListedModel { id: "gpt-5.4".into(), facts: Facts { context_window: Some(window), ..Facts::default() } }]
        };
        shelf.keep_public(&Catalog::write("4000", [("openai", &one(900_000)[..])]));
        // What was read once is not read again in the same process.
        let shelf = Shelf::at(dir.path().into());
        assert_eq!(window(&provider, None, &shelf), (900_000, "models.dev"));

        shelf.keep_list(&provider, &listed("gpt-5.4", one(800_000)[0].facts.clone()), 5_000);
        assert_eq!(window(&provider, None, &shelf), (800_000, "list"));

        provider.models.push(FileModel { id: "gpt-5.4".into(), context_window: Some(700_000), ..FileModel::default() });
        assert_eq!(window(&provider, None, &shelf), (700_000, "config"));
        assert_eq!(window(&provider, Some(600_000), &shelf), (600_000, "session"));

        // What one source leaves open, the next one says.
        let described = describe(&provider, "gpt-5.4", None, &shelf);
        assert_eq!((described.max_output.value, described.max_output.source.name()), (128_000, "snapshot"));
        assert_eq!(described.price.as_ref().unwrap().value.rates.input, 2_500_000);
        assert_eq!(described.images.as_ref().map(|fact| fact.value), Some(true));
        assert!(!described.has_gaps());
        let info = described.info(&"p/gpt-5.4".parse().unwrap());
        assert_eq!((info.context_window, info.max_output_tokens, info.images), (700_000, 128_000, Some(true)));
        assert!(info.price.is_some());
    }

    #[test]
    fn a_model_nobody_describes_has_a_usual_window_and_no_price() {
        let described = describe(&Provider::at("p", "http://127.0.0.1:1/v1"), "gpt-5.4", None, &Shelf::none());
        assert_eq!((described.window.value, described.max_output.value), (DEFAULT_WINDOW, DEFAULT_OUTPUT));
        assert_eq!((described.window.source.clone(), described.price.clone()), (Source::Assumed, None));
        assert!(described.has_gaps());
    }

    #[test]
    fn the_window_a_server_has_counts_before_the_one_its_model_was_made_for() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(dir.path().into());
        let provider = Provider::at("p", "http://127.0.0.1:1/v1");
        let facts = |served| Facts { context_window: served, trained_window: Some(40_960), ..Facts::default() };
        shelf.keep_list(&provider, &listed("m", facts(None)), 1);
        assert_eq!(
            describe(&provider, "m", None, &shelf).window,
            Fact { value: 40_960, source: Source::Trained { at_ms: 1 } }
        );
        shelf.keep_list(&provider, &listed("m", facts(Some(4_096))), 2);
        assert_eq!(
            describe(&provider, "m", None, &shelf).window,
            Fact { value: 4_096, source: Source::List { at_ms: 2 } }
        );
        // A list taken while the model is not loaded does not make the server forget how it loads it.
        shelf.keep_list(&provider, &listed("m", facts(None)), 3);
        assert_eq!(describe(&provider, "m", None, &shelf).window.value, 4_096);
    }

    #[test]
    fn a_gateway_is_the_provider_that_the_configuration_says() {
        let mut provider = Provider::at("work", "https://llm.corp.example/v1");
        assert_eq!(describe(&provider, "gpt-5.4", None, &Shelf::none()).window.source, Source::Assumed);
        provider.catalog = Some("openai".into());
        let described = describe(&provider, "gpt-5.4", None, &Shelf::none());
        assert_eq!(described.window.value, 1_050_000);
        let price = Price { rates: Rates { input: 1, ..Rates::default() }, tiers: vec![] };
        provider.models.push(FileModel { id: "gpt-5.4".into(), price: Some(price.clone()), ..FileModel::default() });
        assert_eq!(describe(&provider, "gpt-5.4", None, &Shelf::none()).price.map(|fact| fact.value), Some(price));
    }

    #[test]
    fn a_model_that_the_list_does_not_have_is_missing_unless_it_is_declared() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(dir.path().into());
        let mut provider = Provider::at("p", "http://h/v1");
        assert_eq!(missing(&provider, "m", &shelf), None);
        let models = ["qwen3-coder:30b", "qwen3:8b", "gpt-oss-20b", "vendor/glm-5"]
            .map(|id| ListedModel { id: id.into(), ..ListedModel::default() });
        shelf.keep_list(&provider, &ModelList { models: models.to_vec(), ..ModelList::default() }, 9);
        for (id, near) in [
            ("qwen3:8b", None),
            ("QWEN3:8B", None),
            ("glm-5", None),
            ("qwen3-codr:30b", Some("qwen3-coder:30b")),
            ("gpt-oss-20", Some("gpt-oss-20b")),
            ("zzz", Some("")),
        ] {
            let found = missing(&provider, id, &shelf);
            assert_eq!(found.map(|m| m.near.first().cloned().unwrap_or_default()), near.map(str::to_owned), "{id}");
        }
        provider.models.push(FileModel { id: "zzz".into(), ..FileModel::default() });
        assert_eq!(missing(&provider, "zzz", &shelf), None);
        shelf.keep_list(&provider, &ModelList::default(), 9);
        assert_eq!(missing(&provider, "m", &shelf), None);
    }

    #[test]
    fn ages_read_well() {
        for (ms, text) in [
            (0, "just now"),
            (59_999, "just now"),
            (120_000, "2 min ago"),
            (3_600_000, "1 h ago"),
            (86_400_000, "24 h ago"),
            (259_200_000, "3 days ago"),
        ] {
            assert_eq!(age(1_000, 1_000 + ms), text);
        }
        assert_eq!(age(9, 1), "just now");
    }
}
