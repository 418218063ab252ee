//! Where a death is meant to fall, and where it fell.

use std::time::Duration;

use serde_json::Value;

use super::dice::Dice;
use super::log::{Open, kind};

/// What a death may fall into, as the log tells afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Before anything of this process was in the log, or after its run was over.
    Outside,
    /// Within a request of which nothing was shown yet.
    Waiting,
    /// Within an answer, a part of it shown.
    MidDelta,
    /// Between `step.done` and the first `tool.start`.
    BeforeStart,
    /// Between `tool.start` and its answer.
    Running,
    /// Between `file.changed` and the answer: the rename is just before or just behind.
    AroundRename,
    /// Between two calls, or two steps.
    Between,
}

impl Place {
    /// Reads it off the log. `shown` says whether a piece of the open step was printed.
    pub(super) fn of(log: &[Value], shown: bool) -> Place {
        let Some(open) = Open::of(log) else { return Place::Outside };
        if open.in_step {
            return if shown { Place::MidDelta } else { Place::Waiting };
        }
        match (open.calls.iter().any(|call| call.changes), open.calls.iter().any(|call| call.is_started)) {
            (true, _) => Place::AroundRename,
            (_, true) => Place::Running,
            _ if !open.calls.is_empty() && !open.is_under_way => Place::BeforeStart,
            _ => Place::Between,
        }
    }
}

/// What a death is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aim {
    At(Place),
    /// While a child that left its command's session is alive.
    Child,
    /// Any time at all.
    Anywhere,
}

impl Aim {
    /// What has to be hit at least [`super::life::EACH`] times.
    pub(super) const WANTED: [Aim; 5] = [
        Aim::At(Place::MidDelta),
        Aim::At(Place::BeforeStart),
        Aim::At(Place::Running),
        Aim::At(Place::AroundRename),
        Aim::Child,
    ];
}

/// When to kill.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// So long after the start.
    After(Duration),
    /// So long after the `count`th line that holds `words`.
    Line { words: &'static str, count: u64, delay: Duration },
}

impl When {
    /// A moment that is likely to be what is aimed at.
    pub(super) fn choose(aim: Aim, dice: &mut Dice) -> When {
        let mut line = |words, lines, delay| When::Line {
            words,
            count: 1 + dice.below(lines),
            delay: if dice.one_in(2) { Duration::ZERO } else { dice.time(delay) },
        };
        match aim {
            Aim::At(Place::MidDelta) => line(".delta\"", 200, Duration::from_millis(3)),
            Aim::At(Place::BeforeStart) => line("\"type\":\"step.done\"", 6, Duration::from_nanos(1000)),
            Aim::At(Place::Running) => line("\"type\":\"tool.start\"", 11, Duration::from_millis(20)),
            Aim::At(Place::AroundRename) => line("\"type\":\"file.changed\"", 3, Duration::from_millis(1)),
            Aim::Child => line("\"type\":\"step.start\"", 4, Duration::from_millis(300)).later(3),
            Aim::At(_) | Aim::Anywhere => When::After(dice.time(Duration::from_millis(1500))),
        }
    }

    /// Only after so many lines more.
    fn later(self, more: u64) -> When {
        match self {
            When::Line { words, count, delay } => When::Line { words, count: count + more, delay },
            after => after,
        }
    }
}

/// Bytes of text and reasoning of the step that the log began last, as far as they were printed.
pub(super) fn shown_of_last_step(printed: &[Value], log: &[Value]) -> usize {
    let Some(start) = log.iter().rfind(|line| kind(line) == "step.start") else { return 0 };
    let visible = printed.iter().filter(|line| {
        matches!(kind(line), "text.delta" | "reasoning.delta")
            && (&line["run"], &line["step"]) == (&start["run"], &start["step"])
    });
    visible.map(|line| line["event"]["text"].as_str().unwrap().len()).sum()
}
