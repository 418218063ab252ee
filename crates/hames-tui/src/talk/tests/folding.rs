//! Whatever of the live events somebody saw, and in whatever pages the log came: the blocks are the same.

use proptest::prelude::*;

use super::*;
use crate::talk::block::{Block, Kind};
use crate::talk::fold::Fold;

/// Blocks without what counts changes.
fn blocks(fold: &Fold) -> Vec<Block> {
    let all = fold.blocks.iter().chain(&fold.open.blocks).cloned();
    all.map(|block| Block { version: 0, ..block }).collect()
}

fn folded(envelopes: &[Envelope]) -> Fold {
    let mut fold = Fold::default();
    envelopes.iter().for_each(|envelope| fold.apply(envelope));
    fold
}

/// What a server sends whoever attaches at a place of the log: the open step, as far as it went.
fn snapshot_at(envelopes: &[Envelope]) -> Option<Envelope> {
    let begin = envelopes.iter().rposition(|e| matches!(e.event, Event::StepStart(_)))?;
    if envelopes[begin..].iter().any(|e| matches!(e.event, Event::StepDone(_))) {
        return None;
    }
    let mut blocks: Vec<OpenBlock> = Vec::new();
    for envelope in &envelopes[begin..] {
        let (kind, index, name, text) = match &envelope.event {
            Event::TextDelta(d) => (OpenKind::Text, d.index, None, &d.text),
            Event::ReasoningDelta(d) => (OpenKind::Reasoning, d.index, None, &d.text),
            Event::ToolInputDelta(d) => (OpenKind::ToolInput, d.index, d.name.clone(), &d.text),
            _ => continue,
        };
        match blocks.iter_mut().find(|block| (block.kind, block.index) == (kind, index)) {
            Some(block) => block.text.push_str(text),
            None => blocks.push(OpenBlock { kind, index, name, text: text.clone() }),
        }
    }
    let event = Event::StepSnapshot(StepSnapshot { blocks });
    Some(Envelope { seq: None, event, ..envelopes[begin].clone() })
}

/// A log whose calls in one step have ordinals of their own, as providers give them.
fn log() -> Vec<Envelope> {
    let mut all = session().all;
    let mut calls = 0;
    for envelope in &mut all {
        match &mut envelope.event {
            Event::StepStart(_) => calls = 0,
            Event::ToolInputDelta(delta) => delta.index = calls,
            Event::ToolCall(_) => calls += 1,
            _ => {}
        }
    }
    all
}

#[test]
fn with_deltas_or_without_the_blocks_are_the_same() {
    let all = log();
    let durable: Vec<Envelope> = all.iter().filter(|e| e.seq.is_some()).cloned().collect();
    let (live, logged) = (folded(&all), folded(&durable));
    assert_eq!(blocks(&live), blocks(&logged));
    assert!(live.open.blocks.is_empty());
    // Everything twice changes nothing.
    let twice: Vec<Envelope> = durable.iter().flat_map(|e| [e.clone(), e.clone()]).collect();
    assert_eq!(blocks(&folded(&twice)), blocks(&logged));
    let kinds = |want: fn(&Kind) -> bool| logged.blocks.iter().filter(|block| want(&block.kind)).count();
    assert_eq!(kinds(|kind| matches!(kind, Kind::User(_))), 3);
    assert_eq!(kinds(|kind| matches!(kind, Kind::Answer(_))), 2);
    assert_eq!(kinds(|kind| matches!(kind, Kind::Reasoning(_))), 1);
    assert_eq!(kinds(|kind| matches!(kind, Kind::Card(_))), 3);
    assert_eq!(kinds(|kind| matches!(kind, Kind::Badge(_))), 2);
    assert_eq!(kinds(|kind| matches!(kind, Kind::Checkpoint(_))), 1);
}

