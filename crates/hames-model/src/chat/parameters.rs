//! What a request says besides the conversation: how to answer, how much to think, how to pick words, how long to be.
//!
//! It is written behind the messages. A provider's prompt cache, and our own prefix, begins with the first byte: a level
//! or a limit that changes from one request to the next must not stand before what stays the same.
//!
//! What is wanted comes first, then what refusals have taught: each parameter keeps the name and the value it would have
//! had, so that the next refusal can be traced back to it.

use hames_protocol::{Lesson, Remedy, RequestOptions, ThinkingLevel};
use serde_json::{Value, json};

use super::render::quoted;
use crate::ThinkingDialect;

/// One parameter as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// The name it has.
    pub(crate) name: String,
    /// The value it has.
    pub(crate) value: Value,
    /// What it would be without lessons; `None` where only a lesson put it here.
    pub(crate) wanted: Option<(&'static str, Value)>,
}

/// The parameters of a request, in the order they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parameters(Vec<Parameter>);

impl Parameters {
    /// What is wanted: `limit_name` is what the endpoint is known to call the output limit.
    pub(crate) fn wanted(options: &RequestOptions, dialect: Option<ThinkingDialect>, limit_name: &'static str) -> Self {
        let mut out = Self::default();
        out.want("stream", json!(true));
        out.want("stream_options", json!({"include_usage": true}));
        if let Some((dialect, level)) = dialect.zip(options.thinking) {
            for (name, value) in thinking(dialect, level) {
                out.want(name, value);
            }
        }
        for (name, value) in options.sampling.sent() {
            out.want(name, json!(value));
        }
        if let Some(limit) = options.max_output_tokens {
            out.want(limit_name, json!(limit.max(1)));
        }
        out
    }

    fn want(&mut self, name: &'static str, value: Value) {
        self.0.push(Parameter { name: name.to_owned(), value: value.clone(), wanted: Some((name, value)) });
    }

    /// The same after what refusals taught. `stream` is beyond any lesson: without it no answer could be read.
    pub(crate) fn taught(mut self, lessons: &[Lesson], has_tools: bool) -> Self {
        for lesson in lessons.iter().filter(|lesson| has_tools || !lesson.with_tools) {
            self.learn(lesson);
        }
        self
    }

    fn learn(&mut self, lesson: &Lesson) {
        let at = self.0.iter().position(|parameter| {
            parameter.wanted.as_ref().is_some_and(|(name, value)| {
                *name != "stream" && *name == lesson.parameter && lesson.value.as_ref().is_none_or(|only| only == value)
            })
        });
        match (at, &lesson.remedy) {
            (Some(at), Remedy::Drop) => drop(self.0.remove(at)),
            (Some(at), Remedy::Rename(name)) => self.0[at].name.clone_from(name),
            (Some(at), Remedy::Set(value)) => self.0[at].value.clone_from(value),
            (Some(at), Remedy::Cap(most)) if self.0[at].value.as_u64().is_some_and(|value| value > *most) => {
                self.0[at].value = json!(most);
            }
            // Only what a refusal asked for unasked; a value set for another value has nothing to stand for.
            (None, Remedy::Set(value)) if lesson.value.is_none() && lesson.with_tools => {
                self.0.push(Parameter { name: lesson.parameter.clone(), value: value.clone(), wanted: None });
            }
            _ => {}
        }
    }

    /// The parameter that is sent under this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Parameter> {
        self.0.iter().find(|parameter| parameter.name == name)
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Parameter] {
        &self.0
    }

    /// The end of a body: everything from the last message on.
    pub(crate) fn tail(&self) -> String {
        let mut out = String::from("]");
        for parameter in &self.0 {
            out.push(',');
            quoted(&parameter.name, &mut out);
            out.push(':');
            out.push_str(&parameter.value.to_string());
        }
        out.push('}');
        out
    }
}

