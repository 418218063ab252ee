//! Numbers for people.

use hames_protocol::Cost;
pub(crate) use hames_protocol::grouped as count;

/// Tokens, short: `74`, `6.9k`, `1.2M`.
pub(crate) fn tokens(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}.{}k", n / 1_000, n % 1_000 / 100),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}

/// A time: `676ms`, `2.3s`, `4m 5s`.
pub(crate) fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{}m {}s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// A time that goes on, in whole seconds: `12s`, `4m 5s`, `2h 10m`.
pub(crate) fn elapsed(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        seconds => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Bytes: `812 B`, `4.0 KB`, `9.5 MB`.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0..1_024 => format!("{n} B"),
        1_024..1_048_576 => format!("{}.{} KB", n / 1_024, n % 1_024 * 10 / 1_024),
        _ => format!("{}.{} MB", n / 1_048_576, n % 1_048_576 * 10 / 1_048_576),
    }
}

/// Money; a price that was computed from a list is marked as about right.
pub(crate) fn money(cost: &Cost) -> String {
    let about = if cost.computed { "~" } else { "" };
    let sign =
        if cost.currency == "USD" { "$".to_owned() } else { format!("{} ", super::text::clean_line(&cost.currency)) };
    let (units, rest) = (cost.micros / 1_000_000, cost.micros % 1_000_000);
    match cost.micros {
        0 => format!("{sign}0"),
        1..100 => format!("{about}{sign}<0.0001"),
        100..1_000_000 => format!("{about}{sign}0.{:04}", rest / 100),
        _ => format!("{about}{sign}{}.{:02}", count(units), rest / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), text);
        }
        for (n, text) in [(74, "74"), (6_943, "6.9k"), (1_250_000, "1.2M")] {
            assert_eq!(tokens(n), text);
        }
        for (n, text) in [(676, "676ms"), (2_340, "2.3s"), (245_000, "4m 5s")] {
            assert_eq!(seconds(n), text);
        }
        for (n, text) in [(812, "812 B"), (4_096, "4.0 KB"), (10_000_000, "9.5 MB")] {
            assert_eq!(bytes(n), text);
        }
        let cost = |micros, currency: &str, computed| money(&Cost { micros, currency: currency.into(), computed });
        for (shown, text) in [
            (cost(0, "USD", false), "$0"),
            (cost(12, "USD", true), "~$<0.0001"),
            (cost(12_345, "USD", false), "$0.0123"),
            (cost(3_456_789, "EUR", true), "~EUR 3.45"),
        ] {
            assert_eq!(shown, text);
        }
    }
}
