//! Sessions.

use std::path::Path;

use crate::http::call::{Answered, Call, done, json};

pub(super) async fn list(call: Call) -> Answered {
    json(&call.app.hub.sessions(call.text("folder").map(Path::new)).await?)
}

pub(super) async fn create(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.create(body).await?)
}

pub(super) async fn get(call: Call) -> Answered {
    json(&call.app.hub.view(&call.session()?).await?)
}

pub(super) async fn rename(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.rename(&call.session()?, body).await?)
}

pub(super) async fn delete(call: Call) -> Answered {
    call.app.hub.delete(&call.session()?).await?;
    done()
}

pub(super) async fn change_settings(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.change_settings(&call.session()?, body).await?)
}

pub(super) async fn branch(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.branch(&call.session()?, body).await?)
}

pub(super) async fn cut(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.cut(&call.session()?, body).await?)
}

pub(super) async fn move_to(mut call: Call) -> Answered {
    let body = call.json().await?;
    json(&call.app.hub.move_to(&call.session()?, body).await?)
}

pub(super) async fn log(call: Call) -> Answered {
    let (before, after) = (call.number("before"), call.number("after"));
    let limit = usize::try_from(call.number("limit").unwrap_or(1)).unwrap_or(usize::MAX);
    let hub = &call.app.hub;
    let page = match (before, after) {
        (Some(_), Some(after)) => {
            let mut page = hub.log(&call.session()?, before, None, limit).await?;
            let found = page.events.len();
            page.events.retain(|envelope| envelope.seq.is_none_or(|seq| seq > after));
            // What lies before `after` was not asked for.
            page.older &= page.events.len() == found;
            page
        }
        _ => hub.log(&call.session()?, before, after, limit).await?,
    };
    json(&page)
}

pub(super) async fn search(call: Call) -> Answered {
    let limit = usize::try_from(call.number("limit").unwrap_or(1)).unwrap_or(usize::MAX);
    json(&call.app.hub.search(call.needed("q")?, call.text("folder").map(Path::new), limit).await?)
}
