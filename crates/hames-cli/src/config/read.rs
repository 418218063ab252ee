//! Reads the configuration file's syntax tree, which still knows where everything stood: a wrong value is an error that
//! names file, line, key and what is expected, a key nobody knows a warning that names the one that was probably meant.
//!
//! The keys of each object are listed in `keys`. A key of a new section goes there first; without it, it is unknown.

use std::path::Path;

use hames_model::catalog::micros_of;
use hames_protocol::{Dial, ModelRef, Price, Rates, Sampler, Sampling, ThinkingLevel};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;

use super::file::{At, FileCatalog, FileConfig, FileModel, FileProvider, LocalServers, ModelsDev, Thinking, Timeouts};
use super::keys;
use super::nearest::nearest;
use crate::exit::Stop;

/// Seconds beyond this (a day) are a slip of the finger.
const MAX_TIMEOUT_S: u64 = 86_400;
/// Ports that are looked at for a model server; more would be a scan.
const MAX_PORTS: usize = 16;
/// Characters of a wrong value that are repeated.
const SHOWN_CHARS: usize = 40;

/// Walks the syntax tree; knows how to say where something is.
pub(super) struct Reader<'t> {
    pub(super) path: &'t Path,
    pub(super) text: &'t str,
    pub(super) warnings: Vec<String>,
}

