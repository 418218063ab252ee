//! `hames models`: what every configured provider offers, with what is known of each model.
//!
//! A list that is fresh is not asked for again; one that cannot be had is replaced by the last one, with its age.

use hames_agent::{Clock, SystemClock};
use hames_model::catalog::ListedModel;
use hames_model::{LearnedStore, ModelAt};
use hames_protocol::{Failure, Lesson, ModelRef, Price};
use serde_json::{Value, json};

use crate::catalog::refresh::{fetch_list, fetch_public, is_stale, public_is_stale};
use crate::catalog::shelf::Shelf;
use crate::catalog::{Described, Fact, Source, age, describe_listed, section};
use crate::cli::ModelsArgs;
use crate::config::{Config, Provider, nearest, shown_url};
use crate::engine::{learned, with_store};
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::text::{count, failure_lines};
use crate::output::{Out, Style, clean, say};
use crate::resolve::settings_of;

/// One provider's models, as far as they are known.
struct Group<'a> {
    provider: &'a Provider,
    /// What it lists, and when it was asked.
    listed: Option<(u64, Vec<ListedModel>)>,
    /// Why it could not be asked now.
    failure: Option<Failure>,
}

/// One line of the output.
struct Row {
    model: ModelRef,
    described: Described,
    is_declared: bool,
    is_default: bool,
    is_current: bool,
}

pub(crate) fn run(args: &ModelsArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let mut config = Config::load(&home, env)?;
    config.file.warnings.iter().for_each(|warning| say(&format!("hames: warning: {warning}")));
    if config.providers.iter().all(|provider| provider.base_url.is_empty()) {
        super::look_around(&mut config)?;
        // Says how to get a model, where nothing was found either.
        config.choose(None, None)?;
    }
    let runtime = super::runtime()?;
    let groups = runtime.block_on(ask(&config, env, args.refresh));
    let public_failure = runtime.block_on(fresh_public(&config, env, args.refresh, &groups));
    let shelf = reread(&config, &home);
    let default = config.choose(None, None).ok().map(|chosen| chosen.info.model);
    let current = current(&home);
    let lessons = learned(&home);
    let mut out = Out::new();
    let mut any = false;
    for group in &groups {
        any |= group.listed.is_some();
        let mut rows = group.rows(&shelf, default.as_ref(), current.as_ref());
        rows = rows.into_iter().map(|row| row.limited_by(group.provider, lessons.as_ref())).collect();
        rows.retain(|row| args.is_wanted(&row.model));
        match args.json {
            true => group.print_json(&rows, &mut out)?,
            false => group.print(&rows, default.as_ref(), Style::for_stdout(env), &mut out)?,
        }
    }
    if !args.json {
        out.line("\nPrices are US dollars for a million tokens: input, output, cached input. ? is what nobody says.")?;
    }
    out.finish()?;
    if let Some(failure) = public_failure {
        say(&failure_lines(&failure).join("\n"));
    }
    Ok(if any { exit::COMPLETE } else { exit::MODEL })
}

impl ModelsArgs {
    fn is_wanted(&self, model: &ModelRef) -> bool {
        let name = model.to_string().to_lowercase();
        self.filter.as_ref().is_none_or(|filter| name.contains(&filter.to_lowercase()))
    }
}

/// The files as they are after the asking.
fn reread(config: &Config, home: &Home) -> Shelf {
    let shelf = Shelf::at(home.cache().to_owned());
    if config.file.catalog.models_dev == crate::config::ModelsDev::Off { shelf.without_public() } else { shelf }
}

fn asked_providers(config: &Config) -> impl Iterator<Item = &Provider> {
    config.providers.iter().filter(|provider| !provider.base_url.is_empty())
}

fn kept(provider: &Provider, shelf: &Shelf) -> Option<(u64, Vec<ListedModel>)> {
    let kept = shelf.list(provider)?;
    Some((kept.at_ms, kept.models()?.models().collect()))
}

/// Asks every provider whose list is not fresh, all at the same time.
async fn ask<'a>(config: &'a Config, env: &Env, anew: bool) -> Vec<Group<'a>> {
    let now = SystemClock.now_ms();
    let asked = asked_providers(config).map(|provider| async move {
        let before = config.shelf.list(provider);
        if !anew && !is_stale(provider, before.as_ref(), now) {
            return Group { provider, listed: kept(provider, &config.shelf), failure: None };
        }
        let failure = fetch_list(provider, config, env).await.err();
        Group { provider, listed: kept(provider, &config.shelf), failure }
    });
    futures_util::future::join_all(asked).await
}

