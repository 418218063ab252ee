//! `cargo xtask snapshot FILE`: the catalog of models that comes with the program, made from the JSON of models.dev.
//!
//! Only what a host we know can serve is kept, and of each model only what is used. The file it writes is committed; the
//! program needs neither this command nor its input.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use hames_model::catalog::{Catalog, ListedModel, catalog_names, read_models_dev};

use crate::cargo::root;

const TARGET: &str = "crates/hames-model/src/catalog/snapshot.txt";

/// Writes the snapshot.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let [file] = args else { bail!("snapshot wants the file it is made from: the JSON of models.dev") };
    let path = PathBuf::from(file);
    let json = std::fs::read(&path).with_context(|| format!("cannot read {file}"))?;
    let stamp = date_in(file)
        .with_context(|| format!("{file} should have its date in its name: models-dev-2026-08-18.json"))?;
    let all = read_models_dev(&json, stamp).with_context(|| format!("{file} is no catalog of models.dev"))?;
    let kept: Vec<(&str, Vec<ListedModel>)> = catalog_names()
        .filter_map(|name| Some((name, all.section(name)?.models().collect::<Vec<_>>())))
        .filter(|(_, models)| !models.is_empty())
        .collect();
    let snapshot = Catalog::write(stamp, kept.iter().map(|(name, models)| (*name, models.as_slice())));
    std::fs::write(root().join(TARGET), snapshot.text()).with_context(|| format!("cannot write {TARGET}"))?;
    let models: usize = kept.iter().map(|(_, models)| models.len()).sum();
    let kb = snapshot.text().len().div_ceil(1024);
    println!("{TARGET}: {} providers, {models} models, {kb} KB, of {stamp}", kept.len());
    Ok(())
}

/// The first `2026-08-18` of a name.
fn date_in(name: &str) -> Option<&str> {
    let is_date = |text: &str| {
        text.bytes().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() })
    };
    (0..name.len().saturating_sub(9)).filter_map(|at| name.get(at..at + 10)).find(|text| is_date(text))
}
