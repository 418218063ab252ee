//! What is known of models: facts, the text they are kept in, and how a model is found in it.
//!
//! Facts come from several places (what a provider lists, the public catalog of models.dev, a snapshot of that one in
//! this crate), and all of them are read into the same [`Facts`]. A [`Catalog`] is a text of one line for each model:
//! small enough to be embedded or kept as a file, and searched without being parsed, so that knowing a window costs a
//! start nothing one can measure. Which source wins, and where files lie, is for whoever asks to decide.
//!
//! A model's name is written in many ways; [`Section::find`] knows the harmless ones. What two ways of writing may not
//! share (a dated version's price) is left out rather than guessed: an unknown fact is `None` and never zero.

mod hosts;
mod line;
mod matching;
mod models_dev;

use std::borrow::Cow;

use hames_protocol::Price;

pub use hosts::{catalog_name, catalog_names};
pub use line::micros_of;
pub use models_dev::{MODELS_DEV, fetch_models_dev, read_models_dev};

/// How a catalog begins; the number is the version of the format.
const HEAD: &str = "hames-catalog 1 ";
/// How it ends: a text without it was cut.
const TAIL: &str = "end\n";

/// What is known of a model. Whatever is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Tokens of its window as it is served.
    pub context_window: Option<u64>,
    /// Tokens of the window it was made for; a server may have been started with fewer.
    pub trained_window: Option<u64>,
    /// Tokens one answer may have.
    pub max_output: Option<u64>,
    /// What it charges.
    pub price: Option<Price>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether it can think first.
    pub reasoning: Option<bool>,
}

impl Facts {
    /// The window to reckon with: as served, else as made.
    pub fn window(&self) -> Option<u64> {
        self.context_window.or(self.trained_window)
    }

    /// What both say, and nothing else.
    fn shared(&self, other: &Facts) -> Facts {
        fn same<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<T> {
            a.as_ref().filter(|_| a == b).cloned()
        }
        Facts {
            context_window: same(&self.context_window, &other.context_window),
            trained_window: same(&self.trained_window, &other.trained_window),
            max_output: same(&self.max_output, &other.max_output),
            price: same(&self.price, &other.price),
            tools: same(&self.tools, &other.tools),
            images: same(&self.images, &other.images),
            reasoning: same(&self.reasoning, &other.reasoning),
        }
    }
}

/// A model as somebody lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// Its id.
    pub id: String,
    /// What is said of it.
    pub facts: Facts,
}

/// The models of several providers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog<'a> {
    text: Cow<'a, str>,
}

impl Catalog<'static> {
    /// The snapshot that comes with this crate.
    pub fn embedded() -> Self {
        Self { text: Cow::Borrowed(include_str!("catalog/snapshot.txt")) }
    }

    /// A catalog that was kept as a text. `None` where the text is no catalog, was cut, or is of another version.
    pub fn of_text(text: String) -> Option<Self> {
        let whole = text.starts_with(HEAD) && text.ends_with(TAIL);
        whole.then_some(Self { text: Cow::Owned(text) })
    }

    /// Writes a catalog. `stamp` is one line of the writer's own: a date, an address. Models whose ids cannot stand in a
    /// line are left out.
    pub fn write<'m>(stamp: &str, sections: impl IntoIterator<Item = (&'m str, &'m [ListedModel])>) -> Self {
        let mut text = format!("{HEAD}{}\n", stamp.replace(char::is_control, " "));
        for (name, models) in sections {
            text.push_str("# ");
            text.push_str(&name.replace(char::is_control, " "));
            text.push('\n');
            models.iter().for_each(|model| line::write(model, &mut text));
        }
        text.push_str(TAIL);
        Self { text: Cow::Owned(text) }
    }
}

impl Catalog<'_> {
    /// The text to keep.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What its writer stamped it with.
    pub fn stamp(&self) -> &str {
        self.text.lines().next().and_then(|line| line.strip_prefix(HEAD)).unwrap_or("")
    }

    /// The models of one provider, by the provider's name in this catalog.
    pub fn section(&self, name: &str) -> Option<Section<'_>> {
        let head = format!("\n# {name}\n");
        // The newline stays: every line of the section then begins behind one.
        let start = memchr::memmem::find(self.text.as_bytes(), head.as_bytes())? + head.len() - 1;
        let rest = &self.text[start..];
        // Lines of models begin with a blank, so whatever else begins a line ends the section.
        let end = rest.find("\n#").or_else(|| rest.find("\nend\n")).map_or(rest.len(), |at| at + 1);
        Some(Section { lines: &rest[..end] })
    }
}

/// The models of one provider in a catalog.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    lines: &'a str,
}

