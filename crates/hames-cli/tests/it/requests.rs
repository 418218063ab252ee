//! What is sent to which model: sampling from flags, session and file; nothing of one model to the next; refusals that
//! are remembered by the next process.

use hames_testkit::{ChatRequest, Provider, Script, Turn, blocking};
use serde_json::{Value, json};

use crate::kit::User;

/// What a body holds besides the conversation and what every body holds.
fn asked(request: &ChatRequest) -> Value {
    let mut body = request.body.clone();
    let members = body.as_object_mut().unwrap();
    members.retain(|name, _| {
        !["model", "tools", "messages", "stream", "stream_options", "max_tokens"].contains(&name.as_str())
    });
    body
}

fn last(provider: &Provider) -> Value {
    asked(provider.requests().last().unwrap())
}

#[test]
fn a_flag_of_sampling_is_sent_kept_by_the_session_and_taken_back_by_auto() {
    let (user, provider) = User::saying("ok");
    user.write_config(&format!(
        r#"{{"model": "own/m", "providers": {{"own": {{"base_url": "{}", "top_p": 0.5, "presence_penalty": 1}}}}}}"#,
        provider.base_url()
    ));
    let file = json!({"top_p": 0.5, "presence_penalty": 1.0});
    let cases: [(&[&str], Value); 8] = [
        (&["run", "-s", "a", "x"], file.clone()),
        (&["run", "-s", "a", "--temperature", "0.7", "x"], json!({"temperature": 0.7, "presence_penalty": 1.0})),
        (&["run", "-s", "a", "x"], json!({"temperature": 0.7, "presence_penalty": 1.0})),
        (
            &["run", "-s", "a", "--presence-penalty", "auto", "--frequency-penalty", "2", "x"],
            json!({"temperature": 0.7, "frequency_penalty": 2.0}),
        ),
        (&["run", "-s", "a", "--temperature", "auto", "x"], json!({"frequency_penalty": 2.0})),
        (&["run", "-s", "a", "--top-p", "0.9", "x"], json!({"top_p": 0.9, "frequency_penalty": 2.0})),
        (&["run", "-s", "a", "--top-p", "AUTO", "--frequency-penalty", "auto", "x"], json!({})),
        (&["run", "-s", "another", "x"], file),
    ];
    for (args, expected) in cases {
        user.ok(args);
        assert_eq!(last(&provider), expected, "{args:?}");
    }
    // What a run is frozen with is on record, whichever layer it came from.
    let start = user.ok(&["run", "--json", "-s", "another", "x"]).event("run.start");
    assert_eq!(start["settings"]["sampler"], json!({"top_p": 0.5}));
    assert_eq!(provider.violations(), []);
}

#[test]
fn a_value_off_its_scale_and_two_samplers_exit_2_with_what_would_be_right() {
    let (user, provider) = User::saying("never");
    for (flags, says) in [
        (&["--temperature", "2.1"][..], "neither a number from 0 to 2 nor auto"),
        (&["--temperature", "hot"], "\"hot\""),
        (&["--temperature", "NaN"], "\"NaN\""),
        (&["--top-p", "1.01"], "from 0 to 1"),
        (&["--top-p=-0.1"], "from 0 to 1"),
        (&["--presence-penalty", "3"], "from 0 to 2"),
        (&["--frequency-penalty", ""], "\"\""),
        (&["--temperature", "1", "--top-p", "1"], "cannot be used with"),
    ] {
        let args: Vec<&str> = ["run", "x"].iter().chain(flags).copied().collect();
        let ended = user.run(&args);
        assert_eq!(ended.code, 2, "{flags:?}\n{ended:?}");
        assert!(ended.err.contains(says), "{flags:?} says\n{}", ended.err);
    }
    assert_eq!(provider.requests().len(), 0);
}

/// Everything in a request that only the provider before could have put there.
const TRACES: [&str; 11] = [
    "chat_template_kwargs",
    "reasoning_effort",
    "temperature",
    "presence_penalty",
    "max_completion_tokens",
    "reasoning_content",
    "reasoning_details",
    "signed",
    "thought",
    "x-one-session",
    "Bearer",
];

