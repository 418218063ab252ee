//! Standard output and standard error, and what each takes without waiting.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use super::printer::Target;
use crate::sys;

/// Bytes a pipe that has any room takes whole (PIPE_BUF on Linux).
const PIPE_PIECE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file, or the null device: never waits for a reader.
    Unread,
    /// A pipe: takes a piece where it has room.
    Pipe,
    /// A terminal, a socket or something else: may wait.
    Other,
}

/// A file descriptor to write to.
#[derive(Debug)]
pub(super) struct Descriptor {
    file: File,
    kind: Kind,
}

impl Descriptor {
    pub(super) fn new(file: File) -> Self {
        let kind = kind_of(&file);
        Self { file, kind }
    }
}

fn kind_of(file: &File) -> Kind {
    let Ok(metadata) = file.metadata() else { return Kind::Other };
    let is_null = || std::fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == metadata.rdev());
    match metadata.file_type() {
        of if of.is_file() => Kind::Unread,
        of if of.is_char_device() && is_null() => Kind::Unread,
        of if of.is_fifo() => Kind::Pipe,
        _ => Kind::Other,
    }
}

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Target for Descriptor {
    fn takes_at_once(&self, bytes: usize) -> bool {
        match self.kind {
            Kind::Unread => true,
            Kind::Pipe => bytes <= PIPE_PIECE && sys::is_writable(self.file.as_fd()),
            Kind::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_takes_a_piece_while_it_has_room_and_a_file_always() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let mut pipe = Descriptor::new(File::from(std::os::fd::OwnedFd::from(writer)));
        assert!(pipe.takes_at_once(PIPE_PIECE));
        assert!(!pipe.takes_at_once(PIPE_PIECE + 1));
        while pipe.takes_at_once(PIPE_PIECE) {
            assert_eq!(pipe.write(&[b'x'; PIPE_PIECE]).unwrap(), PIPE_PIECE);
        }
        assert!(!pipe.takes_at_once(1));
        assert!(Descriptor::new(tempfile::tempfile().unwrap()).takes_at_once(usize::MAX));
        let null = File::options().write(true).open("/dev/null").unwrap();
        assert!(Descriptor::new(null).takes_at_once(usize::MAX));
        assert!(!Descriptor::new(File::open("/dev/zero").unwrap()).takes_at_once(1));
    }
}
