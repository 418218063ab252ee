//! How long a provider asks to wait, from wherever it says so.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderMap;

use super::envelope::Envelope;

/// Words that are looked through: what a provider says first, not the request it may quote behind it.
const MAX_WORDS_BYTES: usize = 8 * 1024;

/// A delay from headers and body: `retry-after-ms`, `retry-after` (seconds or a date), a field of the body, its words, a
/// time of reset.
pub(crate) fn asked(headers: &HeaderMap, body: &Envelope, now: SystemTime) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = || header("retry-after-ms")?.parse::<f64>().ok().map(|ms| ms / 1000.0).and_then(seconds);
    let plain = || header("retry-after")?.parse::<f64>().ok().and_then(seconds);
    let date = || {
        let at = httpdate::parse_http_date(header("retry-after")?).ok()?;
        Some(at.duration_since(now).unwrap_or_default())
    };
    let reset = || (UNIX_EPOCH + Duration::from_secs(body.resets_at?)).duration_since(now).ok();
    millis().or_else(plain).or_else(date).or(body.delay).or_else(|| spoken(&body.words)).or_else(reset)
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// A delay in words: `try again in 18.642s`, `retry after 7 seconds`, `58 hours`, `1m30s`, or a bare `48s`.
pub(crate) fn spoken(words: &str) -> Option<Duration> {
    const LEADS: [&str; 13] = [
        "again in",
        "retry in",
        "retry after",
        "retrying in",
        "again after",
        "reset after",
        "reset in",
        "resets in",
        "available in",
        "in about",
        "please wait",
        "wait for",
        "wait",
    ];
    let words = &words[..super::boundary(words, MAX_WORDS_BYTES)].to_lowercase();
    let after = |lead: &&str| words.match_indices(*lead).find_map(|(at, _)| measure(&words[at + lead.len()..]));
    LEADS.iter().find_map(after).or_else(|| measure(words))
}

/// A measure of time at the start of the text.
fn measure(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start_matches([' ', ':', '~']);
    let mut total: Option<f64> = None;
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let Some(unit) = unit(&after[..letters]) else { break };
        total = Some(total.unwrap_or(0.0) + number * unit);
        rest = after[letters..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    total.and_then(seconds)
}

fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> Envelope {
        Envelope::read(text.as_bytes())
    }

    #[test]
    fn a_delay_is_found_wherever_it_is_said() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        type Headers<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(Headers<'_>, &str, Option<u64>)] = &[
            (&[("retry-after-ms", "1500"), ("retry-after", "9")], "", Some(1500)),
            (&[("retry-after", "16")], "", Some(16_000)),
            (&[("retry-after", "2.5")], "", Some(2_500)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], "", Some(10_000)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], "", Some(0)),
            (&[("retry-after", "soon")], "Please try again in 18.642s. Visit", Some(18_642)),
            (&[], "Please try again in 644ms.", Some(644)),
            (&[], "Rate limit exceeded. Try again in 35 seconds.", Some(35_000)),
            (&[], "Please retry after 7 seconds. Please contact", Some(7_000)),
            (&[], "Please try again in 58 hours.", Some(208_800_000)),
            (&[], "try again in 1m30.5s", Some(90_500)),
            (&[], "You may try again in 2 minutes and 5 seconds.", Some(125_000)),
            (&[], "Retrying in 1 hour, 1 minute", Some(3_660_000)),
            (&[], "please try again after 1 seconds", Some(1_000)),
            (&[], "please wait a moment. If it goes on, wait 20 s.", Some(20_000)),
            (&[], "quota will reset after 2s", Some(2_000)),
            (&[], r#"{"error":"Model x is currently loading","estimated_time":20.5}"#, Some(20_500)),
            (&[], r#"{"error":{"retry_after":"3"}}"#, Some(3_000)),
            (&[], r#"{"error":{"details":[{"retryDelay":{"seconds":7}}]}}"#, Some(7_000)),
            (&[], r#"{"error":{"resets_at":784111800000}}"#, Some(23_000)),
            (&[], r#"{"error":{"details":[{"retryDelay":"48s"}]}}"#, Some(48_000)),
            (&[], r#"{"error":{"resets_at":784111800}}"#, Some(23_000)),
            (&[], r#"{"error":{"resets_in_seconds":12}}"#, Some(12_000)),
            (&[], "please wait a moment and try again", None),
            (&[], "please wait before trying again", None),
            (&[], "Limit 30000, Used 14567", None),
            (&[("retry-after", "-1")], "", None),
            (&[("retry-after", "1e300")], "", None),
        ];
        for (headers, text, expected) in cases {
            let mut map = HeaderMap::new();
            for (name, value) in *headers {
                map.insert(*name, value.parse().unwrap());
            }
            let found = asked(&map, &body(text), now).map(|d| d.as_millis() as u64);
            assert_eq!(found, *expected, "{headers:?} {text}");
        }
    }
}
