//! Messages, what waits, answers.

use hames_protocol::{CallId, PendingId};

use crate::http::call::{Answered, Call, done, json};

pub(super) async fn send(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.send(&call.session()?, body).await?)
}

pub(super) async fn pending(call: Call) -> Answered {
    json(&call.app.hub.pending(&call.session()?).await?)
}

pub(super) async fn edit(mut call: Call) -> Answered {
    let body = call.json().await?;
    let pending = PendingId::from(call.segment("pending")?);
    json(&call.app.hub.edit_pending(&call.session()?, &pending, body).await?)
}

pub(super) async fn cancel(call: Call) -> Answered {
    let pending = PendingId::from(call.segment("pending")?);
    json(&call.app.hub.cancel_pending(&call.session()?, &pending).await?)
}

pub(super) async fn pause(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.pause(&call.session()?, body).await?)
}

pub(super) async fn abort(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.abort(&call.session()?, body).await?)
}

pub(super) async fn waiting(call: Call) -> Answered {
    json(&call.app.hub.waiting(&call.session()?).await?)
}

pub(super) async fn answer_approval(mut call: Call) -> Answered {
    let body = call.json().await?;
    let asked = CallId::from(call.segment("call")?);
    call.app.hub.answer_approval(&call.session()?, &asked, body).await?;
    done()
}

pub(super) async fn answer_question(mut call: Call) -> Answered {
    let body = call.json().await?;
    let asked = CallId::from(call.segment("call")?);
    call.app.hub.answer_question(&call.session()?, &asked, body).await?;
    done()
}

pub(super) async fn decide_proposals(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.decide_proposals(&call.session()?, body).await?)
}
