//! Images as models take them: PNG, JPEG, GIF and WebP, known by their bytes and never by a name.
//!
//! An [`Image`] has been looked at far enough to be sent: its size is within what the strictest of the large providers
//! takes, its dimensions are readable, and its end is there. A provider that refuses an image once refuses it in every
//! later request of the session, so what is plainly broken is found here. Nothing is decoded: pixels that make no
//! sense inside an intact file are not noticed.

use super::binary;

/// Bytes of an image at most: what the strictest of the large providers takes.
pub const MAX_IMAGE_BYTES: u64 = 8 * 1024 * 1024;

/// Pixels of a side at most: providers refuse larger images, or shrink them to less than this.
pub const MAX_IMAGE_SIDE: u32 = 8_000;

/// Bytes that are enough to tell what kind of image a file is.
pub const IMAGE_HEAD: usize = 64;

/// A kind of image that models take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl ImageKind {
    /// What kind of image a file is that begins so; `None` for everything else, and for text that happens to begin like
    /// an image. [`IMAGE_HEAD`] bytes are enough.
    pub fn of(head: &[u8]) -> Option<Self> {
        let kind = match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ImageKind::Png,
            [0xff, 0xd8, 0xff, ..] => ImageKind::Jpeg,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => ImageKind::Gif,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => ImageKind::Webp,
            _ => return None,
        };
        binary::kind(head).map(|_| kind)
    }

    /// `image/png` and the like.
    pub fn media_type(self) -> &'static str {
        match self {
            ImageKind::Png => "image/png",
            ImageKind::Jpeg => "image/jpeg",
            ImageKind::Gif => "image/gif",
            ImageKind::Webp => "image/webp",
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            ImageKind::Png => "PNG",
            ImageKind::Jpeg => "JPEG",
            ImageKind::Gif => "GIF",
            ImageKind::Webp => "WebP",
        }
    }

    /// Whether the file's end is there. What stands behind it is nobody's concern: cameras and editors add to files.
    fn is_whole(self, bytes: &[u8]) -> bool {
        match self {
            ImageKind::Png => memchr::memmem::rfind(bytes, b"IEND").is_some(),
            ImageKind::Jpeg => memchr::memmem::rfind(bytes, b"\xff\xd9").is_some(),
            // The trailer may be any byte of the data as well, so this finds only the grossest cut.
            ImageKind::Gif => bytes.len() > GIF_HEAD && memchr::memrchr(b';', &bytes[GIF_HEAD..]).is_some(),
            ImageKind::Webp => {
                let stated = bytes.get(4..8).and_then(|size| Some(u32::from_le_bytes(size.try_into().ok()?)));
                stated.is_some_and(|stated| bytes.len() as u64 >= u64::from(stated) + RIFF_HEAD)
            }
        }
    }
}

/// Bytes of a GIF before its blocks: signature and screen.
const GIF_HEAD: usize = 13;

/// Bytes of a RIFF file that its stated size leaves out.
const RIFF_HEAD: u64 = 8;

/// An image that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The kind.
    pub kind: ImageKind,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// The file as it is.
    pub bytes: Vec<u8>,
}

