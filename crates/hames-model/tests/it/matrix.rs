//! Every dialect, level and sampler, each with the whole body that goes out, as files beside the tests.
//!
//! `HAMES_BLESS=1` writes the files anew; what changed is then read in the diff.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use hames_model::{ChatModel, Endpoint, ThinkingDialect};
use hames_protocol::{
    Head, Item, MemoryBlobs, ModelClient, ModelInfo, RequestOptions, Sampler, Sampling, ThinkingLevel, ToolSpec,
};
use serde_json::{Value, json};

use crate::server::{Server, says, user};

const DIALECTS: [(&str, Option<ThinkingDialect>); 5] = [
    ("absent", None),
    ("bool", Some(ThinkingDialect::Bool)),
    ("effort", Some(ThinkingDialect::Effort)),
    ("reasoning", Some(ThinkingDialect::Reasoning)),
    ("type", Some(ThinkingDialect::Type)),
];

const LEVELS: [Option<ThinkingLevel>; 5] =
    [None, Some(ThinkingLevel::Off), Some(ThinkingLevel::Low), Some(ThinkingLevel::Medium), Some(ThinkingLevel::High)];

fn samplings() -> Vec<(&'static str, Sampling)> {
    let temperature = |text: &str| Some(Sampler::Temperature(text.parse().unwrap()));
    let top_p = |text: &str| Some(Sampler::TopP(text.parse().unwrap()));
    let penalties = |presence: &str, frequency: &str| Sampling {
        presence_penalty: Some(presence.parse().unwrap()),
        frequency_penalty: Some(frequency.parse().unwrap()),
        sampler: None,
    };
    let sampler = |sampler| Sampling { sampler, ..Sampling::default() };
    vec![
        ("nothing set", Sampling::default()),
        ("temperature auto, penalties auto", Sampling { sampler: temperature("auto"), ..penalties("auto", "auto") }),
        ("temperature 0", sampler(temperature("0"))),
        ("temperature 0.7", sampler(temperature("0.7"))),
        ("top_p auto", sampler(top_p("auto"))),
        ("top_p 0.9", sampler(top_p("0.9"))),
        ("penalties 0.5 and 2", penalties("0.5", "2")),
        ("top_p 1, presence 1, frequency auto", Sampling { sampler: top_p("1"), ..penalties("1", "auto") }),
    ]
}

async fn sent(dialect: Option<ThinkingDialect>, level: Option<ThinkingLevel>, sampling: Sampling) -> String {
    let server = Server::start(vec![says("ok")]).await;
    let mut endpoint = Endpoint::new("acme", &server.base_url);
    endpoint.thinking = dialect;
    let info = ModelInfo::new("acme/large".parse().unwrap(), 100_000, 1_000);
    let mut model = ChatModel::new(endpoint, info, Arc::new(MemoryBlobs::default())).unwrap();
    let tool = ToolSpec { name: "Read".into(), description: "Reads.".into(), parameters: json!({"type": "object"}) };
    let head = Arc::new(Head { tools: vec![tool], system: "Be brief.".into() });
    let items: [Arc<Item>; 1] = [user("hi")];
    let options = RequestOptions { max_output_tokens: Some(1_000), thinking: level, sampling, session: None };
    model.prepare(&head, &items, &options).await.unwrap();
    model.send().await.unwrap();
    server.requests()[0].body.clone()
}

/// What the documented tables say of a dialect and a level, in few words.
fn documented(dialect: &str, level: Option<ThinkingLevel>) -> Value {
    let Some(level) = level else { return json!({}) };
    let on = level != ThinkingLevel::Off;
    let name = level.as_str();
    match (dialect, on) {
        ("bool", true) => json!({"chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": name}),
        ("bool", false) => json!({"chat_template_kwargs": {"enable_thinking": false}}),
        ("effort", true) => json!({"reasoning_effort": name}),
        ("reasoning", true) => json!({"reasoning": {"effort": name}}),
        ("reasoning", false) => json!({"reasoning": {"enabled": false}}),
        ("type", true) => json!({"thinking": {"type": "enabled"}}),
        ("type", false) => json!({"thinking": {"type": "disabled"}}),
        _ => json!({}),
    }
}

#[tokio::test]
async fn every_dialect_level_and_sampler_gives_the_documented_body() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bodies");
    for (name, dialect) in DIALECTS {
        let mut found = String::new();
        for level in LEVELS {
            for (sampling_name, sampling) in samplings() {
                let body = sent(dialect, level, sampling).await;
                let level_name = level.map_or("unset", ThinkingLevel::as_str);
                writeln!(found, "# thinking {level_name}, {sampling_name}\n{body}\n").unwrap();

                let mut members = serde_json::from_str::<Value>(&body).unwrap();
                let members = members.as_object_mut().unwrap();
                let mut thinking = members.clone();
                thinking.retain(|name, _| {
                    ["chat_template_kwargs", "reasoning_effort", "reasoning", "thinking"].contains(&name.as_str())
                });
                assert_eq!(Value::Object(thinking), documented(name, level), "{name} {level:?}");
                assert!(!(members.contains_key("temperature") && members.contains_key("top_p")), "{body}");
            }
        }
        let file = folder.join(format!("{name}.txt"));
        if std::env::var_os("HAMES_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(expected == found, "{} differs; HAMES_BLESS=1 writes it anew\n{found}", file.display());
    }
}

#[tokio::test]
async fn what_is_asked_besides_never_stands_before_the_conversation() {
    let bare = sent(None, None, Sampling::default()).await;
    let end = bare.find("],\"stream\"").unwrap();
    for (_, dialect) in DIALECTS {
        for level in LEVELS {
            for (name, sampling) in samplings() {
                let body = sent(dialect, level, sampling).await;
                assert!(body.starts_with(&bare[..end]), "{name}: {body}");
            }
        }
    }
}
