//! The shell in Analyze, through the tool and the door: what only reads runs, nothing else does, and everything stays as
//! it is, byte for byte and time for time.

mod bed;
mod harmless;
mod hostile;
mod mixed;

use std::os::unix::process::CommandExt;

use hames_protocol::Mode;

use bed::{Became, Bed};

/// Somebody who is not root.
const NOBODY: u32 = 65534;

/// How every refusal of a command begins.
const REFUSAL: &str = "Analyze mode: nothing is modified. The command was not run";

type Tree = std::collections::BTreeMap<std::path::PathBuf, String>;

/// Lines that are tried at least.
const HOSTILE_LEAST: usize = 250;
const HARMLESS_LEAST: usize = 80;

/// Runs every line in one bed, and says what is wrong.
async fn try_all(bed: &Bed) -> Vec<String> {
    let whole = bed.tree(true);
    let mut before = bed.tree(false);
    let mut wrong = Vec::new();
    for (family, lines) in hostile::FAMILIES {
        for line in *lines {
            match bed.run(line, Mode::Analyze).await {
                Became::Refused(text) if text.starts_with(REFUSAL) => {}
                became => wrong.push(format!("RUN ({family}) {line:?}: {became:?}")),
            }
            wrong.extend(difference(line, &mut before, bed.tree(false)));
        }
    }
    for line in harmless::LINES {
        match bed.run(line, Mode::Analyze).await {
            Became::Done(_, Some(0)) => {}
            became => wrong.push(format!("NOT RUN {line:?}: {became:?}")),
        }
        wrong.extend(difference(line, &mut before, bed.tree(false)));
    }
    for line in harmless::MEETING_ODD_THINGS {
        match bed.run(line, Mode::Analyze).await {
            Became::Done(..) => {}
            // A program of that name is only where a trap is, or would set itself up.
            Became::Failed(text) if text.contains("not run: ") => {}
            became => wrong.push(format!("NOT PROVEN {line:?}: {became:?}")),
        }
        wrong.extend(difference(line, &mut before, bed.tree(false)));
    }
    // Times tell after each line who it was; that no byte changed behind them is told once.
    wrong.extend((whole != bed.tree(true)).then(|| "CONTENT changed without its time".to_owned()));
    wrong
}

/// What a line changed, if it did.
fn difference(line: &str, before: &mut Tree, after: Tree) -> Option<String> {
    if after == *before {
        return None;
    }
    let changed: Vec<_> = after.iter().filter(|(path, entry)| before.get(*path) != Some(entry)).collect();
    let gone: Vec<_> = before.keys().filter(|path| !after.contains_key(*path)).collect();
    let said = format!("CHANGED by {line:?}: {changed:?}, gone: {gone:?}");
    *before = after;
    Some(said)
}

fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} lines are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_enough_lines_to_try() {
    let hostile: usize = hostile::FAMILIES.iter().map(|(_, lines)| lines.len()).sum();
    assert!(hostile >= HOSTILE_LEAST && hostile::FAMILIES.iter().all(|(_, lines)| lines.len() >= 8), "{hostile}");
    assert!(harmless::LINES.len() >= HARMLESS_LEAST);
}

