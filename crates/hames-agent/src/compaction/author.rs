//! Asking a model for the document that a window opens with.
//!
//! The author gets a request of its own: what is to be summed up as text, no tools, and words of ours. What it costs is
//! recorded. An answer that cannot be had is no misfortune: the window moves without one.

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use hames_context::{SummaryAnswer, SummaryRequest, estimate_tokens};
use hames_protocol::{
    CompactionAsked, Completion, ErrorClass, Failure, Head, Item, ModelClient, Part, RequestOptions, ThinkingLevel,
    Todo, TodoStatus, UserItem,
};

use crate::Agent;
use crate::retry::Tried;
use crate::run_loop::LoopCx;

/// What the author of a document is told.
const SUMMARY: &str = include_str!("summary.md");
/// What it is told where the document has to become shorter.
const COMPRESS: &str = include_str!("compress.md");

/// Times a span is made shorter because its author could not read it; then the window moves without a document.
const MAX_SHORTER: u32 = 2;
/// Percent of the author's window that is tried where it refused more and said no number.
const SHORTER: u64 = 70;

/// What stands before the todo list in a document.
const TODOS: &str = "## Todo list";
/// Bytes of the todo list in a document.
const TODO_BYTES: usize = 1_200;

/// What came of asking.
pub(super) enum Answered {
    /// An answer, or that there is none.
    Document(SummaryAnswer),
    /// None could be had, and why.
    Failed(Failure),
    /// It was more than the author can read; a plan made now asks for less.
    TooLong,
    /// A person or a message came in between.
    Cut,
}

/// Estimated tokens of the words around what the author is given.
pub(super) fn prompt_tokens() -> u64 {
    static TOKENS: OnceLock<u64> = OnceLock::new();
    *TOKENS.get_or_init(|| estimate_tokens(SUMMARY).max(estimate_tokens(COMPRESS)) + FRAME_TOKENS)
}

/// Estimated tokens of headings, roles and numbers in a request for a document.
const FRAME_TOKENS: u64 = 80;

impl Agent {
    /// The author's connection: its own, a second one to the agent's model, or the agent's where there can be no second.
    fn author(&mut self) -> &mut dyn ModelClient {
        if let Some(author) = &mut self.compacting.config.summary_model {
            return author.as_mut();
        }
        if self.compacting.author.is_none() {
            self.compacting.author = self.model.fork();
        }
        match &mut self.compacting.author {
            Some(author) => author.as_mut(),
            None => self.model.as_mut(),
        }
    }

    /// Asks for a document and records what that cost.
    pub(super) async fn write_document(&mut self, cx: &LoopCx, request: &SummaryRequest) -> Result<Answered, Failure> {
        cx.emit.record(request.events.clone()).await?;
        let more = self.compacting.config.on_compaction.clone().and_then(|more| more(request));
        let words = if request.compress { COMPRESS } else { SUMMARY };
        let head = Arc::new(Head { tools: Vec::new(), system: words.trim_end().to_owned() });
        let text = question(request, more.as_deref());
        let estimate = estimate_tokens(&text) + prompt_tokens();
        let items = [Arc::new(Item::User(UserItem { parts: vec![Part::text(text)], ..UserItem::default() }))];
        let mut options = RequestOptions {
            max_output_tokens: Some(request.max_output_tokens),
            thinking: self.options.thinking,
            ..RequestOptions::default()
        };
        let asked = loop {
            let cut = cx.cut();
            let asked = tokio::select! {
                biased;
                _ = cut => return Ok(Answered::Cut),
                asked = self.ask_author(&head, &items, &options) => asked,
            };
            cx.emit.record(vec![self.cost(&asked, request.compress).into()]).await?;
            if !only_thought(&asked) || options.thinking == Some(ThinkingLevel::Off) {
                break asked;
            }
            options.thinking = Some(ThinkingLevel::Off);
        };
        let is_cut = is_at_its_limit(&asked);
        let text = without_todos(&asked.text);
        let answer = match asked.failure {
            Some(failure) if failure.class == ErrorClass::ContextOverflow => {
                return self.read_less(cx, failure, estimate).await;
            }
            _ if is_cut && !text.is_empty() => SummaryAnswer::Cut(text.to_owned()),
            Some(failure) => return Ok(Answered::Failed(failure)),
            None if text.is_empty() => return Ok(Answered::Failed(empty())),
            None => SummaryAnswer::Text(text.to_owned()),
        };
        Ok(Answered::Document(answer))
    }

