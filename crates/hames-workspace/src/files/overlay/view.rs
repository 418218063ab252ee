//! What the proposals make of a path: pure, with no look at the disk.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use hames_protocol::{ChangeKind, Proposal, SessionState};

/// What is to be seen at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// What is on disk there.
    Disk,
    /// A proposed file.
    File(Proposal),
    /// A folder: what the disk has in it, and what is proposed there.
    Mixed,
    /// A folder that holds only what is proposed: whatever the disk has there is gone.
    Made,
    /// Nothing.
    Nothing,
    /// Nothing, and nothing can be: a folder on the way is a proposed file.
    BelowFile,
}

/// What is to be seen of an entry in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// A proposed file, with its size.
    File(u64),
    /// A folder that proposals need.
    Folder,
    /// It is removed.
    Gone,
}

/// Looks at one path. Every look of a tool comes through here, so a path with no proposal near it costs one search.
pub(super) fn look(state: &SessionState, path: &Path) -> Seen {
    if !state.has_proposals() {
        return Seen::Disk;
    }
    if let Some(key) = path.to_str() {
        let (own, holds_files) = at_and_below(&state.proposals, key);
        if let Some(file) = own.filter(|own| own.content.is_some()) {
            return Seen::File(file.clone());
        }
        let is_folder = holds_files || state.proposed_folders.contains(key);
        match (own, is_folder) {
            (Some(_), true) => return Seen::Made,
            (Some(_), false) => return Seen::Nothing,
            (None, true) => return Seen::Mixed,
            (None, false) => {}
        }
    }
    match nearest_above(&state.proposals, path) {
        None => Seen::Disk,
        Some(file) if file.content.is_some() => Seen::BelowFile,
        Some(_) => Seen::Nothing,
    }
}

/// The proposal for a path, and whether a file is proposed somewhere below it.
fn at_and_below<'s>(proposals: &'s BTreeMap<String, Proposal>, key: &str) -> (Option<&'s Proposal>, bool) {
    if key.ends_with('/') {
        let holds_files = below(proposals, key).any(|(_, proposal)| proposal.content.is_some());
        return (proposals.get(key), holds_files);
    }
    let mut own = None;
    for (path, proposal) in proposals.range::<str, _>((Bound::Included(key), Bound::Unbounded)) {
        match path.strip_prefix(key).map(|rest| rest.as_bytes().first()) {
            Some(None) => own = Some(proposal),
            Some(Some(b'/')) if proposal.content.is_some() => return (own, true),
            // What is removed below it, or has a longer name that sorts in between, as `a-b` does before `a/b`.
            Some(Some(..=b'/')) => {}
            _ => break,
        }
    }
    (own, false)
}

/// The proposal for the innermost folder above a path that has one.
fn nearest_above<'s>(proposals: &'s BTreeMap<String, Proposal>, path: &Path) -> Option<&'s Proposal> {
    // Every path with a proposal begins with what the first and the last of them have in common, so nothing shorter is
    // one: mostly that leaves a folder or two to look up.
    let (first, last) = (proposals.first_key_value()?.0, proposals.last_key_value()?.0);
    let common = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    if !path.as_os_str().as_encoded_bytes().starts_with(&first.as_bytes()[..common]) {
        return None;
    }
    path.ancestors()
        .skip(1)
        .take_while(|above| above.as_os_str().len() >= common)
        .find_map(|above| proposals.get(above.to_str()?))
}

/// What the proposals make of a folder's entries.
pub(super) fn children(state: &SessionState, folder: &Path) -> BTreeMap<String, Child> {
    let mut children = BTreeMap::new();
    let Some(folder) = folder.to_str() else { return children };
    for (rest, proposal) in below(&state.proposals, folder) {
        match (rest.split_once('/'), &proposal.content) {
            (Some((name, _)), Some(_)) => {
                children.insert(name.to_owned(), Child::Folder);
            }
            (None, Some(content)) => {
                children.insert(rest.to_owned(), Child::File(content.bytes));
            }
            // A folder may stand where something else was removed.
            (None, None) => {
                children.entry(rest.to_owned()).or_insert(Child::Gone);
            }
            (Some(_), None) => {}
        }
    }
    let prefix = prefix(folder);
    for made in state.proposed_folders.range(prefix.clone()..).take_while(|made| made.starts_with(&prefix)) {
        let name = made[prefix.len()..].split('/').next().unwrap_or_default();
        children.insert(name.to_owned(), Child::Folder);
    }
    children
}

