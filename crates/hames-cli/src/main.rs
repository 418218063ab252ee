//! The `hames` command: reads arguments, environment and home, and wires the engine together.
//!
//! Everything that thinks lives in the crates below; this one decides where values come from, where output goes and
//! what the exit code is. It never writes into the project, and reads nothing there but what the user names and the
//! instruction files.

mod activity;
mod approve;
mod attach;
mod catalog;
mod cli;
mod clock;
mod commands;
mod config;
mod engine;
mod env;
mod exit;
mod home;
mod ledger;
mod logging;
mod output;
mod resolve;
mod server;
mod signals;
mod sys;
mod transcript;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command};
use crate::env::Env;
use crate::exit::Stop;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The reaper is this same program under a hidden name; it must not read the environment or parse anything.
    if args.get(1).is_some_and(|arg| arg == engine::REAPER) {
        hames_workspace::shell::run_reaper();
        return ExitCode::SUCCESS;
    }
    // Asked for by scripts all the time; worth not building the whole command line for.
    if args.len() == 2 && args.get(1).is_some_and(|arg| arg == "--version" || arg == "-V") {
        output::print_version();
        return ExitCode::SUCCESS;
    }
    match Cli::try_parse_from(&args) {
        Ok(cli) => ExitCode::from(dispatch(cli)),
        Err(error) => ExitCode::from(not_understood(&args, &error)),
    }
}

fn dispatch(cli: Cli) -> u8 {
    let env = Env::read();
    let Some(command) = cli.command else {
        return ended(commands::face::run(&cli.face, &env));
    };
    ended(match command {
        // These two end with their own events and exit codes.
        Command::Run(args) => return commands::run::run(args, &env),
        Command::Demo(args) => return commands::demo::run(&args, &env),
        Command::Sessions(args) => commands::sessions::run(args, &env),
        Command::Changes(args) => commands::changes::run(args, &env),
        Command::Db { what } => commands::db::run(what, &env),
        Command::Compact(args) => commands::compact::compact(&args, &env),
        Command::Context(args) => commands::compact::context(&args, &env),
        Command::Grants(args) => commands::grants::run(args, &env),
        Command::Models(args) => commands::models::run(&args, &env),
        Command::Providers { what } => commands::providers::run(what, &env),
        Command::Config { what } => commands::config::run(&what, &env),
        Command::Serve(args) => commands::serve::run(&args, &env),
        Command::Server { what } => commands::server::run(&what, &env),
        Command::Doctor { json } => commands::doctor::run(json, &env),
    })
}

/// The code of a command that has ended; what failed is said.
fn ended(ended: Result<u8, Stop>) -> u8 {
    match ended {
        Ok(code) => code,
        Err(stop) => {
            if let Stop::Failed(failure) = &stop {
                output::say_failure(failure);
            }
            stop.code()
        }
    }
}

/// Help and version go to standard output; everything else is a usage error, also as events where they were asked for.
fn not_understood(args: &[OsString], error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A reader that went away has seen enough of the help.
        let _ = error.print();
        return exit::COMPLETE;
    }
    let is_run = args.get(1).is_some_and(|arg| arg == "run" || arg == "demo");
    if is_run && args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json") {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or(&text).trim_start_matches("error: ").to_owned();
        output::json::print_failure(&Stop::usage(message));
    }
    let _ = error.print();
    exit::USAGE
}