impl<'a> Section<'a> {
    /// Its models, in order.
    pub fn models(&self) -> impl Iterator<Item = ListedModel> + use<'a> {
        self.lines.lines().filter_map(line::read)
    }

    /// Their ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.lines.lines().filter_map(line::id)
    }

    /// The model of that name, or of the same name written another way: with or without the provider before it, with
    /// other capitals, with a date or a route (`:free`) behind it. What the ways of writing may not share is left out.
    pub fn find(&self, id: &str) -> Option<Facts> {
        if id.chars().any(char::is_control) {
            return None;
        }
        // Nearly always the name is written as it is listed; then one search does it.
        let exact = format!("\n {id}\t");
        if let Some(at) = memchr::memmem::find(self.lines.as_bytes(), exact.as_bytes()) {
            return line::read(self.lines[at + 1..].lines().next()?).map(|model| model.facts);
        }
        matching::find(|| self.lines.lines(), id)
    }

    /// Whether a model of that name is here, however it is written.
    pub fn has(&self, id: &str) -> bool {
        self.find(id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use hames_protocol::Rates;

    use super::*;

    fn model(id: &str, window: u64) -> ListedModel {
        ListedModel { id: id.into(), facts: Facts { context_window: Some(window), ..Facts::default() } }
    }

    fn all() -> Facts {
        let rates = Rates { input: 2_500_000, output: 15_000_000, cache_read: Some(250_000), cache_write: None };
        Facts {
            context_window: Some(1),
            trained_window: Some(2),
            max_output: Some(3),
            price: Some(Price { rates, tiers: vec![(200_000, Rates { input: 1, ..rates })] }),
            tools: Some(true),
            images: Some(false),
            reasoning: None,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let models = [model("a/one", 5), ListedModel { id: "@cf/two #x".into(), facts: all() }, model("três", 7)];
        let none: [ListedModel; 0] = [];
        let written = Catalog::write("2026-01-01 here", [("first", &models[..]), ("empty", &none), ("last", &models)]);
        let catalog = Catalog::of_text(written.text().to_owned()).unwrap();
        assert_eq!(catalog.stamp(), "2026-01-01 here");
        for name in ["first", "last"] {
            assert_eq!(catalog.section(name).unwrap().models().collect::<Vec<_>>(), models);
        }
        assert_eq!(catalog.section("empty").unwrap().models().count(), 0);
        assert!(catalog.section("none").is_none());
        let section = catalog.section("first").unwrap();
        assert_eq!(section.find("@cf/two #x"), Some(all()));
        assert_eq!(section.find("a/one").unwrap().window(), Some(5));
        assert_eq!(section.ids().collect::<Vec<_>>(), ["a/one", "@cf/two #x", "três"]);
    }

    #[test]
    fn names_that_would_break_a_line_are_left_out() {
        let long = "x".repeat(1_000);
        let models = [model("a\tb", 1), model("", 2), model("a\nend", 3), model(&long, 4), model("fine", 5)];
        let catalog = Catalog::write("a\nb", [("p\n# q", &models[..])]);
        assert_eq!(catalog.stamp(), "a b");
        assert_eq!(catalog.section("p # q").unwrap().ids().collect::<Vec<_>>(), ["fine"]);
    }

    #[test]
    fn a_text_that_was_cut_or_changed_is_no_catalog_or_says_less() {
        let whole = Catalog::write("s", [("p", &[model("a", 5), model("b", 6)][..])]).text().to_owned();
        for cut in 0..whole.len() {
            assert_eq!(Catalog::of_text(whole[..cut].to_owned()), None, "{cut}");
        }
        for text in ["", "end\n", "hames-catalog 2 s\nend\n", "{}"] {
            assert_eq!(Catalog::of_text(text.into()), None, "{text}");
        }
        let odd = "hames-catalog 1 s\n# p\n a\tmany\t\t\t\t\n b\n\tc\n d\t5\t\t\ttiq\t1,x\n# p\nend\n";
        let catalog = Catalog::of_text(odd.into()).unwrap();
        let read: Vec<_> = catalog.section("p").unwrap().models().map(|m| (m.id, m.facts.window())).collect();
        assert_eq!(read, [("a".to_owned(), None), ("b".into(), None), ("d".into(), Some(5))]);
    }

    #[test]
    fn the_snapshot_is_whole_and_knows_the_providers_people_use() {
        let catalog = Catalog::of_text(Catalog::embedded().text().to_owned()).unwrap();
        for name in ["openai", "anthropic", "google", "openrouter", "mistral", "groq", "xai", "deepseek"] {
            let section = catalog.section(name).unwrap_or_else(|| panic!("{name}"));
            assert!(section.models().count() > 3, "{name}");
            assert!(section.models().all(|m| m.facts.window().is_some()), "{name}");
            assert!(section.models().any(|m| m.facts.window() > Some(100_000) && m.facts.price.is_some()), "{name}");
        }
        let facts = catalog.section("openai").unwrap().find("gpt-5.4").unwrap();
        assert_eq!((facts.context_window, facts.max_output), (Some(1_050_000), Some(128_000)));
        assert_eq!((facts.tools, facts.images, facts.reasoning), (Some(true), Some(true), Some(true)));
        assert_eq!(facts.price.unwrap().rates.input, 2_500_000);
    }
}
