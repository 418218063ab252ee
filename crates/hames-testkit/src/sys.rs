//! The one question about a socket that the standard library does not ask.
#![allow(unsafe_code)] // ioctl

use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes sent that the peer has not acknowledged; 0 where the platform does not say.
pub(crate) fn unacknowledged(socket: BorrowedFd<'_>) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the descriptor is open for as long as it is borrowed, and TIOCOUTQ writes one int to the pointer.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    if result == 0 { usize::try_from(count).unwrap_or(0) } else { 0 }
}
