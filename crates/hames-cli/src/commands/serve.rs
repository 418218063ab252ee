//! `hames serve`: starts the local server, in the background where nothing else is said.

use crate::cli::ServeArgs;
use crate::config::Live;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::output::{Out, say};
use crate::server::{self, Detached, Lived, Note, Options, Report, Up};

pub(crate) fn run(args: &ServeArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let options = Options { listen: args.listen.map(|loopback| loopback.0), idle_exit: args.idle_exit };
    let live = Live::new(home.clone(), env.clone());
    if args.foreground {
        if let Lived::Another(note) = server::live(live, &options, |up| say(&answers(up, std::process::id())))? {
            say(&another(&note));
        }
        return Ok(exit::COMPLETE);
    }
    match server::detach(&home.logs())? {
        Detached::Starter(Report::Ready(said)) => {
            let mut out = Out::new();
            out.line(said)?;
            out.finish()?;
            Ok(exit::COMPLETE)
        }
        Detached::Starter(Report::Failed(stop)) => Err(stop),
        Detached::Server(teller) => {
            let mut teller = Some(teller);
            let mut tell = |report: Report| {
                if let Some(teller) = teller.take() {
                    teller.tell(&report);
                }
            };
            let code = match server::live(live, &options, |up| tell(Report::Ready(answers(up, std::process::id())))) {
                Ok(Lived::Ended) => exit::COMPLETE,
                Ok(Lived::Another(note)) => {
                    tell(Report::Ready(another(&note)));
                    exit::COMPLETE
                }
                Err(stop) => {
                    let code = stop.code();
                    if let Stop::Failed(failure) = &stop {
                        tracing::error!(target: "hames::server", message = %failure.message, "cannot run");
                    }
                    tell(Report::Failed(stop));
                    code
                }
            };
            Ok(code)
        }
    }
}

fn answers(up: &Up, pid: u32) -> String {
    let listen = up.listen.as_ref().map(|address| format!(" and at http://{address}")).unwrap_or_default();
    format!("the server answers at {}{listen} (process {pid})", up.socket)
}

fn another(note: &Note) -> String {
    format!("a server of this home runs already (process {}, Hames {})", note.pid, note.version)
}