/// How an endpoint is told to think.
fn thinking(dialect: ThinkingDialect, level: ThinkingLevel) -> Vec<(&'static str, Value)> {
    let on = level != ThinkingLevel::Off;
    let effort = || ("reasoning_effort", json!(level.as_str()));
    match dialect {
        ThinkingDialect::Bool => {
            let switch = ("chat_template_kwargs", json!({"enable_thinking": on}));
            if on { vec![switch, effort()] } else { vec![switch] }
        }
        ThinkingDialect::Effort if on => vec![effort()],
        ThinkingDialect::Effort => Vec::new(),
        ThinkingDialect::Reasoning if on => vec![("reasoning", json!({"effort": level.as_str()}))],
        ThinkingDialect::Reasoning => vec![("reasoning", json!({"enabled": false}))],
        ThinkingDialect::Type => vec![("thinking", json!({"type": if on { "enabled" } else { "disabled" }}))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(level: Option<ThinkingLevel>) -> RequestOptions {
        RequestOptions { max_output_tokens: Some(9_000), thinking: level, ..RequestOptions::default() }
    }

    fn tail(lessons: &[Lesson], has_tools: bool, level: Option<ThinkingLevel>) -> String {
        Parameters::wanted(&options(level), Some(ThinkingDialect::Effort), "max_tokens")
            .taught(lessons, has_tools)
            .tail()
            .replace(r#"],"stream":true,"stream_options":{"include_usage":true}"#, "…")
    }

    #[test]
    fn lessons_change_what_they_are_about_and_nothing_else() {
        let rename = Lesson::new("max_tokens", Remedy::Rename("max_completion_tokens".into()));
        let cap = Lesson::new("max_tokens", Remedy::Cap(100));
        let none = Lesson { with_tools: true, ..Lesson::new("reasoning_effort", Remedy::Set(json!("none"))) };
        let low = Lesson { value: Some(json!("high")), ..Lesson::new("reasoning_effort", Remedy::Set(json!("low"))) };
        let high = Some(ThinkingLevel::High);
        let cases: Vec<(Vec<Lesson>, bool, Option<ThinkingLevel>, &str)> = vec![
            (vec![], true, high, r#"…,"reasoning_effort":"high","max_tokens":9000}"#),
            (vec![rename.clone()], true, None, r#"…,"max_completion_tokens":9000}"#),
            (vec![cap.clone()], true, None, r#"…,"max_tokens":100}"#),
            (vec![cap.clone(), rename.clone()], true, None, r#"…,"max_completion_tokens":100}"#),
            (vec![rename, cap], true, None, r#"…,"max_completion_tokens":100}"#),
            (vec![Lesson::new("max_tokens", Remedy::Cap(10_000))], true, None, r#"…,"max_tokens":9000}"#),
            (vec![Lesson::new("max_tokens", Remedy::Drop)], true, None, "…}"),
            (vec![none.clone()], true, None, r#"…,"max_tokens":9000,"reasoning_effort":"none"}"#),
            (vec![none.clone()], true, high, r#"…,"reasoning_effort":"none","max_tokens":9000}"#),
            (vec![none], false, high, r#"…,"reasoning_effort":"high","max_tokens":9000}"#),
            (vec![low.clone()], true, high, r#"…,"reasoning_effort":"low","max_tokens":9000}"#),
            (
                vec![low.clone()],
                true,
                Some(ThinkingLevel::Medium),
                r#"…,"reasoning_effort":"medium","max_tokens":9000}"#,
            ),
            (vec![low], true, None, r#"…,"max_tokens":9000}"#),
            (vec![Lesson::new("temperature", Remedy::Drop)], true, None, r#"…,"max_tokens":9000}"#),
            (vec![Lesson::new("temperature", Remedy::Set(json!(1)))], true, None, r#"…,"max_tokens":9000}"#),
        ];
        for (lessons, has_tools, level, expected) in cases {
            assert_eq!(tail(&lessons, has_tools, level), expected, "{lessons:?}");
        }
        let stream = [Lesson::new("stream", Remedy::Drop), Lesson::new("stream_options", Remedy::Drop)];
        assert_eq!(tail(&stream, true, None), r#"],"stream":true,"max_tokens":9000}"#);
    }
}
