//! `xargs`: the command it runs has to be harmless with whatever more arguments.

use super::super::judge::{By, Judge, Judged};
use super::super::options::Options;
use super::super::value::{Arg, PathText, Value};
use super::Call;

const OPTIONS: Options = Options {
    allowed: "-0 --null -r --no-run-if-empty -x --exit -t --verbose -n: --max-args: -L: --max-lines: -P: --max-procs: -s: \
              --max-chars: -d: --delimiter: -a: --arg-file: -I:",
    refused: &[
        ("-p --interactive", "it asks on a terminal"),
        ("--process-slot-var", "it sets a variable for the command"),
        ("-i --replace -e --eof -l", "its value is optional, so what follows is read in two ways"),
    ],
    stop: true,
};

pub(in super::super) fn xargs(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let parsed = OPTIONS.parse(call.name, call.args)?;
    let inner = &call.args[parsed.used..];
    if inner.is_empty() {
        // It is echo that it runs then.
        return Ok(());
    }
    let mut mark = None;
    for (option, value) in &parsed.given {
        if *option == "-I" {
            let Some(value) = value.as_deref().filter(|value| !value.is_empty()) else {
                return Err(call.refusal("-I", "its mark is not known beforehand", "Use -I{}."));
            };
            mark = Some(value.to_owned());
        }
    }
    let mut args: Vec<Arg> = inner.to_vec();
    match mark {
        None => args.push(Arg::added(call.span.end)),
        Some(mark) => args.iter_mut().for_each(|arg| replace(arg, &mark, "", true)),
    }
    judge.run(&args, By::Program, &call.span)
}

/// What an argument is when something takes the place of a mark in it that begins like this and, without `single`, may
/// be many.
pub(super) fn replace(arg: &mut Arg, mark: &str, beginning: &str, single: bool) {
    let text = arg.value.beginning();
    if let Some(at) = text.find(mark) {
        let prefix = text[..at].to_owned() + beginning;
        let single = single && arg.value.is_single();
        arg.value = if prefix.is_empty() { Value::Any { single } } else { Value::Begins { prefix, single } };
        arg.whole = false;
    } else if arg.known().is_none() {
        // The mark may stand in the part that is not known; then it begins as before.
        arg.whole = false;
    }
    for path in &mut arg.paths {
        if let Some(at) = path.text.find(mark) {
            let text = path.text[..at].to_owned() + beginning;
            *path = PathText { text, home: path.home, open: true };
        }
    }
}
