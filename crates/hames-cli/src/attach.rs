//! Files given along with a prompt (`--attach`): text as fenced blocks, images as image parts, the rest by name only.
//!
//! Everything is read before a session is touched, so a wrong path costs nothing. Images become blobs later, when there
//! is a session to keep them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::exit::Stop;
use crate::output::clean;
use crate::output::text::count;

/// More files than this are better named in the prompt and read by the agent.
const MAX_FILES: usize = 10;
/// Bytes of one text file: more would crowd the window before the first step.
const MAX_TEXT_BYTES: u64 = 256 * 1024;
/// Bytes of one image: what the strictest of the large providers takes.
const MAX_IMAGE_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes looked at to tell what a file is.
const SNIFF_BYTES: usize = 16;

/// An attachment, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// Text for the message: a fenced block, or a line about a file that is not shown.
    Text(String),
    /// An image.
    Image { name: String, media_type: &'static str, bytes: Vec<u8> },
}

/// Reads the files, in order.
pub(crate) fn read_all(paths: &[impl AsRef<Path>]) -> Result<Vec<Attachment>, Stop> {
    if paths.len() > MAX_FILES {
        return Err(Stop::usage(format!(
            "{} files are attached; {MAX_FILES} are possible. Name the others in the prompt, the agent can read them",
            paths.len()
        )));
    }
    paths.iter().map(|path| read(path.as_ref())).collect()
}

fn read(path: &Path) -> Result<Attachment, Stop> {
    let shown = clean::line(&path.display().to_string());
    let refuse = |what: &str| Stop::usage(format!("--attach {shown}: {what}"));
    let meta = std::fs::metadata(path).map_err(|e| refuse(&format!("cannot be read: {e}")))?;
    if !meta.is_file() {
        return Err(refuse("is not a file; attach single files"));
    }
    let mut file = File::open(path).map_err(|e| refuse(&format!("cannot be read: {e}")))?;
    let mut bytes = Vec::new();
    let mut take = |bytes: &mut Vec<u8>, limit: u64| {
        (&mut file).take(limit).read_to_end(bytes).map_err(|e| refuse(&format!("cannot be read: {e}")))
    };
    take(&mut bytes, SNIFF_BYTES as u64)?;
    if let Some(media_type) = image_type(&bytes) {
        take(&mut bytes, MAX_IMAGE_BYTES + 1)?;
        if bytes.len() as u64 > MAX_IMAGE_BYTES {
            return Err(refuse(&format!("has more than {} bytes; make the image smaller", count(MAX_IMAGE_BYTES))));
        }
        let name = path.file_name().map_or_else(|| shown.clone(), |name| clean::line(&name.to_string_lossy()));
        return Ok(Attachment::Image { name, media_type, bytes });
    }
    take(&mut bytes, MAX_TEXT_BYTES + 1)?;
    let whole = bytes.len() as u64 <= MAX_TEXT_BYTES;
    match text_of(&bytes, whole) {
        None => Ok(Attachment::Text(format!(
            "Attached file {shown}: not shown, because it is no text ({} bytes).",
            count(meta.len())
        ))),
        Some(_) if !whole => Err(refuse(&format!(
            "has more than {} bytes; name it in the prompt instead, and the agent reads the parts it needs",
            count(MAX_TEXT_BYTES)
        ))),
        Some(text) => Ok(Attachment::Text(fenced(&shown, text))),
    }
}

/// The bytes as text; `None` where they are none. A character cut off at the end of a part is no reason against it.
fn text_of(bytes: &[u8], whole: bool) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) if !whole && e.error_len().is_none() => std::str::from_utf8(&bytes[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    (!text.contains('\0')).then(|| text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// A block that its content cannot end: the fence is longer than any run of backticks inside.
fn fenced(name: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("Attached file {name}:\n{fence}\n{text}{end}{fence}")
}

/// What kind of image it is, by its first bytes; the name's ending proves nothing.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Attachment, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        std::fs::write(&path, bytes).unwrap();
        match read(&path) {
            Ok(Attachment::Text(text)) => Ok(Attachment::Text(text.replace(&path.display().to_string(), "PATH"))),
            Ok(image) => Ok(image),
            Err(Stop::Failed(failure)) => Err(failure.message),
            Err(Stop::OutputClosed) => unreachable!("reading prints nothing"),
        }
    }

    #[test]
    fn text_comes_as_a_block_that_its_content_cannot_end() {
        for (text, block) in [
            ("hello\n", "Attached file PATH:\n```\nhello\n```"),
            ("hello", "Attached file PATH:\n```\nhello\n```"),
            ("", "Attached file PATH:\n```\n```"),
            ("a ```` b\n```\nc\n", "Attached file PATH:\n`````\na ```` b\n```\nc\n`````"),
            ("`x`", "Attached file PATH:\n```\n`x`\n```"),
            ("\u{feff}bom", "Attached file PATH:\n```\nbom\n```"),
            ("ünï 漢字\r\n", "Attached file PATH:\n```\nünï 漢字\r\n```"),
        ] {
            assert_eq!(read_bytes(text.as_bytes()), Ok(Attachment::Text(block.into())), "{text:?}");
        }
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        for (bytes, media_type) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], "image/png"),
            (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
            (b"GIF89arest", "image/gif"),
            (b"GIF87arest", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        ] {
            let read = read_bytes(bytes);
            assert_eq!(read, Ok(Attachment::Image { name: "a.txt".into(), media_type, bytes: bytes.to_vec() }));
        }
    }

    #[test]
    fn other_binary_files_are_only_named() {
        for bytes in [&b"\x7fELF\0\0"[..], b"a\0b", b"\xff\xfea\0", b"RIFF\x10\0\0\0WAVEfmt ", b"latin \xe9 text"] {
            let Ok(Attachment::Text(text)) = read_bytes(bytes) else { panic!("{bytes:?}") };
            assert!(text.starts_with("Attached file PATH: not shown"), "{text}");
        }
    }

    #[test]
    fn what_is_too_large_or_no_file_is_refused_with_what_to_do() {
        let text = "é".repeat(200_000);
        assert!(read_bytes(text.as_bytes()).unwrap_err().contains("name it in the prompt"));
        let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
        image.resize(9 * 1024 * 1024, 0);
        assert!(read_bytes(&image).unwrap_err().contains("make the image smaller"));
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("missing")] {
            assert!(read(&path).is_err());
        }
        let many = vec![dir.path().join("x"); 11];
        assert!(matches!(read_all(&many), Err(Stop::Failed(f)) if f.message.contains("11 files")));
    }
}
