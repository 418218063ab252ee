//! The end of a call as it is recorded: secrets masked, the text capped, the whole kept and pointed to.

use std::io::{BufReader, BufWriter, Write};

use hames_protocol::{
    BlobRef, BlobSource, Diff, Event, Failure, Part, SessionState, ToolDone, ToolError, ToolErrorClass,
};

use super::call::{Ended, Origin};
use super::{Parts, RunCx};
use crate::cap::cut;
use crate::locks::OutputNames;
use crate::tempfile_path::{PREFIX, TempFile};
use crate::{Secrets, ToolFailure, ToolOutput, Whole};

/// Bytes of one diff in an event. It is for people to look at; the files themselves are kept.
const MAX_DIFF: usize = 256 << 10;

/// Records the end of a call, and with it that of the calls that get the same.
pub(super) async fn report(
    parts: &Parts,
    cx: &RunCx,
    names: &OutputNames,
    origin: Origin,
    ended: Ended,
    shared: &[Origin],
) -> Result<(), Failure> {
    let cap = origin.cap(parts);
    let took = u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX);
    let (text, whole, end) = match ended.result {
        Ok(ToolOutput { mut text, whole, diffs, files, exit_code, attachments, capability }) => {
            let attachments = clean_attachments(parts, attachments, &mut text).await;
            let text = if text.trim().is_empty() { "(no output)".into() } else { text };
            let diffs = diffs.into_iter().map(|diff| clean_diff(&parts.secrets, diff)).collect();
            (text, whole, End::Done { diffs, files, exit_code, attachments, capability })
        }
        Err(ToolFailure { class, text, whole }) => {
            let text = if text.trim().is_empty() { "It failed and did not say why.".into() } else { text };
            (text, whole, End::Error(class))
        }
    };
    let text = parts.secrets.mask(&text).into_owned();
    let Some(source) = whole_of(parts, whole, &text, cap).await else {
        return cx.emit.record(with_shared(end.event(&origin, text, None, took), shared)).await;
    };

    // Held until the record is made: a name that comes to nothing is the next one's.
    let mut last = names.lock().await;
    let number = blobs_so_far(cx).max(*last) + 1;
    let kept = match source {
        Ok((source, _temp)) => {
            parts.blobs.put(&cx.session, &format!("out-{number}"), source).await.map_err(|e| e.to_string())
        }
        Err(reason) => Err(reason),
    };
    let text = point_to(text, cap, &kept, parts.tools.recaller());
    let blob = kept.ok();
    let is_kept = blob.is_some();
    cx.emit.record(with_shared(end.event(&origin, text, blob, took), shared)).await?;
    if is_kept {
        *last = number;
    }
    Ok(())
}

enum End {
    Done {
        diffs: Vec<Diff>,
        files: Vec<hames_protocol::FileHash>,
        exit_code: Option<i32>,
        attachments: Vec<Part>,
        capability: bool,
    },
    Error(ToolErrorClass),
}

impl End {
    fn event(self, origin: &Origin, text: String, blob: Option<BlobRef>, duration_ms: u64) -> Event {
        let text = text + &origin.note_line();
        let (call_id, name) = (origin.call_id.clone(), origin.name.clone());
        match self {
            End::Done { diffs, files, exit_code, attachments, capability } => ToolDone {
                call_id,
                name,
                output: text,
                blob,
                diffs,
                files,
                exit_code,
                attachments,
                duration_ms,
                served_from: None,
                capability,
            }
            .into(),
            End::Error(class) => ToolError { call_id, name, error: text, class, blob, duration_ms }.into(),
        }
    }
}

/// The end of a call and the same end for calls of its step that are equal to it.
fn with_shared(end: Event, shared: &[Origin]) -> Vec<Event> {
    const SAME: &str = "[The same call stands earlier in this step and was run once. This is its result.]\n";
    let mut events = vec![end];
    for origin in shared {
        let (call_id, name) = (origin.call_id.clone(), origin.name.clone());
        events.extend(match &events[0] {
            Event::ToolDone(done) => Some(
                ToolDone {
                    call_id,
                    name,
                    output: format!("{SAME}{}", done.output),
                    diffs: Vec::new(),
                    duration_ms: 0,
                    served_from: Some(done.call_id.clone()),
                    ..done.clone()
                }
                .into(),
            ),
            Event::ToolError(error) => Some(
                ToolError { call_id, name, error: format!("{SAME}{}", error.error), duration_ms: 0, ..error.clone() }
                    .into(),
            ),
            _ => None,
        });
    }
    events
}

