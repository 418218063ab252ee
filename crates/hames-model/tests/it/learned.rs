//! Refusals of parameters: learned once, remembered by the next program, never more than two requests sent again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hames_model::{ChatModel, Endpoint, LearnedFile, LearnedStore, ModelAt, ThinkingDialect};
use hames_protocol::{
    AssistantItem, CallItem, Completion, ErrorClass, Failure, Head, Item, Label, Lesson, MemoryBlobs, ModelClient,
    ModelInfo, ReasoningBlock, Remedy, RequestOptions, Sampler, Sampling, ThinkingLevel, ToolItem, ToolSpec,
};
use hames_testkit::{Provider, Script, Turn};
use serde_json::{Value, json};

use crate::server::user;

/// A rule of a provider: which bodies it refuses, and with what.
#[derive(Clone)]
struct Rule {
    refuses: fn(&Value) -> bool,
    status: u16,
    body: Value,
}

impl Rule {
    fn new(refuses: fn(&Value) -> bool, message: &str) -> Self {
        let error = json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
        Self { refuses, status: 400, body: json!({ "error": error }) }
    }

    fn pointing(mut self, param: &str, code: &str) -> Self {
        self.body["error"]["param"] = json!(param);
        self.body["error"]["code"] = json!(code);
        self
    }

    fn saying(refuses: fn(&Value) -> bool, status: u16, body: Value) -> Self {
        Self { refuses, status, body }
    }
}

async fn provider(rules: Vec<Rule>) -> Provider {
    let mut script = Script::new().respond(|_| Turn::text("fine"));
    for rule in rules {
        script = script
            .refuse(move |request| (rule.refuses)(&request.body).then(|| Turn::error(rule.status, rule.body.clone())));
    }
    Provider::start(script).await.unwrap()
}

/// A conversation that carries everything a request can carry.
struct Talk {
    dialect: Option<ThinkingDialect>,
    options: RequestOptions,
    head: Arc<Head>,
    items: Vec<Arc<Item>>,
}

impl Talk {
    fn new(dialect: ThinkingDialect, level: impl Into<Option<ThinkingLevel>>) -> Self {
        let tool =
            ToolSpec { name: "Read".into(), description: "Reads.".into(), parameters: json!({"type": "object"}) };
        Self {
            dialect: Some(dialect),
            options: RequestOptions {
                max_output_tokens: Some(32_000),
                thinking: level.into(),
                sampling: Sampling {
                    sampler: Some(Sampler::Temperature("0.2".parse().unwrap())),
                    presence_penalty: Some("0.5".parse().unwrap()),
                    frequency_penalty: Some("1".parse().unwrap()),
                },
                session: None,
            },
            head: Arc::new(Head { tools: vec![tool], system: "Be brief.".into() }),
            items: vec![user("hi")],
        }
    }

    /// With an answer of another model behind the question, so that there is no reasoning to give back.
    fn with_answer(mut self, reasoning: bool) -> Self {
        let call = CallItem {
            call_id: "c1".into(),
            provider_id: "c1".into(),
            name: "Read".into(),
            arguments: "{}".into(),
            input: None,
            label: Label::default(),
            extra: None,
        };
        let block = ReasoningBlock { text: "think".into(), field: "reasoning_content".into(), blocks: vec![] };
        let answer = AssistantItem {
            calls: vec![call],
            reasoning: if reasoning { vec![block] } else { vec![] },
            ..AssistantItem::default()
        };
        let result = ToolItem {
            call_id: "c1".into(),
            name: "Read".into(),
            text: "ok".into(),
            error: None,
            blob: None,
            attachments: vec![],
            capability: false,
        };
        self.items.extend([Arc::new(Item::Assistant(answer)), Arc::new(Item::Tool(result))]);
        self
    }

    fn model(&self, provider: &Provider, store: Arc<dyn LearnedStore>) -> ChatModel {
        let mut endpoint = Endpoint::new("acme", provider.base_url());
        endpoint.thinking = self.dialect;
        let info = ModelInfo::new("acme/large".parse().unwrap(), 100_000, 32_000);
        ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap().learning_in(store)
    }

    async fn ask(&self, model: &mut ChatModel) -> Result<Completion, Failure> {
        model.prepare(&self.head, &self.items, &self.options).await?;
        self.send(model).await
    }

