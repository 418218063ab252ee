//! The commands of a line, for rules and grants that are about commands: `env rm x` runs `env rm x` and `rm x`.
//!
//! Here nothing is proven. It is the other way round: whatever could make a rule miss what runs, or a grant hold for
//! something else, has to show. So an assignment counts as a command, as does a redirection that writes (`>` and the
//! file), and where it cannot be told what runs there is a command without words. What a program starts by itself, from
//! a script, a makefile or a language of its own, is not seen.

use super::parse;
use super::syntax::{Assignment, Command, Kind, List, Operator, Span, Word};

/// Commands within commands that are looked for at most; what lies deeper is not known.
const DEPTH_LIMIT: usize = 4;

/// Programs that run another one: the options that take the next word, and how many operands come before the command.
const WRAPPERS: [(&str, &[&str], usize); 23] = [
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
    ("flock", &["-w", "-E"], 1),
    ("taskset", &[], 1),
    ("chrt", &[], 1),
    ("unshare", &[], 0),
    ("watch", &["-n", "--interval"], 0),
    ("toybox", &[], 0),
];

/// Programs whose words are a command line, or name a file that holds one.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Builtins that run text that is not in the line.
const RUN_FILES: [&str; 2] = ["source", "."];

/// The words of everything a line runs. Quotes are removed; a word that is expanded stays as it is written.
pub(super) fn commands(text: &str, list: &List) -> Vec<Vec<String>> {
    let mut found = Found::default();
    found.list(text, list, DEPTH_LIMIT);
    found.0
}

#[derive(Default)]
struct Found(Vec<Vec<String>>);

impl Found {
    fn list(&mut self, text: &str, list: &List, depth: usize) {
        list.each(&mut |command| self.command(text, command, depth));
    }

    fn command(&mut self, text: &str, command: &Command, depth: usize) {
        match &command.kind {
            Kind::Simple(simple) => {
                let words: Vec<String> = simple.words.iter().map(|word| shown(text, word)).collect();
                if !simple.assignments.is_empty() {
                    let assigned = simple.assignments.iter().map(|assignment| assigned(text, assignment));
                    self.0.push(assigned.chain(words.iter().cloned()).collect());
                }
                if !words.is_empty() {
                    self.add(&words, depth);
                }
            }
            // A variable that changes from round to round.
            Kind::For { name, .. } => self.0.push(vec![format!("{}=", part(text, name))]),
            _ => {}
        }
        for redirect in command.redirects.iter().filter(|redirect| redirect.operator == Operator::Write) {
            let target = shown(text, &redirect.target);
            if target != "/dev/null" {
                self.0.push(vec![">".into(), target]);
            }
        }
    }

    /// A command and those inside it.
    fn add(&mut self, words: &[String], depth: usize) {
        let Some(first) = words.first() else { return };
        self.0.push(words.to_vec());
        let name = first.rsplit('/').next().unwrap_or(first);
        let rest = &words[1..];
        if let Some((_, valued, operands)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) {
            if depth == 0 || has_split_string(name, rest) {
                return self.unknown();
            }
            for inner in behind(rest, valued, *operands) {
                self.add(inner, depth - 1);
            }
        } else if name == "eval" {
            self.line(&rest.join(" "), depth);
        } else if RUN_FILES.contains(&name) {
            self.unknown();
        } else if SHELLS.contains(&name) {
            self.shell(rest, depth);
        } else if name == "find" {
            let starts = ["-exec", "-execdir", "-ok", "-okdir"];
            for (at, _) in words.iter().enumerate().filter(|(_, word)| starts.contains(&word.as_str())) {
                let inner = &words[at + 1..];
                let end = inner.iter().position(|word| word == ";" || word == "+").unwrap_or(inner.len());
                match depth {
                    0 => self.unknown(),
                    _ => self.add(&inner[..end], depth - 1),
                }
            }
        }
    }

