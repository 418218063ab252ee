//! Any history, any window, any strategy: whatever is sent can be sent.

use std::sync::Arc;

use hames_context::{
    Budget, Carried, Deterministic, Moment, Plan, Policy, PruneThenSummarize, SummaryAnswer, SummaryRequest, Terms,
    WireRules, estimate_item,
};
use hames_protocol::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Log, event, text};

fn cases() -> ProptestConfig {
    let cases = std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    ProptestConfig { max_shrink_time: 20_000, ..ProptestConfig::with_cases(cases) }
}

/// What happens in a session. Sizes are shares of the window, so that small and large ones see the same trouble.
#[derive(Clone, Debug)]
enum Act {
    /// A run begins: size of the message in thousandths of the window, images, whether it is Japanese.
    Turn {
        size: u64,
        images: usize,
        cjk: bool,
        note: bool,
    },
    /// A step with calls: thousandths of the window of each result, whether it failed, its images; and of the arguments.
    Step {
        results: Vec<(u64, bool, usize)>,
        arguments: u64,
        says: bool,
        cjk: bool,
        thinks: bool,
    },
    /// The model answers, and the run goes on or ends.
    Answer {
        size: u64,
    },
    /// A steer.
    Steer {
        size: u64,
    },
    /// A nudge of one of three kinds.
    Nudge(u8),
    /// An answer that is cut, with or without text.
    Cut {
        says: bool,
    },
    /// A person stops the run: so many calls are answered without having run.
    Abort {
        calls: usize,
        says: bool,
    },
    /// The model pins this many texts, in place of those it had pinned.
    ModelPins(Vec<u64>),
    /// A text is pinned, or something that was said before.
    PinText {
        size: u64,
    },
    PinItem(usize),
    Unpin(usize),
    /// Somebody compacts by hand.
    Compact,
    /// The provider says it is full.
    Overflow,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let size = || prop_oneof![8 => 0u64..20, 4 => 20u64..120, 1 => 120u64..900];
    let result = || {
        let size = prop_oneof![1 => Just(0u64), 8 => 0u64..30, 4 => 30u64..110, 1 => 110u64..700];
        (size, prop::bool::weighted(0.2), prop_oneof![12 => Just(0usize), 1 => 1usize..4])
    };
    let act = prop_oneof![
        5 => (size(), prop_oneof![9 => Just(0usize), 1 => 1usize..4], prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(size, images, cjk, note)| Act::Turn { size, images, cjk, note }),
        16 => (prop::collection::vec(result(), 1..5), 0u64..20, any::<bool>(), prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(results, arguments, says, cjk, thinks)| Act::Step { results, arguments, says, cjk, thinks }),
        5 => size().prop_map(|size| Act::Answer { size }),
        2 => size().prop_map(|size| Act::Steer { size }),
        2 => (0u8..3).prop_map(Act::Nudge),
        1 => any::<bool>().prop_map(|says| Act::Cut { says }),
        1 => (0usize..4, any::<bool>()).prop_map(|(calls, says)| Act::Abort { calls, says }),
        1 => prop::collection::vec(1u64..40, 0..4).prop_map(Act::ModelPins),
        1 => (1u64..60).prop_map(|size| Act::PinText { size }),
        1 => (0usize..40).prop_map(Act::PinItem),
        1 => (0usize..4).prop_map(Act::Unpin),
        1 => Just(Act::Compact),
        1 => Just(Act::Overflow),
    ];
    prop::collection::vec(act, 1..60)
}

fn words(n: u64, of: &str, tokens: u64, cjk: bool) -> String {
    let more = if cjk { "設定を確認🙂。" } else { "and then some more words of it, " };
    format!("{of}{n} {}", more.repeat(usize::try_from(tokens / 8).unwrap()))
}

fn strategy(n: u8) -> Arc<dyn hames_context::Strategy> {
    match n % 3 {
        0 => Arc::new(Carried),
        1 => Arc::new(Deterministic),
        _ => Arc::new(PruneThenSummarize::default()),
    }
}

/// An author that does well, says too much, says nothing, fails.
fn author(kind: u8) -> impl Fn(&SummaryRequest) -> SummaryAnswer {
    move |request: &SummaryRequest| match kind % 4 {
        0 => SummaryAnswer::Text("- the work goes on".into()),
        1 => SummaryAnswer::Text(words(0, "too much", request.target_tokens * 3, false)),
        2 => SummaryAnswer::Text(" \n".into()),
        _ => SummaryAnswer::Failed("the provider is away".into()),
    }
}

struct Life {
    log: Log,
    terms: Terms,
    author: u8,
    n: u64,
    last: Option<(u64, String)>,
    in_turn: bool,
}

/// An image of so many bytes.
fn image(name: &str) -> Part {
    let blob = BlobRef { hash: name.into(), bytes: 100, dropped: 0, name: None };
    Part::Image { blob, media_type: "image/png".into(), name: Some("a.png".into()) }
}

