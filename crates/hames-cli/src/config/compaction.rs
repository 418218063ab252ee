//! Reads `compaction`: how windows are kept where a session says nothing.

use hames_protocol::{CompactionSettings, CompactionStrategy};
use jsonc_parser::ast::Value;

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
                "trigger" => out.trigger = Some(self.percent(value, &key)?),
                "landing" => out.landing = Some(self.percent(value, &key)?),
                "summary_model" => out.summary_model = self.model_ref(value, &key)?.map(|model| model.value),
                _ => {}
            }
        }
        Ok(out)
    }

    fn percent(&self, value: &Value<'_>, key: &str) -> Result<u8, Stop> {
        let Value::NumberLit(number) = value else { return Err(self.wrong(value, key, "a percentage, 0 to 100")) };
        let percent = number.value.parse::<u8>().ok().filter(|percent| *percent <= 100);
        percent.ok_or_else(|| self.wrong(value, key, "a percentage, 0 to 100"))
    }
}
