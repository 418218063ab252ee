//! A tool's own events on their way out, without secrets.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hames_protocol::{Emit, Event, Failure, ToolOutputDelta};
use serde_json::Value;

use crate::Secrets;

/// Passes a tool's events on and masks known secrets in them. A secret that comes in two pieces of live output is
/// masked too: what may be the beginning of one is held back until the next piece.
pub(super) struct MaskedEmit {
    inner: Arc<dyn Emit>,
    secrets: Arc<Secrets>,
    live: Mutex<Live>,
}

/// Live output of the call so far.
#[derive(Default)]
struct Live {
    held: Option<ToolOutputDelta>,
    /// Bytes that masking has added or removed so far: offsets count what was shown.
    shift: i64,
}

impl MaskedEmit {
    pub(super) fn new(inner: Arc<dyn Emit>, secrets: Arc<Secrets>) -> Self {
        Self { inner, secrets, live: Mutex::default() }
    }

    /// Shows what is held back: the tool has ended, so no secret can grow from it.
    pub(super) fn flush(&self) {
        let rest = {
            let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.held.take().map(|held| self.ready(&mut live, held))
        };
        if let Some(rest) = rest {
            self.inner.show(Event::ToolOutputDelta(rest));
        }
    }

    fn live_output(&self, mut delta: ToolOutputDelta) -> Option<ToolOutputDelta> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        // After a gap what is held can no longer be completed, and half a secret is shown to nobody.
        if let Some(held) = live.held.take().filter(|held| held.offset + held.text.len() as u64 == delta.offset) {
            delta = ToolOutputDelta { text: held.text + &delta.text, offset: held.offset, ..delta };
        }
        let open = delta.text.split_off(self.secrets.settled(&delta.text));
        if !open.is_empty() {
            let offset = delta.offset + delta.text.len() as u64;
            live.held = Some(ToolOutputDelta { call_id: delta.call_id.clone(), offset, text: open });
        }
        (!delta.text.is_empty()).then(|| self.ready(&mut live, delta))
    }

    fn ready(&self, live: &mut Live, delta: ToolOutputDelta) -> ToolOutputDelta {
        let text = self.secrets.mask(&delta.text).into_owned();
        let offset = delta.offset.saturating_add_signed(live.shift);
        live.shift += text.len() as i64 - delta.text.len() as i64;
        ToolOutputDelta { offset, text, ..delta }
    }
}

#[async_trait]
impl Emit for MaskedEmit {
    async fn record(&self, events: Vec<Event>) -> Result<(), Failure> {
        self.inner.record(events.into_iter().map(|event| masked(&self.secrets, event)).collect()).await
    }

    fn show(&self, event: Event) {
        let event = match event {
            Event::ToolOutputDelta(delta) => self.live_output(delta).map(Event::ToolOutputDelta),
            other => Some(masked(&self.secrets, other)),
        };
        if let Some(event) = event {
            self.inner.show(event);
        }
    }
}

/// The event with every secret in its texts masked.
pub(super) fn masked(secrets: &Secrets, event: Event) -> Event {
    if secrets.is_empty() {
        return event;
    }
    let Ok(mut value) = serde_json::to_value(&event) else { return event };
    if !mask_strings(secrets, &mut value) {
        return event;
    }
    serde_json::from_value(value).unwrap_or(event)
}

fn mask_strings(secrets: &Secrets, value: &mut Value) -> bool {
    match value {
        Value::String(text) => match secrets.mask(text) {
            std::borrow::Cow::Owned(clean) => {
                *text = clean;
                true
            }
            std::borrow::Cow::Borrowed(_) => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |any, item| mask_strings(secrets, item) | any),
        Value::Object(fields) => fields.values_mut().fold(false, |any, field| mask_strings(secrets, field) | any),
        _ => false,
    }
}