#[test]
fn another_model_in_a_session_gets_nothing_of_the_one_before() {
    let one = blocking(
        Script::new()
            .refuse(|request| {
                let message =
                    "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.";
                request.body["max_tokens"].is_u64().then(|| Turn::error(400, json!({"error": {"message": message}})))
            })
            .turn(
                Turn::new()
                    .reasoning("thought")
                    .signed_reasoning("thought", "signed")
                    .then_call("Read", json!({"path": "a"})),
            )
            .turn(Turn::new().reasoning("thought").then_text("one"))
            .turn(Turn::text("one again")),
    )
    .unwrap();
    let two = blocking(
        Script::new()
            .respond(|_| Turn::new().reasoning("second").then_call("Read", json!({"path": "a"})))
            .turn(Turn::text("two")),
    )
    .unwrap();
    let user = User::new();
    user.write("a", "content");
    user.write_config(&format!(
        r#"{{"model": "one/m", "providers": {{
            "one": {{"base_url": "{}", "api_key": "key-of-the-first", "thinking": "bool", "thinking_level": "high",
                     "temperature": 0.3, "session_header": "x-one-session",
                     "models": [{{"id": "m", "presence_penalty": 0.5, "context_window": 100000, "max_output": 9000}}]}},
            "two": {{"base_url": "{}", "thinking": "type"}},
            "three": {{"base_url": "{}"}}}}}}"#,
        one.base_url(),
        two.base_url(),
        two.base_url()
    ));
    user.ok(&["run", "-s", "s", "go"]);
    let requests = one.requests();
    let first = requests.last().unwrap();
    assert_eq!(
        asked(first),
        json!({
            "chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": "high", "temperature": 0.3,
            "presence_penalty": 0.5, "max_completion_tokens": 9000,
        })
    );
    assert!(first.messages().iter().any(|m| m["reasoning_details"].to_string().contains("signed")), "{:?}", first.body);
    assert!(first.header("x-one-session").is_some());

    for (model, expected) in [("two/m", json!({})), ("three/m", json!({}))] {
        let ended = user.run(&["run", "-s", "s", "-m", model, "--max-steps", "1", "and now"]);
        assert!([0, 3].contains(&ended.code), "{ended:?}");
        let request = two.requests().last().unwrap().clone();
        assert_eq!(asked(&request), expected, "{model}");
        let whole = format!("{:?}\n{}", request.headers, request.body);
        for trace in TRACES {
            assert!(!whole.contains(trace), "{model} is sent {trace}:\n{whole}");
        }
        assert!(request.messages().iter().any(|m| m["content"] == "one"), "what was said is the conversation's");
    }

    // Back with the first model, everything of it is there again, and nothing of the others.
    user.ok(&["run", "-s", "s", "-m", "one/m", "back"]);
    let back = one.requests().last().unwrap().clone();
    assert_eq!(asked(&back), asked(first));
    let whole = back.body.to_string();
    assert!(whole.contains("signed") && !whole.contains("second"), "{whole}");
    assert_eq!((one.violations(), two.violations()), (vec![], vec![]));
}

#[test]
fn a_thinking_level_of_the_session_is_said_in_the_words_of_each_model() {
    let (user, provider) = User::saying("ok");
    let url = provider.base_url();
    user.write_config(&format!(
        r#"{{"model": "bool/m", "providers": {{
            "bool": {{"base_url": "{url}", "thinking": "bool"}},
            "effort": {{"base_url": "{url}", "thinking": "effort", "thinking_level": "low"}},
            "reasoning": {{"base_url": "{url}", "thinking": "reasoning"}},
            "type": {{"base_url": "{url}", "thinking": "type"}},
            "old": {{"base_url": "{url}", "enableThinking": false}},
            "none": {{"base_url": "{url}"}}}}}}"#
    ));
    let on = json!({"enable_thinking": true});
    for (args, expected) in [
        (&["-m", "effort/m"][..], json!({"reasoning_effort": "low"})),
        (&["-m", "old/m"], json!({"chat_template_kwargs": {"enable_thinking": false}})),
        (&["-m", "bool/m"], json!({})),
        (&["-m", "bool/m", "--thinking", "high"], json!({"chat_template_kwargs": on, "reasoning_effort": "high"})),
        (&["-m", "effort/m"], json!({"reasoning_effort": "high"})),
        (&["-m", "reasoning/m"], json!({"reasoning": {"effort": "high"}})),
        (&["-m", "type/m"], json!({"thinking": {"type": "enabled"}})),
        (&["-m", "none/m"], json!({})),
        (&["-m", "effort/m", "--thinking", "off"], json!({})),
        (&["-m", "reasoning/m"], json!({"reasoning": {"enabled": false}})),
        (&["-m", "type/m"], json!({"thinking": {"type": "disabled"}})),
    ] {
        let args: Vec<&str> = ["run", "-s", "s", "x"].iter().chain(args).copied().collect();
        user.ok(&args);
        assert_eq!(last(&provider), expected, "{args:?}");
    }
    // What a flag asks for and nobody is told is said, once; what was set before is not news.
    for (args, told) in [
        (&["-m", "none/m", "--thinking", "high"][..], 1),
        (&["-m", "none/m", "--thinking", "off", "--json"], 1),
        (&["-m", "none/m"], 0),
        (&["-m", "effort/m", "--thinking", "high"], 0),
    ] {
        let args: Vec<&str> = ["run", "-s", "s", "x"].iter().chain(args).copied().collect();
        let err = user.ok(&args).err;
        assert_eq!(err.matches("nothing is sent for it").count(), told, "{args:?}\n{err}");
        assert!(told == 0 || (err.contains("set \"thinking\" of") && err.contains("config.jsonc")), "{err}");
    }
}

