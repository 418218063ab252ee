//! Exports and imports: bodies that are as long as a session, between a connection and a thread that may block.
//!
//! A few pieces at a time are on their way; whoever is slower makes the other wait.

use std::io::{self, BufReader, Read, Write};

use axum::body::Body;
use bytes::{Buf, Bytes};
use hames_protocol::api::ApiError;
use tokio::sync::mpsc;

use super::call::{Answered, Call, json, typed};
use super::refusal::{broken, invalid};

/// Bytes of a piece.
const PIECE: usize = 64 * 1024;
/// Pieces on their way.
const PIECES: usize = 4;
/// Bytes a line of an import may have; the same as an event may have on its way to a client.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// All events of a session, as lines.
pub(super) async fn export(call: Call) -> Answered {
    let session = call.session()?;
    let (sender, mut pieces) = mpsc::channel(PIECES);
    let hub = call.app.hub.clone();
    let exporting = tokio::spawn(async move { hub.export(&session, Outgoing { sender, piece: Vec::new() }).await });
    // What cannot be exported at all is a refusal and no empty export.
    let Some(first) = pieces.recv().await else {
        exporting.await.map_err(|_| broken())??;
        return Ok(typed("application/x-ndjson", Body::empty()));
    };
    let state = (Some(first), pieces, Some(exporting));
    let stream = futures_util::stream::unfold(state, |(first, mut pieces, exporting)| async move {
        let piece = match first {
            Some(first) => Some(first),
            None => pieces.recv().await,
        };
        if let Some(piece) = piece {
            return Some((Ok(piece), (None, pieces, exporting)));
        }
        // An export that broke off must not look whole: the connection breaks off too.
        match exporting?.await {
            Ok(Ok(_)) => None,
            Ok(Err(refusal)) => Some((Err(io::Error::other(refusal.message)), (None, pieces, None))),
            Err(error) => Some((Err(io::Error::other(error)), (None, pieces, None))),
        }
    });
    Ok(typed("application/x-ndjson", Body::from_stream(stream)))
}

/// Makes a session of lines.
pub(super) async fn import(mut call: Call) -> Answered {
    let folder = std::path::PathBuf::from(call.needed("folder")?);
    let mut body = call.pieces();
    let (sender, receiver) = mpsc::channel::<Result<Bytes, ApiError>>(PIECES);
    let feeding = async move {
        while let Some(piece) = body.next().await {
            let has_failed = piece.is_err();
            // Whoever reads has given up; why, its own answer says.
            if sender.send(piece).await.is_err() || has_failed {
                return;
            }
        }
    };
    let failure = std::sync::Arc::new(std::sync::Mutex::new(None));
    let incoming = Incoming { receiver, piece: Bytes::new(), line: 0, failure: failure.clone() };
    let reading = call.app.hub.import(&folder, BufReader::with_capacity(PIECE, incoming));
    let (imported, ()) = tokio::join!(reading, feeding);
    // A body that broke off says more than what the reader made of it.
    let failed = failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    match (imported, failed) {
        (Err(_), Some(refusal)) => Err(refusal),
        (imported, _) => json(&imported?),
    }
}

/// Writes pieces into a body.
struct Outgoing {
    sender: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        self.sender.blocking_send(piece).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// Reads a body that comes in pieces.
struct Incoming {
    receiver: mpsc::Receiver<Result<Bytes, ApiError>>,
    piece: Bytes,
    /// Bytes since the last line end.
    line: usize,
    /// Why the body broke off.
    failure: std::sync::Arc<std::sync::Mutex<Option<ApiError>>>,
}

impl Incoming {
    fn fail(&self, refusal: ApiError) -> io::Error {
        let error = io::Error::new(io::ErrorKind::InvalidData, refusal.message.clone());
        *self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(refusal);
        error
    }
}

impl Read for Incoming {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receiver.blocking_recv() {
                Some(Ok(piece)) => self.piece = piece,
                Some(Err(refusal)) => return Err(self.fail(refusal)),
                None => return Ok(0),
            }
        }
        let count = into.len().min(self.piece.len());
        let taken = &self.piece[..count];
        into[..count].copy_from_slice(taken);
        self.line = match taken.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => count - end - 1,
            None => self.line + count,
        };
        self.piece.advance(count);
        if self.line > MAX_LINE {
            return Err(self.fail(invalid(format!("A line is longer than {} MB.", MAX_LINE / 1024 / 1024))));
        }
        Ok(count)
    }
}