    /// One answer, asked for again where that may help. Dropping it leaves the request.
    async fn ask_author(&mut self, head: &Arc<Head>, items: &[Arc<Item>], options: &RequestOptions) -> Completion {
        let failed = |failure| Completion { failure: Some(failure), ..Completion::default() };
        let (retry, mut tried) = (self.retry, Tried::default());
        let author = self.author();
        loop {
            if let Err(failure) = author.prepare(head, items, options).await {
                return failed(failure);
            }
            let completion = match author.send().await {
                Ok(mut stream) => {
                    while stream.next().await.is_some() {}
                    stream.finish()
                }
                Err(failure) => failed(failure),
            };
            author.take_learned();
            let Some(failure) = completion.failure.as_ref().filter(|_| completion.text.trim().is_empty()) else {
                return completion;
            };
            match retry.delay(&mut tried, failure, 0) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return completion,
            }
        }
    }

    fn cost(&self, asked: &Completion, compress: bool) -> CompactionAsked {
        let info = self.compacting.config.summary_model.as_deref().unwrap_or(self.model.as_ref()).info();
        CompactionAsked {
            model: info.model.clone(),
            compress,
            usage: asked.usage.clone(),
            cost: asked.cost.clone().or_else(|| info.price.as_ref()?.cost(asked.usage.as_ref()?)),
            duration_ms: asked.timings.total_ms,
            failure: asked.failure.as_ref().map(|failure| failure.message.clone()),
        }
    }

    /// The author could not read so much: what it says of its window is kept to, and the next plan asks for less.
    async fn read_less(&mut self, cx: &LoopCx, failure: Failure, estimate: u64) -> Result<Answered, Failure> {
        let stated = failure.stated.as_ref().and_then(|stated| stated.limit_tokens);
        let known = self.terms(&cx.folds).summary_budget.map_or(self.window_tokens(), |budget| budget.window);
        self.compacting.shorter += 1;
        if self.compacting.shorter > MAX_SHORTER {
            return Ok(Answered::Document(SummaryAnswer::Failed(failure.message)));
        }
        let limit = stated.filter(|limit| *limit < known).unwrap_or(known.min(estimate).saturating_mul(SHORTER) / 100);
        self.compacting.author_limit = Some(limit);
        Ok(Answered::TooLong)
    }
}

fn empty() -> Failure {
    Failure::new(ErrorClass::StreamIncomplete, "The model's answer was empty. Try again, or set another summary model.")
}

fn is_at_its_limit(asked: &Completion) -> bool {
    asked.finish_reason.as_deref() == Some("length")
}

/// Whether the author came to the end of its answer before it wrote anything.
fn only_thought(asked: &Completion) -> bool {
    is_at_its_limit(asked) && asked.text.trim().is_empty() && !asked.reasoning.is_empty()
}

/// What the author is given.
fn question(request: &SummaryRequest, more: Option<&str>) -> String {
    let mut text = String::new();
    let previous = without_todos(&request.previous);
    if !previous.trim().is_empty() {
        let _ = write!(text, "<document>\n{}\n</document>\n\n", previous.trim());
    }
    let tag = if request.compress { "document" } else { "conversation" };
    let _ = write!(text, "<{tag}>\n{}\n</{tag}>\n\n", request.span.trim());
    // A token is about four characters of prose or code.
    let _ = write!(text, "Write the document now, in at most {} characters.", request.target_tokens.saturating_mul(4));
    if let Some(more) = more.map(str::trim).filter(|more| !more.is_empty()) {
        let _ = write!(text, "\n{more}");
    }
    text
}

/// The document without the todo list that was added to it.
fn without_todos(document: &str) -> &str {
    document.split(TODOS).next().unwrap_or(document).trim_end()
}

/// Adds what is still to be done: the list lives outside of the conversation, and who reads on has to see it.
pub(super) fn add_todos(document: &mut String, todos: &[Todo]) {
    document.truncate(without_todos(document).len());
    let is_open = |todo: &&Todo| matches!(todo.status, TodoStatus::Pending | TodoStatus::InProgress);
    let open: Vec<&Todo> = todos.iter().filter(is_open).collect();
    if open.is_empty() {
        return;
    }
    let mut list = format!("{}{TODOS}\n", if document.is_empty() { "" } else { "\n\n" });
    for (at, todo) in open.iter().enumerate() {
        let mark = if todo.status == TodoStatus::InProgress { "~" } else { " " };
        let line = format!("- [{mark}] {}\n", todo.content);
        if list.len() + line.len() > TODO_BYTES {
            let _ = writeln!(list, "- and {} more", open.len() - at);
            break;
        }
        list.push_str(&line);
    }
    document.push_str(list.trim_end());
}
