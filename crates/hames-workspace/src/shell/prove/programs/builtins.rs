//! Parts of the shell itself: `cd`, `read`, `printf` and what they may be given.

use super::super::judge::{By, Judge, Judged};
use super::super::options::Options;
use super::super::value::{PathText, Value};
use super::{Call, assign};

/// `cd FOLDER`.
pub(in super::super) fn cd(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let home = [PathText { text: String::new(), home: true, open: false }];
    let target = match call.args {
        [] => return judge.change_folder(&home, &call.span),
        [only] => only,
        [dashes, only] if dashes.known() == Some("--") => only,
        _ => return Err(call.refusal("", "only cd with one folder is followed", "Use cd FOLDER.")),
    };
    if target.value.may_be_option()
        || !target.value.is_single()
        || target.known() == Some("-")
        || target.known() == Some("")
    {
        return Err(call.refusal("", "where it leads is not known beforehand", "Use cd with a plain path."));
    }
    judge.change_folder(&target.paths, &call.span)
}

/// `read NAME…` gives variables what may be anything; the names have to be plain.
pub(in super::super) fn read(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let options = Options { allowed: "-r -s -d: -n: -N: -t:", refused: &[], stop: false };
    let parsed = options.parse(call.name, call.args)?;
    match parsed.operands.iter().find(|name| !name.known().is_some_and(assign::is_plain)) {
        None => Ok(()),
        Some(name) => Err(call.refusal(
            name.value.beginning(),
            "it may set a variable that means something to the shell or to programs",
            "Read into plain names in lower case.",
        )),
    }
}

/// `printf FORMAT…`: the format must be known, and must not assign.
pub(in super::super) fn printf(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let args = match call.args {
        [dashes, rest @ ..] if dashes.known() == Some("--") => rest,
        [first, ..] if first.value.may_be_option() => {
            let why = "-v sets a variable, and an option cannot be told from a format here";
            return Err(call.refusal(first.value.beginning(), why, "Begin with a format: printf '%s\\n' …."));
        }
        args => args,
    };
    match args.first().map(|format| &format.value) {
        None => Ok(()),
        Some(Value::Known(format)) if !assigns(format) => Ok(()),
        Some(Value::Known(_)) => Err(call.refusal("", "%n sets a variable", "Use other formats.")),
        Some(_) => Err(call.refusal("", "its format is not known beforehand", "Use printf '%s' \"…\".")),
    }
}

/// Whether a format has a conversion that stores a number, or one that is not known.
fn assigns(format: &str) -> bool {
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        if rest.starts_with('(') || rest.contains('(') && rest.find('(') < rest.find('%') {
            rest = rest.split_once(')').map_or("", |(_, after)| after);
        }
        let modifiers = |c: char| c.is_ascii_digit() || " #+-'.*hjlLqtz".contains(c) && c != 'q';
        let conversion = rest.trim_start_matches(modifiers).chars().next();
        if !conversion.is_some_and(|c| "diouxXeEfFgGaAcsbqQT".contains(c)) {
            return conversion.is_some();
        }
    }
    false
}

/// `set` with what only makes errors end a line.
pub(in super::super) fn set(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    const ALLOWED: [&str; 11] = ["-e", "-u", "+e", "+u", "-eu", "-ue", "-euo", "-eo", "-uo", "-o", "pipefail"];
    let is_allowed = |word: &str| ALLOWED.contains(&word);
    // `-o` without a name prints, and anything else changes what the rest of the line means.
    let last = call.args.last().and_then(|last| last.known());
    let is_complete = last.is_some_and(|last| !last.ends_with('o') && is_allowed(last));
    match is_complete && call.args.iter().all(|arg| arg.known().is_some_and(is_allowed)) {
        true => Ok(()),
        false => Err(call.refusal(
            "",
            "it changes what the rest of the line means",
            "Use set -euo pipefail, or leave it out.",
        )),
    }
}

/// `command NAME…` runs a program; with `-v` and `-V` it says where one is.
pub(in super::super) fn command(judge: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let options = Options { allowed: "-p -v -V", refused: &[], stop: true };
    let parsed = options.parse(call.name, call.args)?;
    match parsed.has(&["-v", "-V"]) || parsed.used == call.args.len() {
        true => Ok(()),
        false => judge.run(&call.args[parsed.used..], By::Shell, &call.span),
    }
}

#[cfg(test)]
mod tests {
    use super::assigns;

    #[test]
    fn a_format_that_stores_is_found() {
        for format in
            ["%s\\n", "%5d|%-10s|%x", "100%%\\n", "%b%q", "%.2f", "%*d", "", "plain", "%", "%(%Y)T", "%'d", "%5.1f%%"]
        {
            assert!(!assigns(format), "{format}");
        }
        for format in ["%n", "%5n", "%s%n", "%ln", "%-n", "%%%n", "%.3n", "%hhn", "%k", "%hn %s", "%*n", "x%ny"] {
            assert!(assigns(format), "{format}");
        }
    }
}
