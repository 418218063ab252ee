//! How a model picks its words: what a person may set, and `auto`, which sends nothing.
//!
//! A dial cannot hold a value off its scale: reading refuses one with words, loading what was stored brings it back onto
//! the scale, so that a file somebody edited opens all the same. Temperature and top-p share one place, because only one
//! of them is ever sent.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A number of a request from 0 to `TENTHS` tenths, or `auto`: then it is not sent and the provider's own holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dial<const TENTHS: u32>(Option<f64>);

/// Temperature, 0 to 2.
pub type Temperature = Dial<20>;
/// Top-p, 0 to 1.
pub type TopP = Dial<10>;
/// A presence or frequency penalty, 0 to 2.
pub type Penalty = Dial<20>;

// The value is never NaN.
impl<const TENTHS: u32> Eq for Dial<TENTHS> {}

/// A value that is not on a dial's scale.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{given}\" is neither a number from 0 to {max} nor auto")]
pub struct OffScale {
    /// What was given.
    pub given: String,
    /// The end of the scale.
    pub max: u32,
}

impl<const TENTHS: u32> Dial<TENTHS> {
    /// Not sent.
    pub const AUTO: Self = Self(None);

    const MAX: f64 = TENTHS as f64 / 10.0;

    /// This value.
    pub fn at(value: f64) -> Result<Self, OffScale> {
        if (0.0..=Self::MAX).contains(&value) {
            // Zero has one spelling.
            return Ok(Self(Some(value + 0.0)));
        }
        Err(Self::off_scale(value.to_string()))
    }

    /// The value; `None` for `auto`.
    pub fn value(self) -> Option<f64> {
        self.0
    }

    /// The value nearest to this one; what is no number is `auto`.
    fn nearest(value: f64) -> Self {
        if value.is_nan() { Self::AUTO } else { Self(Some(value.clamp(0.0, Self::MAX) + 0.0)) }
    }

    fn off_scale(given: String) -> OffScale {
        OffScale { given, max: TENTHS / 10 }
    }
}

impl<const TENTHS: u32> fmt::Display for Dial<TENTHS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("auto"),
        }
    }
}

impl<const TENTHS: u32> FromStr for Dial<TENTHS> {
    type Err = OffScale;
    fn from_str(text: &str) -> Result<Self, OffScale> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(Self::AUTO);
        }
        let off_scale = |_| Self::off_scale(text.to_owned());
        text.parse::<f64>().map_err(|_| off_scale(())).and_then(|value| Self::at(value).map_err(|_| off_scale(())))
    }
}

impl<const TENTHS: u32> Serialize for Dial<TENTHS> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(value) => to.serialize_f64(value),
            None => to.serialize_str("auto"),
        }
    }
}

impl<'de, const TENTHS: u32> Deserialize<'de> for Dial<TENTHS> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Number(number) => Ok(number.as_f64().map_or(Self::AUTO, Self::nearest)),
            Value::String(text) if text == "auto" => Ok(Self::AUTO),
            other => Err(D::Error::custom(Self::off_scale(other.to_string()))),
        }
    }
}

impl<const TENTHS: u32> JsonSchema for Dial<TENTHS> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("DialTo{}", TENTHS / 10).into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of a request; `auto` is not sent.",
            "anyOf": [{"type": "number", "minimum": 0, "maximum": TENTHS / 10}, {"const": "auto"}],
        })
    }
}

/// The sampler in use. The other one is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sampler {
    /// How freely words are drawn.
    Temperature(Temperature),
    /// From what share of the likeliest words they are drawn.
    TopP(TopP),
}

impl Sampler {
    /// The parameter's name on the wire and in settings.
    pub fn name(self) -> &'static str {
        match self {
            Sampler::Temperature(_) => "temperature",
            Sampler::TopP(_) => "top_p",
        }
    }

    /// The value; `None` for `auto`.
    pub fn value(self) -> Option<f64> {
        match self {
            Sampler::Temperature(dial) => dial.value(),
            Sampler::TopP(dial) => dial.value(),
        }
    }
}

/// Everything that steers sampling. An absent field is not set here; `auto` is set, to sending nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Temperature or top-p.
    pub sampler: Option<Sampler>,
    /// Towards new topics.
    pub presence_penalty: Option<Penalty>,
    /// Away from what was said often.
    pub frequency_penalty: Option<Penalty>,
}

