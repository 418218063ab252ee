//! A kept output as a stream, with a line where its middle is missing.

use std::io::{self, Read};
use std::sync::Arc;

use hames_protocol::{BlobRef, BlobStore};
use hames_tools::ToolCx;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Bytes fetched at a time: few trips to the store, little memory.
const PIECE: u64 = 512 * 1024;

/// Reads a blob from its beginning to its end. Blocks; made for the threads that may.
pub(super) struct Kept {
    blobs: Arc<dyn BlobStore>,
    runtime: Handle,
    cancel: CancellationToken,
    hash: String,
    /// Bytes of the blob.
    bytes: u64,
    /// Bytes that were left out of its middle when it was kept.
    dropped: u64,
    /// Bytes fetched so far.
    at: u64,
    /// What was fetched and not yet read.
    held: Vec<u8>,
    read: usize,
    gap_passed: bool,
}

impl Kept {
    pub(super) fn new(blob: &BlobRef, cx: &ToolCx) -> Self {
        Self {
            blobs: cx.blobs.clone(),
            runtime: Handle::current(),
            cancel: cx.cancel.clone(),
            hash: blob.hash.clone(),
            bytes: blob.bytes,
            dropped: blob.dropped,
            at: 0,
            held: Vec::new(),
            read: 0,
            gap_passed: blob.dropped == 0,
        }
    }

    /// What is said below every part of an output that lost its middle; empty for one that is whole.
    pub(super) fn gap_note(&self) -> String {
        match self.dropped {
            0 => String::new(),
            dropped => format!("\n(of its middle, {dropped} bytes were never kept; a line in [ ] stands there)"),
        }
    }

    /// Whoever leaves out the middle keeps as much before it as behind it.
    fn gap_at(&self) -> u64 {
        self.bytes / 2
    }

    fn fetch(&mut self) -> io::Result<()> {
        self.held.clear();
        self.read = 0;
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        if !self.gap_passed && self.at == self.gap_at() {
            self.gap_passed = true;
            self.held = format!("\n[{} bytes are missing here]\n", self.dropped).into_bytes();
            return Ok(());
        }
        let end = if self.gap_passed { self.bytes } else { self.gap_at() };
        let wanted = (end - self.at).min(PIECE);
        if wanted == 0 {
            return Ok(());
        }
        let got = self.runtime.block_on(self.blobs.get(&self.hash, self.at, wanted)).map_err(io::Error::other)?;
        if got.is_empty() {
            return Err(io::Error::other(format!("it ends after {} of {} bytes", self.at, self.bytes)));
        }
        self.at += got.len() as u64;
        self.held = got;
        Ok(())
    }
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.held.len() {
            self.fetch()?;
        }
        let n = buffer.len().min(self.held.len() - self.read);
        buffer[..n].copy_from_slice(&self.held[self.read..self.read + n]);
        self.read += n;
        Ok(n)
    }
}