/// Files and folders that would be below a folder though they are not on disk as such: every proposed content, and every
/// folder that was made.
pub(super) fn proposed_below<'s>(
    state: &'s SessionState,
    folder: &str,
) -> impl Iterator<Item = (String, Option<&'s Proposal>)> {
    let prefix = prefix(folder);
    let files = below(&state.proposals, folder)
        .filter(|(_, proposal)| proposal.content.is_some())
        .map(|(rest, proposal)| (rest.to_owned(), Some(proposal)));
    let made = state.proposed_folders.range(prefix.clone()..);
    let made: Vec<_> = made.map_while(|made| made.strip_prefix(&prefix)).map(|rest| (rest.to_owned(), None)).collect();
    files.chain(made)
}

/// Whether the rules of ignore files may differ from those on disk.
pub(super) fn touches_rules(state: &SessionState) -> bool {
    let is_rules = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        matches!(name, ".gitignore" | ".ignore") || path.ends_with("/.git/info/exclude")
    };
    state.proposals.keys().any(is_rules)
}

/// Whether links on disk may lead elsewhere than the disk says, because one of them is gone.
pub(super) fn touches_links(state: &SessionState) -> bool {
    state.proposals.values().any(|proposal| proposal.kind == ChangeKind::Link)
}

/// The proposals below a folder, by path from there.
fn below<'s>(
    proposals: &'s BTreeMap<String, Proposal>,
    folder: &str,
) -> impl Iterator<Item = (&'s str, &'s Proposal)> + use<'s> {
    let prefix = prefix(folder);
    proposals.range(prefix.clone()..).map_while(move |(path, proposal)| Some((path.strip_prefix(&prefix)?, proposal)))
}

fn prefix(folder: &str) -> String {
    if folder.ends_with('/') { folder.to_owned() } else { format!("{folder}/") }
}

#[cfg(test)]
mod tests {
    use hames_protocol::BlobRef;

    use super::*;

    fn proposal(content: bool) -> Proposal {
        let content = content.then(|| BlobRef { hash: "h".into(), bytes: 1, dropped: 0, name: None });
        let (base, base_mode) = (Some("b".into()), None);
        Proposal { call_id: "c".into(), at: 0, kind: ChangeKind::File, base, base_mode, content, mode: None }
    }

    #[test]
    fn a_path_is_seen_whatever_sorts_beside_it() {
        let files = ["/w/a-b", "/w/a.c", "/w/a/b", "/w/ab", "/w/f"];
        let gone = ["/w/g", "/w/g-h", "/w/g/h", "/w/x/gone"];
        let mut state = SessionState::default();
        state.proposals.extend(files.map(|path| (path.to_owned(), proposal(true))));
        state.proposals.extend(gone.map(|path| (path.to_owned(), proposal(false))));
        let file = Seen::File(proposal(true));
        for (path, expected) in [
            ("/", Seen::Mixed),
            ("/w", Seen::Mixed),
            ("/w/a", Seen::Mixed),
            ("/w/a-b", file.clone()),
            ("/w/a/b", file.clone()),
            ("/w/a/b/c", Seen::BelowFile),
            ("/w/a/c", Seen::Disk),
            ("/w/a-b/c", Seen::BelowFile),
            ("/w/f/g", Seen::BelowFile),
            ("/w/g", Seen::Nothing),
            ("/w/g/i", Seen::Nothing),
            // Something of it is removed, and the folder stays.
            ("/w/x", Seen::Disk),
            ("/v/a/b", Seen::Disk),
        ] {
            assert_eq!(look(&state, Path::new(path)), expected, "{path}");
        }
    }
}
