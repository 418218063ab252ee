//! The configuration file: JSON with comments and trailing commas.
//!
//! A key nobody knows is a warning, because it may belong to a newer version; a value of the wrong kind is an error.
//! Both name the file, the line, the key and what is expected; `read` does that.

use std::path::{Path, PathBuf};

use hames_model::catalog::Facts;
use hames_protocol::{CompactionSettings, GuardSettings, ModelRef, Price, Sampling, ThinkingLevel};
use hames_store::VacuumThresholds;
use jsonc_parser::ast::Value;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::policy::{Approve, FileRule};
use super::read::Reader;
use super::server::FileServer;
use super::web::FileWeb;
use crate::exit::Stop;

/// A configuration file larger than this is no configuration file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// What the file may be written in: JSON, comments, trailing commas. One dialect for reading and for editing.
pub(crate) const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_extended_string_escapes: false,
    allow_non_finite_numbers: false,
};

/// What is said of a text that is not in the dialect.
pub(crate) fn not_json(path: &Path, error: &jsonc_parser::errors::ParseError) -> Stop {
    Stop::configuration(format!(
        "{}:{}: this is not JSON: {}; see column {}",
        path.display(),
        error.line_display(),
        error.kind().to_string().trim_end_matches('.'),
        error.column_display()
    ))
}

/// A value and the line it stood in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) line: usize,
}

/// What a file says. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileConfig {
    /// Where it is, or would be.
    pub(crate) path: PathBuf,
    /// Whether it exists.
    pub(crate) exists: bool,
    pub(crate) model: Option<At<ModelRef>>,
    pub(crate) providers: Vec<(String, FileProvider)>,
    pub(crate) catalog: FileCatalog,
    /// What becomes of questions.
    pub(crate) approve: Option<At<Approve>>,
    /// Rules about calls, in the file's order.
    pub(crate) rules: Vec<At<FileRule>>,
    /// What fetching pages may do beyond the public internet.
    pub(crate) web: FileWeb,
    pub(crate) guard: Option<At<GuardSettings>>,
    /// From when on making the database smaller is suggested.
    pub(crate) vacuum: VacuumThresholds,
    /// How long the server stays.
    pub(crate) server: FileServer,
    /// How windows are kept, where a session says nothing.
    pub(crate) compaction: CompactionSettings,
    /// Whether a session's own model is asked for a better name than its first message gives.
    pub(crate) titles: bool,
    /// Keys of the face and what they mean, in the file's order.
    pub(crate) keys: Vec<(String, String)>,
    /// Keys nobody knows, one sentence each.
    pub(crate) warnings: Vec<String>,
}

/// One provider as the file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileProvider {
    pub(crate) line: usize,
    pub(crate) base_url: Option<At<String>>,
    pub(crate) api_key: Option<At<String>>,
    pub(crate) api_key_env: Option<At<String>>,
    pub(crate) thinking: Option<At<Thinking>>,
    pub(crate) thinking_level: Option<At<ThinkingLevel>>,
    pub(crate) sampling: Sampling,
    pub(crate) headers: Vec<(String, At<String>)>,
    pub(crate) session_header: Option<At<String>>,
    pub(crate) models: Vec<FileModel>,
    /// The provider in the catalog whose models these are.
    pub(crate) catalog: Option<At<String>>,
    pub(crate) max_tokens: Option<At<u64>>,
    pub(crate) replay_reasoning: Option<At<bool>>,
    pub(crate) thinking_tags: Option<At<bool>>,
    pub(crate) text_tool_calls: Option<At<bool>>,
    pub(crate) timeouts: Timeouts,
}

/// Where facts about models may come from, beyond what providers say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileCatalog {
    /// Whether models.dev is asked, and where.
    pub(crate) models_dev: ModelsDev,
    /// Whether model servers on this machine are looked for where no model is configured, and where.
    pub(crate) local_servers: LocalServers,
}

/// Where model servers on this machine are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LocalServers {
    /// At the ports where they usually are.
    #[default]
    Usual,
    /// Nowhere.
    Off,
    /// At these ports.
    At(Vec<u16>),
}

/// Whether and where the public catalog of models is fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ModelsDev {
    /// From its own address.
    #[default]
    On,
    /// Never.
    Off,
    /// From a mirror.
    At(String),
}

