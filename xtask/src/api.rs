//! `cargo xtask api-fuzz`: the server against a fuzzer that reads its OpenAPI document.
//!
//! schemathesis is not part of this repository: `pip install schemathesis`, in PATH or named by `HAMES_SCHEMATHESIS`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, must, root};

/// Examples of each operation.
const EXAMPLES: &str = "200";

/// Runs it with these further arguments; fails where it finds something.
pub(crate) fn run(args: &[String]) -> Result<()> {
    must(cargo(&["build", "--quiet", "--package", "hames-cli"]))?;
    let home = tempfile::tempdir().context("there is no room for a home")?;
    let (mut server, address) = serve(home.path())?;
    let found = fuzz(&address, home.path(), args);
    // Whether it could still be killed makes no difference to what was found.
    let _ = server.kill();
    let _ = server.wait();
    found
}

/// A server of an empty home, and the address it listens on.
fn serve(home: &Path) -> Result<(Child, String)> {
    let mut server = Command::new(root().join("target/debug/hames"))
        .args(["serve", "--foreground", "--idle-exit", "never", "--listen", "127.0.0.1:0"])
        .env("HAMES_HOME", home)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the server")?;
    // What a server says to people goes there.
    let said = server.stderr.take().into_iter().flat_map(|said| BufReader::new(said).lines());
    for line in said.map_while(Result::ok) {
        if let Some((_, rest)) = line.split_once("http://") {
            let end = rest.find(|c: char| c.is_whitespace() || c == ')').unwrap_or(rest.len());
            return Ok((server, format!("http://{}", &rest[..end])));
        }
    }
    let _ = server.kill();
    bail!("the server ended without saying where it listens")
}

fn fuzz(address: &str, home: &Path, args: &[String]) -> Result<()> {
    let token = std::fs::read_to_string(home.join("run/token")).context("the server has no token")?;
    let program = std::env::var("HAMES_SCHEMATHESIS").unwrap_or_else(|_| "schemathesis".into());
    let status = Command::new(&program)
        .arg("run")
        .arg(root().join("schema/openapi.json"))
        .args(["--url", address, "-H", &format!("Authorization: Bearer {token}")])
        // Streams have no end, lines it cannot write, and a server that stops has nothing to find.
        .args([
            "--exclude-path",
            "/v1/server/stop",
            "--exclude-operation-id",
            "follow_events",
            "--exclude-operation-id",
            "import_session",
        ])
        .args(["--request-timeout", "10", "--max-examples", EXAMPLES, "--seed", "7"])
        // What is refused for its meaning (a folder that is none) no schema can say.
        .args(["--exclude-checks", "positive_data_acceptance,negative_data_rejection"])
        .args(args)
        .status()
        .with_context(|| {
            format!("cannot run {program}; `pip install schemathesis`, or name it in HAMES_SCHEMATHESIS")
        })?;
    if !status.success() {
        bail!("schemathesis found something");
    }
    Ok(())
}
