//! Which proposals a person means: pure.
//!
//! A place names the proposal at it and all below it. What cannot be applied or dropped for itself brings along what it
//! depends on:
//!
//! - **Applying** a file brings the folders it needs, and the removal of a file or link that a folder would take the place
//!   of. A folder's removal comes with the removal of all it holds, because that lies below it.
//! - **Discarding** anything in a folder whose removal is proposed discards that removal too, for the folder would not be
//!   empty; so does it with a file that would take the folder's place. Folders that were only made for what is discarded
//!   go with it, and what they would have taken the place of stays.

use std::collections::{BTreeMap, BTreeSet};

use hames_protocol::{ChangeKind, Proposal, SessionState};

/// Proposals that are meant, and folders that were made for proposals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Picked {
    pub(super) proposals: BTreeMap<String, Proposal>,
    pub(super) folders: BTreeSet<String>,
}

impl Picked {
    /// Everything that is open.
    pub(super) fn all(state: &SessionState) -> Self {
        Self { proposals: state.proposals.clone(), folders: state.proposed_folders.clone() }
    }

    /// What is at or below one of the places.
    pub(super) fn at(state: &SessionState, places: &[String]) -> Self {
        let mut picked = Self::all(state);
        let is_meant = |path: &String| places.iter().any(|place| path == place || is_below(path, place));
        picked.proposals.retain(|path, _| is_meant(path));
        picked.folders.retain(is_meant);
        picked
    }

    /// Adds what has to be applied with it.
    pub(super) fn with_what_it_needs(mut self, state: &SessionState) -> Self {
        let made = |(path, proposal): (&String, &Proposal)| proposal.content.is_some().then(|| path.clone());
        let needing: Vec<String> = self.proposals.iter().filter_map(made).chain(self.folders.iter().cloned()).collect();
        for above in needing.iter().flat_map(|path| folders_above(path)) {
            if let Some(in_the_way) = state.proposals.get(above) {
                self.proposals.insert(above.to_owned(), in_the_way.clone());
            }
            if state.proposed_folders.contains(above) {
                self.folders.insert(above.to_owned());
            }
        }
        self
    }

    /// Adds what cannot stay without it.
    pub(super) fn with_what_needs_it(mut self, state: &SessionState) -> Self {
        let paths: Vec<String> = self.paths();
        for above in paths.iter().flat_map(|path| folders_above(path)) {
            let emptied = state.proposals.get(above).filter(|proposal| proposal.kind == ChangeKind::Dir);
            if let Some(emptied) = emptied {
                self.proposals.insert(above.to_owned(), emptied.clone());
            }
        }
        let stays = |path: &String| !self.proposals.contains_key(path);
        let files = state.proposals.iter().filter(|(path, proposal)| proposal.content.is_some() && stays(path));
        let needed: BTreeSet<&str> = files.flat_map(|(path, _)| folders_above(path)).collect();
        for above in paths.iter().flat_map(|path| folders_above(path)) {
            if state.proposed_folders.contains(above) && !needed.contains(above) {
                self.folders.insert(above.to_owned());
                if let Some(replaced) = state.proposals.get(above) {
                    self.proposals.insert(above.to_owned(), replaced.clone());
                }
            }
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.proposals.is_empty() && self.folders.is_empty()
    }

    /// All paths, in order.
    pub(super) fn paths(&self) -> Vec<String> {
        let paths: BTreeSet<&String> = self.proposals.keys().chain(&self.folders).collect();
        paths.into_iter().cloned().collect()
    }
}

/// The folders a path lies in, innermost first.
pub(super) fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/').map(|(above, _)| above), |path| {
        path.rsplit_once('/').map(|(above, _)| above)
    })
    .filter(|path| !path.is_empty())
}

/// Whether an absolute path lies below a folder.
pub(super) fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use hames_protocol::BlobRef;

    use super::*;

    /// `-` removes what stood there, `~` edits, `+` makes; `/` behind means a folder, `@` a link that stood there.
    fn state(words: &str) -> SessionState {
        let mut state = SessionState::default();
        for word in words.split_whitespace() {
            let (sign, path) = word.split_at(1);
            let is_folder = path.ends_with('/');
            let kind = match path.chars().last() {
                Some('/') => ChangeKind::Dir,
                Some('@') => ChangeKind::Link,
                _ => ChangeKind::File,
            };
            let path = format!("/w/{}", path.trim_end_matches(['/', '@']));
            if sign == "+" && is_folder {
                state.proposed_folders.insert(path);
                continue;
            }
            let proposal = Proposal {
                call_id: "c".into(),
                at: 0,
                kind,
                base: (sign != "+" && !is_folder).then(|| "base".into()),
                base_mode: None,
                content: (sign != "-").then(|| BlobRef { hash: "h".into(), bytes: 1, dropped: 0, name: None }),
                mode: None,
            };
            state.proposals.insert(path, proposal);
        }
        state
    }

    fn words(picked: &Picked) -> String {
        let paths = picked.paths();
        paths.iter().map(|path| path.trim_start_matches("/w/")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_applied_brings_what_it_needs_and_what_is_discarded_takes_along_what_needs_it() {
        for (open, place, applied, discarded) in [
            ("~a ~b", "a", "a", "a"),
            ("~ab ~a", "a", "a", "a"),
            ("~a/x ~a/y ~ab", "a", "a/x a/y", "a/x a/y"),
            ("~a", "b", "", ""),
            // Folders that only a new file needs.
            ("+n/ +n/m/ +n/m/x ~b", "n/m/x", "n n/m n/m/x", "n n/m n/m/x"),
            ("+n/ +n/x +n/y", "n/x", "n n/x", "n/x"),
            ("+n/", "n", "n", "n"),
            ("+n/ +n/m/", "n/m", "n n/m", "n n/m"),
            // A removed folder, and what it held.
            ("-d/ -d/x -d/y", "d", "d d/x d/y", "d d/x d/y"),
            ("-d/ -d/x -d/y", "d/x", "d/x", "d d/x"),
            ("-d/ -d/e/ -d/e/x", "d/e/x", "d/e/x", "d d/e d/e/x"),
            // A file where a folder was.
            ("~d/ -d/x", "d/x", "d/x", "d d/x"),
            ("~d/ -d/x", "d", "d d/x", "d d/x"),
            // A folder where a file or a link was.
            ("-f +f/ +f/x +f/y", "f/x", "f f/x", "f/x"),
            ("-f +f/ +f/x", "f/x", "f f/x", "f f/x"),
            ("-l@ +l/ +l/x", "l/x", "l l/x", "l l/x"),
            ("-f +f/ +f/x", "f", "f f/x", "f f/x"),
        ] {
            let state = state(open);
            let picked = || Picked::at(&state, &[format!("/w/{place}")]);
            assert_eq!(words(&picked().with_what_it_needs(&state)), applied, "applying {place} of {open}");
            assert_eq!(words(&picked().with_what_needs_it(&state)), discarded, "discarding {place} of {open}");
        }
    }
}
