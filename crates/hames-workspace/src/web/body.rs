//! What came over the wire, as text: what kind of thing it is, unpacked, decoded.

use std::io::Write;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use flate2::write::MultiGzDecoder;

/// Bytes of a page in which it may say how it is encoded.
const PRESCAN: usize = 1024;

/// What a response says it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MediaType {
    /// `text/html` and the like, in lower case; empty where nothing is said.
    pub(super) essence: String,
    /// The charset it names.
    pub(super) charset: Option<&'static Encoding>,
}

/// How content is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// As Markdown.
    Html,
    /// As it is.
    Text,
    /// As its bytes say: nothing is said, or nothing that helps.
    Unknown,
    /// Only named.
    Named,
}

impl MediaType {
    pub(super) fn parse(header: &str) -> Self {
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let label = value.trim().trim_matches(['"', '\'']);
            name.trim().eq_ignore_ascii_case("charset").then(|| Encoding::for_label(label.as_bytes()))?
        });
        Self { essence, charset }
    }

    pub(super) fn shown(&self) -> Shown {
        let essence = self.essence.as_str();
        let (kind, name) = essence.split_once('/').unwrap_or((essence, ""));
        let suffix = name.rsplit('+').next().unwrap_or_default();
        match (kind, name) {
            ("text", "html") | ("application", "xhtml+xml") => Shown::Html,
            ("text", _) => Shown::Text,
            ("application", _) if matches!(suffix, "json" | "xml" | "yaml" | "toml") => Shown::Text,
            (
                "application",
                "javascript" | "ecmascript" | "x-javascript" | "typescript" | "x-ndjson" | "jsonl" | "x-yaml"
                | "x-toml" | "x-sh" | "x-shellscript" | "x-httpd-php" | "x-python" | "graphql" | "sql" | "rtf"
                | "x-tex" | "x-latex" | "x-subrip",
            ) => Shown::Text,
            ("image", "svg+xml") => Shown::Text,
            ("image" | "audio" | "video" | "font" | "model", _) => Shown::Named,
            ("application", "pdf" | "zip" | "gzip" | "x-gzip" | "x-tar" | "wasm" | "x-7z-compressed") => Shown::Named,
            _ => Shown::Unknown,
        }
    }
}

/// Bytes that begin like a page.
pub(super) fn looks_like_html(head: &[u8]) -> bool {
    let head = &head[..head.len().min(PRESCAN)];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start().to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html", b"<head", b"<body"].iter().any(|start| head.starts_with(start))
}

/// The text of a body: by its byte order mark, the header, or what the page says of itself, in this order; else UTF-8
/// where it is that, else windows-1252, as browsers do.
pub(super) fn decode(bytes: &[u8], charset: Option<&'static Encoding>, is_html: bool, whole: bool) -> String {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding.decode(bytes).0.into_owned();
    }
    let charset = charset.or_else(|| stated(&bytes[..bytes.len().min(PRESCAN)], is_html));
    let encoding = charset.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // The last character may have been cut off with the rest.
        Err(error) if !whole && error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    });
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// The encoding that the beginning of a page or of an XML document names.
fn stated(head: &[u8], is_html: bool) -> Option<&'static Encoding> {
    let head = head.to_ascii_lowercase();
    let word = if is_html { &b"charset"[..] } else { b"encoding" };
    let inside = if is_html { &b"<meta"[..] } else { b"<?xml" };
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(&head[from..], inside) {
        let start = from + at;
        let end = memchr::memchr(b'>', &head[start..]).map_or(head.len(), |end| start + end);
        if let Some(label) = label_behind(&head[start..end], word) {
            let encoding = Encoding::for_label(label)?;
            // A page whose beginning can be read as ASCII is no UTF-16.
            let is_wide = encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
            return Some(if is_wide { UTF_8 } else { encoding });
        }
        from = end.max(start + 1);
    }
    None
}

fn label_behind<'h>(tag: &'h [u8], word: &[u8]) -> Option<&'h [u8]> {
    let at = memchr::memmem::find(tag, word)? + word.len();
    let rest = tag[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|b| b.is_ascii_whitespace() || b"\"';/>?".contains(b)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
}