impl Reader<'_> {
    pub(super) fn root(&mut self, object: &Object<'_>, config: &mut FileConfig) -> Result<(), Stop> {
        for property in self.known(object, "", keys::ROOT) {
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
                "catalog" => config.catalog = self.catalog(&property.value, key)?,
                "approve" => config.approve = Some(self.approve(&property.value, key)?),
                "policy" => config.rules.extend(self.policy(&property.value, key)?),
                "web" => config.web = self.web(&property.value, key)?,
                "guard" => {
                    let guard = self.guard(&property.value, key)?;
                    config.guard = Some(self.at(&property.value, guard));
                }
                "database" => config.vacuum = self.database(&property.value, key)?,
                "server" => config.server = self.server(&property.value, key)?,
                "keys" => config.keys = self.keymap(&property.value, key)?,
                "compaction" => config.compaction = self.compaction(&property.value, key)?,
                "titles" => config.titles = self.boolean(&property.value, key)?.value,
                _ => {}
            }
        }
        Ok(())
    }

    fn provider(&mut self, entry: &ObjectProp<'_>) -> Result<FileProvider, Stop> {
        let base = format!("providers.{}", entry.name.as_str());
        let mut out = FileProvider { line: self.line(entry.start()), ..FileProvider::default() };
        let mut switch = None;
        for property in self.known(self.object(&entry.value, &base)?, &base, keys::PROVIDER) {
            let value = &property.value;
            let key = format!("{base}.{}", property.name.as_str());
            match property.name.as_str() {
                "base_url" => out.base_url = Some(self.url(value, &key)?),
                "api_key" => out.api_key = Some(self.string(value, &key)?),
                "api_key_env" => out.api_key_env = Some(self.string(value, &key)?),
                "api" => self.chat(value, &key)?,
                "thinking" => {
                    out.thinking = Some(self.choice(value, &key, "bool, effort, reasoning, type", |name| {
                        Thinking::NAMES.iter().find(|(known, _)| *known == name).map(|(_, thinking)| *thinking)
                    })?);
                }
                "thinking_level" => {
                    out.thinking_level =
                        Some(self.choice(value, &key, "off, low, medium, high", |name| name.parse().ok())?);
                }
                "enableThinking" => switch = Some(self.boolean(value, &key)?),
                "temperature" | "top_p" | "presence_penalty" | "frequency_penalty" => {
                    self.sampling(&mut out.sampling, property, &base)?;
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
                "thinking_tags" => out.thinking_tags = Some(self.boolean(value, &key)?),
                "text_tool_calls" => out.text_tool_calls = Some(self.boolean(value, &key)?),
                "timeouts" => out.timeouts = self.timeouts(value, &key)?,
                "catalog" => out.catalog = Some(self.string(value, &key)?),
                _ => {}
            }
        }
        if let Some(At { value: on, line }) = switch {
            let level = if on { ThinkingLevel::Medium } else { ThinkingLevel::Off };
            out.thinking.get_or_insert(At { value: Thinking::Bool, line });
            out.thinking_level.get_or_insert(At { value: level, line });
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

    /// The one protocol there is so far.
    fn chat(&self, value: &Value<'_>, key: &str) -> Result<(), Stop> {
        if self.string(value, key)?.value == "chat" { Ok(()) } else { Err(self.wrong(value, key, "\"chat\"")) }
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
            let mut model = FileModel::default();
            for property in self.known(self.object(element, &base)?, &base, keys::MODEL) {
                let key = format!("{base}.{}", property.name.as_str());
                match property.name.as_str() {
                    "id" => model.id = self.string(&property.value, &key)?.value,
                    "context_window" => model.context_window = Some(self.count(&property.value, &key)?.value),
                    "max_output" => model.max_output = Some(self.count(&property.value, &key)?.value),
                    "images" => model.images = Some(self.boolean(&property.value, &key)?.value),
                    "temperature" | "top_p" | "presence_penalty" | "frequency_penalty" => {
                        self.sampling(&mut model.sampling, property, &base)?;
                    }
                    "price" => model.price = Some(self.price(&property.value, &key)?),
                    _ => {}
                }
            }
            if model.id.is_empty() {
                return Err(self.wrong(element, &base, "an object with an \"id\""));
            }
            if let (Some(window), Some(output)) = (model.context_window, model.max_output)
                && output >= window
            {
                self.warnings.push(format!(
                    "{}:{}: {base}: the output limit of {output} is as large as its window of {window}; a quarter of the \
                     window is kept for answers, so set max_output lower",
                    self.path.display(),
                    self.line(element.start())
                ));
            }
            out.push(model);
        }
        Ok(out)
    }

    /// One setting of sampling. Only one of temperature and top-p is ever sent, so only one of them can be set.
    fn sampling(&self, out: &mut Sampling, property: &ObjectProp<'_>, base: &str) -> Result<(), Stop> {
        let (name, value) = (property.name.as_str(), &property.value);
        let key = format!("{base}.{name}");
        match name {
            "presence_penalty" => out.presence_penalty = Some(self.dial(value, &key)?),
            "frequency_penalty" => out.frequency_penalty = Some(self.dial(value, &key)?),
            _ => {
                let sampler = match name {
                    "temperature" => Sampler::Temperature(self.dial(value, &key)?),
                    _ => Sampler::TopP(self.dial(value, &key)?),
                };
                if out.sampler.replace(sampler).is_some_and(|other| other.name() != name) {
                    return Err(Stop::configuration(format!(
                        "{}:{}: {base} has both temperature and top_p; keep one of them",
                        self.path.display(),
                        self.line(property.start())
                    )));
                }
            }
        }
        Ok(())
    }

    fn dial<const TENTHS: u32>(&self, value: &Value<'_>, key: &str) -> Result<Dial<TENTHS>, Stop> {
        let read = match value {
            Value::NumberLit(number) => number.value.parse(),
            Value::StringLit(text) if text.value == "auto" => Ok(Dial::AUTO),
            _ => Dial::at(f64::NAN),
        };
        read.map_err(|off| self.wrong(value, key, &format!("a number from 0 to {}, or \"auto\"", off.max)))
    }

    fn price(&mut self, value: &Value<'_>, key: &str) -> Result<Price, Stop> {
        let (mut input, mut output, mut rates) = (None, None, Rates::default());
        for property in self.known(self.object(value, key)?, key, keys::PRICE) {
            let key = format!("{key}.{}", property.name.as_str());
            let micros = match &property.value {
                Value::NumberLit(number) => micros_of(number.value),
                _ => None,
            };
            let micros = Some(micros.ok_or_else(|| self.wrong(&property.value, &key, "dollars for a million tokens"))?);
            match property.name.as_str() {
                "input" => input = micros,
                "output" => output = micros,
                "cache_read" => rates.cache_read = micros,
                "cache_write" => rates.cache_write = micros,
                _ => {}
            }
        }
        match (input, output) {
            (Some(input), Some(output)) => Ok(Price { rates: Rates { input, output, ..rates }, tiers: Vec::new() }),
            _ => Err(self.wrong(value, key, "an object with \"input\" and \"output\"")),
        }
    }

    fn timeouts(&mut self, value: &Value<'_>, key: &str) -> Result<Timeouts, Stop> {
        let mut out = Timeouts::default();
        for property in self.known(self.object(value, key)?, key, keys::TIMEOUTS) {
            let key = format!("{key}.{}", property.name.as_str());
            let slot = match property.name.as_str() {
                "connect_s" => &mut out.connect_s,
                "first_byte_s" => &mut out.first_byte_s,
                "idle_s" => &mut out.idle_s,
                _ => continue,
            };
            let seconds = self.count(&property.value, &key)?.value;
            if seconds > MAX_TIMEOUT_S {
                return Err(self.wrong(&property.value, &key, "seconds, 86400 at most"));
            }
            *slot = Some(seconds);
        }
        Ok(out)
    }

    fn catalog(&mut self, value: &Value<'_>, key: &str) -> Result<FileCatalog, Stop> {
        let mut out = FileCatalog::default();
        for property in self.known(self.object(value, key)?, key, keys::CATALOG) {
            let key = format!("{key}.{}", property.name.as_str());
            match property.name.as_str() {
                "models_dev" => out.models_dev = self.models_dev(&property.value, &key)?,
                "local_servers" => out.local_servers = self.local_servers(&property.value, &key)?,
                _ => {}
            }
        }
        Ok(out)
    }

    fn models_dev(&self, value: &Value<'_>, key: &str) -> Result<ModelsDev, Stop> {
        match value {
            Value::BooleanLit(flag) if flag.value => Ok(ModelsDev::On),
            Value::BooleanLit(_) => Ok(ModelsDev::Off),
            Value::StringLit(url) if is_http_url(&url.value) => Ok(ModelsDev::At(url.value.to_string())),
            other => Err(self.wrong(other, key, "true, false or the URL of a mirror")),
        }
    }

    fn local_servers(&self, value: &Value<'_>, key: &str) -> Result<LocalServers, Stop> {
        let wrong = |value| self.wrong(value, key, "true, false or a list of at most 16 ports");
        match value {
            Value::BooleanLit(flag) => Ok(if flag.value { LocalServers::Usual } else { LocalServers::Off }),
            Value::Array(array) if array.elements.len() <= MAX_PORTS => {
                let port = |value: &Value<'_>| match value {
                    Value::NumberLit(number) => number.value.parse().ok().filter(|port| *port > 0),
                    _ => None,
                };
                let ports: Option<Vec<u16>> = array.elements.iter().map(port).collect();
                ports.map(LocalServers::At).ok_or_else(|| wrong(value))
            }
            other => Err(wrong(other)),
        }
    }

    pub(super) fn model_ref(&self, value: &Value<'_>, key: &str) -> Result<Option<At<ModelRef>>, Stop> {
        const WANTED: &str = "\"provider/model\"";
        let Value::StringLit(text) = value else { return Err(self.wrong(value, key, WANTED)) };
        let model = text.value.parse().map_err(|_| self.wrong(value, key, WANTED))?;
        Ok(Some(self.at(value, model)))
    }

    pub(super) fn url(&self, value: &Value<'_>, key: &str) -> Result<At<String>, Stop> {
        let url = self.string(value, key)?;
        if !is_http_url(&url.value) {
            return Err(self.wrong(value, key, "a URL that begins with http:// or https://"));
        }
        Ok(url)
    }

    pub(super) fn choice<T>(
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

    pub(super) fn string(&self, value: &Value<'_>, key: &str) -> Result<At<String>, Stop> {
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

    pub(super) fn boolean(&self, value: &Value<'_>, key: &str) -> Result<At<bool>, Stop> {
        match value {
            Value::BooleanLit(flag) => Ok(self.at(value, flag.value)),
            _ => Err(self.wrong(value, key, "true or false")),
        }
    }

    pub(super) fn object<'v, 'a>(&self, value: &'v Value<'a>, key: &str) -> Result<&'v Object<'a>, Stop> {
        value.as_object().ok_or_else(|| self.wrong(value, key, "an object"))
    }

    pub(super) fn at<T>(&self, value: &Value<'_>, read: T) -> At<T> {
        At { value: read, line: self.line(value.start()) }
    }

    pub(super) fn wrong(&self, value: &Value<'_>, key: &str, expected: &str) -> Stop {
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

    /// The members that a table of keys names. Every other one becomes a warning: it may belong to a newer version.
    pub(super) fn known<'v, 'a>(
        &mut self,
        object: &'v Object<'a>,
        base: &str,
        keys: &[&'static str],
    ) -> impl Iterator<Item = &'v ObjectProp<'a>> + use<'v, 'a> {
        let (known, unknown): (Vec<_>, Vec<_>) =
            object.properties.iter().partition(|property| keys.contains(&property.name.as_str()));
        for property in unknown {
            let name = property.name.as_str();
            let key = if base.is_empty() { name.to_owned() } else { format!("{base}.{name}") };
            let meant = nearest(name, keys.iter().copied(), 1);
            let meant = meant.first().map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
            let known: Vec<&str> = keys.iter().copied().filter(|key| !key.starts_with('$')).collect();
            self.warnings.push(format!(
                "{}:{}: {key} is not known and has no effect; {meant}known: {}",
                self.path.display(),
                self.line(property.start()),
                known.join(", ")
            ));
        }
        known.into_iter()
    }

    pub(super) fn line(&self, offset: usize) -> usize {
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
    key.ends_with(".api_key") || key.ends_with(".proxy") || key.ends_with(".base_url") || key.contains(".headers.")
}

pub(crate) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
