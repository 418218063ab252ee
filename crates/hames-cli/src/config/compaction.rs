//! Reads `compaction`: how windows are kept where a session says nothing.

use hames_protocol::{CompactionSettings, CompactionStrategy, TRIGGER_PERCENT};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::keys;
use super::read::Reader;
use crate::exit::Stop;

impl Reader<'_> {
    pub(super) fn compaction(&mut self, value: &Value<'_>, key: &str) -> Result<CompactionSettings, Stop> {
        const STRATEGIES: &str = "carried, deterministic or prune-then-summarize";
        let mut out = CompactionSettings::default();
        for property in self.known(self.object(value, key)?, key, keys::COMPACTION) {
            let key = format!("{key}.{}", property.name.as_str());
            let value = &property.value;
            match property.name.as_str() {
                "auto" => out.auto = Some(self.boolean(value, &key)?.value),
                "strategy" => {
                    let read = |text: &str| text.parse::<CompactionStrategy>().ok();
                    out.strategy = Some(self.choice(value, &key, STRATEGIES, read)?.value);
                }
                "trigger" | "landing" => self.mark(&mut out, property.name.as_str(), value, &key)?,
                "summary_model" => out.summary_model = self.model_ref(value, &key)?.map(|model| model.value),
                _ => {}
            }
        }
        Ok(out)
    }

    /// A mark off its scale is brought onto it and said, and never a reason not to run.
    fn mark(&mut self, out: &mut CompactionSettings, name: &str, value: &Value<'_>, key: &str) -> Result<(), Stop> {
        let number = match value {
            Value::NumberLit(number) => number.value.parse::<f64>().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.wrong(value, key, "a percentage"))?;
        let (first, last) = (*TRIGGER_PERCENT.start(), *TRIGGER_PERCENT.end());
        let (kept, scale) = match name {
            "trigger" => (number.round().clamp(first.into(), last.into()), (first, last)),
            _ => (number.round().clamp(0.0, f64::from(last) - 1.0), (0, last - 1)),
        };
        // Between two bounds of a u8, so the cast is exact.
        let percent = Some(kept as u8);
        match name {
            "trigger" => out.trigger = percent,
            _ => out.landing = percent,
        }
        if (kept - number).abs() > 1e-9 {
            let place = format!("{}:{}: {key}", self.path.display(), self.line(value.start()));
            let (first, last) = scale;
            self.warnings.push(format!("{place} is {number}; {kept} is used, because it goes from {first} to {last}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::FileConfig;

    #[test]
    fn marks_off_their_scale_are_said_and_mended() {
        for (text, marks, warned) in [
            (r#"{"trigger": 60, "landing": 5}"#, (60, 5), ""),
            (r#"{"trigger": 5}"#, (20, 10), "compaction.trigger is 5; 20 is used, because it goes from 20 to 95"),
            (r#"{"trigger": 100}"#, (95, 10), "95 is used"),
            (r#"{"landing": 300}"#, (80, 79), "compaction.landing is 300; 94 is used"),
            (r#"{"landing": -1}"#, (80, 0), "compaction.landing is -1; 0 is used"),
            (r#"{"landing": 7.5}"#, (80, 8), "compaction.landing is 7.5; 8 is used"),
        ] {
            let file = FileConfig::parse(Path::new("/h/config.jsonc"), &format!("{{\"compaction\": {text}}}")).unwrap();
            assert_eq!(file.compaction.marks(), marks, "{text}");
            assert_eq!(file.warnings.len(), usize::from(!warned.is_empty()), "{text}: {:?}", file.warnings);
            assert!(file.warnings.iter().all(|warning| warning.contains(warned)), "{text}: {:?}", file.warnings);
        }
        let refused = FileConfig::parse(Path::new("/h/config.jsonc"), r#"{"compaction": {"trigger": "much"}}"#);
        assert!(refused.is_err(), "what is no number may mean anything");
    }
}