    async fn send(&self, model: &mut ChatModel) -> Result<Completion, Failure> {
        let mut answer = model.send().await?;
        while answer.next().await.is_some() {}
        Ok(answer.finish())
    }
}

/// What a program finds when it starts: the file, and the time.
fn file(path: &Path) -> Arc<LearnedFile> {
    let (file, notice) = LearnedFile::open(path, Arc::new(|| 1_800_000_000));
    assert_eq!(notice, None);
    Arc::new(file)
}

fn body(provider: &Provider, n: usize) -> Value {
    provider.requests()[n].body.clone()
}

#[tokio::test]
async fn each_refusal_is_learned_once_and_remembered_after_a_restart() {
    use ThinkingDialect::{Bool, Effort, Reasoning, Type};
    use ThinkingLevel::{High, Medium, Off};
    // What the provider refuses, what is asked, how many requests that takes, and what the last one has to hold.
    type Case = (&'static str, Talk, Vec<Rule>, usize, fn(&Value) -> bool);
    let unsupported = "Unsupported parameter";
    let cases: Vec<Case> = vec![
        (
            "the output limit under its new name",
            Talk::new(Effort, None),
            vec![
                Rule::new(|b| b["max_tokens"].is_u64(), "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
                    .pointing("max_tokens", "unsupported_parameter"),
            ],
            2,
            |b| b["max_tokens"].is_null() && b["max_completion_tokens"] == 32_000,
        ),
        (
            "no output limit at all",
            Talk::new(Effort, None),
            vec![
                Rule::new(|b| b["max_tokens"].is_u64(), unsupported).pointing("max_tokens", "unsupported_parameter"),
                Rule::new(|b| b["max_completion_tokens"].is_u64(), unsupported)
                    .pointing("max_completion_tokens", "unsupported_parameter"),
            ],
            3,
            |b| b["max_tokens"].is_null() && b["max_completion_tokens"].is_null(),
        ),
        (
            "a smaller output limit",
            Talk::new(Effort, None),
            vec![Rule::new(|b| b["max_tokens"].as_u64() > Some(8_192), "max_tokens is too large: 32000. This model supports at most 8192 completion tokens, whereas you provided 32000.")],
            2,
            |b| b["max_tokens"] == 8_192,
        ),
        (
            "no temperature",
            Talk::new(Effort, None),
            vec![
                Rule::new(|b| b["temperature"].is_number(), "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.")
                    .pointing("temperature", "unsupported_value"),
            ],
            2,
            |b| b["temperature"].is_null() && b["presence_penalty"] == 0.5,
        ),
        (
            "no penalties",
            Talk::new(Effort, None),
            vec![
                Rule::saying(|b| b["presence_penalty"].is_number(), 400, json!({"code": "invalid-argument", "error": "Argument not supported on this model: presencePenalty"})),
                Rule::saying(|b| b["frequency_penalty"].is_number(), 400, json!({"code": "invalid-argument", "error": "Argument not supported on this model: frequencyPenalty"})),
            ],
            3,
            |b| b["presence_penalty"].is_null() && b["frequency_penalty"].is_null() && b["temperature"] == 0.2,
        ),
        (
            "no usage in the stream",
            Talk::new(Effort, None),
            vec![Rule::saying(
                |b| b["stream_options"].is_object(),
                422,
                json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}),
            )],
            2,
            |b| b["stream_options"].is_null() && b["stream"] == true,
        ),
        (
            "no effort",
            Talk::new(Effort, High),
            vec![Rule::new(|b| b["reasoning_effort"].is_string(), "Unrecognized request argument supplied: reasoning_effort")],
            2,
            |b| b["reasoning_effort"].is_null(),
        ),
        (
            "another effort",
            Talk::new(Effort, Medium),
            vec![
                Rule::new(|b| b["reasoning_effort"] == "medium", "Unsupported value: 'reasoning_effort' does not support 'medium' with this model. Supported values are: 'low', 'high'.")
                    .pointing("reasoning_effort", "unsupported_value"),
            ],
            2,
            |b| b["reasoning_effort"] == "high",
        ),
        (
            "no template arguments and no effort",
            Talk::new(Bool, High),
            vec![
                Rule::saying(|b| b["chat_template_kwargs"].is_object(), 400, json!("json: unknown field \"chat_template_kwargs\"")),
                Rule::new(|b| b["reasoning_effort"].is_string(), "Unrecognized request argument supplied: reasoning_effort"),
            ],
            3,
            |b| b["chat_template_kwargs"].is_null() && b["reasoning_effort"].is_null(),
        ),
        (
            "no switch for thinking",
            Talk::new(Type, High),
            vec![Rule::new(|b| b["thinking"].is_object(), "Unrecognized request argument supplied: thinking")],
            2,
            |b| b["thinking"].is_null(),
        ),
        (
            "another switch for thinking",
            Talk::new(Type, High),
            vec![Rule::new(|b| b["thinking"]["type"] == "enabled", "thinking.type.enabled is not supported for this model. Use thinking.type.adaptive instead.")],
            2,
            |b| b["thinking"] == json!({"type": "adaptive"}),
        ),
        (
            "thinking that cannot be switched off",
            Talk::new(Reasoning, Off),
            vec![Rule::new(|b| b["reasoning"]["enabled"] == false, "Reasoning is mandatory for this endpoint and cannot be disabled.")],
            2,
            |b| b["reasoning"].is_null(),
        ),
        (
            "tools only without effort",
            Talk::new(Effort, High),
            vec![
                Rule::new(
                    |b| b["tools"].is_array() && b["reasoning_effort"].is_string(),
                    "Function tools with reasoning_effort are not supported for large in /v1/chat/completions. Please use /v1/responses instead.",
                )
                .pointing("reasoning_effort", ""),
            ],
            2,
            |b| b["reasoning_effort"].is_null() && b["tools"].is_array(),
        ),
        (
            "tools only with the effort none, said",
            Talk::new(Effort, High),
            vec![Rule::new(
                |b| b["tools"].is_array() && b["reasoning_effort"] != "none",
                "Function tools with reasoning_effort are not supported for large. Use /v1/responses or set reasoning_effort to 'none'.",
            )],
            2,
            |b| b["reasoning_effort"] == "none" && b["tools"].is_array(),
        ),
        (
            "tools only with the effort none, found out",
            Talk::new(Effort, High),
            vec![Rule::new(
                |b| b["tools"].is_array() && b["reasoning_effort"] != "none",
                "Function tools with reasoning_effort are not supported for large in /v1/chat/completions.",
            )],
            3,
            |b| b["reasoning_effort"] == "none",
        ),
        (
            "no role for the system text",
            Talk::new(Effort, None),
            vec![
                Rule::new(|b| b["messages"][0]["role"] == "system", "Unsupported value: 'messages[0].role' does not support 'system' with this model.")
                    .pointing("messages[0].role", "unsupported_value"),
            ],
            2,
            |b| b["messages"] == json!([{"role": "user", "content": "Be brief.\n\nhi"}]),
        ),
        (
            "a template without a system text",
            Talk::new(Effort, None),
            vec![Rule::saying(
                |b| b["messages"][0]["role"] == "system",
                500,
                json!({"error": {"code": 500, "message": "System role not supported", "type": "server_error"}}),
            )],
            2,
            |b| b["messages"][0]["role"] == "user" && b["messages"][1].is_null(),
        ),
        (
            "reasoning with every answer",
            Talk::new(Type, High).with_answer(false),
            vec![Rule::new(
                |b| b["messages"][2]["role"] == "assistant" && b["messages"][2]["reasoning_content"].is_null(),
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
            )],
            2,
            |b| b["messages"][2]["reasoning_content"] == " ",
        ),
        (
            "reasoning with no answer",
            Talk::new(Type, High).with_answer(true),
            vec![Rule::new(
                |b| b["messages"].to_string().contains("reasoning_content"),
                "property 'messages.2.reasoning_content' is unsupported",
            )],
            2,
            |b| b["messages"][2]["tool_calls"].is_array() && b["messages"][2].get("reasoning_content").is_none(),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, talk, rules, requests, holds) in cases {
        let path = folder.path().join(format!("{name}.json"));
        let provider = provider(rules).await;
        let mut model = talk.model(&provider, file(&path));
        let answer = talk.ask(&mut model).await.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(answer.text, "fine", "{name}");
        assert_eq!(provider.requests().len(), requests, "{name}");
        assert!(holds(&body(&provider, requests - 1)), "{name}: {}", body(&provider, requests - 1));
        assert_eq!(model.take_learned().len(), requests - 1, "{name}");
        assert_eq!(model.take_learned(), [], "{name}");

        // The same conversation goes on without a refusal, and so does another program.
        talk.ask(&mut model).await.unwrap();
        let mut restarted = talk.model(&provider, file(&path));
        talk.ask(&mut restarted).await.unwrap();
        assert_eq!(restarted.take_learned(), [], "{name}");
        assert_eq!(provider.requests().len(), requests + 2, "{name}");
        assert!(holds(&body(&provider, requests + 1)), "{name}");
        assert_eq!(provider.requests()[requests].raw, provider.requests()[requests + 1].raw, "{name}");
        assert_eq!(provider.violations(), [], "{name}");
    }
}

fn refuses_all() -> Vec<Rule> {
    let refusal = |name: &str| format!("Unsupported parameter: '{name}' is not supported with this model.");
    vec![
        Rule::new(|b| b["temperature"].is_number(), &refusal("temperature"))
            .pointing("temperature", "unsupported_parameter"),
        Rule::new(|b| b["presence_penalty"].is_number(), &refusal("presence_penalty"))
            .pointing("presence_penalty", "unsupported_parameter"),
        Rule::new(|b| b["frequency_penalty"].is_number(), &refusal("frequency_penalty"))
            .pointing("frequency_penalty", "unsupported_parameter"),
        Rule::new(|b| b["reasoning_effort"].is_string(), &refusal("reasoning_effort"))
            .pointing("reasoning_effort", "unsupported_parameter"),
        Rule::new(|b| b["stream_options"].is_object(), &refusal("stream_options"))
            .pointing("stream_options", "unsupported_parameter"),
    ]
}

#[tokio::test]
async fn a_request_is_never_sent_a_fourth_time_and_what_was_right_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.json");
    let provider = provider(refuses_all()).await;
    let talk = Talk::new(ThinkingDialect::Effort, ThinkingLevel::High);

    let mut model = talk.model(&provider, file(&path));
    let failure = talk.ask(&mut model).await.unwrap_err();
    assert_eq!(provider.requests().len(), 3);
    assert_eq!((failure.class, failure.retryable), (ErrorClass::InvalidRequestFixable, false));
    assert!(failure.message.contains("temperature is left out; presence_penalty is left out"), "{}", failure.message);
    // Whoever sends the same again gets the same, and not one request more than they asked for.
    talk.send(&mut model).await.unwrap_err();
    assert_eq!(provider.requests().len(), 4);

    // Each lesson led on, so the next program goes on from there.
    let mut model = talk.model(&provider, file(&path));
    talk.ask(&mut model).await.unwrap_err();
    assert_eq!(provider.requests().len(), 7);
    let mut model = talk.model(&provider, file(&path));
    talk.ask(&mut model).await.unwrap();
    assert_eq!(provider.requests().len(), 9);
    let last = body(&provider, 8);
    let members: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(members, ["model", "tools", "messages", "stream", "max_tokens"]);
}

