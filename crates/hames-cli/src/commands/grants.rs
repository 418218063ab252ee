//! `hames grants`: what was allowed for a folder from then on, and taking it back.

use std::path::Path;

use hames_store::{KeptGrant, Store};
use serde_json::json;

use crate::approve::granted;
use crate::cli::{GrantsArgs, GrantsCommand};
use crate::clock::local_minute;
use crate::engine::with_store;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::{Out, clean};

pub(crate) fn run(args: GrantsArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let folder = super::folder(args.dir.as_deref())?;
    with_store(&home, |store| {
        let mut out = Out::new();
        match args.what {
            GrantsCommand::List { all, json } => list(store, &folder, all, json, &mut out)?,
            GrantsCommand::Remove { numbers, all, json } => remove(store, &folder, &numbers, all, json, &mut out)?,
        }
        out.finish()?;
        Ok(exit::COMPLETE)
    })
}

fn list(store: &Store, folder: &Path, all: bool, json: bool, out: &mut Out) -> Result<(), Stop> {
    let kept = store.grants(if all { None } else { Some(folder) })?;
    if kept.is_empty() && !json {
        let hint = if all { "" } else { "; --all shows every folder" };
        return out.line(format!("nothing is granted here{hint}"));
    }
    let mut place = ("", 0);
    for kept in &kept {
        // Numbers are those that `remove` takes in that folder.
        place = if place.0 == kept.folder { (place.0, place.1 + 1) } else { (&kept.folder, 1) };
        if json {
            out.json(&as_json(kept, place.1))?;
            continue;
        }
        if all && place.1 == 1 {
            out.line(clean::line(&kept.folder))?;
        }
        out.line(format!("{:>3}  {}  {}", place.1, local_minute(kept.at), in_words(kept)))?;
    }
    Ok(())
}

fn remove(store: &Store, folder: &Path, numbers: &[usize], all: bool, json: bool, out: &mut Out) -> Result<(), Stop> {
    let kept = store.grants(Some(folder))?;
    let numbers: Vec<usize> = if all { (1..=kept.len()).collect() } else { numbers.to_vec() };
    if let Some(wrong) = numbers.iter().find(|number| !(1..=kept.len()).contains(*number)) {
        return Err(Stop::usage(format!(
            "there is no grant {wrong} in {}; `hames grants list` shows what there is",
            clean::line(&folder.display().to_string())
        )));
    }
    for number in numbers {
        let Some(kept) = kept.get(number - 1) else { continue };
        store.remove_grant(kept)?;
        if json {
            out.json(&as_json(kept, number))?;
        } else {
            out.line(format!("no longer granted: {}", in_words(kept)))?;
        }
    }
    Ok(())
}

fn in_words(kept: &KeptGrant) -> String {
    granted(std::slice::from_ref(&kept.grant)).join(" ")
}

fn as_json(kept: &KeptGrant, number: usize) -> serde_json::Value {
    json!({"number": number, "folder": kept.folder, "grant": kept.grant, "at": kept.at})
}
