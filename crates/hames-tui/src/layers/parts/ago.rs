//! How long ago something was, in the largest unit that says enough.

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Of these, one says "months" and "years" without a calendar.
const MONTH: u64 = 30 * DAY;
const YEAR: u64 = 365 * DAY;

/// Between two times in Unix milliseconds. A time that lies ahead, by another machine's clock, counts as now.
pub(crate) fn ago(then: u64, now: u64) -> String {
    let passed = now.saturating_sub(then);
    let (n, unit) = match passed {
        0..MINUTE => return "now".into(),
        MINUTE..HOUR => (passed / MINUTE, "min"),
        HOUR..DAY => (passed / HOUR, "h"),
        DAY..MONTH => (passed / DAY, "d"),
        MONTH..YEAR => (passed / MONTH, "mo"),
        _ => (passed / YEAR, "y"),
    };
    format!("{n} {unit} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_the_largest_unit_that_has_passed() {
        for (passed, says) in [
            (0, "now"),
            (59_999, "now"),
            (MINUTE, "1 min ago"),
            (HOUR - 1, "59 min ago"),
            (HOUR, "1 h ago"),
            (DAY - 1, "23 h ago"),
            (DAY, "1 d ago"),
            (MONTH - 1, "29 d ago"),
            (MONTH, "1 mo ago"),
            (YEAR - 1, "12 mo ago"),
            (YEAR, "1 y ago"),
            (25 * YEAR, "25 y ago"),
        ] {
            assert_eq!(ago(u64::MAX / 2, u64::MAX / 2 + passed), says);
        }
        assert_eq!(ago(10, 0), "now");
    }
}
