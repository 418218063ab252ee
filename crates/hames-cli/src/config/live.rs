//! The configuration of a process that lives long: read again when the file has changed, and only then.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use hames_tools::Secrets;

use super::layers::Config;
use crate::env::Env;
use crate::exit::Stop;
use crate::home::Home;

/// What tells one content of a file from another without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp(Option<(u64, u64, SystemTime)>);

impl Stamp {
    /// Inode, size and time: an editor that puts a new file in place changes the first, one that writes into it the last.
    fn of(path: &Path) -> Stamp {
        use std::os::unix::fs::MetadataExt;
        let meta = std::fs::metadata(path).ok();
        Stamp(meta.and_then(|meta| Some((meta.ino(), meta.len(), meta.modified().ok()?))))
    }
}

/// Every key that was ever read in this process: one that the file no longer has may still stand somewhere. Clones share
/// what they know.
#[derive(Clone, Default)]
pub(crate) struct Masks(Arc<RwLock<(Vec<String>, Secrets)>>);

impl Masks {
    /// Masks these values.
    pub(crate) fn of(values: Vec<String>) -> Masks {
        let masks = Masks::default();
        masks.add(values);
        masks
    }

    /// Masks these values too.
    pub(crate) fn add(&self, mut values: Vec<String>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        values.retain(|value| !known.0.contains(value));
        if values.is_empty() {
            return;
        }
        known.0.append(&mut values);
        known.1 = Secrets::new(known.0.clone());
    }

    /// The text without them.
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).1.mask(text)
    }
}

impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Masks")
    }
}

/// File and environment as they are now.
#[derive(Debug)]
pub(crate) struct Live {
    home: Home,
    env: Env,
    /// The last reading, and of what.
    read: Mutex<Option<(Stamp, Stamp, Arc<Config>)>>,
    masks: Masks,
}

impl Live {
    /// Nothing is read yet.
    pub(crate) fn new(home: Home, env: Env) -> Live {
        Live { home, env, read: Mutex::default(), masks: Masks::default() }
    }

    /// The configuration in force for whatever begins now. A file that cannot be read is an error each time it is asked
    /// for: what held before it was changed is not what its owner wants.
    pub(crate) fn now(&self) -> Result<Arc<Config>, Stop> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken before the reading: a change in between is seen the next time.
        let (file, public) = (Stamp::of(&self.home.config_file()), Stamp::of(&self.home.public_catalog()));
        if let Some((of_file, of_public, config)) = &*read
            && (*of_file, *of_public) == (file, public)
        {
            return Ok(Arc::clone(config));
        }
        *read = None;
        let config = Arc::new(Config::load(&self.home, &self.env)?);
        self.masks.add(config.secrets());
        *read = Some((file, public, Arc::clone(&config)));
        Ok(config)
    }

    /// The keys of every reading so far.
    pub(crate) fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Where it is kept.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The environment it is laid over.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_read_again_and_an_unchanged_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::of(&[("HAMES_HOME", dir.path().to_str().unwrap())]);
        let live = Live::new(Home::find(&env).unwrap(), env);
        let model = |live: &Live| live.now().unwrap().file.model.as_ref().map(|at| at.value.to_string());
        assert_eq!(model(&live), None);
        let file = dir.path().join("config.jsonc");
        std::fs::write(&file, r#"{"model": "a/b", "providers": {"a": {"api_key": "the-first-key"}}}"#).unwrap();
        assert_eq!(model(&live).as_deref(), Some("a/b"));
        let (first, second) = (live.now().unwrap(), live.now().unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        // Of the same length: another file in its place is another content.
        let staged = dir.path().join("new");
        std::fs::write(&staged, r#"{"model": "a/c", "providers": {"a": {"api_key": "another-key!!"}}}"#).unwrap();
        std::fs::rename(&staged, &file).unwrap();
        assert_eq!(model(&live).as_deref(), Some("a/c"));
        let masked = live.masks().mask("the-first-key another-key!!").into_owned();
        assert_eq!(masked.matches("[masked secret]").count(), 2, "{masked}");
        std::fs::write(&file, "{").unwrap();
        assert!(live.now().is_err() && live.now().is_err());
        std::fs::remove_file(&file).unwrap();
        assert_eq!(model(&live), None);
    }
}
