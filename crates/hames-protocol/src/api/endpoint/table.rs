//! The table.

use super::{Answer, Body, Endpoint, MAX_ATTACHMENT, MAX_BLOB_PIECE, Method, Parameter, ParameterKind, TypeOf};
use crate::api::ApiErrorCode::{
    self, Answered, Busy, Configuration as NotConfigured, HeldElsewhere, NameTaken, Resync, Stale,
};
use crate::api::*;

const fn json<T: schemars::JsonSchema>() -> Answer {
    Answer::Json(TypeOf::new::<T>())
}

const fn takes<T: schemars::JsonSchema>() -> Body {
    Body::Json(TypeOf::new::<T>())
}

const fn text(name: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, is_required: false, kind: ParameterKind::Text, summary }
}

const fn needed(name: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, is_required: true, kind: ParameterKind::Text, summary }
}

const fn number(name: &'static str, min: u64, max: u64, default: Option<u64>, summary: &'static str) -> Parameter {
    Parameter { name, is_required: false, kind: ParameterKind::Number { min, max, default }, summary }
}

/// Numbers that every JSON reader holds exactly.
const MAX_SEQ: u64 = (1 << 53) - 1;

const fn get(path: &'static str, name: &'static str, answer: Answer, summary: &'static str) -> Endpoint {
    Endpoint { method: Method::Get, path, name, summary, query: &[], body: Body::Nothing, answer, refusals: &[] }
}

const fn post(path: &'static str, name: &'static str, body: Body, answer: Answer, summary: &'static str) -> Endpoint {
    Endpoint { method: Method::Post, path, name, summary, query: &[], body, answer, refusals: &[] }
}

const fn patch(path: &'static str, name: &'static str, body: Body, answer: Answer, summary: &'static str) -> Endpoint {
    Endpoint { method: Method::Patch, path, name, summary, query: &[], body, answer, refusals: &[] }
}

const fn delete(path: &'static str, name: &'static str, answer: Answer, summary: &'static str) -> Endpoint {
    Endpoint { method: Method::Delete, path, name, summary, query: &[], body: Body::Nothing, answer, refusals: &[] }
}

impl Endpoint {
    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn may_refuse(self, refusals: &'static [ApiErrorCode]) -> Self {
        Self { refusals, ..self }
    }
}

/// Where a session is written to: another process may have it.
const WRITES: &[ApiErrorCode] = &[Busy, HeldElsewhere];

