//! What a refusal taught about the requests a model takes.
//!
//! A lesson says how one parameter is written from now on. It belongs to one model at one endpoint and is never carried
//! to another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a lesson about the model's window is about: a cap on it is the most tokens the model turned out to take.
const WINDOW: &str = "context_window";

/// How a parameter is written in requests to one model at one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lesson {
    /// The parameter as it would be written without the lesson. Three are no parameters of the body: `system`, the role
    /// of the system text, `reasoning_content`, the reasoning that goes back with answers, and `context_window`, the
    /// tokens the model takes at all.
    pub parameter: String,
    /// Only where it would have this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Only where tools are offered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_tools: bool,
    /// What is done.
    pub remedy: Remedy,
}

/// What is done with a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// It is left out.
    Drop,
    /// It goes under another name.
    Rename(String),
    /// It has this value.
    Set(Value),
    /// It is at most this.
    Cap(u64),
    /// It is written as it would be: an earlier lesson does not hold any more.
    Keep,
}

impl Lesson {
    /// A lesson that holds whatever the value and whether or not tools are offered.
    pub fn new(parameter: impl Into<String>, remedy: Remedy) -> Self {
        Self { parameter: parameter.into(), value: None, with_tools: false, remedy }
    }

    /// The model takes no more than so many tokens.
    pub fn window_limit(tokens: u64) -> Self {
        Self::new(WINDOW, Remedy::Cap(tokens))
    }

    /// The tokens of the window, where the lesson is about that.
    pub fn limits_window_to(&self) -> Option<u64> {
        match self.remedy {
            Remedy::Cap(tokens) if self.parameter == WINDOW => Some(tokens),
            _ => None,
        }
    }

    /// Whether an earlier lesson gives way to this one: both speak of the same parameter in the same case. A name and a
    /// cap go together.
    pub fn replaces(&self, earlier: &Lesson) -> bool {
        let case = |lesson: &Lesson| (lesson.parameter.clone(), lesson.value.clone(), lesson.with_tools);
        let go_together = matches!(
            (&self.remedy, &earlier.remedy),
            (Remedy::Rename(_), Remedy::Cap(_)) | (Remedy::Cap(_), Remedy::Rename(_))
        );
        case(self) == case(earlier) && !go_together
    }
}

impl fmt::Display for Lesson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.parameter.as_str(), &self.remedy) {
            ("system", Remedy::Rename(role)) => return write!(f, "the system text goes in the role {role}"),
            ("reasoning_content", Remedy::Set(_)) => {
                return f.write_str("reasoning_content goes back with every answer");
            }
            (WINDOW, Remedy::Cap(tokens)) => return write!(f, "its window has {tokens} tokens and no more"),
            _ => {}
        }
        f.write_str(&self.parameter)?;
        if let Some(value) = &self.value {
            write!(f, " {value}")?;
        }
        match &self.remedy {
            Remedy::Drop => f.write_str(" is left out")?,
            Remedy::Rename(name) => write!(f, " is sent as {name}")?,
            Remedy::Set(value) => write!(f, " is sent as {value}")?,
            Remedy::Cap(most) => write!(f, " is {most} at most")?,
            Remedy::Keep => f.write_str(" is sent as before")?,
        }
        f.write_str(if self.with_tools { " where tools are offered" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lesson_replaces_one_of_the_same_case_and_a_cap_stays_beside_a_name() {
        let on = |value: Option<&str>, with_tools, remedy| Lesson {
            parameter: "p".into(),
            value: value.map(Value::from),
            with_tools,
            remedy,
        };
        let rename = || Remedy::Rename("q".into());
        for (new, old, replaces) in [
            (on(None, false, Remedy::Drop), on(None, false, rename()), true),
            (on(None, false, Remedy::Keep), on(None, false, Remedy::Drop), true),
            (on(None, false, Remedy::Cap(1)), on(None, false, Remedy::Cap(2)), true),
            (on(None, false, Remedy::Cap(1)), on(None, false, rename()), false),
            (on(None, false, rename()), on(None, false, Remedy::Cap(1)), false),
            (on(None, false, Remedy::Drop), on(None, false, Remedy::Cap(1)), true),
            (on(None, true, Remedy::Drop), on(None, false, Remedy::Drop), false),
            (on(Some("a"), false, Remedy::Drop), on(None, false, Remedy::Drop), false),
            (on(Some("a"), false, Remedy::Drop), on(Some("b"), false, Remedy::Drop), false),
            (on(Some("a"), false, Remedy::Drop), on(Some("a"), false, Remedy::Set(json!("b"))), true),
            (Lesson::new("q", Remedy::Drop), on(None, false, Remedy::Drop), false),
        ] {
            assert_eq!(new.replaces(&old), replaces, "{new} / {old}");
        }
    }

    #[test]
    fn a_lesson_reads_as_a_sentence_and_comes_back_from_its_json() {
        let with = |parameter: &str, value: Option<Value>, with_tools, remedy| Lesson {
            parameter: parameter.into(),
            value,
            with_tools,
            remedy,
        };
        for (lesson, sentence) in [
            (Lesson::new("temperature", Remedy::Drop), "temperature is left out"),
            (
                Lesson::new("max_tokens", Remedy::Rename("max_completion_tokens".into())),
                "max_tokens is sent as max_completion_tokens",
            ),
            (Lesson::new("max_tokens", Remedy::Cap(4096)), "max_tokens is 4096 at most"),
            (Lesson::new("max_tokens", Remedy::Keep), "max_tokens is sent as before"),
            (Lesson::window_limit(8_192), "its window has 8192 tokens and no more"),
            (
                with("reasoning_effort", None, true, Remedy::Set(json!("none"))),
                "reasoning_effort is sent as \"none\" where tools are offered",
            ),
            (
                with("reasoning_effort", Some(json!("medium")), false, Remedy::Set(json!("high"))),
                "reasoning_effort \"medium\" is sent as \"high\"",
            ),
            (
                with("reasoning", Some(json!({"enabled": false})), false, Remedy::Drop),
                "reasoning {\"enabled\":false} is left out",
            ),
            (Lesson::new("system", Remedy::Rename("user".into())), "the system text goes in the role user"),
        ] {
            assert_eq!(lesson.to_string(), sentence);
            let json = serde_json::to_string(&lesson).unwrap();
            assert_eq!(serde_json::from_str::<Lesson>(&json).unwrap(), lesson, "{json}");
        }
    }
}
