//! Reads out of a refusal what to do about it, if anything.
//!
//! The error reader has found the class, the parameter and the words. Here they are held against what was sent: a lesson
//! can only be about a parameter that was in the request, or that an earlier lesson took out of it. A complaint about the
//! range of a value is no lesson, because a person chose the value; a complaint that there is a choice of values is one
//! where the nearest can be told.

use std::ops::Range;

use hames_protocol::{ErrorClass, Failure, Lesson, Remedy};
use serde_json::{Value, json};

use crate::chat::{Parameter, Parameters};

/// What a request carries that a refusal may be about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub(crate) parameters: Parameters,
    /// Whether tools are offered.
    pub(crate) has_tools: bool,
    /// The role of the system text; `None` where there is no text.
    pub(crate) system_role: Option<String>,
    /// Whether an answer goes back.
    pub(crate) has_answers: bool,
    /// Whether any reasoning goes back.
    pub(crate) has_reasoning: bool,
}

/// Parameters of other clients. Where one of them is named first, the refusal is not about ours.
const OTHERS: [&str; 13] = [
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "top_k",
    "min_p",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "service_tier",
    "max_output_tokens",
    "previous_response_id",
    "stream",
    "metadata",
];

/// Words that refuse a parameter.
const REFUSING: [&str; 22] = [
    "unsupported",
    "not support",
    "unrecognized",
    "unrecognised",
    "unknown",
    "unexpected",
    "extra input",
    "extra field",
    "additional properties",
    "not permitted",
    "not allowed",
    "deprecated",
    "only the default",
    "is allowed for",
    "may only be",
    "cannot be",
    "must be",
    "should be",
    "incompatible",
    "not compatible",
    "no longer",
    "cannot find field",
];

/// Words about the range or the kind of a value.
const RANGE: [&str; 16] = [
    "at least",
    "positive",
    "above maximum",
    "below minimum",
    "between",
    "greater than",
    "less than",
    "out of range",
    "the range",
    "range of",
    "range:",
    ">=",
    "<=",
    "type must be",
    "type_error",
    "valid number",
];

/// Words that say the parameter is fine and its value is not.
const VALUE: [&str; 11] = [
    "unsupported value",
    "does not support '",
    "does not support \"",
    "supported value",
    "supported level",
    "one of",
    "mandatory",
    "cannot be disabled",
    "must be",
    "should be",
    "invalid value",
];

/// How much each effort is, least first.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What to do about a refusal of a request that carried `sent` under `lessons`; `None` where nothing can be done.
pub(super) fn lesson(failure: &Failure, sent: &Sent, lessons: &[Lesson]) -> Option<Lesson> {
    use ErrorClass::*;
    let class = failure.class;
    if !matches!(class, InvalidRequest | InvalidRequestFixable | MaxTokensTooLarge | WireRule | ServerError) {
        return None;
    }
    let refusal = Refusal::of(failure, sent, lessons);
    let lesson = if class == ServerError {
        // Words alone are not enough to read more into an accident; a template that takes no system text is none.
        refusal.system_role()
    } else if refusal.is_of_effort_with_tools() {
        refusal.effort_with_tools()
    } else {
        refusal
            .reasoning_content()
            .or_else(|| refusal.system_role())
            .or_else(|| refusal.missing())
            .or_else(|| refusal.output_cap())
            .or_else(|| refusal.about_thinking())
            .or_else(|| refusal.parameter())
    };
    lesson.filter(|lesson| !lessons.contains(lesson))
}

struct Refusal<'a> {
    class: ErrorClass,
    /// Lower case.
    words: String,
    /// The parameter the provider points at, as a path.
    pointed: Option<&'a str>,
    instead: Option<&'a str>,
    limit: Option<u64>,
    code: String,
    sent: &'a Sent,
    lessons: &'a [Lesson],
}

