//! The configuration file: JSON with comments and trailing commas.
//!
//! A key nobody knows is a warning, because it may belong to a newer version; a value of the wrong kind is an error.
//! Both name the file, the line, the key and what is expected, so the reader walks the syntax tree itself instead of
//! deserializing: the tree still knows where everything stood.

use std::path::{Path, PathBuf};

use hames_protocol::{ModelRef, ThinkingLevel};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::exit::Stop;

/// A configuration file larger than this is no configuration file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Seconds beyond this (a day) are a slip of the finger.
const MAX_TIMEOUT_S: u64 = 86_400;
/// Characters of a wrong value that are repeated.
const SHOWN_CHARS: usize = 40;

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
    pub(crate) headers: Vec<(String, At<String>)>,
    pub(crate) session_header: Option<At<String>>,
    pub(crate) models: Vec<FileModel>,
    pub(crate) max_tokens: Option<At<u64>>,
    pub(crate) replay_reasoning: Option<At<bool>>,
    pub(crate) timeouts: Timeouts,
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
    const NAMES: [(&str, Thinking); 4] = [
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
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileModel {
    pub(crate) id: String,
    pub(crate) context_window: Option<u64>,
    pub(crate) max_output: Option<u64>,
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
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            ..ParseOptions::default()
        };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|e| {
            Stop::configuration(format!(
                "{}:{}: this is not JSON: {}; see column {}",
                path.display(),
                e.line_display(),
                e.kind().to_string().trim_end_matches('.'),
                e.column_display()
            ))
        })?;
        match &parsed.value {
            None => {}
            Some(Value::Object(object)) => reader.root(object, &mut config)?,
            Some(other) => return Err(reader.wrong(other, "the file", "an object: { \"model\": … }")),
        }
        config.warnings = reader.warnings;
        Ok(config)
    }
}

/// Walks the syntax tree; knows how to say where something is.
struct Reader<'t> {
    path: &'t Path,
    text: &'t str,
    warnings: Vec<String>,
}

