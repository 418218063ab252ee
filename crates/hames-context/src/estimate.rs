//! Estimating tokens without a tokenizer: four ASCII characters to a token, one token for every other UTF-16 unit: one for
//! a character, two for an emoji and whatever else lies beyond the basic plane.
//!
//! It errs upwards for CJK, which is the safe side: an underestimate is what kills a session.

use std::sync::Arc;

use hames_protocol::{Head, Item, Part};

/// ASCII characters that make a token, on average over code and prose.
const ASCII_PER_TOKEN: u64 = 4;
/// Tokens an image costs, whatever its size: close to what providers charge for one at full detail.
const IMAGE_TOKENS: u64 = 1_600;
/// Tokens of roles, separators and ids around one message.
const MESSAGE_OVERHEAD: u64 = 4;

/// What is counted of a text, piece by piece where it comes in pieces: their sum says what the whole text says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    ascii: u64,
    /// UTF-16 units of everything else.
    other: u64,
}

impl Counted {
    /// Counts a piece that follows.
    pub fn add(&mut self, piece: &str) {
        let bytes = piece.as_bytes();
        // Most texts are plain, and that is seen a word at a time.
        if bytes.is_ascii() {
            self.ascii += bytes.len() as u64;
        } else {
            let count = |is: fn(u8) -> bool| bytes.iter().filter(|byte| is(**byte)).count() as u64;
            self.ascii += count(|byte| byte < 0x80);
            self.other += count(|byte| byte >= 0xc0) + count(|byte| byte >= 0xf0);
        }
    }

    /// Estimated tokens so far.
    pub fn tokens(&self) -> u64 {
        self.ascii.div_ceil(ASCII_PER_TOKEN) + self.other
    }
}

/// Estimated tokens of a text.
pub fn estimate_tokens(text: &str) -> u64 {
    let mut counted = Counted::default();
    counted.add(text);
    counted.tokens()
}

/// Estimated tokens of the fixed beginning: every request pays for the tools' schemas.
pub fn estimate_head(head: &Head) -> u64 {
    let tools: u64 = head
        .tools
        .iter()
        .map(|t| {
            estimate_tokens(&t.name) + estimate_tokens(&t.description) + estimate_tokens(&t.parameters.to_string())
        })
        .sum();
    tools + estimate_tokens(&head.system) + MESSAGE_OVERHEAD * (head.tools.len() as u64 + 1)
}

/// Estimated tokens of one item, passed-back reasoning and arguments included.
pub fn estimate_item(item: &Item) -> u64 {
    let content = match item {
        Item::User(user) => estimate_parts(&user.parts) + user.note.as_deref().map_or(0, estimate_tokens),
        Item::Assistant(answer) => {
            let reasoning: u64 = answer
                .reasoning
                .iter()
                .map(|r| estimate_tokens(&r.text) + r.blocks.iter().map(|b| estimate_tokens(b)).sum::<u64>())
                .sum();
            let calls: u64 = answer
                .calls
                .iter()
                .map(|c| {
                    let extra = c.extra.as_deref().map_or(0, estimate_tokens);
                    estimate_tokens(&c.name) + estimate_tokens(&c.arguments) + extra + MESSAGE_OVERHEAD
                })
                .sum();
            estimate_tokens(&answer.text) + reasoning + calls
        }
        Item::Tool(tool) => estimate_tokens(&tool.text) + estimate_parts(&tool.attachments),
    };
    content + MESSAGE_OVERHEAD
}

/// Never by the length of an image's bytes: providers charge for what is seen.
fn estimate_parts(parts: &[Part]) -> u64 {
    let one = |part: &Part| match part {
        Part::Text { text } => estimate_tokens(text),
        Part::Image { name, .. } => IMAGE_TOKENS + name.as_deref().map_or(0, estimate_tokens) + MESSAGE_OVERHEAD,
    };
    parts.iter().map(one).sum()
}

/// Sums over a growing conversation without counting an item twice.
#[derive(Debug, Default)]
pub struct Estimator {
    counted: Vec<(Arc<Item>, u64)>,
}