impl<'a> Refusal<'a> {
    fn of(failure: &'a Failure, sent: &'a Sent, lessons: &'a [Lesson]) -> Self {
        let stated = failure.stated.as_deref();
        let code = stated.and_then(|stated| stated.code.as_deref()).unwrap_or("").to_ascii_lowercase();
        let mut words = failure.provider_message.as_deref().unwrap_or("").to_ascii_lowercase();
        let mut pointed = failure.parameter();
        // Some put a sentence where a name belongs.
        if let Some(sentence) = pointed.filter(|pointed| pointed.contains(' ')) {
            words.push('\n');
            words.push_str(sentence);
            pointed = None;
        }
        Self {
            class: failure.class,
            words,
            pointed,
            instead: stated.and_then(|stated| stated.instead.as_deref()),
            limit: stated.and_then(|stated| stated.limit_tokens),
            code,
            sent,
            lessons,
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }

    fn is_pointed_at(&self, part: &str) -> bool {
        self.pointed.is_some_and(|path| path.contains(part))
    }

    fn knows(&self, parameter: &str) -> Option<&Remedy> {
        self.lessons.iter().find(|lesson| lesson.parameter == parameter).map(|lesson| &lesson.remedy)
    }

    fn is_refused(&self) -> bool {
        self.class == ErrorClass::InvalidRequestFixable
            || self.says(&REFUSING)
            || ["unsupported", "unknown", "extra_forbidden", "unrecognized"].iter().any(|c| self.code.contains(c))
    }

    /// Reasoning has to go back with every answer, or with none.
    fn reasoning_content(&self) -> Option<Lesson> {
        const NAME: &str = "reasoning_content";
        let named = self.says(&[NAME]) || self.is_pointed_at(NAME);
        let in_messages = self.is_pointed_at("messages") || self.says(&["messages."]) || self.says(&["messages["]);
        if named && self.sent.has_answers && self.says(&["passed back", "missing", "required", "must include"]) {
            return Some(Lesson::new(NAME, Remedy::Set(json!(true))));
        }
        let about_reasoning = named || (in_messages && (self.says(&["reasoning"]) || self.is_pointed_at("reasoning")));
        (about_reasoning && self.sent.has_reasoning && self.is_refused()).then(|| Lesson::new(NAME, Remedy::Drop))
    }

    /// The system text has to go in another role.
    fn system_role(&self) -> Option<Lesson> {
        let role = self.sent.system_role.as_deref().filter(|role| *role != "user")?;
        // A gateway's name for a system text.
        if self.says(&["developer instruction is not enabled", "system instruction is not enabled"]) {
            return Some(Lesson::new("system", Remedy::Rename("user".to_owned())));
        }
        let about_role = self.is_pointed_at(".role") || self.says(&["role", "system message", "system prompt"]);
        let refused = self.says(&["not support", "unsupported", "not allowed", "should be 'user'"]);
        if !(about_role && refused && self.says(&[role])) {
            return None;
        }
        let wants_developer =
            role != "developer" && self.says(&["use 'developer'", "use developer", "'developer' instead"]);
        let other = if wants_developer { "developer" } else { "user" };
        Some(Lesson::new("system", Remedy::Rename(other.to_owned())))
    }

    /// Whether a model takes no tools while it reasons.
    fn is_of_effort_with_tools(&self) -> bool {
        let effort = self.says(&["reasoning_effort"]) || self.is_pointed_at("reasoning_effort");
        effort && self.sent.has_tools && self.says(&["tool", "function"])
    }

    fn effort_with_tools(&self) -> Option<Lesson> {
        const NAME: &str = "reasoning_effort";
        let remedy = match self.sent.parameters.named(NAME) {
            Some(effort) if effort.value == "none" => return None,
            Some(_) if !self.says(&["none"]) => Remedy::Drop,
            _ => Remedy::Set(json!("none")),
        };
        Some(Lesson { with_tools: true, ..Lesson::new(NAME, remedy) })
    }

    /// What an earlier lesson took out is asked for.
    fn missing(&self) -> Option<Lesson> {
        if !self.says(&["required", "missing"]) && self.code != "missing" {
            return None;
        }
        let lesson = self.lessons.iter().find(|lesson| {
            let name = lesson.parameter.as_str();
            let is_out = self.sent.parameters.named(name).is_none() && !matches!(name, "system" | "reasoning_content");
            is_out && (self.pointed == Some(name) || mention(&self.words, name).is_some())
        })?;
        Some(Lesson { remedy: Remedy::Keep, ..lesson.clone() })
    }

    /// The most tokens an answer may have.
    fn output_cap(&self) -> Option<Lesson> {
        let (parameter, (origin, _)) = self.limit_parameter()?;
        let asked = parameter.value.as_u64()?;
        let names_range = self.says(&["range of max", "range is"]) && self.is_named(&parameter.name);
        if self.class != ErrorClass::MaxTokensTooLarge && !names_range {
            return None;
        }
        let cap = self.limit.filter(|cap| *cap < asked).or_else(|| self.largest_below(asked))?;
        Some(Lesson::new(*origin, Remedy::Cap(cap)))
    }

    /// The largest number of the words that is smaller than what was asked for.
    fn largest_below(&self, asked: u64) -> Option<u64> {
        /// A smaller number is a version or an example, and no limit anybody could work with.
        const SMALLEST_LIMIT: u64 = 64;
        let bytes = self.words.as_bytes();
        let is_part_of_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        let mut best = None;
        let mut at = 0;
        while let Some(start) = self.words[at..].find(|c: char| c.is_ascii_digit()).map(|found| at + found) {
            let end = self.words[start..].find(|c: char| !c.is_ascii_digit()).map_or(bytes.len(), |len| start + len);
            let stands_alone = (start == 0 || !is_part_of_name(bytes[start - 1]))
                && bytes.get(end).is_none_or(|c| !c.is_ascii_alphabetic() && *c != b'-' && *c != b'_');
            if let Ok(number) = self.words[start..end].parse::<u64>()
                && stands_alone
                && (SMALLEST_LIMIT..asked).contains(&number)
            {
                best = best.max(Some(number));
            }
            at = end;
        }
        best
    }

    fn limit_parameter(&self) -> Option<(&'a Parameter, &'a (&'static str, Value))> {
        let parameter = self
            .sent
            .parameters
            .all()
            .iter()
            .find(|parameter| parameter.wanted.as_ref().is_some_and(|(name, _)| LIMITS.contains(name)))?;
        Some((parameter, parameter.wanted.as_ref()?))
    }

    fn is_named(&self, name: &str) -> bool {
        self.pointed.map(root) == Some(name) || mention(&self.words, name).is_some()
    }

    /// Words about thinking that name no parameter: it cannot be switched off, or it does not exist.
    fn about_thinking(&self) -> Option<Lesson> {
        const NAMES: [&str; 4] = ["reasoning_effort", "reasoning", "thinking", "chat_template_kwargs"];
        // A quoted name that is no parameter is the model's.
        let is_other = |name: &str| {
            let is_parameter =
                OTHERS.contains(&name) || name.contains('_') || self.sent.parameters.named(name).is_some();
            is_parameter && !NAMES.contains(&name)
        };
        if self.pointed.is_some_and(|path| is_other(root(path))) || !self.says(&["thinking", "reasoning"]) {
            return None;
        }
        let (origin, wanted) = NAMES.iter().find_map(|name| self.sent.parameters.named(name)?.wanted.as_ref())?;
        let is_off = [json!({"enabled": false}), json!({"type": "disabled"}), json!({"enable_thinking": false})];
        if is_off.contains(wanted)
            && self.says(&[
                "mandatory",
                "cannot be disabled",
                "cannot be turned off",
                "must be enabled",
                "cannot disable",
            ])
        {
            return Some(Lesson { value: Some(wanted.clone()), ..Lesson::new(*origin, Remedy::Drop) });
        }
        let refused = ["thinking", "reasoning"].iter().any(|word| {
            self.says(&[
                &format!("not support {word}"),
                &format!("{word} is not supported"),
                &format!("{word} mode is not supported"),
                &format!("{word} is not enabled"),
            ])
        });
        let is_bare = !self.says(&["reasoning_", "thinking_", "reasoning.", "thinking."]);
        (refused && is_bare).then(|| Lesson::new(*origin, Remedy::Drop))
    }

    /// One parameter of the request is refused.
    fn parameter(&self) -> Option<Lesson> {
        let parameter = self.refused_parameter()?;
        // Without a stream no answer could be read.
        if !self.is_refused() || parameter.name == "stream" {
            return None;
        }
        let Some((origin, wanted)) = &parameter.wanted else {
            // A lesson put it there, and it is wrong by now.
            return Some(Lesson { with_tools: true, ..Lesson::new(&parameter.name, Remedy::Drop) });
        };
        if LIMITS.contains(origin) {
            return if self.says(&RANGE) { None } else { Some(self.other_limit(origin, &parameter.name)) };
        }
        let is_inside = self.pointed.is_some_and(|path| path.len() > root(path).len()) || self.is_looked_into(origin);
        let is_about_value = is_inside || self.code == "unsupported_value" || self.says(&VALUE);
        match *origin {
            "reasoning_effort" | "thinking" | "reasoning" | "chat_template_kwargs" if is_about_value => {
                let remedy = self.other_value(origin, wanted).map_or(Remedy::Drop, Remedy::Set);
                Some(Lesson { value: Some(wanted.clone()), ..Lesson::new(*origin, remedy) })
            }
            _ if self.says(&RANGE) => None,
            _ => Some(Lesson::new(*origin, Remedy::Drop)),
        }
    }

    /// Whether the words name a member of a parameter: `thinking.type`.
    fn is_looked_into(&self, name: &str) -> bool {
        let path = format!("{name}.");
        self.words
            .match_indices(&path)
            .any(|(at, _)| self.words[at + path.len()..].starts_with(|c: char| c.is_ascii_alphabetic()))
    }

    /// The parameter of the request that the refusal is about.
    fn refused_parameter(&self) -> Option<&'a Parameter> {
        let parameters = &self.sent.parameters;
        if let Some(path) = self.pointed {
            let last = path.rsplit('.').next().unwrap_or(path);
            let direct = parameters.named(root(path)).or_else(|| parameters.named(last));
            return direct.or_else(|| parameters.named(holder(path)?));
        }
        let sent = parameters.all().iter().map(|parameter| parameter.name.as_str());
        let inner = INNER.iter().map(|(name, _)| *name);
        let first = sent
            .chain(inner)
            .chain(OTHERS)
            .filter_map(|name| Some((mention(&self.words, name)?.start, std::cmp::Reverse(name.len()), name)))
            .min()?;
        parameters.named(first.2).or_else(|| parameters.named(holder(first.2)?))
    }

    /// The output limit under its other name; where that was refused too, none.
    fn other_limit(&self, origin: &str, name: &str) -> Lesson {
        let instead = self.instead.filter(|other| *other != name && other.ends_with("tokens"));
        let other = instead.or_else(|| LIMITS.into_iter().find(|other| *other != name)).unwrap_or(origin);
        let remedy = match self.knows(origin) {
            Some(Remedy::Rename(_)) if other == origin && instead.is_none() => Remedy::Drop,
            Some(Remedy::Rename(_)) if other == origin => Remedy::Keep,
            _ => Remedy::Rename(other.to_owned()),
        };
        Lesson::new(origin, remedy)
    }

    /// The value among those the words offer that is nearest to the one wanted.
    fn other_value(&self, parameter: &str, wanted: &Value) -> Option<Value> {
        // What stands before is what was refused.
        let leads =
            ["supported value", "supported level", "one of", "must be", "should be", " use ", "\nuse ", "only "];
        let from = leads.iter().find_map(|lead| self.words.find(lead))?;
        let offered = |name: &&str| mention(&self.words[from..], name).is_some();
        match parameter {
            "reasoning_effort" => {
                let rank = EFFORTS.iter().position(|effort| wanted == effort)?;
                let distance = |at: &usize| (at.abs_diff(rank), *at < rank);
                let nearest =
                    (0..EFFORTS.len()).filter(|at| *at != rank && offered(&EFFORTS[*at])).min_by_key(distance);
                nearest.map(|at| json!(EFFORTS[at]))
            }
            "thinking" => {
                let is_on = wanted["type"] == "enabled";
                let kinds: &[&str] = if is_on { &["adaptive", "auto"] } else { &["enabled", "adaptive", "auto"] };
                kinds.iter().find(|kind| offered(kind)).map(|kind| json!({ "type": kind }))
            }
            _ => None,
        }
    }
}

/// The names of the output limit.
const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// Names that stand inside a parameter, and the parameter.
const INNER: [(&str, &str); 3] =
    [("enable_thinking", "chat_template_kwargs"), ("include_usage", "stream_options"), ("thinking_mode", "thinking")];

fn holder(path: &str) -> Option<&'static str> {
    let last = path.rsplit('.').next().unwrap_or(path);
    INNER.iter().find(|(name, _)| *name == last).map(|(_, holder)| *holder)
}

/// `reasoning.effort` is about `reasoning`.
fn root(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// Where words name a parameter. One that is also a word of the language counts only in quotes, before a dot or colon, or
/// after a colon.
fn mention(words: &str, name: &str) -> Option<Range<usize>> {
    const PLAIN: [&str; 4] = ["thinking", "reasoning", "stream", "metadata"];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    words.match_indices(name).map(|(at, _)| at..at + name.len()).find(|found| {
        let before = words[..found.start].chars().next_back();
        let after = words[found.end..].chars().next();
        let is_whole = !before.is_some_and(is_name) && !after.is_some_and(is_name);
        let is_marked = before.is_some_and(|c| "'\"`\u{201c}/".contains(c))
            || after.is_some_and(|c| "'\"`:.\u{201d}".contains(c))
            || words[..found.start].trim_end().ends_with(':');
        is_whole && (is_marked || !PLAIN.contains(&name))
    })
}

#[cfg(test)]
mod tests;
