//! What the terminal can show: light or dark, and how many colours.

use std::time::Duration;

use crate::{Depth, Shade};

/// Asks for the colour of the ground, then for what the terminal is: the second is answered by all, so that whoever does
/// not know the first is not waited for.
pub(crate) const ASK: &[u8] = b"\x1b]11;?\x1b\\\x1b[c";

/// How long the first frame waits for the answer. One that comes later still changes the colours.
pub(crate) const ASK_LIMIT: Duration = Duration::from_millis(30);

/// What is known of a terminal without asking it: variables of the environment, as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// `TERM`.
    pub term: String,
    /// `COLORTERM`.
    pub color_term: String,
    /// `COLORFGBG`.
    pub color_fgbg: String,
    /// Whether `NO_COLOR` is set and not empty.
    pub no_color: bool,
}

impl Terminal {
    /// How many colours there are.
    pub fn depth(&self) -> Depth {
        let term = self.term.to_ascii_lowercase();
        if self.no_color || term.is_empty() || term == "dumb" || term.starts_with("vt1") || term.ends_with("-m") {
            return Depth::None;
        }
        let says_so = matches!(self.color_term.to_ascii_lowercase().as_str(), "truecolor" | "24bit");
        let known = ["direct", "kitty", "ghostty", "alacritty", "wezterm", "foot", "iterm", "truecolor"];
        if says_so || known.iter().any(|name| term.contains(name)) { Depth::True } else { Depth::Sixteen }
    }

    /// Light or dark, as far as the environment says; dark where it does not.
    pub fn shade(&self) -> Shade {
        let ground = self.color_fgbg.rsplit(';').next().and_then(|n| n.trim().parse::<u8>().ok());
        match ground {
            Some(7 | 9..=15) => Shade::Light,
            _ => Shade::Dark,
        }
    }
}

/// Light or dark, by the colour of the ground.
pub(crate) fn shade_of([r, g, b]: [f32; 3]) -> Shade {
    let brightness = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    if brightness > 0.5 { Shade::Light } else { Shade::Dark }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_the_terminal_has() {
        for (term, color_term, no_color, depth) in [
            ("xterm-256color", "truecolor", false, Depth::True),
            ("xterm-256color", "", false, Depth::Sixteen),
            ("screen", "", false, Depth::Sixteen),
            ("xterm-kitty", "", false, Depth::True),
            ("linux", "", false, Depth::Sixteen),
            ("vt100", "", false, Depth::None),
            ("dumb", "truecolor", false, Depth::None),
            ("xterm", "truecolor", true, Depth::None),
        ] {
            let terminal =
                Terminal { term: term.into(), color_term: color_term.into(), no_color, ..Terminal::default() };
            assert_eq!(terminal.depth(), depth, "{term} {color_term}");
        }
    }

    #[test]
    fn the_ground_is_light_or_dark() {
        for (said, shade) in
            [("0;15", Shade::Light), ("15;0", Shade::Dark), ("0;default;7", Shade::Light), ("", Shade::Dark)]
        {
            let terminal = Terminal { color_fgbg: said.into(), ..Terminal::default() };
            assert_eq!(terminal.shade(), shade, "{said}");
        }
        assert_eq!(shade_of([1.0, 1.0, 0.9]), Shade::Light);
        assert_eq!(shade_of([0.1, 0.1, 0.3]), Shade::Dark);
    }
}
