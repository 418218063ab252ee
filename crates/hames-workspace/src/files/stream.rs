//! A page of text out of a stream of any size: decoded, up to the page's end and no further.

use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

use super::binary;
use super::image::ImageKind;
use super::page::{Pager, Wanted};
use super::text::Encoding;

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum NoPage {
    /// The stream could not be read.
    Io(io::Error),
    /// It is an image.
    Image(ImageKind),
    /// It is something else that is no text: what, with its article.
    NotText(&'static str),
    /// The caller cancelled.
    Cancelled,
}

/// Reads a page. `shown` names the stream; with `to_end` it is read to its end, so that the number of its lines is known.
pub(crate) fn page(
    stream: &mut dyn Read,
    shown: &str,
    wanted: Wanted,
    to_end: bool,
    cancel: &CancellationToken,
) -> Result<String, NoPage> {
    let mut piece = vec![0; PIECE];
    let mut filled = 0;
    while filled < PIECE {
        match read(stream, &mut piece[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    if let Some(kind) = ImageKind::of(&piece[..filled]) {
        return Err(NoPage::Image(kind));
    }
    if let Some(kind) = binary::kind(&piece[..filled]) {
        return Err(NoPage::NotText(kind));
    }
    let encoding = Encoding::detect(&piece[..filled], false);
    let mut decoder = encoding.decoder();
    let mut text = String::new();
    let mut pager = Pager::new(wanted);
    let mut from = encoding.mark().len().min(filled);
    loop {
        let at_end = filled == 0;
        match &mut decoder {
            None => pager.feed(&piece[from..filled]),
            Some(decoder) => {
                text.clear();
                text.reserve(decoder.max_utf8_buffer_length(filled - from).unwrap_or(PIECE * 4));
                let _ = decoder.decode_to_string(&piece[from..filled], &mut text, at_end);
                pager.feed(text.as_bytes());
            }
        }
        if at_end || (pager.is_full() && !to_end) {
            return Ok(pager.finish(shown, at_end));
        }
        if cancel.is_cancelled() {
            return Err(NoPage::Cancelled);
        }
        from = 0;
        filled = read(stream, &mut piece)?;
    }
}

fn read(stream: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, NoPage> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read.map_err(NoPage::Io),
        }
    }
}
