//! What runs leave: changes, files, blobs, ledgers.

use axum::body::Body;
use hames_protocol::api::endpoint::{MAX_ATTACHMENT, MAX_BLOB_PIECE};
use hames_protocol::api::{ApiError, ApiErrorCode};
use hames_protocol::{LogError, RunId};

use crate::http::call::{Answered, Call, done, json, typed};

pub(super) async fn changes(call: Call) -> Answered {
    json(&call.app.hub.changes(&call.session()?).await?)
}

pub(super) async fn apply(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.apply_changes(&call.session()?, body).await?)
}

pub(super) async fn discard(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.discard_changes(&call.session()?, body).await?)
}

pub(super) async fn files(call: Call) -> Answered {
    let limit = usize::try_from(call.number("limit").unwrap_or(1)).unwrap_or(usize::MAX);
    json(&call.app.hub.files(&call.session()?, call.text("q").unwrap_or(""), limit).await?)
}

pub(super) async fn attach(mut call: Call) -> Answered {
    let bytes = call.bytes(MAX_ATTACHMENT).await?;
    json(&call.app.hub.attachment(&call.session()?, call.needed("name")?, bytes).await?)
}

pub(super) async fn blob(call: Call) -> Answered {
    let session = call.session()?;
    let asked = call.segment("blob")?;
    let hash = if is_hash(asked) {
        asked.to_owned()
    } else {
        let found = call.app.hub.store().blobs().named(&session, asked).await.map_err(unreadable)?;
        let missing = || ApiError::new(ApiErrorCode::NotFound, "This session kept nothing under that name.");
        found.ok_or_else(missing)?.hash
    };
    let offset = call.number("offset").unwrap_or(0);
    let limit = call.number("limit").unwrap_or(MAX_BLOB_PIECE);
    let bytes = call.app.hub.blob(&session, &hash, offset, limit).await?;
    Ok(typed("application/octet-stream", Body::from(bytes)))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn unreadable(error: LogError) -> ApiError {
    ApiError::new(ApiErrorCode::Storage, error.to_string())
}

pub(super) async fn add_pin(mut call: Call) -> Answered {
    let pin = call.json().await?;
    json(&call.app.hub.add_pin(&call.session()?, pin).await?)
}

pub(super) async fn remove_pin(call: Call) -> Answered {
    let missing = || ApiError::new(ApiErrorCode::NotFound, "A pin is named by a number.");
    let pin = call.segment("pin")?.parse().map_err(|_| missing())?;
    call.app.hub.remove_pin(&call.session()?, pin).await?;
    done()
}

pub(super) async fn ledgers(call: Call) -> Answered {
    json(&call.app.hub.ledgers(&call.session()?).await?)
}

pub(super) async fn ledger(call: Call) -> Answered {
    let run = RunId::from(call.segment("run")?);
    json(&call.app.hub.ledger(&call.session()?, &run).await?)
}

pub(super) async fn context(call: Call) -> Answered {
    json(&call.app.hub.context(&call.session()?).await?)
}

pub(super) async fn preview(mut call: Call) -> Answered {
    let draft = call.json().await?;
    json(&call.app.hub.preview_context(&call.session()?, draft).await?)
}

pub(super) async fn compact(call: Call) -> Answered {
    json(&call.app.hub.compact(&call.session()?).await?)
}