#[test]
fn a_refused_parameter_is_told_recorded_and_remembered_by_the_next_process() {
    let refusing = || {
        Script::new().respond(|_| Turn::text("fine")).refuse(|request| {
            let message = "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.";
            let error = json!({"message": message, "param": "temperature", "code": "unsupported_value"});
            request.body["temperature"].is_number().then(|| Turn::error(400, json!({ "error": error })))
        })
    };
    let (user, provider) = User::with(refusing());
    let told = user.ok(&["run", "-s", "s", "--temperature", "0.7", "x"]);
    assert!(told.err.contains("learned of openai/gpt-5.4: temperature is left out"), "{}", told.err);
    assert!(!told.err.contains("trying again"), "it is no retry: {}", told.err);
    assert_eq!(provider.requests().len(), 2);

    let next = user.ok(&["run", "--json", "-s", "s", "y"]);
    assert_eq!(provider.requests().len(), 3);
    assert_eq!(last(&provider), json!({}));
    assert!(!next.types().contains(&"parameter.learned".to_owned()));
    // The session's setting stays what it was; only this model is not sent it.
    assert_eq!(next.event("run.start")["settings"]["sampler"], json!({"temperature": 0.7}));

    let shown = user.ok(&["sessions", "show", "s"]);
    assert!(shown.out.contains("[learned] temperature is left out"), "{}", shown.out);
    let log = user.ok(&["sessions", "show", "s", "--json"]);
    let learned = log.event("parameter.learned");
    assert_eq!(learned["lesson"], json!({"parameter": "temperature", "remedy": "drop"}));
    assert!(learned["words"].as_str().unwrap().contains("Only the default"));

    // Without the file it is learned again; a damaged one is said and replaced.
    let file = user.home().join("learned.json");
    std::fs::remove_file(&file).unwrap();
    user.ok(&["run", "-s", "s", "z"]);
    assert_eq!(provider.requests().len(), 5);
    std::fs::write(&file, "{\"models\": [").unwrap();
    let damaged = user.ok(&["run", "-s", "s", "z"]);
    assert!(damaged.err.contains("learned.json: it is damaged"), "{}", damaged.err);
    assert!(damaged.err.contains("will be learned again"), "{}", damaged.err);
    assert_eq!(provider.requests().len(), 7);
    assert_eq!(user.ok(&["run", "-s", "s", "z"]).err.matches("learned").count(), 0);
    assert_eq!(provider.requests().len(), 8);
}

#[test]
fn a_model_that_refuses_more_than_can_be_learned_at_once_exits_1_and_gets_there_next_time() {
    let (user, provider) = User::with(Script::new().respond(|_| Turn::text("fine")).refuse(|request| {
        let refused = ["temperature", "presence_penalty", "frequency_penalty"];
        let name = refused.into_iter().find(|name| !request.body[name].is_null())?;
        let message = format!("Unsupported parameter: '{name}' is not supported with this model.");
        Some(Turn::error(400, json!({"error": {"message": message, "param": name, "code": "unsupported_parameter"}})))
    }));
    let args = ["run", "x", "-s", "s", "--temperature", "1", "--presence-penalty", "1", "--frequency-penalty", "1"];
    let ended = user.run(&args);
    assert_eq!((ended.code, provider.requests().len()), (1, 3), "{ended:?}");
    assert!(
        ended.err.contains("This was tried first: temperature is left out; presence_penalty is left out"),
        "{}",
        ended.err
    );
    user.ok(&["run", "-s", "s", "again"]);
    assert_eq!(provider.requests().len(), 5);
    assert_eq!(last(&provider), json!({}));
}
