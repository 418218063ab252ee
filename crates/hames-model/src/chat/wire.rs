//! What a chunk looks like on the wire, read as leniently as speed allows.
//!
//! Every field takes any JSON value: one of the wrong type counts as absent and never costs the rest of the chunk. Text is
//! borrowed from the input where it holds no escapes. What is rare or opaque stays raw text.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One chunk, or a whole answer of a server that does not stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) choices: Seq<Choice<'a>>,
    #[serde(borrow)]
    pub(crate) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) x_groq: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) cost: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) object: Scalar<'a>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) detail: Option<&'a RawValue>,
    /// Why a prompt was blocked: then there are no choices.
    #[serde(borrow, rename = "promptFeedback")]
    pub(crate) prompt_feedback: Option<&'a RawValue>,
    /// Where one provider says how it went, with success as well.
    #[serde(borrow)]
    pub(crate) base_resp: Option<&'a RawValue>,
}

/// One choice of a chunk.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Choice<'a> {
    #[serde(borrow)]
    pub(crate) index: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) delta: Object<Delta<'a>>,
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) text: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) finish_reason: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) native_finish_reason: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// What a choice adds, or the whole message of a server that does not stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) content: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) reasoning_content: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) reasoning: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) refusal: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) tool_calls: Seq<ToolCall<'a>>,
    #[serde(borrow)]
    pub(crate) function_call: Object<Function<'a>>,
}

/// A piece of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(crate) index: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) id: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) function: Object<Function<'a>>,
    /// Beside the id, where a server knows no `function`.
    #[serde(borrow)]
    pub(crate) name: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) arguments: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) extra_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) thought_signature: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) provider_specific_fields: Option<&'a RawValue>,
}

/// The function part of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) arguments: Scalar<'a>,
}

/// The member in which one provider repeats usage, or gives it only there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Groq<'a> {
    #[serde(borrow)]
    pub(crate) usage: Option<&'a RawValue>,
}

/// Any value, with strings borrowed where they can be.
#[derive(Debug, Default)]
pub(crate) enum Scalar<'a> {
    /// Absent or null.
    #[default]
    Absent,
    /// A string.
    Text(Cow<'a, str>),
    /// A whole number.
    Integer(i64),
    /// Anything else. Boxed, because it is rare and a value is three times the size of a text.
    Other(Box<Value>),
}

impl Scalar<'_> {
    /// The string, where it is one and not empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Scalar::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The string, or the number as text; never empty.
    pub(crate) fn name(&self) -> Option<Cow<'_, str>> {
        match self {
            Scalar::Integer(number) => Some(number.to_string().into()),
            _ => self.text().map(Cow::Borrowed),
        }
    }

    /// The whole number, also where it came as a string or as `1.0`.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Scalar::Integer(number) => Some(*number),
            Scalar::Text(text) => text.trim().parse().ok(),
            Scalar::Other(value) => value.as_f64().map(|f| f as i64),
            Scalar::Absent => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Absent)
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E>(self, text: String) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Text(Cow::Owned(text)))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Other(Box::new(value.into())))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Integer(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Scalar<'de>, E> {
                Ok(i64::try_from(value).map_or_else(|_| Scalar::Other(Box::new(value.into())), Scalar::Integer))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Other(Box::new(value.into())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Scalar<'de>, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(seq)).map(|value| Scalar::Other(Box::new(value)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scalar<'de>, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(|value| Scalar::Other(Box::new(value)))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Answers every scalar a visitor does not want with the given value.
macro_rules! scalars_are {
    ($value:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}

/// An object of known fields, or nothing where the value is something else.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Object(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;
            scalars_are!(Object(None));
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|fields| Object(Some(fields)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Object<T>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Object(None))
            }
        }
        deserializer.deserialize_any(Fields(PhantomData))
    }
}

/// A list of objects; what is no object is left out. An object alone is a list of one, anything else an empty one.
#[derive(Debug)]
pub(crate) struct Seq<T>(pub(crate) Vec<T>);

impl<T> Default for Seq<T> {
    fn default() -> Self {
        Seq(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Seq<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Seq<T>;
            scalars_are!(Seq(Vec::new()));
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Seq<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|item| Seq(vec![item]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Seq<T>, A::Error> {
                // Nearly always one choice, or one call.
                let mut items = Vec::with_capacity(1);
                while let Some(item) = seq.next_element::<Object<T>>()? {
                    if let Some(item) = item.0 {
                        items.push(item);
                    }
                }
                Ok(Seq(items))
            }
        }
        deserializer.deserialize_any(Items(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_wrong_type_does_not_cost_the_chunk() {
        let odd = ["7", "-1", "1.5", "true", "\"s\"", "[1,{\"a\":2}]", "{\"a\":[1]}", "null", "\"\\u00e9\\n\""];
        for value in odd {
            for field in ["index", "finish_reason", "native_finish_reason", "message", "delta", "text", "error"] {
                let text = format!(r#"{{"choices":[{{"{field}":{value}}},{value},{{"delta":{{"content":"ok"}}}}]}}"#);
                let chunk: Chunk<'_> = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
                let last = chunk.choices.0.last().and_then(|c| c.delta.0.as_ref());
                assert_eq!(last.and_then(|d| d.content.text()), Some("ok"), "{text}");
            }
            for field in ["content", "reasoning", "reasoning_details", "refusal", "tool_calls", "function_call"] {
                let text = format!(r#"{{"choices":[{{"delta":{{"{field}":{value},"reasoning_content":"ok"}}}}]}}"#);
                let chunk: Chunk<'_> = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
                let delta = chunk.choices.0[0].delta.0.as_ref().unwrap();
                assert_eq!(delta.reasoning_content.text(), Some("ok"), "{text}");
            }
            for field in [
                "choices",
                "usage",
                "error",
                "x_groq",
                "cost",
                "object",
                "type",
                "message",
                "detail",
                "promptFeedback",
                "base_resp",
            ] {
                let text = format!(r#"{{"{field}":{value}}}"#);
                serde_json::from_str::<Chunk<'_>>(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            }
            let text = format!(r#"{{"index":{value},"id":{value},"function":{value},"extra_content":{value}}}"#);
            serde_json::from_str::<ToolCall<'_>>(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
    }

    #[test]
    fn an_object_where_a_list_belongs_is_a_list_of_one() {
        let text = r#"{"choices":{"delta":{"tool_calls":{"id":"a","function":{"name":"f"}}}}}"#;
        let chunk: Chunk<'_> = serde_json::from_str(text).unwrap();
        let calls = &chunk.choices.0[0].delta.0.as_ref().unwrap().tool_calls.0;
        assert_eq!(calls.iter().map(|call| call.id.text()).collect::<Vec<_>>(), [Some("a")]);
    }

    #[test]
    fn whole_numbers_are_read_in_every_spelling() {
        for (text, expected) in [("3", Some(3)), ("\"3\"", Some(3)), ("3.0", Some(3)), ("null", None), ("\"x\"", None)]
        {
            assert_eq!(serde_json::from_str::<Scalar<'_>>(text).unwrap().integer(), expected, "{text}");
        }
    }
}
