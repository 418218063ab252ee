//! Read: a page of a text file, or an image.
//!
//! An image is kept as a blob and goes along with the result; the text says what it is, which is all that a model
//! without eyes gets.

use std::sync::LazyLock;

use async_trait::async_trait;
use hames_protocol::{BlobSource, Declaration, Effect, FileHash, Label, Part, Resource, ToolSpec, is_unprintable};
use hames_tools::{FileKind, FsError, FsPath, Tool, ToolCx, ToolFailure, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::change::{self, MAX_EDITED};
use super::super::image::{Image, ImageFault, ImageKind};
use super::super::local::{io_failure, wrong_kind};
use super::super::page::{Pager, Wanted};
use super::super::stream::{self, NoPage};
use super::super::text::{LineEnds, Text, not_text};
use super::super::write;
use super::{Outcome, arguments, or_default, text_of};

/// Lines of a page unless another number is asked for.
const DEFAULT_LINES: u64 = 2_000;

/// Bytes of a page at most.
const CAP: u64 = 50 * 1024;

/// Characters of an image's name that go along with it.
const MAX_NAME: usize = 200;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    super::spec(
        "Read",
        include_str!("read.md"),
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "offset": {"type": "integer", "description": "first line, from 1"},
                "limit": {"type": "integer", "description": "lines, 2000 by default"},
            },
            "required": ["path"],
        }),
    )
});

/// Reads a text file or an image.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read;

#[derive(Deserialize)]
struct Args {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("file_path", "path"),
            ("filePath", "path"),
            ("filename", "path"),
            ("file", "path"),
            ("start_line", "offset"),
            ("startLine", "offset"),
            ("lines", "limit"),
        ]
    }

    fn declare(&self, input: &Value) -> Declaration {
        let path = Resource::path(text_of(input, "path"), false);
        Declaration { cacheable: true, cap_bytes: Some(CAP), ..Declaration::new(Effect::Read, vec![path]) }
    }

    fn label(&self, input: &Value) -> Label {
        Label::new("Read", text_of(input, "path"))
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Outcome {
        let args: Args = arguments(input)?;
        cx.blocking(move |cx| read(&cx, &args)).await
    }
}

fn read(cx: &ToolCx, args: &Args) -> Outcome {
    let path = cx.resolve(&args.path)?;
    let stat = cx.fs.stat(&path)?;
    match stat.kind {
        FileKind::File => {}
        FileKind::Dir => {
            return Err(ToolFailure::failed(format!("{} is a folder; use List to see what is in it", path.shown)));
        }
        kind => return Err(wrong_kind(&path.shown, kind, "a file").into()),
    }
    let wanted = Wanted {
        offset: or_default(args.offset, 1),
        limit: or_default(args.limit, DEFAULT_LINES),
        cap_bytes: cx.cap_bytes,
        line_end: b'\n',
    };
    match cx.fs.read(&path, MAX_EDITED) {
        Ok(bytes) => match ImageKind::of(&bytes) {
            Some(kind) => show(cx, &path, kind, bytes),
            None => read_whole(&path, &bytes, wanted),
        },
        Err(FsError::TooLarge { .. }) => read_stream(cx, &path, stat.size, wanted),
        Err(error) => Err(error.into()),
    }
}

fn read_whole(path: &FsPath, bytes: &[u8], mut wanted: Wanted) -> Outcome {
    let text = Text::decode(bytes).map_err(|kind| refused(path, kind, bytes.len() as u64))?;
    if LineEnds::of(&text.body).only_cr() {
        wanted.line_end = b'\r';
    }
    let mut pager = Pager::new(wanted);
    pager.feed(&text.body);
    let files = vec![FileHash { path: change::key(path), hash: write::hash_of(bytes) }];
    Ok(ToolOutput { text: pager.finish(&path.shown, true), files, ..ToolOutput::default() })
}

/// An image: its kind and size as text, the image itself beside it.
fn show(cx: &ToolCx, path: &FsPath, kind: ImageKind, bytes: Vec<u8>) -> Outcome {
    let files = vec![FileHash { path: change::key(path), hash: write::hash_of(&bytes) }];
    let image = Image::examine(kind, bytes).map_err(|fault| unfit(path, fault))?;
    let text = format!("{}: {image}", path.shown);
    let blob = cx.put_blocking("", BlobSource::Bytes(image.bytes))?;
    let name = path.shown.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).take(MAX_NAME).collect();
    let attachment = Part::Image { blob, media_type: kind.media_type().into(), name: Some(name) };
    Ok(ToolOutput { files, attachments: vec![attachment], ..ToolOutput::text(text) })
}

fn unfit(path: &FsPath, fault: ImageFault) -> ToolFailure {
    ToolFailure::failed(format!("{} {fault}", path.shown))
}

/// Reads a page of a file of any size: up to the page's end and no further.
fn read_stream(cx: &ToolCx, path: &FsPath, size: u64, wanted: Wanted) -> Outcome {
    let mut file = cx.fs.open(path)?;
    let page = stream::page(&mut file, &path.shown, wanted, false, &cx.cancel);
    page.map(ToolOutput::text).map_err(|why| match why {
        NoPage::Io(error) => io_failure(&path.shown, error.to_string()).into(),
        NoPage::Image(kind) => unfit(path, ImageFault::TooLarge { kind, bytes: size }),
        NoPage::NotText(kind) => refused(path, kind, size),
        NoPage::Cancelled => ToolFailure::cancelled(),
    })
}

fn refused(path: &FsPath, kind: &'static str, size: u64) -> ToolFailure {
    let error = not_text(&path.shown, kind);
    let next = if kind.ends_with("image") || kind == "an icon" {
        "convert it to PNG with a command to see it"
    } else {
        "use a command to look into it"
    };
    ToolFailure::failed(format!("{error} ({size} bytes); {next}"))
}
