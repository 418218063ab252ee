//! Files given along with a prompt (`--attach`): text as fenced blocks, images as image parts, the rest by name only.
//!
//! Everything is read before a session is touched, so a wrong path costs nothing. Images become blobs later, when there
//! is a session to keep them. What a file is its bytes say, as they do for the Read tool; its name proves nothing.

use std::fs::{File, FileType, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use hames_workspace::files::{Content, Image, MAX_IMAGE_BYTES};

use crate::exit::Stop;
use crate::output::clean;
use crate::output::text::count;

/// More files than this are better named in the prompt and read by the agent.
const MAX_FILES: usize = 10;
/// Bytes of one text file: more would crowd the window before the first step.
const MAX_TEXT_BYTES: u64 = 256 * 1024;
/// Bytes of all text files together, for the same reason.
const MAX_ALL_TEXT_BYTES: u64 = 512 * 1024;
/// Bytes of all images together. A request has them a third larger, and again in every step; the large providers refuse
/// requests over 20 to 50 MB.
const MAX_ALL_IMAGE_BYTES: u64 = 12 * 1024 * 1024;
/// Bytes that tell what a file is.
const HEAD_BYTES: u64 = 8 * 1024;

/// An attachment, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// Text for the message: a fenced block, or a line about a file that is not shown.
    Text(String),
    /// An image, with the line that goes before it.
    Image { line: String, name: String, media_type: &'static str, bytes: Vec<u8> },
}

/// Reads the files, in order.
pub(crate) fn read_all(paths: &[impl AsRef<Path>]) -> Result<Vec<Attachment>, Stop> {
    if paths.len() > MAX_FILES {
        return Err(Stop::usage(format!(
            "{} files are attached; {MAX_FILES} are possible. Name the others in the prompt, the agent can read them",
            paths.len()
        )));
    }
    let (mut text, mut images) = (0, 0);
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let attachment = read(path.as_ref())?;
        let (sum, size, limit, what) = match &attachment {
            Attachment::Text(block) => (&mut text, block.len(), MAX_ALL_TEXT_BYTES, "text has"),
            Attachment::Image { bytes, .. } => (&mut images, bytes.len(), MAX_ALL_IMAGE_BYTES, "images have"),
        };
        *sum += size as u64;
        if *sum > limit {
            return Err(Stop::usage(format!(
                "--attach {}: with it the attached {what} more than {} bytes in all; leave some out and name them \
                 in the prompt, the agent can read them",
                shown(path.as_ref()),
                count(limit)
            )));
        }
        all.push(attachment);
    }
    Ok(all)
}

fn shown(path: &Path) -> String {
    clean::line(&path.display().to_string())
}

fn read(path: &Path) -> Result<Attachment, Stop> {
    let shown = shown(path);
    let refuse = |what: &str| Stop::usage(format!("--attach {shown}: {what}"));
    let unreadable = |e: std::io::Error| refuse(&format!("cannot be read: {e}"));
    let (mut file, size) = open(path).map_err(|why| refuse(&why))?;
    let mut bytes = Vec::new();
    let mut take_up_to = |bytes: &mut Vec<u8>, limit: u64| {
        let more = limit.saturating_sub(bytes.len() as u64);
        (&mut file).take(more).read_to_end(bytes).map_err(unreadable)
    };
    take_up_to(&mut bytes, HEAD_BYTES)?;
    match Content::of(&bytes) {
        Content::Image(kind) => {
            take_up_to(&mut bytes, MAX_IMAGE_BYTES + 1)?;
            let image = Image::examine(kind, bytes).map_err(|fault| refuse(&fault.to_string()))?;
            let name = path.file_name().map_or_else(|| shown.clone(), |name| clean::line(&name.to_string_lossy()));
            let line = format!("Attached image {shown}: {image}.");
            Ok(Attachment::Image { line, name, media_type: kind.media_type(), bytes: image.bytes })
        }
        Content::Other(kind) => Ok(Attachment::Text(not_shown(&shown, kind, size.max(bytes.len() as u64)))),
        Content::Text(_) => {
            take_up_to(&mut bytes, MAX_TEXT_BYTES + 1)?;
            if bytes.len() as u64 > MAX_TEXT_BYTES {
                return Err(refuse(&format!(
                    "has more than {} bytes; name it in the prompt instead, and the agent reads the parts it needs",
                    count(MAX_TEXT_BYTES)
                )));
            }
            Ok(Attachment::Text(match Content::of(&bytes) {
                // NUL cannot be part of any message a provider takes.
                Content::Text(text) if !text.contains('\0') => fenced(&shown, &text),
                _ => not_shown(&shown, "a binary file", bytes.len() as u64),
            }))
        }
    }
}

