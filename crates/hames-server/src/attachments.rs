//! A file given along with a message: an image as a part of its own, text as a fenced block, anything else by name.
//! What a file is its bytes say, as they do for the Read tool.

use hames_protocol::api::ApiErrorCode;
use hames_protocol::is_unprintable;
use hames_workspace::files::{Content, Image};

use crate::refusal::{Answer, refuse};

/// Bytes of one text file: more would crowd the window before the first step.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Characters of a name that are shown.
const NAME_CHARS: usize = 200;

/// What a file becomes.
pub(crate) enum Attachment {
    /// Text for the message.
    Text(String),
    /// An image, with the line that goes before it.
    Image { line: String, name: String, media_type: &'static str, bytes: Vec<u8> },
}

/// Looks what a file is.
pub(crate) fn examine(name: &str, bytes: Vec<u8>) -> Answer<Attachment> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name: String = last.chars().filter(|c| !is_unprintable(*c)).take(NAME_CHARS).collect();
    let name = if name.trim().is_empty() { "file".to_owned() } else { name };
    match Content::of(&bytes) {
        Content::Image(kind) => {
            let image = Image::examine(kind, bytes)
                .map_err(|fault| refuse(ApiErrorCode::Invalid, format!("{name} cannot be attached: {fault}.")))?;
            let line = format!("Attached image {name}: {image}.");
            Ok(Attachment::Image { line, name, media_type: kind.media_type(), bytes: image.bytes })
        }
        Content::Text(text) if !text.contains('\0') => {
            if bytes.len() > MAX_TEXT_BYTES {
                let text = format!(
                    "{name} has more than {MAX_TEXT_BYTES} bytes; name it in the message instead, and the agent reads the \
                     parts it needs."
                );
                return Err(refuse(ApiErrorCode::TooLarge, text));
            }
            Ok(Attachment::Text(fenced(&name, &text)))
        }
        Content::Text(_) => Ok(Attachment::Text(not_shown(&name, "a binary file", bytes.len()))),
        Content::Other(kind) => Ok(Attachment::Text(not_shown(&name, kind, bytes.len()))),
    }
}

fn not_shown(name: &str, kind: &str, size: usize) -> String {
    format!("Attached file {name}: not shown, because it is {kind} ({size} bytes).")
}

/// A block that its content cannot end: the fence is longer than any run of backticks inside.
fn fenced(name: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("Attached file {name}:\n{fence}\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, bytes: &[u8]) -> String {
        match examine(name, bytes.to_vec()).unwrap() {
            Attachment::Text(text) => text,
            Attachment::Image { .. } => panic!("{name} is no image"),
        }
    }

    #[test]
    fn a_file_is_shown_by_what_its_bytes_are() {
        assert_eq!(text("a/b.md", b"x ``` y"), "Attached file b.md:\n````\nx ``` y\n````");
        assert_eq!(text("\u{202e}", b""), "Attached file file:\n```\n```");
        assert!(text("a.pdf", b"%PDF-1.7 ").contains("a PDF document"));
        let large = examine("big.txt", vec![b'x'; MAX_TEXT_BYTES + 1]).err().unwrap();
        assert_eq!(large.code, ApiErrorCode::TooLarge);
        let damaged = examine("x.png", b"\x89PNG\r\n\x1a\n".to_vec()).err().unwrap();
        assert_eq!(damaged.code, ApiErrorCode::Invalid);
    }
}
