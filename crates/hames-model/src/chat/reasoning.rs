//! Keeps an answer's reasoning so that it can be shown, and sent back exactly as the provider needs it.
//!
//! Text comes in one of several fields, and some servers fill two of them with the same words: the first that holds text
//! counts. `reasoning_details` is kept besides, block by block: pieces of one text block are joined, signed and encrypted
//! blocks stay what they are.

use hames_protocol::ReasoningBlock;
use serde_json::{Map, Value};

use super::wire::{Delta, Scalar};

/// Where text of a content array's thinking parts is said to come from.
pub(crate) const FIELD_CONTENT: &str = "content";
pub(crate) const FIELD_REASONING_CONTENT: &str = "reasoning_content";
pub(crate) const FIELD_REASONING: &str = "reasoning";
/// The commonest tag, which stands for whichever it was until that is known.
pub(crate) const FIELD_TAGS: &str = "<think>";
pub(crate) const FIELD_DETAILS: &str = "reasoning_details";

/// The reasoning of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct Reasoning {
    text: String,
    field: &'static str,
    blocks: Vec<Map<String, Value>>,
}

impl Reasoning {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Blocks that are kept besides the text.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Appends text that stood in the content between tags.
    pub(crate) fn push_tagged(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(FIELD_TAGS, text);
        }
    }

    /// Takes back what [`push_tagged`](Self::push_tagged) gave, where that was all.
    pub(crate) fn take_tagged(&mut self) -> String {
        if self.field != FIELD_TAGS {
            return String::new();
        }
        self.field = "";
        std::mem::take(&mut self.text)
    }

    /// The tag between which the content's reasoning stood.
    pub(crate) fn came_in(&mut self, tag: &'static str) {
        if self.field == FIELD_TAGS {
            self.field = tag;
        }
    }

    /// Appends text that came in `field`.
    pub(crate) fn push(&mut self, field: &'static str, text: &str) {
        if self.field.is_empty() {
            self.field = field;
        }
        self.text.push_str(text);
    }

    /// Takes in one delta's reasoning; gives the text it added.
    pub(crate) fn take<'d>(&mut self, delta: &'d Delta<'_>) -> Option<std::borrow::Cow<'d, str>> {
        let details = delta.reasoning_details.and_then(|raw| serde_json::from_str::<Vec<Value>>(raw.get()).ok());
        let plain = [(FIELD_REASONING_CONTENT, &delta.reasoning_content), (FIELD_REASONING, &delta.reasoning)];
        let mut found = plain.into_iter().find_map(|(field, value)| Some((field, scalar_text(value)?)));
        if found.is_none()
            && let Some(details) = &details
        {
            let text: String = details.iter().filter_map(detail_text).collect();
            found = (!text.is_empty()).then_some((FIELD_DETAILS, text.into()));
        }
        for block in details.into_iter().flatten() {
            if let Value::Object(block) = block {
                self.take_block(block);
            }
        }
        let (field, text) = found?;
        self.push(field, &text);
        Some(text)
    }

    /// A piece of the text block before it, or a block of its own.
    fn take_block(&mut self, block: Map<String, Value>) {
        match self.blocks.last_mut() {
            Some(last) if continues(last, &block) => join(last, block),
            _ => self.blocks.push(block),
        }
    }

    /// The reasoning as one block; nothing where there was none.
    pub(crate) fn into_blocks(self) -> Vec<ReasoningBlock> {
        if self.text.is_empty() && self.blocks.is_empty() {
            return Vec::new();
        }
        let field = if self.field.is_empty() { FIELD_DETAILS } else { self.field };
        let blocks = self.blocks.into_iter().map(|b| Value::Object(b).to_string()).collect();
        vec![ReasoningBlock { text: self.text, field: field.to_owned(), blocks }]
    }
}

const TEXT_MEMBERS: [&str; 2] = ["text", "summary"];

fn continues(last: &Map<String, Value>, block: &Map<String, Value>) -> bool {
    let is_text = |b: &Map<String, Value>| {
        !b.contains_key("data") && TEXT_MEMBERS.iter().any(|m| b.contains_key(*m)) || b.contains_key("signature")
    };
    let signed = last.get("signature").is_some_and(is_filled);
    let has_text = TEXT_MEMBERS.iter().any(|m| block.get(*m).is_some_and(is_filled));
    // What follows a signature is signed anew: another block, though it may carry the same index.
    is_text(last)
        && is_text(block)
        && !(signed && has_text)
        && ["type", "index", "id"].iter().all(|key| match (last.get(*key), block.get(*key)) {
            (Some(a), Some(b)) => a == b || a.is_null() || b.is_null(),
            _ => true,
        })
}