fn blobs_so_far(cx: &RunCx) -> u32 {
    let state: std::sync::MutexGuard<'_, SessionState> =
        cx.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    state.blobs
}

/// What is to be kept: `None` where the window gets everything. The temporary file lives until it is kept.
async fn whole_of(
    parts: &Parts,
    whole: Whole,
    text: &str,
    cap: usize,
) -> Option<Result<(BlobSource, Option<TempFile>), String>> {
    let secrets = &parts.secrets;
    match whole {
        Whole::None if text.len() <= cap => None,
        Whole::None => Some(Ok((BlobSource::Bytes(text.as_bytes().to_vec()), None))),
        Whole::Bytes(bytes) => {
            let clean = match secrets.mask_bytes(&bytes) {
                std::borrow::Cow::Owned(clean) => Some(clean),
                std::borrow::Cow::Borrowed(_) => None,
            };
            Some(Ok((BlobSource::Bytes(clean.unwrap_or(bytes)), None)))
        }
        Whole::File { path, dropped } => {
            let clean = if secrets.is_empty() { Ok(path) } else { masked_file(secrets.clone(), path).await };
            Some(clean.map(|file| (BlobSource::File { path: file.path().to_path_buf(), dropped }, Some(file))))
        }
    }
}

/// The file without secrets: itself, where it has none.
async fn masked_file(secrets: std::sync::Arc<Secrets>, file: TempFile) -> Result<TempFile, String> {
    let work = move || -> std::io::Result<TempFile> {
        let folder = file.path().parent().unwrap_or(std::path::Path::new("."));
        let mut copy = tempfile::Builder::new().prefix(PREFIX).tempfile_in(folder)?;
        let mut from = BufReader::new(std::fs::File::open(file.path())?);
        let mut to = BufWriter::new(copy.as_file_mut());
        let found = secrets.mask_stream(&mut from, &mut to)?;
        if !found {
            return Ok(file);
        }
        to.flush()?;
        drop(to);
        let path = copy.into_temp_path().keep().map_err(|e| e.error)?;
        Ok(TempFile::adopt(path))
    };
    let done = tokio::task::spawn_blocking(work).await.map_err(|crash| crash.to_string())?;
    done.map_err(|error| error.to_string())
}

/// The text with a line that says where the whole is, and which tool shows parts of it.
fn point_to(text: String, cap: usize, kept: &Result<BlobRef, String>, recaller: Option<&str>) -> String {
    let place = match kept {
        Ok(blob) => format!("the whole output is kept as {}", blob.name.as_deref().unwrap_or(&blob.hash)),
        Err(reason) => format!("the whole output could not be kept: {}", reason.chars().take(120).collect::<String>()),
    };
    let how = recaller.filter(|_| kept.is_ok()).map(|tool| format!("; {tool} shows it")).unwrap_or_default();
    if text.len() > cap {
        return cut(text, cap, |left_out| format!("[{left_out} bytes left out here; {place}{how}]"));
    }
    let size = kept.as_ref().map(|blob| format!(" ({} bytes)", blob.bytes)).unwrap_or_default();
    let text = format!("{}\n[{place}{size}{how}]", text.trim_end_matches('\n'));
    cut(text, cap, |left_out| format!("[{left_out} bytes left out here]"))
}

/// What goes along with a result, without secrets: a name is masked, an image that holds one is left out, because
/// masking would break it.
async fn clean_attachments(parts: &Parts, attachments: Vec<Part>, text: &mut String) -> Vec<Part> {
    let secrets = &parts.secrets;
    if secrets.is_empty() {
        return attachments;
    }
    let mut clean = Vec::with_capacity(attachments.len());
    for attachment in attachments {
        match attachment {
            Part::Text { text } => clean.push(Part::text(secrets.mask(&text))),
            Part::Image { blob, media_type, name } => {
                let bytes = parts.blobs.get(&blob.hash, 0, blob.bytes).await.unwrap_or_default();
                if matches!(secrets.mask_bytes(&bytes), std::borrow::Cow::Owned(_)) {
                    text.push_str("\n[The image is not shown: a known key is written in it.]");
                    continue;
                }
                let name = name.map(|name| secrets.mask(&name).into_owned());
                clean.push(Part::Image { blob, media_type, name });
            }
        }
    }
    clean
}

fn clean_diff(secrets: &Secrets, diff: Diff) -> Diff {
    let text = cut(secrets.mask(&diff.text).into_owned(), MAX_DIFF, |n| format!("[{n} bytes of this diff left out]"));
    Diff { path: secrets.mask(&diff.path).into_owned(), text, ..diff }
}
