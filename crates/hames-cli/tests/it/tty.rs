//! A command at a terminal of its own, and somebody who types.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::kit::{PATIENCE, User};

/// Columns and rows of the terminal.
pub(crate) const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// A terminal of this size: the side of who looks at it, and where the other side is.
pub(crate) fn open(columns: u16, rows: u16) -> (File, PathBuf) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes())).to_owned();
    tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (File::from(master), path)
}

/// The other side, for a child that takes it over.
pub(crate) fn slave(path: &Path) -> Stdio {
    use std::os::unix::fs::OpenOptionsExt;
    let no_ctty = rustix::fs::OFlags::NOCTTY.bits() as i32;
    Stdio::from(OpenOptions::new().read(true).write(true).custom_flags(no_ctty).open(path).unwrap())
}

/// A terminal with a command in it. Everything the command writes is kept.
pub(crate) struct Terminal {
    keys: File,
    child: Child,
    reader: JoinHandle<()>,
    seen: Arc<(Mutex<Vec<u8>>, Condvar)>,
    /// Bytes of it that a test has looked at.
    read: usize,
}

impl Terminal {
    /// Starts the command with the terminal as its own: Ctrl-C there is a signal.
    pub(crate) fn start(user: &User, args: &[&str]) -> Terminal {
        let (master, path) = open(COLUMNS, ROWS);
        // The command takes the terminal over, which only a new session can.
        let hames = user.command(args);
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(hames.get_program()).args(hames.get_args()).env_clear();
        command.current_dir(hames.get_current_dir().unwrap());
        command.envs(hames.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "dumb");
        let slave = || slave(&path);
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        drop(command);
        let keys = master;
        let seen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let (mut screen, of_thread) = (keys.try_clone().unwrap(), Arc::clone(&seen));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error is the end: the last one that had the terminal open is gone.
            while let Ok(n @ 1..) = screen.read(&mut bytes) {
                of_thread.0.lock().unwrap().extend_from_slice(&bytes[..n]);
                of_thread.1.notify_all();
            }
        });
        Terminal { keys, child, reader, seen, read: 0 }
    }

    /// Waits until this text has come since the last call, and gives what came up to its end.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let (seen, came) = &*self.seen;
        let mut bytes = seen.lock().unwrap();
        loop {
            let new = String::from_utf8_lossy(&bytes[self.read..]).into_owned();
            if let Some(at) = new.find(text) {
                let shown = new[..at + text.len()].to_owned();
                self.read += shown.len();
                return shown;
            }
            let waited = came.wait_timeout(bytes, PATIENCE).unwrap();
            bytes = waited.0;
            assert!(!waited.1.timed_out(), "{text:?} did not come; there is only\n{new}");
        }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the command's end; gives its code and what it wrote since the last look.
    pub(crate) fn end(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        // The reader has everything when nobody has the terminal open any more.
        self.reader.join().unwrap();
        let seen = self.seen.0.lock().unwrap();
        (code, String::from_utf8_lossy(&seen[self.read..]).into_owned())
    }
}
