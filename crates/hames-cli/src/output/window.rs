//! What is said of decisions about the window: one line each, the same while a run goes on and in a transcript.

use hames_protocol::{CheckpointKind, CompactionAsked, Event, WindowCheckpoint, WindowLimited};

use super::clean;
use super::text::count;

/// Said where a request did not fit and goes out again.
pub(crate) const SENT_SMALLER: &str = "the request did not fit; it is made smaller and sent again";

/// The line for an event that is about the window; none for any other.
pub(crate) fn window_line(event: &Event) -> Option<String> {
    match event {
        Event::WindowLimited(limited) => Some(limited_line(limited)),
        Event::WindowMasked(masked) => {
            let what = match masked.calls.len() {
                1 => "1 old result is sent as one line".to_owned(),
                many => format!("{} old results are sent as one line each", count(many as u64)),
            };
            Some(format!("{what} from here on (about {} tokens less)", count(masked.tokens)))
        }
        Event::WindowRetired(retired) => {
            Some(format!("finished calls are left out from here on (about {} tokens less)", count(retired.tokens)))
        }
        Event::WindowExternalised(message) => {
            Some(format!("a long message is sent in part (about {} tokens less)", count(message.tokens)))
        }
        Event::CompactionStart(start) => {
            Some(format!("compacting ({}): the window has about {} tokens", start.reason, count(start.tokens_before)))
        }
        Event::CompactionAsked(asked) => asked_line(asked),
        Event::WindowCheckpoint(checkpoint) => Some(checkpoint_line(checkpoint)),
        Event::CompactionDone(done) => Some(format!(
            "compacted: about {} tokens instead of {}",
            count(done.tokens_after),
            count(done.tokens_before)
        )),
        _ => None,
    }
}

fn asked_line(asked: &CompactionAsked) -> Option<String> {
    let failure = asked.failure.as_deref()?;
    Some(format!("{} wrote no document: {}", clean::line(&asked.model.to_string()), clean::line(failure)))
}

/// Where the window begins: everything above stays in the session.
fn checkpoint_line(checkpoint: &WindowCheckpoint) -> String {
    let how = match checkpoint.kind {
        CheckpointKind::Summary => "with a document of the state of the work",
        CheckpointKind::Rolled => "with a list of what was said and done",
        CheckpointKind::Trim => "without a new document",
    };
    let later = if checkpoint.deferred.is_some() { "; the oldest part was too much to be read for it" } else { "" };
    format!("the context begins here, {how}; everything above is kept in the session{later}")
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
    use hames_protocol::{CompactionDone, CompactionStart, WindowMasked};

    use super::*;

    #[test]
    fn each_decision_is_one_line() {
        let limited = |how: &str| -> Event {
            WindowLimited {
                model: "acme/large".parse().unwrap(),
                tokens: 8_192,
                before: 128_000,
                how: how.into(),
                words: None,
            }
            .into()
        };
        let asked = |failure: Option<&str>| -> Event {
            CompactionAsked {
                model: "acme/large".parse().unwrap(),
                compress: false,
                usage: None,
                cost: None,
                duration_ms: 0,
                failure: failure.map(str::to_owned),
            }
            .into()
        };
        for (event, words) in [
            (limited("stated"), Some("acme/large takes 8,192 tokens and not 128,000: it says so itself")),
            (limited("estimated"), Some("it refused more and says no number; this is kept to from now on")),
            (asked(None), None),
            (asked(Some("busy\u{1b}[31m")), Some("acme/large wrote no document: busy")),
            (
                CompactionStart { reason: "overflow".into(), tokens_before: 9_000 }.into(),
                Some("compacting (overflow): the window has about 9,000 tokens"),
            ),
            (
                CompactionDone { tokens_before: 9_000, tokens_after: 1_200 }.into(),
                Some("compacted: about 1,200 tokens instead of 9,000"),
            ),
            (
                WindowMasked { calls: vec!["a".into(), "b".into()], tokens: 5_000, kept: vec![] }.into(),
                Some("2 old results are sent as one line each from here on (about 5,000 tokens less)"),
            ),
            (Event::step_done_for_tests("stop"), None),
        ] {
            let line = window_line(&event);
            match words {
                Some(words) => assert!(line.as_deref().is_some_and(|line| line.contains(words)), "{line:?}"),
                None => assert_eq!(line, None),
            }
        }
    }
}
