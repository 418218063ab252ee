//! Reading a log: what was open when it ended, and what holds for every log.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The type of an event.
pub(super) fn kind(line: &Value) -> &str {
    line["event"]["type"].as_str().unwrap()
}

/// A call without an answer.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    pub(super) id: String,
    name: String,
    pub(super) is_started: bool,
    /// Whether its change of a file was announced.
    pub(super) changes: bool,
}

impl OpenCall {
    /// What the next holder of the session has to answer.
    pub(super) fn class(&self) -> &'static str {
        match (self.is_started, self.name.as_str()) {
            (false, _) => "not_run",
            (true, "Read" | "Grep" | "List" | "Glob") => "interrupted",
            (true, _) => "outcome_unknown",
        }
    }
}

/// What the last run of a log left open.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    pub(super) run: Value,
    pub(super) in_step: bool,
    pub(super) calls: Vec<OpenCall>,
    /// Whether a call of the last step was started or answered.
    pub(super) is_under_way: bool,
}

impl Open {
    /// `None` where the last run is over, or there is none.
    pub(super) fn of(log: &[Value]) -> Option<Open> {
        let from = log.iter().rposition(|line| kind(line) == "run.start")?;
        let mut open = Open { run: log[from]["run"].clone(), ..Open::default() };
        for line in &log[from..] {
            let event = &line["event"];
            let id = event["call_id"].as_str().unwrap_or_default();
            match kind(line) {
                "run.done" => return None,
                "step.start" => (open.in_step, open.is_under_way) = (true, false),
                "step.done" => open.in_step = false,
                "tool.call" => open.calls.push(OpenCall {
                    id: id.into(),
                    name: event["name"].as_str().unwrap().into(),
                    is_started: false,
                    changes: false,
                }),
                "tool.start" => {
                    open.is_under_way = true;
                    open.call(id).is_started = true;
                }
                "file.changed" => open.call(id).changes = true,
                "tool.done" | "tool.error" => {
                    open.is_under_way = true;
                    open.calls.retain(|call| call.id != id);
                }
                _ => {}
            }
        }
        Some(open)
    }

    fn call(&mut self, id: &str) -> &mut OpenCall {
        self.calls.iter_mut().find(|call| call.id == id).unwrap()
    }
}

/// Checks a log whose last run is over: everything that began has ended, once.
pub(super) fn sound(log: &[Value]) {
    for (seq, line) in (1..).zip(log) {
        assert_eq!(line["seq"], seq, "{line}");
    }
    assert_eq!(kind(&log[0]), "session.created");
    assert!(Open::of(log).is_none(), "the last run is open");
    let starts = log.iter().filter(|line| kind(line) == "run.start").count();
    let ends: Vec<&str> =
        log.iter().filter(|line| kind(line) == "run.done").map(|line| line["run"].as_str().unwrap()).collect();
    assert_eq!((ends.len(), ends.iter().collect::<HashSet<_>>().len()), (starts, starts), "every run ends once");
    calls_are_answered(log);
    let mut in_step = false;
    for line in log {
        match kind(line) {
            "step.start" => assert!(!std::mem::replace(&mut in_step, true), "{line}"),
            "step.done" => assert!(std::mem::replace(&mut in_step, false), "{line}"),
            "text.done" | "reasoning.done" | "tool.call" => assert!(in_step, "{line}"),
            "tool.start" | "tool.done" | "file.changed" | "run.done" => assert!(!in_step, "{line}"),
            _ => {}
        }
    }
}

fn calls_are_answered(log: &[Value]) {
    let mut calls: HashMap<&str, (u32, u32)> = HashMap::new();
    for line in log {
        let Some(id) = line["event"]["call_id"].as_str() else { continue };
        match kind(line) {
            "tool.call" => assert!(calls.insert(id, (0, 0)).is_none(), "asked twice: {line}"),
            "tool.start" => calls.get_mut(id).unwrap().0 += 1,
            "tool.done" | "tool.error" => calls.get_mut(id).unwrap().1 += 1,
            _ => {}
        }
    }
    for (id, (started, answered)) in calls {
        assert!(started <= 1 && answered == 1, "{id} started {started} times, answered {answered} times");
    }
}

/// Checks that `after` goes on where `before` ended: first what was open is closed, in the order of the log, then comes
/// the next run. Gives the bytes of text and reasoning that were saved from the open step.
pub(super) fn goes_on(before: &[Value], after: &[Value]) -> usize {
    assert!(after.starts_with(before), "what was in the log stays as it was");
    let mut rest = &after[before.len()..];
    let mut saved = 0;
    let Some(open) = Open::of(before).filter(|_| !rest.is_empty()) else { return saved };
    for line in rest.iter().take_while(|line| kind(line) != "run.start") {
        assert_eq!(line["run"], open.run, "{line}");
    }
    let mut next = |name: &str| {
        let (first, others) = rest.split_first().unwrap_or_else(|| panic!("{name} is missing at the end"));
        if kind(first) != name {
            return None;
        }
        rest = others;
        Some(first["event"].clone())
    };
    if open.in_step {
        for name in ["reasoning.done", "text.done"] {
            while let Some(block) = next(name) {
                assert_eq!(block["cut"], "crash", "{block}");
                saved += block["text"].as_str().unwrap().len();
            }
        }
        assert_eq!(next("step.done").expect("step.done closes the step")["whole"], false);
    }
    for call in &open.calls {
        let answer = next("tool.error").unwrap_or_else(|| panic!("no answer to {call:?}"));
        assert_eq!((answer["call_id"].as_str(), answer["class"].as_str()), (Some(&*call.id), Some(call.class())));
        assert!(!answer["error"].as_str().unwrap().trim().is_empty());
    }
    assert_eq!(next("done").expect("done")["result"], "interrupted");
    next("turn.done").expect("turn.done");
    let end = next("run.done").expect("run.done");
    assert_eq!((end["result"].as_str(), end["exit_code"].as_i64()), (Some("interrupted"), Some(130)));
    saved
}

/// Checks that every line with a seq that was printed is in the log, byte for byte.
pub(super) fn printed_is_kept(lines: &[String], log: &[Value]) {
    for line in lines {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let Some(seq) = value["seq"].as_u64() else { continue };
        let kept = log.get(usize::try_from(seq).unwrap() - 1);
        assert_eq!(kept.map(Value::to_string).as_ref(), Some(line), "printed and not kept");
    }
}
