//! What refusals teach about the requests a model takes.
//!
//! A provider that refuses a request for one of its parameters names the parameter. The request is written without it,
//! or with another name or value, and sent again, at most [`MAX_RESENDS`] times; what helped is kept under the endpoint
//! and the model, so that the next request is right at once and also the next program start. [`refusal`] reads one
//! lesson out of a refusal, [`Learning`] is the state of one conversation, a [`LearnedStore`] is where lessons are kept:
//! [`MemoryLearned`] for the life of a process, [`LearnedFile`] on disk.
//!
//! A lesson is kept once a request written by it was accepted, or refused for something else; never before. What a refusal says about a parameter that
//! was not sent changes nothing. Lessons never change what is said in the conversation, only how it is sent, and nothing
//! is ever learned from an answer that has begun.

mod file;
mod refusal;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hames_protocol::{ErrorClass, Failure, Lesson, ModelRef, ParameterLearned, Remedy};
use reqwest::Url;

use crate::url::{CHAT, resolve};

pub use file::{LearnedFile, NowSeconds};
pub(crate) use refusal::Sent;

/// Times one request is sent again because of what was learned. A third refusal is the person's to read.
const MAX_RESENDS: usize = 2;

/// Lessons of one model that are kept: far more than there are parameters.
const MAX_LESSONS: usize = 16;

/// A model at an endpoint: what lessons belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelAt {
    /// The address requests go to, without its query, where a key may stand.
    pub endpoint: String,
    /// The model's id as the provider knows it.
    pub model: String,
}

impl ModelAt {
    /// A model at the endpoint that a base URL leads to; nothing where it is none.
    pub fn of(base_url: &str, model: &str) -> Option<Self> {
        Some(Self::new(&resolve(base_url, CHAT).ok()?, model))
    }

    pub(crate) fn new(url: &Url, model: &str) -> Self {
        let mut url = url.clone();
        url.set_query(None);
        Self { endpoint: url.into(), model: model.to_owned() }
    }
}

/// Where lessons are kept.
pub trait LearnedStore: Send + Sync {
    /// What is known of a model and still holds.
    fn recall(&self, at: &ModelAt) -> Vec<Lesson>;
    /// Keeps these lessons of a model, in place of those that were kept. May take as long as a disk does. The error is a
    /// sentence for the log: what cannot be kept is learned again.
    fn remember(&self, at: &ModelAt, lessons: &[Lesson]) -> Result<(), String>;
}

/// Lessons kept as long as the value lives.
#[derive(Debug, Default)]
pub struct MemoryLearned(Mutex<HashMap<ModelAt, Vec<Lesson>>>);

impl LearnedStore for MemoryLearned {
    fn recall(&self, at: &ModelAt) -> Vec<Lesson> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(at).cloned().unwrap_or_default()
    }

    fn remember(&self, at: &ModelAt, lessons: &[Lesson]) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(at.clone(), lessons.to_vec());
        Ok(())
    }
}

/// What one conversation knows of its model, and what it is learning right now.
pub(crate) struct Learning {
    at: ModelAt,
    model: ModelRef,
    store: Arc<dyn LearnedStore>,
    lessons: Vec<Lesson>,
    /// What the request under way carries.
    sent: Sent,
    /// What this request's refusals have taught so far.
    tried: Vec<Tried>,
    /// Whether the request has to be written anew before it is sent.
    is_outdated: bool,
    /// Whether lessons are not kept yet.
    is_unsaved: bool,
    news: Vec<ParameterLearned>,
}

/// A lesson under trial.
struct Tried {
    lesson: Lesson,
    /// The words that taught it.
    words: Option<String>,
    /// The lessons before it.
    before: Vec<Lesson>,
}

/// What is left to be done where lessons have to be kept; may take as long as a disk does.
pub(crate) type Keep = Box<dyn FnOnce() + Send>;

impl Learning {
    pub(crate) fn new(at: ModelAt, model: ModelRef, store: Arc<dyn LearnedStore>) -> Self {
        let lessons = store.recall(&at);
        Self {
            at,
            model,
            store,
            lessons,
            sent: Sent::default(),
            tried: Vec::new(),
            is_outdated: false,
            is_unsaved: false,
            news: Vec::new(),
        }
    }

    pub(crate) fn lessons(&self) -> &[Lesson] {
        &self.lessons
    }

    /// The tokens the model's window turned out to have, where that was learned.
    pub(crate) fn window(&self) -> Option<u64> {
        self.lessons.iter().find_map(Lesson::limits_window_to)
    }

