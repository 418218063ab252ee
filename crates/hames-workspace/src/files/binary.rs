//! Telling text from everything else, and naming the common kinds of everything else.

/// Bytes looked at.
const HEAD: usize = 8 * 1024;

/// What a file begins with, and what it is then.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\x01\0", "an icon"),
    (b"8BPS", "a Photoshop image"),
    (b"PK\x03\x04", "a ZIP archive (or an office document)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
    (b"\0asm", "a WebAssembly module"),
    (b"!<arch>\n", "an object archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "an MP3 recording"),
    (b"fLaC", "a FLAC recording"),
    (b"\x1aE\xdf\xa3", "a Matroska video"),
    (b"wOFF", "a WOFF font"),
    (b"wOF2", "a WOFF2 font"),
    (b"\0\x01\0\0", "a TrueType font"),
    (b"OTTO", "an OpenType font"),
];

/// Like [`MAGIC`], but the bytes stand at some distance from the beginning.
const MAGIC_AT: &[(usize, &[u8], &str)] = &[
    (8, b"WEBP", "a WebP image"),
    (8, b"WAVE", "a WAV recording"),
    (8, b"AVI ", "an AVI video"),
    (4, b"ftypavif", "an AVIF image"),
    (4, b"ftyphei", "a HEIF image"),
    (4, b"ftyp", "an MP4 video"),
    (257, b"ustar", "a tar archive"),
    (4, b"1AY&SY", "bzip2 data"),
];

/// What a file is, with its article, where it is no text. `head` is its beginning, or all of it.
pub(crate) fn kind(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(HEAD)];
    if head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff") {
        return Some("UTF-32 text");
    }
    if head.starts_with(b"%PDF-") {
        return Some("a PDF document");
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return None;
    }
    let magic = MAGIC.iter().map(|(magic, kind)| (0, *magic, *kind)).chain(MAGIC_AT.iter().copied());
    let mut found = magic.filter(|(at, magic, _)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
    if memchr::memchr(0, head).is_some() {
        return Some(found.next().map_or("a binary file", |(_, _, kind)| kind));
    }
    // Without a NUL it may still be text in a legacy encoding that begins with the same letters.
    let telling = |magic: &[u8]| magic.len() >= 6 || magic.iter().any(|byte| !byte.is_ascii() || *byte < b'\t');
    found.find(|(_, magic, _)| telling(magic) && has_stray_bytes(head)).map(|(_, _, kind)| kind)
}

fn has_stray_bytes(head: &[u8]) -> bool {
    match std::str::from_utf8(head) {
        Ok(_) => false,
        // A character cut off by the end of the head is no stray byte.
        Err(error) => error.error_len().is_some(),
    }
}