fn join(last: &mut Map<String, Value>, block: Map<String, Value>) {
    for (key, value) in block {
        match last.get_mut(&key) {
            Some(Value::String(text)) if TEXT_MEMBERS.contains(&key.as_str()) => {
                text.push_str(value.as_str().unwrap_or(""));
            }
            Some(old) if is_filled(&value) => *old = value,
            Some(_) => {}
            None => {
                last.insert(key, value);
            }
        }
    }
}

fn is_filled(value: &Value) -> bool {
    !matches!(value, Value::Null) && value.as_str() != Some("")
}

fn detail_text(detail: &Value) -> Option<&str> {
    TEXT_MEMBERS.iter().find_map(|member| detail.get(member)?.as_str().filter(|t| !t.is_empty()))
}

/// The text of a field that should be a string and may be a list of parts.
fn scalar_text<'a>(value: &'a Scalar<'_>) -> Option<std::borrow::Cow<'a, str>> {
    match value {
        Scalar::Other(value) => Some(gathered(value)).filter(|t| !t.is_empty()).map(Into::into),
        _ => value.text().map(Into::into),
    }
}

/// All text inside a thinking part, whichever of the known shapes it has.
pub(crate) fn gathered(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(gathered).collect(),
        Value::Object(part) => ["thinking", "reasoning", "summary", "text", "content"]
            .iter()
            .find_map(|member| part.get(*member).filter(|v| is_filled(v)))
            .map(gathered)
            .unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_of(deltas: &[&str]) -> ReasoningBlock {
        let mut reasoning = Reasoning::default();
        for delta in deltas {
            reasoning.take(&serde_json::from_str(delta).unwrap());
        }
        reasoning.into_blocks().pop().unwrap_or_default()
    }

    #[test]
    fn text_is_taken_from_one_field_of_a_delta_never_from_two() {
        let cases = [
            (r#"{"reasoning_content":"a"}"#, "a", "reasoning_content"),
            (r#"{"reasoning":"a"}"#, "a", "reasoning"),
            (r#"{"reasoning_content":"a","reasoning":"a"}"#, "a", "reasoning_content"),
            (r#"{"reasoning_content":null,"reasoning":"a"}"#, "a", "reasoning"),
            (r#"{"reasoning_content":"","reasoning":"a"}"#, "a", "reasoning"),
            (r#"{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}"#, "a", "reasoning"),
            (r#"{"reasoning_details":[{"type":"reasoning.text","text":"a"},{"text":"b"}]}"#, "ab", "reasoning_details"),
            (r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"a"}]}"#, "a", "reasoning_details"),
            (r#"{"reasoning_content":["a",{"text":"b"}]}"#, "ab", "reasoning_content"),
            (r#"{"reasoning_details":"odd","reasoning":"a"}"#, "a", "reasoning"),
        ];
        for (delta, text, field) in cases {
            let block = block_of(&[delta]);
            assert_eq!((block.text.as_str(), block.field.as_str()), (text, field), "{delta}");
        }
        assert_eq!(block_of(&[r#"{"reasoning":""}"#]), ReasoningBlock::default());
    }

    #[test]
    fn pieces_of_a_signed_block_become_one_and_opaque_blocks_stay_apart() {
        let block = block_of(&[
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"I ","index":0,"format":"f"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"see","signature":"","index":0,"format":"f"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","signature":"S+/=","index":0,"format":"f"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"E1==","id":"x","index":1}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"E2==","id":"x","index":1}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"more","index":2}]}"#,
        ]);
        assert_eq!(block.text, "I seemore");
        assert_eq!(
            block.blocks,
            [
                r#"{"type":"reasoning.text","text":"I see","index":0,"format":"f","signature":"S+/="}"#,
                r#"{"type":"reasoning.encrypted","data":"E1==","id":"x","index":1}"#,
                r#"{"type":"reasoning.encrypted","data":"E2==","id":"x","index":1}"#,
                r#"{"type":"reasoning.text","text":"more","index":2}"#,
            ]
        );
    }

    #[test]
    fn text_after_a_signature_is_another_block() {
        let block = block_of(&[
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"S1","index":0}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"b","signature":"S2","index":0}]}"#,
        ]);
        assert_eq!(block.blocks.len(), 2);
    }
}