impl Reader<'_> {
    fn root(&mut self, object: &Object<'_>, config: &mut FileConfig) -> Result<(), Stop> {
        for property in &object.properties {
            let key = property.name.as_str();
            match key {
                "model" => config.model = self.model_ref(&property.value, key)?,
                "providers" => {
                    for entry in &self.object(&property.value, key)?.properties {
                        let name = entry.name.as_str();
                        if name.is_empty() || name.contains('/') || name.chars().any(char::is_whitespace) {
                            let line = self.line(entry.start());
                            return Err(Stop::configuration(format!(
                                "{}:{line}: {name:?} cannot be the name of a provider; it should be a name without blanks and slashes",
                                self.path.display()
                            )));
                        }
                        let provider = self.provider(entry)?;
                        config.providers.retain(|(other, _)| other != name);
                        config.providers.push((name.to_owned(), provider));
                    }
                }
                "$schema" => {}
                _ => self.unknown(property, key, "model, providers"),
            }
        }
        Ok(())
    }

    fn provider(&mut self, entry: &ObjectProp<'_>) -> Result<FileProvider, Stop> {
        let base = format!("providers.{}", entry.name.as_str());
        let mut out = FileProvider { line: self.line(entry.start()), ..FileProvider::default() };
        for property in &self.object(&entry.value, &base)?.properties {
            let value = &property.value;
            let key = format!("{base}.{}", property.name.as_str());
            match property.name.as_str() {
                "base_url" => out.base_url = Some(self.url(value, &key)?),
                "api_key" => out.api_key = Some(self.string(value, &key)?),
                "api_key_env" => out.api_key_env = Some(self.string(value, &key)?),
                "api" => {
                    if self.string(value, &key)?.value != "chat" {
                        return Err(self.wrong(value, &key, "\"chat\""));
                    }
                }
                "thinking" => {
                    out.thinking = Some(self.choice(value, &key, "bool, effort, reasoning, type", |name| {
                        Thinking::NAMES.iter().find(|(known, _)| *known == name).map(|(_, thinking)| *thinking)
                    })?);
                }
                "thinking_level" => {
                    out.thinking_level =
                        Some(self.choice(value, &key, "off, low, medium, high", |name| name.parse().ok())?);
                }
                "headers" => out.headers = self.headers(value, &key)?,
                "session_header" => {
                    let header = self.string(value, &key)?;
                    if !is_header_name(&header.value) {
                        return Err(self.wrong(value, &key, "the name of an HTTP header"));
                    }
                    out.session_header = Some(header);
                }
                "models" => out.models = self.models(value, &key)?,
                "max_tokens" => out.max_tokens = Some(self.count(value, &key)?),
                "replay_reasoning" => out.replay_reasoning = Some(self.boolean(value, &key)?),
                "timeouts" => out.timeouts = self.timeouts(value, &key)?,
                _ => self.unknown(
                    property,
                    &key,
                    "base_url, api_key, api_key_env, api, thinking, thinking_level, headers, session_header, models, \
                     max_tokens, replay_reasoning, timeouts",
                ),
            }
        }
        if let (Some(_), Some(env)) = (&out.api_key, &out.api_key_env) {
            return Err(Stop::configuration(format!(
                "{}:{}: {base} has both api_key and api_key_env; keep one of them",
                self.path.display(),
                env.line
            )));
        }
        Ok(out)
    }

    fn headers(&self, value: &Value<'_>, key: &str) -> Result<Vec<(String, At<String>)>, Stop> {
        let mut out = Vec::new();
        for property in &self.object(value, key)?.properties {
            let name = property.name.as_str();
            let key = format!("{key}.{name}");
            if !is_header_name(name) {
                return Err(self.wrong(&property.value, &key, "a name of letters, digits and hyphens"));
            }
            let text = self.string(&property.value, &key)?;
            if !text.value.bytes().all(|b| b == b'\t' || (b' '..=b'~').contains(&b)) {
                return Err(self.wrong(&property.value, &key, "one line of plain ASCII text"));
            }
            out.push((name.to_owned(), text));
        }
        Ok(out)
    }

    fn models(&mut self, value: &Value<'_>, key: &str) -> Result<Vec<FileModel>, Stop> {
        let Value::Array(array) = value else { return Err(self.wrong(value, key, "an array of { \"id\": … }")) };
        let mut out = Vec::new();
        for (at, element) in array.elements.iter().enumerate() {
            let base = format!("{key}[{at}]");
            let mut model = FileModel { id: String::new(), context_window: None, max_output: None };
            for property in &self.object(element, &base)?.properties {
                let key = format!("{base}.{}", property.name.as_str());
                match property.name.as_str() {
                    "id" => model.id = self.string(&property.value, &key)?.value,
                    "context_window" => model.context_window = Some(self.count(&property.value, &key)?.value),
                    "max_output" => model.max_output = Some(self.count(&property.value, &key)?.value),
                    _ => self.unknown(property, &key, "id, context_window, max_output"),
                }
            }
            if model.id.is_empty() {
                return Err(self.wrong(element, &base, "an object with an \"id\""));
            }
            out.push(model);
        }
        Ok(out)
    }

    fn timeouts(&mut self, value: &Value<'_>, key: &str) -> Result<Timeouts, Stop> {
        let mut out = Timeouts::default();
        for property in &self.object(value, key)?.properties {
            let key = format!("{key}.{}", property.name.as_str());
            let slot = match property.name.as_str() {
                "connect_s" => &mut out.connect_s,
                "first_byte_s" => &mut out.first_byte_s,
                "idle_s" => &mut out.idle_s,
                _ => {
                    self.unknown(property, &key, "connect_s, first_byte_s, idle_s");
                    continue;
                }
            };
            let seconds = self.count(&property.value, &key)?.value;
            if seconds > MAX_TIMEOUT_S {
                return Err(self.wrong(&property.value, &key, "seconds, 86400 at most"));
            }
            *slot = Some(seconds);
        }
        Ok(out)
    }

    fn model_ref(&self, value: &Value<'_>, key: &str) -> Result<Option<At<ModelRef>>, Stop> {
        const WANTED: &str = "\"provider/model\"";
        let Value::StringLit(text) = value else { return Err(self.wrong(value, key, WANTED)) };
        let model = text.value.parse().map_err(|_| self.wrong(value, key, WANTED))?;
        Ok(Some(self.at(value, model)))
    }

    fn url(&self, value: &Value<'_>, key: &str) -> Result<At<String>, Stop> {
        let url = self.string(value, key)?;
        if !is_http_url(&url.value) {
            return Err(self.wrong(value, key, "a URL that begins with http:// or https://"));
        }
        Ok(url)
    }

    fn choice<T>(
        &self,
        value: &Value<'_>,
        key: &str,
        allowed: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<At<T>, Stop> {
        let wanted = format!("one of {allowed}");
        let Value::StringLit(text) = value else { return Err(self.wrong(value, key, &wanted)) };
        let read = read(&text.value).ok_or_else(|| self.wrong(value, key, &wanted))?;
        Ok(self.at(value, read))
    }

    fn string(&self, value: &Value<'_>, key: &str) -> Result<At<String>, Stop> {
        match value {
            Value::StringLit(text) if !text.value.trim().is_empty() => Ok(self.at(value, text.value.trim().to_owned())),
            _ => Err(self.wrong(value, key, "a string that is not empty")),
        }
    }

    fn count(&self, value: &Value<'_>, key: &str) -> Result<At<u64>, Stop> {
        match value {
            Value::NumberLit(number) => match number.value.parse() {
                Ok(count) if count > 0 => Ok(self.at(value, count)),
                _ => Err(self.wrong(value, key, "a whole number above 0")),
            },
            _ => Err(self.wrong(value, key, "a whole number above 0")),
        }
    }

    fn boolean(&self, value: &Value<'_>, key: &str) -> Result<At<bool>, Stop> {
        match value {
            Value::BooleanLit(flag) => Ok(self.at(value, flag.value)),
            _ => Err(self.wrong(value, key, "true or false")),
        }
    }

    fn object<'v, 'a>(&self, value: &'v Value<'a>, key: &str) -> Result<&'v Object<'a>, Stop> {
        value.as_object().ok_or_else(|| self.wrong(value, key, "an object"))
    }

    fn at<T>(&self, value: &Value<'_>, read: T) -> At<T> {
        At { value: read, line: self.line(value.start()) }
    }

    fn wrong(&self, value: &Value<'_>, key: &str, expected: &str) -> Stop {
        let found = match value {
            Value::StringLit(text) if text.value.is_empty() => "; it is empty".to_owned(),
            // A key, a header and a password in a URL are never repeated.
            Value::StringLit(_) if may_hold_a_secret(key) => String::new(),
            Value::StringLit(text) => format!("; it is {:?}", text.value.chars().take(SHOWN_CHARS).collect::<String>()),
            Value::NumberLit(number) => format!("; it is {}", number.value),
            Value::BooleanLit(flag) => format!("; it is {}", flag.value),
            Value::Object(_) => "; it is an object".to_owned(),
            Value::Array(_) => "; it is an array".to_owned(),
            Value::NullKeyword(_) => "; it is null".to_owned(),
        };
        let line = self.line(value.start());
        Stop::configuration(format!("{}:{line}: {key} should be {expected}{found}", self.path.display()))
    }

    fn unknown(&mut self, property: &ObjectProp<'_>, key: &str, known: &str) {
        let line = self.line(property.start());
        self.warnings
            .push(format!("{}:{line}: {key} is not known and has no effect; known: {known}", self.path.display()));
    }

    fn line(&self, offset: usize) -> usize {
        self.text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
    }
}

/// Whether this is a URL a request can be sent to.
pub(crate) fn is_http_url(url: &str) -> bool {
    url.strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
}

/// Whether the value of this key may be something that nobody should see.
fn may_hold_a_secret(key: &str) -> bool {
    key.ends_with(".api_key") || key.ends_with(".base_url") || key.contains(".headers.")
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

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
      "headers": { "X-Team": "blue", },
      "session_header": "X-Session",
      "models": [ { "id": "qwen/qwen3", "context_window": 32768, "max_output": 4096 }, ],
      "max_tokens": 2000,
      "replay_reasoning": false,
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
        assert_eq!(provider.headers[0].0, "X-Team");
        assert_eq!(provider.max_tokens.as_ref().unwrap().value, 2000);
        assert!(!provider.replay_reasoning.as_ref().unwrap().value);
        assert_eq!(provider.models[0].context_window, Some(32768));
        assert_eq!(provider.timeouts, Timeouts { connect_s: Some(5), first_byte_s: Some(300), idle_s: Some(60) });
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
                "{\"providers\": {\"x\": {\"timeouts\": {\"idle_s\": 99999}}}}",
                "timeouts.idle_s should be seconds, 86400",
            ),
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