#[tokio::test]
async fn a_lesson_that_does_not_help_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.json");
    // Whatever is sent, it complains of the temperature.
    let rule = Rule::new(|_| true, "Unsupported parameter: 'temperature' is not supported")
        .pointing("temperature", "unsupported_parameter");
    let provider = provider(vec![rule]).await;
    let talk = Talk::new(ThinkingDialect::Effort, None);
    let mut model = talk.model(&provider, file(&path));
    let failure = talk.ask(&mut model).await.unwrap_err();
    assert_eq!((provider.requests().len(), failure.retryable), (2, false));
    let learned: Vec<Remedy> = model.take_learned().into_iter().map(|learned| learned.lesson.remedy).collect();
    assert_eq!(learned, [Remedy::Drop, Remedy::Keep]);
    assert_eq!(file(&path).all(), []);
    talk.ask(&mut model).await.unwrap_err();
    assert_eq!(body(&provider, 2)["temperature"], 0.2, "the next request is what was wanted again");
}

#[tokio::test]
async fn what_was_not_sent_or_is_a_persons_choice_changes_nothing() {
    let cases = [
        ("Unsupported parameter: 'top_p' is not supported", "top_p"),
        ("Unrecognized request argument supplied: parallel_tool_calls", ""),
        (
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 0.1, but got 0.2 instead.",
            "temperature",
        ),
        ("Thinking mode does not support this tool_choice", ""),
        ("temperature", ""),
        ("", ""),
        ("Bad request", "body"),
        ("messages[2].content: text is required", "messages[2].content"),
    ];
    for (message, param) in cases {
        let provider = provider(vec![Rule::new(|_| true, message).pointing(param, "")]).await;
        let talk = Talk::new(ThinkingDialect::Effort, None);
        let store = Arc::new(hames_model::MemoryLearned::default());
        let mut model = talk.model(&provider, store.clone());
        talk.ask(&mut model).await.unwrap_err();
        assert_eq!(provider.requests().len(), 1, "{message}");
        assert_eq!(model.take_learned(), [], "{message}");
    }
}

