//! From a refusal or an accident to a [`Failure`]: what happened, where, and what to do next.

mod classify;
mod delay;
mod envelope;
mod parameter;

use std::time::SystemTime;

use hames_protocol::{ErrorClass, Failure, Stated};
use reqwest::header::HeaderMap;
use serde_json::Value;

use self::classify::Refusal;
use self::envelope::Envelope;
use crate::Endpoint;

/// Bytes of a provider's own words that are kept.
const MAX_WORDS_BYTES: usize = 2 * 1024;

/// Bytes of a code or a parameter's name that are kept.
const MAX_CODE_BYTES: usize = 100;

/// Headers in which providers give a request its id, best known first.
const REQUEST_ID_HEADERS: [&str; 6] =
    ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-generation-id", "cf-ray"];

/// Where a request goes, for messages, and what must not be in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) model: String,
    secrets: Vec<crate::Secret>,
}

impl Place {
    pub(crate) fn new(endpoint: &Endpoint, host: &str, model: &str) -> Self {
        let secrets = endpoint.secrets().into_iter().map(crate::Secret::from).collect();
        Self { name: endpoint.name.clone(), host: host.to_owned(), model: model.to_owned(), secrets }
    }

    /// The text without any of the endpoint's secrets.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.expose()) {
                text = text.replace(secret.expose(), "****");
            }
        }
        text
    }

    /// The provider's own words as an error carries them.
    pub(crate) fn words(&self, text: &str) -> Option<String> {
        let text = self.masked(text.trim());
        (!text.is_empty()).then(|| clipped(&text, MAX_WORDS_BYTES))
    }

    /// A failure of this place that no provider explains.
    pub(crate) fn failure(&self, class: ErrorClass, what: &str, next: &str) -> Failure {
        Failure::new(class, format!("{} ({}): {what}. {next}.", self.name, self.host))
    }

    /// The failure for a response that is no success.
    pub(crate) fn refused(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
        let mut envelope = Envelope::read(body);
        if let Some(kind) = text_header(headers, "x-amzn-errortype") {
            envelope.codes.push(kind.split(':').next().unwrap_or(kind).to_lowercase());
        }
        if (300..400).contains(&status) {
            return self.redirected(status, headers);
        }
        let delay = delay::asked(headers, &envelope, SystemTime::now());
        let in_force = if status >= 400 { status } else { envelope.status.unwrap_or(0) };
        let (class, mut retryable) = Refusal { status: in_force, body: &envelope, delay }.class();
        match text_header(headers, "x-should-retry") {
            Some("false") => retryable = false,
            Some("true") => retryable |= matches!(in_force, 408 | 409 | 429 | 500..),
            _ => {}
        }
        let mut failure = self.explained(class, &envelope, (in_force != 0).then_some(in_force));
        failure.retryable = retryable;
        failure.status = Some(status);
        failure.request_id = request_id(headers);
        failure.retry_after_ms = delay.and_then(|d| u64::try_from(d.as_millis()).ok());
        failure
    }

    /// The failure for an error inside a stream.
    pub(crate) fn failed_in_stream(&self, error: &Value) -> Failure {
        let envelope = Envelope::read_value(error);
        let delay = delay::asked(&HeaderMap::new(), &envelope, SystemTime::now());
        let status = envelope.status;
        let (class, retryable) = Refusal { status: status.unwrap_or(0), body: &envelope, delay }.class();
        let mut failure = self.explained(class, &envelope, status);
        failure.retryable = retryable;
        failure.status = status;
        failure.retry_after_ms = delay.and_then(|d| u64::try_from(d.as_millis()).ok());
        failure
    }

    /// A web page where an answer should be.
    pub(crate) fn page(&self, body: &[u8]) -> Failure {
        let envelope = Envelope::read(body);
        self.explained(ErrorClass::WrongBaseUrl, &envelope, None)
    }

    fn redirected(&self, status: u16, headers: &HeaderMap) -> Failure {
        let target = text_header(headers, "location").unwrap_or("nowhere");
        let target = clipped(&self.masked(target.split('?').next().unwrap_or(target)), 200);
        let mut failure = self.failure(
            ErrorClass::WrongBaseUrl,
            &format!("it redirects to {target} (HTTP {status}), and a key is not sent along"),
            "Set base_url to the address it really serves",
        );
        failure.status = Some(status);
        failure.request_id = request_id(headers);
        failure
    }

    fn explained(&self, class: ErrorClass, envelope: &Envelope, status: Option<u16>) -> Failure {
        let (what, next) = self.explanation(class);
        let page = envelope.page.as_ref().map(|title| match title.as_str() {
            "" => " and answered with a web page".to_owned(),
            title => format!(" and answered with a web page titled \"{}\"", self.masked(title)),
        });
        let status = status.map(|s| format!(", HTTP {s}")).unwrap_or_default();
        let message = format!("{} {what}{} ({}{status}). {next}.", self.name, page.unwrap_or_default(), self.host);
        let mut failure = Failure::new(class, message);
        failure.provider_message = self.words(&envelope.message);
        failure.stated = self.stated(class, envelope);
        failure
    }

    /// What a body states that can be acted on; `None` where that is nothing.
    fn stated(&self, class: ErrorClass, envelope: &Envelope) -> Option<Box<Stated>> {
        use ErrorClass::*;
        let about_request =
            matches!(class, InvalidRequest | InvalidRequestFixable | MaxTokensTooLarge | UnsupportedInput | WireRule);
        let named = || parameter::named(&envelope.message);
        let parameter = about_request.then(|| envelope.param.clone().or_else(named)).flatten();
        let stated = Stated {
            code: envelope.code.as_deref().map(|code| clipped(&self.masked(code), MAX_CODE_BYTES)),
            instead: parameter.as_ref().and_then(|_| parameter::instead(&envelope.message)),
            parameter: parameter.map(|name| clipped(&self.masked(&name), MAX_CODE_BYTES)),
            ..Stated::default()
        };
        (stated != Stated::default()).then(|| Box::new(stated))
    }

    /// What happened and what to do next, for each class a provider can cause.
    fn explanation(&self, class: ErrorClass) -> (String, &'static str) {
        use ErrorClass::*;
        let model = &self.model;
        let (what, next) = match class {
            Auth => ("refused the key", "Check the provider's api_key, or the variable it is read from"),
            RateLimit => ("limits the rate of requests for now", "Wait a moment and try again"),
            QuotaExhausted => {
                ("says the credit or quota is used up", "Check the plan and billing, or use another model")
            }
            ModelNotFound => {
                return (
                    format!("does not know the model \"{model}\""),
                    "List what it has with `hames models`, and choose with -m PROVIDER/MODEL",
                );
            }
            InvalidRequestFixable => {
                ("refused one parameter of the request", "Change the provider's settings and try again")
            }
            Overloaded => ("has no capacity now", "Try again in a while"),
            ContentFilter => ("stopped this with its content filter", "Say it differently, or use another model"),
            RequestExceedsTpm => (
                "allows fewer tokens a minute than this one request has",
                "Use a smaller context window, or another model",
            ),
            MaxTokensTooLarge => ("allows less output than was asked for", "Lower the provider's max_tokens"),
            ToolUseFailed => ("could not read the model's own tool call", "Try again, or use another model"),
            WrongBaseUrl => ("has no Chat Completions at this address", "Check the provider's base_url"),
            UnsupportedInput => (
                "cannot take this kind of input",
                "Use a model that sees, or set images to false for this one in the configuration",
            ),
            WireRule => ("says the conversation breaks a rule of its format", "Please report this as a fault of Hames"),
            ContextOverflow => (
                "says the input is larger than the model's window",
                "Start a new session, or use a model with a larger window",
            ),
            Timeout => ("gave up waiting", "Try again"),
            ServerError => ("failed", "Try again; if it stays so, use another model"),
            _ => ("refused the request", "See the provider's own words"),
        };
        (what.to_owned(), next)
    }
}

/// The provider's id of a request, from the headers of its response.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = REQUEST_ID_HEADERS.iter().find_map(|name| text_header(headers, name))?;
    Some(clipped(id, 200))
}

fn text_header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|v| !v.is_empty())
}

/// The beginning of a text, at most `limit` bytes, cut between characters.
pub(crate) fn clipped(text: &str, limit: usize) -> String {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests;
