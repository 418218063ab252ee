//! Ids of calls on the wire: unique in a request, the same in every request, in a shape every provider takes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hames_protocol::{CallId, Item};

/// Characters of a call id that every provider takes.
const MAX_ID_CHARS: usize = 40;

/// The wire ids of calls in the window: the provider's own where it can be told apart, else ours.
#[derive(Debug, Default)]
pub(super) struct Ids {
    by_call: HashMap<CallId, Arc<str>>,
    used: HashSet<Arc<str>>,
}

impl Ids {
    /// The id of a call, the same whenever it is asked for.
    pub(super) fn give(&mut self, call: &CallId, provider_id: &str) -> Arc<str> {
        if let Some(id) = self.by_call.get(call) {
            return Arc::clone(id);
        }
        let mut id: Arc<str> = provider_id.into();
        if provider_id.trim().is_empty() || self.used.contains(&id) {
            id = own_id(call.as_str(), 0).into();
        }
        let mut attempt = 0;
        while self.used.contains(&id) {
            attempt += 1;
            id = own_id(call.as_str(), attempt).into();
        }
        self.used.insert(Arc::clone(&id));
        self.by_call.insert(call.clone(), Arc::clone(&id));
        id
    }

    /// The id a call was given.
    pub(super) fn known(&self, call: &CallId) -> Option<&str> {
        self.by_call.get(call).map(AsRef::as_ref)
    }

    /// Frees the ids of calls that left the window.
    pub(super) fn forget(&mut self, items: &[Arc<Item>]) {
        for item in items {
            if let Item::Assistant(answer) = item.as_ref() {
                for call in &answer.calls {
                    if let Some(id) = self.by_call.remove(&call.call_id) {
                        self.used.remove(&id);
                    }
                }
            }
        }
    }
}

/// Our id of a call in a shape every provider takes.
fn own_id(call: &str, attempt: u32) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if attempt == 0 && (1..=MAX_ID_CHARS).contains(&call.len()) && call.chars().all(fits) {
        return call.to_owned();
    }
    let hash = blake3::hash(format!("{attempt} {call}").as_bytes()).to_hex();
    format!("call_{}", &hash[..24])
}