#[test]
fn whoever_attaches_anywhere_sees_what_everybody_sees() {
    let all = log();
    for at in 0..=all.len() {
        let watched = folded(&all[..at]);
        // A page of the log, then the snapshot, then whatever comes.
        let mut fold = Fold::default();
        fold.prepend(&page(&all[..at], false));
        if let Some(snapshot) = snapshot_at(&all[..at]) {
            fold.apply(&snapshot);
        }
        let live =
            |fold: &Fold| fold.blocks.iter().any(|b| matches!(&b.kind, Kind::Card(card) if !card.live.is_empty()));
        // Only what a running command printed before is nobody's but the watcher's; its result has it all.
        if !live(&watched) {
            assert_eq!(blocks(&fold), blocks(&watched), "attached before event {at}");
        }
        all[at..].iter().for_each(|envelope| fold.apply(envelope));
        assert_eq!(blocks(&fold), blocks(&folded(&all)), "attached before event {at}");
    }
}

#[test]
fn a_cut_takes_the_tail_and_what_streams() {
    let mut log = session();
    log.json(json!({"type": "session.cut", "from_seq": 3, "removed": 40}));
    let fold = folded(&log.all);
    let left: Vec<_> = fold.blocks.iter().map(|block| &block.kind).collect();
    assert!(matches!(left[..], [Kind::Note(_)]), "{left:?}");
    assert_eq!(fold.window_behind(), None);
}

#[test]
fn unknown_and_damaged_events_break_nothing() {
    let mut log = session();
    let before = blocks(&folded(&log.all));
    log.event(Event::Unknown(json!({"type": "from.the.future", "x": 1})));
    assert_eq!(blocks(&folded(&log.all)), before);
    log.event(Event::Unknown(json!({"type": "tool.done", "output": 3})));
    assert_eq!(blocks(&folded(&log.all)).len(), before.len() + 1);
    // Events about calls, blocks and steps nobody knows, and pieces that lie about where they stand.
    let mut fold = Fold::default();
    for value in [
        json!({"type": "tool.output.delta", "call_id": "x", "offset": 9, "text": "a"}),
        json!({"type": "text.delta", "index": 7, "offset": 99, "text": "late"}),
        json!({"type": "text.delta", "index": 7, "offset": 100, "text": "äußerst"}),
        json!({"type": "text.delta", "index": 7, "offset": u64::MAX, "text": "far"}),
        json!({"type": "tool.done", "call_id": "y", "name": "n", "output": "o", "duration_ms": 1}),
        json!({"type": "turn.done", "duration_ms": 1, "usage": {}}),
    ] {
        let mut one = Log { seq: fold.seq, ..Log::default() };
        one.json(value);
        fold.apply(&one.all[0]);
    }
    assert_eq!(fold.blocks.len(), 2);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn pages_of_any_size_give_what_the_whole_log_gives(cuts in prop::collection::vec(1usize..20, 1..20)) {
        let durable: Vec<Envelope> = log().into_iter().filter(|e| e.seq.is_some()).collect();
        let mut fold = Fold::default();
        let mut end = durable.len();
        let mut cuts = cuts.into_iter().cycle();
        while end > 0 {
            let from = end.saturating_sub(cuts.next().unwrap_or(1));
            fold.prepend(&page(&durable[from..end], from > 0));
            end = from;
        }
        prop_assert_eq!(blocks(&fold), blocks(&folded(&durable)));
        prop_assert_eq!(fold.first, Some(1));
    }

    #[test]
    fn drops_of_any_size_give_the_same_text(text in "(\\PC|\r\n|\r|\n|```|- |# ){0,60}", drop in 1usize..9) {
        let mut log = Log::default();
        log.run("analyze", "x").step().says("text", 0, &text, drop);
        let done = log.all.pop().unwrap();
        let fold = folded(&log.all);
        let mut whole = Fold::default();
        whole.apply(&done);
        let prose = |blocks: Vec<Block>| blocks.into_iter().find_map(|block| match block.kind {
            Kind::Answer(prose) => Some((prose.text, prose.split)),
            _ => None,
        });
        // A return at the very end waits for what follows it.
        if !text.ends_with('\r') && !text.trim().is_empty() {
            prop_assert_eq!(prose(blocks(&fold)[1..].to_vec()), prose(blocks(&whole)));
        }
    }
}