    /// A shell: the line behind `-c`, or a script, which is a program of its own; else what it reads is not known.
    fn shell(&mut self, words: &[String], depth: usize) {
        let (mut at, mut takes_line, mut reads_input) = (0, false, false);
        while let Some(word) = words.get(at).filter(|word| word.starts_with(['-', '+']) && word.len() > 1) {
            at += 1;
            if word == "--" {
                break;
            }
            let takes_value = match word.starts_with("--") {
                true => ["--rcfile", "--init-file"].contains(&word.as_str()),
                false => word.contains(['o', 'O']),
            };
            if word.starts_with('-') && !word.starts_with("--") {
                takes_line |= word.contains('c');
                reads_input |= word.contains('s');
            }
            at += usize::from(takes_value);
        }
        match words.get(at) {
            Some(line) if takes_line => self.line(line, depth),
            Some(script) if !reads_input && script != "-" => {}
            _ => self.unknown(),
        }
    }

    /// A line inside the line.
    fn line(&mut self, line: &str, depth: usize) {
        match parse::read(line) {
            Ok(list) if depth > 0 && !is_expanded(line) => self.list(line, &list, depth - 1),
            _ => self.unknown(),
        }
    }

    fn unknown(&mut self) {
        self.0.push(Vec::new());
    }
}

/// Whether a word that came from outside this line may not be the text that runs: the outer line expands it first.
fn is_expanded(line: &str) -> bool {
    line.contains(['$', '`'])
}

fn has_split_string(name: &str, words: &[String]) -> bool {
    let splits = |word: &String| {
        word.starts_with("--split") || (word.starts_with('-') && !word.starts_with("--") && word.contains('S'))
    };
    name == "env" && words.iter().take_while(|word| word.starts_with('-') || word.contains('=')).any(splits)
}

/// What stands behind a wrapper's own options, assignments and operands. Where an option that is not known may have
/// taken the next word, what stands behind that, too.
fn behind<'a>(words: &'a [String], valued: &[&str], operands: usize) -> Vec<&'a [String]> {
    let mut at = 0;
    let mut may_take_a_value = false;
    while let Some(word) = words.get(at) {
        if word == "--" {
            at += 1;
            may_take_a_value = false;
            break;
        }
        let assigns =
            word.split_once('=').is_some_and(|(name, _)| parse::name_length(name) == name.len() && !name.is_empty());
        match word.starts_with('-') {
            true => {
                let takes_value = valued.contains(&word.as_str());
                may_take_a_value = !takes_value && !word.contains('=');
                at += 1 + usize::from(takes_value);
            }
            false if assigns => at += 1,
            false => break,
        }
    }
    let from = |at: usize| words.get(at + operands..).unwrap_or_default();
    if may_take_a_value { vec![from(at), from(at + 1)] } else { vec![from(at)] }
}

fn part<'t>(text: &'t str, span: &Span) -> &'t str {
    text.get(span.clone()).unwrap_or_default()
}

fn shown(text: &str, word: &Word) -> String {
    word.literal().unwrap_or_else(|| part(text, &word.span).to_owned())
}

fn assigned(text: &str, assignment: &Assignment) -> String {
    format!("{}={}", part(text, &assignment.name), shown(text, &assignment.value))
}

#[cfg(test)]
mod tests {
    use super::super::prove;

    /// The commands of a line, words joined, `?` for one that is not known.
    fn commands(line: &str) -> Vec<String> {
        let joined = |words: Vec<String>| if words.is_empty() { "?".to_owned() } else { words.join(" ") };
        prove(line).commands.into_iter().map(joined).collect()
    }

    #[test]
    fn every_command_of_a_line_is_named() {
        for (line, expected) in [
            ("git log -1", &["git log -1"][..]),
            ("git log -1; touch a", &["git log -1", "touch a"]),
            ("git log -1 && touch b", &["git log -1", "touch b"]),
            ("git log -1 & touch c", &["git log -1", "touch c"]),
            ("git log -1\ntouch d", &["git log -1", "touch d"]),
            ("git log -1 || touch e", &["git log -1", "touch e"]),
            ("git log $(touch f)", &["git log $(touch f)", "touch f"]),
            ("git log `touch g`", &["git log `touch g`", "touch g"]),
            ("git log <(touch h)", &["git log <(touch h)", "touch h"]),
            ("git log | tee x", &["git log", "tee x"]),
            ("(git log; rm x)", &["git log", "rm x"]),
            ("if true; then rm x; fi", &["true", "rm x"]),
            ("echo \"$(rm \"$(ls)\")\"", &["echo \"$(rm \"$(ls)\")\"", "rm \"$(ls)\"", "ls"]),
            ("'gi't \"pu\"sh a\\ b", &["git push a b"]),
            ("f() { rm x; }; f", &["rm x", "f"]),
        ] {
            assert_eq!(commands(line), expected, "{line}");
        }
    }

