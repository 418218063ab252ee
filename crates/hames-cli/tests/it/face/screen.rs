//! A terminal that shows what is written to it, and somebody who types.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::termios::{Winsize, tcsetwinsize};

use crate::kit::{PATIENCE, User};
use crate::tty;

/// What was written: as it came, and as it is shown.
struct Seen {
    raw: Vec<u8>,
    emulator: vt100::Parser,
    /// Nobody has the terminal open any more.
    is_closed: bool,
}

/// A terminal with the face in it.
pub(super) struct Screen {
    keys: Option<File>,
    pub(super) child: Child,
    reader: Option<JoinHandle<()>>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Screen {
    /// Opens the face with these arguments.
    pub(super) fn open(user: &User, args: &[&str]) -> Screen {
        Screen::start(user, args, &["--ctty"], &[])
    }

    /// The same, as a job of a shell that goes on behind it, so that it can be stopped and continued.
    pub(super) fn open_in_shell(user: &User, args: &[&str]) -> Screen {
        Screen::start(user, args, &["--ctty", "sh", "-c", "\"$@\"; echo back at the shell", "sh"], &[])
    }

    pub(super) fn start(user: &User, args: &[&str], before: &[&str], vars: &[(&str, &str)]) -> Screen {
        let (columns, rows) = (80, 24);
        let (keys, path) = tty::open(columns, rows);
        let hames = user.command(args);
        let mut command = Command::new("setsid");
        command.args(before).arg(hames.get_program()).args(hames.get_args()).env_clear();
        command.current_dir(hames.get_current_dir().unwrap());
        command.envs(hames.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm-256color");
        command.envs(vars.iter().copied());
        let slave = || tty::slave(&path);
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        drop(command);
        let emulator = vt100::Parser::new(rows, columns, 0);
        let seen = Arc::new((Mutex::new(Seen { raw: Vec::new(), emulator, is_closed: false }), Condvar::new()));
        let (mut screen, of_thread) = (keys.try_clone().unwrap(), Arc::clone(&seen));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(n @ 1..) = screen.read(&mut bytes) {
                let mut seen = of_thread.0.lock().unwrap();
                seen.raw.extend_from_slice(&bytes[..n]);
                seen.emulator.process(&bytes[..n]);
                of_thread.1.notify_all();
            }
            of_thread.0.lock().unwrap().is_closed = true;
            of_thread.1.notify_all();
        });
        Screen { keys: Some(keys), child, reader: Some(reader), seen }
    }

    pub(super) fn types(&mut self, keys: &str) {
        self.keys.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// What is shown now.
    pub(super) fn shown(&self) -> String {
        shown(&self.seen.0.lock().unwrap().emulator)
    }

    /// Everything that was written.
    pub(super) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.0.lock().unwrap().raw).into_owned()
    }

    /// Waits until the screen shows what is wanted, and gives it.
    pub(super) fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let (seen, came) = &*self.seen;
        let mut now = seen.lock().unwrap();
        let begun = std::time::Instant::now();
        loop {
            let shown = shown(&now.emulator);
            if holds(&shown) {
                return shown;
            }
            assert!(!now.is_closed, "it ended before {what}:\n{shown}\n{}", String::from_utf8_lossy(&now.raw));
            // A clock on the screen goes on: it is the whole time that counts.
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(!left.is_zero(), "{what} did not come; there is only\n{shown}");
            now = came.wait_timeout(now, left).unwrap().0;
        }
    }

    pub(super) fn until_shows(&self, text: &str) -> String {
        self.until(text, |shown| shown.contains(text))
    }

    /// Waits until this was written since `from`, a length of what was written before.
    pub(super) fn until_raw(&self, from: usize, text: &str) {
        self.until(text, |_| true);
        let (seen, came) = &*self.seen;
        let mut now = seen.lock().unwrap();
        let begun = std::time::Instant::now();
        while !String::from_utf8_lossy(&now.raw[from..]).contains(text) {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(!left.is_zero(), "{text:?} was not written");
            now = came.wait_timeout(now, left).unwrap().0;
        }
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) {
        self.seen.0.lock().unwrap().emulator.screen_mut().set_size(rows.max(1), columns.max(1));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.keys.as_ref().unwrap(), size).unwrap();
    }

    /// The terminal goes away, as when its window is closed.
    pub(super) fn close(mut self) -> i32 {
        drop(self.keys.take());
        // The thread has the other descriptor of this side, so the kernel's hang-up comes by hand.
        crate::kit::signal(&self.child, "HUP");
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Waits for its end; gives its code, the screen as it is left, and everything that was written.
    pub(super) fn end(mut self) -> (i32, String, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader.take().unwrap().join().unwrap();
        (code, self.shown(), self.raw())
    }
}

/// Without blanks at the ends of rows: whether a cell was written with one or never is not seen.
fn shown(emulator: &vt100::Parser) -> String {
    let contents = emulator.screen().contents();
    contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

impl Drop for Screen {
    fn drop(&mut self) {
        // One that has ended is only asked for its code.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
