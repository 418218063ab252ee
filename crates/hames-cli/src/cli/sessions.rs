//! `hames sessions` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SettingsArgs;

/// `hames sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// The folder whose sessions are meant, instead of the current one
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) dir: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) what: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List this folder's sessions, newest first
    List {
        /// Of every folder
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print a session as a readable transcript
    Show {
        /// Its name or id
        #[arg(value_name = "NAME|ID")]
        session: String,
        /// Print the log itself, one event a line
        #[arg(long)]
        json: bool,
        /// Print each run's ledger: calls, effects, files changed, usage, timings
        #[arg(long)]
        runs: bool,
    },
    /// Search what was said in this folder's sessions
    Search {
        /// Words that must all occur
        query: String,
        /// In every folder
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// Matches at most
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Give a session another name
    Rename {
        /// Its name or id
        #[arg(value_name = "NAME|ID")]
        session: String,
        /// The new name
        name: String,
        /// Print the session as JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the settings of a session, or show them: model, mode, sampling, window, compaction, loop guard
    #[command(after_help = "\
A run that goes on keeps the settings it began with. Names for --unset are those that --json prints; `guard` is all
of the guard, `guard.max_nudges` one number of it.

Examples:
  hames sessions set parser                                  # show what is in force
  hames sessions set parser --context-window 32000 --compact-at 60
  hames sessions set parser --guard high --guard-set max_nudges=1
  hames sessions set parser --unset compaction.trigger")]
    Set(Box<SetArgs>),
    /// Delete a session for good
    Delete {
        /// Its name or id
        #[arg(value_name = "NAME|ID")]
        session: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
        /// Print what was deleted as JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy a session, or its beginning, into a new one
    Branch {
        /// Its name or id
        #[arg(value_name = "NAME|ID")]
        session: String,
        /// The new session's name; without it the same with a number
        #[arg(long)]
        name: Option<String>,
        /// The number of the last event that is copied; everything without it
        #[arg(long, value_name = "EVENT")]
        at: Option<u64>,
        /// Print the new session as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove one of your messages and everything behind it, for good
    #[command(after_help = "`hames sessions search` shows the number of each message. Branch first to keep the tail.")]
    Cut {
        /// Its name or id
        #[arg(value_name = "NAME|ID")]
        session: String,
        /// The number of the message
        #[arg(long, value_name = "EVENT")]
        from: u64,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
        /// Print what was removed as JSON
        #[arg(long)]
        json: bool,
    },
    /// Let a session belong to another folder
    Move {
        /// Its name or id
        #[arg(value_name = "NAME|ID")]
        session: String,
        /// The folder, which must exist
        folder: PathBuf,
        /// Print the session as JSON
        #[arg(long)]
        json: bool,
    },
    /// Read a session that export wrote into this folder
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        /// Its name here; without it the one it had
        #[arg(long)]
        name: Option<String>,
        /// Print the session as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a session's log, one event a line, then the outputs it names
    Export {
        /// Its name or id
        #[arg(value_name = "NAME|ID")]
        session: String,
        /// The file to write; standard output without it
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Leave out large outputs and images; what names them stays
        #[arg(long)]
        no_blobs: bool,
        /// The log, one event a line: what export writes anyway
        #[arg(long)]
        json: bool,
    },
}

/// `hames sessions set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Its name or id
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Go back to what the configuration says
    #[arg(long, value_name = "NAME")]
    pub(crate) unset: Vec<String>,

    /// Print the settings as JSON: the session's own, and what is in force
    #[arg(long)]
    pub(crate) json: bool,
}