    /// The window has no more than `tokens`: what has to be kept now, if that is news.
    pub(crate) fn limit_window(&mut self, tokens: u64, words: Option<&str>) -> Option<Keep> {
        if self.window().is_some_and(|known| known <= tokens) {
            return None;
        }
        let lesson = Lesson::window_limit(tokens);
        tracing::info!(
            target: "hames::learned",
            model = %self.model,
            endpoint = %self.at.endpoint,
            words = words.unwrap_or("-"),
            "{lesson}"
        );
        self.lessons.retain(|earlier| !lesson.replaces(earlier));
        self.lessons.push(lesson);
        self.is_unsaved = true;
        self.accepted()
    }

    /// The model answered a request of `tokens`: what has to be kept now, if a smaller window was thought to be known.
    pub(crate) fn window_holds(&mut self, tokens: u64) -> Option<Keep> {
        if self.window().is_none_or(|known| known >= tokens) {
            return None;
        }
        self.lessons.retain(|lesson| lesson.limits_window_to().is_none());
        self.is_unsaved = true;
        self.accepted()
    }

    /// Another request begins.
    pub(crate) fn begin(&mut self) {
        self.tried.clear();
    }

    /// The request is written; this is what it carries.
    pub(crate) fn written(&mut self, sent: Sent) {
        self.sent = sent;
        self.is_outdated = false;
    }

    /// Whether something was learned since the request was written.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Takes in a refusal of the request under way: whether it may be sent again, written anew. Where it may not, the
    /// failure is final: the same bytes would be refused again.
    pub(crate) fn refused(&mut self, failure: &mut Failure) -> bool {
        let lesson = match self.tried.len() < MAX_RESENDS {
            true => refusal::lesson(failure, &self.sent, &self.lessons),
            false => None,
        };
        match lesson {
            Some(lesson) => self.adopt(lesson, failure.provider_message.clone()),
            None => self.give_up(failure),
        }
        self.is_outdated
    }

    fn adopt(&mut self, lesson: Lesson, words: Option<String>) {
        tracing::info!(
            target: "hames::learned",
            model = %self.model,
            endpoint = %self.at.endpoint,
            words = words.as_deref().unwrap_or("-"),
            "{lesson}"
        );
        self.tried.push(Tried { lesson: lesson.clone(), words: words.clone(), before: self.lessons.clone() });
        self.lessons.retain(|earlier| !lesson.replaces(earlier));
        if lesson.remedy != Remedy::Keep {
            self.lessons.push(lesson.clone());
        }
        let surplus = self.lessons.len().saturating_sub(MAX_LESSONS);
        self.lessons.drain(..surplus);
        self.news.push(ParameterLearned { model: self.model.clone(), lesson, words });
        self.is_outdated = true;
        self.is_unsaved = true;
    }

    /// The request is refused for good. A lesson after which the provider complained of the same is none.
    fn give_up(&mut self, failure: &mut Failure) {
        if failure.class == ErrorClass::InvalidRequestFixable {
            failure.retryable = false;
        }
        let Some(last) = self.tried.last() else { return };
        let tried: Vec<String> = self.tried.iter().map(|tried| tried.lesson.to_string()).collect();
        failure.message.push_str(&format!(" This was tried first: {}.", tried.join("; ")));
        let names_it = failure.parameter().is_some_and(|name| name.contains(&last.lesson.parameter));
        if is_refusal(failure.class) && (names_it || failure.provider_message == last.words) {
            self.lessons.clone_from(&last.before);
            self.is_unsaved = self.tried.len() > 1;
            let lesson = Lesson { remedy: Remedy::Keep, ..last.lesson.clone() };
            self.news.push(ParameterLearned { model: self.model.clone(), lesson, words: last.words.clone() });
        }
    }

    /// The request was accepted: what has to be kept now, if anything.
    pub(crate) fn accepted(&mut self) -> Option<Keep> {
        if !std::mem::take(&mut self.is_unsaved) {
            return None;
        }
        let (store, at, lessons) = (Arc::clone(&self.store), self.at.clone(), self.lessons.clone());
        Some(Box::new(move || {
            if let Err(error) = store.remember(&at, &lessons) {
                tracing::warn!(target: "hames::learned", model = %at.model, endpoint = %at.endpoint, "not kept: {error}");
            }
        }))
    }

    /// The request was refused for another reason than what was learned for it: that much of it was right.
    pub(crate) fn moved_on(&mut self, failure: &Failure) -> Option<Keep> {
        if is_refusal(failure.class) && !self.tried.is_empty() { self.accepted() } else { None }
    }

    /// What was learned since this was asked last.
    pub(crate) fn take_news(&mut self) -> Vec<ParameterLearned> {
        std::mem::take(&mut self.news)
    }
}

/// Whether a provider has read the request and refused it: not an accident, not a matter of keys and quotas.
fn is_refusal(class: ErrorClass) -> bool {
    use ErrorClass::*;
    matches!(
        class,
        InvalidRequest | InvalidRequestFixable | MaxTokensTooLarge | ContextOverflow | UnsupportedInput | WireRule
    )
}
