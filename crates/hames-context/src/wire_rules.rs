//! The rules a conversation has to keep before it is sent. A provider that refuses it once would refuse it for ever,
//! so a broken rule is found here, named, and nothing is sent.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use hames_protocol::{CallId, Item, Part};

/// A rule of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireRule {
    /// The conversation opens with the user.
    OpensWithUser,
    /// A user message says something.
    UserSaysSomething,
    /// An answer has text or calls, or is left out.
    AnswerNotEmpty,
    /// No two calls share an id.
    CallIdsUnique,
    /// Every call is answered before anything else is said.
    CallsAnswered,
    /// A result answers a call of the step right before it.
    ResultHasCall,
    /// A call is answered once.
    ResultOnce,
    /// A result is never blank.
    ResultNotBlank,
}

impl WireRule {
    /// The rule in words.
    pub fn as_str(self) -> &'static str {
        match self {
            WireRule::OpensWithUser => "the conversation must open with a user message",
            WireRule::UserSaysSomething => "a user message must not be empty",
            WireRule::AnswerNotEmpty => "an answer must hold text or calls",
            WireRule::CallIdsUnique => "call ids must be unique",
            WireRule::CallsAnswered => "every call must be answered before the conversation goes on",
            WireRule::ResultHasCall => "a result must answer a call of the step before it",
            WireRule::ResultOnce => "a call must be answered only once",
            WireRule::ResultNotBlank => "a result must not be blank",
        }
    }
}

/// Which rule is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RuleBroken {
    /// The rule.
    pub rule: WireRule,
    /// Index of the item that breaks it.
    pub item: usize,
}

impl fmt::Display for RuleBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} cannot be sent: {}", self.item + 1, self.rule.as_str())
    }
}

/// Checks a growing conversation, looking again only at what came since the last whole exchange.
#[derive(Debug, Default)]
pub struct WireRules {
    ids: HashSet<CallId>,
    /// Items known to be good, up to a point where no call was open, and the last of them to notice a rewrite.
    good: usize,
    last: Option<Arc<Item>>,
}