/// Every endpoint, in the order of the document.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/v1/health", "health", json::<Health>(), "Who answers and which version of the API it speaks."),
    get("/v1/server", "server_status", json::<ServerStatus>(), "What the server is doing."),
    post(
        "/v1/server/stop",
        "stop_server",
        takes::<StopServer>(),
        json::<ServerStatus>(),
        "Stops the server: at once where nothing runs, else as the body says.",
    )
    .may_refuse(&[Busy]),
    get("/v1/sessions", "list_sessions", json::<Sessions>(), "The sessions, the newest first.")
        .query(&[text("folder", "Only sessions of this folder, absolute.")]),
    post("/v1/sessions", "create_session", takes::<CreateSession>(), json::<SessionView>(), "Makes a session.")
        .may_refuse(&[NameTaken, NotConfigured]),
    post(
        "/v1/sessions/import",
        "import_session",
        Body::Lines,
        json::<Imported>(),
        "Makes a session of an export.",
    )
    .query(&[needed("folder", "The folder the session belongs to from now on, absolute.")])
    .may_refuse(&[NameTaken]),
    get("/v1/sessions/{id}", "get_session", json::<SessionView>(), "Everything about a session but its conversation."),
    patch(
        "/v1/sessions/{id}",
        "rename_session",
        takes::<RenameSession>(),
        json::<SessionRow>(),
        "Gives a session another name.",
    )
    .may_refuse(&[NameTaken, Busy, HeldElsewhere]),
    delete("/v1/sessions/{id}", "delete_session", Answer::Nothing, "Deletes a session for good.").may_refuse(WRITES),
    patch(
        "/v1/sessions/{id}/settings",
        "change_settings",
        takes::<ChangeSettings>(),
        json::<SessionView>(),
        "Changes settings; a run that goes on keeps its own.",
    )
    .may_refuse(&[Busy, HeldElsewhere, NotConfigured]),
    post(
        "/v1/sessions/{id}/branch",
        "branch_session",
        takes::<BranchSession>(),
        json::<SessionRow>(),
        "Makes a new session with a copy of this one, up to an event.",
    )
    .may_refuse(&[Busy, HeldElsewhere, NameTaken]),
    post(
        "/v1/sessions/{id}/cut",
        "cut_session",
        takes::<CutSession>(),
        json::<SessionCutDone>(),
        "Removes a message of the user and everything behind it.",
    )
    .may_refuse(WRITES),
    post(
        "/v1/sessions/{id}/move",
        "move_session",
        takes::<MoveSession>(),
        json::<SessionRow>(),
        "Puts a session into another folder.",
    )
    .may_refuse(&[Busy, HeldElsewhere, NameTaken]),
    get("/v1/sessions/{id}/export", "export_session", Answer::Lines, "All events of a session, a line of JSON each."),
    get("/v1/sessions/{id}/log", "read_log", json::<LogPage>(), "A page of the log; without a bound its last events.")
        .query(&[
            number("before", 1, MAX_SEQ, None, "Only events before this seq, the nearest ones."),
            number("after", 0, MAX_SEQ, None, "Only events after this seq, the nearest ones; with before: those between."),
            number("limit", 1, 1000, Some(200), "At most so many events."),
        ]),
    get(
        "/v1/sessions/{id}/events",
        "follow_events",
        Answer::Events,
        "The events of a session behind a seq, the open step so far, then what happens. Pieces of a block that come close \
         together come as one; offset says where each belongs.",
    )
    .query(&[number(
        "after",
        0,
        MAX_SEQ,
        None,
        "The last seq that is known; the header Last-Event-ID, where it is sent, counts instead. Without both: only what \
         happens from now on.",
    )])
    .may_refuse(&[Resync]),
    post(
        "/v1/sessions/{id}/messages",
        "send_message",
        takes::<SendMessage>(),
        json::<Sent>(),
        "Sends a message. It is safe when this is answered.",
    )
    .may_refuse(&[Busy, HeldElsewhere, NotConfigured]),
    get("/v1/sessions/{id}/pending", "list_pending", json::<PendingList>(), "The messages that wait."),
    patch(
        "/v1/sessions/{id}/pending/{pending}",
        "edit_pending",
        takes::<EditPending>(),
        json::<PendingList>(),
        "Changes a waiting message: its words, its delivery, its place.",
    )
    .may_refuse(WRITES),
    delete(
        "/v1/sessions/{id}/pending/{pending}",
        "cancel_pending",
        json::<crate::Pending>(),
        "Withdraws a waiting message and gives it back.",
    )
    .may_refuse(WRITES),
    post(
        "/v1/sessions/{id}/pending/pause",
        "pause_pending",
        takes::<PausePending>(),
        json::<PendingList>(),
        "Lets the queue stand still, or go on.",
    )
    .may_refuse(WRITES),
    post(
        "/v1/sessions/{id}/abort",
        "abort_run",
        takes::<Abort>(),
        json::<Aborted>(),
        "Ends the run that goes on. Answered when it has ended.",
    )
    .may_refuse(WRITES),
    get("/v1/sessions/{id}/approvals", "list_waiting", json::<Waiting>(), "What waits for a person."),
    post(
        "/v1/sessions/{id}/approvals/{call}",
        "answer_approval",
        takes::<AnswerApproval>(),
        Answer::Nothing,
        "Decides about a call. The first answer holds.",
    )
    .may_refuse(&[Answered, Stale, Busy, HeldElsewhere]),
    post(
        "/v1/sessions/{id}/questions/{call}",
        "answer_question",
        takes::<AnswerQuestion>(),
        Answer::Nothing,
        "Answers a question of the agent. The first answer holds.",
    )
    .may_refuse(&[Answered, Stale, Busy, HeldElsewhere]),
    post(
        "/v1/sessions/{id}/proposals",
        "decide_proposals",
        takes::<DecideProposals>(),
        json::<SessionView>(),
        "Decides what becomes of the proposals that a run left.",
    )
    .may_refuse(&[Answered, Stale, Busy, HeldElsewhere, NotConfigured]),
    get("/v1/sessions/{id}/changes", "list_changes", json::<Changes>(), "The open proposals, with their diffs."),
    post(
        "/v1/sessions/{id}/changes/apply",
        "apply_changes",
        takes::<ChangePathsGiven>(),
        json::<ChangesSettled>(),
        "Makes proposed changes: all that are given, or none of them where one no longer fits.",
    )
    .may_refuse(&[Busy, HeldElsewhere, Stale]),
    post(
        "/v1/sessions/{id}/changes/discard",
        "discard_changes",
        takes::<ChangePathsGiven>(),
        json::<ChangesSettled>(),
        "Drops proposed changes.",
    )
    .may_refuse(WRITES),
    get("/v1/sessions/{id}/files", "find_files", json::<Files>(), "Paths that a mention may mean, the best match first.")
        .query(&[
            text("q", "What was typed of the path; without it the folder itself is listed."),
            number("limit", 1, 200, Some(50), "At most so many paths."),
        ]),
    post(
        "/v1/sessions/{id}/attachments",
        "attach_file",
        Body::Bytes { max: MAX_ATTACHMENT },
        json::<Attached>(),
        "Makes a file into parts of a message.",
    )
    .query(&[needed("name", "The file's name."), text("media_type", "What the sender takes it for; the bytes decide.")])
    .may_refuse(&[HeldElsewhere]),
    get(
        "/v1/sessions/{id}/blobs/{blob}",
        "read_blob",
        Answer::Bytes,
        "Bytes of what a session kept, by its name (out-17) or its hash.",
    )
    .query(&[
        number("offset", 0, MAX_SEQ, Some(0), "The first byte."),
        number("limit", 1, MAX_BLOB_PIECE, Some(MAX_BLOB_PIECE), "At most so many bytes."),
    ]),
    get(
        "/v1/sessions/{id}/context",
        "get_context",
        json::<SessionContext>(),
        "The window of the next request, and what a compaction would do now.",
    )
    .may_refuse(&[NotConfigured]),
    post(
        "/v1/sessions/{id}/context",
        "preview_context",
        takes::<ChangeSettings>(),
        json::<SessionContext>(),
        "The same as it would be with these settings. Nothing is set and nothing done.",
    )
    .may_refuse(&[NotConfigured]),
    post(
        "/v1/sessions/{id}/compact",
        "compact_session",
        Body::Nothing,
        json::<SessionCompacted>(),
        "Makes the window of a session smaller. Not while a run goes on.",
    )
    .may_refuse(&[Busy, HeldElsewhere, NotConfigured]),
    post(
        "/v1/sessions/{id}/pins",
        "add_pin",
        takes::<AddPin>(),
        json::<PinPlaced>(),
        "Keeps something in the window whatever leaves it. Not while a run goes on.",
    )
    .may_refuse(&[Busy, HeldElsewhere, NotConfigured]),
    delete("/v1/sessions/{id}/pins/{pin}", "remove_pin", Answer::Nothing, "Takes a pin away. Not while a run goes on.")
        .may_refuse(&[Busy, HeldElsewhere]),
    get("/v1/sessions/{id}/runs", "list_runs", json::<Ledgers>(), "What the runs did, without their calls; the newest first."),
    get("/v1/sessions/{id}/runs/{run}", "get_run", json::<Ledger>(), "Everything a run did."),
    get("/v1/search", "search", json::<SearchResults>(), "Where all words occur, the newest first.").query(&[
        needed("q", "The words."),
        text("folder", "Only in sessions of this folder, absolute."),
        number("limit", 1, 200, Some(50), "At most so many hits."),
    ]),
    get("/v1/models", "list_models", json::<Models>(), "The models one can choose."),
    get("/v1/providers", "list_providers", json::<Providers>(), "The providers of the configuration, without their keys."),
    post(
        "/v1/providers",
        "save_provider",
        takes::<ProviderDraft>(),
        json::<Providers>(),
        "Writes a provider into the configuration file, and leaves everything else in it as it is.",
    )
    .may_refuse(&[NotConfigured]),
    get(
        "/v1/providers/known",
        "known_providers",
        json::<KnownProviders>(),
        "Well-known providers, and model servers that answer on this machine.",
    ),
    post(
        "/v1/providers/test",
        "test_provider",
        takes::<ProviderDraft>(),
        json::<ProviderTest>(),
        "Tests a provider as it would be, down to one token of an answer. Nothing is written.",
    )
    .may_refuse(&[NotConfigured]),
    get("/v1/settings", "get_settings", json::<Configuration>(), "The configuration in force, keys left out."),
    get("/v1/db", "database_stats", json::<DatabaseStats>(), "How large the database is."),
    post(
        "/v1/db/vacuum",
        "vacuum_database",
        Body::Nothing,
        json::<Vacuumed>(),
        "Gives unused space of the database back. Not while anything runs.",
    )
    .may_refuse(&[Busy]),
];
