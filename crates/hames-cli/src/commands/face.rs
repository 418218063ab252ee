//! `hames` alone: the face on this terminal, or in lines where there is none that can show it.

use std::io::IsTerminal;
use std::path::PathBuf;

use hames_protocol::RunId;
use hames_protocol::api::{RunAnswers, RunTerms};
use hames_tui::{Ending, Keymap, Options, Start, Terminal};

use crate::cli::FaceArgs;
use crate::config::Config;
use crate::env::Env;
use crate::exit::{self, Stop};
use crate::home::Home;
use crate::server::{finder, quiet_starter};

/// 128 and the number, as shells say a signal.
const SIGNAL: i32 = 128;

pub(crate) fn run(args: &FaceArgs, env: &Env) -> Result<u8, Stop> {
    let home = Home::find(env)?;
    let folder = super::folder(args.dir.as_deref())?;
    let config = Config::load(&home, env)?;
    let keys = config.file.keys.iter().map(|(key, action)| (key.as_str(), action.as_str()));
    let keys = Keymap::with(keys).map_err(|e| Stop::configuration(e.to_string()))?;
    let is_plain = args.plain || !can_show(env);
    let options = Options {
        finder: finder(&home).starting(quiet_starter()),
        folder,
        home: env.get_os("HOME").map(PathBuf::from),
        keys,
        terminal: terminal(env),
        editor: env.get("VISUAL").or_else(|| env.get("EDITOR")).map(str::to_owned),
        start: Start {
            session: args.session.clone(),
            last: args.continue_last,
            seed: RunId::generate().to_string(),
            terms: Some(RunTerms {
                answers: (is_plain && !std::io::stdin().is_terminal()).then_some(RunAnswers::Nobody),
                environment: Some(env.without(&config.key_vars()).into_iter().collect()),
            }),
        },
        written: Some(home.written()),
    };
    let runtime = super::runtime()?;
    let failed = |e: std::io::Error| Stop::storage(format!("the terminal cannot be used ({e}); try `hames --plain`"));
    let code = if is_plain {
        let ended = runtime.block_on(hames_tui::run_plain(options)).map_err(failed)?;
        if ended.lines == 0 && !args.plain {
            return Err(Stop::usage(
                "there is no terminal here and nothing on standard input; `hames run \"TASK\"` does one task, `hames --plain` talks in lines",
            ));
        }
        if ended.is_well { exit::COMPLETE } else { exit::MODEL }
    } else {
        match runtime.block_on(hames_tui::run(options)).map_err(failed)? {
            Ending::Left => exit::COMPLETE,
            Ending::TerminalGone => exit::STOPPED,
            Ending::Signal(number) => u8::try_from(SIGNAL + number).unwrap_or(exit::STOPPED),
        }
    };
    // A request that is still on its way is the server's by now, or was never sent.
    runtime.shutdown_background();
    Ok(code)
}

/// Whether there is a terminal that can show a screen.
fn can_show(env: &Env) -> bool {
    let is_able = env.get("TERM").is_some_and(|term| term != "dumb");
    is_able && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

fn terminal(env: &Env) -> Terminal {
    let text = |name| env.get(name).unwrap_or_default().to_owned();
    Terminal {
        term: text("TERM"),
        color_term: text("COLORTERM"),
        color_fgbg: text("COLORFGBG"),
        no_color: env.get("NO_COLOR").is_some(),
    }
}