#[tokio::test]
async fn a_lesson_belongs_to_one_model_at_one_endpoint() {
    let rule = || Rule::new(|b| b["temperature"].is_number(), "`temperature` is deprecated for this model.");
    let (one, other) = (provider(vec![rule()]).await, provider(vec![]).await);
    let store: Arc<dyn LearnedStore> = Arc::new(hames_model::MemoryLearned::default());
    let talk = Talk::new(ThinkingDialect::Effort, None);
    talk.ask(&mut talk.model(&one, Arc::clone(&store))).await.unwrap();
    talk.ask(&mut talk.model(&other, Arc::clone(&store))).await.unwrap();
    assert_eq!(body(&other, 0)["temperature"], 0.2);

    let endpoint = Endpoint::new("acme", one.base_url());
    let info = ModelInfo::new("acme/small".parse().unwrap(), 100_000, 32_000);
    let mut small =
        ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap().learning_in(store.clone());
    talk.ask(&mut small).await.unwrap();
    assert_eq!(one.requests()[2].body["temperature"], 0.2, "asked once as wanted, before it learned for itself");
    assert_eq!(small.take_learned().len(), 1);

    let at = |model: &str| ModelAt { endpoint: format!("{}/chat/completions", one.base_url()), model: model.into() };
    assert_eq!((store.recall(&at("large")).len(), store.recall(&at("small")).len()), (1, 1));
}

