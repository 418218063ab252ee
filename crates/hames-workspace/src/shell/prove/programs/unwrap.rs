//! The commands inside a command, for rules that name programs: `env rm x` runs `rm`.
//!
//! This only makes more commands known. It proves nothing, and what it misses is still there as the outer command.

use super::super::parse;
use super::super::syntax::{Kind, Word};

/// Commands within commands that are looked for at most.
const DEPTH_LIMIT: usize = 4;

/// Programs that run another one: the options that take the next word, and how many operands come before the command.
const WRAPPERS: [(&str, &[&str], usize); 17] = [
    ("env", &["-u", "-C", "--unset", "--chdir"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "-t", "--class", "--classdata"], 0),
    ("timeout", &["-k", "-s", "--kill-after", "--signal"], 1),
    ("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    ("xargs", &["-I", "-n", "-L", "-P", "-s", "-d", "-a", "-E"], 0),
    ("sudo", &["-u", "-g", "-C", "-D", "-h", "-p", "-U", "-T", "-R"], 0),
    ("doas", &["-u", "-C"], 0),
    ("command", &[], 0),
    ("builtin", &[], 0),
    ("exec", &["-a"], 0),
    ("time", &["-f", "-o", "--format", "--output"], 0),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("chroot", &["--userspec", "--groups"], 1),
    ("strace", &["-e", "-o", "-p", "-s", "-u", "-E", "-P"], 0),
    ("busybox", &[], 0),
];

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Adds a command and those inside it.
pub(in super::super) fn unwrapped(words: &[String], commands: &mut Vec<Vec<String>>) {
    add(words, DEPTH_LIMIT, commands);
}

fn add(words: &[String], depth: usize, commands: &mut Vec<Vec<String>>) {
    let Some(first) = words.first() else {
        return;
    };
    commands.push(words.to_vec());
    if depth == 0 {
        return;
    }
    let name = first.rsplit('/').next().unwrap_or(first);
    if let Some((_, valued, operands)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) {
        add(behind(&words[1..], valued, *operands), depth - 1, commands);
    } else if SHELLS.contains(&name)
        && let Some(at) =
            words.iter().position(|word| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'))
        && let Some(list) = words.get(at + 1).and_then(|line| parse::read(line).ok().map(|list| (line, list)))
    {
        let (line, list) = list;
        list.each(&mut |command| {
            if let Kind::Simple(simple) = &command.kind {
                let text = |word: &Word| word.literal().unwrap_or_else(|| line[word.span.clone()].to_owned());
                add(&simple.words.iter().map(text).collect::<Vec<_>>(), depth - 1, commands);
            }
        });
    } else if name == "find" {
        for (at, _) in
            words.iter().enumerate().filter(|(_, word)| ["-exec", "-execdir", "-ok", "-okdir"].contains(&word.as_str()))
        {
            let inner = &words[at + 1..];
            let end = inner.iter().position(|word| word == ";" || word == "+").unwrap_or(inner.len());
            add(&inner[..end], depth - 1, commands);
        }
    }
}

/// What stands behind a wrapper's own options, assignments and operands.
fn behind<'a>(words: &'a [String], valued: &[&str], operands: usize) -> &'a [String] {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word == "--" {
            at += 1;
            break;
        }
        let assigns =
            word.split_once('=').is_some_and(|(name, _)| parse::name_length(name) == name.len() && !name.is_empty());
        match word.starts_with('-') {
            true => at += 1 + usize::from(valued.contains(&word.as_str())),
            false if assigns => at += 1,
            false => break,
        }
    }
    words.get(at + operands..).unwrap_or_default()
}
