//! A session's name by its own model: one short request beside the session's first run. It is not part of the session's
//! log, and nothing waits for it; without an answer the name stays what the first message gave.

use std::sync::Arc;

use hames_protocol::{Head, Item, ModelClient, Part, RequestOptions, ThinkingLevel, UserItem};

/// What the model is told.
const ASKED: &str = "You name conversations. Answer with a name for the conversation that begins with the user's \
                     message: two to six words in the language of the message, no quotes, no full stop. Do not answer \
                     the message itself.";
/// Tokens the answer may have: a name, and what a model thinks that cannot leave it.
const ANSWER_TOKENS: u64 = 1_000;
/// Bytes of the message that are shown: enough to see what it is about.
const SHOWN: usize = 4_000;

/// Asks once. `None` where there is no answer, or none that could be a name.
pub(crate) async fn ask_for_title(model: &mut dyn ModelClient, first_message: &str) -> Option<String> {
    let end = (0..=SHOWN.min(first_message.len())).rev().find(|at| first_message.is_char_boundary(*at));
    let shown = &first_message[..end.unwrap_or(0)];
    let head = Arc::new(Head { tools: Vec::new(), system: ASKED.to_owned() });
    let items = [Arc::new(Item::User(UserItem { parts: vec![Part::text(shown)], ..UserItem::default() }))];
    let options = RequestOptions {
        max_output_tokens: Some(ANSWER_TOKENS),
        thinking: Some(ThinkingLevel::Off),
        ..RequestOptions::default()
    };
    model.prepare(&head, &items, &options).await.ok()?;
    let mut stream = model.send().await.ok()?;
    while stream.next().await.is_some() {}
    let answer = stream.finish();
    if answer.failure.is_some() {
        return None;
    }
    let line = answer.text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let name = line.trim_matches(['"', '\'', '`', '*', '#', ' ']).trim_end_matches('.');
    (!name.is_empty()).then(|| name.to_owned())
}
