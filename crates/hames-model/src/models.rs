//! What models an endpoint says it has, and what it says of them.
//!
//! `GET /models` is all that most have. A server of one's own often says less there than under addresses of its own, so
//! where the list leaves the windows open, [`local`] asks those; what does not come is simply not known.

mod local;
mod read;

use std::time::Duration;

use hames_protocol::{ErrorClass, Failure};
use reqwest::Url;
use serde_json::Value;
use tokio::time::timeout;

use crate::catalog::{ListedModel, catalog_name};
use crate::chat::refusal;
use crate::error::Place;
use crate::{Endpoint, http, url};

/// Bytes of a model list that are read; the longest real one is about 1 MB.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;
/// How long a list may take, connection and all.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pages of a list that are read; more would be a server that never ends.
const MAX_PAGES: usize = 20;
/// The host whose list wants headers of its own.
const ANTHROPIC: &str = "api.anthropic.com";

/// What kind of server a list comes from, by what it says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// llama.cpp's own server.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// LM Studio.
    LmStudio,
    /// vLLM.
    Vllm,
}

impl ServerKind {
    /// The name people know it by.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::LlamaCpp => "llama.cpp",
            ServerKind::Ollama => "Ollama",
            ServerKind::LmStudio => "LM Studio",
            ServerKind::Vllm => "vLLM",
        }
    }
}

/// What an endpoint lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelList {
    /// In the endpoint's order.
    pub models: Vec<ListedModel>,
    /// What it is, where it shows.
    pub server: Option<ServerKind>,
    /// The models it has in memory now, where it says so.
    pub loaded: Vec<String>,
}

/// Asks an endpoint for its models. Some answer without a key, so success proves no key.
pub async fn list_models(endpoint: &Endpoint) -> Result<ModelList, Failure> {
    let mut list = model_names(endpoint).await?;
    // Whoever has a place in the public catalog has no more to say; a server of one's own often has.
    if catalog_name(&endpoint.base_url).is_none() {
        local::ask(endpoint, &mut list).await;
    }
    Ok(list)
}

/// Asks an endpoint for its list and for nothing else: one short answer, even of a server that would say more.
pub async fn model_names(endpoint: &Endpoint) -> Result<ModelList, Failure> {
    let url = url::models_url(&endpoint.base_url)?;
    let place = place(endpoint, &url);
    let mut list = ModelList::default();
    let mut next = Some(first_page(url.clone()));
    for _ in 0..MAX_PAGES {
        let Some(page) = next.take() else { break };
        let body = get(endpoint, page, &place, MAX_LIST_BYTES, PATIENCE).await?.ok_or_else(|| no_list(&place))?;
        let value: Value = serde_json::from_slice(&body).map_err(|_| no_list(&place))?;
        let read = read::list(&value).ok_or_else(|| no_list(&place))?;
        list.server = list.server.or(read.server);
        list.models.extend(read.models);
        next = following(&url, &value);
    }
    Ok(list)
}

fn place(endpoint: &Endpoint, url: &Url) -> Place {
    Place::new(endpoint, url.host_str().unwrap_or(""), "")
}

/// Gets a body. `None` where it is larger than `limit`.
pub(crate) async fn get(
    endpoint: &Endpoint,
    url: Url,
    place: &Place,
    limit: usize,
    patience: Duration,
) -> Result<Option<Vec<u8>>, Failure> {
    let client = http::client(endpoint, &url, place)?;
    let mut request = client.get(url.clone());
    if url.host_str() == Some(ANTHROPIC) {
        request = request.header("anthropic-version", "2023-06-01");
        if let Some(key) = &endpoint.api_key {
            request = request.header("x-api-key", key.expose().trim());
        }
    }
    body(request, place, limit, patience).await
}

async fn body(
    request: reqwest::RequestBuilder,
    place: &Place,
    limit: usize,
    patience: Duration,
) -> Result<Option<Vec<u8>>, Failure> {
    let ask = async {
        let mut response = request.send().await.map_err(|error| http::accident(&error, place))?;
        if !response.status().is_success() {
            return Err(refusal(response, place).await);
        }
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| http::accident(&error, place))? {
            if body.len() + bytes.len() > limit {
                return Ok(None);
            }
            body.extend_from_slice(&bytes);
        }
        Ok(Some(body))
    };
    timeout(patience, ask).await.unwrap_or_else(|_| {
        let what = format!("nothing whole came within {} s", patience.as_secs());
        Err(place.failure(ErrorClass::Timeout, &what, "Check that the server runs, and try again").retryable())
    })
}

fn no_list(place: &Place) -> Failure {
    let what = "what it answers at /models is no model list";
    place.failure(ErrorClass::WrongBaseUrl, what, "Check base_url, or name the model in the configuration")
}

/// One provider gives twenty models at a time unless it is asked for more.
fn first_page(mut url: Url) -> Url {
    if url.host_str() == Some(ANTHROPIC) {
        url.query_pairs_mut().append_pair("limit", "1000");
    }
    url
}

/// The address of the next page, in the one way of paging that is in use: `has_more` and `last_id`.
fn following(url: &Url, page: &Value) -> Option<Url> {
    let last = page.get("last_id")?.as_str().filter(|_| page.get("has_more") == Some(&Value::Bool(true)))?;
    let mut next = first_page(url.clone());
    next.query_pairs_mut().append_pair("after_id", last);
    Some(next)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_in_pages_is_followed_only_where_it_says_so() {
        let url = Url::parse("https://api.anthropic.com/v1/models").unwrap();
        assert_eq!(first_page(url.clone()).as_str(), "https://api.anthropic.com/v1/models?limit=1000");
        let other = Url::parse("https://h/v1/models?x=1").unwrap();
        assert_eq!(first_page(other.clone()), other);
        for (page, next) in [
            (json!({"has_more": true, "last_id": "a/b"}), Some("https://h/v1/models?x=1&after_id=a%2Fb")),
            (json!({"has_more": false, "last_id": "a"}), None),
            (json!({"has_more": true}), None),
            (json!({"last_id": "a"}), None),
            (json!([]), None),
        ] {
            assert_eq!(following(&other, &page).as_ref().map(Url::as_str), next, "{page}");
        }
    }
}
