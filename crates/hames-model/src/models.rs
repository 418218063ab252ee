//! What models an endpoint says it has.

use hames_protocol::{ErrorClass, Failure};
use serde_json::Value;
use tokio::time::timeout;

use crate::chat::refusal;
use crate::error::Place;
use crate::{Endpoint, http, url};

/// Bytes of a model list that are read; the longest real one is about 1 MB.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// A model as an endpoint lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// Its id.
    pub id: String,
    /// Tokens of its window, where the endpoint says so.
    pub context_window: Option<u64>,
    /// Tokens one answer may have, where the endpoint says so.
    pub max_output: Option<u64>,
}

/// Asks an endpoint for its models, in its order. Some answer without a key, so success proves no key.
pub async fn list_models(endpoint: &Endpoint) -> Result<Vec<ListedModel>, Failure> {
    let url = url::models_url(&endpoint.base_url)?;
    let place = Place::new(endpoint, url.host_str().unwrap_or(""), "");
    let client = http::client(endpoint, &url, &place)?;
    let ask = async {
        let mut response = client.get(url).send().await.map_err(|error| http::accident(&error, &place))?;
        if !response.status().is_success() {
            return Err(refusal(response, &place).await);
        }
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| http::accident(&error, &place))? {
            if body.len() + bytes.len() > MAX_LIST_BYTES {
                return Err(no_list(&place));
            }
            body.extend_from_slice(&bytes);
        }
        read(&body).ok_or_else(|| no_list(&place))
    };
    timeout(endpoint.timeouts.idle, ask).await.unwrap_or_else(|_| {
        let what = "the model list did not come in time";
        Err(place.failure(ErrorClass::Timeout, what, "Check that the server runs, and try again").retryable())
    })
}

fn no_list(place: &Place) -> Failure {
    let what = "what it answers at /models is no model list";
    place.failure(ErrorClass::WrongBaseUrl, what, "Check base_url, or name the model in the configuration")
}

fn read(body: &[u8]) -> Option<Vec<ListedModel>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let models = ["data", "models"].iter().find_map(|key| value.get(*key)).unwrap_or(&value).as_array()?;
    Some(models.iter().filter_map(listed).collect())
}

fn listed(model: &Value) -> Option<ListedModel> {
    let id = ["id", "name", "model"].iter().find_map(|key| model.get(*key)?.as_str()).or_else(|| model.as_str())?;
    let number = |paths: &[&str]| {
        paths.iter().find_map(|path| {
            let found = path.split('.').try_fold(model, |value, key| value.get(key))?;
            found.as_u64().or_else(|| found.as_str()?.parse().ok()).filter(|n| *n > 0)
        })
    };
    Some(ListedModel {
        id: id.to_owned(),
        context_window: number(&[
            "context_length",
            "context_window",
            "max_model_len",
            "max_context_length",
            "context_size",
            "limit.context",
            "limits.max_context_window_tokens",
            "capabilities.limits.max_context_window_tokens",
            "inputTokenLimit",
            "max_input_tokens",
            // What a server was started with says more than what the model was trained for.
            "meta.n_ctx",
            "meta.n_ctx_train",
        ]),
        max_output: number(&[
            "top_provider.max_completion_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "max_output",
            "limit.output",
            "capabilities.limits.max_output_tokens",
            "outputTokenLimit",
        ]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str, context_window: Option<u64>, max_output: Option<u64>) -> ListedModel {
        ListedModel { id: id.into(), context_window, max_output }
    }

    #[test]
    fn lists_of_every_shape_are_read() {
        let cases = [
            (
                r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#,
                vec![model("a", None, None), model("b", None, None)],
            ),
            (
                r#"{"data":[{"id":"a","context_length":8,"top_provider":{"max_completion_tokens":2}}]}"#,
                vec![model("a", Some(8), Some(2))],
            ),
            (r#"{"data":[{"id":"a","max_model_len":8}]}"#, vec![model("a", Some(8), None)]),
            (r#"{"data":[{"id":"a","meta":{"n_ctx_train":9,"n_ctx":8}}]}"#, vec![model("a", Some(8), None)]),
            (r#"{"models":[{"name":"a","inputTokenLimit":"8"}]}"#, vec![model("a", Some(8), None)]),
            (r#"[{"id":"a","context_window":0}]"#, vec![model("a", None, None)]),
            (r#"["a",7,{"x":1}]"#, vec![model("a", None, None)]),
            (r#"{"data":[]}"#, vec![]),
        ];
        for (body, expected) in cases {
            assert_eq!(read(body.as_bytes()), Some(expected), "{body}");
        }
        for body in ["", "<html>", "7", "{}", r#"{"data":null}"#] {
            assert_eq!(read(body.as_bytes()), None, "{body}");
        }
    }
}
