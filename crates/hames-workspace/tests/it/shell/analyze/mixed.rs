//! Lines that nobody writes: harmless ones with signs put into them, each with a command in it that would show if it ran.
//!
//! Whatever of them is taken for a line that only reads is run by the real bash. Where our readers and bash differ in what
//! a quote, a bracket or a here-document holds, the command gets out and leaves its mark.

use std::sync::Arc;

use hames_protocol::{CallId, Effect, Emit, Event, Failure, MemoryBlobs, Mode, SessionId};
use hames_tools::ToolCx;
use hames_workspace::files::{LocalFs, LocalFsOptions};
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::{options, soak};

/// Lines around the command, which is written as `@`.
const LINES: [&str; 34] = [
    "echo a @ b",
    "echo 'a @ b'",
    "echo \"a @ b\"",
    "echo \"$(echo '@')\"",
    "cat <<EOF\na @ b\nEOF",
    "cat <<'EOF'\na\n@\nEOF\necho c",
    "ls # @",
    "ls\n# @\nls",
    "echo `echo '@'`",
    "echo \"`echo a @`\"",
    "cat <<< '@'",
    "for i in '@' b; do echo \"$i\"; done",
    "case '@' in a) ls;; *) echo \"@\";; esac",
    "[[ 'a @' == b* ]]",
    "[ 'a' = '@' ]",
    "x='@'; echo \"$x\"",
    "echo ${x:-@}",
    "echo \"${x%@}\"",
    "echo $((1 + 2)) '@'",
    "echo {a,b}'@'",
    "diff <(echo '@') <(echo b)",
    "echo $'a\\n@'",
    "printf '%s\\n' '@'",
    "if [ -f a ]; then echo '@'; fi",
    "while read -r x; do echo '@'; done < a",
    "echo '@' | cat | cat",
    "{ echo '@'; echo b; }",
    "(echo '@'; cd sub)",
    "awk '/a/{print \"@\"}' a",
    "sed -n 's/a/@/p' a",
    "echo a\\@ b",
    "grep '@' a || true",
    "git log --format='@' -1",
    "find . -name '@' -print",
];

/// The command, dressed up.
const COMMANDS: [&str; 14] = [
    "touch MARK",
    "; touch MARK",
    "\ntouch MARK\n",
    "$(touch MARK)",
    "`touch MARK`",
    "&& touch MARK",
    "| touch MARK",
    "' ; touch MARK ; '",
    "\"; touch MARK; \"",
    ") ; touch MARK ; (",
    "\nEOF\ntouch MARK\n",
    "> MARK",
    "x' > MARK '",
    "}; touch MARK; {",
];

/// Signs that are put in.
const SIGNS: [&str; 56] = [
    " ",
    "\n",
    "\t",
    "'",
    "\"",
    "`",
    "\\",
    "$",
    "#",
    ";",
    "&",
    "|",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "!",
    "*",
    "?",
    "~",
    "=",
    ",",
    "-",
    "\\\n",
    "$(",
    "${",
    "$((",
    "))",
    "((",
    "<<",
    "<<<",
    "<(",
    ">(",
    "<<EOF",
    "\nEOF\n",
    "$'",
    "$\"",
    "&&",
    "||",
    ";;",
    "2>&1",
    ">/dev/null",
    "\\'",
    "\\\"",
    "''",
    "\"\"",
    "#}",
    "}#",
    "é",
    "esac",
    "done",
    "[[",
];

struct Nowhere;

#[async_trait::async_trait]
impl Emit for Nowhere {
    async fn record(&self, _: Vec<Event>) -> Result<(), Failure> {
        Ok(())
    }
    fn show(&self, _: Event) {}
}

/// A place in a text, between two characters.
fn boundary(text: &str, wanted: usize) -> usize {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    places[wanted % places.len()]
}

fn line() -> impl Strategy<Value = String> {
    let sign = (0..SIGNS.len(), any::<usize>());
    (0..LINES.len(), 0..COMMANDS.len(), prop::collection::vec(sign, 0..4)).prop_map(|(line, command, signs)| {
        let mut text = LINES[line].replacen('@', COMMANDS[command], 1).replace('@', "x");
        for (sign, place) in signs {
            text.insert_str(boundary(&text, place), SIGNS[sign]);
        }
        text
    })
}

fn config() -> proptest::test_runner::Config {
    let cases = std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}

/// Lines tried in one case: most are refused at once, which costs next to nothing.
const LINES_A_CASE: usize = 40;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_taken_for_reading_leaves_no_mark(lines in prop::collection::vec(line(), LINES_A_CASE)) {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir_all(work.join("sub")).unwrap();
        std::fs::write(work.join("a"), "a\nb\n").unwrap();
        let shell = Arc::new(hames_workspace::shell::LocalShell::new(options(folder.path(), None)).unwrap().without_confinement());
        let cx = ToolCx {
            session: SessionId::from("session"),
            call_id: CallId::from("call"),
            mode: Mode::Analyze,
            fs: Arc::new(LocalFs::new(&work, LocalFsOptions { denied: Vec::new() }).unwrap()),
            shell,
            blobs: Arc::new(MemoryBlobs::default()),
            emit: Arc::new(Nowhere),
            cancel: CancellationToken::new(),
            cap_bytes: 50 * 1024,
            state: Arc::default(),
            approved: Vec::new(),
            hosts: Default::default(),
            pins: Default::default(),
            asks: Default::default(),
        };
        let tool = hames_workspace::shell::tools().remove(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for line in lines {
            let input = json!({"command": line, "timeout_ms": 10_000});
            if tool.declare(&input).effect != Effect::Read {
                continue;
            }
            if soak() {
                println!("{line:?}");
            }
            // How it ends is bash's business.
            let _ = runtime.block_on(tool.run(&input, &cx));
            let left: Vec<_> = std::fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            prop_assert!(left.len() == 2, "{line:?} left {left:?}");
        }
    }
}