/// Opens a regular file, and nothing that would make us wait or do something by being opened.
fn open(path: &Path) -> Result<(File, u64), String> {
    let unreadable = |e: std::io::Error| format!("cannot be read: {e}");
    let check = |kind: FileType| match unfit(kind) {
        Some(what) => Err(what.to_owned()),
        None => Ok(()),
    };
    check(std::fs::metadata(path).map_err(unreadable)?.file_type())?;
    // It may have become a pipe meanwhile; opening one without a writer would wait for ever.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    check(meta.file_type())?;
    Ok((file, meta.len()))
}

/// Why something that is no regular file cannot be attached.
fn unfit(kind: FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => {
            Some("is a folder; attach single files, or name the folder in the prompt and the agent looks into it")
        }
        kind if kind.is_fifo() => Some(
            "is a pipe; save what comes out of it in a file and attach that, or give the prompt as - and pipe it in",
        ),
        kind if kind.is_socket() => Some("is a socket; attach files"),
        kind if kind.is_block_device() || kind.is_char_device() => Some("is a device; attach files"),
        _ => Some("is not a file; attach files"),
    }
}

fn not_shown(name: &str, kind: &str, size: u64) -> String {
    format!("Attached file {name}: not shown, because it is {kind} ({} bytes).", count(size))
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

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0crc.\0\0\0\0IEND\xaeB`\x82";

    fn message(stop: Stop) -> String {
        match stop {
            Stop::Failed(failure) => failure.message,
            Stop::OutputClosed => unreachable!("reading prints nothing"),
        }
    }

    fn read_bytes(bytes: &[u8]) -> Result<Attachment, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        std::fs::write(&path, bytes).unwrap();
        let plain = |text: String| text.replace(&path.display().to_string(), "PATH");
        match read(&path) {
            Ok(Attachment::Text(text)) => Ok(Attachment::Text(plain(text))),
            Ok(Attachment::Image { line, name, media_type, bytes }) => {
                Ok(Attachment::Image { line: plain(line), name, media_type, bytes })
            }
            Err(stop) => Err(plain(message(stop))),
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
            ("GIF89a is a format", "Attached file PATH:\n```\nGIF89a is a format\n```"),
        ] {
            assert_eq!(read_bytes(text.as_bytes()), Ok(Attachment::Text(block.into())), "{text:?}");
        }
    }

    #[test]
    fn text_in_other_encodings_is_text_too() {
        let units =
            |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(order).collect() };
        for (bytes, text) in [
            ([&b"\xff\xfe"[..], &units("héllo\n", u16::to_le_bytes)].concat(), "héllo\n"),
            ([&b"\xfe\xff"[..], &units("漢字 🙂\n", u16::to_be_bytes)].concat(), "漢字 🙂\n"),
            (b"\xff\xfe".to_vec(), ""),
            (b"na\xefve caf\xe9\n".to_vec(), "naïve café\n"),
            (b"mostly \xc3\xa9\xc3\xa9 fine \xff\n".to_vec(), "mostly éé fine \u{fffd}\n"),
        ] {
            let block = format!("Attached file PATH:\n```\n{text}```");
            assert_eq!(read_bytes(&bytes), Ok(Attachment::Text(block)), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn images_are_known_by_their_bytes_and_described() {
        let image = Attachment::Image {
            line: "Attached image PATH: PNG image, 3×2 pixels, 45 bytes.".into(),
            name: "a.txt".into(),
            media_type: "image/png",
            bytes: PNG.to_vec(),
        };
        assert_eq!(read_bytes(PNG), Ok(image));
    }

    #[test]
    fn other_binary_files_are_only_named_with_type_and_size() {
        for (bytes, said) in [
            (&b"\x7fELF\0\0"[..], "an ELF program or library (6 bytes)"),
            (b"a\0b", "a binary file (3 bytes)"),
            (b"RIFF\x10\0\0\0WAVEfmt ", "a WAV recording (16 bytes)"),
            (b"%PDF-1.7\n", "a PDF document (9 bytes)"),
            (b"PK\x03\x04\x14\0", "a ZIP archive (or an office document) (6 bytes)"),
            (b"\xff\xfe\0\0a\0\0\0", "UTF-32 text (8 bytes)"),
            (b"SQLite format 3\0", "an SQLite database (16 bytes)"),
            (b"II*\0\x08\0", "a TIFF image (6 bytes)"),
            (&[b"x".repeat(9_000), b"\0".to_vec()].concat(), "a binary file (9,001 bytes)"),
        ] {
            let expected = format!("Attached file PATH: not shown, because it is {said}.");
            assert_eq!(read_bytes(bytes), Ok(Attachment::Text(expected)));
        }
        let mut large = b"\x7fELF\0\0".to_vec();
        large.resize(3_000_000, 0);
        let Ok(Attachment::Text(text)) = read_bytes(&large) else { panic!() };
        assert!(text.ends_with("(3,000,000 bytes)."), "{text}");
    }

    #[test]
    fn what_is_too_large_or_broken_is_refused_with_what_to_do() {
        let mut large = PNG.to_vec();
        large.resize(9 * 1024 * 1024, 0);
        for (bytes, said) in [
            ("é".repeat(200_000).into_bytes(), "has more than 262,144 bytes; name it in the prompt"),
            (large, "is a PNG image of 8388609 bytes; 8388608 are possible: make a smaller copy"),
            (PNG[..24].to_vec(), "is a damaged PNG image of 24 bytes (its end is missing)"),
            (PNG[..12].to_vec(), "is a damaged PNG image of 12 bytes (its dimensions cannot be read)"),
        ] {
            let message = read_bytes(&bytes).unwrap_err();
            assert!(message.starts_with("--attach PATH: ") && message.contains(said), "{message}");
        }
    }

    #[test]
    fn what_is_no_file_is_named_and_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let round = dir.path().join("round");
        std::os::unix::fs::symlink("round", &round).unwrap();
        for (path, said) in [
            (dir.path().to_owned(), "is a folder; attach single files"),
            (fifo, "is a pipe; save what comes out of it"),
            (socket, "is a socket; attach files"),
            ("/dev/zero".into(), "is a device; attach files"),
            ("/dev/null".into(), "is a device; attach files"),
            (dir.path().join("missing"), "cannot be read: No such file"),
            (link, "cannot be read: No such file"),
            (round, "cannot be read: Too many levels"),
            // A regular file by its type, and an error by its first byte.
            ("/proc/self/mem".into(), "cannot be read: "),
            (dir.path().join("a\u{1b}[2J"), "a\\x1b[2J: cannot be read"),
        ] {
            let message = message(read(&path).unwrap_err());
            assert!(message.starts_with("--attach ") && message.contains(said), "{message}");
        }
    }

    #[test]
    fn files_together_have_limits_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let mut image = PNG.to_vec();
        image.resize(5 * 1024 * 1024, 0);
        let (text, image) = (file("t", &b"x".repeat(250_000)), file("i", &image));
        assert!(read_all(&[&text, &text, &image, &image]).is_ok());
        for (paths, said) in [
            (vec![&text; 3], "the attached text has more than 524,288 bytes in all"),
            (vec![&image; 3], "the attached images have more than 12,582,912 bytes in all"),
            (vec![&text; 11], "11 files are attached; 10 are possible"),
        ] {
            let message = message(read_all(&paths).unwrap_err());
            assert!(message.contains(said), "{message}");
        }
    }
}
