//! What is written makes every terminal show the same: painted into an emulator.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::paint::Painter;
use crate::base::Base;
use crate::{Face, Keymap, Sight, Theme};

/// A screen that says how large it is, with something in every row.
fn draw(tick: usize) -> impl FnOnce(Rect, &mut Buffer) -> Option<Position> {
    move |area, buf| {
        for (at, row) in area.rows().enumerate() {
            Line::raw(format!("{tick} row {at} of {} 안녕🙂 e\u{301}", area.height)).render(row, buf);
        }
        Some(Position::new(area.width / 2, area.height.saturating_sub(1)))
    }
}

fn shown(emulator: &vt100::Parser) -> (String, (u16, u16), bool) {
    let screen = emulator.screen();
    (screen.contents(), screen.cursor_position(), screen.hide_cursor())
}

#[test]
fn after_any_resizing_the_screen_is_what_a_fresh_one_would_be() {
    let mut painter = Painter::default();
    let mut emulator = vt100::Parser::new(40, 120, 0);
    let sizes = [(120, 40), (40, 40), (120, 40), (120, 5), (1, 1), (0, 0), (7, 3), (120, 40)];
    for tick in 0..40 {
        let (width, height) = sizes[tick % sizes.len()];
        emulator.screen_mut().set_size(height.max(1), width.max(1));
        painter.forget();
        emulator.process(&painter.frame((width, height), draw(tick)).unwrap());
        // Streaming goes on at this size.
        for more in 0..3 {
            emulator.process(&painter.frame((width, height), draw(tick + more)).unwrap());
        }
        if width > 0 {
            let mut fresh = vt100::Parser::new(height, width, 0);
            fresh.process(&Painter::default().frame((width, height), draw(tick + 2)).unwrap());
            assert_eq!(shown(&emulator), shown(&fresh), "{width}x{height}");
        }
    }
}

#[test]
fn a_frame_in_which_nothing_changes_writes_nothing() {
    let mut painter = Painter::default();
    assert!(!painter.frame((20, 4), draw(1)).unwrap().is_empty());
    assert_eq!(painter.frame((20, 4), draw(1)).unwrap(), Vec::<u8>::new());
    let changed = painter.frame((20, 4), draw(2)).unwrap();
    assert!(changed.len() < 200 && changed.starts_with(b"\x1b[?2026h") && changed.ends_with(b"\x1b[?2026l"));
    let moved = painter.frame((20, 4), |area, buf| draw(2)(area, buf).map(|_| Position::new(0, 0))).unwrap();
    assert!(!moved.is_empty());
}

#[test]
fn one_prompt_stands_on_the_screen_however_it_was_resized() {
    let (mut base, mut painter) = (Base::default(), Painter::default());
    let (keys, theme) = (Keymap::default(), Theme::default());
    let mut emulator = vt100::Parser::new(24, 80, 0);
    for turn in 0..20 {
        let (width, height) = [(80, 24), (40, 24), (80, 5), (80, 24)][turn % 4];
        emulator.screen_mut().set_size(height, width);
        let face = Face { size: (width, height), ..Face::default() };
        let sight = Sight { face: &face, keys: &keys, theme: &theme, now: 0 };
        emulator.process(&painter.frame((width, height), |area, buf| base.draw(area, buf, sight)).unwrap());
        assert_eq!(emulator.screen().contents().lines().filter(|line| line.contains("new session")).count(), 1);
    }
}

/// Run by the test below in a terminal of its own.
#[test]
#[ignore = "needs a terminal; `a_panic_gives_the_terminal_back_before_it_says_anything` runs it in one"]
fn child_that_panics() {
    let _restored = super::modes::Restored::on_every_way_out();
    super::modes::enter(true).unwrap();
    super::modes::write(b"\x1b[2Jon the alternate screen").unwrap();
    panic!("the text of the panic");
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_says_anything() {
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};

    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let open = || {
        let no_ctty = rustix::fs::OFlags::NOCTTY.bits() as i32;
        std::fs::OpenOptions::new().read(true).write(true).custom_flags(no_ctty).open(path).unwrap()
    };
    let kept = open();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shell::tests::child_that_panics", "--ignored", "--nocapture"])
        .stdin(open())
        .stdout(open())
        .stderr(open())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    assert!(tcgetattr(&kept).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO));
    drop(kept);
    let (mut raw, mut bytes, mut master) = (Vec::new(), [0; 4096], std::fs::File::from(master));
    while let Ok(n @ 1..) = master.read(&mut bytes) {
        raw.extend_from_slice(&bytes[..n]);
    }
    let raw = String::from_utf8_lossy(&raw).into_owned();
    let at = |text: &str| raw.find(text).unwrap_or_else(|| panic!("no {text:?} in {raw:?}"));
    assert!(at("\x1b[>1u") < at("\x1b[<1u") && at("\x1b[<1u") < at("\x1b[?1049l"), "{raw:?}");
    assert!(at("\x1b[?1049l") < at("the text of the panic"), "{raw:?}");
    assert_eq!(raw.matches("\x1b[?1049l").count(), 1, "{raw:?}");
}
