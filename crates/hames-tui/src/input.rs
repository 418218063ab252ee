//! What happens to the app, from whatever side.

use hames_protocol::Envelope;
use hames_protocol::api::ApiError;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use crate::{Answer, Link, Recalled, Shade, Ticket};

/// Something the app has to know of.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key; only presses and repeats come.
    Key(KeyEvent),
    /// Pasted text, or keys that came faster than anybody types: cleaned of control bytes, line ends are `\n`.
    Paste(String),
    /// The mouse.
    Mouse(MouseEvent),
    /// The terminal has another size, or was cleared: everything is drawn anew.
    Resize {
        /// Columns; may be 0.
        width: u16,
        /// Rows; may be 0.
        height: u16,
    },
    /// The terminal has the focus, or lost it.
    Focus(bool),
    /// Events of the watched session, in order; never one twice.
    News(Vec<Envelope>),
    /// What is shown of the watched session may be wrong: it has to be read again.
    Resync,
    /// The watched session cannot be watched any more, and why: it is deleted, say.
    Gone(String),
    /// The terminal's ground is light, or dark, as it says itself.
    Shade(Shade),
    /// What files held for the draft that is shown.
    Recalled(Box<Recalled>),
    /// What is written cannot be kept in files, and why.
    NotKept(String),
    /// How the connection is.
    Link(Link),
    /// An answer to a request.
    Reply(Ticket, Result<Answer, ApiError>),
    /// A moment that was asked for with [`Effect::WakeAt`](crate::Effect::WakeAt) has come.
    Wake,
    /// The process is told to go (SIGTERM, a hangup).
    Leave,
}