impl Sampling {
    /// These settings, and for what they leave open those of `below`.
    pub fn or(self, below: Sampling) -> Sampling {
        Sampling {
            sampler: self.sampler.or(below.sampler),
            presence_penalty: self.presence_penalty.or(below.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(below.frequency_penalty),
        }
    }

    /// What is sent: names on the wire with their values, at most one of temperature and top-p among them.
    pub fn sent(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let sampler = self.sampler.and_then(|sampler| Some((sampler.name(), sampler.value()?)));
        let penalty = |name, dial: Option<Penalty>| dial.and_then(Penalty::value).map(|value| (name, value));
        [
            sampler,
            penalty("presence_penalty", self.presence_penalty),
            penalty("frequency_penalty", self.frequency_penalty),
        ]
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dial_reads_what_is_on_its_scale_and_says_what_it_would_have_taken() {
        for (text, value) in
            [("0", 0.0), ("2", 2.0), ("0.7", 0.7), ("1.25", 1.25), (".5", 0.5), ("2e0", 2.0), ("-0", 0.0)]
        {
            let dial: Temperature = text.parse().unwrap();
            assert_eq!(dial.value().map(f64::to_bits), Some(f64::to_bits(value)), "{text}");
        }
        for text in ["auto", "AUTO", "Auto"] {
            assert_eq!(text.parse::<TopP>(), Ok(TopP::AUTO));
        }
        for text in ["", " ", "-0.1", "2.0000001", "NaN", "inf", "-inf", "1,5", "hot", "0.7 ", "1e999"] {
            let error = text.parse::<Temperature>().unwrap_err();
            assert_eq!(error.to_string(), format!("\"{text}\" is neither a number from 0 to 2 nor auto"));
        }
        assert!("1.1".parse::<TopP>().unwrap_err().to_string().contains("from 0 to 1 nor"));
    }

    #[test]
    fn what_was_stored_comes_back_and_is_brought_onto_the_scale() {
        for (stored, read) in [
            (json!({"temperature": 0.7}), Sampler::Temperature(Dial::at(0.7).unwrap())),
            (json!({"temperature": 1}), Sampler::Temperature(Dial::at(1.0).unwrap())),
            (json!({"temperature": "auto"}), Sampler::Temperature(Dial::AUTO)),
            (json!({"temperature": 99}), Sampler::Temperature(Dial::at(2.0).unwrap())),
            (json!({"temperature": -3.5}), Sampler::Temperature(Dial::at(0.0).unwrap())),
            (json!({"top_p": 0.9}), Sampler::TopP(Dial::at(0.9).unwrap())),
            (json!({"top_p": 2}), Sampler::TopP(Dial::at(1.0).unwrap())),
            (json!({"top_p": "auto"}), Sampler::TopP(Dial::AUTO)),
        ] {
            let sampler: Sampler = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(sampler, read, "{stored}");
            let again = serde_json::to_value(sampler).unwrap();
            assert_eq!(serde_json::from_value::<Sampler>(again).unwrap(), read, "{stored}");
        }
        for stored in [json!({"temperature": null}), json!({"temperature": "hot"}), json!({"top_k": 3}), json!(1)] {
            assert!(serde_json::from_value::<Sampler>(stored.clone()).is_err(), "{stored}");
        }
    }

    #[test]
    fn auto_overrides_what_lies_below_and_sends_nothing() {
        let dial = |value| Dial::at(value).unwrap();
        let file = Sampling {
            sampler: Some(Sampler::Temperature(dial(0.3))),
            presence_penalty: Some(dial(1.0)),
            frequency_penalty: None,
        };
        let session = Sampling {
            sampler: Some(Sampler::TopP(TopP::AUTO)),
            presence_penalty: None,
            frequency_penalty: Some(dial(0.5)),
        };
        let sent = |sampling: Sampling| sampling.sent().collect::<Vec<_>>();
        assert_eq!(sent(file), [("temperature", 0.3), ("presence_penalty", 1.0)]);
        assert_eq!(sent(session.or(file)), [("presence_penalty", 1.0), ("frequency_penalty", 0.5)]);
        assert_eq!(sent(Sampling::default()), []);
    }
}
