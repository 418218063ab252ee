//! The platform calls this crate needs: signal handlers, leaving at once, room in a descriptor, the
//! terminal, the clock on the wall.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Where the handler writes the number of the signal; -1 before there is a place.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

/// A signal that ends a run.
pub(crate) const INTERRUPT: i32 = libc::SIGINT;
/// Asked to end by whoever manages processes.
pub(crate) const TERMINATE: i32 = libc::SIGTERM;
/// The terminal went away.
pub(crate) const HANG_UP: i32 = libc::SIGHUP;

extern "C" fn on_signal(number: libc::c_int) {
    let pipe: RawFd = SIGNAL_PIPE.load(Ordering::Relaxed);
    let byte = [u8::try_from(number).unwrap_or(0)];
    // SAFETY: `write` is async-signal-safe, the buffer lives on this stack frame, and a closed descriptor only gives an
    // error. `errno` is put back, because the interrupted code may be about to read its own.
    unsafe {
        let errno = *errno_location();
        libc::write(pipe, byte.as_ptr().cast(), 1);
        *errno_location() = errno;
    }
}

#[cfg(target_os = "linux")]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { libc::__errno_location() }
}

#[cfg(not(target_os = "linux"))]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { libc::__error() }
}

/// Sends the numbers of these signals into `pipe` from now on. A hang-up that whoever started us chose to ignore
/// (`nohup`) stays ignored.
pub(crate) fn catch_signals(pipe: OwnedFd, numbers: &[i32]) -> io::Result<()> {
    // The descriptor has to stay open as long as the handlers are installed: for good.
    SIGNAL_PIPE.store(pipe.as_raw_fd(), Ordering::Relaxed);
    std::mem::forget(pipe);
    for &number in numbers {
        // SAFETY: all-zero is a valid `sigaction`; the handler only does async-signal-safe things.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(number, std::ptr::null(), &mut old) != 0 {
                return Err(io::Error::last_os_error());
            }
            if number == HANG_UP && old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
            new.sa_flags = libc::SA_RESTART;
            libc::sigemptyset(&mut new.sa_mask);
            if libc::sigaction(number, &new, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Leaves at once: no destructors, no waiting.
pub(crate) fn leave_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any number and does not return.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor but the standard three: what whoever started us left open is not kept open for good.
///
/// Only at the very beginning, while nothing of our own is open.
pub(crate) fn close_inherited() {
    const FIRST: libc::c_int = 3;
    // SAFETY: nothing in this process owns a descriptor yet, so none is closed under its owner.
    #[cfg(target_os = "linux")]
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, 0) } == 0 {
        return;
    }
    // SAFETY: as above; a descriptor that is not open only gives an error.
    unsafe {
        let last = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 65_536);
        for fd in FIRST..libc::c_int::try_from(last).unwrap_or(1024) {
            libc::close(fd);
        }
    }
}

/// Which side of [`detach`] this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The process that was there before.
    Starter,
    /// The new one: in a session of its own that it does not lead, so that no terminal ever becomes its own.
    Detached,
}

/// Goes on twice: here, and as a process that nobody waits for.
///
/// Only while this process has one thread.
pub(crate) fn detach() -> io::Result<Side> {
    // SAFETY: with one thread, a forked process may do whatever this one may.
    unsafe {
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            child => {
                let mut status = 0;
                while libc::waitpid(child, &mut status, 0) < 0
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {}
                return Ok(Side::Starter);
            }
        }
        if libc::setsid() < 0 {
            libc::_exit(1);
        }
        match libc::fork() {
            -1 => libc::_exit(1),
            0 => Ok(Side::Detached),
            _ => libc::_exit(0),
        }
    }
}

/// Makes `file` what is behind a standard descriptor (0 to 2).
pub(crate) fn put_behind(file: BorrowedFd<'_>, standard: i32) -> io::Result<()> {
    // SAFETY: replacing a standard descriptor leaves every owner of another one alone; std never closes these.
    match unsafe { libc::dup2(file.as_raw_fd(), standard) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Whether a descriptor has room for a write now.
pub(crate) fn is_writable(fd: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid entry, and no waiting.
    let ready = unsafe { libc::poll(&mut asked, 1, 0) };
    ready == 1 && asked.revents & libc::POLLOUT != 0
}

/// Which of two descriptors can be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    First,
    Second,
}

/// Waits until one of two descriptors can be read from or has come to its end; the second goes first.
pub(crate) fn wait_readable(first: BorrowedFd<'_>, second: BorrowedFd<'_>) -> io::Result<Readable> {
    let of = |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut asked = [of(first), of(second)];
    loop {
        // SAFETY: two valid entries.
        if unsafe { libc::poll(asked.as_mut_ptr(), 2, -1) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        match asked {
            [_, second] if second.revents != 0 => return Ok(Readable::Second),
            [first, _] if first.revents != 0 => return Ok(Readable::First),
            _ => {}
        }
    }
}

/// Reads what is there, without the buffer of the standard handle: a line that was buffered could not be thrown away.
pub(crate) fn read_once(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for its whole length.
    let read = unsafe { libc::read(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Throws away what was typed at a terminal and not read yet.
pub(crate) fn forget_typed(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: any descriptor may be asked; one that is no terminal gives an error.
    match unsafe { libc::tcflush(terminal.as_raw_fd(), libc::TCIFLUSH) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Columns of a terminal; `None` where it does not say.
pub(crate) fn columns(terminal: BorrowedFd<'_>) -> Option<usize> {
    // SAFETY: all-zero is a valid `winsize`, and the pointer is valid for the call.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    };
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The number of this user; 0 is root.
pub(crate) fn user_id() -> u32 {
    // SAFETY: `geteuid` cannot fail.
    unsafe { libc::geteuid() }
}

/// A moment as a calendar and a clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallClock {
    pub(crate) year: i32,
    /// From 1.
    pub(crate) month: i32,
    /// From 1.
    pub(crate) day: i32,
    pub(crate) hour: i32,
    pub(crate) minute: i32,
    pub(crate) second: i32,
}

/// Unix seconds on this machine's clock, by `TZ` or the system's zone. `None` beyond what a calendar holds.
pub(crate) fn local_time(unix_s: i64) -> Option<WallClock> {
    // SAFETY: both pointers are valid for the call; `localtime_r` reads the environment, which nothing here changes.
    wall_clock(unix_s, |time, out| unsafe { libc::localtime_r(time, out) })
}

/// Unix seconds in UTC.
pub(crate) fn utc_time(unix_s: i64) -> Option<WallClock> {
    // SAFETY: both pointers are valid for the call.
    wall_clock(unix_s, |time, out| unsafe { libc::gmtime_r(time, out) })
}

fn wall_clock(unix_s: i64, convert: impl Fn(*const libc::time_t, *mut libc::tm) -> *mut libc::tm) -> Option<WallClock> {
    let time: libc::time_t = unix_s;
    // SAFETY: all-zero is a valid `tm`.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    if convert(&time, &mut tm).is_null() {
        return None;
    }
    Some(WallClock {
        year: tm.tm_year + 1900,
        month: tm.tm_mon + 1,
        day: tm.tm_mday,
        hour: tm.tm_hour,
        minute: tm.tm_min,
        second: tm.tm_sec,
    })
}
