//! The guard's words: to the model, and to whoever watches.

use super::repeats::Repeated;

/// What was found, and what is said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// For people: what was seen.
    pub(super) detected: String,
    /// For people: what was done.
    pub(super) done: &'static str,
    /// For the model.
    pub(super) text: String,
}

impl Said {
    fn new(detected: impl Into<String>, done: &'static str, text: impl Into<String>) -> Self {
        Self { detected: detected.into(), done, text: text.into() }
    }
}

/// Where many calls are meant, so many are named.
const NAMED: usize = 4;

pub(super) fn reasoning(share: f64) -> Said {
    Said::new(
        format!("the reasoning went round in circles ({:.0} % repeated)", share * 100.0),
        "cut the answer and told the model to act",
        "[Loop guard] Your reasoning kept repeating itself, so it was cut off. Stop thinking it over: decide with what you \
         know, and either make the next tool call or give your answer now.",
    )
}

pub(super) fn across(likeness: f64) -> Said {
    Said::new(
        format!("the reasoning is that of an earlier step again ({:.0} % alike)", likeness * 100.0),
        "told the model to go another way",
        "[Loop guard] You are thinking the same thoughts as a step or two ago. Take what came of them as known, do not go \
         over them again, and do something you have not done yet, or finish.",
    )
}

pub(super) fn empty() -> Said {
    Said::new(
        "an answer with neither text nor a tool call",
        "asked the model to go on",
        "[Loop guard] Your last answer had neither text nor a tool call. Go on with the task: make the next tool call, or \
         say what you found.",
    )
}

pub(super) fn failing(calls: &[(String, usize)]) -> Said {
    let names = named(calls.iter().map(|(label, _)| label.as_str()));
    let times = calls.iter().map(|(_, times)| *times).max().unwrap_or(0);
    Said::new(
        format!("{names} would fail as before ({times} times so far)"),
        "answered with the recorded failure",
        format!(
            "[Loop guard] The same call has failed the same way again and again: {names}. Calling it again will not help. \
             Read the error, then change the arguments, use another tool, or do without it."
        ),
    )
}

pub(super) fn streak(steps: usize, failures: &[String]) -> Said {
    let list: String = failures.iter().map(|failure| format!("\n- {failure}")).collect();
    Said::new(
        format!("{steps} steps in a row in which every call failed"),
        "summed up the failures and told the model to change its approach",
        format!(
            "[Loop guard] Every call of the last {steps} steps failed:{list}\nChange your strategy: find out first why they \
             fail (look at the files, the folder, the exact names), then try something different."
        ),
    )
}

pub(super) fn repeated(calls: &[(String, Repeated, bool)]) -> Said {
    let names = named(calls.iter().map(|(label, ..)| label.as_str()));
    let times = calls.iter().map(|(_, repeated, _)| repeated.times).max().unwrap_or(0);
    let in_a_row = if calls.iter().any(|(_, repeated, _)| repeated.in_a_row) { " in a row" } else { "" };
    let served = calls.iter().any(|(.., served)| *served);
    Said::new(
        format!("{names} gave the same result {times} times{in_a_row}"),
        if served { "answered from memory and told the model" } else { "told the model" },
        format!(
            "[Loop guard] This gave the same result {times} times{in_a_row}: {names}. Nothing has changed, so it will not \
             give anything new. Use the result you have and take the next step, or finish."
        ),
    )
}

pub(super) fn answer(share: f64, was_cut: bool) -> Said {
    Said::new(
        format!("the answer repeated itself ({:.0} % repeated)", share * 100.0),
        if was_cut { "cut the answer where it began to repeat" } else { "asked for the answer without repetitions" },
        if was_cut {
            "[Loop guard] Your answer began to repeat itself and was cut there. Finish it in a few sentences without \
             repeating what stands above."
        } else {
            "[Loop guard] Your answer repeats itself over and over. Give it once more, short and without repetitions."
        },
    )
}

/// A result that is given again. It says so first.
pub(super) fn given_before(output: &str) -> String {
    format!(
        "[Not run again: you made this very call before and nothing it reads has changed since. This is that earlier \
         result.]\n{output}"
    )
}

/// A failure that is given again.
pub(super) fn failed_before(times: usize, failure: &str) -> String {
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    format!(
        "[Not run again: this very call has failed {times} and nothing has changed since. This is the recorded failure; \
         change the call or do it another way.]\n{failure}"
    )
}

fn named<'a>(labels: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = labels.len();
    let mut text = labels.take(NAMED).collect::<Vec<_>>().join(", ");
    if count > NAMED {
        text.push_str(&format!(" and {} more", count - NAMED));
    }
    text
}
