//! What to look at instead of a path that does not exist. Only for error texts; looks at one folder and no further.

use std::path::Path;

use super::sys;

/// Names compared in one folder.
const MAX_NAMES: usize = 5_000;

/// Names suggested.
const MAX_SUGGESTED: usize = 3;

/// Similarity from which a name is worth naming (1 is the same).
const ALIKE: f32 = 0.6;

/// A hint for an error text, beginning with a separator, or nothing.
pub(super) fn instead_of(missing: &Path, shown: impl Fn(&Path) -> String) -> String {
    let Some((folder, name)) = deepest_missing(missing) else { return String::new() };
    let near = near_names(folder, name);
    if near.is_empty() {
        let whole = missing.parent() == Some(folder);
        return if whole { String::new() } else { format!("; there is no {name} in {}", shown(folder)) };
    }
    let near: Vec<_> = near.iter().map(|name| shown(&folder.join(name))).collect();
    format!("; did you mean {}?", near.join(" or "))
}

/// The deepest folder of a path that exists, and the name that is missing in it.
fn deepest_missing(path: &Path) -> Option<(&Path, &str)> {
    path.ancestors().find_map(|at| {
        let folder = at.parent().filter(|folder| sys::stat_path(folder).is_ok())?;
        Some((folder, at.file_name()?.to_str()?))
    })
}

fn near_names(folder: &Path, name: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names: Vec<String> = entries
        .take(MAX_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|other| other.len().abs_diff(name.len()) <= name.len())
        .collect();
    let lower = name.to_lowercase();
    if let Some(same) = names.iter().find(|other| other.to_lowercase() == lower) {
        return vec![same.clone()];
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    similar::get_close_matches(name, &names, MAX_SUGGESTED, ALIKE).into_iter().map(str::to_owned).collect()
}
