//! `git`: which subcommands and options only read.
//!
//! A repository can name programs of its own (filters, text converters, external diffs, a monitor of the files), and git
//! runs them for commands that only look. Some are switched off by options that have to be put into the line; where, is
//! noted here. The others are switched off by how a proven line is run.

use super::super::judge::{Judge, Judged};
use super::super::readers::{self, GitOperands};
use super::super::value::{Arg, PathText};
use super::Call;

/// Options of git itself that are allowed.
const ALONE: [&str; 7] = [
    "--no-pager",
    "-P",
    "--no-optional-locks",
    "--literal-pathspecs",
    "--no-replace-objects",
    "--icase-pathspecs",
    "--no-advice",
];

/// Options of git itself that are refused, and why.
const REFUSED: [(&str, &str); 11] = [
    ("-c", "it sets what programs git runs"),
    ("--config-env", "it sets what programs git runs"),
    ("--exec-path", "it says where git's programs are"),
    ("--git-dir", "it takes another repository"),
    ("--work-tree", "it takes another folder"),
    ("--namespace", "it takes another repository"),
    ("--super-prefix", "it is for git itself"),
    ("--bare", "it takes another repository"),
    ("--attr-source", "it says which programs git runs for files"),
    ("-p", "it starts a pager"),
    ("--paginate", "it starts a pager"),
];

pub(in super::super) fn git(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let mut below = vec![PathText { text: String::new(), home: false, open: false }];
    let mut args = call.args;
    let mut moved = false;
    let subcommand = loop {
        let Some((first, rest)) = args.split_first() else {
            return Ok(());
        };
        args = rest;
        match first.known() {
            None => return Err(call.refusal("", "its subcommand is not known beforehand", "Write it out.")),
            Some("--version" | "-v" | "--help" | "-h") if rest.is_empty() => return Ok(()),
            Some(option) if ALONE.contains(&option) => {}
            Some("-C") => {
                let Some((folder, rest)) = rest.split_first().filter(|(folder, _)| !moved && is_folder(folder)) else {
                    return Err(call.refusal(
                        "-C",
                        "where it leads is not known beforehand",
                        "Use one -C with a plain path.",
                    ));
                };
                below.clone_from(&folder.paths);
                moved = true;
                args = rest;
            }
            Some(option) if option.starts_with('-') => {
                let name = option.split('=').next().unwrap_or(option);
                let known = REFUSED.iter().find(|(refused, _)| refused.starts_with(name) && name.len() > 1);
                let why =
                    known.map_or("it is not among the options of git that are known to only read", |(_, why)| why);
                return Err(call.refusal(option, why, "Leave it out."));
            }
            Some(_) => break first,
        }
    };
    let name = subcommand.known().unwrap_or_default();
    let inner = args.first().and_then(Arg::known);
    let two_words = inner.and_then(|inner| readers::git_row(name, Some(inner)));
    let (row, last, args) = match (two_words, readers::git_row(name, None)) {
        (Some(row), _) => (row, &args[0], &args[1..]),
        (None, Some(row)) => (row, subcommand, args),
        (None, None) => {
            let part = match inner.filter(|_| readers::has_git_parts(name)) {
                Some(inner) => format!("{name} {inner}"),
                None => name.to_owned(),
            };
            let why = "this is not among the subcommands of git that are known to only read";
            return Err(call.refusal(&part, why, "Look with git status, log, show or diff; run others in Build mode."));
        }
    };
    let shown = format!("git {}", row.name);
    let parsed = row.options.parse(&shown, args)?;
    let operands = parsed.operands.len();
    let many = parsed.operands.iter().any(|operand| !operand.value.is_single());
    let (fits, why) = match row.operands {
        GitOperands::Any => (true, ""),
        GitOperands::AtMost(most) => (operands <= most && !many, "with more operands it changes something"),
        GitOperands::Exactly(count) => (operands == count && !many, "with these operands it changes something"),
        GitOperands::With(options) => (operands == 0 || parsed.has(options), "with an operand it makes something new"),
        GitOperands::Setting(options) => {
            let is_setting = |arg: &&Arg| arg.known().is_some_and(|name| name.contains('.'));
            let asks = operands == 1 && parsed.operands.iter().all(is_setting);
            (asks || parsed.has(options), "without --get or --list it can change a setting")
        }
    };
    if !fits {
        return Err(call.refusal(row.name, why, "Leave the operand out, or say --list."));
    }
    if !call.program.whole || !subcommand.whole || !last.whole {
        return Err(call.refusal(row.name, "it is not written out", "Write git and its subcommand out."));
    }
    let insert = match row.insert {
        // Its own default goes away with the first option.
        "--stat --no-ext-diff --no-textconv" if !parsed.given.is_empty() => "--no-ext-diff --no-textconv",
        insert => insert,
    };
    judge.git(&below, call.program.span.end, (!insert.is_empty()).then_some((last.span.end, insert)));
    Ok(())
}

/// Whether `-C` can be followed there.
fn is_folder(folder: &Arg) -> bool {
    let is_known = folder.paths.iter().all(|path| !path.open) && folder.paths.len() <= 4;
    is_known && folder.value.is_single() && !folder.value.may_be_option() && folder.known() != Some("")
}
