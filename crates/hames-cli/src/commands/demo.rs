//! `hames demo`: a whole run without a model. A scripted provider on loopback plays the model over real server-sent
//! events; everything else — files, commands, log, output — is real.

use std::path::Path;

use hames_protocol::{Delivery, Mode, Settings};
use hames_testkit::{Script, Turn, blocking};
use serde_json::json;

use crate::approve::Person;
use crate::cli::DemoArgs;
use crate::commands::run::{Request, Shown, Which};
use crate::config::{Approve, Config};
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::json::{Deltas, print_failure};
use crate::output::{say, say_failure};

const PROMPT: &str = "make the failing test pass";
/// A program with a fault, and the test that finds it.
const PROGRAM: &str = "#!/bin/sh\n# Prints the sum of two numbers.\necho $(($1 - $2))\n";
const TEST: &str = "#!/bin/sh\n# Checks add.sh.\ngot=$(sh add.sh 2 3)\nif [ \"$got\" = 5 ]; then\n  echo \"ok: 2 + 3 = $got\"\nelse\n  echo \"FAIL: 2 + 3 = $got\"\n  exit 1\nfi\n";

pub(crate) fn run(args: &DemoArgs, env: &Env) -> u8 {
    match play(args, env) {
        Ok(code) => code,
        Err(stop) => {
            if args.json {
                print_failure(&stop);
            }
            if let Stop::Failed(failure) = &stop {
                say_failure(failure);
            }
            stop.code()
        }
    }
}

fn play(args: &DemoArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let scratch = tempfile::Builder::new()
        .prefix("hames-demo-")
        .tempdir()
        .map_err(|e| Stop::storage(format!("no scratch folder can be made: {e}")))?;
    write(scratch.path(), "add.sh", PROGRAM)?;
    write(scratch.path(), "test.sh", TEST)?;
    let provider =
        blocking(script()).map_err(|e| Stop::storage(format!("the scripted model cannot listen on loopback: {e}")))?;
    let config = Config::only("demo", &provider.base_url());
    // The session stays, so its folder stays too.
    let folder = super::folder(Some(&scratch.keep()))?;
    if !args.json {
        say(&format!("hames: a scripted model works in {}: sh test.sh fails there\n", folder.display()));
    }
    let request = Request {
        prompt: PROMPT.into(),
        attachments: Vec::new(),
        folder: folder.clone(),
        which: Which::New,
        flags: Settings { model: "demo/scripted".parse().ok(), mode: Some(Mode::Build), ..Settings::default() },
        delivery: Delivery::Queue,
        approve: Some(Approve::Deny),
        person: Person::Absent,
        shown: if args.json { Shown::Json(Deltas::Shown) } else { Shown::Text },
    };
    let code = request.run_with(env, &home, &config)?;
    if !args.json && code == exit::COMPLETE {
        let show = format!("hames sessions show -C {} \"{PROMPT}\"", folder.display());
        say(&format!(
            "\nThat was a real run with a scripted model; its session is kept. Read it again, or its ledger:\n\
             \x20 {show}\n\
             \x20 {show} --runs\n\
             With a real model, in a project of your own:\n\
             \x20 hames doctor\n\
             \x20 hames run --mode build \"{PROMPT}\""
        ));
    }
    Ok(code)
}

/// What the model says: look, mend, check, report.
fn script() -> Script {
    Script::new()
        .turn(
            Turn::text("I look at the test and at the program it checks.")
                .then_call("Read", json!({"path": "test.sh"}))
                .then_call("Read", json!({"path": "add.sh"})),
        )
        .turn(Turn::text("add.sh subtracts where it should add.").then_call(
            "StrReplace",
            json!({"path": "add.sh", "old_string": "$(($1 - $2))", "new_string": "$(($1 + $2))"}),
        ))
        .turn(Turn::call("Shell", json!({"command": "sh test.sh", "description": "run the test"})))
        .turn(Turn::text("The test passes: add.sh subtracted its arguments, now it adds them."))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Stop> {
    std::fs::write(folder.join(name), text)
        .map_err(|e| Stop::storage(format!("{} cannot be written: {e}", folder.join(name).display())))
}