impl WireRules {
    /// Whether the conversation may be sent.
    pub fn check(&mut self, items: &[Arc<Item>]) -> Result<(), RuleBroken> {
        let unchanged = match (&self.last, self.good.checked_sub(1).and_then(|i| items.get(i))) {
            (Some(last), Some(item)) => Arc::ptr_eq(last, item),
            (None, _) => true,
            _ => false,
        };
        if !unchanged {
            *self = Self::default();
        }
        let broken = |rule, item| Err(RuleBroken { rule, item });
        let mut open: Vec<&CallId> = Vec::new();
        let mut answered: Vec<&CallId> = Vec::new();
        let mut fresh: HashSet<&CallId> = HashSet::new();
        for (at, item) in items.iter().enumerate().skip(self.good) {
            if at == 0 && !matches!(item.as_ref(), Item::User(_)) {
                return broken(WireRule::OpensWithUser, at);
            }
            match item.as_ref() {
                Item::Tool(tool) => {
                    if let Some(place) = open.iter().position(|id| *id == &tool.call_id) {
                        answered.push(open.remove(place));
                    } else if answered.contains(&&tool.call_id) {
                        return broken(WireRule::ResultOnce, at);
                    } else {
                        return broken(WireRule::ResultHasCall, at);
                    }
                    if tool.text.trim().is_empty() {
                        return broken(WireRule::ResultNotBlank, at);
                    }
                }
                other => {
                    if !open.is_empty() {
                        return broken(WireRule::CallsAnswered, at);
                    }
                    answered.clear();
                    match other {
                        Item::User(user) => {
                            let says = user.parts.iter().any(|part| match part {
                                Part::Text { text } => !text.trim().is_empty(),
                                Part::Image { .. } => true,
                            });
                            if !says && user.note.is_none() {
                                return broken(WireRule::UserSaysSomething, at);
                            }
                        }
                        Item::Assistant(answer) => {
                            // An answer that was cut before anything could be sent is left out by the renderer.
                            if answer.text.trim().is_empty() && answer.calls.is_empty() && answer.cut.is_none() {
                                return broken(WireRule::AnswerNotEmpty, at);
                            }
                            for call in &answer.calls {
                                if self.ids.contains(&call.call_id) || !fresh.insert(&call.call_id) {
                                    return broken(WireRule::CallIdsUnique, at);
                                }
                                open.push(&call.call_id);
                            }
                        }
                        Item::Tool(_) => {}
                    }
                }
            }
        }
        if !open.is_empty() {
            return broken(WireRule::CallsAnswered, items.len().saturating_sub(1));
        }
        // Results may still be inserted behind the last answer, so only what is before it stays checked.
        let settled = items.iter().rposition(|item| matches!(item.as_ref(), Item::Assistant(_))).unwrap_or(0);
        let good = settled.max(self.good);
        for item in &items[self.good..good] {
            if let Item::Assistant(answer) = item.as_ref() {
                self.ids.extend(answer.calls.iter().map(|call| call.call_id.clone()));
            }
        }
        self.good = good;
        self.last = good.checked_sub(1).map(|i| Arc::clone(&items[i]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hames_protocol::{AssistantItem, CallItem, Label, ToolItem, UserItem};

    fn user(text: &str) -> Arc<Item> {
        Arc::new(Item::User(UserItem { parts: vec![Part::text(text)], ..UserItem::default() }))
    }
    fn says(text: &str) -> Arc<Item> {
        Arc::new(Item::Assistant(AssistantItem { text: text.into(), ..AssistantItem::default() }))
    }
    fn asks(ids: &[&str]) -> Arc<Item> {
        let calls = ids
            .iter()
            .map(|id| CallItem {
                call_id: (*id).into(),
                provider_id: (*id).into(),
                name: "Read".into(),
                arguments: "{}".into(),
                input: None,
                label: Label::default(),
                extra: None,
            })
            .collect();
        Arc::new(Item::Assistant(AssistantItem { calls, ..AssistantItem::default() }))
    }
    fn result(id: &str, text: &str) -> Arc<Item> {
        Arc::new(Item::Tool(ToolItem {
            call_id: id.into(),
            name: "Read".into(),
            text: text.into(),
            error: None,
            blob: None,
            attachments: Vec::new(),
            capability: false,
        }))
    }

    #[test]
    fn each_rule_broken_alone_is_named() {
        use WireRule::*;
        let table: Vec<(WireRule, usize, Vec<Arc<Item>>)> = vec![
            (OpensWithUser, 0, vec![says("hi")]),
            (OpensWithUser, 0, vec![result("a", "x")]),
            (UserSaysSomething, 0, vec![user("  \n")]),
            (AnswerNotEmpty, 1, vec![user("hi"), says(" ")]),
            (CallIdsUnique, 1, vec![user("hi"), asks(&["a", "a"])]),
            (CallIdsUnique, 3, vec![user("hi"), asks(&["a"]), result("a", "x"), asks(&["a"])]),
            (CallsAnswered, 1, vec![user("hi"), asks(&["a"])]),
            (CallsAnswered, 3, vec![user("hi"), asks(&["a", "b"]), result("a", "x"), user("more")]),
            (ResultHasCall, 1, vec![user("hi"), result("a", "x")]),
            (ResultHasCall, 4, vec![user("hi"), asks(&["a"]), result("a", "x"), says("ok"), result("a", "x")]),
            (ResultOnce, 3, vec![user("hi"), asks(&["a"]), result("a", "x"), result("a", "y")]),
            (ResultNotBlank, 2, vec![user("hi"), asks(&["a"]), result("a", " ")]),
        ];
        for (rule, item, items) in table {
            assert_eq!(WireRules::default().check(&items), Err(RuleBroken { rule, item }));
        }
    }

    #[test]
    fn a_growing_conversation_is_checked_like_a_fresh_one() {
        let mut items = vec![user("go")];
        let mut rules = WireRules::default();
        for n in 0..40 {
            let (a, b) = (format!("a{n}"), format!("b{n}"));
            items.extend([asks(&[&a, &b]), result(&a, "x"), result(&b, "y")]);
            assert_eq!(rules.check(&items), Ok(()));
            assert_eq!(WireRules::default().check(&items), Ok(()));
        }
        items.push(asks(&["a3"]));
        items.push(result("a3", "again"));
        assert_eq!(rules.check(&items).map_err(|b| b.rule), Err(WireRule::CallIdsUnique));
    }

    #[test]
    fn a_rewritten_history_is_checked_from_its_beginning() {
        let mut rules = WireRules::default();
        let items = vec![user("a"), says("b"), user("c"), says("d")];
        assert_eq!(rules.check(&items), Ok(()));
        let other = vec![says("b"), user("c"), says("d"), user("e")];
        assert_eq!(rules.check(&other).map_err(|b| b.rule), Err(WireRule::OpensWithUser));
    }
}