impl Packing {
    /// Reads a `Content-Encoding`; its text where it is one that was not asked for.
    pub(super) fn parse(header: &str) -> Result<Self, String> {
        let mut packings =
            header.split(',').map(str::trim).filter(|p| !p.is_empty() && !p.eq_ignore_ascii_case("identity"));
        match (packings.next(), packings.next()) {
            (None, _) => Ok(Packing::Plain),
            (Some(one), None) if matches!(one.to_ascii_lowercase().as_str(), "gzip" | "x-gzip") => Ok(Packing::Gzip),
            _ => Err(header.chars().filter(|c| !c.is_control()).take(40).collect()),
        }
    }
}

/// Collects a body, unpacked, up to a limit: what few bytes unpack to is never held beyond it.
pub(super) struct Collector {
    limit: usize,
    unpack: Unpack,
}

enum Unpack {
    Plain(Limited),
    Gzip(Box<MultiGzDecoder<Limited>>),
}

/// Bytes up to a limit; a write beyond it fails.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.limit - self.bytes.len();
        if room == 0 && !bytes.is_empty() {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(room);
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What became of a piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// There is room for more.
    All,
    /// The limit is reached.
    Full,
    /// It cannot be unpacked from here on.
    Damaged,
}

impl Collector {
    pub(super) fn new(packing: Packing, limit: usize) -> Self {
        // One byte more tells a body that ends at the limit from one that goes on.
        let limited = Limited { bytes: Vec::new(), limit: limit + 1 };
        let unpack = match packing {
            Packing::Plain => Unpack::Plain(limited),
            Packing::Gzip => Unpack::Gzip(Box::new(MultiGzDecoder::new(limited))),
        };
        Self { limit, unpack }
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.held().bytes.len()
    }

    /// What there is so far.
    pub(super) fn so_far(&self) -> &[u8] {
        &self.held().bytes
    }

    fn held(&self) -> &Limited {
        match &self.unpack {
            Unpack::Plain(limited) => limited,
            Unpack::Gzip(decoder) => decoder.get_ref(),
        }
    }

    /// Takes the next piece.
    pub(super) fn take(&mut self, piece: &[u8]) -> Taken {
        let written = match &mut self.unpack {
            Unpack::Plain(limited) => limited.write_all(piece),
            Unpack::Gzip(decoder) => decoder.write_all(piece),
        };
        if self.held().bytes.len() > self.limit {
            return Taken::Full;
        }
        match written {
            Ok(()) => Taken::All,
            Err(_) => Taken::Damaged,
        }
    }

