//! What the model pins: a list of its own, replaced as a whole, so that nothing has to be named to be taken back.

use hames_protocol::{Event, Pin, PinAdded, PinRemoved, PinTarget, PinnedBy};
use serde_json::Value;

/// Texts: more is a document, not a few decisions.
const MAX_PINS: usize = 40;

/// Reads the texts; blank ones and repetitions count for nothing.
pub(super) fn read(pins: &Value) -> Result<Vec<String>, String> {
    let items: Vec<&Value> = match pins {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    };
    if items.len() > MAX_PINS {
        return Err(format!("{} pins are too many; at most {MAX_PINS} can be kept, so merge some", items.len()));
    }
    let mut texts: Vec<String> = Vec::new();
    for item in items {
        let text = item.as_str().ok_or("pins must be a list of texts")?.trim();
        if !text.is_empty() && !texts.iter().any(|known| known == text) {
            texts.push(text.to_owned());
        }
    }
    Ok(texts)
}

/// What makes these texts the model's pins: only what is different, so that what stays pinned stays where it stands.
pub(super) fn changes(pinned: &[Pin], texts: &[String]) -> Vec<Event> {
    let own: Vec<(u64, &str)> = pinned
        .iter()
        .filter_map(|pin| match &pin.target {
            PinTarget::Text { text } if pin.by == PinnedBy::Model => Some((pin.seq, text.as_str())),
            _ => None,
        })
        .collect();
    let removed = own.iter().filter(|(_, text)| !texts.iter().any(|kept| kept == text));
    let added = texts.iter().filter(|text| !own.iter().any(|(_, known)| known == text));
    removed
        .map(|(pin, _)| Event::PinRemoved(PinRemoved { pin: *pin }))
        .chain(added.map(|text| {
            let target = PinTarget::Text { text: text.clone() };
            Event::PinAdded(PinAdded { target, by: PinnedBy::Model })
        }))
        .collect()
}
