//! Where things are kept: `HAMES_HOME` for everything, else the platform's own folders. Never in the project.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::env::Env;
use crate::exit::Stop;

/// The name of the public catalog's file in the cache folder.
pub(crate) const PUBLIC_CATALOG: &str = "models-dev.txt";

/// The folders of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    cache: PathBuf,
    /// Whether `HAMES_HOME` named it.
    pub(crate) explicit: bool,
}

impl Home {
    /// Finds the folders; makes none of them.
    pub(crate) fn find(env: &Env) -> Result<Home, Stop> {
        if let Some(home) = env.get_os("HAMES_HOME") {
            let home = std::path::absolute(home)
                .map_err(|e| Stop::configuration(format!("HAMES_HOME cannot be used: {e}; set it to a folder")))?;
            let cache = home.join("cache");
            return Ok(Home { config: home.clone(), data: home.clone(), state: home, cache, explicit: true });
        }
        let base = etcetera::choose_base_strategy().map_err(|_| {
            Stop::configuration("there is no home folder to keep sessions in; set HAMES_HOME to a folder of your own")
        })?;
        Ok(Home {
            config: base.config_dir().join("hames"),
            data: base.data_dir().join("hames"),
            state: base.state_dir().unwrap_or_else(|| base.data_dir()).join("hames"),
            cache: base.cache_dir().join("hames"),
            explicit: false,
        })
    }

    /// The configuration file, whether it exists or not.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.jsonc")
    }

    /// Where the database, the blobs and the locks are.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// What was learned of models that refused parameters.
    pub(crate) fn learned(&self) -> PathBuf {
        self.data.join("learned.json")
    }

    /// Where drafts and what was sent before are.
    pub(crate) fn written(&self) -> PathBuf {
        self.state.join("written")
    }

    /// Where the logs are.
    pub(crate) fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    /// Where files are that can be had again: model lists.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// The public catalog of models, where it was fetched.
    pub(crate) fn public_catalog(&self) -> PathBuf {
        self.cache.join(PUBLIC_CATALOG)
    }

    /// Every folder that no file tool may reach.
    pub(crate) fn private(&self) -> Vec<PathBuf> {
        let mut all = vec![self.config.clone(), self.data.clone(), self.state.clone()];
        all.dedup();
        if !self.explicit {
            all.push(self.cache.clone());
        }
        all
    }
}

/// Creates a folder and its parents, the new ones readable by nobody else.
pub(crate) fn create_private(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hames_home_holds_everything_when_set() {
        let home = Home::find(&Env::of(&[("HAMES_HOME", "/h/x")])).unwrap();
        assert_eq!(home.config_file(), Path::new("/h/x/config.jsonc"));
        assert_eq!(home.data(), Path::new("/h/x"));
        assert_eq!(home.logs(), Path::new("/h/x/logs"));
        assert_eq!(home.cache(), Path::new("/h/x/cache"));
        assert_eq!(home.private(), vec![PathBuf::from("/h/x")]);
    }

    #[test]
    fn a_relative_hames_home_is_made_absolute() {
        let home = Home::find(&Env::of(&[("HAMES_HOME", "here")])).unwrap();
        assert!(home.data().is_absolute() && home.data().ends_with("here"));
    }
}
