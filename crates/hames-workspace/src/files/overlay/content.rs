//! The content of proposed files: blobs, and a few of them in memory.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hames_protocol::{BlobRef, BlobStore, LogError};
use tokio::runtime::Handle;

/// Bytes of content kept in memory: what a session reads again and again is far less.
const KEPT_BYTES: usize = 16 * 1024 * 1024;
/// Content larger than this is not kept: it would push out everything else.
const KEPT_EACH: u64 = 4 * 1024 * 1024;
/// Bytes of larger content that are asked for at once.
const PIECE: u64 = 1024 * 1024;

/// The contents used last, by hash.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    contents: HashMap<String, (Arc<[u8]>, u64)>,
    /// Hashes by when they were used.
    used: BTreeMap<u64, String>,
    now: u64,
    bytes: usize,
}

impl Cache {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, hash: &str) -> Option<Arc<[u8]>> {
        let mut kept = self.kept();
        kept.now += 1;
        let now = kept.now;
        let (content, used) = kept.contents.get_mut(hash)?;
        let (content, before) = (content.clone(), std::mem::replace(used, now));
        if let Some(hash) = kept.used.remove(&before) {
            kept.used.insert(now, hash);
        }
        Some(content)
    }

    /// Keeps a content, if it is not too large.
    pub(super) fn keep(&self, hash: &str, content: Arc<[u8]>) {
        let mut kept = self.kept();
        if content.len() as u64 > KEPT_EACH || kept.contents.contains_key(hash) {
            return;
        }
        kept.now += 1;
        kept.bytes += content.len();
        let now = kept.now;
        kept.used.insert(now, hash.to_owned());
        kept.contents.insert(hash.to_owned(), (content, now));
        while kept.bytes > KEPT_BYTES {
            let Some((_, oldest)) = kept.used.pop_first() else { return };
            if let Some((content, _)) = kept.contents.remove(&oldest) {
                kept.bytes -= content.len();
            }
        }
    }
}

/// Where contents come from.
#[derive(Clone)]
pub(super) struct Contents {
    pub(super) cache: Arc<Cache>,
    pub(super) blobs: Arc<dyn BlobStore>,
    /// The runtime that blobs are read on.
    pub(super) runtime: Option<Handle>,
}

impl Contents {
    /// A content to read from.
    pub(super) fn open(&self, blob: &BlobRef) -> io::Result<Box<dyn Read + Send>> {
        if let Some(content) = self.cache.get(&blob.hash) {
            return Ok(Box::new(Cursor::new(content)));
        }
        if blob.bytes > KEPT_EACH {
            return Ok(Box::new(Pieces {
                contents: self.clone(),
                blob: blob.clone(),
                at: 0,
                piece: Cursor::default(),
            }));
        }
        let content: Arc<[u8]> = self.piece(blob, 0, blob.bytes)?.into();
        self.cache.keep(&blob.hash, content.clone());
        Ok(Box::new(Cursor::new(content)))
    }

    /// A whole content.
    pub(super) fn read(&self, blob: &BlobRef) -> io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(usize::try_from(blob.bytes).unwrap_or(0));
        self.open(blob)?.read_to_end(&mut content)?;
        Ok(content)
    }

    /// The runtime to wait on for blobs. Only from work that may block.
    pub(super) fn runtime(&self) -> io::Result<Handle> {
        let runtime = self.runtime.clone().or_else(|| Handle::try_current().ok());
        runtime.ok_or_else(|| io::Error::other("proposed content can only be used within a runtime"))
    }

    /// Part of a blob, not one byte less than asked for.
    fn piece(&self, blob: &BlobRef, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let read = self.runtime()?.block_on(self.blobs.get(&blob.hash, offset, bytes));
        let piece = read.map_err(|error: LogError| io::Error::other(error.to_string()))?;
        if piece.len() as u64 == bytes {
            return Ok(piece);
        }
        Err(io::Error::other(format!("the proposed content {} is not whole any more", blob.hash)))
    }
}

/// A large content, read piece by piece.
struct Pieces {
    contents: Contents,
    blob: BlobRef,
    at: u64,
    piece: Cursor<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(buffer)?;
        let left = self.blob.bytes - self.at;
        if read > 0 || left == 0 || buffer.is_empty() {
            return Ok(read);
        }
        let piece = self.contents.piece(&self.blob, self.at, left.min(PIECE))?;
        self.at += piece.len() as u64;
        self.piece = Cursor::new(piece);
        self.piece.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use hames_protocol::{BlobSource, MemoryBlobs};

    use super::*;

    fn blob(content: &[u8]) -> BlobRef {
        BlobRef {
            hash: super::super::super::write::hash_of(content),
            bytes: content.len() as u64,
            dropped: 0,
            name: None,
        }
    }

    #[test]
    fn the_contents_used_last_are_kept_and_no_more_than_the_limit() {
        let cache = Cache::default();
        let content = |n: u8| Arc::<[u8]>::from(vec![n; 3 * 1024 * 1024]);
        for n in 0..20 {
            cache.keep(&n.to_string(), content(n));
            assert!(cache.get("0").is_some(), "used all the time");
        }
        let kept = cache.kept();
        assert!(kept.bytes <= KEPT_BYTES && kept.contents.len() == 5 && kept.used.len() == 5);
        drop(kept);
        assert!(cache.get("19").is_some() && cache.get("1").is_none());
        cache.keep("huge", vec![0; KEPT_EACH as usize + 1].into());
        assert!(cache.get("huge").is_none());
    }

    #[tokio::test]
    async fn a_content_of_any_size_is_read_whole_and_a_missing_one_is_an_error() {
        let blobs = Arc::new(MemoryBlobs::default());
        for size in [0, 1, KEPT_EACH as usize, KEPT_EACH as usize + 1, 2 * KEPT_EACH as usize + PIECE as usize / 2] {
            let content: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            blobs.put(&"s".into(), "", BlobSource::Bytes(content.clone())).await.unwrap();
            let contents = Contents { cache: Arc::default(), blobs: blobs.clone(), runtime: Some(Handle::current()) };
            let wanted = blob(&content);
            let read = tokio::task::spawn_blocking(move || contents.read(&wanted).unwrap()).await.unwrap();
            assert!(read == content, "{size}");
        }
        let contents = Contents { cache: Arc::default(), blobs, runtime: Some(Handle::current()) };
        for size in [3, KEPT_EACH as usize + 3] {
            let (contents, wanted) = (contents.clone(), blob(&vec![9; size]));
            tokio::task::spawn_blocking(move || contents.read(&wanted).unwrap_err()).await.unwrap();
        }
    }
}
