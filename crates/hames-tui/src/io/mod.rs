//! What the app asks of the server, and what it hears of it.
//!
//! Everything goes over one channel back to the app, bounded: an app that is busy makes the sessions' news wait, and a server
//! that has to wait too long says `resync` instead of holding everything. Requests wait for the connection; those that surely
//! did not reach a server, and those that may be sent twice, are sent again when there is one.

mod files;
mod follow;
mod link;
mod perform;

use std::path::PathBuf;
use std::sync::Arc;

use hames_client::Finder;
use hames_protocol::SessionId;
use hames_protocol::api::{ApiError, ApiErrorCode};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::{Answer, Input, Request, Ticket};
use link::Links;

/// Inputs that wait to be taken.
const WAITING: usize = 64;

/// The other side of the app's effects. Runs on the runtime it is made on.
pub(crate) struct Io {
    links: Arc<Links>,
    replies: mpsc::Sender<Input>,
    following: Option<JoinHandle<()>>,
    home: Option<PathBuf>,
    folder: PathBuf,
}

impl Io {
    /// Begins to connect; what comes is on the channel.
    pub(crate) fn start(finder: Finder, home: Option<PathBuf>, folder: PathBuf) -> (Io, mpsc::Receiver<Input>) {
        let (replies, heard) = mpsc::channel(WAITING);
        let links = Links::start(finder, replies.clone());
        (Io { links, replies, following: None, home, folder }, heard)
    }

    /// Where others may say something to the app too.
    pub(crate) fn heard_by(&self) -> mpsc::Sender<Input> {
        self.replies.clone()
    }

    /// Asks the server; `by_hand` where a person wants it now, so that a server that was stopped is started for it.
    pub(crate) fn ask(&self, ticket: Ticket, request: Request, by_hand: bool) {
        let links = Arc::clone(&self.links);
        self.reply(ticket, async move { perform::perform(&links, request, by_hand).await });
    }

    /// Watches a session from behind a seq, instead of what was watched before.
    pub(crate) fn watch(&mut self, session: SessionId, after: u64) {
        self.unwatch();
        let (links, replies) = (Arc::clone(&self.links), self.replies.clone());
        self.following = Some(tokio::spawn(follow::follow(links, session, after, replies)));
    }

    /// Watches nothing.
    pub(crate) fn unwatch(&mut self) {
        if let Some(following) = self.following.take() {
            following.abort();
        }
    }

    /// Reads a file that is to be attached.
    pub(crate) fn read_file(&self, ticket: Ticket, path: String) {
        let (home, folder) = (self.home.clone(), self.folder.clone());
        self.reply(ticket, files::read(home, folder, path));
    }

    /// Reads the image in the clipboard.
    pub(crate) fn clipboard_image(&self, ticket: Ticket) {
        self.reply(ticket, files::clipboard_image());
    }

    /// Writes a session into a file that does not exist yet.
    pub(crate) fn export(&self, ticket: Ticket, session: SessionId, path: String) {
        let (links, home, folder) = (Arc::clone(&self.links), self.home.clone(), self.folder.clone());
        self.reply(ticket, files::export(links, session, home, folder, path));
    }

    fn reply(&self, ticket: Ticket, work: impl Future<Output = Result<Answer, ApiError>> + Send + 'static) {
        let replies = self.replies.clone();
        tokio::spawn(async move {
            let answer = work.await;
            // An app that has ended needs no answer.
            let _ = replies.send(Input::Reply(ticket, answer)).await;
        });
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.unwatch();
    }
}

/// A failure that is not the server's, in the same form.
fn failed(message: impl Into<String>) -> ApiError {
    ApiError::new(ApiErrorCode::Unknown, message)
}
