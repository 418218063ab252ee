//! What the configuration says about the loop guard. A number off its scale is brought onto it, and what cannot be used at
//! all is as good as not set: a slip in this section is said, and never a reason not to run.

use hames_protocol::{GuardLevel, GuardParameter, GuardSettings};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::keys;
use super::read::Reader;
use crate::exit::Stop;

impl Reader<'_> {
    pub(super) fn guard(&mut self, value: &Value<'_>, key: &str) -> Result<GuardSettings, Stop> {
        let mut out = GuardSettings::default();
        for property in self.known(self.object(value, key)?, key, keys::GUARD) {
            let (name, value) = (property.name.as_str(), &property.value);
            let wrong = match (name, value) {
                ("level", Value::StringLit(text)) if text.value.parse::<GuardLevel>().is_ok() => {
                    out.level = text.value.parse().ok();
                    None
                }
                ("level", _) => Some("has no effect; it should be one of off, low, medium, high".to_owned()),
                ("guard_response", Value::BooleanLit(flag)) => {
                    out.guard_response = Some(flag.value);
                    None
                }
                ("guard_response", _) => Some("has no effect; it should be true or false".to_owned()),
                (name, Value::NumberLit(number)) => match (name.parse(), number.value.parse()) {
                    (Ok(parameter), Ok(number)) => set(&mut out, parameter, number),
                    _ => Some("has no effect; it should be a number".to_owned()),
                },
                _ => Some("has no effect; it should be a number".to_owned()),
            };
            if let Some(wrong) = wrong {
                let place = format!("{}:{}: {key}.{name}", self.path.display(), self.line(value.start()));
                self.warnings.push(format!("{place} {wrong}"));
            }
        }
        Ok(out)
    }
}

/// Sets a number, and says where it is not what was written.
fn set(out: &mut GuardSettings, parameter: GuardParameter, number: f64) -> Option<String> {
    out.set(parameter, number);
    let kept = out.get(parameter)?;
    let is_off = (kept - number).abs() > 1e-9;
    is_off.then(|| format!("is {number}; {kept} is used, because it goes {}", parameter.scale_text()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use crate::config::FileConfig;

    #[test]
    fn the_section_is_read_and_slips_are_said_and_mended() {
        for (text, read, warned) in [
            (r#"{"level": "high", "max_nudges": 1}"#, json!({"level": "high", "max_nudges": 1}), ""),
            (r#"{"level": "normal", "guard_response": true}"#, json!({"level": "medium", "guard_response": true}), ""),
            (r#"{"max_nudges": 99}"#, json!({"max_nudges": 10}), "guard.max_nudges is 99; 10 is used"),
            (r#"{"reasoning_threshold": 0.62}"#, json!({"reasoning_threshold": 0.6}), "steps of 0.05"),
            (r#"{"max_nudges": "3"}"#, json!({}), "guard.max_nudges has no effect"),
            (r#"{"level": "loud"}"#, json!({}), "one of off, low, medium, high"),
            (r#"{"guard_response": 1}"#, json!({}), "true or false"),
            (r#"{"reasoningThreshold": 0.6}"#, json!({}), "did you mean reasoning_threshold?"),
        ] {
            let file = FileConfig::parse(Path::new("/h/config.jsonc"), &format!("{{\"guard\": {text}}}")).unwrap();
            let guard = file.guard.map(|at| at.value).unwrap_or_default();
            assert_eq!(serde_json::to_value(guard).unwrap(), read, "{text}");
            assert_eq!(file.warnings.len(), usize::from(!warned.is_empty()), "{text}: {:?}", file.warnings);
            assert!(file.warnings.iter().all(|warning| warning.contains(warned)), "{text}: {:?}", file.warnings);
        }
    }
}
