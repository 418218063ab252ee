//! Rules about paths, held against everything a call does with files and not only against the paths it names.
//!
//! A search names a folder and reads what is in it. Lying over the filesystem a call is given, [`Guarded`] leaves out of
//! walks and listings what a rule keeps from the call, and refuses it where it is named after all. What a rule only
//! asks about is kept back too, unless the call was asked about exactly that.
//!
//! It knows real paths: a second hard link to a file is another path. Commands do not go through it.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    DirEntry, Expect, FileStat, FsError, FsPath, FsProvider, RecordChange, Rule, RuleVerdict, Staged, StagedChange,
    Touched, WalkEntry, WalkOptions,
};

/// The filesystem of one call under the rules.
pub(crate) struct Guarded {
    inner: Arc<dyn FsProvider>,
    /// Those that keep some paths from some calls.
    rules: Vec<Rule>,
    /// What the call may use for having named it.
    allowed: Vec<Touched>,
}

/// The filesystem as a call sees it that touches these paths, all of them allowed: the same one where no rule keeps
/// any path from anybody.
pub(crate) fn guarded(inner: Arc<dyn FsProvider>, rules: &[Rule], allowed: &[Touched]) -> Arc<dyn FsProvider> {
    let rules: Vec<Rule> = rules.iter().filter(|rule| rule.restrains_paths()).cloned().collect();
    if rules.is_empty() {
        return inner;
    }
    Arc::new(Guarded { inner, rules, allowed: allowed.to_vec() })
}

impl Guarded {
    /// Whether the call may not do this.
    fn keeps(&self, abs: &Path, write: bool) -> bool {
        self.rules.iter().any(|rule| {
            rule.covers_path(abs, write, self.inner.root())
                && (rule.verdict == RuleVerdict::Deny || !self.was_asked(rule, abs, write))
        })
    }

    /// Whether the call named the path, or a folder of it that the rule is about as a whole.
    fn was_asked(&self, rule: &Rule, abs: &Path, write: bool) -> bool {
        self.allowed.iter().any(|t| {
            abs.starts_with(&t.path.abs)
                && (t.write || !write)
                && rule.covers_path(&t.path.abs, t.write, self.inner.root())
        })
    }

    fn check(&self, path: &FsPath, write: bool) -> Result<(), FsError> {
        match self.keeps(&path.abs, write) {
            true => Err(FsError::Ruled { path: path.shown.clone() }),
            false => Ok(()),
        }
    }

    /// A folder that holds what is kept does not go: its listing leaves that out, so whoever removes a whole folder
    /// would remove everything else first.
    fn check_removal(&self, path: &FsPath, expect: &Expect) -> Result<(), FsError> {
        self.check(path, true)?;
        if *expect == Expect::Dir {
            let entries = self.inner.list(path)?;
            if let Some(kept) = entries.iter().find(|entry| self.keeps(&path.abs.join(&entry.name), true)) {
                return Err(FsError::Ruled { path: format!("{}/{}", path.shown, kept.name) });
            }
        }
        Ok(())
    }
}

impl FsProvider for Guarded {
    fn root(&self) -> &Path {
        self.inner.root()
    }

    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve(path)
    }

    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve_entry(path)
    }

    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError> {
        self.check(path, false)?;
        self.inner.stat(path)
    }

    fn shared_identity(&self, path: &FsPath) -> Option<(u64, u64)> {
        self.inner.shared_identity(path)
    }

    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        self.check(path, false)?;
        self.inner.open(path)
    }

    fn read(&self, path: &FsPath, limit: u64) -> Result<Vec<u8>, FsError> {
        self.check(path, false)?;
        self.inner.read(path, limit)
    }

    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        self.check(path, false)?;
        let mut entries = self.inner.list(path)?;
        entries.retain(|entry| !self.keeps(&path.abs.join(&entry.name), false));
        Ok(entries)
    }

    fn read_link(&self, path: &FsPath) -> Result<Vec<u8>, FsError> {
        self.check(path, false)?;
        self.inner.read_link(path)
    }

    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        self.check(path, true)?;
        self.inner.stage_write(path, content, expect, mode)
    }

    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        self.check_removal(path, expect)?;
        self.inner.stage_remove(path, expect)
    }

    fn may_write(&self, path: &FsPath) -> Result<(), FsError> {
        self.check(path, true)?;
        self.inner.may_write(path)
    }

    fn may_remove(&self, path: &FsPath) -> Result<(), FsError> {
        self.check(path, true)?;
        self.inner.may_remove(path)
    }

    fn make_folder(&self, path: &FsPath) -> Result<(), FsError> {
        self.check(path, true)?;
        self.inner.make_folder(path)
    }

    fn write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        record: RecordChange<'_>,
    ) -> Result<StagedChange, FsError> {
        self.check(path, true)?;
        self.inner.write(path, content, expect, record)
    }

    fn remove(&self, path: &FsPath, expect: &Expect, record: RecordChange<'_>) -> Result<StagedChange, FsError> {
        self.check_removal(path, expect)?;
        self.inner.remove(path, expect, record)
    }

    fn walk(
        &self,
        from: &FsPath,
        options: &WalkOptions,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        self.check(from, false)?;
        // A rule about a folder is about everything below it, so what lies in a kept folder is left out one by one.
        self.inner.walk(from, options, &mut |entry| match self.keeps(&entry.path.abs, false) {
            true => ControlFlow::Continue(()),
            false => visit(entry),
        })
    }

    fn hidden(&self) -> Vec<PathBuf> {
        self.inner.hidden()
    }

    /// What wildcards keep can be anywhere, which would close every folder: it is kept where it is met.
    fn hides(&self, path: &FsPath) -> bool {
        let root = self.inner.root();
        let is_kept_below = |rule: &Rule| {
            let lies_below = rule.unread_place(root).is_some_and(|place| place.starts_with(&path.abs));
            lies_below && !self.was_asked(rule, &path.abs, false)
        };
        self.rules.iter().any(is_kept_below) || self.inner.hides(path)
    }
}
