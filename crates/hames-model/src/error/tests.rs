use super::*;
use crate::chat::fuzzing::{Decoder, Reading};
use ErrorClass::*;

fn place() -> Place {
    let mut endpoint = Endpoint::new("acme", "https://api.acme.example").with_key("sk-live-0123456789");
    endpoint.headers.push(("x-extra".into(), "Bearer header-secret".into()));
    Place::new(&endpoint, "api.acme.example", "acme-large")
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (name.parse::<reqwest::header::HeaderName>().unwrap(), value.parse::<reqwest::header::HeaderValue>().unwrap())
    };
    pairs.iter().map(pair).collect()
}

#[test]
fn a_refusal_is_named_by_what_it_says_and_retried_only_where_that_helps() {
    let cases: &[(u16, &str, ErrorClass, bool)] = &[
        // Keys.
        (401, r#"{"error":{"message":"Bad key","code":"invalid_api_key"}}"#, Auth, false),
        (401, "", Auth, false),
        (400, r#"{"error":"Incorrect API key provided."}"#, Auth, false),
        (400, r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#, Auth, false),
        (403, r#"{"detail":"Forbidden"}"#, Auth, false),
        (401, r#"{"detail":"Invalid API Key"}"#, Auth, false),
        // Money.
        (429, r#"{"error":{"message":"x","type":"insufficient_quota"}}"#, QuotaExhausted, false),
        (402, "Prompt tokens limit exceeded: 9 > 5", QuotaExhausted, false),
        (400, r#"{"error":{"message":"Your credit balance is too low"}}"#, QuotaExhausted, false),
        (403, r#"{"code":"c","error":"Your team does not have any credits yet"}"#, QuotaExhausted, false),
        (429, "Weekly limit. Please try again in 58 hours.", QuotaExhausted, false),
        (
            429,
            r#"{"error":{"message":"Quota","details":[{"quotaId":"RequestsPerDayPerProject"}]}}"#,
            QuotaExhausted,
            false,
        ),
        (200, "Upstream error: insufficient balance (1008)", QuotaExhausted, false),
        // Waiting helps.
        (429, "", RateLimit, true),
        (429, r#"{"error":{"message":"You exceeded your current quota. Please retry in 54.8s."}}"#, RateLimit, true),
        (429, r#"{"message":"Requests rate limit exceeded"}"#, RateLimit, true),
        (400, r#"{"__type":"x","code":"ThrottlingException","message":"slow"}"#, RateLimit, true),
        (429, r#"{"message":"Service tier capacity exceeded for this model."}"#, Overloaded, true),
        (503, r#"{"error":{"message":"Loading model"}}"#, Overloaded, true),
        (529, r#"{"error":{"type":"overloaded_error"}}"#, Overloaded, true),
        (500, "", ServerError, true),
        (502, "<html><title>Bad gateway</title></html>", ServerError, true),
        (408, "", Timeout, true),
        // Waiting does not.
        (429, "Request too large on tokens per min (TPM): Limit 30000, Requested 31538.", RequestExceedsTpm, false),
        (413, "on tokens per minute (TPM): Limit 6000, Requested 12328", RequestExceedsTpm, false),
        (500, r#"{"error":{"message":"tools param requires --jinja flag"}}"#, InvalidRequest, false),
        (501, "", ServerError, false),
        // Models and addresses.
        (404, r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#, ModelNotFound, false),
        (404, r#"{"error":"model 'x' not found"}"#, ModelNotFound, false),
        (404, r#"{"error":{"type":"not_found_error","message":"model: x"}}"#, ModelNotFound, false),
        (404, "404 page not found", WrongBaseUrl, false),
        (404, r#"{"detail":"Not Found"}"#, WrongBaseUrl, false),
        (404, "", WrongBaseUrl, false),
        (405, "", WrongBaseUrl, false),
        (404, "<!DOCTYPE html><html>…</html>", WrongBaseUrl, false),
        // The request.
        (400, r#"{"error":{"message":"Bad","type":"invalid_request_error"}}"#, InvalidRequest, false),
        (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, InvalidRequest, false),
        (
            400,
            r#"{"error":{"code":"unsupported_parameter","message":"Use 'max_completion_tokens'"}}"#,
            InvalidRequestFixable,
            true,
        ),
        (
            400,
            "`max_tokens` must be less than or equal to `16384`, less than the `context_window`",
            MaxTokensTooLarge,
            false,
        ),
        (400, "max_tokens is too large: 9. This model supports at most 5 completion tokens", MaxTokensTooLarge, false),
        (
            400,
            "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens",
            ContextOverflow,
            false,
        ),
        (
            400,
            "'max_tokens' is too large: 8. The maximum context length is 4 and you have 2 input tokens",
            ContextOverflow,
            false,
        ),
        (413, "", ContextOverflow, false),
        (500, r#"{"error":{"type":"exceed_context_size_error","n_ctx":5}}"#, ContextOverflow, false),
        (429, "Too many tokens, please wait before trying again.", RateLimit, true),
        (400, r#"{"error":{"code":"tool_use_failed","message":"x"}}"#, ToolUseFailed, true),
        (400, r#"{"error":{"code":"content_filter","message":"x"}}"#, ContentFilter, false),
        (400, "An assistant message with 'tool_calls' must be followed by tool messages", WireRule, false),
        (400, "The reasoning_content in the thinking mode must be passed back", WireRule, false),
        (400, "unknown variant `image_url`, expected `text`", UnsupportedInput, false),
        // Quoted by a gateway.
        (
            502,
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"no\"}}"}}}"#,
            ServerError,
            true,
        ),
        (
            400,
            r#"{"error":{"message":"Error from provider: {\"error\":{\"message\":\"Invalid API key\",\"code\":\"invalid_api_key\"}}"}}"#,
            Auth,
            false,
        ),
        (200, "data: {\"error\":{\"message\":\"bad request\",\"code\":400}}\n\n", InvalidRequest, false),
        (200, r#"{"error":{"message":"busy","code":"503"}}"#, Overloaded, true),
        (200, r#"{"error":"something broke"}"#, ServerError, true),
    ];
    for (status, body, class, retryable) in cases {
        let failure = place().refused(*status, &HeaderMap::new(), body.as_bytes());
        assert_eq!((failure.class, failure.retryable), (*class, *retryable), "{status} {body}\n{failure:#?}");
        assert_eq!(failure.status, Some(*status));
        assert!(failure.message.contains("acme") && failure.message.ends_with('.'), "{}", failure.message);
    }
}

#[test]
fn a_header_may_overrule_whether_trying_again_helps() {
    let retryable = |status, value| place().refused(status, &headers(&[("x-should-retry", value)]), b"").retryable;
    assert!(!retryable(500, "false"));
    assert!(!retryable(429, "false"));
    assert!(retryable(409, "true"));
    assert!(!retryable(400, "true"));
}

#[test]
fn the_providers_words_are_kept_verbatim_but_for_keys_and_length() {
    let words = |body: &str| place().refused(400, &HeaderMap::new(), body.as_bytes()).provider_message;
    assert_eq!(words(r#"{"error":{"message":"Näh: \"x\"\nno"}}"#).as_deref(), Some("Näh: \"x\"\nno"));
    assert_eq!(words(r#"{"error":"text"}"#).as_deref(), Some("text"));
    assert_eq!(words(r#"{"object":"error","message":"flat"}"#).as_deref(), Some("flat"));
    assert_eq!(words(r#"{"detail":[{"msg":"first"},{"msg":"second"}]}"#).as_deref(), Some("first"));
    assert_eq!(words("plain words").as_deref(), Some("plain words"));
    assert_eq!(
        words(r#"{"error":{"message":"m","metadata":{"raw":"the upstream says no"}}}"#).as_deref(),
        Some("the upstream says no")
    );
    assert_eq!(words(r#"{"error":{"code":"x"}}"#), None);
    assert_eq!(words(""), None);
    assert_eq!(words("<html><body>sk-live-0123456789</body></html>"), None);
    assert_eq!(words("key sk-live-0123456789, header-secret").as_deref(), Some("key ****, ****"));
    let long = words(&format!("{{\"error\":\"{}\"}}", "é".repeat(5000))).unwrap();
    assert!(long.len() <= 2048 && long.len() > 2040 && long.chars().all(|c| c == 'é'));
}

#[test]
fn a_refusal_carries_its_request_id_and_the_delay_asked_for() {
    let failure = place().refused(429, &headers(&[("x-request-id", "req_7"), ("retry-after", "3")]), b"{}");
    assert_eq!(failure.request_id.as_deref(), Some("req_7"));
    assert_eq!(failure.retry_after_ms, Some(3000));
    let failure = place().refused(403, &headers(&[("cf-ray", "abc")]), b"<html><title>Attention  Required!</title>");
    assert_eq!(failure.request_id.as_deref(), Some("abc"));
    assert!(failure.message.contains("a web page titled \"Attention Required!\""), "{}", failure.message);
}

#[test]
fn a_refusal_states_its_code_and_the_parameter_it_is_about() {
    let cases = [
        (
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
            Some("unsupported_parameter"),
            Some("max_tokens"),
            Some("max_completion_tokens"),
        ),
        (
            r#"{"error":{"message":"no","type":"invalid_request_error","param":"messages[0].role","code":"unsupported_value"}}"#,
            Some("unsupported_value"),
            Some("messages[0].role"),
            None,
        ),
        (
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","min_p"],"msg":"Extra inputs are not permitted"}]}"#,
            Some("extra_forbidden"),
            Some("min_p"),
            None,
        ),
        (
            r#"{"code":"invalid-argument","error":"Argument not supported on this model: reasoningEffort"}"#,
            Some("invalid-argument"),
            Some("reasoning_effort"),
            None,
        ),
        (r#"{"error":{"message":"Unknown name \"seed\": Cannot find field.","code":400}}"#, None, Some("seed"), None),
        (
            r#"{"object":"error","message":"no","type":"BadRequestError","param":null,"code":400}"#,
            Some("BadRequestError"),
            None,
            None,
        ),
        (r#"{"error":"no"}"#, None, None, None),
        ("", None, None, None),
    ];
    for (body, code, parameter, instead) in cases {
        let failure = place().refused(400, &HeaderMap::new(), body.as_bytes());
        let stated = failure.stated.clone().map(|stated| *stated).unwrap_or_default();
        assert_eq!(stated.code.as_deref(), code, "{body}");
        assert_eq!(stated.parameter.as_deref(), parameter, "{body}");
        assert_eq!(stated.instead.as_deref(), instead, "{body}");
    }
}

#[test]
fn a_refusal_says_what_to_do_next_and_where() {
    let say = |endpoint: &Endpoint, status: u16, body: &str| {
        Place::new(endpoint, "acme.example", "acme-large").refused(status, &HeaderMap::new(), body.as_bytes()).message
    };
    let mut plain = Endpoint::new("acme", "https://acme.example").with_key("sk-live-0123456789");
    plain.remedies.key = Some("the variable ACME_KEY".into());
    plain.remedies.settings = Some("providers.acme in /h/config.jsonc".into());
    let keyless = Endpoint { api_key: None, ..plain.clone() };
    let bare = Endpoint::new("acme", "https://acme.example").with_key("sk-live-0123456789");
    let cases: &[(&Endpoint, u16, &str, &str)] = &[
        (&plain, 401, "", "Check the key in the variable ACME_KEY; `hames providers test acme` tries it."),
        (
            &keyless,
            401,
            "",
            "wants a key, and none was sent (acme.example, HTTP 401). Put one into the variable ACME_KEY",
        ),
        (&bare, 401, "", "Check the provider's api_key, or the variable it is read from"),
        (&plain, 403, "Country, region, or territory not supported", "does not serve this country or region"),
        (&plain, 404, "model 'x' not found, try pulling it first", "Fetch it with `ollama pull acme-large`"),
        (&plain, 404, "No models loaded.", "`lms load acme-large`"),
        (&plain, 404, "The model x does not exist", "List what it has with `hames models`"),
        (&plain, 404, "", "Check base_url of providers.acme in /h/config.jsonc"),
        (&plain, 429, "try again in 18.6s", "Wait 19 s and try again"),
        (&plain, 429, "Weekly limit. Try again in 58 hours.", "It asks to wait 58 h"),
        (&plain, 503, r#"{"error":{"message":"Loading model"}}"#, "is still loading its model \"acme-large\""),
        (&plain, 500, "tools param requires --jinja flag", "Start llama-server with --jinja"),
        (&plain, 500, "image input is not supported - you may need to provide the mmproj", "--mmproj file"),
        (
            &plain,
            400,
            "\"auto\" tool choice requires --enable-auto-tool-choice",
            "Start vLLM with --enable-auto-tool-choice",
        ),
        (&plain, 400, "acme does not support tools", "Use a model that can call tools"),
        (
            &plain,
            400,
            "max_tokens: 9000 > 8000, which is too large",
            "(9000 of 8000 tokens) (acme.example, HTTP 400). Set max_tokens of providers.acme in /h/config.jsonc to 8000 or less",
        ),
        (
            &plain,
            400,
            "prompt is too long: 9000 tokens > 8000 maximum",
            "larger than the model's window (9000 of 8000 tokens)",
        ),
        (&plain, 400, "Unrecognized request argument supplied: top_k", "refused the parameter \"top_k\""),
        (&plain, 500, "model requires more system memory", "use a smaller one"),
    ];
    for (endpoint, status, body, part) in cases {
        let message = say(endpoint, *status, body);
        assert!(message.starts_with("acme ") && message.contains(part), "{message}\nlacks {part}");
    }
}

#[test]
fn a_redirect_is_told_and_not_followed() {
    let failure = place().refused(308, &headers(&[("location", "https://other.example/v1?key=1")]), b"");
    assert_eq!((failure.class, failure.retryable), (WrongBaseUrl, false));
    assert!(failure.message.contains("https://other.example/v1 ") && !failure.message.contains("key=1"));
}

#[test]
fn no_body_makes_it_panic() {
    let nested = (0..12).fold("x".to_owned(), |inner, _| serde_json::json!({ "error": inner.to_string() }).to_string());
    let deep = "[".repeat(5000);
    for body in
        [nested.as_str(), deep.as_str(), "{", "data:", "data: {", "<", "<title", "\u{feff}{}", "{\"error\":[[[1]]]}"]
    {
        place().refused(400, &HeaderMap::new(), body.as_bytes());
    }
    place().refused(200, &HeaderMap::new(), b"\xff\xfe\x00");
}

/// Every line of `tests/refusals` is a refusal whose class is the file's name.
#[test]
fn refusals_of_every_kind_get_their_class() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refusals");
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let class = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines().filter(|line| !line.starts_with('#')) {
            let (status, rest) = line.split_once(' ').unwrap();
            let (expected, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let bracket =
                rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(h, _)| h.contains(": "));
            let (header, body) = bracket.map_or((None, rest), |(h, body)| (h.split_once(": "), body.trim()));
            let body = body.replace("\\ndata: ", "\ndata: ");
            let headers = headers(header.as_slice());
            let failure = place().refused(status.parse().unwrap(), &headers, body.as_bytes());
            let stated = failure.stated.clone().unwrap_or_default();
            let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
            let found = match expected.contains('/') {
                true => format!("{}/{}", number(stated.limit_tokens), number(stated.requested_tokens)),
                false => if failure.retryable { "yes" } else { "no" }.to_owned(),
            };
            if (failure.class.as_str(), found.as_str()) != (class.as_str(), expected) {
                wrong.push(format!("{} {found} instead of {class}: {line}", failure.class));
            }
            let said = [failure.message.contains("acme"), failure.message.ends_with('.'), failure.message.len() < 500];
            assert_eq!(said, [true; 3], "{}", failure.message);
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 250, "{count}");
}

#[test]
fn what_is_too_much_in_bytes_or_messages_says_nothing_about_the_window() {
    let array = r#"{"error":{"message":"Invalid 'messages': array too long.","param":"messages","code":"array_above_max_length"}}"#;
    let stated = r#"{"error":{"message":"prompt is too long: 9000 tokens > 8192 maximum"}}"#;
    let limited =
        r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large. Max size: 8000 tokens."}}"#;
    for (status, body, in_tokens) in [
        (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", false),
        (413, "Payload Too Large", false),
        (413, r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#, false),
        (413, "", true),
        (400, r#"{"error":{"message":"request entity too large","type":"entity.too.large"}}"#, false),
        (400, array, false),
        (413, limited, true),
        (413, stated, true),
        (400, stated, true),
        (400, r#"{"message":"Input is too long for requested model."}"#, true),
    ] {
        let failure = place().refused(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!(failure.class, ContextOverflow, "{body}");
        assert_eq!(!failure.stated.is_some_and(|stated| stated.not_in_tokens), in_tokens, "{status} {body}");
    }
}

/// Real error bodies with the class they should get, where somebody has them: as the response, and those that came
/// within a stream as one.
#[test]
fn recorded_refusals_get_their_class() {
    let Some(folder) = std::env::var_os("HAMES_TEST_DATA") else {
        println!("skipped: HAMES_TEST_DATA is not set");
        return;
    };
    let rows = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(std::path::Path::new(&folder).join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (mut wrong, mut undecided) = (Vec::new(), Vec::new());
    for row in rows("errors.jsonl") {
        // What was only described has no body to read a class from.
        if row["shape"] == "described" && !row["body"].as_str().unwrap().starts_with('{') {
            undecided.push(format!("described, no body: {}", row["body"]));
            continue;
        }
        let expected = (row["class"].as_str().unwrap(), row["retryable"].as_bool().unwrap());
        for failure in heard(&row) {
            let found = (failure.class.as_str(), failure.retryable);
            if found != expected {
                wrong.push(format!("{found:?} instead of {expected:?}: {row}"));
            }
        }
    }
    for row in rows("overflow.jsonl") {
        // An answer whose usage alone tells, or words that may mean the output: not taken for an overflow.
        if row["text_detectable"] != true {
            let overflows = heard(&row).into_iter().any(|failure| failure.class == ContextOverflow);
            wrong.extend(overflows.then(|| format!("taken for an overflow: {row}")));
            undecided.push(format!("{}: {}", row["note"], row["body"]));
            continue;
        }
        let look_alike = row.get("class").and_then(Value::as_str).unwrap_or("context_overflow");
        for failure in heard(&row) {
            let stated = failure.stated.as_deref().cloned().unwrap_or_default();
            let sizes = (stated.limit_tokens, stated.requested_tokens);
            if sizes != (row["limit"].as_u64(), row["requested"].as_u64()) || failure.class.as_str() != look_alike {
                wrong.push(format!("{} {sizes:?}: {row}", failure.class));
            }
        }
    }
    for row in rows("error-bodies.jsonl") {
        for failure in heard(&row) {
            if failure.provider_message.is_none() {
                wrong.push(format!("no words: {row}"));
            }
        }
    }
    undecided.iter().for_each(|reason| println!("not decided by text: {reason}"));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What a recorded row comes to: as a response, unless its body is a chunk, and as a stream, where it was a success.
fn heard(row: &Value) -> Vec<Failure> {
    let body = row["body"].as_str().unwrap();
    let status = row["status"].as_u64().unwrap() as u16;
    let is_chunk = body.starts_with("{\"choices\"");
    let text = |value: &Value| value.as_str().or_else(|| value[0].as_str()).unwrap().to_owned();
    let pairs: Vec<(String, String)> =
        row["headers"].as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let refused = (!is_chunk).then(|| place().refused(status, &headers(&pairs), body.as_bytes()));
    let streamed = || {
        let stream = if body.contains("data:") { body.to_owned() } else { format!("data: {body}\n\n") };
        let mut decoder = Decoder::new(std::sync::Arc::new(place()), Reading::default());
        decoder.feed(stream.as_bytes());
        decoder.end(None);
        decoder.into_completion().failure
    };
    refused.into_iter().chain((status == 200).then(streamed).flatten()).collect()
}
