//! A session's events, in batches, to the app.

use std::sync::Arc;

use futures_util::FutureExt;
use hames_client::News;
use hames_protocol::{Envelope, SessionId};
use tokio::sync::mpsc;

use super::link::Links;
use crate::Input;

/// Events in one batch; a frame is drawn between two.
const MAX_BATCH: usize = 512;

/// Follows until the session is gone, or has to be read again, or nobody listens.
pub(super) async fn follow(links: Arc<Links>, session: SessionId, after: u64, heard_by: mpsc::Sender<Input>) {
    let Some(client) = links.client(false).await else { return };
    let mut news = client.events(&session, after);
    let mut batch: Vec<Envelope> = Vec::new();
    loop {
        // What is there already goes along; what would have to be waited for does not hold it up.
        let next = match news.next().now_or_never() {
            Some(next) if batch.len() < MAX_BATCH => next,
            at_once => {
                if !batch.is_empty() && heard_by.send(Input::News(std::mem::take(&mut batch))).await.is_err() {
                    return;
                }
                match at_once {
                    Some(next) => next,
                    None => news.next().await,
                }
            }
        };
        let last = match next {
            Some(News::Event(envelope)) => {
                batch.push(*envelope);
                continue;
            }
            Some(News::Connected) => continue,
            Some(News::Lost { stopping: true, .. }) => {
                links.stopped().await;
                continue;
            }
            Some(News::Lost { why, .. }) => {
                links.lost(&why).await;
                continue;
            }
            Some(News::Resync { .. }) => Input::Resync,
            Some(News::Ended(error)) => Input::Gone(error.to_string()),
            None => return,
        };
        // Behind what was heard before it.
        if !batch.is_empty() {
            let _ = heard_by.send(Input::News(batch)).await;
        }
        let _ = heard_by.send(last).await;
        return;
    }
}
