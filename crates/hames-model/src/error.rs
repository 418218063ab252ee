//! From a refusal or an accident to a [`Failure`]: what happened, where, and what to do next.

mod classify;
mod delay;
mod envelope;
mod explain;
mod parameter;
mod pattern;
mod sizes;
mod words;

use std::time::SystemTime;

use hames_protocol::{ErrorClass, Failure, Stated};
use reqwest::header::HeaderMap;
use serde_json::Value;

use self::classify::Refusal;
use self::envelope::Envelope;
use self::explain::Known;
use crate::{Endpoint, Remedies};

/// Bytes of a provider's own words that are kept.
const MAX_WORDS_BYTES: usize = 2 * 1024;

/// Bytes of a code or a parameter's name that are kept.
const MAX_CODE_BYTES: usize = 100;

/// Bytes of a request's id that are kept.
const MAX_ID_BYTES: usize = 200;

/// Headers in which providers give a request its id, best known first.
const REQUEST_ID_HEADERS: [&str; 6] =
    ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-generation-id", "cf-ray"];

/// Where a request goes, for messages, and what must not be in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) model: String,
    remedies: Remedies,
    sends_key: bool,
    secrets: Vec<crate::Secret>,
}

impl Place {
    pub(crate) fn new(endpoint: &Endpoint, host: &str, model: &str) -> Self {
        let secrets = endpoint.secrets().into_iter().map(crate::Secret::from).collect();
        let is_key = |name: &str| ["key", "auth", "token"].iter().any(|word| name.to_ascii_lowercase().contains(word));
        let sends_key = endpoint.api_key.as_ref().is_some_and(|key| !key.expose().trim().is_empty())
            || endpoint.headers.iter().any(|(name, _)| is_key(name));
        Self {
            name: endpoint.name.clone(),
            host: host.to_owned(),
            model: model.to_owned(),
            remedies: endpoint.remedies.clone(),
            sends_key,
            secrets,
        }
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
        if (300..400).contains(&status) {
            return self.redirected(status, headers);
        }
        let mut envelope = Envelope::read(body);
        if let Some(kind) = text_header(headers, "x-amzn-errortype") {
            envelope.push_code(kind.split(':').next().unwrap_or(kind));
        }
        let in_force = match (status, envelope.status) {
            // A gateway that fails for everything it does not like may say inside what it was.
            (500 | 502, Some(inner @ 400..=499)) => inner,
            (400.., _) => status,
            (_, inner) => inner.unwrap_or(0),
        };
        let mut failure = self.judged(&envelope, in_force, headers);
        failure.retryable = match text_header(headers, "x-should-retry") {
            Some("false") => false,
            Some("true") if may_be_tried(&failure, in_force) => true,
            _ => failure.retryable,
        };
        failure.status = Some(status);
        failure.request_id = request_id(headers).or(failure.request_id);
        failure
    }

    /// The failure for an error inside a stream.
    pub(crate) fn failed_in_stream(&self, error: &Value) -> Failure {
        let envelope = Envelope::read_value(error);
        self.judged(&envelope, envelope.status.unwrap_or(0), &HeaderMap::new())
    }

    /// A web page where an answer should be.
    pub(crate) fn page(&self, body: &[u8]) -> Failure {
        let envelope = Envelope::read(body);
        let stated = Stated::default();
        let known = Known { class: ErrorClass::WrongBaseUrl, words: "", stated: &stated, retry_after_ms: None };
        self.explained(&known, &envelope, None)
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

    /// The failure for what a body says. `status` is the one in force; 0 where there is none.
    fn judged(&self, envelope: &Envelope, status: u16, headers: &HeaderMap) -> Failure {
        let delay = delay::asked(headers, envelope, SystemTime::now());
        let refusal = Refusal { status, body: envelope, delay, model: &self.model };
        let (class, retryable) = refusal.class();
        let parameter = refusal.parameter(class);
        let mut stated = Stated {
            code: envelope.code.as_deref().map(|code| clipped(&self.masked(code), MAX_CODE_BYTES)),
            instead: parameter.as_ref().and_then(|_| parameter::instead(&envelope.message)),
            parameter: parameter.map(|name| clipped(&self.masked(&name), MAX_CODE_BYTES)),
            is_loading: class == ErrorClass::Overloaded && refusal.is_loading(),
            ..Stated::default()
        };
        sizes::state(class, envelope, &mut stated);
        let is_overflow = class == ErrorClass::ContextOverflow;
        stated.not_in_tokens = is_overflow && stated.limit_tokens.is_none() && refusal.is_not_in_tokens();
        let retry_after_ms = delay.and_then(|d| u64::try_from(d.as_millis()).ok());
        let known = Known { class, words: &envelope.words, stated: &stated, retry_after_ms };
        let mut failure = self.explained(&known, envelope, (status != 0).then_some(status));
        failure.retryable = retryable;
        failure.status = (status != 0).then_some(status);
        failure.retry_after_ms = retry_after_ms;
        failure.request_id = envelope.request_id.as_deref().map(|id| clipped(&self.masked(id), MAX_ID_BYTES));
        failure.stated = (stated != Stated::default()).then(|| Box::new(stated));
        failure
    }

    fn explained(&self, known: &Known<'_>, envelope: &Envelope, status: Option<u16>) -> Failure {
        let (what, next) = self.explanation(known);
        let page = envelope.page.as_ref().map(|title| match title.as_str() {
            "" => " and answered with a web page".to_owned(),
            title => format!(" and answered with a web page titled \"{}\"", self.masked(title)),
        });
        let status = status.map(|s| format!(", HTTP {s}")).unwrap_or_default();
        let message = format!("{} {what}{} ({}{status}). {next}.", self.name, page.unwrap_or_default(), self.host);
        let mut failure = Failure::new(known.class, message);
        failure.provider_message = self.words(&envelope.message);
        failure
    }
}

/// Whether a header may declare a refusal of this kind worth another try.
fn may_be_tried(failure: &Failure, status: u16) -> bool {
    use ErrorClass::*;
    matches!(status, 408 | 409 | 429 | 500..) && !matches!(failure.class, QuotaExhausted | RequestExceedsTpm | Auth)
}

/// The provider's id of a request, from the headers of its response.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = REQUEST_ID_HEADERS.iter().find_map(|name| text_header(headers, name))?;
    Some(clipped(id, MAX_ID_BYTES))
}

fn text_header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|v| !v.is_empty())
}

/// The beginning of a text, at most `limit` bytes, cut between characters.
pub(crate) fn clipped(text: &str, limit: usize) -> String {
    text[..boundary(text, limit)].to_owned()
}

/// The last place between characters that is not beyond `limit`.
pub(crate) fn boundary(text: &str, limit: usize) -> usize {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests;
