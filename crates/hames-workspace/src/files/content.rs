//! What a file holds, for whoever shows it to a model outside a tool. The tools tell it the same way.

use super::image::ImageKind;
use super::text::Text;

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text, decoded, without a byte order mark; bytes that are none became U+FFFD.
    Text(String),
    /// An image that models take, as far as its beginning tells.
    Image(ImageKind),
    /// Neither: what it is, with its article.
    Other(&'static str),
}

impl Content {
    /// Tells what a file holds by its bytes; the first 8 KiB are enough to tell the kind.
    ///
    /// ```
    /// use hames_workspace::files::Content;
    /// assert_eq!(Content::of(b"\xff\xfeh\0i\0"), Content::Text("hi".into()));
    /// assert_eq!(Content::of(b"%PDF-1.7"), Content::Other("a PDF document"));
    /// ```
    pub fn of(bytes: &[u8]) -> Self {
        if let Some(kind) = ImageKind::of(bytes) {
            return Content::Image(kind);
        }
        match Text::decode(bytes) {
            Ok(text) => Content::Text(match String::from_utf8(text.body) {
                Ok(body) => body,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
            Err(kind) => Content::Other(kind),
        }
    }
}
