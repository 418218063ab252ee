//! The table, row by row, and the language as a whole.

use proptest::prelude::*;

use super::prove;
use super::readers::{GIT, ROWS, Rule};
use super::text::LENGTH_LIMIT;
use crate::shell::testing::cases;

#[test]
fn every_row_runs_what_it_says_and_refuses_what_it_says() {
    let mut wrong = Vec::new();
    for (names, never, run, refuse) in ROWS
        .iter()
        .map(|row| (row.names.to_vec(), matches!(row.rule, Rule::Refused { .. }), row.runs, row.refuses))
        .chain(GIT.iter().map(|row| (vec![row.name], false, row.runs, row.refuses)))
    {
        assert!(!refuse.is_empty(), "{names:?} shows nothing that is refused");
        assert_eq!(run.is_empty(), never, "{names:?} runs, or never does, and shows the other");
        for line in run {
            let proof = prove(line);
            if let Some(refusal) = proof.refusal {
                wrong.push(format!("REFUSED {line}\n     {refusal}"));
            }
        }
        for line in refuse {
            if prove(line).reads {
                wrong.push(format!("PASSED  {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_nested_without_end_is_refused() {
    for piece in [
        "(",
        "$(",
        "`",
        "{ ",
        "\"$(",
        "<(",
        "if ",
        "while ",
        "[[ ",
        "[",
        "${",
        "$((",
        "'",
        "\"",
        "\\",
        "case x in a) ",
        "for i in a; do ",
        "! ",
        "{a,b}",
        "{1..9}",
        "<<E\n",
        "a=",
        "x[",
        "echo $(",
        "\n",
        "&&",
        "a|",
        "$x",
        "é",
        "#",
        ";;",
        "f() { ",
        "time ",
        "xargs ",
        "env ",
        "nice ",
    ] {
        let line = piece.repeat(LENGTH_LIMIT / piece.len());
        let proof = prove(&line);
        assert!(!proof.reads && proof.refusal.is_some(), "{piece}");
        prove(&format!("echo {line}"));
        prove(&format!("{line} ls"));
    }
    assert!(!prove(&"(ls; ".repeat(40)).reads);
    assert!(!prove(&format!("{}ls{}", "(".repeat(40), ")".repeat(40))).reads);
    assert!(prove("((ls))").refusal.is_some() && prove("( (ls) )").reads);
}

/// Signs and words of the shell, and texts of any kind.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec![
            "ls", "cat", "git", "log", "-p", "xargs", "find", "sed", "awk", "echo", " ", " ", "\n", ";", "&&", "||", "|", "&", "(", ")", "{", "}", "[", "]", "[[", "]]", "$(", "`", "'", "\"", "\\", "$", "${", "$((", "))", "<", ">", "<<", "EOF", "#", "*", "?", "~", "=", "!",
            "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "x", "é", "{a,b}", "-", "--", "1", "s/a/b/", "{print}",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[ -~]{0,6}",
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_text_gets_one_verdict(text in texts()) {
        let proof = prove(&text);
        prop_assert_eq!(proof.reads, proof.refusal.is_none());
        prop_assert!(proof.reads || (proof.operands.is_empty() && proof.git.is_empty() && proof.programs.is_empty()));
        if let Some(refusal) = proof.refusal {
            let said = refusal.to_string();
            prop_assert!(said.len() < 1_000 && said.ends_with('.') && !said.chars().any(hames_protocol::is_unprintable), "{}", said);
        }
        // What is put into the line stands between two of its characters.
        for (at, _) in proof.git.iter().filter_map(|call| call.insert) {
            prop_assert!(text.is_char_boundary(at));
        }
    }
}

#[test]
fn a_refusal_says_which_part_why_and_what_instead() {
    for (line, expected) in [
        (
            "ls > out",
            "The command was not run because of `> out`: it writes into a file. Leave it out: the output comes back anyway. To change a file use Write, or Build mode.",
        ),
        (
            "ls; find . -delete",
            "The command was not run because of `find -delete`: it deletes what it finds. List with find, or use Glob, and look at each file with Read.",
        ),
        (
            "sort -o out a",
            "The command was not run because of `sort -o`: it writes the result into a file. Leave that option out.",
        ),
        (
            "sort --outp=x a",
            "The command was not run because of `sort --outp`: it writes the result into a file. Leave that option out.",
        ),
        (
            "git log $(touch f)",
            "The command was not run because of `touch f`: it writes files. Propose the change with Write, Edit or Delete, or do it in Build mode.",
        ),
        (
            "git commit -m x",
            "The command was not run because of `git commit`: this is not among the subcommands of git that are known to only read. Look with git status, log, show or diff; run others in Build mode.",
        ),
        (
            "frobnicate",
            "The command was not run because of `frobnicate`: this program is not among those that are known to only read. Look with Read, Grep, Glob or List; run it in Build mode.",
        ),
        (
            "PATH=. ls",
            "The command was not run because of `PATH=.`: PATH can change what a program does or which one is run. Leave it out; LC_ALL, LANG, TZ, COLUMNS and NO_COLOR can be set.",
        ),
        (
            "sort *",
            "The command was not run because of `sort`: an argument that is not known beforehand could be an option that writes or runs something. Put -- before it, or begin it with ./ or another fixed text.",
        ),
    ] {
        assert_eq!(prove(line).refusal.map(|refusal| refusal.to_string()).as_deref(), Some(expected));
    }
}

#[test]
fn the_commands_of_a_line_are_told_with_those_inside_them() {
    for (line, expected) in [
        ("ls -la", &["ls -la"][..]),
        ("cargo build && rm -rf 'a b'", &["cargo build", "rm -rf a b"]),
        (
            "sudo -u me env A=b timeout 5 rm x",
            &["sudo -u me env A=b timeout 5 rm x", "env A=b timeout 5 rm x", "timeout 5 rm x", "rm x"],
        ),
        ("bash -c 'rm x; ls'", &["bash -c rm x; ls", "rm x", "ls"]),
        ("find . -exec rm {} \\;", &["find . -exec rm {} ;", "rm {}"]),
        ("echo \"$(rm \"$x\")\"", &["echo \"$(rm \"$x\")\"", "rm \"$x\""]),
        ("for f in *; do rm $f; done &", &["f=", "rm $f"]),
        ("f() { rm x; }; f", &["rm x", "f"]),
        ("if make; then ./run; fi > log", &["> log", "make", "./run"]),
        ("echo 'unclosed", &[]),
    ] {
        let commands: Vec<String> = prove(line).commands.iter().map(|words| words.join(" ")).collect();
        assert_eq!(commands, expected, "{line}");
    }
}
