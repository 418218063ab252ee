//! Visiting everything that would be below a folder.
//!
//! The filesystem below walks itself, and what it finds is mended on the way: what is gone is left out, what is proposed
//! comes in its place in the order. Only where the rules of ignore files would be others is everything listed anew. (What
//! an ignore file that is a link to a proposed file would say is not looked at.)

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use hames_protocol::Proposal;
use hames_tools::{FileKind, FsError, FsPath, VERSION_CONTROL, WalkEntry, WalkOptions};

use super::super::ignores::Ignores;
use super::super::listed;
use super::view::{self, Seen};
use super::{OverlayFs, stat_of};

impl OverlayFs {
    pub(super) fn walk_over(
        &self,
        from: &FsPath,
        options: &WalkOptions,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        let rules_differ = !options.no_ignore && view::touches_rules(&self.state());
        let on_disk = match self.look(&from.abs) {
            Seen::Disk => true,
            Seen::Mixed => self.base.stat(from).is_ok_and(|stat| stat.kind == FileKind::Dir),
            Seen::Made => false,
            Seen::File(file) => {
                let _ = visit(listed::seen(from.clone(), &stat_of(&file)));
                return Ok(());
            }
            seen @ (Seen::Nothing | Seen::BelowFile) => return Err(self.nothing(from, &seen)),
        };
        if rules_differ {
            return listed::walk(self, from, options, visit);
        }
        let mut proposed = self.proposed_below(from, options);
        let mut flow = ControlFlow::Continue(());
        if on_disk {
            self.base.walk(from, options, &mut |entry| {
                flow = self.merge(entry, &mut proposed, visit);
                flow
            })?;
        }
        for (_, entry) in proposed {
            if flow.is_break() || visit(entry).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Shows what comes before an entry of the disk, and then that one or what takes its place.
    fn merge(
        &self,
        entry: WalkEntry,
        proposed: &mut BTreeMap<PathBuf, WalkEntry>,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // A link is shown under its own name, with the path of what it leads to.
        let name = match entry.path.abs.to_str() {
            Some(_) => self.base.root().join(&entry.path.shown),
            // Shown with stand-ins for what is no text.
            None => entry.path.abs.clone(),
        };
        while let Some(first) = proposed.first_entry().filter(|first| *first.key() < name) {
            visit(first.remove())?;
        }
        if let Some(own) = proposed.remove(&name) {
            return visit(own);
        }
        match self.look(&name) {
            Seen::Disk | Seen::Mixed => {}
            // A proposed file comes from the proposals, if ignore files let it.
            _ => return ControlFlow::Continue(()),
        }
        if entry.path.abs == name && entry.kind != FileKind::Link {
            return visit(entry);
        }
        let path = FsPath { abs: name, identity: None, ..entry.path };
        visit(listed::link(self, path, entry.modified_ns))
    }

    /// What is proposed below a folder and shown there.
    fn proposed_below(&self, from: &FsPath, options: &WalkOptions) -> BTreeMap<PathBuf, WalkEntry> {
        let Some(folder) = from.abs.to_str() else { return BTreeMap::new() };
        let below: Vec<(String, Option<Proposal>)> = {
            let state = self.state();
            view::proposed_below(&state, folder).map(|(rest, file)| (rest, file.cloned())).collect()
        };
        let mut ignores = (!options.no_ignore).then(|| Ignores::new(self, &from.abs));
        let mut entries = BTreeMap::new();
        for (rest, file) in below {
            if self.is_shown(&from.abs, &rest, file.is_none(), options, &mut ignores) {
                let path = self.fs_path(from.abs.join(&rest), None);
                let entry = match &file {
                    Some(file) => listed::seen(path, &stat_of(file)),
                    None => WalkEntry { path, kind: FileKind::Dir, size: 0, modified_ns: 0 },
                };
                entries.insert(from.abs.join(rest), entry);
            }
        }
        entries
    }

    /// Whether a walk from a folder comes by an entry.
    fn is_shown(
        &self,
        from: &Path,
        rest: &str,
        is_dir: bool,
        options: &WalkOptions,
        ignores: &mut Option<Ignores<'_>>,
    ) -> bool {
        let depth = rest.matches('/').count();
        if options.max_depth.is_some_and(|most| depth > most) {
            return false;
        }
        let mut at = from.to_path_buf();
        for (number, name) in rest.split('/').enumerate() {
            at.push(name);
            let is_dir = number < depth || is_dir;
            let is_hidden =
                VERSION_CONTROL.contains(&name) || ignores.as_mut().is_some_and(|ignores| ignores.hide(&at, is_dir));
            if is_hidden {
                return false;
            }
        }
        true
    }
}
