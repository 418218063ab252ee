//! What every part of the screen may know: the session that is shown, and how the server is reached.

use hames_protocol::Settings;
use hames_protocol::api::{SessionRow, SessionView};
use hames_protocol::{Mode, SessionId};

/// How the connection to the server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Not there yet.
    #[default]
    Connecting,
    /// There.
    Up {
        /// What should be known about the server: that it is older, say.
        notice: Option<String>,
    },
    /// Lost; it is tried again by itself.
    Lost(String),
    /// Somebody stopped the server. It is started again by whatever a person wants of it.
    Stopped,
}

impl Link {
    /// Whether what is sent now goes: to the server that is there, or to one that is started for it.
    pub fn takes_messages(&self) -> bool {
        matches!(self, Self::Up { .. } | Self::Stopped)
    }
}

/// What layers read and only the app changes.
#[derive(Clone, Debug, Default)]
pub struct Face {
    /// The folder the program was started in, canonical.
    pub folder: String,
    /// The user's home, for paths that begin with `~/`.
    pub home: Option<String>,
    /// The session that is shown.
    pub session: Option<SessionId>,
    /// Everything about it but the conversation, as last heard.
    pub view: Option<SessionView>,
    /// How the server is reached.
    pub link: Link,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Whether the terminal has the focus, as far as it says.
    pub is_focused: bool,
    /// The folder's last session, while none is shown: it can be gone on with.
    pub last: Option<SessionRow>,
    /// What was chosen for the session that the first message makes.
    pub chosen: Settings,
    /// What should be read now, until the next key.
    pub notice: Option<String>,
    /// What takes longer than half a second, and since when (milliseconds of the app's clock).
    pub slow: Option<(&'static str, u64)>,
    /// Whether the mouse is ours; where it is not, the terminal selects by itself.
    pub has_mouse: bool,
    /// The Unix time, in milliseconds, when the app's clock stood at 0.
    pub epoch: u64,
}

impl Face {
    /// The mode that counts now: of the run that goes on, else of the next.
    pub fn mode(&self) -> Mode {
        let run = self.view.as_ref().and_then(|view| view.run.as_ref()).map(|run| run.mode);
        run.unwrap_or_else(|| self.next_mode())
    }

    /// The mode of the next run.
    pub fn next_mode(&self) -> Mode {
        let of_view = self.view.as_ref().and_then(|view| view.effective.mode);
        of_view.or(self.chosen.mode).unwrap_or_default()
    }

    /// Whether a run goes on.
    pub fn is_busy(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.run.is_some())
    }
}
