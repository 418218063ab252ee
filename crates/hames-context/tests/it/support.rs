//! A session without an agent: a log, its folds, and the window over them.

use std::sync::Arc;

use hames_context::{Decision, Moment, Plan, Ready, Refused, SummaryAnswer, SummaryRequest, Terms, Window};
use hames_protocol::*;
use serde_json::{Value, json};

/// An event from its wire form: what later versions add to it is absent.
pub(crate) fn event(value: Value) -> Event {
    let event: Event = serde_json::from_value(value).unwrap();
    assert!(!matches!(event, Event::Unknown(_)), "{event:?}");
    event
}

/// A text of so many estimated tokens.
pub(crate) fn words(tokens: u64) -> String {
    "word ".repeat(usize::try_from(tokens * 4 / 5).unwrap())
}

/// Completed turns of one step each.
pub(crate) fn turns(log: &mut Log, count: usize, output: u64) {
    for n in 0..count {
        log.user(&format!("Question {n}: what is in file {n}?"));
        log.step("", &[(&format!("src/{n}.rs"), &words(output))]);
        log.answer(&format!("Answer {n}: nothing much."));
    }
}

/// What writes documents in tests.
pub(crate) type Author = dyn Fn(&SummaryRequest) -> SummaryAnswer;

/// A log with its folds.
pub(crate) struct Log {
    pub(crate) events: Vec<Envelope>,
    pub(crate) transcript: Transcript,
    pub(crate) state: WindowState,
    pub(crate) window: Window,
    blobs: u32,
    calls: u32,
    /// Texts that were kept, by name.
    pub(crate) kept: Vec<(String, String)>,
    pub(crate) lines: Vec<String>,
    pub(crate) asked: Vec<SummaryRequest>,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            events: Vec::new(),
            transcript: Transcript::default(),
            state: WindowState::default(),
            window: Window::new(Some("Recall")),
            blobs: 0,
            calls: 0,
            kept: Vec::new(),
            lines: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Records an event; gives its seq.
    pub(crate) fn push(&mut self, event: impl Into<Event>) -> u64 {
        let seq = self.events.len() as u64 + 1;
        let envelope = Envelope { seq: Some(seq), ..Envelope::detached(seq, event.into()) };
        self.transcript.apply_at(seq, &envelope.event);
        self.state.apply(&envelope);
        self.events.push(envelope);
        seq
    }

    /// Everything folded from the log anew.
    pub(crate) fn again(&self) -> Log {
        let mut log = Log::new();
        log.blobs = self.blobs;
        for envelope in &self.events {
            log.push(envelope.event.clone());
        }
        log
    }

    pub(crate) fn user(&mut self, text: &str) -> u64 {
        self.say(text, None)
    }

    pub(crate) fn say(&mut self, text: &str, delivery: Option<Delivery>) -> u64 {
        let parts = vec![Part::text(text)];
        self.push(event(json!({"type": "message.user", "parts": parts, "delivery": delivery})))
    }

    pub(crate) fn answer(&mut self, text: &str) -> u64 {
        self.push(TextDone { index: 0, text: text.into(), cut: None });
        self.push(Event::step_done_for_tests("stop"))
    }

    /// One step with calls, each as the target of its label and what it gave.
    pub(crate) fn step(&mut self, text: &str, calls: &[(&str, &str)]) -> Vec<u64> {
        if !text.is_empty() {
            self.push(TextDone { index: 0, text: text.into(), cut: None });
        }
        let ids: Vec<CallId> = calls.iter().map(|(target, _)| self.call(target)).collect();
        self.push(Event::step_done_for_tests("tool_calls"));
        ids.into_iter().zip(calls).map(|(id, (_, output))| self.result(id, output)).collect()
    }

    pub(crate) fn call(&mut self, target: &str) -> CallId {
        self.calls += 1;
        let id: CallId = format!("c{}", self.calls).into();
        self.push(event(json!({
            "type": "tool.call", "call_id": id, "provider_id": id, "name": "Read",
            "arguments": json!({"path": target}).to_string(), "label": Label::new("Read", target),
        })));
        id
    }

    pub(crate) fn result(&mut self, call_id: CallId, output: &str) -> u64 {
        self.push(event(json!({
            "type": "tool.done", "call_id": call_id, "name": "Read", "output": output, "duration_ms": 1,
        })))
    }

    pub(crate) fn plan(&mut self, moment: Moment, terms: &Terms) -> Plan {
        self.window.sync(&self.transcript, &self.state);
        self.window.plan(moment, terms)
    }

    pub(crate) fn record(&mut self, decision: &Decision) {
        let kept: Vec<Option<BlobRef>> = decision
            .keeps
            .iter()
            .map(|keep| {
                self.blobs += 1;
                let (name, text) = (format!("out-{}", self.blobs), keep.text());
                let bytes = text.len() as u64;
                self.kept.push((name.clone(), text));
                Some(BlobRef { hash: name.clone(), bytes, dropped: 0, name: Some(name) })
            })
            .collect();
        self.lines.push(decision.line.clone());
        decision.events(&kept).into_iter().for_each(|event| {
            self.push(event);
        });
    }

    /// Performs plans until there is a request, or nothing to do.
    pub(crate) fn settle(&mut self, moment: Moment, terms: &Terms, author: &Author) -> Result<Option<Ready>, Refused> {
        let mut plan = self.plan(moment, terms);
        for _ in 0..40 {
            plan = match plan {
                Plan::Ready(ready) => return Ok(Some(ready)),
                Plan::Nothing => return Ok(None),
                Plan::Refused(refused) => return Err(refused),
                Plan::Decide(decision) => {
                    self.record(&decision);
                    let again = match moment {
                        Moment::Overflow => Moment::AtBoundary,
                        Moment::Manual => Moment::AfterResponse,
                        other => other,
                    };
                    self.plan(again, terms)
                }
                Plan::Summarise(request) => {
                    request.events.iter().for_each(|event| {
                        self.push(event.clone());
                    });
                    let answer = author(&request);
                    self.asked.push(*request);
                    self.window.resume(answer)
                }
            };
        }
        panic!("the plan does not come to an end: {:?}", self.lines);
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.window.items().iter().map(text).collect()
    }
}

/// Everything an item says.
pub(crate) fn text(item: &Arc<Item>) -> String {
    match item.as_ref() {
        Item::User(message) => {
            let said = message.parts.iter().map(|part| match part {
                Part::Text { text } => text.clone(),
                Part::Image { name, .. } => format!("<{}>", name.clone().unwrap_or_default()),
            });
            said.collect::<Vec<_>>().join("\n")
        }
        Item::Assistant(answer) => answer.text.clone(),
        Item::Tool(result) => result.text.clone(),
    }
}

/// An author that says how much it was given.
pub(crate) fn terse(request: &SummaryRequest) -> SummaryAnswer {
    SummaryAnswer::Text(format!("- {} items summed up", request.items))
}
