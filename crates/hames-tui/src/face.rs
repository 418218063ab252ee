//! What every part of the screen may know: the session that is shown, and how the server is reached.

use hames_protocol::SessionId;
use hames_protocol::api::SessionView;

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
}

/// What layers read and only the app changes.
#[derive(Clone, Debug, Default)]
pub struct Face {
    /// The folder the program was started in, canonical.
    pub folder: String,
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
}

impl Face {
    /// Whether a run goes on.
    pub fn is_busy(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.run.is_some())
    }
}
