//! Files that go along with a message, the clipboard's image, and exports.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use hames_protocol::SessionId;
use hames_protocol::api::ApiError;
use hames_protocol::api::endpoint::MAX_ATTACHMENT;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::failed;
use super::link::Links;
use crate::Answer;

/// How long a program may take to hand over the clipboard.
const CLIPBOARD_LIMIT: Duration = Duration::from_secs(5);
/// Programs that give the clipboard's image, as the desktops have them.
const CLIPBOARD: &[(&str, &[&str])] = &[
    ("wl-paste", &["--no-newline", "--type", "image/png"]),
    ("xclip", &["-selection", "clipboard", "-target", "image/png", "-out"]),
    ("pngpaste", &["-"]),
];

/// Where a path as a person writes it leads.
fn place(home: Option<PathBuf>, folder: &Path, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(path),
    }
}

/// Reads a file, whole, up to what an attachment may have.
pub(super) async fn read(home: Option<PathBuf>, folder: PathBuf, path: String) -> Result<Answer, ApiError> {
    let place = place(home, &folder, &path);
    let said = |what: String| failed(format!("{} cannot be attached: {what}", place.display()));
    let info = tokio::fs::metadata(&place).await.map_err(|error| said(error.to_string()))?;
    if !info.is_file() {
        return Err(said("it is no file".into()));
    }
    if info.len() > MAX_ATTACHMENT as u64 {
        return Err(said(format!("it is larger than {} MB", MAX_ATTACHMENT / 1024 / 1024)));
    }
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(&place).await.map_err(|error| said(error.to_string()))?;
    let read = file.take(MAX_ATTACHMENT as u64).read_to_end(&mut bytes).await;
    read.map_err(|error| said(error.to_string()))?;
    let name = place.file_name().map_or(path, |name| name.to_string_lossy().into_owned());
    Ok(Answer::Read { name, bytes })
}

/// Asks the desktop for the image in its clipboard.
pub(super) async fn clipboard_image() -> Result<Answer, ApiError> {
    let mut has_program = false;
    for (program, args) in CLIPBOARD {
        let mut command = tokio::process::Command::new(program);
        command.args(*args).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let Ok(mut child) = command.spawn() else { continue };
        has_program = true;
        let mut bytes = Vec::new();
        let Some(out) = child.stdout.take() else { continue };
        let mut out = out.take(MAX_ATTACHMENT as u64);
        let read = tokio::time::timeout(CLIPBOARD_LIMIT, out.read_to_end(&mut bytes)).await;
        if matches!(read, Ok(Ok(_))) && !bytes.is_empty() {
            return Ok(Answer::Read { name: "clipboard.png".into(), bytes });
        }
    }
    Err(failed(if has_program {
        "there is no image in the clipboard"
    } else {
        "no program here gives the clipboard's image; install wl-clipboard, xclip or pngpaste, or write the image's path"
    }))
}

/// Writes a session's export into a new file.
pub(super) async fn export(
    links: Arc<Links>,
    session: SessionId,
    home: Option<PathBuf>,
    folder: PathBuf,
    path: String,
) -> Result<Answer, ApiError> {
    let place = place(home, &folder, &path);
    let said = |what: String| failed(format!("{} cannot be written: {what}", place.display()));
    let client = links.client(true).await.ok_or_else(|| failed("the program ends"))?;
    let mut lines = client.export_session(&session).await.map_err(|error| failed(error.to_string()))?;
    let file = tokio::fs::OpenOptions::new().write(true).create_new(true).open(&place).await;
    let mut file = file.map_err(|error| said(error.to_string()))?;
    while let Some(piece) = lines.next().await {
        let piece = piece.map_err(|error| said(error.to_string()))?;
        file.write_all(&piece).await.map_err(|error| said(error.to_string()))?;
    }
    file.flush().await.map_err(|error| said(error.to_string()))?;
    Ok(Answer::Saved(place.display().to_string()))
}