impl Life {
    fn tokens(&self, thousandths: u64) -> u64 {
        (self.terms.budget.window * thousandths / 1_000).min(40_000)
    }

    fn act(&mut self, act: &Act) {
        self.n += 1;
        let n = self.n;
        match act {
            Act::Turn { size, images, cjk, note } => {
                // More than half of a window of 128k, and no more than that.
                let most = self.terms.budget.window * size / 1_000;
                let said = words(n, "please", most.min(70_000), *cjk);
                let mut parts = vec![Part::text(said.clone())];
                parts.extend((0..*images).map(|at| image(&format!("{n}-{at}"))));
                let note = note.then(|| format!("[Mode: build. Turn {n}.]"));
                let seq = self.log.push(event(json!({"type": "message.user", "parts": parts, "note": note})));
                self.last = Some((seq, said));
                self.in_turn = true;
            }
            _ if !self.in_turn => self.act(&Act::Turn { size: 3, images: 0, cjk: false, note: false }),
            Act::Step { results, arguments, says, cjk, thinks } => {
                if *thinks {
                    let block = json!({"type": "reasoning.done", "index": 0, "text": words(n, "hm", 30, false), "field": "reasoning_content"});
                    self.log.push(event(block));
                }
                if *says {
                    self.log.push(TextDone { index: 0, text: format!("I look at {n}."), cut: None });
                }
                let ids: Vec<CallId> = (0..results.len())
                    .map(|at| self.log.call(&words(n, &format!("f{at}-"), self.tokens(*arguments), false)))
                    .collect();
                self.log.push(Event::step_done_for_tests("tool_calls"));
                // Answers come in any order.
                for (at, id) in ids.into_iter().enumerate().rev() {
                    let (size, failed, images) = results[at];
                    let images: Vec<Part> =
                        (0..images).map(|image_at| image(&format!("{n}-{at}-{image_at}"))).collect();
                    let output = if size == 0 { String::new() } else { words(n, "out", self.tokens(size), *cjk) };
                    if failed {
                        self.log.push(event(json!({
                            "type": "tool.error", "call_id": id, "name": "Read", "error": output, "class": "failed",
                        })));
                    } else {
                        self.log.push(event(json!({
                            "type": "tool.done", "call_id": id, "name": "Read", "output": output, "duration_ms": 1,
                            "capability": *thinks && at == 0, "attachments": images,
                        })));
                    }
                }
            }
            Act::Answer { size } => {
                self.log.answer(&words(n, "answer", self.tokens(*size), false));
                self.in_turn = false;
                self.settle(Moment::AfterResponse);
                return;
            }
            Act::Steer { size } => {
                let said = words(n, "steer", self.tokens(*size), false);
                let seq = self.log.say(&said, Some(Delivery::Steer));
                self.last = Some((seq, said));
            }
            Act::Nudge(kind) => {
                let text = format!("You repeat yourself ({n}).");
                self.log.push(event(json!({"type": "nudge", "kind": format!("kind{kind}"), "text": text})));
            }
            Act::Cut { says } => {
                if *says {
                    self.log.push(TextDone { index: 0, text: "I was".into(), cut: Some(Cut::Interrupt) });
                }
                self.log.push(Event::step_done_for_tests("stop"));
                self.act(&Act::Steer { size: 2 });
                return;
            }
            Act::Abort { calls, says } => {
                if *says {
                    self.log.push(TextDone { index: 0, text: "I was about to".into(), cut: Some(Cut::Abort) });
                }
                let ids: Vec<CallId> = (0..*calls).map(|at| self.log.call(&format!("never-{at}"))).collect();
                self.log.push(Event::step_done_for_tests("tool_calls"));
                for id in ids {
                    self.log.push(event(json!({
                        "type": "tool.error", "call_id": id, "name": "Read", "error": "Not run: the run was stopped.",
                        "class": "not_run",
                    })));
                }
                self.in_turn = false;
                self.act(&Act::Turn { size: 2, images: 0, cjk: false, note: false });
                return;
            }
            Act::ModelPins(sizes) => {
                let texts: Vec<String> = sizes.iter().map(|size| words(n, "mine", self.tokens(*size), false)).collect();
                self.log.window.sync(&self.log.transcript, &self.log.state);
                let others = self.log.window.pinned_by_people();
                if self.terms.check_texts(&texts, others).is_ok() {
                    let before: Vec<u64> =
                        self.log.state.pins.iter().filter(|pin| pin.by == PinnedBy::Model).map(|pin| pin.seq).collect();
                    for pin in before {
                        self.log.push(PinRemoved { pin });
                    }
                    for text in texts {
                        self.log.push(PinAdded { target: PinTarget::Text { text }, by: PinnedBy::Model });
                    }
                }
            }
            Act::PinText { size } => {
                let target = PinTarget::Text { text: words(n, "pin", self.tokens(*size), false) };
                self.pin(target);
            }
            Act::PinItem(at) => {
                let places = self.log.transcript.places();
                let Some(place) = places.get(places.len().saturating_sub(1 + at)) else { return };
                self.pin(PinTarget::Message { seq: place.event });
            }
            Act::Unpin(at) => {
                let Some(pin) = self.log.state.pins.get(*at).map(|pin| pin.seq) else { return };
                self.log.push(PinRemoved { pin });
            }
            Act::Compact => {
                self.settle(Moment::Manual);
                return;
            }
            Act::Overflow => {
                self.settle(Moment::Overflow);
                return;
            }
        }
        self.settle(Moment::AtBoundary);
    }

