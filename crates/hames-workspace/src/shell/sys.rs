//! The few calls that have no safe form: `posix_spawn`, watching and closing descriptors, ignoring signals.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

#[cfg(target_os = "linux")]
use rustix::process;
use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

#[cfg(target_vendor = "apple")]
const SPAWN_SETSID: libc::c_int = 0x0400; // from spawn.h; the libc crate does not have it
#[cfg(not(target_vendor = "apple"))]
const SPAWN_SETSID: libc::c_int = libc::POSIX_SPAWN_SETSID as libc::c_int;

/// A child to start, in a session of its own, with every signal at its default and none blocked.
pub(super) struct Spawn<'a> {
    /// The program's path, then its arguments.
    pub(super) argv: &'a [&'a CStr],
    /// Its whole environment.
    pub(super) env: &'a [&'a CStr],
    /// Its working folder.
    pub(super) cwd: &'a CStr,
    /// What it reads; nothing where absent.
    pub(super) stdin: Option<BorrowedFd<'a>>,
    /// Where both its outputs go; nowhere where absent.
    pub(super) output: Option<BorrowedFd<'a>>,
    /// Where stderr goes instead.
    pub(super) errors: Option<BorrowedFd<'a>>,
    /// Descriptors it must not inherit although they are not marked close-on-exec.
    pub(super) close: &'a [RawFd],
}

/// Starts it. The C library shares memory with the child until it has executed, so the cost does not depend on the
/// size of this process, and no code of ours runs between fork and exec.
pub(super) fn spawn(child: &Spawn<'_>) -> io::Result<Pid> {
    let mut actions = Actions::new()?;
    // Outputs before input: their source may itself have one of the numbers 0 to 2 where a parent started us without.
    let outputs = [(libc::STDOUT_FILENO, child.output), (libc::STDERR_FILENO, child.errors.or(child.output))];
    for (target, output) in outputs {
        match output {
            Some(fd) => actions.dup2(fd, target)?,
            None => actions.open_null(target, libc::O_WRONLY)?,
        }
    }
    match child.stdin {
        Some(fd) => actions.dup2(fd, libc::STDIN_FILENO)?,
        None => actions.open_null(libc::STDIN_FILENO, libc::O_RDONLY)?,
    }
    for &fd in child.close.iter().filter(|&&fd| fd > libc::STDERR_FILENO) {
        actions.close(fd)?;
    }
    actions.chdir(child.cwd)?;
    let attributes = Attributes::own_session()?;

    let argv = pointers(child.argv);
    let env = pointers(child.env);
    let Some(program) = child.argv.first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut pid: libc::pid_t = 0;
    // SAFETY: actions and attributes are initialised; both vectors end in a null pointer, and everything they point to
    // is borrowed by `child` for the whole call.
    check(unsafe {
        libc::posix_spawn(&mut pid, program.as_ptr(), &actions.0, &attributes.0, argv.as_ptr(), env.as_ptr())
    })?;
    Pid::from_raw(pid).ok_or_else(|| io::ErrorKind::Other.into())
}

/// Something that becomes readable when a child has ended; `None` where the system or the runtime has no such thing.
pub(super) fn watch_end(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    #[cfg(target_os = "linux")]
    {
        let fd = process::pidfd_open(pid, process::PidfdFlags::empty()).ok()?;
        // SAFETY: an owned descriptor is open, and the same one, for as long as it is owned.
        unsafe { AsyncFd::register_with_interest(fd, tokio::io::Interest::READABLE) }.ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// The session of a process; `None` where there is no such process or it has none, as the kernel's own.
pub(super) fn session_of(pid: Pid) -> Option<Pid> {
    // SAFETY: the call touches no memory.
    Pid::from_raw(unsafe { libc::getsid(pid.as_raw_pid()) }.max(0))
}

/// Ignores the signals by which a terminal, a person or a closing pipe would end this process.
pub(super) fn ignore_polite_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: SIG_IGN is no handler, so there is no code that could run in a signal's context.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Closes every descriptor above the first three. The caller owns the whole process and uses none of them.
pub(super) fn close_inherited() {
    #[cfg(target_os = "linux")]
    {
        let (first, last, flags): (libc::c_uint, libc::c_uint, libc::c_uint) = (3, libc::c_uint::MAX, 0);
        // SAFETY: the call touches no memory; that nobody uses these descriptors is the caller's promise.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == 0 {
            return;
        }
    }
    // Older kernels: descriptors are given out from below, and nobody inherits thousands.
    for fd in 3..1024 {
        // SAFETY: as above; closing a number that is not open does nothing.
        unsafe { libc::close(fd) };
    }
}

/// Whether a child that is executed gets this descriptor.
pub(super) fn is_inheritable(fd: RawFd) -> bool {
    // SAFETY: the call touches no memory; a number that is not open gives an error.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

fn pointers(strings: &[&CStr]) -> Vec<*mut libc::c_char> {
    strings.iter().map(|s| s.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: init fills the value where it returns 0.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: filled just above.
        Ok(Self(unsafe { actions.assume_init() }))
    }

    fn dup2(&mut self, fd: BorrowedFd<'_>, target: RawFd) -> io::Result<()> {
        // SAFETY: the actions are initialised.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, fd.as_raw_fd(), target) })
    }

    fn open_null(&mut self, target: RawFd, flags: libc::c_int) -> io::Result<()> {
        // SAFETY: the actions are initialised; the path is copied.
        check(unsafe { libc::posix_spawn_file_actions_addopen(&mut self.0, target, c"/dev/null".as_ptr(), flags, 0) })
    }

    fn close(&mut self, fd: RawFd) -> io::Result<()> {
        // SAFETY: the actions are initialised.
        check(unsafe { libc::posix_spawn_file_actions_addclose(&mut self.0, fd) })
    }

    fn chdir(&mut self, path: &CStr) -> io::Result<()> {
        // SAFETY: the actions are initialised; the path is copied.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&mut self.0, path.as_ptr()) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn own_session() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: init fills the value where it returns 0.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: filled just above.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let blocked = signal_set(libc::sigemptyset);
        let mut defaults = signal_set(libc::sigfillset);
        // SAFETY: the set is initialised. The two that cannot be changed are left out.
        unsafe {
            libc::sigdelset(&mut defaults, libc::SIGKILL);
            libc::sigdelset(&mut defaults, libc::SIGSTOP);
        }
        let flags = [SPAWN_SETSID, libc::POSIX_SPAWN_SETSIGMASK, libc::POSIX_SPAWN_SETSIGDEF]
            .into_iter()
            .fold(0, |all, flag| all | flag);
        // SAFETY: attributes and sets are initialised and only read or copied.
        unsafe {
            check(libc::posix_spawnattr_setsigmask(&mut attributes.0, &blocked))?;
            check(libc::posix_spawnattr_setsigdefault(&mut attributes.0, &defaults))?;
            check(libc::posix_spawnattr_setflags(&mut attributes.0, flags as libc::c_short))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `own_session`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

fn signal_set(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> libc::c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: both functions this is called with initialise the whole set and cannot fail.
    unsafe {
        fill(set.as_mut_ptr());
        set.assume_init()
    }
}