/// Fetches the public catalog where it is due and would say something that neither lists nor snapshot say.
async fn fresh_public(config: &Config, env: &Env, anew: bool, groups: &[Group<'_>]) -> Option<Failure> {
    if !public_is_stale(&config.shelf, SystemClock.now_ms()) && !anew {
        return None;
    }
    let has_gaps = |group: &Group<'_>| {
        section(group.provider).is_some()
            && group.rows(&config.shelf, None, None).iter().any(|row| row.described.has_gaps())
    };
    let wanted = groups.iter().any(|group| if anew { section(group.provider).is_some() } else { has_gaps(group) });
    if !wanted {
        return None;
    }
    fetch_public(config, env).await?.err()
}

/// A model and all that is known of it.
pub(crate) struct Known {
    pub(crate) model: ModelRef,
    /// As `hames models --json` prints it.
    pub(crate) facts: Value,
}

/// Every model one can choose, by provider. Lists that are fresh are not asked for again.
pub(crate) async fn rows(config: &Config, env: &Env, home: &Home) -> Vec<Known> {
    let groups = ask(config, env, false).await;
    let shelf = reread(config, home);
    let default = config.choose(None, None).ok().map(|chosen| chosen.info.model);
    let known = groups.iter().flat_map(|group| {
        let at_ms = group.listed.as_ref().map(|(at_ms, _)| *at_ms);
        let rows = group.rows(&shelf, default.as_ref(), None);
        rows.into_iter().map(move |row| Known { facts: row.json(at_ms), model: row.model }).collect::<Vec<_>>()
    });
    known.collect()
}

/// The model of this folder's last session, where there is one.
fn current(home: &Home) -> Option<ModelRef> {
    // Looking must not make a database.
    if !home.data().join("hames.db").exists() {
        return None;
    }
    let folder = super::folder(None).ok()?;
    let last = with_store(home, |store| Ok(store.last(&folder)?)).ok()??;
    settings_of(&last).model
}

impl Group<'_> {
    fn rows(&self, shelf: &Shelf, default: Option<&ModelRef>, current: Option<&ModelRef>) -> Vec<Row> {
        let provider = self.provider;
        let none = Vec::new();
        let (at_ms, listed) = self.listed.as_ref().map_or((0, &none), |(at_ms, models)| (*at_ms, models));
        let declared = provider.models.iter().filter(|model| listed.iter().all(|other| other.id != model.id));
        let all = listed.iter().map(|model| (model.id.as_str(), Some((at_ms, model.facts.clone())), false));
        let all = all.chain(declared.map(|model| (model.id.as_str(), None, true)));
        all.map(|(id, facts, is_declared)| {
            let model = ModelRef { provider: provider.name.clone(), id: id.to_owned() };
            Row {
                described: describe_listed(provider, id, None, facts, shelf),
                is_default: default == Some(&model),
                is_current: current == Some(&model),
                is_declared,
                model,
            }
        })
        .collect()
    }

    fn print(&self, rows: &[Row], default: Option<&ModelRef>, style: Style, out: &mut Out) -> Result<(), Stop> {
        let now = SystemClock.now_ms();
        let provider = self.provider;
        let asked = match (&self.listed, &self.failure) {
            (Some((at_ms, _)), None) => format!("listed {}", age(*at_ms, now)),
            (Some((at_ms, _)), Some(_)) => format!("cannot be asked; listed {}", age(*at_ms, now)),
            (None, _) => "cannot be asked".into(),
        };
        let url = clean::line(&shown_url(&provider.base_url));
        out.line(format!("{}  {url}  {asked}", style.bold(&provider.name)))?;
        for line in self.failure.iter().flat_map(failure_lines) {
            out.line(format!("  {}", style.yellow(line.strip_prefix("hames: ").unwrap_or(&line).trim_start())))?;
        }
        if rows.is_empty() {
            return out.line("  no models");
        }
        let table: Vec<[String; 6]> = rows.iter().map(Row::cells).collect();
        let widths: Vec<usize> = (0..5)
            .map(|column| table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0).min(MAX_CELL))
            .collect();
        for cells in &table {
            let mut line = format!("  {:<1$}", cells[0], widths[0]);
            for column in 1..5 {
                line.push_str(&format!("  {:>1$}", cells[column], widths[column]));
            }
            out.line(format!("{line}  {}", cells[5]).trim_end())?;
        }
        // One that the configuration names and the provider does not have is worth a line of its own.
        let gone = default.filter(|d| d.provider == provider.name && rows.iter().all(|row| row.model != **d));
        if let Some(gone) = gone.filter(|_| self.listed.is_some()) {
            let near = nearest(&gone.id, rows.iter().map(|row| row.model.id.as_str()), 3);
            let near: Vec<String> = near.into_iter().map(clean::line).collect();
            let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
            out.line(
                style.yellow(&format!("  {} is the default and is not listed{hint}", clean::line(&gone.to_string()))),
            )?;
        }
        Ok(())
    }

    fn print_json(&self, rows: &[Row], out: &mut Out) -> Result<(), Stop> {
        if let Some(failure) = &self.failure {
            say(&failure_lines(failure).join("\n"));
        }
        let at_ms = self.listed.as_ref().map(|(at_ms, _)| *at_ms);
        rows.iter().try_for_each(|row| out.json(&row.json(at_ms)))
    }
}