#[tokio::test]
async fn an_accident_between_refusal_and_answer_costs_no_lesson() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.json");
    let refusal = json!({"error": {"message": "Unrecognized request argument supplied: stream_options"}});
    let script = Script::new().turns([
        Turn::error(400, refusal),
        Turn::error(503, json!({"error": {"message": "overloaded"}})),
        Turn::error(429, json!({"error": {"message": "slow down"}})),
        Turn::text("fine"),
    ]);
    let provider = Provider::start(script).await.unwrap();
    let talk = Talk::new(ThinkingDialect::Effort, None);
    let mut model = talk.model(&provider, file(&path));
    assert_eq!(talk.ask(&mut model).await.unwrap_err().class, ErrorClass::Overloaded);
    assert_eq!(file(&path).all(), [], "nothing is kept before it has helped");
    talk.send(&mut model).await.unwrap_err();
    assert_eq!(talk.send(&mut model).await.unwrap().text, "fine");
    for n in 1..provider.requests().len() {
        assert_eq!(body(&provider, n)["stream_options"], Value::Null);
    }
    assert_eq!(file(&path).all().len(), 1);
}

#[tokio::test]
async fn a_refusal_inside_a_stream_is_learned_before_anything_was_shown_and_never_after() {
    let event = |message: &str| {
        let error = json!({"error": {"message": message, "code": 400}});
        format!("data: {error}\n\n")
    };
    let refusal = "Unrecognized request argument supplied: stream_options";
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"so far\"}}]}\n\n";
    let script = Script::new().turns([
        Turn::raw_sse(event(refusal)),
        Turn::raw_sse(event("Unrecognized request argument supplied: temperature")),
        Turn::raw_sse(event("Unrecognized request argument supplied: presence_penalty")),
        Turn::raw_sse(format!("{begun}{}", event("Unrecognized request argument supplied: max_tokens"))),
    ]);
    let provider = Provider::start(script).await.unwrap();
    let talk = Talk::new(ThinkingDialect::Effort, None);
    let mut model = talk.model(&provider, Arc::new(hames_model::MemoryLearned::default()));
    let failure = |completion: Completion| {
        let failure = completion.failure.unwrap();
        (failure.retryable, failure.retry_after_ms)
    };
    assert_eq!(failure(talk.ask(&mut model).await.unwrap()), (true, Some(0)));
    assert_eq!(failure(talk.send(&mut model).await.unwrap()), (true, Some(0)));
    assert_eq!(failure(talk.send(&mut model).await.unwrap()), (false, None), "two were learned; the third is final");
    assert_eq!(model.take_learned().len(), 2);
    assert_eq!(body(&provider, 2)["stream_options"], Value::Null);
    assert_eq!(body(&provider, 2)["temperature"], Value::Null);

    let answer = talk.ask(&mut model).await.unwrap();
    assert_eq!(answer.text, "so far");
    assert_eq!(model.take_learned(), [], "nothing is learned from an answer that has begun");
}

