//! The server, its database, its configuration.

use crate::http::call::{Answered, Call, json};

pub(super) async fn health(call: Call) -> Answered {
    json(&call.app.health())
}

pub(super) async fn status(call: Call) -> Answered {
    json(&call.app.status())
}

pub(super) async fn stop(mut call: Call) -> Answered {
    let body = call.json().await?;
    call.app.hub.stop(body).await?;
    json(&call.app.status())
}

pub(super) async fn models(call: Call) -> Answered {
    json(&call.app.hub.models().await?)
}

pub(super) async fn providers(call: Call) -> Answered {
    json(&call.app.hub.providers().await?)
}

pub(super) async fn save_provider(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.save_provider(body).await?)
}

pub(super) async fn known_providers(call: Call) -> Answered {
    json(&call.app.hub.known_providers().await?)
}

pub(super) async fn test_provider(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.test_provider(body).await?)
}

pub(super) async fn configuration(call: Call) -> Answered {
    json(&call.app.hub.configuration().await?)
}

pub(super) async fn database(call: Call) -> Answered {
    json(&call.app.hub.database().await?)
}

pub(super) async fn vacuum(call: Call) -> Answered {
    json(&call.app.hub.vacuum().await?)
}
