//! Keeping output in bounded memory: its first and last bytes here, the whole in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hames_tools::ErrorsApart;
use hames_tools::tempfile_path::{PREFIX, TempFile};
use tempfile::NamedTempFile;

/// What a spool file holds at most; a longer output loses its middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpoolLimits {
    /// First bytes kept.
    pub(super) head: u64,
    /// Last bytes kept.
    pub(super) tail: u64,
}

/// As large as a blob may be: 256 MiB, half of it the beginning, half the end.
pub(super) const SPOOL_LIMITS: SpoolLimits = SpoolLimits { head: 128 << 20, tail: 128 << 20 };

/// Bytes moved at a time when a file is put in order.
const COPY_BUFFER: usize = 1 << 20;

/// A spool file this old is nobody's: its process was killed, for no command and no door takes so long.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The first and the last bytes of a stream.
#[derive(Debug)]
pub(super) struct HeadTail {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl HeadTail {
    /// Keeps `keep` bytes: half of them from the beginning, half from the end.
    pub(super) fn new(keep: usize) -> Self {
        Self { half: keep / 2, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        let last = &rest[rest.len().saturating_sub(self.half)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.tail.extend(last);
    }

    /// Bytes taken in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Whether nothing was let go.
    pub(super) fn is_whole(&self) -> bool {
        self.total == (self.head.len() + self.tail.len()) as u64
    }

    /// First and last bytes; everything in the first where nothing was let go.
    pub(super) fn into_parts(mut self) -> (Vec<u8>, Vec<u8>) {
        if self.is_whole() {
            self.head.extend(self.tail);
            return (self.head, Vec::new());
        }
        (self.head, self.tail.into())
    }
}

impl HeadTail {
    /// First and last bytes, and how many are missing between them, for a stream that is kept beside the output.
    pub(super) fn into_apart(self) -> ErrorsApart {
        let total = self.total();
        let (head, tail) = self.into_parts();
        let dropped = total - (head.len() + tail.len()) as u64;
        ErrorsApart { head, tail, dropped }
    }
}

/// Everything a command wrote.
#[derive(Debug)]
pub(super) struct Capture {
    kept: HeadTail,
    spool: Spool,
    folder: PathBuf,
    limits: SpoolLimits,
}

#[derive(Debug)]
enum Spool {
    NotNeeded,
    Open(NamedTempFile),
    /// It could not be written (no room, usually): the output goes on without.
    Failed,
}

/// What was captured.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    pub(super) total: u64,
    /// The whole where it is more than head and tail, and the bytes missing in its middle.
    pub(super) spool: Option<(TempFile, u64)>,
}

impl Capture {
    /// Keeps `keep` bytes in memory and what is longer in a file in `folder`.
    pub(super) fn new(keep: usize, folder: &Path, limits: SpoolLimits) -> Self {
        Self { kept: HeadTail::new(keep), spool: Spool::NotNeeded, folder: folder.to_owned(), limits }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let at = self.kept.total();
        if matches!(self.spool, Spool::NotNeeded) && at + bytes.len() as u64 > 2 * self.kept.half as u64 {
            self.spool = self.open_spool().map_or(Spool::Failed, Spool::Open);
        }
        if let Spool::Open(file) = &self.spool
            && write_ring(file.as_file(), at, bytes, self.limits).is_err()
        {
            self.spool = Spool::Failed;
        }
        self.kept.push(bytes);
    }

    /// Nothing was let go until now, so memory holds what belongs into the file first.
    fn open_spool(&self) -> io::Result<NamedTempFile> {
        std::fs::create_dir_all(&self.folder)?;
        remove_stale(&self.folder);
        let file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.folder)?;
        write_ring(file.as_file(), 0, &self.kept.head, self.limits)?;
        let (first, second) = self.kept.tail.as_slices();
        let at = self.kept.head.len() as u64;
        write_ring(file.as_file(), at, first, self.limits)?;
        write_ring(file.as_file(), at + first.len() as u64, second, self.limits)?;
        Ok(file)
    }

    /// Whether [`finish`](Self::finish) moves so many bytes that it should not run on an async thread.
    pub(super) fn finish_is_slow(&self) -> bool {
        self.kept.total() > self.limits.head + self.limits.tail
    }

