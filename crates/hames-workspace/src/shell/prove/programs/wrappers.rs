//! Programs that run another program: their own options first, then whatever they run.

use super::super::judge::{By, Judge, Judged};
use super::super::options::Options;
use super::super::readers::Wrapper;
use super::{Call, assign};

/// Any wrapper that is described by its options and how many operands come before the command.
pub(in super::super) fn wrapper(judge: &mut Judge<'_>, call: &Call<'_>, wrapper: &Wrapper) -> Judged {
    let options = Options { stop: true, ..wrapper.options };
    let parsed = options.parse(call.name, call.args)?;
    let inner = &call.args[parsed.used..];
    let (own, inner) = inner.split_at(wrapper.operands.min(inner.len()));
    if own.iter().any(|operand| operand.known().is_none()) {
        return Err(call.refusal("", "an argument before its command is not known beforehand", "Write it out."));
    }
    judge.run(inner, if wrapper.in_shell { By::Shell } else { By::Program }, &call.span)
}

/// `env`: prints the environment, or runs a command with variables.
pub(in super::super) fn env(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    const REFUSED: &[(&str, &str)] = &[
        ("-i --ignore-environment -", "without its environment a command finds other programs and git runs helpers"),
        ("-u --unset", "without its environment a command finds other programs and git runs helpers"),
        ("-C --chdir", "where it leads is not followed"),
        ("-S --split-string", "it makes a command out of a text"),
    ];
    let options = Options { allowed: "-0 --null", refused: REFUSED, stop: true };
    let parsed = options.parse(call.name, call.args)?;
    let mut inner = &call.args[parsed.used..];
    while let [first, rest @ ..] = inner {
        let Some((name, value)) = first.known().and_then(|word| word.split_once('=')) else {
            break;
        };
        if !assign::is_harmless(name, value) {
            let why = format!("{name} can change what a program does or which one is run");
            return Err(call.refusal(name, why, "Leave it out; LC_ALL, LANG, TZ, COLUMNS and NO_COLOR can be set."));
        }
        inner = rest;
    }
    match inner {
        [] => Ok(()),
        [dash, ..] if dash.known() == Some("-") => {
            Err(call.refusal("-", "without its environment a command finds other programs", "Leave the - out."))
        }
        _ => judge.run(inner, By::Program, &call.span),
    }
}
