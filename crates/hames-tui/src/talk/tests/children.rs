//! Children: one bubble each, however their events are mixed.

use proptest::prelude::*;

use super::*;
use crate::talk::block::{Block, Kind};
use crate::talk::fold::Fold;

/// Two children that work side by side, the second with a child of its own; a third that is still at work.
fn log() -> Log {
    let mut log = Log::default();
    log.run("build", "Look into the count and the names.").step();
    log.call("d1", "Delegate", "explore", json!({"profile": "explore"}));
    log.call("d2", "Delegate", "review", json!({"profile": "review"})).step_done().start("d1").start("d2");
    let child = |log: &mut Log, path: &[&str]| log.agent = path.iter().map(|name| (*name).to_owned()).collect();
    child(&mut log, &["explore-1"]);
    log.json(json!({"type": "subagent.start", "profile": "explore", "call_id": "d1",
        "task": "Find every place that counts.\nSay which of them are wrong."}));
    log.step();
    child(&mut log, &["review-1"]);
    log.json(json!({"type": "subagent.start", "profile": "review", "call_id": "d2", "task": "Read the names."}));
    log.step().says("reasoning", 0, "I read them in order.", 5);
    child(&mut log, &["explore-1"]);
    log.says("text", 0, "I look at the counter first.", 6);
    log.call("e1", "Grep", "count", json!({"pattern": "count"})).step_done().start("e1");
    child(&mut log, &["review-1"]);
    log.call("r1", "Read", "src/names.rs", json!({"path": "src/names.rs"})).step_done().start("r1");
    child(&mut log, &["review-1", "reader-1"]);
    log.json(json!({"type": "subagent.start", "profile": "reader", "call_id": "r1", "task": "Only this file."}));
    log.step().says("text", 0, "It is fine.", 0).step_done();
    log.json(json!({"type": "subagent.done", "call_id": "r1", "result": "complete", "duration_ms": 700}));
    child(&mut log, &["explore-1"]);
    let lines: Vec<String> = (1..=20).map(|n| format!("src/lib.rs:{n}: count += {n}")).collect();
    log.json(json!({"type": "tool.done", "call_id": "e1", "name": "grep", "duration_ms": 30,
        "output": lines.join("\n"), "blob": {"hash": "h", "bytes": 90_000, "name": "out-3"}}));
    log.step().says("text", 0, "Two places count twice:\n\n- `src/lib.rs:4`\n- `src/lib.rs:9`", 7).step_done();
    log.json(json!({"type": "subagent.done", "call_id": "d1", "result": "complete", "duration_ms": 4200}));
    child(&mut log, &[]);
    log.gives("d1", "Two places count twice.", json!([]));
    child(&mut log, &["review-1"]);
    log.json(json!({"type": "subagent.error", "call_id": "d2", "error": "The provider refused the key."}));
    child(&mut log, &[]);
    log.json(json!({"type": "tool.error", "call_id": "d2", "name": "delegate", "class": "failed",
        "error": "The provider refused the key.", "duration_ms": 90}));
    log.step().call("d3", "Delegate", "write", json!({"profile": "write"})).step_done().start("d3");
    child(&mut log, &["write-1"]);
    log.json(json!({"type": "subagent.start", "profile": "write", "call_id": "d3", "task": "Mend both."}));
    log.step().call("w1", "Edit", "src/lib.rs", json!({"path": "src/lib.rs"})).step_done().start("w1");
    log.gives("w1", "Edited.", json!([{"path": "src/lib.rs", "text": DIFF, "added": 2, "removed": 1}])).step();
    log.json(json!({"type": "text.delta", "index": 0, "offset": 0, "text": "One is mended, the other"}));
    child(&mut log, &[]);
    log
}

fn folded(envelopes: &[Envelope]) -> Vec<Block> {
    let mut fold = Fold::default();
    envelopes.iter().for_each(|envelope| fold.apply(envelope));
    shown(&fold)
}

/// Blocks without what counts changes.
fn shown(fold: &Fold) -> Vec<Block> {
    fold.blocks.iter().chain(&fold.open.blocks).cloned().map(|block| Block { version: 0, ..block }).collect()
}

fn names(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().filter(|block| matches!(block.kind, Kind::Child(_))).map(name_of).collect()
}

fn name_of(block: &Block) -> &str {
    match &block.kind {
        Kind::Child(child) => &child.name,
        _ => "",
    }
}

#[test]
fn children_that_work_side_by_side_have_a_bubble_each() {
    let blocks = folded(&log().all);
    assert_eq!(names(&blocks), ["explore-1", "review-1", "write-1"]);
    // What they did is in their bubbles alone; the calls that began them are the parent's.
    let cards = blocks.iter().filter(|block| matches!(block.kind, Kind::Card(_))).count();
    assert_eq!(cards, 3);
    let of = |name: &str| match &blocks.iter().find(|block| name_of(block) == name).unwrap().kind {
        Kind::Child(child) => child.blocks().count(),
        _ => 0,
    };
    assert_eq!((of("explore-1"), of("review-1"), of("write-1")), (3, 3, 2));
}

