//! Text as files hold it: encodings, byte order marks, line ends.
//!
//! A file's bytes are decoded into a *body* that can be searched and edited, and encoded back into the same encoding.
//! A body is UTF-8, except that a UTF-8 file with stray bytes keeps them as they are. What is not touched in the body
//! comes back byte for byte; where that cannot be promised, [`Text::exact`] says so and edits are refused.
//!
//! Knows: UTF-8, UTF-16 with a byte order mark, and windows-1252 for everything else that is text. It does not guess
//! among the other legacy encodings: their ASCII parts can be edited and the rest is kept.

use encoding_rs::WINDOWS_1252;
use hames_tools::FsError;

use super::binary;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const UTF16_LE_BOM: &[u8] = b"\xff\xfe";
const UTF16_BE_BOM: &[u8] = b"\xfe\xff";
const BOM: &str = "\u{feff}";

/// How a body is written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8; stray bytes in it are kept.
    Utf8 { bom: bool },
    /// UTF-16, little-endian, with its mark.
    Utf16Le,
    /// UTF-16, big-endian, with its mark.
    Utf16Be,
    /// Every byte is a character.
    Windows1252,
}

impl Encoding {
    /// What the bytes at the beginning of a text say. `whole`: there are no more.
    pub(crate) fn detect(head: &[u8], whole: bool) -> Encoding {
        if head.starts_with(UTF8_BOM) {
            return Encoding::Utf8 { bom: true };
        }
        if head.starts_with(UTF16_LE_BOM) {
            return Encoding::Utf16Le;
        }
        if head.starts_with(UTF16_BE_BOM) {
            return Encoding::Utf16Be;
        }
        let (mut wide, mut stray) = (0usize, 0usize);
        let mut chunks = head.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            wide += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
            let cut_off = !whole && chunks.peek().is_none();
            stray += usize::from(!chunk.invalid().is_empty() && !cut_off);
        }
        // A few stray bytes among many characters are an accident in a UTF-8 file.
        if stray > wide { Encoding::Windows1252 } else { Encoding::Utf8 { bom: false } }
    }

    /// Its name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 { .. } => "UTF-8",
            Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
            Encoding::Windows1252 => "windows-1252",
        }
    }

    /// Bytes of its mark at the beginning of a file.
    pub(crate) fn mark(self) -> &'static [u8] {
        match self {
            Encoding::Utf8 { bom: true } => UTF8_BOM,
            Encoding::Utf16Le => UTF16_LE_BOM,
            Encoding::Utf16Be => UTF16_BE_BOM,
            Encoding::Utf8 { bom: false } | Encoding::Windows1252 => b"",
        }
    }

    /// A decoder for a stream behind the mark; none where the bytes are the body.
    pub(crate) fn decoder(self) -> Option<encoding_rs::Decoder> {
        let encoding = match self {
            Encoding::Utf8 { .. } => return None,
            Encoding::Utf16Le => encoding_rs::UTF_16LE,
            Encoding::Utf16Be => encoding_rs::UTF_16BE,
            Encoding::Windows1252 => WINDOWS_1252,
        };
        Some(encoding.new_decoder_without_bom_handling())
    }

    /// Writes a body in this encoding, with its mark.
    pub(crate) fn encode(self, body: &[u8]) -> Result<Vec<u8>, Unencodable> {
        let mut bytes = self.mark().to_vec();
        match self {
            Encoding::Utf8 { .. } => bytes.extend_from_slice(body),
            Encoding::Utf16Le => String::from_utf8_lossy(body)
                .encode_utf16()
                .for_each(|unit| bytes.extend_from_slice(&unit.to_le_bytes())),
            Encoding::Utf16Be => String::from_utf8_lossy(body)
                .encode_utf16()
                .for_each(|unit| bytes.extend_from_slice(&unit.to_be_bytes())),
            Encoding::Windows1252 => {
                let text = String::from_utf8_lossy(body);
                let (encoded, _, lost) = WINDOWS_1252.encode(&text);
                if lost {
                    let lost = |c: &char| WINDOWS_1252.encode(c.encode_utf8(&mut [0; 4])).2;
                    return Err(Unencodable { character: text.chars().find(lost).unwrap_or('\u{fffd}') });
                }
                bytes.extend_from_slice(&encoded);
            }
        }
        Ok(bytes)
    }
}

/// A character that the file's encoding does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unencodable {
    pub(crate) character: char,
}

/// A file's content as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// Without a byte order mark.
    pub(crate) body: Vec<u8>,
    /// How it is written.
    pub(crate) encoding: Encoding,
    /// Encoding the body gives the very same bytes.
    pub(crate) exact: bool,
}

impl Text {
    /// Reads a whole file's bytes; the name of their type where they are no text.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Text, &'static str> {
        if let Some(kind) = binary::kind(bytes) {
            return Err(kind);
        }
        let encoding = Encoding::detect(bytes, true);
        let behind_mark = &bytes[encoding.mark().len()..];
        let body = match encoding.decoder() {
            None => return Ok(Text { body: behind_mark.to_vec(), encoding, exact: true }),
            Some(_) if encoding == Encoding::Windows1252 => WINDOWS_1252.decode_without_bom_handling(behind_mark).0,
            Some(decoder) => decoder.encoding().decode_without_bom_handling(behind_mark).0,
        };
        let body = body.into_owned().into_bytes();
        let exact = encoding.encode(&body).is_ok_and(|again| again == bytes);
        Ok(Text { body, encoding, exact })
    }
}

/// Text from a model as it goes into a file of this encoding: the mark belongs to the file, not to the text.
pub(crate) fn without_mark(text: &str, encoding: Encoding) -> &str {
    if encoding.mark().is_empty() { text } else { text.strip_prefix(BOM).unwrap_or(text) }
}

/// The refusal of a file that is no text.
pub(crate) fn not_text(shown: &str, kind: &'static str) -> FsError {
    FsError::WrongKind { path: shown.to_owned(), found: kind, wanted: "a text file" }
}

/// How lines end in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineEnds {
    /// `\n` alone.
    pub(crate) lf: usize,
    /// `\r\n`.
    pub(crate) crlf: usize,
    /// `\r` alone.
    pub(crate) cr: usize,
}

impl LineEnds {
    /// Counts them.
    pub(crate) fn of(body: &[u8]) -> LineEnds {
        let mut ends = LineEnds::default();
        for at in memchr::memchr2_iter(b'\r', b'\n', body) {
            match body[at] {
                b'\r' if body.get(at + 1) == Some(&b'\n') => ends.crlf += 1,
                b'\r' => ends.cr += 1,
                _ if at > 0 && body[at - 1] == b'\r' => {}
                _ => ends.lf += 1,
            }
        }
        ends
    }

    /// Every line ends in CRLF.
    pub(crate) fn only_crlf(self) -> bool {
        self.crlf > 0 && self.lf == 0 && self.cr == 0
    }

    /// Every line ends in a bare CR, as on old Macs.
    pub(crate) fn only_cr(self) -> bool {
        self.cr > 0 && self.lf == 0 && self.crlf == 0
    }
}