    /// What was collected, and whether the packing came to its end.
    pub(super) fn finish(self) -> (Vec<u8>, bool) {
        let limit = self.limit;
        let (mut bytes, whole) = match self.unpack {
            Unpack::Plain(limited) => (limited.bytes, true),
            Unpack::Gzip(mut decoder) => {
                let whole = decoder.try_finish().is_ok();
                (std::mem::take(&mut decoder.get_mut().bytes), whole)
            }
        };
        bytes.truncate(limit);
        (bytes, whole)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_content_type_says_how_it_is_shown() {
        for (header, shown, charset) in [
            ("text/html", Shown::Html, None),
            ("Text/HTML; Charset=\"ISO-8859-2\"", Shown::Html, Some("ISO-8859-2")),
            ("application/xhtml+xml; charset=utf-8", Shown::Html, Some("UTF-8")),
            ("text/plain;charset=shift_jis", Shown::Text, Some("Shift_JIS")),
            ("text/markdown", Shown::Text, None),
            ("application/json", Shown::Text, None),
            ("application/ld+json; profile=x", Shown::Text, None),
            ("application/vnd.api+json", Shown::Text, None),
            ("application/atom+xml", Shown::Text, None),
            ("application/javascript", Shown::Text, None),
            ("image/svg+xml", Shown::Text, None),
            ("image/png", Shown::Named, None),
            ("application/pdf", Shown::Named, None),
            ("application/octet-stream", Shown::Unknown, None),
            ("", Shown::Unknown, None),
            ("garbage", Shown::Unknown, None),
            ("text/plain; charset=no-such-thing", Shown::Text, None),
            ("text/plain; charset", Shown::Text, None),
        ] {
            let media = MediaType::parse(header);
            assert_eq!((media.shown(), media.charset.map(Encoding::name)), (shown, charset), "{header}");
        }
    }

    #[test]
    fn text_is_decoded_as_mark_header_or_page_say() {
        let latin2 = Encoding::for_label(b"iso-8859-2");
        for (bytes, charset, is_html, text) in [
            ("grüße".as_bytes(), None, false, "grüße"),
            (b"gr\xfc\xdfe", None, false, "grüße"),
            (b"\xb1", latin2, false, "ą"),
            (b"\xff\xfeh\0i\0", latin2, false, "hi"),
            (b"\xef\xbb\xbf\xc4\x85", latin2, false, "ą"),
            (b"<meta charset=\"iso-8859-2\">\xb1", None, true, "<meta charset=\"iso-8859-2\">ą"),
            (
                b"<META HTTP-EQUIV=x content='text/html; charset=koi8-r'>\xc1",
                None,
                true,
                "<META HTTP-EQUIV=x content='text/html; charset=koi8-r'>а",
            ),
            (
                b"<meta name=a><meta charset = shift_jis >\x82\xa0",
                None,
                true,
                "<meta name=a><meta charset = shift_jis >あ",
            ),
            (b"<meta charset=utf-16>x", None, true, "<meta charset=utf-16>x"),
            (b"<meta charset=nonsense>\xfc", None, true, "<meta charset=nonsense>ü"),
            (b"<meta charset=", None, true, "<meta charset="),
            (
                b"<?xml version='1.0' encoding='iso-8859-2'?>\xb1",
                None,
                false,
                "<?xml version='1.0' encoding='iso-8859-2'?>ą",
            ),
        ] {
            assert_eq!(decode(bytes, charset, is_html, true), text, "{}", bytes.escape_ascii());
        }
        assert_eq!(decode(b"cut \xe6\xbc", None, false, false), "cut \u{fffd}");
    }

    #[test]
    fn a_packed_body_is_unpacked_up_to_the_limit() {
        let bomb = packed(&vec![0; 50 << 20]);
        assert!(bomb.len() < 100 << 10);
        let mut collector = Collector::new(Packing::Gzip, 1000);
        assert_eq!(collector.take(&bomb), Taken::Full);
        assert_eq!(collector.finish().0.len(), 1000);
        for (bytes, taken, whole) in [
            (packed(b"hello"), Taken::All, true),
            ([packed(b"hel"), packed(b"lo")].concat(), Taken::All, true),
            (packed(b"hello")[..10].to_vec(), Taken::All, false),
            (b"no packed body at all".to_vec(), Taken::Damaged, false),
            (b"hello".to_vec(), Taken::All, false),
        ] {
            let mut collector = Collector::new(Packing::Gzip, 100);
            assert_eq!(collector.take(&bytes), taken, "{bytes:?}");
            assert_eq!(collector.finish().1, whole, "{bytes:?}");
        }
    }

    #[test]
    fn a_body_that_ends_at_the_limit_is_whole() {
        for (size, taken) in [(99, Taken::All), (100, Taken::All), (101, Taken::Full), (500, Taken::Full)] {
            let mut collector = Collector::new(Packing::Plain, 100);
            assert_eq!(collector.take(&vec![b'x'; size]), taken, "{size}");
            assert_eq!(collector.finish().0.len(), size.min(100));
        }
    }

    #[test]
    fn packings_that_were_not_asked_for_are_named() {
        for (header, expected) in [
            ("", Ok(Packing::Plain)),
            ("identity", Ok(Packing::Plain)),
            ("gzip", Ok(Packing::Gzip)),
            ("X-GZIP", Ok(Packing::Gzip)),
            ("identity, gzip", Ok(Packing::Gzip)),
            ("br", Err("br".to_owned())),
            ("gzip, gzip", Err("gzip, gzip".to_owned())),
            ("deflate\u{7}", Err("deflate".to_owned())),
        ] {
            assert_eq!(Packing::parse(header), expected, "{header}");
        }
    }

    proptest! {
        #![proptest_config(crate::files::properties::cases())]
        #[test]
        fn no_body_makes_it_panic_or_grow(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1usize..50, is_html: bool) {
            for packing in [Packing::Plain, Packing::Gzip] {
                let mut collector = Collector::new(packing, 100);
                for piece in bytes.chunks(piece) {
                    if collector.take(piece) != Taken::All {
                        break;
                    }
                }
                let (bytes, whole) = collector.finish();
                prop_assert!(bytes.len() <= 100);
                decode(&bytes, None, is_html, whole);
            }
        }
    }
}
