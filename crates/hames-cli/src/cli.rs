//! The command line. What a flag means is in its help text; what it does is in `commands`.

mod sessions;
mod settings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use hames_protocol::Delivery;

pub(crate) use self::sessions::{SessionsArgs, SessionsCommand, SetArgs};
pub(crate) use self::settings::{SettingsArgs, WindowArgs};

use crate::config::{Approve, IdleExit};

/// A coding agent for any Chat Completions endpoint.
#[derive(Debug, Parser)]
#[command(name = "hames", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Without a command it opens on the current folder; sessions go on when it is closed.

First steps: `hames demo` plays a run without a model; `hames doctor` says what is missing.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) face: FaceArgs,
}

/// `hames` alone.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FaceArgs {
    /// Open this session of the folder; a name that does not exist is made with the first message
    #[arg(short, long, value_name = "NAME|ID", conflicts_with = "continue_last")]
    pub(crate) session: Option<String>,

    /// Open the folder's last session
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,

    /// The folder to work in, instead of the current one
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Lines instead of a screen: for screen readers and pipes
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the agent a task and watch it work
    Run(RunArgs),
    /// List, show, search, rename, move, branch, cut, delete, export and import sessions
    Sessions(SessionsArgs),
    /// List, show, apply and discard what was proposed in Analyze
    Changes(ChangesArgs),
    /// Make a session's window smaller now, or show what that would do
    Compact(CompactArgs),
    /// Show what a session's next request carries, and what was left out of it
    Context(ContextArgs),
    /// List what was allowed for a folder, and take it back
    Grants(GrantsArgs),
    /// List the models of every configured provider
    Models(ModelsArgs),
    /// List, add, edit, remove, test, export and import providers
    Providers {
        #[command(subcommand)]
        what: ProvidersCommand,
    },
    /// Show where the configuration is and what is in force
    Config {
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Show what the database of sessions takes, and make it smaller
    Db {
        #[command(subcommand)]
        what: DbCommand,
    },
    /// Start the local server, which keeps sessions running while no client is there
    Serve(ServeArgs),
    /// Show, stop and restart the local server, and read its log
    Server {
        #[command(subcommand)]
        what: ServerCommand,
    },
    /// Check what Hames needs and say how to mend what is missing
    Doctor {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Play a scripted run in a scratch folder: no model, no network
    Demo(DemoArgs),
}

/// `hames run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Exit codes: 0 complete, 1 model or provider failure, 2 usage or configuration, 3 stopped short,
4 storage, 130 interrupted.

Examples:
  hames run --mode build \"make the failing test pass\"
  git diff | hames run -                   # the prompt from standard input
  hames run -c \"now add a test for it\"     # go on with this folder's last session")]
pub(crate) struct RunArgs {
    /// What to do; `-` reads it from standard input
    pub(crate) prompt: Option<String>,

    /// Where a call needs a decision: `ask` here, `allow` it, `deny` it; rules that deny stay [default: ask]
    #[arg(long, value_name = "ask|allow|deny")]
    pub(crate) approve: Option<Approve>,

    /// The folder to work in, instead of the current one
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Print every event as one JSON line
    #[arg(long)]
    pub(crate) json: bool,

    /// With --json: leave out live pieces, print only what is in the log
    #[arg(long)]
    pub(crate) no_deltas: bool,

    /// Go on with this session of the folder; a name that does not exist makes a new one
    #[arg(short, long, value_name = "NAME|ID", conflicts_with = "continue_last")]
    pub(crate) session: Option<String>,

    /// Go on with the folder's last session
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,

    /// Where the local server has the session and a run goes on: `queue` waits for its end, `steer` joins it between two
    /// steps, `interrupt` at once [default: queue]
    #[arg(long, value_name = "queue|steer|interrupt")]
    pub(crate) delivery: Option<Delivery>,

    /// Files to give along, 10 at most: text (256 KB each, 512 KB in all) and images (png, jpeg, gif, webp; 8 MB each,
    /// 12 MB in all). Of others only the name goes along
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) attach: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// `hames compact`.
#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Its name or id
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    /// The folder whose session is meant, instead of the current one
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Show what would be done, and do nothing; with flags of the window, what would be done with those
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) window: WindowArgs,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// `hames context`.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// Its name or id
    #[arg(value_name = "NAME|ID")]
    pub(crate) session: String,

    /// Keep a text in the window whatever leaves it
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["pin_event", "unpin"])]
    pub(crate) pin: Option<String>,

    /// The same for a message, an answer or a result, by the number of its event
    #[arg(long, value_name = "EVENT", conflicts_with = "unpin")]
    pub(crate) pin_event: Option<u64>,

    /// Take a pin away, by its number
    #[arg(long, value_name = "PIN")]
    pub(crate) unpin: Option<u64>,

    /// The folder whose session is meant, instead of the current one
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// `hames models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Only models whose name contains this
    #[arg(value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,

    /// Ask every provider and models.dev again, however fresh the lists are
    #[arg(long)]
    pub(crate) refresh: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Show what is kept and what it takes
    Stats {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Give back what is not needed any more; refused while anything runs
    Vacuum {
        /// Print what was done as JSON
        #[arg(long)]
        json: bool,
    },
}

/// `hames changes`.
#[derive(Debug, Args)]
#[command(after_help = "\
A PATH is a file, or a folder with all below it, from the session's folder.
Applying a part brings along what it needs; discarding one takes along what cannot stay without it.

