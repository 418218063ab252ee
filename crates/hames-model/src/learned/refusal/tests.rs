use hames_protocol::{RequestOptions, Sampler, Sampling, ThinkingLevel};
use reqwest::header::HeaderMap;

use super::*;
use crate::error::Place;
use crate::{Endpoint, ThinkingDialect};

/// What a request with everything set carries, under lessons.
fn sent(dialect: Option<ThinkingDialect>, level: ThinkingLevel, lessons: &[Lesson]) -> Sent {
    let options = RequestOptions {
        max_output_tokens: Some(32_000),
        thinking: Some(level),
        sampling: Sampling {
            sampler: Some(Sampler::Temperature("0.2".parse().unwrap())),
            presence_penalty: Some("0.5".parse().unwrap()),
            frequency_penalty: Some("1".parse().unwrap()),
        },
        session: None,
    };
    Sent {
        parameters: Parameters::wanted(&options, dialect, "max_tokens").taught(lessons, true),
        has_tools: true,
        system_role: Some("system".into()),
        has_answers: true,
        has_reasoning: true,
    }
}

fn refused(status: u16, body: &str) -> Failure {
    Place::new(&Endpoint::new("p", "http://h"), "h", "m").refused(status, &HeaderMap::new(), body.as_bytes())
}

/// An error object around words.
fn says(words: &str) -> Failure {
    refused(400, &json!({"error": {"message": words, "type": "invalid_request_error"}}).to_string())
}

fn pointing(words: &str, param: &str, code: &str) -> Failure {
    let error = json!({"message": words, "type": "invalid_request_error", "param": param, "code": code});
    refused(400, &json!({ "error": error }).to_string())
}

use ThinkingDialect::{Bool, Effort, Reasoning, Type};
use ThinkingLevel::{High, Low, Medium, Off};

/// The lesson as a sentence, or nothing.
fn learned(failure: &Failure, dialect: ThinkingDialect, level: ThinkingLevel, lessons: &[Lesson]) -> Option<String> {
    lesson(failure, &sent(Some(dialect), level, lessons), lessons).map(|lesson| lesson.to_string())
}

