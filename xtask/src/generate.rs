//! Files made from the code, and the check that they are what the code would make.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::cargo::root;

fn files() -> Result<Vec<(PathBuf, String)>> {
    let schema = serde_json::to_string_pretty(&hames_protocol::schema::protocol_schema())? + "\n";
    let openapi = serde_json::to_string_pretty(&hames_protocol::schema::openapi())? + "\n";
    Ok(vec![(root().join("schema/protocol.schema.json"), schema), (root().join("schema/openapi.json"), openapi)])
}

/// Writes them.
pub(crate) fn write() -> Result<()> {
    for (path, content) in files()? {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Fails where a file on disk is not what the code would make.
pub(crate) fn check() -> Result<()> {
    for (path, content) in files()? {
        if fs::read_to_string(&path).unwrap_or_default() != content {
            bail!("{} is out of date; run `cargo xtask generate` and commit it", path.display());
        }
    }
    Ok(())
}
