//! A session as lines of JSON: its events as they are in the log, then the blobs they name, in pieces.
//!
//! A piece is `{"blob":HASH,"bytes":SIZE,"at":OFFSET,"base64":…}`; the pieces of one blob follow one another. Readers of
//! events pass over lines without an `event`.

use std::io::Write;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hames_protocol::{LogError, SessionId};
use serde::{Deserialize, Serialize};

use crate::marks::Marks;
use crate::row::SEQ_MAX;
use crate::{Store, blobs, past, read};

/// Bytes of a blob in one line.
pub(crate) const PIECE: u64 = 64 * 1024;
/// Bytes of blobs that an export holds where nothing else is asked for.
pub const EXPORT_BLOB_BYTES: u64 = 1 << 30;

/// A piece of a blob, as a line of an export.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// The blob's hash.
    pub(crate) blob: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Where in it this piece begins.
    pub(crate) at: u64,
    /// The content.
    pub(crate) base64: String,
}

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Events.
    pub events: u64,
    /// Blobs.
    pub blobs: u64,
    /// Blobs that the events name and that were left out, for want of room or because they are gone.
    pub left_out: u64,
}

impl Store {
    /// Writes a session with the blobs its events name, as long as these are no more than `blob_bytes` in all; 0 leaves
    /// them out. Holds little of it in memory.
    pub fn export_whole(&self, id: &SessionId, blob_bytes: u64, out: &mut dyn Write) -> Result<Exported, LogError> {
        let events = read::export(|after, limit| self.inner.read(|db| read::events(db, id, after, limit)), out)?;
        let named = self.inner.read(|db| {
            let (number, _) = past::position(db, id)?;
            blobs::referred(db, number, &Marks::of(db, number, 1, SEQ_MAX)?)
        })?;
        let mut exported = Exported { events, ..Exported::default() };
        let mut room = blob_bytes;
        for (hash, bytes) in named {
            if bytes > room || !self.export_blob(&hash, bytes, out)? {
                exported.left_out += 1;
                continue;
            }
            room -= bytes;
            exported.blobs += 1;
        }
        out.flush().map_err(|e| broken_off(&e))?;
        Ok(exported)
    }

    /// Writes one blob; `false`, and nothing, where its content is gone.
    fn export_blob(&self, hash: &str, bytes: u64, out: &mut dyn Write) -> Result<bool, LogError> {
        let mut at = 0;
        loop {
            let piece = match self.inner.read(|db| blobs::get(db, self.inner.home(), hash, at, PIECE)) {
                Ok(piece) => piece,
                Err(LogError::Damaged(_)) if at == 0 => return Ok(false),
                Err(error) => return Err(error),
            };
            let read = piece.len() as u64;
            if read == 0 && at < bytes {
                return if at == 0 { Ok(false) } else { Err(shorter(hash)) };
            }
            let line = Piece { blob: hash.to_owned(), bytes, at, base64: BASE64_STANDARD.encode(&piece) };
            serde_json::to_writer(&mut *out, &line).map_err(|e| broken_off(&e.into()))?;
            out.write_all(b"\n").map_err(|e| broken_off(&e))?;
            at += read;
            if at >= bytes {
                return Ok(true);
            }
        }
    }
}

fn shorter(hash: &str) -> LogError {
    LogError::Damaged(format!("the output kept as blob {hash} is shorter than it was; export without blobs"))
}

fn broken_off(error: &std::io::Error) -> LogError {
    LogError::Io(format!("the export was broken off: {error}"))
}