Exit codes: 0 done, 2 usage, 3 refused because files have changed since, 4 storage.")]
pub(crate) struct ChangesArgs {
    /// The folder whose session is meant, instead of the current one
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) dir: Option<PathBuf>,

    /// The session; without it the folder's newest that has proposals
    #[arg(short, long, value_name = "NAME|ID", global = true)]
    pub(crate) session: Option<String>,

    /// One JSON object per change
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) what: ChangesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChangesCommand {
    /// List the proposed changes
    List {
        /// Only these
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Show them as diffs against the disk
    Show {
        /// Only these
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Make them, all or none; refused where a file has changed since
    Apply {
        /// Only these
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Drop them
    Discard {
        /// Only these
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
}

/// `hames grants`.
#[derive(Debug, Args)]
pub(crate) struct GrantsArgs {
    /// The folder whose grants are meant, instead of the current one
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) dir: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) what: GrantsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// List what is allowed in this folder from run to run, numbered
    List {
        /// Of every folder
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Take grants of this folder back
    Remove {
        /// Their numbers, as `list` shows them
        #[arg(value_name = "NUMBER", required_unless_present = "all")]
        numbers: Vec<usize>,
        /// All of them
        #[arg(long, conflicts_with = "numbers")]
        all: bool,
        /// Print what was taken back as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProvidersCommand {
    /// List the providers of the configuration and the environment
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Add a provider to the configuration; asks for what no flag says
    Add {
        /// Its name: a well-known one (openai, ollama, …), or one of your own
        name: Option<String>,
        #[command(flatten)]
        set: ProviderFlags,
    },
    /// Change a provider of the configuration
    Edit {
        /// Its name
        name: String,
        #[command(flatten)]
        set: ProviderFlags,
        /// Remove this key of it
        #[arg(long, value_name = "KEY")]
        unset: Vec<String>,
    },
    /// Remove a provider from the configuration, its key included
    Remove {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Check a provider step by step, down to a one-token answer
    Test {
        /// Its name
        name: String,
        /// The model to ask, instead of its default
        model: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write providers as JSON, without keys unless they are asked for
    Export {
        /// Only these
        names: Vec<String>,
        /// Write keys too: whoever has the file can use them
        #[arg(long)]
        with_keys: bool,
        /// The file to write; `-` is standard output
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
    /// Take providers from a file that export wrote, or from any configuration
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        /// Replace providers that are there already; the key stays where none comes along
        #[arg(long, conflicts_with = "keep")]
        replace: bool,
        /// Leave providers as they are that are there already
        #[arg(long)]
        keep: bool,
    },
}

/// What `hames providers add` and `edit` set.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ProviderFlags {
    /// Where it is, with or without /v1
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The environment variable its key is taken from
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_stdin")]
    pub(crate) key_env: Option<String>,
    /// Read its key from standard input; never an argument, which every process can see
    #[arg(long)]
    pub(crate) key_stdin: bool,
    /// How it is told to think
    #[arg(long, value_name = "bool|effort|reasoning|type")]
    pub(crate) thinking: Option<String>,
    /// The header it wants the session's id in
    #[arg(long, value_name = "HEADER")]
    pub(crate) session_header: Option<String>,
    /// Tokens one answer may have
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Make this model of it the default one
    #[arg(long, value_name = "MODEL")]
    pub(crate) default: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the path of the configuration file
    Path,
    /// Print what is in force and where each value comes from; keys are masked
    Show {
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// `hames serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
There is one server for a home; where one runs already, this says so and is content. It takes the environment of whoever
starts it: keys in variables, PATH, proxies. A run's commands get the environment of whoever sends its message.")]
pub(crate) struct ServeArgs {
    /// Listen on this loopback address too; clients there need the token
    #[arg(long, value_name = "127.0.0.1:PORT")]
    pub(crate) listen: Option<Loopback>,

    /// End after so long without client and run [default: 1800, or what the configuration says]
    #[arg(long, value_name = "SECONDS|never")]
    pub(crate) idle_exit: Option<IdleExit>,

    /// Stay in the foreground, at this terminal
    #[arg(long)]
    pub(crate) foreground: bool,
}

/// An address that only this machine reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loopback(pub(crate) SocketAddr);

impl FromStr for Loopback {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A port alone is at the usual address.
        let text = if text.bytes().all(|b| b.is_ascii_digit()) { format!("127.0.0.1:{text}") } else { text.to_owned() };
        match text.replace("localhost:", "127.0.0.1:").parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Loopback(address)),
            Ok(_) => Err("it is not a loopback address; the server is reached from this machine only".into()),
            Err(_) => Err("it is an address and a port: 127.0.0.1:7432; port 0 takes a free one".into()),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Show whether a server runs, and what goes on in it
    Status {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Stop the server; refused while runs go on
    Stop {
        /// End runs that go on
        #[arg(long, conflicts_with = "when_idle")]
        now: bool,
        /// Wait until no run goes on
        #[arg(long)]
        when_idle: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Stop the server once no run goes on, and start it again as it was started
    Restart {
        /// End runs that go on
        #[arg(long)]
        now: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the end of the log
    Logs {
        /// Lines at most
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        lines: usize,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

/// `hames demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print every event as one JSON line
    #[arg(long)]
    pub(crate) json: bool,
}
