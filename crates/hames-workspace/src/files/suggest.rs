//! What to look at instead of a path that does not exist. Only for error texts; looks at one folder and no further.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::sys::{self, Anchor};

/// Names compared in one folder.
const MAX_NAMES: usize = 5_000;

/// Names suggested.
const MAX_SUGGESTED: usize = 3;

/// Similarity from which a name is worth naming (1 is the same).
const ALIKE: f32 = 0.6;

/// A hint for an error text, beginning with a separator, or nothing. `shown` names paths from the anchor.
pub(super) fn instead_of(anchor: &Anchor, missing: &Path, shown: impl Fn(&Path) -> String) -> String {
    let Some((folder, path, name)) = deepest_missing(anchor, missing) else { return String::new() };
    let near = near_names(&folder, name);
    if near.is_empty() {
        let whole = missing.parent() == Some(path);
        return if whole { String::new() } else { format!("; there is no {name} in {}", shown(path)) };
    }
    let near: Vec<_> = near.iter().map(|name| shown(&path.join(name))).collect();
    format!("; did you mean {}?", near.join(" or "))
}

/// The deepest folder of a path that exists, its path, and the name that is missing in it.
fn deepest_missing<'p>(anchor: &Anchor, path: &'p Path) -> Option<(OwnedFd, &'p Path, &'p str)> {
    path.ancestors().find_map(|at| {
        let above = at.parent()?;
        Some((anchor.folder(above).ok()?, above, at.file_name()?.to_str()?))
    })
}

fn near_names(folder: &OwnedFd, name: &str) -> Vec<String> {
    let Ok(names) = sys::names(folder, MAX_NAMES) else { return Vec::new() };
    near(name, names.into_iter().filter_map(|other| other.into_string().ok()))
}

/// The names that are worth naming where `name` was not found among them.
pub(super) fn near(name: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let names: Vec<String> =
        names.take(MAX_NAMES).filter(|other| other.len().abs_diff(name.len()) <= name.len()).collect();
    let lower = name.to_lowercase();
    if let Some(same) = names.iter().find(|other| other.to_lowercase() == lower) {
        return vec![same.clone()];
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    similar::get_close_matches(name, &names, MAX_SUGGESTED, ALIKE).into_iter().map(str::to_owned).collect()
}