/// How a provider is told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    Bool,
    Effort,
    Reasoning,
    Type,
}

impl Thinking {
    pub(crate) const NAMES: [(&str, Thinking); 4] = [
        ("bool", Thinking::Bool),
        ("effort", Thinking::Effort),
        ("reasoning", Thinking::Reasoning),
        ("type", Thinking::Type),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, thinking)| *thinking == self).map_or("", |(name, _)| name)
    }
}

/// A model as the file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileModel {
    pub(crate) id: String,
    pub(crate) context_window: Option<u64>,
    pub(crate) max_output: Option<u64>,
    /// Whether it takes images.
    pub(crate) images: Option<bool>,
    /// Wins over the provider's.
    pub(crate) sampling: Sampling,
    /// What it charges.
    pub(crate) price: Option<Price>,
}

impl FileModel {
    /// What it says of the model.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            context_window: self.context_window,
            max_output: self.max_output,
            images: self.images,
            price: self.price.clone(),
            ..Facts::default()
        }
    }
}

/// Limits of waiting, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Timeouts {
    pub(crate) connect_s: Option<u64>,
    pub(crate) first_byte_s: Option<u64>,
    pub(crate) idle_s: Option<u64>,
}

impl FileConfig {
    /// Reads the file; one that does not exist says nothing.
    pub(crate) fn load(path: &Path) -> Result<FileConfig, Stop> {
        let refuse = |what: String| Stop::configuration(format!("{}: {what}", path.display()));
        match std::fs::metadata(path) {
            Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return Ok(FileConfig { path: path.into(), ..FileConfig::default() });
            }
            Err(e) => return Err(refuse(format!("cannot be read: {e}"))),
            Ok(meta) if !meta.is_file() => return Err(refuse("is not a file; remove it or make it one".into())),
            Ok(meta) if meta.len() > MAX_FILE_BYTES => {
                return Err(refuse("is larger than 1 MB; this is no configuration file".into()));
            }
            Ok(_) => {}
        }
        let bytes = std::fs::read(path).map_err(|e| refuse(format!("cannot be read: {e}")))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            refuse(format!("byte {} is not UTF-8; save the file as UTF-8", e.utf8_error().valid_up_to()))
        })?;
        Self::parse(path, &text)
    }

    /// Reads the file's text.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<FileConfig, Stop> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader { path, text, warnings: Vec::new() };
        let mut config = FileConfig { path: path.into(), exists: true, ..FileConfig::default() };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &DIALECT).map_err(|e| not_json(path, &e))?;
        match &parsed.value {
            None => {}
            Some(Value::Object(object)) => reader.root(object, &mut config)?,
            Some(other) => return Err(reader.wrong(other, "the file", "an object: { \"model\": … }")),
        }
        config.warnings = reader.warnings;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use hames_protocol::{Penalty, Rates, Sampler};

    use super::*;
    use crate::config::keys;

    fn parse(text: &str) -> Result<FileConfig, String> {
        FileConfig::parse(Path::new("/h/config.jsonc"), text).map_err(|stop| match stop {
            Stop::Failed(failure) => failure.message,
            Stop::OutputClosed => unreachable!("parsing prints nothing"),
        })
    }

    #[test]
    fn a_whole_file_is_read_with_comments_and_trailing_commas() {
        let config = parse(
            r#"// mine
{
  "model": "local/qwen/qwen3", /* two slashes */
  "providers": {
    "local": {
      "base_url": "http://127.0.0.1:8080",
      "api_key_env": "LOCAL_KEY",
      "api": "chat",
      "thinking": "effort",
      "thinking_level": "high",
      "temperature": 0.7,
      "presence_penalty": "auto",
      "headers": { "X-Team": "blue", },
      "session_header": "X-Session",
      "models": [ { "id": "qwen/qwen3", "context_window": 32768, "max_output": 4096, "images": false, "top_p": 1,
                    "price": { "input": 0.5, "output": 2, "cache_read": 0.05 } }, ],
      "max_tokens": 2000,
      "replay_reasoning": false,
      "thinking_tags": false,
      "text_tool_calls": true,
      "timeouts": { "connect_s": 5, "first_byte_s": 300, "idle_s": 60 },
    },
  },
}"#,
        )
        .unwrap();
        assert_eq!(config.warnings, Vec::<String>::new());
        let model = config.model.unwrap();
        assert_eq!((model.value.provider.as_str(), model.value.id.as_str(), model.line), ("local", "qwen/qwen3", 3));
        let (name, provider) = &config.providers[0];
        assert_eq!(name, "local");
        assert_eq!(provider.base_url.as_ref().unwrap().line, 6);
        assert_eq!(provider.api_key_env.as_ref().unwrap().value, "LOCAL_KEY");
        assert_eq!(provider.thinking.as_ref().unwrap().value, Thinking::Effort);
        assert_eq!(provider.thinking_level.as_ref().unwrap().value, ThinkingLevel::High);
        assert_eq!(provider.sampling.sampler, Some(Sampler::Temperature("0.7".parse().unwrap())));
        assert_eq!(provider.sampling.presence_penalty, Some(Penalty::AUTO));
        assert_eq!(provider.models[0].sampling.sampler, Some(Sampler::TopP("1".parse().unwrap())));
        assert_eq!(provider.headers[0].0, "X-Team");
        assert_eq!(provider.max_tokens.as_ref().unwrap().value, 2000);
        assert!(!provider.replay_reasoning.as_ref().unwrap().value);
        assert!(!provider.thinking_tags.as_ref().unwrap().value);
        assert!(provider.text_tool_calls.as_ref().unwrap().value);
        assert_eq!((provider.models[0].context_window, provider.models[0].images), (Some(32768), Some(false)));
        let rates = Rates { input: 500_000, output: 2_000_000, cache_read: Some(50_000), cache_write: None };
        assert_eq!(provider.models[0].price, Some(Price { rates, tiers: vec![] }));
        assert_eq!(provider.timeouts, Timeouts { connect_s: Some(5), first_byte_s: Some(300), idle_s: Some(60) });
    }

    #[test]
    fn the_old_switch_for_thinking_is_a_dialect_and_a_level_and_the_new_keys_win() {
        let read = |members: &str| {
            let config = parse(&format!("{{\"providers\": {{\"x\": {{{members}}}}}}}")).unwrap();
            assert_eq!(config.warnings, Vec::<String>::new());
            let provider = config.providers[0].1.clone();
            (provider.thinking.map(|at| at.value), provider.thinking_level.map(|at| at.value))
        };
        for (members, expected) in [
            ("\"enableThinking\": true", (Thinking::Bool, ThinkingLevel::Medium)),
            ("\"enableThinking\": false", (Thinking::Bool, ThinkingLevel::Off)),
            ("\"enableThinking\": true, \"thinking_level\": \"high\"", (Thinking::Bool, ThinkingLevel::High)),
            ("\"thinking\": \"type\", \"enableThinking\": false", (Thinking::Type, ThinkingLevel::Off)),
        ] {
            assert_eq!(read(members), (Some(expected.0), Some(expected.1)), "{members}");
        }
    }

    #[test]
    fn the_catalog_says_where_facts_and_servers_come_from() {
        let read = |text: &str| parse(&format!("{{\"catalog\": {text}}}")).unwrap().catalog;
        let of = |models_dev, local_servers| FileCatalog { models_dev, local_servers };
        for (text, expected) in [
            ("{}", of(ModelsDev::On, LocalServers::Usual)),
            ("{\"models_dev\": true, \"local_servers\": true}", of(ModelsDev::On, LocalServers::Usual)),
            ("{\"models_dev\": false, \"local_servers\": false}", of(ModelsDev::Off, LocalServers::Off)),
            (
                "{\"models_dev\": \"http://m/api.json\", \"local_servers\": [1, 65535]}",
                of(ModelsDev::At("http://m/api.json".into()), LocalServers::At(vec![1, 65_535])),
            ),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_file_that_says_nothing_is_fine() {
        for text in ["", "  \n", "// nothing yet\n", "{}", "\u{feff}{}", "/* a */ {} // b"] {
            let config = parse(text).unwrap();
            assert_eq!((config.model, config.providers.len(), config.warnings.len()), (None, 0, 0), "{text:?}");
        }
    }

    #[test]
    fn an_unknown_key_is_a_warning_that_names_key_and_line() {
        for (text, key, line) in [
            ("{\"modle\": \"a/b\"}", "modle", 1),
            ("{\n\"providers\": {\"x\": {\n\"baseurl\": \"http://a\"}}}", "providers.x.baseurl", 3),
            ("{\"providers\": {\"x\": {\"timeouts\": {\n\"connect\": 5}}}}", "providers.x.timeouts.connect", 2),
            ("{\"providers\": {\"x\": {\"models\": [{\"id\": \"a\", \"ctx\": 5}]}}}", "providers.x.models[0].ctx", 1),
            ("{\"mcp\": {\"command\": \"sh\"}}", "mcp", 1),
            ("{\r\n\r\n\"a\": null}", "a", 3),
            ("{\"\": 1}", "", 1),
            ("{\"käse\": []}", "käse", 1),
        ] {
            let config = parse(text).unwrap();
            assert_eq!(config.warnings.len(), 1, "{text}");
            assert!(config.warnings[0].starts_with(&format!("/h/config.jsonc:{line}: {key} is not known")), "{text}");
        }
        for (text, meant) in [
            ("{\"modle\": \"a/b\"}", "did you mean model?"),
            ("{\"providers\": {\"x\": {\"baseURL\": 1}}}", "did you mean base_url?"),
            ("{\"providers\": {\"x\": {\"timeouts\": {\"idle\": 5}}}}", "did you mean idle_s?"),
            (
                "{\"providers\": {\"x\": {\"models\": [{\"id\": \"a\", \"contextWindow\": 5}]}}}",
                "did you mean context_window?",
            ),
            ("{\"catalog\": {\"models.dev\": false}}", "did you mean models_dev?"),
        ] {
            assert!(parse(text).unwrap().warnings[0].contains(meant), "{text}");
        }
    }

    #[test]
    fn every_key_of_the_tables_is_read() {
        for (place, table) in keys::TABLES {
            for key in table.iter().filter(|key| !key.starts_with('$')) {
                // No key takes a list of null, so whichever is read says so.
                let mut text = format!("{{\"{key}\": [null]}}");
                for (step, before) in place.rsplit('/').zip(place.rsplit('/').skip(1)) {
                    text = match (step, before) {
                        ("*", "models" | "rules") => format!("[{text}]"),
                        ("*", _) => format!("{{\"x\": {text}}}"),
                        (name, _) => format!("{{\"{name}\": {text}}}"),
                    };
                }
                // What is wrong in the guard's section is said and passed over.
                let message = parse(&text).map_or_else(|error| error, |config| config.warnings.join("\n"));
                assert!(message.contains(key), "{message}");
            }
        }
    }

    #[test]
    fn a_wrong_value_names_file_line_key_and_what_is_expected() {
        for (text, expected) in [
            ("[]", "/h/config.jsonc:1: the file should be an object"),
            ("{\"model\": 3}", ":1: model should be \"provider/model\"; it is 3"),
            ("{\"model\": \"gpt\"}", ":1: model should be \"provider/model\"; it is \"gpt\""),
            ("{\n\"providers\": []}", ":2: providers should be an object; it is an array"),
            ("{\"providers\": {\"x\": 1}}", "providers.x should be an object; it is 1"),
            ("{\"providers\": {\"x/y\": {}}}", ":1: \"x/y\" cannot be the name of a provider"),
            ("{\"providers\": {\"x\": {\"base_url\": \"localhost:1\"}}}", "providers.x.base_url should be a URL"),
            ("{\"providers\": {\"x\": {\"base_url\": null}}}", "providers.x.base_url should be a string"),
            ("{\"providers\": {\"x\": {\"api\": \"responses\"}}}", "providers.x.api should be \"chat\""),
            (
                "{\"providers\": {\"x\": {\"api_key\": \"\"}}}",
                "providers.x.api_key should be a string that is not empty",
            ),
            (
                "{\"providers\": {\"x\": {\"thinking\": \"deep\"}}}",
                "providers.x.thinking should be one of bool, effort",
            ),
            (
                "{\"providers\": {\"x\": {\"thinking_level\": 2}}}",
                "providers.x.thinking_level should be one of off, low",
            ),
            (
                "{\"providers\": {\"x\": {\"temperature\": 2.1}}}",
                "providers.x.temperature should be a number from 0 to 2, or \"auto\"; it is 2.1",
            ),
            (
                "{\"providers\": {\"x\": {\"top_p\": \"high\"}}}",
                "providers.x.top_p should be a number from 0 to 1, or \"auto\"; it is \"high\"",
            ),
            ("{\"providers\": {\"x\": {\"presence_penalty\": -1}}}", "presence_penalty should be a number from 0 to 2"),
            ("{\"providers\": {\"x\": {\"frequency_penalty\": null}}}", "frequency_penalty should be a number"),
            (
                "{\"providers\": {\"x\": {\"temperature\": 1,\n\"top_p\": 1}}}",
                ":2: providers.x has both temperature and top_p; keep one of them",
            ),
            (
                "{\"providers\": {\"x\": {\"models\": [{\"id\": \"a\", \"top_p\": 1, \"temperature\": 1}]}}}",
                "providers.x.models[0] has both temperature and top_p",
            ),
            (
                "{\"providers\": {\"x\": {\"enableThinking\": \"yes\"}}}",
                "providers.x.enableThinking should be true or false",
            ),
            ("{\"providers\": {\"x\": {\"headers\": {\"a b\": \"c\"}}}}", "providers.x.headers.a b should be a name"),
            ("{\"providers\": {\"x\": {\"headers\": {\"a\": \"b\\nc\"}}}}", "providers.x.headers.a should be one line"),
            ("{\"providers\": {\"x\": {\"models\": [\"a\"]}}}", "providers.x.models[0] should be an object"),
            (
                "{\"providers\": {\"x\": {\"models\": [{}]}}}",
                "providers.x.models[0] should be an object with an \"id\"",
            ),
            (
                "{\"providers\": {\"x\": {\"max_tokens\": -1}}}",
                "providers.x.max_tokens should be a whole number above 0",
            ),
            (
                "{\"providers\": {\"x\": {\"max_tokens\": 1.5}}}",
                "providers.x.max_tokens should be a whole number above 0",
            ),
            (
                "{\"providers\": {\"x\": {\"replay_reasoning\": 1}}}",
                "providers.x.replay_reasoning should be true or false",
            ),
            (
                "{\"providers\": {\"x\": {\"thinking_tags\": \"no\"}}}",
                "providers.x.thinking_tags should be true or false",
            ),
            (
                "{\"providers\": {\"x\": {\"text_tool_calls\": 0}}}",
                "providers.x.text_tool_calls should be true or false",
            ),
            (
                "{\"providers\": {\"x\": {\"timeouts\": {\"idle_s\": 99999}}}}",
                "timeouts.idle_s should be seconds, 86400",
            ),
            (
                "{\"providers\": {\"x\": {\"models\": [{\"id\": \"a\", \"price\": {\"input\": 1}}]}}}",
                "models[0].price should be an object with \"input\" and \"output\"",
            ),
            (
                "{\"providers\": {\"x\": {\"models\": [{\"id\": \"a\", \"price\": {\"input\": -1}}]}}}",
                "models[0].price.input should be dollars for a million tokens; it is -1",
            ),
            ("{\"catalog\": false}", "catalog should be an object; it is false"),
            ("{\"catalog\": {\"local_servers\": 8080}}", "catalog.local_servers should be true, false or a list"),
            ("{\"catalog\": {\"local_servers\": [0]}}", "catalog.local_servers should be true, false or a list"),
            ("{\"catalog\": {\"local_servers\": [65536]}}", "catalog.local_servers should be true, false or a list"),
            ("{\"catalog\": {\"models_dev\": \"no\"}}", "catalog.models_dev should be true, false or the URL"),
            ("{\"providers\": {\"x\": {\"catalog\": 1}}}", "providers.x.catalog should be a string"),
            ("{\"providers\": {\"x\": {\"api_key\": \"a\",\n\"api_key_env\": \"B\"}}}", ":2: providers.x has both"),
            ("{\"model\": \"a/b\"", ":1: this is not JSON"),
            ("{\n\n\"model\" \"a/b\"}", ":3: this is not JSON"),
        ] {
            let message = parse(text).expect_err(text);
            assert!(message.contains(expected), "{text}\n  gave {message}\n  not  {expected}");
        }
    }

    #[test]
    fn deep_nesting_and_odd_text_are_errors_and_not_crashes() {
        for text in ["[".repeat(100_000), "{\"a\":".repeat(50_000), "\"\\ud800\"".into(), "{\"model\":\u{0}}".into()] {
            assert!(parse(&text).is_err(), "{}", &text[..8]);
        }
    }
}