#[test]
fn a_refusal_of_a_parameter_that_was_sent_says_what_to_do_about_it() {
    let cases: Vec<(Failure, ThinkingDialect, ThinkingLevel, &str)> = vec![
        // The output limit.
        (
            pointing(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                "max_tokens",
                "unsupported_parameter",
            ),
            Effort,
            Off,
            "max_tokens is sent as max_completion_tokens",
        ),
        (
            says("Unrecognized request argument supplied: max_tokens"),
            Effort,
            Off,
            "max_tokens is sent as max_completion_tokens",
        ),
        (
            refused(
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","max_tokens"],"msg":"Extra inputs are not permitted"}]}"#,
            ),
            Effort,
            Off,
            "max_tokens is sent as max_completion_tokens",
        ),
        (
            says(
                "max_tokens is too large: 32000. This model-32k supports at most 16384 completion tokens, whereas you provided 32000.",
            ),
            Effort,
            Off,
            "max_tokens is 16384 at most",
        ),
        (
            says("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for m-3-5-20241022"),
            Effort,
            Off,
            "max_tokens is 8192 at most",
        ),
        (
            says("The maximum tokens you requested exceeds the model limit of 4096. Try again with a lower value."),
            Effort,
            Off,
            "max_tokens is 4096 at most",
        ),
        (
            pointing("`max_tokens` must be less than or equal to `8192`, the maximum for this model", "max_tokens", ""),
            Effort,
            Off,
            "max_tokens is 8192 at most",
        ),
        (says("Range of max_tokens should be [1, 8192]"), Effort, Off, "max_tokens is 8192 at most"),
        (
            says("Invalid max_tokens value, the valid range of max_tokens is [1, 4096]"),
            Effort,
            Off,
            "max_tokens is 4096 at most",
        ),
        // Sampling.
        (
            pointing(
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                "temperature",
                "unsupported_value",
            ),
            Effort,
            Off,
            "temperature is left out",
        ),
        (
            pointing(
                "Unsupported parameter: 'temperature' is not supported with this model.",
                "temperature",
                "unsupported_parameter",
            ),
            Effort,
            Off,
            "temperature is left out",
        ),
        (says("invalid temperature: only 1 is allowed for this model"), Effort, Off, "temperature is left out"),
        (says("`temperature` may only be set to 1 when thinking is enabled."), Type, High, "temperature is left out"),
        (says("`temperature` is deprecated for this model."), Effort, Off, "temperature is left out"),
        (
            refused(
                400,
                r#"{"code":"invalid-argument","error":"Argument not supported on this model: presencePenalty"}"#,
            ),
            Effort,
            Off,
            "presence_penalty is left out",
        ),
        (
            says("Invalid JSON payload received. Unknown name \"frequency_penalty\": Cannot find field."),
            Effort,
            Off,
            "frequency_penalty is left out",
        ),
        (
            refused(422, r#"{"message":"property 'frequency_penalty' is unsupported"}"#),
            Effort,
            Off,
            "frequency_penalty is left out",
        ),
        // Usage in the stream.
        (
            says("Extra inputs are not permitted, field: 'stream_options', value: {'include_usage': True}"),
            Effort,
            Off,
            "stream_options is left out",
        ),
        (
            says("Validation error at #/stream_options: Extra inputs are not permitted"),
            Effort,
            Off,
            "stream_options is left out",
        ),
        (says("Unknown parameter: 'stream_options.include_usage'."), Effort, Off, "stream_options is left out"),
        (
            says(
                "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]",
            ),
            Effort,
            Off,
            "stream_options is left out",
        ),
        // Thinking that is not known.
        (
            says("Unrecognized request argument supplied: reasoning_effort"),
            Effort,
            High,
            "reasoning_effort is left out",
        ),
        (
            says("Completions.create() got an unexpected keyword argument 'reasoning_effort'"),
            Effort,
            High,
            "reasoning_effort is left out",
        ),
        (
            says("Additional properties are not allowed ('chat_template_kwargs' was unexpected)"),
            Bool,
            Off,
            "chat_template_kwargs is left out",
        ),
        (
            says("Unrecognized request argument supplied: enable_thinking"),
            Bool,
            High,
            "chat_template_kwargs is left out",
        ),
        (says("Unrecognized request argument supplied: thinking"), Type, Low, "thinking is left out"),
        (
            says("The model returned the following errors: reasoning: Extra inputs are not permitted"),
            Reasoning,
            Low,
            "reasoning is left out",
        ),
        (
            refused(400, r#"{"error":{"message":"\"small\" does not support thinking","type":"api_error"}}"#),
            Effort,
            Medium,
            "reasoning_effort is left out",
        ),
        // Thinking whose value is refused.
        (
            pointing(
                "Unsupported value: 'reasoning_effort' does not support 'medium' with this model. Supported values are: 'low', and 'high'.",
                "reasoning_effort",
                "unsupported_value",
            ),
            Effort,
            Medium,
            "reasoning_effort \"medium\" is sent as \"high\"",
        ),
        (
            says("This model does not support effort level 'low': reasoning_effort must be one of none, high, max"),
            Effort,
            Low,
            "reasoning_effort \"low\" is sent as \"high\"",
        ),
        (
            pointing(
                "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",
                "reasoning_effort",
                "unsupported_value",
            ),
            Effort,
            High,
            "reasoning_effort \"high\" is left out",
        ),
        (says("Unknown parameter: 'reasoning.enabled'."), Reasoning, Off, "reasoning {\"enabled\":false} is left out"),
        (
            says("Reasoning is mandatory for this endpoint and cannot be disabled."),
            Reasoning,
            Off,
            "reasoning {\"enabled\":false} is left out",
        ),
        (
            says("thinking.type.enabled is not supported for this model. Use thinking.type.adaptive instead."),
            Type,
            High,
            "thinking {\"type\":\"enabled\"} is sent as {\"type\":\"adaptive\"}",
        ),
        (says("thinking must be enabled for this model"), Type, Off, "thinking {\"type\":\"disabled\"} is left out"),
        // Tools only without reasoning.
        (
            pointing(
                "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Please use /v1/responses instead.",
                "reasoning_effort",
                "",
            ),
            Effort,
            High,
            "reasoning_effort is left out where tools are offered",
        ),
        (
            says("Function tools with reasoning_effort are not supported for m in /v1/chat/completions."),
            Effort,
            Off,
            "reasoning_effort is sent as \"none\" where tools are offered",
        ),
        (
            says(
                "Function tools with reasoning_effort are not supported for m. Use /v1/responses or set reasoning_effort to 'none'.",
            ),
            Effort,
            High,
            "reasoning_effort is sent as \"none\" where tools are offered",
        ),
        // The system text.
        (
            pointing(
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                "messages[0].role",
                "unsupported_value",
            ),
            Effort,
            Off,
            "the system text goes in the role user",
        ),
        (says("System role not supported"), Effort, Off, "the system text goes in the role user"),
        (
            refused(500, r#"{"error":{"code":500,"message":"System role not supported","type":"server_error"}}"#),
            Effort,
            Off,
            "the system text goes in the role user",
        ),
        (
            says("Developer instruction is not enabled for models/m"),
            Effort,
            Off,
            "the system text goes in the role user",
        ),
        (
            says("The role 'system' is not supported, use 'developer' instead"),
            Effort,
            Off,
            "the system text goes in the role developer",
        ),
        // Reasoning in answers.
        (
            says("The `reasoning_content` in the thinking mode must be passed back to the API."),
            Type,
            High,
            "reasoning_content goes back with every answer",
        ),
        (
            says("thinking is enabled but reasoning_content is missing in assistant tool call message at index 3"),
            Type,
            High,
            "reasoning_content goes back with every answer",
        ),
        (
            refused(
                400,
                r#"{"error":{"code":"400","message":"Param Incorrect","param":"The reasoning_content in the thinking mode must be passed back to the API."}}"#,
            ),
            Type,
            High,
            "reasoning_content goes back with every answer",
        ),
        (says("property 'messages.2.reasoning_content' is unsupported"), Effort, Off, "reasoning_content is left out"),
        (
            refused(
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_details"],"msg":"Extra inputs are not permitted"}]}"#,
            ),
            Effort,
            Off,
            "reasoning_content is left out",
        ),
    ];
    for (failure, dialect, level, expected) in cases {
        assert_eq!(learned(&failure, dialect, level, &[]).as_deref(), Some(expected), "{failure:?}");
    }
}

#[test]
fn a_refusal_of_anything_else_changes_nothing() {
    let cases: Vec<Failure> = vec![
        // What was not sent.
        pointing("Unsupported parameter: 'top_p' is not supported with this model.", "top_p", "unsupported_parameter"),
        pointing(
            "Unsupported parameter: 'max_completion_tokens' is not supported.",
            "max_completion_tokens",
            "unsupported_parameter",
        ),
        says("Thinking mode does not support this tool_choice"),
        says("Unrecognized request argument supplied: parallel_tool_calls"),
        says("'tool_choice' is not supported together with 'temperature'"),
        pointing(
            "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
            "reasoning_effort",
            "unsupported_parameter",
        ),
        says("Unrecognized request argument supplied: thinking"),
        says("Unknown parameter: 'stream'."),
        // A value that a person chose.
        pointing(
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 99.0 instead.",
            "temperature",
            "decimal_above_max_value",
        ),
        refused(
            400,
            r#"{"code":400,"message":"Validation: Temperature must be between 0 and 1, got 2","type":"Bad Request"}"#,
        ),
        pointing("max_tokens must be at least 1", "max_tokens", "invalid_value"),
        refused(
            400,
            r#"{"error":{"message":"Field 'temperature': [json.exception.type_error.302] type must be number, but is string","code":400}}"#,
        ),
        // Nothing that a parameter could mend.
        says("Bad request"),
        refused(400, ""),
        refused(400, "<html><title>temperature is not supported</title>"),
        says("messages: roles must alternate between user and assistant"),
        says("This model does not support tools"),
        refused(401, r#"{"error":{"message":"Unsupported parameter: 'temperature'","code":"invalid_api_key"}}"#),
        refused(429, r#"{"error":{"message":"Unsupported parameter: 'temperature'"}}"#),
        refused(503, r#"{"error":{"message":"Unsupported parameter: 'temperature'"}}"#),
        refused(500, r#"{"error":{"message":"Unsupported parameter: 'temperature'"}}"#),
        refused(
            404,
            r#"{"error":{"message":"The model does not exist: temperature is not supported","code":"model_not_found"}}"#,
        ),
        says(
            "This model's maximum context length is 8192 tokens; you requested 40000 (8000 in the messages, 32000 in max_tokens)",
        ),
    ];
    for failure in cases {
        assert_eq!(learned(&failure, Effort, Off, &[]), None, "{failure:?}");
    }
    let bare = Sent { parameters: Parameters::default(), ..Sent::default() };
    for words in
        ["System role not supported", "reasoning_content must be passed back", "Function tools with reasoning_effort"]
    {
        assert_eq!(lesson(&says(words), &bare, &[]), None, "{words}");
    }
}

#[test]
fn an_answer_that_contradicts_a_lesson_ends_it() {
    let rename = Lesson::new("max_tokens", Remedy::Rename("max_completion_tokens".into()));
    let cap = Lesson::new("max_tokens", Remedy::Cap(8192));
    let drop_limit = Lesson::new("max_tokens", Remedy::Drop);
    let none = Lesson { with_tools: true, ..Lesson::new("reasoning_effort", Remedy::Set(json!("none"))) };
    let dropped = Lesson { with_tools: true, ..Lesson::new("reasoning_effort", Remedy::Drop) };
    let developer = Lesson::new("system", Remedy::Rename("developer".into()));
    let insist = Lesson::new("reasoning_content", Remedy::Set(json!(true)));
    let effort = |words| pointing(words, "reasoning_effort", "unsupported_value");
    let cases: Vec<(Failure, &[Lesson], ThinkingLevel, Option<&str>)> = vec![
        (
            pointing(
                "Unknown parameter: 'max_completion_tokens'. Did you mean 'max_tokens'?",
                "max_completion_tokens",
                "unknown_parameter",
            ),
            std::slice::from_ref(&rename),
            Off,
            Some("max_tokens is sent as before"),
        ),
        (
            pointing(
                "Unsupported parameter: 'max_completion_tokens'",
                "max_completion_tokens",
                "unsupported_parameter",
            ),
            std::slice::from_ref(&rename),
            Off,
            Some("max_tokens is left out"),
        ),
        (
            says("max_completion_tokens is too large: 32000, at most 4096"),
            std::slice::from_ref(&rename),
            Off,
            Some("max_tokens is 4096 at most"),
        ),
        (
            says("max_tokens is too large: 8192, at most 4096"),
            std::slice::from_ref(&cap),
            Off,
            Some("max_tokens is 4096 at most"),
        ),
        (says("max_tokens is too large: 8192, at most 16384"), std::slice::from_ref(&cap), Off, None),
        (
            pointing("Field required", "max_tokens", "missing"),
            std::slice::from_ref(&drop_limit),
            Off,
            Some("max_tokens is sent as before"),
        ),
        (
            says("max_tokens: Field required"),
            std::slice::from_ref(&drop_limit),
            Off,
            Some("max_tokens is sent as before"),
        ),
        (says("top_p: Field required"), std::slice::from_ref(&drop_limit), Off, None),
        (
            effort(
                "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', 'high'.",
            ),
            std::slice::from_ref(&none),
            Off,
            Some("reasoning_effort is left out where tools are offered"),
        ),
        (
            says("Function tools with reasoning_effort are not supported"),
            std::slice::from_ref(&dropped),
            High,
            Some("reasoning_effort is sent as \"none\" where tools are offered"),
        ),
        (says("Function tools with reasoning_effort are not supported"), std::slice::from_ref(&none), High, None),
        (
            says("messages[0].role does not support 'developer' with this model"),
            std::slice::from_ref(&developer),
            Off,
            Some("the system text goes in the role user"),
        ),
        (
            says("property 'messages.2.reasoning_content' is unsupported"),
            std::slice::from_ref(&insist),
            Off,
            Some("reasoning_content is left out"),
        ),
    ];
    for (failure, lessons, level, expected) in cases {
        let mut sent = sent(Some(Effort), level, lessons);
        if lessons.contains(&developer) {
            sent.system_role = Some("developer".into());
        }
        let found = lesson(&failure, &sent, lessons).map(|lesson| lesson.to_string());
        assert_eq!(found.as_deref(), expected, "{failure:?}");
    }
}

#[test]
fn a_name_that_is_a_word_counts_only_where_it_is_marked() {
    for (words, name, found) in [
        ("unknown parameter: 'thinking'", "thinking", true),
        ("thinking: extra inputs", "thinking", true),
        ("supplied: thinking", "thinking", true),
        ("thinking.type is wrong", "thinking", true),
        ("thinking mode does not", "thinking", false),
        ("enable_thinking is", "thinking", false),
        ("max_tokens_total", "max_tokens", false),
        ("use max_tokens.", "max_tokens", true),
        ("xmax_tokens and max_tokens", "max_tokens", true),
        ("", "max_tokens", false),
    ] {
        assert_eq!(mention(words, name).is_some(), found, "{words}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: crate::proptest_cases(), ..Default::default() })]

    #[test]
    fn whatever_a_refusal_says_a_lesson_is_about_what_was_sent(
        words in ".{0,200}",
        param in "(max_tokens|temperature|thinking|messages\\[0\\]\\.role|reasoning_content|.{0,20})",
        status in 400u16..600,
    ) {
        let body = json!({"error": {"message": words, "param": param, "code": "unsupported_parameter"}}).to_string();
        let sent = sent(Some(Type), High, &[]);
        if let Some(lesson) = lesson(&refused(status, &body), &sent, &[]) {
            let names = ["system", "reasoning_content", "reasoning_effort"];
            proptest::prop_assert!(
                names.contains(&lesson.parameter.as_str()) || sent.parameters.named(&lesson.parameter).is_some(),
                "{lesson}"
            );
        }
    }
}

/// Real refusals, where somebody has them: a lesson comes only of those that name a parameter and refuse it.
#[test]
fn recorded_refusals_teach_only_what_they_say() {
    let Some(folder) = std::env::var_os("HAMES_TEST_DATA") else {
        println!("skipped: HAMES_TEST_DATA is not set");
        return;
    };
    let mut taught = 0;
    for name in ["errors.jsonl", "error-bodies.jsonl", "overflow.jsonl"] {
        let text = std::fs::read_to_string(std::path::Path::new(&folder).join(name)).unwrap();
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let Some(status) = row["status"].as_u64() else { continue };
            let failure = refused(u16::try_from(status).unwrap(), row["body"].as_str().unwrap_or(""));
            for (dialect, level) in [(Effort, High), (Type, High), (Reasoning, Off), (Bool, Off)] {
                let Some(lesson) = lesson(&failure, &sent(Some(dialect), level, &[]), &[]) else { continue };
                let words = failure.provider_message.clone().unwrap_or_default();
                let named = if lesson.parameter == "system" { "role" } else { &lesson.parameter };
                assert!(words.contains(named), "{lesson}: {words}");
                taught += 1;
            }
        }
    }
    assert!(taught > 0);
}