    fn pin(&mut self, target: PinTarget) {
        self.log.window.sync(&self.log.transcript, &self.log.state);
        if self.log.window.check_pin(&target, &self.terms).is_ok() {
            self.log.push(PinAdded { target, by: PinnedBy::User });
        }
    }

    /// Plans, performs, and holds what would be sent against everything it has to be.
    fn settle(&mut self, moment: Moment) {
        let author = author(self.author);
        let sent = self.log.settle(moment, &self.terms, &author).unwrap_or_else(|refused| panic!("{refused}"));
        let Some(ready) = sent else { return };
        let items = self.log.window.items().to_vec();
        WireRules::default().check(&items).unwrap();
        let tokens: u64 = items.iter().map(|item| estimate_item(item)).sum();
        assert_eq!(tokens + self.terms.head_tokens, ready.input_estimate);
        let budget = self.terms.budget;
        let counted = ready.input_estimate * self.terms.ratio / 1_000;
        assert!(counted + ready.max_output_tokens + budget.margin() <= budget.window);
        assert!(ready.max_output_tokens >= 256.min(budget.wanted_output));
        self.holds_the_last_message(&items);
        self.holds_pins(&items);
        // Computed twice, and from the log alone, it is the same.
        let same = |log: &mut Log| {
            let Plan::Ready(again) = log.plan(Moment::AtBoundary, &self.terms) else { panic!("another plan") };
            assert_eq!(again, ready);
            assert_eq!(log.window.items(), items);
        };
        same(&mut self.log);
        if self.n.is_multiple_of(4) {
            same(&mut self.log.again());
        }
    }

    fn holds_the_last_message(&self, items: &[Arc<Item>]) {
        let Some((seq, said)) = &self.last else { return };
        let all: Vec<String> = items.iter().map(text).collect();
        if let Some(part) = self.log.state.externalised.get(seq) {
            let head = said.get(..usize::try_from(part.head_bytes).unwrap().min(said.len())).unwrap_or("");
            assert!(all.iter().any(|text| text.contains(head)), "the head of the last message is missing");
            let kept = part.blob.as_ref().and_then(|blob| blob.name.clone()).unwrap();
            let whole = self.log.kept.iter().find(|(name, _)| *name == kept);
            assert!(whole.is_none_or(|(_, text)| text.contains(said.as_str())));
        } else {
            assert!(all.iter().any(|text| text.contains(said.as_str())), "the last message is missing");
        }
    }

    fn holds_pins(&self, items: &[Arc<Item>]) {
        let all: Vec<String> = items.iter().map(text).collect();
        let rolled = self.log.state.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.pin_tokens.is_some());
        for pin in &self.log.state.pins {
            let places = self.log.transcript.places();
            let at = places.iter().position(|place| place.event == pin.item() || place.seq == pin.item()).unwrap();
            // Of images that left, words remain.
            let said = text(&self.log.transcript.items()[at]).replace("\n<a.png>", "");
            let shown = match self.log.state.externalised.get(&pin.item()) {
                Some(part) => said[..usize::try_from(part.head_bytes).unwrap().min(said.len())].to_owned(),
                None if rolled => said.chars().take(8).collect(),
                None => said,
            };
            assert!(all.iter().any(|text| text.contains(&shown)), "a pin is missing: {shown}");
        }
    }
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn whatever_is_sent_can_be_sent(
        acts in acts(),
        window in prop_oneof![Just(2_048u64), Just(4_096), Just(8_192), Just(32_768), Just(131_072), Just(1_000_000)],
        kind in 0u8..3,
        author in 0u8..4,
        trigger in prop_oneof![3 => Just(80u8), 2 => 0u8..=100],
        landing in prop_oneof![3 => Just(10u8), 1 => Just(0), 1 => Just(60)],
        head in 0u64..40,
        ratio in prop_oneof![3 => Just(1_000u64), 1 => 500u64..2_000],
    ) {
        let budget = Budget { window, wanted_output: 16_384 };
        let policy = Policy { trigger, landing, strategy: strategy(kind), ..Policy::default() };
        let terms = Terms { policy, ratio, ..Terms::new(budget, window * head / 200) };
        let mut life = Life { log: Log::new(), terms, author, n: 0, last: None, in_turn: false };
        for act in &acts {
            life.act(act);
        }
    }
}
