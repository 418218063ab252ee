//! What the terminal and other programs are asked for: the clipboard, a notice, an editor, the shell.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hames_protocol::api::{ApiError, ApiErrorCode};

use crate::Answer;

/// Bytes that are copied at most: terminals take no more than about 100 KB in one sequence.
pub(crate) const MAX_COPY: usize = 74_000;
/// Characters of a notice.
const MAX_NOTICE: usize = 200;
/// Bytes of an edited draft.
const MAX_EDITED: u64 = 16 * 1024 * 1024;

/// The bytes that put text into the terminal's clipboard; its beginning, where it is too long.
pub(super) fn copy(text: &str) -> Vec<u8> {
    let mut end = text.len().min(MAX_COPY);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(&text[..end])).into_bytes()
}

/// The bytes that say something while nobody looks: a bell, and a notice in the two ways terminals have for it.
pub(super) fn notice(text: &str) -> Vec<u8> {
    let text: String = text.chars().filter(|c| !c.is_control() && *c != ';').take(MAX_NOTICE).collect();
    format!("\x07\x1b]9;{text}\x1b\\\x1b]777;notify;Hames;{text}\x1b\\").into_bytes()
}

/// Whether somebody can continue this process: one that leads its session has no shell behind it.
pub(super) fn has_shell() -> bool {
    let me = rustix::process::getpid();
    rustix::process::getsid(None).is_ok_and(|leader| leader != me)
}

/// Stops this process and what runs beside it in its job, until it is continued.
pub(super) fn stop() {
    // Where that is not possible it goes on at once.
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::STOP);
}

/// Lets the user's editor change a text.
pub(super) fn edit(editor: Option<&str>, text: &str) -> Result<Answer, ApiError> {
    let failed = |what: String| ApiError::new(ApiErrorCode::Unknown, what);
    let editor = editor.unwrap_or("vi");
    let folder = tempfile::Builder::new().prefix("hames-").tempdir();
    let folder = folder.map_err(|error| failed(format!("no file for the editor can be made: {error}")))?;
    let path = folder.path().join("message.md");
    let said = |error: io::Error| failed(format!("{} cannot be used: {error}", path.display()));
    write_private(&path, text).map_err(said)?;
    // As git runs it: the setting is a command line of the user's own, the file its last word.
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&path).status();
    let status = status.map_err(|error| failed(format!("the editor \"{editor}\" cannot be started: {error}")))?;
    if !status.success() {
        return Err(failed(format!(
            "the editor \"{editor}\" ended with {status}, so the message stays as it was; set VISUAL or EDITOR"
        )));
    }
    if std::fs::metadata(&path).map_err(said)?.len() > MAX_EDITED {
        return Err(failed("the edited message is larger than 16 MB".into()));
    }
    let edited = String::from_utf8_lossy(&std::fs::read(&path).map_err(said)?).into_owned();
    // Editors close the last line.
    let edited = edited.strip_suffix('\n').unwrap_or(&edited);
    Ok(Answer::Edited((edited != text).then(|| super::clean(edited))))
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_and_said_is_bounded_and_ends_no_sequence_early() {
        assert_eq!(copy("hé"), b"\x1b]52;c;aMOp\x1b\\");
        assert!(copy(&"é".repeat(100_000)).len() < 100_000);
        let said = String::from_utf8(notice("a\x1b]52;c;x\x07 done")).unwrap();
        assert_eq!(said, "\x07\x1b]9;a]52cx done\x1b\\\x1b]777;notify;Hames;a]52cx done\x1b\\");
    }

    #[test]
    fn an_editor_changes_the_text_or_leaves_it() {
        let edited = |editor: &str| edit(Some(editor), "one\ntwo").unwrap();
        assert_eq!(edited("true"), Answer::Edited(None));
        assert_eq!(edited("sed -i s/two/three/"), Answer::Edited(Some("one\nthree".into())));
        assert!(edit(Some("false"), "x").unwrap_err().message.contains("stays as it was"));
    }
}
