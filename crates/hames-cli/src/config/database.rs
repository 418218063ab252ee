//! What the configuration says about the database: from when on making it smaller is suggested.

use hames_store::VacuumThresholds;
use jsonc_parser::ast::Value;

use super::keys;
use super::read::Reader;
use crate::exit::Stop;

const MB: u64 = 1 << 20;
/// A number of megabytes above this is a mistake: a million terabytes.
const MB_LIMIT: u64 = 1 << 40;

impl Reader<'_> {
    pub(super) fn database(&mut self, value: &Value<'_>, key: &str) -> Result<VacuumThresholds, Stop> {
        let mut out = VacuumThresholds::default();
        for property in self.known(self.object(value, key)?, key, keys::DATABASE) {
            let key = format!("{key}.{}", property.name.as_str());
            match property.name.as_str() {
                "vacuum_free_percent" => {
                    let percent = self.whole(&property.value, &key, 100, "a whole number from 0 to 100")?;
                    out.free_percent = u8::try_from(percent).unwrap_or(100);
                }
                "vacuum_free_mb" => {
                    out.free_bytes = MB * self.whole(&property.value, &key, MB_LIMIT, "a whole number of megabytes")?;
                }
                _ => {}
            }
        }
        Ok(out)
    }

    fn whole(&self, value: &Value<'_>, key: &str, most: u64, wanted: &str) -> Result<u64, Stop> {
        let Value::NumberLit(number) = value else { return Err(self.wrong(value, key, wanted)) };
        number.value.parse().ok().filter(|n| *n <= most).ok_or_else(|| self.wrong(value, key, wanted))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::file::FileConfig;

    fn read(text: &str) -> Result<VacuumThresholds, String> {
        let parsed = FileConfig::parse(Path::new("/h/config.jsonc"), &format!("{{\"database\": {text}}}"));
        parsed.map(|config| config.vacuum).map_err(|stop| format!("{stop:?}"))
    }

    #[test]
    fn thresholds_are_what_the_file_says() {
        let usual = VacuumThresholds::default();
        for (text, expected) in [
            ("{}", usual),
            ("{\"vacuum_free_percent\": 50}", VacuumThresholds { free_percent: 50, ..usual }),
            ("{\"vacuum_free_mb\": 0}", VacuumThresholds { free_bytes: 0, ..usual }),
            (
                "{\"vacuum_free_percent\": 0, \"vacuum_free_mb\": 3}",
                VacuumThresholds { free_percent: 0, free_bytes: 3 << 20 },
            ),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for (text, says) in [
            ("7", "database should be an object"),
            ("{\"vacuum_free_percent\": 101}", "database.vacuum_free_percent should be a whole number from 0 to 100"),
            ("{\"vacuum_free_percent\": -1}", "a whole number"),
            ("{\"vacuum_free_percent\": 2.5}", "a whole number"),
            ("{\"vacuum_free_mb\": \"5\"}", "database.vacuum_free_mb should be a whole number of megabytes"),
            ("{\"vacuum_free_mb\": 99999999999999}", "a whole number of megabytes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
