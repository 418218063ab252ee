//! Choices from a seed, the size of a test, and what it reports.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;

/// Numbers to choose by: the same from the same seed (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    /// Where `HAMES_SEED` says, apart from those of other tests.
    pub(crate) fn new(salt: u64) -> Dice {
        Dice(seed() ^ salt)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A time below `limit`.
    pub(crate) fn time(&mut self, limit: Duration) -> Duration {
        Duration::from_micros(self.below(limit.as_micros().try_into().unwrap()))
    }
}

pub(crate) fn seed() -> u64 {
    std::env::var("HAMES_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// `few` by default, `full` in a soak.
pub(crate) fn size<T>(few: T, full: T) -> T {
    if std::env::var_os("HAMES_SOAK").is_some_and(|value| value == "1") { full } else { few }
}

/// What a test counted, as a line; a soak's file gets it too.
pub(crate) fn report(line: &Value) -> String {
    if let Some(path) = std::env::var_os("HAMES_SOAK_REPORT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
    line.to_string()
}
