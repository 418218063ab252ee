//! `bash`.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use hames_protocol::{Declaration, Label, ToolSpec};
use hames_tools::{ShellEnd, ShellRequest, Tool, ToolCx, ToolFailure, ToolOutput, Whole};
use serde_json::{Value, json};

use super::{Outcome, json_bytes, room, spec, text_of, told};
use crate::shell::{Shell, clean, hardening};

/// A command's time where the call names none, and its bounds.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1_000..=300_000;
/// Characters of each stream at most.
const MAX_STDOUT: usize = 50_000;
const MAX_STDERR: usize = 10_000;
/// Bytes of an answer.
const CAP: u64 = 64 * 1024;
/// Bytes of the quotes around a JSON text.
const QUOTES: usize = 2;
/// What `timeout` exits with for a command it killed.
const TIMED_OUT: i32 = 124;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let properties = json!({
        "command": {"type": "string"},
        "timeout": {"type": "integer", "description": "milliseconds, 30000 by default, 300000 at most"},
    });
    spec("bash", "Run a command in the workspace.", properties, &["command"])
});

pub(super) struct Bash;

fn timeout_ms(input: &Value) -> u64 {
    let asked = input.get("timeout").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT_MS);
    asked.clamp(*TIMEOUT_MS.start(), *TIMEOUT_MS.end())
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }
    fn declare(&self, input: &Value) -> Declaration {
        let ours = json!({"command": text_of(input, "command"), "timeout_ms": timeout_ms(input)});
        Declaration { cap_bytes: Some(CAP), ..Shell::new().declare(&ours) }
    }
    fn label(&self, input: &Value) -> Label {
        Label::new("bash", text_of(input, "command").trim_start())
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let command = text_of(input, "command");
        if command.trim().is_empty() || command.contains('\0') {
            return told(ToolFailure::invalid("the command is empty or holds a NUL byte"), &[]);
        }
        let hardened = match hardening(command, cx.fs.root(), cx).await {
            Ok(hardened) => hardened,
            Err(failure) => return told(failure, &[]),
        };
        let request = ShellRequest {
            cancel: cx.cancel.clone(),
            keep_bytes: 2 * MAX_STDOUT,
            errors_apart: true,
            hardened,
            ..ShellRequest::new(command, cx.fs.root(), Duration::from_millis(timeout_ms(input)))
        };
        // A provider that cannot keep the streams apart gives both as output.
        let outcome = match cx.shell.run(request, &mut |_| ()).await {
            Ok(outcome) => outcome,
            Err(error) => return told(ToolFailure::failed(error.to_string()), &[]),
        };
        if outcome.end == ShellEnd::Cancelled {
            return Err(ToolFailure::cancelled());
        }
        let missing = outcome.total - (outcome.head.len() + outcome.tail.len()) as u64;
        let errors = outcome.errors.unwrap_or_default();
        // What the window has no room for is taken from stdout first.
        let stderr_room = room(cx, usize::MAX) / 2;
        let mut stderr = cut(&errors.head, &errors.tail, errors.dropped, MAX_STDERR, stderr_room);
        let stdout_room = room(cx, usize::MAX).saturating_sub(json_bytes(&stderr));
        let stdout = cut(&outcome.head, &outcome.tail, missing, MAX_STDOUT, stdout_room);
        let exit_code = match outcome.end {
            ShellEnd::Exited(code) => code,
            ShellEnd::Signalled(signal) => 128 + signal,
            ShellEnd::TimedOut | ShellEnd::Cancelled => {
                let line = if stderr.is_empty() || stderr.ends_with('\n') { "" } else { "\n" };
                stderr.push_str(&format!("{line}(killed after {} ms)", timeout_ms(input)));
                TIMED_OUT
            }
        };
        let answer = json!({"stdout": stdout, "stderr": stderr, "exitCode": exit_code});
        let whole = outcome.spool.map_or(Whole::None, |(path, dropped)| Whole::File { path, dropped });
        Ok(ToolOutput { whole, exit_code: Some(exit_code), ..ToolOutput::text(answer.to_string()) })
    }
}

/// A stream without terminal codes: its first `chars` characters, and no more than `room` bytes of JSON.
fn cut(head: &[u8], tail: &[u8], missing: u64, chars: usize, room: usize) -> String {
    // Where something is missing between them, the beginning alone is one piece.
    let text = if missing == 0 { clean(&[head, tail].concat()) } else { clean(head) };
    let mut used = 0;
    let end = text.char_indices().enumerate().find(|(ordinal, (_, c))| {
        used += json_bytes(c.encode_utf8(&mut [0; 4])) - QUOTES;
        *ordinal >= chars || used > room
    });
    let kept = end.map_or(text.as_str(), |(_, (end, _))| &text[..end]);
    let behind = if missing == 0 { 0 } else { missing + tail.len() as u64 };
    let omitted = text[kept.len()..].chars().count() as u64 + behind;
    match omitted {
        0 => text,
        _ => format!("{kept}\n... (truncated, {omitted} chars omitted)"),
    }
}
