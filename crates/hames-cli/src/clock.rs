//! Times as people read them.

use crate::sys;

/// A day where this machine is: `2026-11-30`.
pub(crate) fn local_date(unix_ms: u64) -> String {
    local(unix_ms).map_or_else(unknown, |t| format!("{:04}-{:02}-{:02}", t.year, t.month, t.day))
}

/// A minute where this machine is: `2026-11-30 19:45`.
pub(crate) fn local_minute(unix_ms: u64) -> String {
    local(unix_ms)
        .map_or_else(unknown, |t| format!("{:04}-{:02}-{:02} {:02}:{:02}", t.year, t.month, t.day, t.hour, t.minute))
}

/// A millisecond in UTC, for logs: `2026-11-30T19:45:50.383Z`.
pub(crate) fn utc_stamp(unix_ms: u64) -> String {
    let at = seconds(unix_ms).and_then(sys::utc_time);
    at.map_or_else(unknown, |t| {
        let date = format!("{:04}-{:02}-{:02}", t.year, t.month, t.day);
        format!("{date}T{:02}:{:02}:{:02}.{:03}Z", t.hour, t.minute, t.second, unix_ms % 1_000)
    })
}

fn local(unix_ms: u64) -> Option<sys::WallClock> {
    seconds(unix_ms).and_then(sys::local_time)
}

fn seconds(unix_ms: u64) -> Option<i64> {
    i64::try_from(unix_ms / 1_000).ok()
}

fn unknown() -> String {
    "?".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_the_calendar_says() {
        for (unix_ms, stamp) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (1_796_050_000_123, "2026-11-30T14:46:40.123Z"),
        ] {
            assert_eq!(utc_stamp(unix_ms), stamp);
        }
        // Somewhere on earth it is the day before or after.
        assert!(local_date(1_796_050_000_123).starts_with("2026-1"));
        assert_eq!(local_minute(1_796_050_000_123).len(), "2026-11-30 12:06".len());
        assert!(!utc_stamp(u64::MAX).is_empty());
    }
}
