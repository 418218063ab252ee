//! `find`: where it begins, then an expression of tests that only look, and commands that do with whatever it finds.

use std::slice::Iter;

use super::super::judge::{By, Judge, Judged};
use super::super::value::Arg;
use super::{Call, xargs};

/// What stands for a path in a command that find runs.
const MARK: &str = "{}";

/// Tests and options that take one argument.
const WITH_ARGUMENT: &str = "-name -iname -path -wholename -ipath -iwholename -regex -iregex -regextype -type -xtype -size \
    -mtime -ctime -atime -mmin -cmin -amin -newer -anewer -cnewer -perm -user -group -uid -gid -links -inum -samefile \
    -maxdepth -mindepth -fstype -lname -ilname -used -printf -context";

/// Those that take none.
const ALONE: &str = "( ) ! , -not -a -and -o -or -empty -readable -writable -executable -true -false -print -print0 -ls \
    -prune -quit -depth -d -mount -xdev -follow -daystart -nouser -nogroup -noleaf -ignore_readdir_race \
    -noignore_readdir_race -warn -nowarn";

/// Those that change something, and how.
const REFUSED: [(&str, &str); 10] = [
    ("-execdir", "it runs a command in another folder"),
    ("-ok", "it asks on a terminal"),
    ("-okdir", "it asks on a terminal"),
    ("-delete", "it deletes what it finds"),
    ("-fprint", "it writes into a file"),
    ("-fprint0", "it writes into a file"),
    ("-fprintf", "it writes into a file"),
    ("-fls", "it writes into a file"),
    ("-files0-from", "it takes its places from a file"),
    ("-D", "its output is not known"),
];

fn listed(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|listed| listed == word)
}

pub(in super::super) fn find(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let mut args = call.args;
    while let [first, rest @ ..] = args
        && matches!(first.known(), Some("-H" | "-L" | "-P" | "-O1" | "-O2" | "-O3"))
    {
        args = rest;
    }
    let places = args.iter().take_while(|arg| !begins_expression(arg)).count();
    let (places, args) = args.split_at(places);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(word) = arg.known() else {
            let why = "an argument that is not known beforehand could be an action like -delete";
            return Err(call.refusal(arg.value.beginning(), why, "Write it out, or put ./ before a place."));
        };
        if listed(ALONE, word) {
            continue;
        }
        if word == "-exec" {
            exec(judge, call, places, &mut args)?;
            continue;
        }
        if !listed(WITH_ARGUMENT, word) && !is_newer(word) {
            let known = REFUSED.iter().find(|(refused, _)| *refused == word);
            let why = known.map_or("it is not among the tests of find that are known to only look", |(_, why)| why);
            return Err(call.refusal(word, why, "List with find, or use Glob, and look at each file with Read."));
        }
        match args.next() {
            Some(argument) if argument.value.is_single() => {}
            _ => return Err(call.refusal(word, "its argument is not one word for certain", "Quote it.")),
        }
    }
    Ok(())
}

/// A command that runs for what is found: it has to be harmless with every path that begins like one of the places.
fn exec(judge: &mut Judge<'_>, call: &Call<'_>, places: &[Arg], args: &mut Iter<'_, Arg>) -> Judged {
    let mut command: Vec<Arg> = Vec::new();
    let many = loop {
        let Some(arg) = args.next() else {
            return Err(call.refusal("-exec", "its command does not end with ; or +", "End it with {} + or \\;."));
        };
        match arg.known() {
            Some(";") => break false,
            Some("+") if command.last().is_some_and(|last| last.known() == Some(MARK)) => break true,
            Some("+") => return Err(call.refusal("+", "only {} may stand before it", "Write {} +.")),
            Some(_) => {}
            // It might end the command, and what follows would be read as something else.
            None if matches!(arg.value.beginning().as_bytes(), [] | [b';' | b'+', ..]) => {
                let why = "an argument that is not known beforehand could be the end of its command";
                return Err(call.refusal(arg.value.beginning(), why, "Write it out."));
            }
            None => {}
        }
        command.push(arg.clone());
    };
    let default = [String::from(".")];
    let places: Vec<String> = places.iter().map(|place| place.value.beginning().to_owned()).collect();
    for place in if places.is_empty() { &default[..] } else { &places } {
        let mut args = command.clone();
        args.iter_mut().for_each(|arg| xargs::replace(arg, MARK, place, !many));
        judge.run(&args, By::Program, &call.span)?;
    }
    Ok(())
}

/// Whether an argument could be more than a place to begin at.
fn begins_expression(arg: &Arg) -> bool {
    match arg.value.beginning() {
        "" => true,
        text => text.starts_with(['-', '(', ')', '!', ',']),
    }
}

/// `-newerXY`.
fn is_newer(word: &str) -> bool {
    word.strip_prefix("-newer")
        .is_some_and(|kinds| matches!(kinds.as_bytes(), [b'a' | b'B' | b'c' | b'm', b'a' | b'B' | b'c' | b'm' | b't']))
}
