//! Colours: by what they mean, for a light or a dark ground, in as many colours as the terminal has.

use ratatui::style::{Color, Modifier, Style};

/// Whether the terminal's ground is light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shade {
    /// Dark.
    #[default]
    Dark,
    /// Light.
    Light,
}

/// How many colours there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// None: bold, dim, underline and reverse say everything.
    None,
    /// The sixteen the terminal's own palette gives.
    Sixteen,
    /// 24 bits.
    #[default]
    True,
}

/// What things look like. A meaning is never told by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// The ground.
    pub shade: Shade,
    /// The colours there are.
    pub depth: Depth,
}

impl Theme {
    fn pick(self, dark: (u8, u8, u8), light: (u8, u8, u8), sixteen: Color) -> Style {
        let (r, g, b) = if self.shade == Shade::Dark { dark } else { light };
        match self.depth {
            Depth::None => Style::new(),
            Depth::Sixteen => Style::new().fg(sixteen),
            Depth::True => Style::new().fg(Color::Rgb(r, g, b)),
        }
    }

    /// Ordinary text: the terminal's own.
    pub fn text(self) -> Style {
        Style::new()
    }
    /// What stands back: reasoning, hints, counts.
    pub fn dim(self) -> Style {
        match self.depth {
            Depth::None => Style::new().add_modifier(Modifier::DIM),
            _ => self.pick((128, 134, 146), (112, 116, 126), Color::DarkGray),
        }
    }
    /// What a person wrote.
    pub fn user(self) -> Style {
        self.pick((122, 178, 255), (24, 92, 190), Color::Blue).add_modifier(Modifier::BOLD)
    }
    /// What may write: the word Build, and nothing else.
    pub fn build(self) -> Style {
        let style = self.pick((255, 158, 87), (178, 82, 0), Color::Yellow);
        style.add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }
    /// What only looks: the word Analyze.
    pub fn analyze(self) -> Style {
        self.dim()
    }
    /// Added lines, success.
    pub fn good(self) -> Style {
        self.pick((126, 200, 128), (22, 118, 52), Color::Green)
    }
    /// Removed lines, errors.
    pub fn bad(self) -> Style {
        self.pick((244, 122, 122), (186, 34, 40), Color::Red)
    }
    /// What stands behind added lines; nothing where there are few colours.
    pub fn added_ground(self) -> Style {
        self.ground((20, 44, 28), (220, 244, 224))
    }
    /// What stands behind removed lines.
    pub fn removed_ground(self) -> Style {
        self.ground((56, 26, 30), (252, 226, 228))
    }
    fn ground(self, dark: (u8, u8, u8), light: (u8, u8, u8)) -> Style {
        let (r, g, b) = if self.shade == Shade::Dark { dark } else { light };
        if self.depth == Depth::True { Style::new().bg(Color::Rgb(r, g, b)) } else { Style::new() }
    }
    /// What should be noticed: retries, waiting, conflicts.
    pub fn warn(self) -> Style {
        self.pick((226, 190, 104), (140, 96, 0), Color::Yellow)
    }
    /// Nudges of the loop guard.
    pub fn nudge(self) -> Style {
        self.pick((132, 206, 222), (0, 112, 138), Color::Cyan)
    }
    /// The checkpoint where the window begins.
    pub fn checkpoint(self) -> Style {
        self.pick((190, 156, 240), (112, 60, 178), Color::Magenta)
    }
    /// Frames and separators.
    pub fn frame(self) -> Style {
        self.dim()
    }
    /// The chosen row of a list, and selected text.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
    /// Matches of a search.
    pub fn matched(self) -> Style {
        self.warn().add_modifier(Modifier::UNDERLINED | Modifier::BOLD)
    }
    /// Names of tools, files and keys.
    pub fn name(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}