/// What the traps are worth: the same commands without care.
#[test]
fn the_traps_are_sprung_where_nothing_is_done_against_them() {
    let mut missing: Vec<String> = Vec::new();
    for (line, traps) in [
        ("git status", &["fsmonitor", "clean"][..]),
        ("git diff", &["command", "hook-post-index-change"]),
        ("git diff --no-ext-diff", &["textconv"]),
        ("git -c diff.external= diff HEAD --no-ext-diff --no-textconv", &["fsmonitor"]),
        ("git -c core.fsmonitor=false -c diff.external= log -p -3", &["gpg"]),
        ("git -c log.showSignature=false log -p -m --no-ext-diff", &["textconv", "merge"]),
        ("git log -1 --format=%G?", &["gpg"]),
        ("git show HEAD:a.txt", &[]),
        ("git show --textconv HEAD:a.txt", &["textconv"]),
        ("git blame a.txt", &["textconv", "clean"]),
        ("git stash list -p", &["textconv"]),
        ("git cat-file --textconv HEAD:a.txt", &["textconv"]),
        ("git cat-file --filters HEAD:a.txt", &["smudge"]),
        ("git grep -Ocat alpha", &[]),
        ("git describe --dirty", &["fsmonitor"]),
        ("git lg", &["aliaslg"]),
        ("git update-index --refresh", &["clean"]),
        ("git commit -qm x --allow-empty", &["hook-reference-transaction"]),
        ("git fetch", &["remote"]),
        ("git archive HEAD", &["smudge"]),
        ("git status --ignore-submodules=none -v", &["fsmonitor"]),
        ("PATH=./bin:$PATH ls", &["bin-ls"]),
        ("./evil.sh", &["evil"]),
        ("BASH_ENV=./evil.sh bash -c true", &["evil"]),
    ] {
        let bed = Bed::new();
        // One filter that fails would end most of them before they come to the others.
        let without = "git -c filter.process.process= -c filter.process.required=false ";
        bed.run_without_care(&line.replacen("git ", without, 1));
        let sprung = bed.sprung();
        for trap in traps {
            if !sprung.iter().any(|path| path.ends_with(format!("PWNED-{trap}"))) {
                missing.push(format!("{line} springs no {trap}: {sprung:?}"));
            }
        }
    }
    report(&missing);
}

#[tokio::test]
async fn nothing_changes_whatever_the_shell_is_asked() {
    report(&try_all(&Bed::unconfined()).await);
}

#[tokio::test]
async fn nothing_changes_and_nothing_is_missing_where_the_kernel_helps() {
    report(&try_all(&Bed::new()).await);
}

