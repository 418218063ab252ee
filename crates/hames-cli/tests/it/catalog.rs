//! What is known of models: lists, windows, prices, and how they are kept.

use hames_testkit::{Gate, Provider, Script, Turn, blocking};
use serde_json::{Value, json};

use crate::kit::{Ended, PATIENCE, User, until};

fn listing(models: Value) -> Provider {
    blocking(Script::new().models(models).respond(|_| Turn::text("hi"))).unwrap()
}

fn port(provider: &Provider) -> u16 {
    provider.base_url().trim_end_matches("/v1").rsplit(':').next().unwrap().parse().unwrap()
}

#[test]
fn models_lists_every_provider_and_says_which_cannot_be_reached() {
    let provider = listing(json!({"data": [
        {"id": "a/one", "context_length": 131072, "top_provider": {"max_completion_tokens": 8192},
         "pricing": {"prompt": "0.0000025", "completion": "0.00001", "input_cache_read": "0.00000025"},
         "supported_parameters": ["tools"], "architecture": {"input_modalities": ["text", "image"]}},
        {"id": "two"}
    ]}));
    let user = User::new();
    let dead =
        r#", "dead": {"base_url": "http://127.0.0.1:1/v1", "timeouts": {"connect_s": 2}, "models": [{"id": "kept"}]}"#;
    user.write_config(&format!(
        r#"{{"model": "p/two", "providers": {{"p": {{"base_url": "{}", "models": [{{"id": "two", "context_window": 9000}}]}}{dead}}}}}"#,
        provider.base_url()
    ));
    let ended = user.ok(&["models"]);
    for part in ["p/a/one", "131k", "8,192", "2.50 / 10.00", "0.25", "tools images", "p/two", "9,000", "(default)"] {
        assert!(ended.out.contains(part), "{part}\n{}", ended.out);
    }
    let group = ended.out.split("dead").nth(1).unwrap();
    for part in ["cannot be asked", "port 1 of this machine", "dead/kept", "(declared)"] {
        assert!(ended.out.contains(part), "{part}\n{group}");
    }
    let listed = user.ok(&["models", "--json"]).json();
    assert_eq!(listed.len(), 3);
    let [one, two] = [&listed[0], &listed[1]];
    assert_eq!(one["price"], json!({"input": 2.5, "output": 10.0, "cache_read": 0.25, "cache_write": null}));
    assert_eq!((one["context_window"].as_u64(), one["context_window_from"].as_str()), (Some(131_072), Some("list")));
    assert_eq!(
        (one["tools"].as_bool(), one["images"].as_bool(), one["reasoning"].as_bool()),
        (Some(true), Some(true), Some(false))
    );
    assert_eq!((two["model"].as_str(), two["default"].as_bool()), (Some("p/two"), Some(true)));
    assert_eq!((&two["price"], two["context_window_from"].as_str()), (&Value::Null, Some("config")));
    let only = user.ok(&["models", "ONE", "--json"]).json();
    assert_eq!(only.len(), 1);
    user.write_config(r#"{"model": "d/x", "providers": {"d": {"base_url": "http://127.0.0.1:1/v1"}}}"#);
    assert_eq!(user.run(&["models"]).code, 1);
}

#[test]
fn a_list_is_kept_and_serves_when_nobody_answers() {
    let provider = listing(json!([{"id": "m", "context_length": 4321}]));
    let user = User::new();
    user.write_config(&format!(
        r#"{{"model": "p/m", "providers": {{"p": {{"base_url": "{}"}}}}}}"#,
        provider.base_url()
    ));
    user.ok(&["models"]);
    user.ok(&["models"]);
    // Fresh: asked once.
    assert_eq!(provider.other_requests().len(), 1);
    user.ok(&["models", "--refresh"]);
    assert_eq!(provider.other_requests().len(), 2);
    drop(provider);
    let ended = user.ok(&["models", "--refresh"]);
    assert!(ended.out.contains("cannot be asked; listed just now") && ended.out.contains("4,321"), "{}", ended.out);
    let shown = user.ok(&["config", "show"]).out;
    assert!(shown.contains("window     4321  (provider's list, just now)"), "{shown}");
    for junk in ["", "junk", "hames-catalog 1 x\nend\n"] {
        std::fs::write(user.home().join("cache/lists/p.txt"), junk).unwrap();
        assert_eq!(user.run(&["models"]).code, 1, "{junk}");
        let shown = user.ok(&["config", "show"]).out;
        assert!(shown.contains("window     128000  (assumed: nobody says)"), "{shown}");
    }
}

#[test]
fn a_run_asks_for_the_list_beside_it_and_never_before_it() {
    let list = json!([{"id": "mock-1", "context_length": 50_000, "pricing": {"prompt": "0.000001", "completion": "0.000002"}}]);
    let gate = Gate::new();
    let script = Script::new()
        .models(list)
        .turn(Turn::text("hi").gate_head(gate.clone()))
        .respond(|_| Turn::text("x".repeat(400)).chunk_chars(4).delay_per_chunk(std::time::Duration::from_millis(2)));
    let (user, provider) = User::with(script);
    let kept = user.home().join("cache/lists/openai.txt");
    // While the model has not begun to answer nothing is asked for.
    let child = user.start(&["run", "-m", "openai/mock-1", "x"]);
    assert!(gate.reached_within(PATIENCE));
    assert_eq!(provider.other_requests(), Vec::<String>::new());
    assert!(!kept.exists());
    gate.open();
    assert_eq!(Ended::of(child.wait_with_output().unwrap()).code, 0);
    until("the list is kept", || {
        assert_eq!(user.run(&["run", "-m", "openai/mock-1", "x"]).code, 0);
        kept.exists()
    });
    let first: Vec<String> = provider.other_requests();
    assert!(first[0].contains("/v1/models"), "{first:?}");
    // What the list says is known to the next run: the window, and what it costs.
    let ended = user.ok(&["run", "-m", "openai/mock-1", "--json", "x"]);
    let cost = ended.event("step.done")["cost"].clone();
    let usage = ended.event("step.done")["usage"].clone();
    let micros = usage["input"].as_u64().unwrap() + 2 * usage["output"].as_u64().unwrap();
    assert_eq!(cost, json!({"micros": micros, "currency": "USD", "computed": true}));
    assert_eq!(user.ok(&["models", "--json"]).json()[0]["context_window"], 50_000);
    // And what the run cost is told at its end, and in its ledger.
    let ended = user.ok(&["run", "-m", "openai/mock-1", "-s", "told", "x"]);
    assert!(ended.err.contains(" · ≈ $0.00"), "{}", ended.err);
    assert!(user.ok(&["sessions", "show", "told", "--runs"]).out.contains(" · ≈ $0.00"));
    assert!(!user.ok(&["run", "-m", "openai/other", "x"]).err.contains('$'));
}

#[test]
fn a_model_that_is_gone_is_said_with_the_names_near_it_and_still_tried() {
    let provider = listing(json!([{"id": "qwen3-coder:30b"}, {"id": "qwen3:8b"}]));
    let user = User::new();
    user.write_config(&format!(
        r#"{{"model": "p/qwen3-codr:30b", "providers": {{"p": {{"base_url": "{}"}}}}}}"#,
        provider.base_url()
    ));
    let listed = user.ok(&["models"]).out;
    assert!(
        listed.contains("p/qwen3-codr:30b is the default and is not listed; did you mean qwen3-coder:30b"),
        "{listed}"
    );
    let ended = user.ok(&["run", "x"]);
    assert_eq!(ended.out, "hi\n");
    assert!(
        ended.err.contains("p does not list qwen3-codr:30b (asked just now); did you mean qwen3-coder:30b"),
        "{}",
        ended.err
    );
    assert_eq!(provider.requests()[0].body["model"], "qwen3-codr:30b");
    assert!(!user.ok(&["run", "-m", "p/qwen3:8b", "x"]).err.contains("does not list"));
}

#[test]
fn a_model_that_the_provider_refuses_is_answered_with_what_it_has() {
    let error = json!({"error": {"message": "The model `gpt-5.44` does not exist", "type": "invalid_request_error", "code": "model_not_found"}});
    let script = Script::new()
        .models(json!([{"id": "gpt-5.4"}, {"id": "other"}]))
        .respond(move |_| Turn::error(404, error.clone()));
    let (user, _provider) = User::with(script);
    let ended = user.run(&["run", "-m", "openai/gpt-5.44", "x"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("openai has gpt-5.4"), "{}", ended.err);
}

#[test]
fn a_server_that_runs_here_is_used_where_no_model_is_configured_and_only_there() {
    let server = listing(json!([{"id": "embed-x"}, {"id": "qwen3:8b", "owned_by": "library"}]));
    let user = User::new();
    let ports = format!(r#""catalog": {{"local_servers": [1, {}], "models_dev": false}}"#, port(&server));
    user.write_config(&format!("{{{ports}}}"));
    let ended = user.ok(&["run", "x"]);
    assert_eq!(ended.out, "hi\n");
    for part in [
        "no model is configured; using ollama/qwen3:8b, of Ollama at http://127.0.0.1:",
        "hames providers add ollama --url",
    ] {
        assert!(ended.err.contains(part), "{}", ended.err);
    }
    assert_eq!(server.requests()[0].body["model"], "qwen3:8b");
    // A session that exists has its model, so nothing is looked for.
    user.ok(&["run", "-s", "mine", "x"]);
    let ended = user.run(&["run", "-s", "mine", "again"]);
    assert!(!ended.err.contains("no model is configured; using"), "{}", ended.err);
    assert!(user.ok(&["models"]).out.contains("ollama/qwen3:8b"));

    let asked = server.other_requests().len();
    let configured = listing(json!([]));
    user.write_config(&format!(
        r#"{{"model": "p/m", {ports}, "providers": {{"p": {{"base_url": "{}"}}}}}}"#,
        configured.base_url()
    ));
    user.ok(&["run", "x"]);
    assert_eq!(server.other_requests().len(), asked, "looked for although a model is configured");

    user.write_config(r#"{"catalog": {"local_servers": [1]}}"#);
    let ended = user.run(&["run", "x"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("looked for port 1"), "{}", ended.err);
    user.write_config(r#"{"catalog": {"local_servers": false}}"#);
    assert!(!user.run(&["run", "x"]).err.contains("looked for"));
}

#[test]
fn the_public_catalog_says_what_list_and_snapshot_do_not() {
    let public = json!({"acme": {"models": {"m": {
        "limit": {"context": 77_000, "output": 5_000}, "cost": {"input": 1, "output": 4}, "tool_call": true,
    }}}});
    let mirror = blocking(Script::new().models(public)).unwrap();
    let provider = listing(json!([{"id": "m"}, {"id": "n"}]));
    let user = User::new();
    let file = |models_dev: String| {
        format!(
            r#"{{"model": "p/m", "catalog": {{"models_dev": {models_dev}}},
                "providers": {{"p": {{"base_url": "{}", "catalog": "acme"}}}}}}"#,
            provider.base_url()
        )
    };
    user.write_config(&file("false".into()));
    assert_eq!(user.ok(&["models", "m", "--json"]).json()[0]["context_window"], Value::Null);
    assert_eq!(mirror.other_requests().len(), 0);
    user.write_config(&file(format!("\"{}/models\"", mirror.base_url())));
    for _ in 0..2 {
        let m = user.ok(&["models", "m", "--json"]).json().remove(0);
        assert_eq!(
            (m["context_window"].as_u64(), m["context_window_from"].as_str()),
            (Some(77_000), Some("models.dev"))
        );
        assert_eq!(m["price"]["output"], 4.0);
    }
    assert_eq!(mirror.other_requests().len(), 1, "a day is not over");
    let n = user.ok(&["models", "/n", "--json"]).json().remove(0);
    assert_eq!((&n["price"], &n["context_window"]), (&Value::Null, &Value::Null));
}
