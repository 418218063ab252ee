//! The API as methods: one for each endpoint.

mod request;
mod run;
mod session;
mod system;

use std::sync::Arc;

use hames_protocol::SessionId;

use crate::{BodyStream, ClientError, EventStream, Transport};

pub use session::LogRange;

/// A client of one server. Cheap to clone; clones share the transport.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.transport.place())
    }
}

impl Client {
    /// A client over any transport.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }

    /// Where the server is, for messages.
    pub fn place(&self) -> String {
        self.transport.place()
    }

    /// Follows a session: everything in its log behind seq `after` (0 for all of it), then what happens.
    pub fn events(&self, session: &SessionId, after: u64) -> EventStream {
        EventStream::new(self.clone(), session.clone(), after)
    }

    pub(crate) async fn open_events(&self, session: &SessionId, after: u64) -> Result<BodyStream, ClientError> {
        self.get(&["sessions", session.as_str(), "events"]).query("after", after).stream().await
    }
}
