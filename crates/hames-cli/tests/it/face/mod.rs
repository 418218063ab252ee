//! `hames` alone at a terminal: what it shows, what it leaves, and what becomes of it when things break.

mod alive;
mod colours;
mod doing;
mod leave;
mod plain;
mod screen;
mod written;

use crate::kit::User;

/// Ends the server that a face has started, with the test.
pub(super) struct Ends<'u>(pub(super) &'u User);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let _ = self.0.run(&["server", "stop", "--now"]);
    }
}
