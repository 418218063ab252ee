//! What the terminal is put into, and how it gets out of it again, on every way.
//!
//! Everything that is switched on is remembered in one place of the process and taken back in the reverse order, once: by
//! leaving, by a panic, by a signal, before an editor and before the process is stopped. The keyboard protocol's flags are
//! pushed and popped on the alternate screen, because terminals keep a stack for each screen.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// What was switched on, with the terminal's settings before.
static ENTERED: Mutex<Option<(Termios, bool)>> = Mutex::new(None);
/// Panics of other threads, to be said once the terminal is itself again.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Alternate screen; the protocol's flags: tell escape from sequences (1); bracketed paste; focus.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[>1u\x1b[?2004h\x1b[?1004h";
const MOUSE_ON: &[u8] = b"\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1002l";
/// Ends an unfinished frame; in reverse: focus, paste, flags, colours, cursor, screen.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[<1u\x1b[0m\x1b[?25h\x1b[?1049l";

/// Puts the terminal into the mode for the face.
pub(crate) fn enter(has_mouse: bool) -> io::Result<()> {
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if entered.is_none() {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        *entered = Some((before, has_mouse));
        drop(entered);
        let written = write(ENTER).and_then(|()| if has_mouse { write(MOUSE_ON) } else { Ok(()) });
        if written.is_err() {
            restore();
        }
        return written;
    }
    Ok(())
}

/// Switches the mouse on, or off so that the terminal selects by itself.
pub(crate) fn set_mouse(is_on: bool) -> io::Result<()> {
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *entered {
        Some((_, has_mouse)) if *has_mouse != is_on => *has_mouse = is_on,
        _ => return Ok(()),
    }
    write(if is_on { MOUSE_ON } else { MOUSE_OFF })
}

/// Gives the terminal back as it was. Where it is itself already, nothing happens.
pub(crate) fn restore() {
    let entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((before, has_mouse)) = entered else { return };
    // A terminal that is gone needs nothing back.
    if has_mouse {
        let _ = write(MOUSE_OFF);
    }
    let _ = write(LEAVE);
    // What was typed ahead, and answers that came late, are not for whoever comes next.
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
}

/// Writes to the terminal, all of it.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// The terminal's columns and rows; either may be 0.
pub(crate) fn size() -> (u16, u16) {
    fn of(fd: BorrowedFd<'_>) -> Option<(u16, u16)> {
        rustix::termios::tcgetwinsize(fd).ok().map(|size| (size.ws_col, size.ws_row))
    }
    of(io::stdout().as_fd()).or_else(|| of(io::stdin().as_fd())).unwrap_or((80, 24))
}

/// Restores the terminal when it goes, however that happens.
pub(crate) struct Restored(());

impl Restored {
    /// From now on a panic gives the terminal back before it says anything.
    pub(crate) fn on_every_way_out() -> Restored {
        let usual = std::panic::take_hook();
        let drawing = std::thread::current().id();
        std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            let is_up = ENTERED.lock().unwrap_or_else(PoisonError::into_inner).is_some();
            if is_up && std::thread::current().id() != drawing {
                PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
                return;
            }
            restore();
            usual(panic);
        }));
        Restored(())
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        restore();
        for panic in PANICS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = writeln!(io::stderr(), "{panic}");
        }
    }
}
