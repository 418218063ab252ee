//! A terminal with a program in it, for whoever measures: what was written to it, and when.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A terminal that was silent for so long has its frame.
const QUIET: Duration = Duration::from_millis(60);
/// What the program asks of the terminal first, and what one answers that is dark.
const ASKS: &[u8] = b"\x1b[c";
const ANSWERS: &[u8] = b"\x1b]11;rgb:1010/1010/1010\x1b\\\x1b[?62;22c";

const ROWS: u16 = 40;
const COLUMNS: u16 = 120;

/// The terminal.
pub(super) struct Screen {
    keys: File,
    child: Child,
    written: Receiver<(Instant, Vec<u8>)>,
    /// What is to be seen, and since when.
    seen: vt100::Parser,
    at: Instant,
}

impl Screen {
    /// Starts the program in a terminal of its own.
    pub(super) fn open(program: Command) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        tcsetwinsize(&master, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let no_ctty = rustix::fs::OFlags::NOCTTY.bits() as i32;
        let slave = || OpenOptions::new().read(true).write(true).custom_flags(no_ctty).open(path).map(Stdio::from);
        let mut command = Command::new(program.get_program());
        command.args(program.get_args()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
        command.current_dir(program.get_current_dir().context("no folder")?);
        let child = command.stdin(slave()?).stdout(slave()?).stderr(slave()?).spawn()?;
        drop(command);
        let (mut screen, keys) = (File::from(master.try_clone()?), File::from(master));
        let (writes, written) = channel();
        let mut answers = keys.try_clone()?;
        std::thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(n @ 1..) = screen.read(&mut bytes) {
                let at = Instant::now();
                if bytes[..n].windows(ASKS.len()).any(|part| part == ASKS) && answers.write_all(ANSWERS).is_err() {
                    return;
                }
                if writes.send((at, bytes[..n].to_vec())).is_err() {
                    return;
                }
            }
        });
        Ok(Self { keys, child, written, seen: vt100::Parser::new(ROWS, COLUMNS, 0), at: Instant::now() })
    }

    /// The program's process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types.
    pub(super) fn types(&mut self, keys: &str) -> Result<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    /// When this text, which stands in one row, could be seen.
    pub(super) fn until(&mut self, text: &str) -> Result<Instant> {
        let begun = Instant::now();
        while !self.seen.screen().contents().contains(text) {
            match self.written.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
                Ok(written) => self.take(written),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    bail!("{text:?} was not shown; there is:\n{}", self.seen.screen().contents());
                }
            }
        }
        Ok(self.at)
    }

    /// Waits until nothing more is written.
    pub(super) fn settle(&mut self) {
        while let Ok(written) = self.written.recv_timeout(QUIET) {
            self.take(written);
        }
    }

    fn take(&mut self, (at, bytes): (Instant, Vec<u8>)) {
        self.at = at;
        self.seen.process(&bytes);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // One that has ended is only asked for its code.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
