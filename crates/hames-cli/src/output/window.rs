//! What is said of decisions about the window: one line each, the same while a run goes on and in a transcript.

use hames_protocol::{Event, WindowLimited};

use super::clean;
use super::text::count;

/// The line for an event that is about the window; none for any other.
pub(crate) fn window_line(event: &Event) -> Option<String> {
    match event {
        Event::WindowLimited(limited) => Some(limited_line(limited)),
        _ => None,
    }
}

fn limited_line(limited: &WindowLimited) -> String {
    let how = match limited.how.as_str() {
        "stated" => "it says so itself",
        "observed" => "it read no more than that of what was sent",
        _ => "it refused more and says no number",
    };
    format!(
        "{} takes {} tokens and not {}: {how}; this is kept to from now on",
        clean::line(&limited.model.to_string()),
        count(limited.tokens),
        count(limited.before)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_of_a_window_is_one_line() {
        let limited = |how: &str| WindowLimited {
            model: "acme/large".parse().unwrap(),
            tokens: 8_192,
            before: 128_000,
            how: how.into(),
            words: None,
        };
        for (how, words) in [
            ("stated", "acme/large takes 8,192 tokens and not 128,000: it says so itself; this is kept to from now on"),
            (
                "estimated",
                "acme/large takes 8,192 tokens and not 128,000: it refused more and says no number; this is kept to from now on",
            ),
        ] {
            assert_eq!(window_line(&limited(how).into()).as_deref(), Some(words));
        }
    }
}