    /// Puts the file in order and gives everything away.
    pub(super) fn finish(self) -> Captured {
        let total = self.kept.total();
        let spool = match self.spool {
            Spool::Open(file) => put_in_order(file, total, self.limits, &self.folder).ok(),
            Spool::NotNeeded | Spool::Failed => None,
        };
        let (head, tail) = self.kept.into_parts();
        Captured { head, tail, total, spool }
    }
}

/// Removes what killed processes left. What cannot be removed stays for the next time.
fn remove_stale(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_spool = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_spool && age().is_some_and(|age| age > STALE) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes bytes that are `at` in the stream: the head in place, everything later round and round in what follows it.
fn write_ring(file: &File, mut at: u64, mut bytes: &[u8], limits: SpoolLimits) -> io::Result<()> {
    while !bytes.is_empty() {
        let (offset, room) = match at.checked_sub(limits.head) {
            None => (at, limits.head - at),
            Some(past) => (limits.head + past % limits.tail, limits.tail - past % limits.tail),
        };
        let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
        file.write_all_at(now, offset)?;
        at += now.len() as u64;
        bytes = later;
    }
    Ok(())
}

/// Turns the ring so that its oldest byte follows the head.
fn put_in_order(file: NamedTempFile, total: u64, limits: SpoolLimits, folder: &Path) -> io::Result<(TempFile, u64)> {
    let dropped = total.saturating_sub(limits.head + limits.tail);
    let newer = total.saturating_sub(limits.head) % limits.tail;
    if dropped > 0 && newer > 0 {
        let mut aside = tempfile::tempfile_in(folder)?;
        let mut handle = file.as_file();
        handle.seek(SeekFrom::Start(limits.head))?;
        io::copy(&mut handle.take(newer), &mut aside)?;
        let older = limits.tail - newer;
        move_down(file.as_file(), limits.head + newer, limits.head, older)?;
        aside.seek(SeekFrom::Start(0))?;
        let mut handle = file.as_file();
        handle.seek(SeekFrom::Start(limits.head + older))?;
        io::copy(&mut aside, &mut handle)?;
        handle.flush()?;
    }
    let (_, path) = file.keep().map_err(|e| e.error)?;
    Ok((TempFile::adopt(path), dropped))
}

/// Moves `len` bytes towards the beginning; the ranges may overlap.
fn move_down(file: &File, mut from: u64, mut to: u64, len: u64) -> io::Result<()> {
    let end = from + len;
    let mut buffer = vec![0; COPY_BUFFER];
    while from < end {
        let want = usize::try_from(end - from).unwrap_or(usize::MAX).min(buffer.len());
        file.read_exact_at(&mut buffer[..want], from)?;
        file.write_all_at(&buffer[..want], to)?;
        from += want as u64;
        to += want as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use proptest::prelude::*;

    use super::*;

    fn stream(total: usize) -> Vec<u8> {
        (0..total).map(|i| (i % 251) as u8).collect()
    }

    fn captured(bytes: &[u8], piece: usize, keep: usize, limits: SpoolLimits) -> (Captured, Option<Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(keep, folder.path(), limits);
        for piece in bytes.chunks(piece) {
            capture.push(piece);
        }
        let captured = capture.finish();
        let whole = captured.spool.as_ref().map(|(file, _)| std::fs::read(file.path()).unwrap());
        (captured, whole)
    }

    proptest! {
        #![proptest_config(crate::shell::testing::cases())]

        #[test]
        fn head_tail_and_file_are_exact(
            total in 0usize..600, piece in 1usize..130, half in 0usize..60, head in 1u64..150, tail in 1u64..150,
        ) {
            let bytes = stream(total);
            let limits = SpoolLimits { head, tail };
            let (captured, whole) = captured(&bytes, piece, 2 * half, limits);
            prop_assert_eq!(captured.total, total as u64);
            if total <= 2 * half {
                prop_assert_eq!(&captured.head, &bytes);
                prop_assert!(captured.tail.is_empty() && captured.spool.is_none());
                return Ok(());
            }
            prop_assert_eq!(&captured.head[..], &bytes[..half]);
            prop_assert_eq!(&captured.tail[..], &bytes[total - half..]);
            let (_, dropped) = captured.spool.unwrap();
            prop_assert_eq!(dropped, (total as u64).saturating_sub(head + tail));
            let expected = if dropped == 0 {
                bytes
            } else {
                [&bytes[..head as usize], &bytes[total - tail as usize..]].concat()
            };
            prop_assert_eq!(whole.unwrap(), expected);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_only_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a file");
        std::fs::write(&file, "").unwrap();
        let mut capture = Capture::new(10, &file, SPOOL_LIMITS);
        capture.push(&stream(100));
        let captured = capture.finish();
        assert!(captured.spool.is_none());
        assert_eq!((captured.head, captured.tail), (stream(100)[..5].to_vec(), stream(100)[95..].to_vec()));
    }

    #[test]
    fn what_a_killed_process_left_is_removed_after_a_day() {
        let folder = tempfile::tempdir().unwrap();
        for (name, hours, stays) in [
            ("hames-spool-old", 25, false),
            ("hames-spool-older", 9999, false),
            ("hames-spool-old.sh", 25, false),
            ("hames-spool-new", 23, true),
            ("hames-spool-now", 0, true),
            ("output-of-somebody", 9999, true),
            ("command-of-somebody.sh", 9999, true),
            ("another", 9999, true),
        ] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(hours * 60 * 60)).unwrap();
            let mut capture = Capture::new(10, folder.path(), SPOOL_LIMITS);
            capture.push(&stream(100));
            assert_eq!(folder.path().join(name).exists(), stays, "{name}");
        }
    }

    #[test]
    fn a_file_is_removed_when_nobody_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(10, folder.path(), SPOOL_LIMITS);
        capture.push(&stream(100));
        drop(capture.finish());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