    #[test]
    fn what_a_command_runs_is_named_too() {
        for (line, inner) in [
            ("env rm x", "rm x"),
            ("env -i A=b rm x", "rm x"),
            ("env -u HOME rm x", "rm x"),
            ("/usr/bin/env rm x", "rm x"),
            ("sudo -u root rm x", "rm x"),
            ("sudo --user root rm x", "rm x"),
            ("timeout -s KILL 5 rm x", "rm x"),
            ("timeout 5 nice -n 3 rm x", "rm x"),
            ("nohup setsid rm x", "rm x"),
            ("echo x | xargs -0 -n 1 rm", "rm"),
            ("find . -name x -exec rm {} ';'", "rm {}"),
            ("find . -exec ls {} + -exec rm {} +", "rm {}"),
            ("sh -c 'rm x'", "rm x"),
            ("bash -ec 'ls; rm x'", "rm x"),
            ("bash -e -c 'rm x' a b", "rm x"),
            ("sh -c \"env rm x\"", "rm x"),
            ("bash -euo pipefail -c 'rm x'", "rm x"),
            ("bash -c -o pipefail 'rm x'", "rm x"),
            ("bash --rcfile f -O extglob -c 'rm x'", "rm x"),
            ("bash -c -- 'rm x'", "rm x"),
            ("eval rm x", "rm x"),
            ("eval 'ls; rm x'", "rm x"),
            ("command rm x", "rm x"),
            ("flock /tmp/l rm x", "rm x"),
            ("busybox rm x", "rm x"),
        ] {
            let found = commands(line);
            assert!(found.iter().any(|command| command == inner), "{line} {found:?}");
        }
    }

    #[test]
    fn what_is_not_known_shows_as_such() {
        for line in [
            "eval $x",
            "eval \"$(ls)\"",
            "sh -c \"$x\"",
            "sh -c $x",
            "bash -c 'echo $(('",
            "echo rm x | sh",
            "bash <<< 'rm x'",
            "bash -s a",
            "bash -o pipefail",
            "sh -",
            "bash",
            "source x",
            ". ./x",
            "env -S 'rm x'",
            "env --split-string='rm x' y",
            "env env env env env env rm x",
        ] {
            let found = commands(line);
            // A line that is not understood at all names no command, which says the same.
            assert!(found.is_empty() || found.iter().any(|command| command == "?"), "{line} {found:?}");
        }
        for line in ["sh script.sh", "bash -x script.sh a", "ls", "env ls", "echo eval", "sh -c ls"] {
            assert!(!commands(line).iter().any(|command| command == "?"), "{line} {:?}", commands(line));
        }
    }

    #[test]
    fn what_changes_the_meaning_of_a_command_counts_as_one() {
        for (line, expected) in [
            ("X=1 git log", &["X=1 git log", "git log"][..]),
            ("X=1 Y=$z git log", &["X=1 Y=$z git log", "git log"]),
            ("PATH=/evil", &["PATH=/evil"]),
            ("for PATH in /evil; do git log; done", &["PATH=", "git log"]),
            ("git log > out.txt", &["git log", "> out.txt"]),
            ("git log >> out.txt 2>&1", &["git log", "> out.txt"]),
            ("git log &> $x", &["git log", "> $x"]),
            ("git log > /dev/null 2>/dev/null < in", &["git log"]),
            ("{ git log; } > x", &["> x", "git log"]),
        ] {
            let mut found = commands(line);
            let mut expected: Vec<&str> = expected.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{line}");
        }
    }
}