#[tokio::test]
async fn what_is_sent_again_keeps_the_beginning_of_the_conversation() {
    let rule = Rule::new(|b| b["max_tokens"].is_u64(), "Unrecognized request argument supplied: max_tokens");
    let provider = provider(vec![rule]).await;
    let talk = Talk::new(ThinkingDialect::Effort, None).with_answer(true);
    talk.ask(&mut talk.model(&provider, Arc::new(hames_model::MemoryLearned::default()))).await.unwrap();
    assert!(provider.requests()[1].prefix.unwrap().is_kept());
    assert_eq!(provider.connections(), 1);
}

#[tokio::test]
async fn a_lesson_that_has_become_old_is_learned_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.json");
    let time = Arc::new(AtomicU64::new(1_800_000_000));
    let open = || {
        let time = Arc::clone(&time);
        Arc::new(LearnedFile::open(&path, Arc::new(move || time.load(Ordering::SeqCst))).0)
    };
    let provider =
        provider(vec![Rule::new(|b| b["temperature"].is_number(), "`temperature` is deprecated for this model.")])
            .await;
    let talk = Talk::new(ThinkingDialect::Effort, None);
    talk.ask(&mut talk.model(&provider, open())).await.unwrap();
    time.fetch_add(31 * 86_400, Ordering::SeqCst);
    talk.ask(&mut talk.model(&provider, open())).await.unwrap();
    talk.ask(&mut talk.model(&provider, open())).await.unwrap();
    let asked: Vec<bool> = provider.requests().iter().map(|request| request.body["temperature"].is_number()).collect();
    assert_eq!(asked, [true, false, true, false, false]);
}

#[tokio::test]
async fn a_smaller_window_is_kept_for_the_next_program_and_never_raised() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.json");
    let open = || {
        let (file, notice) = LearnedFile::open(&path, Arc::new(|| 1_800_000_000));
        assert_eq!(notice, None);
        Arc::new(file)
    };
    let provider = provider(vec![]).await;
    let talk = Talk::new(ThinkingDialect::Effort, None);
    let window = |model: &ChatModel| model.info().context_window;

    let mut model = talk.model(&provider, open());
    assert_eq!(window(&model), 100_000);
    model.limit_window(8_192, Some("at most 8192 tokens")).await;
    model.limit_window(32_768, None).await;
    assert_eq!(window(&model), 8_192);
    talk.ask(&mut model).await.unwrap();

    let mut next = talk.model(&provider, open());
    assert_eq!(window(&next), 8_192);
    next.limit_window(4_096, None).await;
    let at = ModelAt::of(&provider.base_url(), "large").unwrap();
    assert_eq!(open().recall(&at), [Lesson::window_limit(4_096)]);
    // Only of this model, and nothing of it goes on the wire.
    assert_eq!(open().recall(&ModelAt::of(&provider.base_url(), "small").unwrap()), []);
    assert!(!provider.requests()[0].body.to_string().contains("context_window"));
}
