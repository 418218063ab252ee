//! Screens as text, for tests: what is shown, what it looks like, and the file beside the tests it is compared with.

use std::fmt::Write as _;
use std::path::PathBuf;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use crate::{Depth, Shade, Theme};

/// The looks that screens are shown in.
pub(crate) const THEMES: [(&str, Theme); 3] = [
    ("dark", Theme { shade: Shade::Dark, depth: Depth::True }),
    ("light", Theme { shade: Shade::Light, depth: Depth::True }),
    ("no colour", Theme { shade: Shade::Dark, depth: Depth::None }),
];

/// The rows of a place, each behind a bar; where asked, a row of letters below tells what each cell looks like.
pub(crate) fn rows(buf: &Buffer, place: Rect, styles: bool) -> String {
    let mut out = String::new();
    let mut looks: Vec<String> = Vec::new();
    for y in place.y..place.bottom() {
        let (mut text, mut skip) = (String::new(), 0);
        let mut style = String::new();
        for x in place.x..place.right() {
            let cell = &buf[(x, y)];
            if skip == 0 {
                text.push_str(cell.symbol());
                skip = unicode_width::UnicodeWidthStr::width(cell.symbol());
            }
            skip = skip.saturating_sub(1);
            style.push(letter(cell.fg, cell.modifier, &mut looks));
        }
        let _ = writeln!(out, "|{}", text.trim_end());
        if styles {
            let _ = writeln!(out, ":{}", style.trim_end_matches('.'));
        }
    }
    if styles {
        for (i, look) in looks.iter().enumerate() {
            let _ = writeln!(out, "{} = {look}", (b'a' + i as u8) as char);
        }
    }
    out
}

/// A letter for a look; a dot for none.
fn letter(fg: Color, modifier: Modifier, looks: &mut Vec<String>) -> char {
    if fg == Color::Reset && modifier.is_empty() {
        return '.';
    }
    let look = format!("{fg} {modifier:?}");
    let index = looks.iter().position(|known| *known == look).unwrap_or_else(|| {
        looks.push(look);
        looks.len() - 1
    });
    (b'a' + index as u8) as char
}

/// Compares with `tests/screens/NAME.txt`; `HAMES_BLESS=1` writes it.
pub(crate) fn compare(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{name}.txt"));
    if std::env::var_os("HAMES_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        return std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, text, "{} differs; HAMES_BLESS=1 writes it anew", path.display());
}