/// Why an image cannot be sent. Reads behind the image's name and says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageFault {
    /// More bytes than [`MAX_IMAGE_BYTES`].
    #[error(
        "is a {name} image of {bytes} bytes; {MAX_IMAGE_BYTES} are possible: make a smaller copy with a command and use \
         that",
        name = kind.name()
    )]
    TooLarge {
        /// The kind.
        kind: ImageKind,
        /// Its bytes.
        bytes: u64,
    },
    /// More pixels on a side than [`MAX_IMAGE_SIDE`].
    #[error(
        "is a {name} image of {width}×{height} pixels; {MAX_IMAGE_SIDE} a side are possible: make a smaller copy with a \
         command and use that",
        name = kind.name()
    )]
    TooWide {
        /// The kind.
        kind: ImageKind,
        /// Pixels.
        width: u64,
        /// Pixels.
        height: u64,
    },
    /// Cut off, or its head makes no sense.
    #[error("is a damaged {name} image of {bytes} bytes ({what}); make or fetch it again", name = kind.name())]
    Damaged {
        /// The kind.
        kind: ImageKind,
        /// Its bytes.
        bytes: u64,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl Image {
    /// Takes a file that [`ImageKind::of`] knows for an image.
    pub fn examine(kind: ImageKind, bytes: Vec<u8>) -> Result<Self, ImageFault> {
        let size = bytes.len() as u64;
        if size > MAX_IMAGE_BYTES {
            return Err(ImageFault::TooLarge { kind, bytes: size });
        }
        let damaged = |what| ImageFault::Damaged { kind, bytes: size, what };
        let dimensions = imagesize::blob_size(&bytes).map_err(|_| damaged("its dimensions cannot be read"))?;
        let (width, height) = (dimensions.width as u64, dimensions.height as u64);
        if width == 0 || height == 0 {
            return Err(damaged("it has no pixels"));
        }
        if !kind.is_whole(&bytes) {
            return Err(damaged("its end is missing"));
        }
        let side = |pixels: u64| u32::try_from(pixels).ok().filter(|pixels| *pixels <= MAX_IMAGE_SIDE);
        match (side(width), side(height)) {
            (Some(width), Some(height)) => Ok(Self { kind, width, height, bytes }),
            _ => Err(ImageFault::TooWide { kind, width, height }),
        }
    }
}

impl std::fmt::Display for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} image, {}×{} pixels, {} bytes", self.kind.name(), self.width, self.height, self.bytes.len())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [ImageKind; 4] = [ImageKind::Png, ImageKind::Jpeg, ImageKind::Gif, ImageKind::Webp];

    /// A file of this kind and size, with nothing in it that would have to be decoded.
    pub(crate) fn picture(kind: ImageKind, width: u16, height: u16) -> Vec<u8> {
        let (w, h) = (width.to_be_bytes(), height.to_be_bytes());
        let (wl, hl) = (width.to_le_bytes(), height.to_le_bytes());
        match kind {
            ImageKind::Png => {
                [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0"[..], &w, b"\0\0", &h, b"\x08\0\0\0\0crc.\0\0\0\0IEND\xaeB`\x82"]
                    .concat()
            }
            ImageKind::Jpeg => [
                &b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x0b\x08"[..],
                &h,
                &w,
                b"\x01\x01\x11\0\xff\xd9",
            ]
            .concat(),
            ImageKind::Gif => {
                [&b"GIF89a"[..], &wl, &hl, b"\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"]
                    .concat()
            }
            ImageKind::Webp => {
                let chunk = [&b"VP8 \x0a\0\0\0\x30\x01\0\x9d\x01\x2a"[..], &wl, &hl].concat();
                [&b"RIFF"[..], &(chunk.len() as u32 + 4).to_le_bytes(), b"WEBP", &chunk].concat()
            }
        }
    }

    #[test]
    fn kinds_and_dimensions_are_read_from_the_bytes() {
        for kind in KINDS {
            for (width, height) in [(1, 1), (640, 480), (8_000, 1), (3, 8_000)] {
                let bytes = picture(kind, width, height);
                assert_eq!(ImageKind::of(&bytes[..bytes.len().min(IMAGE_HEAD)]), Some(kind));
                let image = Image::examine(kind, bytes.clone()).unwrap();
                assert_eq!((image.width, image.height), (width.into(), height.into()), "{kind:?}");
                assert!(image.to_string().starts_with(&format!("{} image, {width}×{height} pixels, ", kind.name())));
                let more = [&bytes[..], b"added by a camera"].concat();
                assert!(Image::examine(kind, more).is_ok());
            }
        }
    }

    #[test]
    fn what_only_begins_like_an_image_is_none() {
        for head in [
            &b""[..],
            b"GIF89a is the name of a format",
            b"GIF88a\0\0\0",
            b"\x89PNG\n\x1a\n\0",
            b"\xff\xd8",
            b"RIFF\x10\0\0\0WAVEfmt ",
            b"RIFF\x10\0\0\0WEB",
            b"BM\x10\0\0\0",
            b"II*\0",
            b"<svg/>",
        ] {
            assert_eq!(ImageKind::of(head), None, "{}", head.escape_ascii());
        }
    }

    #[test]
    fn a_broken_image_says_what_is_wrong_with_it() {
        for kind in KINDS {
            let whole = picture(kind, 10, 10);
            for cut in [13, whole.len() - 1, whole.len() / 2] {
                let fault = Image::examine(kind, whole[..cut].to_vec());
                // A byte short, PNG and GIF may not show it.
                if cut + 1 < whole.len() || matches!(kind, ImageKind::Jpeg | ImageKind::Webp) {
                    assert!(matches!(fault, Err(ImageFault::Damaged { .. })), "{kind:?} {cut}: {fault:?}");
                }
            }
            let empty = Image::examine(kind, picture(kind, 0, 10)).unwrap_err();
            assert_eq!(
                empty.to_string(),
                format!(
                    "is a damaged {} image of {} bytes (it has no pixels); make or fetch it again",
                    kind.name(),
                    whole.len()
                )
            );
            let wide = Image::examine(kind, picture(kind, 8_001, 10)).unwrap_err();
            assert_eq!(wide, ImageFault::TooWide { kind, width: 8_001, height: 10 });
            let mut large = whole;
            large.resize(MAX_IMAGE_BYTES as usize + 1, 0);
            assert!(matches!(Image::examine(kind, large), Err(ImageFault::TooLarge { .. })));
        }
    }

    proptest! {
        #![proptest_config(super::super::properties::cases())]
        #[test]
        fn no_bytes_make_it_panic(at in 0..KINDS.len(), cut in 0usize..80, rest in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = picture(KINDS[at], 7, 7);
            bytes.truncate(cut);
            bytes.extend(rest);
            for kind in KINDS {
                let _ = Image::examine(kind, bytes.clone());
            }
        }
    }
}
