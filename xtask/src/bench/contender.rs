//! Who is measured, and how each is started.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::kit::{Kit, Mock, Run};
use crate::cargo::root;

/// A program under measurement.
pub(crate) struct Contender {
    /// Its name in the table.
    pub(crate) name: String,
    /// What prints its version, where that is measured.
    pub(crate) version: Option<Vec<String>>,
    command: Vec<String>,
    env: Vec<(String, String)>,
    folder: PathBuf,
}

impl Contender {
    fn new(name: &str, command: Vec<String>, env: Vec<(String, String)>, scratch: &Path) -> Result<Self> {
        let folder = scratch.join(format!("{name}-project"));
        fs::create_dir_all(&folder)?;
        Ok(Self { name: name.to_owned(), version: None, command, env, folder })
    }

    /// The lower bound.
    pub(crate) fn floor(kit: &Kit, mock: &Mock, scratch: &Path) -> Result<Self> {
        let program = kit.program("floor").display().to_string();
        let env = vec![("MOCK_BASE".to_owned(), mock.base.clone())];
        let mut floor = Self::new("floor", vec![program.clone(), "go".into()], env, scratch)?;
        floor.version = Some(vec![program, "--version".into()]);
        Ok(floor)
    }

    /// Hames as it is shipped, its home on disk, its window large enough that nothing is ever cut.
    pub(crate) fn hames(mock: &Mock, scratch: &Path) -> Result<Self> {
        let home = scratch.join("home");
        fs::create_dir_all(&home)?;
        let config = json!({
            "model": "mock/mock-model",
            "providers": {"mock": {
                "base_url": mock.base,
                "api_key": "bench-key-1234",
                "models": [{"id": "mock-model", "context_window": 2_000_000, "max_output": 16_384}],
            }},
        });
        fs::write(home.join("config.jsonc"), config.to_string())?;
        let program = root().join("target/release/hames").display().to_string();
        let command = [program.as_str(), "run", "--json", "--mode", "build", "go"].map(str::to_owned).to_vec();
        let env = vec![
            ("HAMES_HOME".to_owned(), home.display().to_string()),
            ("HOME".to_owned(), scratch.display().to_string()),
        ];
        let mut hames = Self::new("hames", command, env, scratch)?;
        hames.version = Some(vec![program, "--version".into()]);
        Ok(hames)
    }

    /// `NAME=COMMAND`: a peer, run by bash, with the provider's address in `MOCK_BASE`.
    pub(crate) fn peer(arg: &str, mock: &Mock, scratch: &Path) -> Result<Self> {
        let (name, command) = arg.split_once('=').context("a peer is given as NAME=COMMAND")?;
        let mut env: Vec<(String, String)> = std::env::vars().collect();
        env.push(("MOCK_BASE".to_owned(), mock.base.clone()));
        Self::new(name, vec!["bash".into(), "-c".into(), command.to_owned()], env, scratch)
    }

    /// The program it begins with, for running it by other means.
    pub(crate) fn program(&self) -> &Path {
        Path::new(&self.command[0])
    }

    /// The folder it works in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its `HAMES_HOME`, where it has one.
    pub(crate) fn home(&self) -> PathBuf {
        self.env.iter().find(|(name, _)| name == "HAMES_HOME").map(|(_, home)| home.into()).unwrap_or_default()
    }

    /// Its environment, for running it by other means.
    pub(crate) fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Runs one scenario.
    pub(crate) fn run(&self, kit: &Kit, mock: &Mock, ctl: &Value) -> Result<Run> {
        mock.reset(ctl)?;
        let measured = kit.measured(&self.command, &self.env, &self.folder)?;
        Run::new(measured, &mock.stats()?).with_context(|| format!("{} in {ctl}", self.name))
    }
}