#[test]
fn a_name_that_comes_again_is_another_child() {
    let mut log = log();
    for task in ["once more", "and again"] {
        log.agent = vec!["explore-1".into()];
        log.json(json!({"type": "subagent.start", "profile": "explore", "call_id": "x", "task": task}));
        log.step().says("text", 0, task, 0).step_done();
    }
    assert_eq!(names(&folded(&log.all)), ["explore-1", "review-1", "write-1", "explore-1", "explore-1"]);
}

#[test]
fn bubbles_look_so() {
    let mut out = String::new();
    for (width, height) in [(80, 44), (40, 60)] {
        let mut talk = talk_of(&log());
        out.push_str(&format!(
            "{width} columns, folded\n{}\n",
            text(&draw(&mut talk, width, height, theme())).join("\n")
        ));
        act(&mut talk, &plain(KeyCode::F(5)));
        out.push_str(&format!("{width} columns, open\n{}\n", text(&draw(&mut talk, width, 130, theme())).join("\n")));
    }
    crate::snapshot::compare("talk-children", &out);
    for depth in [Depth::None, Depth::Sixteen] {
        let mut talk = talk_of(&log());
        let theme = Theme { shade: Shade::Light, depth };
        let said = text(&draw(&mut talk, 80, 44, theme)).join("\n");
        assert!(out.contains(&said), "colours change no word");
    }
    let mut talk = talk_of(&log());
    for width in 0..30 {
        for _ in 0..2 {
            draw(&mut talk, width, 20, theme());
            act(&mut talk, &plain(KeyCode::F(5)));
        }
    }
}

#[test]
fn a_bubble_is_marked_opened_and_searched_like_anything_else() {
    let mut talk = talk_of(&log());
    let closed = text(&draw(&mut talk, 80, 60, theme())).join("\n");
    assert!(!closed.contains("I look at the counter first."), "{closed}");
    // Up to the first bubble: from the last one over the second.
    for _ in 0..3 {
        act(&mut talk, &plain(KeyCode::Up));
    }
    assert_eq!(talk.selected(), None, "nothing is cut or copied at a bubble");
    assert!(talk.act(Action::Fold));
    let open = text(&draw(&mut talk, 80, 60, theme())).join("\n");
    assert!(open.contains("I look at the counter first.") && open.contains("… 12 lines more"), "{open}");
    assert_eq!(talk.outputs().0.len(), 1, "what a child's call kept whole can be read");
    let mut talk = talk_of(&log());
    talk.act(Action::Find);
    act(&mut talk, &Input::Paste("counter first".into()));
    let found = text(&draw(&mut talk, 80, 30, theme())).join("\n");
    assert!(found.contains("I look at the counter first."), "{found}");
}

#[test]
fn a_cut_takes_what_children_did_behind_it() {
    let mut log = log();
    let at = log.all.iter().find(|e| matches!(e.event, Event::SubagentError(_))).and_then(|e| e.seq).unwrap();
    log.json(json!({"type": "session.cut", "from_seq": at, "removed": 9}));
    assert_eq!(names(&folded(&log.all)), ["explore-1", "review-1"]);
    let said = text(&draw(&mut talk_of(&log), 80, 60, theme())).join("\n");
    assert!(said.contains("◌ review-1 · review · running"), "it has not ended: {said}");
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn pages_of_any_size_give_the_same_bubbles(cuts in prop::collection::vec(1usize..12, 1..20), live in 0usize..80) {
        let log = log();
        let durable: Vec<Envelope> = log.all.iter().filter(|e| e.seq.is_some()).cloned().collect();
        let whole = folded(&durable);
        let mut fold = Fold::default();
        // Somebody may have heard something already before the first page comes.
        let heard = &durable[durable.len() - live.min(durable.len())..];
        heard.iter().for_each(|envelope| fold.apply(envelope));
        let mut end = durable.len() - heard.len();
        let mut cuts = cuts.into_iter().cycle();
        while end > 0 {
            let from = end.saturating_sub(cuts.next().unwrap_or(1));
            fold.prepend(&page(&durable[from..end], from > 0));
            end = from;
        }
        prop_assert_eq!(shown(&fold), whole);
    }

    #[test]
    fn whatever_of_the_stream_was_heard_the_bubbles_are_the_same(keep in prop::collection::vec(any::<bool>(), 200)) {
        let log = log();
        let heard: Vec<Envelope> = log.all.iter().zip(keep.iter().cycle())
            .filter(|(e, keep)| e.seq.is_some() || **keep).map(|(e, _)| e.clone()).collect();
        let closed = |blocks: Vec<Block>| blocks.into_iter().filter(|block| name_of(block) != "write-1").collect::<Vec<_>>();
        prop_assert_eq!(closed(folded(&heard)), closed(folded(&log.all)));
    }
}
