//! A request becomes a call of the client, and its answer the app's.

use std::sync::Arc;

use hames_client::{Client, ClientError, LogRange, Upload};
use hames_protocol::api::{
    ApiError, ApiErrorCode, ChangePathsGiven, ChangeSettings, CutSession, MoveSession, PausePending, RenameSession,
};

use super::failed;
use super::link::Links;
use crate::{Answer, Request};

/// How often something is sent.
const ATTEMPTS: u32 = 4;
/// Paths of a mention.
const FILES: u32 = 50;
/// Hits of a search.
const HITS: u32 = 100;

/// Sends a request once there is a server, again where that is safe, and gives its answer. One that was stopped is started
/// for what is done `by_hand`.
pub(super) async fn perform(links: &Arc<Links>, request: Request, by_hand: bool) -> Result<Answer, ApiError> {
    let mut attempt = 1;
    loop {
        let client = links.client(by_hand).await.ok_or_else(|| failed("the program ends"))?;
        let error = match call(&client, &request).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let is_sure = matches!(error, ClientError::Unreachable { .. });
        // One that stops does nothing more; the next one may.
        if matches!(&error, ClientError::Refused(refusal) if refusal.code == ApiErrorCode::Stopping) {
            links.stopped().await;
            if attempt < ATTEMPTS && may_repeat(&request) {
                attempt += 1;
                continue;
            }
        }
        if is_sure || matches!(error, ClientError::Lost(_)) {
            links.lost(&error.to_string()).await;
            if attempt < ATTEMPTS && (is_sure || may_repeat(&request)) {
                attempt += 1;
                continue;
            }
        }
        return Err(match error {
            ClientError::Refused(refusal) => refusal,
            ClientError::Lost(why) => failed(format!(
                "the connection to the server broke ({why}), so it is not known whether this was done; look, then try again"
            )),
            other => failed(other.to_string()),
        });
    }
}

/// Whether doing it twice is doing it once.
fn may_repeat(request: &Request) -> bool {
    match request {
        Request::Send(_, message) => message.idempotency_id.is_some(),
        Request::Sessions(_)
        | Request::View(_)
        | Request::Page { .. }
        | Request::PausePending(..)
        | Request::Waiting(_)
        | Request::ChangeSettings(..)
        | Request::Rename(..)
        | Request::Changes(_)
        | Request::Files(..)
        | Request::Attach { .. }
        | Request::Artifact { .. }
        | Request::Search(..)
        | Request::Models
        | Request::Providers
        | Request::KnownProviders
        | Request::Configuration
        | Request::Context(_)
        | Request::Preview(..)
        | Request::Database => true,
        // A stop that is sent again could end the next run.
        _ => false,
    }
}

async fn call(client: &Client, request: &Request) -> Result<Answer, ClientError> {
    let some = |paths: &[String]| ChangePathsGiven { paths: paths.to_vec() };
    Ok(match request {
        Request::Sessions(folder) => Answer::Sessions(client.sessions(folder.as_deref()).await?),
        Request::Create(create) => view(client.create_session(create).await?),
        Request::View(id) => view(client.session(id).await?),
        Request::Page { session, before, limit } => {
            let range = LogRange { before: *before, after: None, limit: Some(*limit) };
            Answer::Page(client.log(session, range).await?)
        }
        Request::Send(id, message) => Answer::Sent(client.send(id, message).await?),
        Request::EditPending(id, pending, edit) => done(client.edit_pending(id, pending, edit).await?),
        Request::CancelPending(id, pending) => done(client.cancel_pending(id, pending).await?),
        Request::PausePending(id, paused) => done(client.pause_pending(id, &PausePending { paused: *paused }).await?),
        Request::Abort(id, abort) => Answer::Aborted(client.abort(id, abort).await?),
        Request::Waiting(id) => Answer::Waiting(client.waiting(id).await?),
        Request::AnswerApproval(id, call, answer) => done(client.answer_approval(id, call, answer).await?),
        Request::AnswerQuestion(id, call, answer) => done(client.answer_question(id, call, answer).await?),
        Request::DecideProposals(id, decide) => view(client.decide_proposals(id, decide).await?),
        Request::ChangeSettings(id, settings, unset) => {
            let change = ChangeSettings { settings: (**settings).clone(), unset: unset.clone() };
            view(client.change_settings(id, &change).await?)
        }
        Request::Rename(id, name) => {
            Answer::Row(client.rename_session(id, &RenameSession { name: name.clone() }).await?)
        }
        Request::Delete(id) => done(client.delete_session(id).await?),
        Request::Branch(id, branch) => Answer::Row(client.branch_session(id, branch).await?),
        Request::Cut(id, from_seq) => Answer::Cut(client.cut_session(id, &CutSession { from_seq: *from_seq }).await?),
        Request::Move(id, folder) => {
            Answer::Row(client.move_session(id, &MoveSession { folder: folder.clone() }).await?)
        }
        Request::Changes(id) => Answer::Changes(client.changes(id).await?),
        Request::ApplyChanges(id, paths) => Answer::Settled(client.apply_changes(id, &some(paths)).await?),
        Request::DiscardChanges(id, paths) => Answer::Settled(client.discard_changes(id, &some(paths)).await?),
        Request::Files(id, typed) => Answer::Files(client.files(id, typed, Some(FILES)).await?),
        Request::Attach { session, name, bytes } => {
            let content = Upload::Bytes(bytes.clone().into());
            Answer::Attached(client.attach(session, name, None, content).await?)
        }
        Request::Artifact { session, name, offset, limit } => {
            Answer::Artifact(client.blob(session, name, *offset, *limit).await?)
        }
        Request::Search(words, folder) => Answer::Search(client.search(words, folder.as_deref(), Some(HITS)).await?),
        Request::Models => Answer::Models(client.models().await?),
        Request::Providers => Answer::Providers(client.providers().await?),
        Request::KnownProviders => Answer::KnownProviders(client.known_providers().await?),
        Request::TestProvider(draft) => Answer::Tested(client.test_provider(draft).await?),
        Request::SaveProvider(draft) => Answer::Providers(client.save_provider(draft).await?),
        Request::Configuration => Answer::Configuration(client.settings().await?),
        Request::Context(id) => Answer::Context(Box::new(client.context(id).await?)),
        Request::Preview(id, settings, unset) => {
            let draft = ChangeSettings { settings: (**settings).clone(), unset: unset.clone() };
            Answer::Context(Box::new(client.preview_context(id, &draft).await?))
        }
        Request::Compact(id) => Answer::Compacted(Box::new(client.compact(id).await?)),
        Request::Database => Answer::Database(client.database().await?),
        Request::Vacuum => Answer::Vacuumed(client.vacuum().await?),
    })
}

fn view(view: hames_protocol::api::SessionView) -> Answer {
    Answer::View(Box::new(view))
}

/// What the events say anyway.
fn done<T>(_: T) -> Answer {
    Answer::Done
}
