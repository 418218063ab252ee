//! What the unit tests of this crate share.

use proptest::test_runner::Config;

/// 64 cases, or as many as `HAMES_PROPTEST_CASES` says.
pub(crate) fn cases() -> Config {
    let cases = std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    Config { cases, failure_persistence: None, ..Config::default() }
}