#[test]
fn nothing_changes_whatever_the_shell_is_asked_as_another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: nobody else can be tried; the test above ran as this user");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("tests");
    // Copied by another process: a descriptor of ours that a fork of another test holds would keep it from being run.
    let copied = std::process::Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    std::os::unix::fs::chown(scratch.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let output = std::process::Command::new(&program)
        .args(["--exact", "shell::analyze::nothing_changes_whatever_the_shell_is_asked", "--nocapture"])
        .env("TMPDIR", scratch.path())
        .current_dir(scratch.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    assert!(String::from_utf8_lossy(&text).contains("1 passed"), "{}", String::from_utf8_lossy(&text));
}

#[tokio::test]
async fn a_result_names_the_proposals_it_does_not_see() {
    let bed = Bed::in_plain_environment();
    let see = async |line: &str, mode| match bed.run(line, mode).await {
        Became::Done(text, _) => text,
        became => panic!("{became:?}"),
    };
    assert_eq!(see("echo x", Mode::Analyze).await, "x");
    for (count, expected) in [
        (1, "commands see the disk, without your proposals for new0.txt; Read, Grep, Glob and List see them"),
        (4, "new0.txt, new1.txt, new2.txt and 1 more; Read"),
    ] {
        for n in 0..count {
            bed.propose(&format!("new{n}.txt"));
        }
        let text = see("echo x", Mode::Analyze).await;
        assert!(text.starts_with("x\n") && text.contains(expected), "{text}");
        assert_eq!(see("echo x", Mode::Build).await, "x");
    }
}

#[tokio::test]
async fn places_of_hames_are_not_read_in_any_spelling() {
    let bed = Bed::with_denied(&["private"]);
    let home = bed.root().join("home").display().to_string();
    let mut wrong = Vec::new();
    for line in hostile::INTO_PRIVATE {
        let line = line.replace('@', &home);
        match bed.run(&line, Mode::Analyze).await {
            Became::Refused(_) => {}
            became => wrong.push(format!("READ {line:?}: {became:?}")),
        }
    }
    for line in [
        "cat ~/notes.txt",
        "ls ~",
        "cat $HOME/notes.txt",
        "grep -rn alpha .",
        "find . -name '*.txt' | xargs cat",
        "cd ~ && cat notes.txt",
        "ls ..",
        "cat ../beside/file.txt",
        "for f in *.txt; do cat \"$f\"; done",
    ] {
        match bed.run(line, Mode::Analyze).await {
            Became::Done(text, Some(0)) if !text.contains("the secret") => {}
            became => wrong.push(format!("NOT READ {line:?}: {became:?}")),
        }
    }
    report(&wrong);
}

/// Whether this kernel keeps a thread, and what it starts, from files.
#[cfg(target_os = "linux")]
fn is_enforced() -> bool {
    use landlock::{AccessFs, Ruleset, RulesetAttr, RulesetStatus};
    let try_it = || Ruleset::default().handle_access(AccessFs::MakeSock)?.create()?.restrict_self();
    std::thread::spawn(try_it).join().unwrap().is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_command_finds_out_while_it_runs_is_kept_from_it_by_the_kernel() {
    if !is_enforced() {
        println!("this kernel has no Landlock: nothing to see");
        return;
    }
    let bed = Bed::with_denied(&["private"]);
    let home = bed.root().join("home").display().to_string();
    let before = bed.tree(true);
    for line in [
        "printf '%s%s\\n' @/pri vate/secret.txt | xargs cat",
        "echo @/privatX/secret.txt | tr X e | xargs cat",
        "cat \"$(echo @/privatX/secret.txt | tr X e)\"",
        "echo @/privatX/secret.txt | tr X e | while read -r f; do cat \"$f\"; done",
        "echo @/privatX/secret.txt | tr X e | xargs -I{} grep -n . {}",
        "echo @/privatX/secret.txt | tr X e | xargs sha256sum",
        "echo @/privatX | tr X e | xargs grep -rn .",
        "echo @/privatX/secret.txt | tr X e | xargs head -n1",
        "rev <<< txt.terces/etavirp | xargs -I{} cat @/{} || cat \"$(rev <<< txt.terces/etavirp/emoh/..)\"",
        "seq 1 | xargs -I{} cat a.txt",
        "base64 -d <<< Li4vaG9tZS9wcml2YXRlL3NlY3JldC50eHQ= | xargs cat",
    ] {
        match bed.run(&line.replace('@', &home), Mode::Analyze).await {
            Became::Done(text, _) => assert!(!text.contains("the secret"), "{line}: {text}"),
            Became::Refused(_) => {}
            became @ Became::Failed(_) => panic!("{line}: {became:?}"),
        }
    }
    assert!(before == bed.tree(true));
}

#[tokio::test]
async fn a_program_that_only_the_workspace_or_strangers_offer_is_not_run() {
    let bed = Bed::unconfined();
    for (name, folder) in [
        ("rg", "work/bin"),
        ("fd", "open"),
        ("tree", "work/bin"),
        ("b3sum", "open"),
        ("ag", "work/bin"),
        ("gawk", "open"),
        ("pypy3", "work/bin"),
        ("deno", "open"),
    ] {
        bed.trap_program(folder, name);
        for mode in [Mode::Analyze] {
            let line = match name {
                "pypy3" | "deno" => format!("{name} --version"),
                "gawk" => "gawk '{print}' a.txt".to_owned(),
                _ => format!("{name} alpha"),
            };
            match bed.run(&line, mode).await {
                Became::Failed(text)
                    if text.contains(&format!("{folder}/{name}")) && text.contains("not known to only read") => {}
                // Where the system has one, that is what runs.
                Became::Done(..) if super::found(name).is_some() => {}
                became => panic!("{line}: {became:?}"),
            }
        }
    }
    assert_eq!(bed.sprung(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn a_repository_runs_nothing_in_build_either_when_it_is_only_looked_at() {
    let bed = Bed::in_plain_environment();
    let mut before = bed.tree(true);
    let mut wrong = Vec::new();
    for line in [
        "git status",
        "git diff",
        "git log -p -2",
        "git blame a.txt",
        "git show",
        "git stash list -p",
        "git -C sub status -s",
        "git log -1 --format='%G?'",
        "git ls-files -m",
        "cd sub && git diff HEAD",
    ] {
        match bed.run(line, Mode::Build).await {
            Became::Done(_, Some(0)) => {}
            became => wrong.push(format!("NOT RUN {line:?}: {became:?}")),
        }
        wrong.extend(difference(line, &mut before, bed.tree(true)));
    }
    report(&wrong);
    // What a person set stays theirs.
    for (line, expected) in [
        ("env | grep MINE", "MINE=1"),
        ("echo $MINE", "1"),
        ("only-mine --version; printenv MINE", "1"),
        ("git log -1 --format=%s; echo \"$MINE\"", "merged\n1"),
    ] {
        match bed.run(line, Mode::Build).await {
            Became::Done(text, _) => assert!(text.ends_with(expected), "{line}: {text}"),
            became => panic!("{line}: {became:?}"),
        }
    }
}
