//! What the app wants done.

use hames_protocol::api::{
    Abort, Aborted, AnswerApproval, AnswerQuestion, Attached, BranchSession, Changes, ChangesSettled, Configuration,
    CreateSession, DatabaseStats, DecideProposals, EditPending, Files, KnownProviders, LogPage, Models, ProviderDraft,
    ProviderTest, Providers, SearchResults, SendMessage, Sent, SessionCompacted, SessionContext, SessionCutDone,
    SessionRow, SessionView, Sessions, Vacuumed, Waiting,
};
use hames_protocol::{CallId, PendingId, SessionId, Settings};

use crate::Spot;

/// Names a request, so that its answer finds whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the server; the answer comes as [`Input::Reply`](crate::Input::Reply).
    Ask(Ticket, Box<Request>),
    /// Watch a session's events after a seq, instead of whatever was watched before.
    Watch {
        /// The session.
        session: SessionId,
        /// The last seq that is known; 0 for none.
        after: u64,
    },
    /// Watch nothing any more.
    Unwatch,
    /// Show another session, or none: the app itself does it.
    Show(Option<SessionId>),
    /// Show a session at an event, and what was found there: the app itself does it.
    ShowAt {
        /// The session.
        session: SessionId,
        /// The event.
        seq: u64,
        /// What is to be found there; may be empty.
        words: String,
    },
    /// Change settings of the session, or of the one that is to come; the names go back to the configuration's. The app
    /// itself does it.
    Set(Box<Settings>, Vec<String>),
    /// Begin a new session, with a name where one is given: the app itself does it.
    New(Option<String>),
    /// Put text into the prompt of a session, ahead of what is written there: the app itself does it.
    Draft(SessionId, String),
    /// Say something in the hint line: the app itself does it.
    Say(String),
    /// Switch the mouse on, or off so that the terminal selects by itself.
    Mouse(bool),
    /// The screen is not what it should be: draw everything anew.
    Redraw,
    /// Be woken at this time (milliseconds of the app's clock), unless an earlier moment is set already.
    WakeAt(u64),
    /// Look in files for what was written there before, and for the history of the folder; it comes as
    /// [`Input::Recalled`](crate::Input::Recalled).
    Recall {
        /// The place of the draft.
        spot: Spot,
        /// The folder of the history.
        folder: String,
    },
    /// Put text into the terminal's clipboard.
    Copy(String),
    /// Let the user's own editor change the draft; it comes back as [`Answer::Edited`] under the ticket.
    Edit(Ticket, String),
    /// Read an image from the clipboard; it comes back as [`Answer::Read`].
    PasteImage(Ticket),
    /// Read a file to attach it (absolute, or from `~/`); it comes back as [`Answer::Read`].
    ReadFile(Ticket, String),
    /// Write an export.
    SaveExport(Ticket, SessionId, String),
    /// Say that something ended while nobody looked.
    Notify(String),
    /// Give the terminal back until the process is continued.
    Suspend,
    /// Leave.
    Quit,
}

/// A question to the server.
#[allow(clippy::large_enum_variant, reason = "requests travel in a box")]
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Lists sessions, of one folder or all.
    Sessions(Option<String>),
    /// Makes a session.
    Create(CreateSession),
    /// Everything of a session but the conversation.
    View(SessionId),
    /// A page of the log: the last events before a seq.
    Page {
        /// The session.
        session: SessionId,
        /// The seq the page ends before; the end of the log where absent.
        before: Option<u64>,
        /// Events at most.
        limit: u32,
    },
    /// Sends a message.
    Send(SessionId, SendMessage),
    /// Changes what waits.
    EditPending(SessionId, PendingId, EditPending),
    /// Withdraws what waits.
    CancelPending(SessionId, PendingId),
    /// Pauses or resumes the queue.
    PausePending(SessionId, bool),
    /// Stops.
    Abort(SessionId, Abort),
    /// What waits for a person.
    Waiting(SessionId),
    /// Decides about a call.
    AnswerApproval(SessionId, CallId, AnswerApproval),
    /// Answers a question.
    AnswerQuestion(SessionId, CallId, AnswerQuestion),
    /// Decides about the proposals of a run.
    DecideProposals(SessionId, DecideProposals),
    /// Changes settings; the names go back to the configuration's.
    ChangeSettings(SessionId, Box<Settings>, Vec<String>),
    /// Renames.
    Rename(SessionId, String),
    /// Deletes.
    Delete(SessionId),
    /// Copies.
    Branch(SessionId, BranchSession),
    /// Cuts the tail, from a user's message on.
    Cut(SessionId, u64),
    /// Moves to another folder.
    Move(SessionId, String),
    /// The open proposals.
    Changes(SessionId),
    /// Applies proposals; none named means all.
    ApplyChanges(SessionId, Vec<String>),
    /// Drops proposals; none named means all.
    DiscardChanges(SessionId, Vec<String>),
    /// Files for a mention.
    Files(SessionId, String),
    /// Uploads an attachment.
    Attach {
        /// The session.
        session: SessionId,
        /// The file's name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A piece of a whole output, by its name.
    Artifact {
        /// The session.
        session: SessionId,
        /// The output's name or hash.
        name: String,
        /// The first byte.
        offset: u64,
        /// Bytes at most.
        limit: u64,
    },
    /// Searches.
    Search(String, Option<String>),
    /// The models one can choose.
    Models,
    /// The providers.
    Providers,
    /// What can be set up without knowing an address.
    KnownProviders,
    /// Tests a provider as it would be.
    TestProvider(ProviderDraft),
    /// Writes a provider into the configuration.
    SaveProvider(ProviderDraft),
    /// The configuration in force.
    Configuration,
    /// The report about the window.
    Context(SessionId),
    /// The same report as it would be with other settings; the names go back to the configuration's. Nothing is set.
    Preview(SessionId, Box<Settings>, Vec<String>),
    /// Compacts.
    Compact(SessionId),
    /// The database.
    Database,
    /// Gives unused space back.
    Vacuum,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is named after its type of the API, which says what it is")]
pub enum Answer {
    Done,
    Sessions(Sessions),
    Row(SessionRow),
    View(Box<SessionView>),
    Page(LogPage),
    Sent(Sent),
    Aborted(Aborted),
    Waiting(Waiting),
    Changes(Changes),
    Settled(ChangesSettled),
    Files(Files),
    Attached(Attached),
    Artifact(Vec<u8>),
    Search(SearchResults),
    Models(Models),
    Providers(Providers),
    KnownProviders(KnownProviders),
    Tested(ProviderTest),
    Configuration(Configuration),
    Context(Box<SessionContext>),
    Compacted(Box<SessionCompacted>),
    Cut(SessionCutDone),
    Database(DatabaseStats),
    Vacuumed(Vacuumed),
    /// A file that was read to be attached, or the image of the clipboard; a file that is missing or too large is an error.
    Read {
        name: String,
        bytes: Vec<u8>,
    },
    /// Text that came back from the user's editor; `None` where it was left unchanged or failed.
    Edited(Option<String>),
    /// Where something was written.
    Saved(String),
}
