//! Who watches a run: renders what is seen and hands it to the printer.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use hames_agent::Watch;
use hames_protocol::Envelope;
use tokio_util::sync::CancellationToken;

use super::json::JsonLines;
use super::printer::Sink;
use super::text::Text;

/// How a run is shown.
#[derive(Debug)]
pub(crate) enum Renderer {
    Text(Box<Text>),
    Json(JsonLines),
}

impl Renderer {
    fn see(&mut self, batch: &[Envelope]) {
        match self {
            Renderer::Text(text) => text.see(batch),
            Renderer::Json(json) => json.see(batch),
        }
    }
}

/// A run's watcher.
#[derive(Debug)]
pub(crate) struct Screen {
    renderer: Mutex<Renderer>,
    sink: Sink,
    abort: CancellationToken,
}

impl Screen {
    pub(crate) fn new(renderer: Renderer, sink: Sink, abort: CancellationToken) -> Self {
        Self { renderer: Mutex::new(renderer), sink, abort }
    }

    fn render(&self, batch: &[Envelope]) {
        self.renderer.lock().unwrap_or_else(PoisonError::into_inner).see(batch);
    }
}

#[async_trait]
impl Watch for Screen {
    /// A reader that is slow makes whoever emitted wait here; the bodies of running tools go on. Once the run is being
    /// ended nobody waits any more: what is left to say is little.
    async fn see(&self, batch: &[Envelope]) {
        self.render(batch);
        if self.sink.is_full() {
            tokio::select! {
                () = self.sink.room() => {}
                () = self.abort.cancelled() => {}
            }
        }
    }

    fn glimpse(&self, live: Envelope) {
        if !self.sink.is_full() {
            self.render(std::slice::from_ref(&live));
        }
    }
}