impl Estimator {
    /// Estimated tokens of all items. Only what differs from the last call is counted anew.
    pub fn total(&mut self, items: &[Arc<Item>]) -> u64 {
        let same = self.counted.iter().zip(items).take_while(|((known, _), item)| Arc::ptr_eq(known, item)).count();
        self.counted.truncate(same);
        self.counted.extend(items[same..].iter().map(|item| (Arc::clone(item), estimate_item(item))));
        self.counted.iter().map(|(_, tokens)| tokens).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hames_protocol::{AssistantItem, CallItem, Label, ReasoningBlock, ToolItem, ToolSpec, UserItem};
    use proptest::prelude::*;

    fn user(text: &str) -> Arc<Item> {
        Arc::new(Item::User(UserItem { parts: vec![Part::text(text)], ..UserItem::default() }))
    }

    #[test]
    fn every_unit_beyond_ascii_counts_as_a_token() {
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("abcd", 1),
            ("abcde", 2),
            ("é", 1),
            ("漢字です", 4),
            ("a漢", 2),
            ("🙂🙂", 4),
            ("𠮷", 2),
        ] {
            assert_eq!(estimate_tokens(text), tokens, "{text}");
        }
    }

    #[test]
    fn an_image_costs_the_same_whatever_its_size() {
        let cost = |bytes: u64, of_result: bool| {
            let blob = hames_protocol::BlobRef { hash: "h".into(), bytes, dropped: 0, name: None };
            let parts = vec![Part::Image { blob, media_type: "image/png".into(), name: None }];
            estimate_item(&match of_result {
                false => Item::User(UserItem { parts, ..UserItem::default() }),
                true => Item::Tool(ToolItem {
                    call_id: "c".into(),
                    name: "Read".into(),
                    text: String::new(),
                    error: None,
                    blob: None,
                    attachments: parts,
                    capability: false,
                }),
            })
        };
        for bytes in [1, 100, 8 << 20] {
            for of_result in [false, true] {
                assert_eq!(cost(bytes, of_result), IMAGE_TOKENS + 2 * MESSAGE_OVERHEAD);
            }
        }
    }

    #[test]
    fn everything_that_a_request_carries_is_counted() {
        let long = "x".repeat(4_000);
        let head = |description: &str, parameters: &str| {
            let tool = ToolSpec {
                name: "Read".into(),
                description: description.into(),
                parameters: serde_json::json!({"type": "object", "description": parameters}),
            };
            estimate_head(&Head { tools: vec![tool], system: "Be brief.".into() })
        };
        assert_eq!(head(&long, "") - head("", ""), 1_000);
        assert_eq!(head("", &long) - head("", ""), 1_000);
        let answer = |arguments: &str, extra: Option<&str>, thought: &str, block: &str| {
            let call = CallItem {
                call_id: "c".into(),
                provider_id: "c".into(),
                name: "Read".into(),
                arguments: arguments.into(),
                input: None,
                label: Label::default(),
                extra: extra.map(str::to_owned),
            };
            let reasoning =
                ReasoningBlock { text: thought.into(), blocks: vec![block.into()], ..ReasoningBlock::default() };
            let item = AssistantItem { calls: vec![call], reasoning: vec![reasoning], ..AssistantItem::default() };
            estimate_item(&Item::Assistant(item))
        };
        let bare = answer("", None, "", "");
        for (whole, what) in [
            (answer(&long, None, "", ""), "arguments"),
            (answer("", Some(&long), "", ""), "what goes back with a call"),
            (answer("", None, &long, ""), "reasoning"),
            (answer("", None, "", &long), "opaque reasoning"),
        ] {
            assert_eq!(whole - bare, 1_000, "{what}");
        }
    }

    proptest! {
        #[test]
        fn the_running_sum_equals_a_fresh_one(texts in proptest::collection::vec(".{0,40}", 0..20), cut in 0usize..20) {
            let items: Vec<_> = texts.iter().map(|t| user(t)).collect();
            let mut running = Estimator::default();
            running.total(&items[..cut.min(items.len())]);
            prop_assert_eq!(running.total(&items), Estimator::default().total(&items));
        }
    }
}