/// Columns that are wider are not lined up.
const MAX_CELL: usize = 60;

impl Row {
    /// The same with the window that the server showed to have.
    fn limited_by(mut self, provider: &Provider, lessons: &dyn LearnedStore) -> Row {
        let at = ModelAt::of(&provider.base_url, &self.model.id);
        let limit = at.and_then(|at| lessons.recall(&at).iter().find_map(Lesson::limits_window_to));
        self.described = self.described.limited_to(limit);
        self
    }

    /// Name, window, output, price, cached price, and what it can.
    fn cells(&self) -> [String; 6] {
        let known = &self.described;
        let window = match known.window.source {
            Source::Assumed => "?".into(),
            Source::Trained { .. } => format!("≤{}", tokens(known.window.value)),
            _ => tokens(known.window.value),
        };
        let output =
            if known.max_output.source == Source::Assumed { "?".into() } else { tokens(known.max_output.value) };
        let rates = known.price.as_ref().map(|fact| fact.value.rates);
        let price =
            rates.map_or_else(|| "?".into(), |rates| format!("{} / {}", dollars(rates.input), dollars(rates.output)));
        let cached = rates.and_then(|rates| rates.cache_read).map_or_else(|| "?".into(), dollars);
        let mut words = Vec::new();
        for (ability, fact) in [("tools", &known.tools), ("images", &known.images), ("reasoning", &known.reasoning)] {
            if fact.as_ref().is_some_and(|fact| fact.value) {
                words.push(ability.to_owned());
            }
        }
        for (mark, holds) in
            [("(default)", self.is_default), ("(last used here)", self.is_current), ("(declared)", self.is_declared)]
        {
            if holds {
                words.push(mark.to_owned());
            }
        }
        [clean::line(&self.model.to_string()), window, output, price, cached, words.join(" ")]
    }

    fn json(&self, at_ms: Option<u64>) -> Value {
        let known = &self.described;
        let number = |fact: &Fact<u64>| (fact.source != Source::Assumed).then_some(fact.value);
        let from = |source: &Source| source.name();
        json!({
            "provider": self.model.provider,
            "id": self.model.id,
            "model": self.model.to_string(),
            "context_window": number(&known.window),
            "context_window_from": from(&known.window.source),
            "max_output": number(&known.max_output),
            "max_output_from": from(&known.max_output.source),
            "price": known.price.as_ref().map(|fact| price(&fact.value)),
            "price_from": known.price.as_ref().map(|fact| from(&fact.source)),
            "tools": known.tools.as_ref().map(|fact| fact.value),
            "images": known.images.as_ref().map(|fact| fact.value),
            "reasoning": known.reasoning.as_ref().map(|fact| fact.value),
            "default": self.is_default,
            "current": self.is_current,
            "declared": self.is_declared,
            "listed_at": at_ms.filter(|_| !self.is_declared),
        })
    }
}

/// Dollars for a million tokens, by kind.
pub(crate) fn price(price: &Price) -> Value {
    let usd = |micros: u64| micros as f64 / 1e6;
    let rates = |rates: &hames_protocol::Rates| {
        json!({
            "input": usd(rates.input), "output": usd(rates.output),
            "cache_read": rates.cache_read.map(usd), "cache_write": rates.cache_write.map(usd),
        })
    };
    let mut value = rates(&price.rates);
    if !price.tiers.is_empty() {
        let tiers = price.tiers.iter().map(|(above, tier)| json!({"above": above, "rates": rates(tier)}));
        value["tiers"] = tiers.collect();
    }
    value
}

/// A number of tokens as short as it says enough: `8,192`, `131k`, `1.05M`.
fn tokens(n: u64) -> String {
    match n {
        0..10_000 => count(n),
        10_000..1_000_000 => format!("{}k", n / 1_000),
        _ => {
            let hundredths = format!("{}.{:02}", n / 1_000_000, n % 1_000_000 / 10_000);
            format!("{}M", hundredths.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// `2.50`, `0.075`: two digits behind the point at least.
fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let digits = text.trim_end_matches('0').len();
    let least = text.len() - 4;
    text[..digits.max(least)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_say_enough() {
        for (n, text) in [
            (0, "0"),
            (8_192, "8,192"),
            (131_072, "131k"),
            (999_999, "999k"),
            (1_000_000, "1M"),
            (1_050_000, "1.05M"),
            (2_097_152, "2.09M"),
        ] {
            assert_eq!(tokens(n), text);
        }
        for (micros, text) in [
            (2_500_000, "2.50"),
            (75_000, "0.075"),
            (0, "0.00"),
            (1, "0.000001"),
            (15_000_000, "15.00"),
            (1_250_000, "1.25"),
        ] {
            assert_eq!(dollars(micros), text);
        }
    }
}
